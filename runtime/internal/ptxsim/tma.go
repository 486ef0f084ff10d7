package ptxsim

import (
	"fmt"
	"math/bits"
	"slices"
)

// tensorFamily tells the copies of boxes of tensors apart: cp.async.bulk.tensor,
// cp.reduce.async.bulk.tensor and cp.async.bulk.prefetch.tensor, in tile mode.
func tensorFamily(b *builder, s *statement) exec {
	known := append([]string{"async", "bulk", "tensor", "tile", counted, grouped, "multicast::cluster", "reduce",
		"prefetch", "L2", "1d", "2d", "3d", "4d", "5d"}, atomicOps...)
	if !s.only(known...) || s.has("exch") || s.has("reduce") != (s.which(atomicOps...) != "") {
		return nil
	}
	switch args := s.plain(); {
	case s.has("prefetch") && kinds(args, "a"):
		return b.prefetchBox(s, args[0])
	case s.has(counted) && s.route(shared, global) && len(args) >= 3 && kinds(args[:3], "aaa"):
		return b.loadBox(s, args)
	case s.has(grouped) && s.route(global, shared) && kinds(args, "aa"):
		return b.storeBox(s, args)
	}
	return nil
}

// A boxOperand is [map, {c0, c1, ...}]: the generic address of a tensor map and signed
// coordinates, innermost first.
type boxOperand struct {
	addr   pointer
	coords []int // registers
}

func (b *builder) box(s *statement, o operand) (boxOperand, bool) {
	box := boxOperand{addr: b.pointer(o)}
	for _, e := range o.elems {
		box.coords = append(box.coords, b.use(e))
	}
	return box, s.has(fmt.Sprintf("%dd", len(box.coords)))
}

// of reads the map.
func (o *boxOperand) of(w *warp, lane int) box {
	m, err := DecodeTensorMap(w.bytes(lane, generic, o.addr.at(w, lane), TensorMapBytes, 64))
	if err != nil {
		panic(w.fault(lane, "%v", err))
	}
	if m.Rank != len(o.coords) {
		panic(w.fault(lane, "%d coordinates of a tensor of %d dimensions", len(o.coords), m.Rank))
	}
	b := box{TensorMap: m, elem: m.Type.Size(), n: [5]int{1, 1, 1, 1, 1}}
	for i, r := range o.coords {
		b.first[i] = int64(int32(w.regs[r][lane]))
		b.n[i] = int(m.Box[i]+m.Steps[i]-1) / int(m.Steps[i])
	}
	// How a row narrower than the swizzle lies in shared memory is not documented.
	if inner := b.n[0] * b.elem; m.Swizzle != 0 && inner != m.Swizzle {
		panic(w.fault(lane, "the simulator does not know boxes of %d bytes in dimension 0 with a swizzle of %d",
			inner, m.Swizzle))
	}
	return b
}

// A box is a part of a tensor; its elements are contiguous in shared memory.
type box struct {
	TensorMap
	elem  int
	first [5]int64 // coordinates
	n     [5]int   // elements, those outside of the tensor with them
}

// bytes is the size of the box, all of which an mbarrier counts.
func (b *box) bytes() int { return b.elem * b.n[0] * b.n[1] * b.n[2] * b.n[3] * b.n[4] }

// rows calls f for the elements inside of the tensor of each row of dimension 0: their
// offset in the box, their address and their bytes.
func (b *box) rows(f func(offset int, addr uint64, n int)) {
	lo := min(max(-b.first[0], 0), int64(b.n[0]))
	hi := min(max(int64(b.Dims[0])-b.first[0], lo), int64(b.n[0]))
	if lo >= hi {
		return
	}
	var at [5]int
	for row := 0; ; row++ {
		addr, inside := b.Address+uint64(b.first[0]+lo)*uint64(b.elem), true
		for i := 1; i < b.Rank; i++ {
			c := b.first[i] + int64(at[i])*int64(b.Steps[i])
			inside = inside && c >= 0 && uint64(c) < b.Dims[i]
			addr += uint64(c) * b.Strides[i]
		}
		if inside {
			f((row*b.n[0]+int(lo))*b.elem, addr, int(hi-lo)*b.elem)
		}
		i := 1
		for ; i < b.Rank; i++ {
			if at[i]++; at[i] < b.n[i] {
				break
			}
			at[i] = 0
		}
		if i >= b.Rank {
			return
		}
	}
}

// load reads the box: elements outside of the tensor are zero, or NaN.
func (b *box) load(w *warp, lane int) []byte {
	out := make([]byte, b.bytes())
	if b.NaNFill {
		nan := map[int]uint64{2: nan16, 4: nan32, 8: nan32<<32 | 0xFFFFFFFF}[b.elem]
		for i := 0; i < len(out); i += b.elem {
			write(out[i:], b.elem, nan)
		}
	}
	round := b.Type.rounding()
	b.rows(func(offset int, addr uint64, n int) {
		copy(out[offset:], w.bytes(lane, global, addr, n, b.elem))
		for i := offset; round != nil && i < offset+n; i += b.elem {
			write(out[i:], b.elem, round(read(out[i:], b.elem)))
		}
	})
	return out
}

// rounding is what copies do to elements; nil: nothing. Subnormals become zero in types
// that say so; tf32 is rounded to nearest, to even where there are two.
func (t TensorMapType) rounding() func(uint64) uint64 {
	ftz, tf32 := t.flushes(), t.RoundsToTF32()
	if !ftz && !tf32 {
		return nil
	}
	return func(v uint64) uint64 {
		if ftz {
			v = flush(v)
		}
		if tf32 && v&0x7F800000 != 0x7F800000 {
			v = (v + 0xFFF + v>>13&1) &^ 0x1FFF
		}
		return v
	}
}

func (t TensorMapType) flushes() bool { return t == 10 || t == 12 }

// permuted is the place of the 16 bytes at an address of shared memory: the bits of the address
// that choose among the pieces of a span are xored with those from bit 7 on (PTX ISA,
// "Swizzling Modes"). The pattern depends on the address alone, not on where a box begins.
func permuted(addr uint64, span int) uint64 {
	return addr ^ addr>>3&uint64(max(span-16, 0))
}

// pieces calls f for each 16 bytes of a box of n bytes at an address of shared memory, with
// their offset in the box and from that address.
func pieces(addr uint64, n, span int, f func(box, memory int)) {
	for i := 0; i < n; i += 16 {
		at := addr + uint64(i)
		f(i, int(permuted(at, span)-addr))
	}
}

// boxAlign is what the address of a box in shared memory is a multiple of.
const boxAlign = 128

// loadBox: cp.async.bulk.tensor.dim.shared::cluster.global{.tile}.mbarrier::complete_tx::bytes
// {.multicast::cluster}{.hint} [d], [map, coords], [mbar]{, blocks}{, policy}.
func (b *builder) loadBox(s *statement, args []operand) exec {
	from, fits := b.box(s, args[1])
	where, ok := b.targets(s, args[0], args[2], args[3:])
	if !fits || !ok || s.has("reduce") {
		return nil
	}
	return func(w *warp, mask uint32) {
		for m := mask; m != 0; m &= m - 1 {
			lane := bits.TrailingZeros32(m)
			x, goals := from.of(w, lane), where.of(w, lane)
			for _, g := range goals {
				w.bytes(lane, shared, g.to, x.bytes(), boxAlign)
			}
			note := w.noteCopy(lane)
			w.later(func() {
				data := x.load(w, lane)
				for _, g := range goals {
					to := w.bytes(lane, shared, g.to, len(data), boxAlign)
					if note != nil {
						pieces(g.to, len(data), x.Swizzle, func(i, at int) { note(g.bar, g.to+uint64(at), data[i:i+16], true) })
					}
					pieces(g.to, len(data), x.Swizzle, func(i, at int) { copy(to[at:at+16], data[i:]) })
					w.complete(lane, g.bar, len(data))
				}
			})
		}
	}
}

// storeBox: cp.async.bulk.tensor.dim.global.shared::cta{.tile}.bulk_group{.hint} [map,
// coords], [a]{, policy}, and cp.reduce.async.bulk.tensor with .op. What is outside of the
// tensor stays as it is.
func (b *builder) storeBox(s *statement, args []operand) exec {
	to, fits := b.box(s, args[0])
	if !fits {
		return nil
	}
	from, op := b.pointer(args[1]), s.which(atomicOps...)
	return func(w *warp, mask uint32) {
		for m := mask; m != 0; m &= m - 1 {
			lane := bits.TrailingZeros32(m)
			x, addr := to.of(w, lane), from.at(w, lane)
			apply := applier(nil, 0)
			if op != "" {
				f := combineOf(op, x.Type.String())
				if f == nil {
					panic(w.fault(lane, "there is no %s of %v", op, x.Type))
				}
				apply = applier(f, x.elem)
			}
			w.own(lane, addr)
			data, source := make([]byte, x.bytes()), w.bytes(lane, shared, addr, x.bytes(), boxAlign)
			w.issueBulk(lane, addr, x.bytes(), func() {
				pieces(addr, len(data), x.Swizzle, func(i, at int) { copy(data[i:i+16], source[at:]) })
			}, func() {
				x.rows(func(offset int, addr uint64, n int) {
					apply(w.bytes(lane, global, addr, n, x.elem), slices.Clone(data[offset:offset+n]))
				})
			})
		}
	}
}

// prefetchBox: cp.async.bulk.prefetch.tensor.dim.L2.global{.tile}{.hint} [map, coords].
func (b *builder) prefetchBox(s *statement, arg operand) exec {
	box, fits := b.box(s, arg)
	if !fits {
		return nil
	}
	return func(w *warp, mask uint32) {
		for m := mask; m != 0; m &= m - 1 {
			box.of(w, bits.TrailingZeros32(m))
		}
	}
}
