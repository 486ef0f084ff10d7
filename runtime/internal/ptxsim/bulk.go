package ptxsim

import (
	"math/bits"
	"slices"
)

// counted is the modifier of operations whose bytes an mbarrier counts; grouped is that of
// operations for which a thread waits by groups.
const (
	counted = "mbarrier::complete_tx::bytes"
	grouped = "bulk_group"
)

// bulkFamily tells the forms of cp.async.bulk and cp.reduce.async.bulk apart.
func bulkFamily(b *builder, s *statement) exec {
	reduces := append([]string{"async", "bulk", counted, grouped, "multicast::cluster", "noftz", "reduce"},
		atomicOps...)
	switch {
	case s.has("commit_group") && len(s.Args) == 0:
		return commitBulk
	case s.has("wait_group") && len(s.Args) == 1:
		return waitBulk(b.use(s.Args[0]), s.has("read"))
	case s.has("tensor"):
		return tensorFamily(b, s)
	case s.has("prefetch") && s.only("async", "bulk", "prefetch", "L2") && kinds(s.plain(), "as"):
		return func(*warp, uint32) {}
	case !s.only(reduces...) || s.has("exch"):
		return nil
	}
	f := combineOf(s.which(atomicOps...), s.element())
	if f == nil && s.has("reduce") {
		return nil
	}
	if s.has("add") && s.element() == "f32" {
		f = flushed(f) // PTX ISA, cp.reduce.async.bulk: as atom does in global memory
	}
	apply := applier(f, elementTypes[s.element()])
	switch args := s.plain(); {
	case s.has(counted) && s.route(shared, global), s.has(counted) && s.route(shared, shared):
		return b.bulkToShared(s, args, apply)
	case s.has(grouped) && s.route(global, shared) && kinds(args, "aas"):
		return b.bulkToGlobal(args, apply)
	}
	return nil
}

// route reports whether the state spaces of an opcode are those, destination first.
func (s *statement) route(to, from space) bool {
	var seen []space
	for _, m := range s.Mods {
		if in, ok := spaces[m]; ok {
			seen = append(seen, in)
		}
	}
	return slices.Equal(seen, []space{to, from})
}

// applier writes bytes to memory: it copies them or, if there is an operation, combines them
// with the old contents.
func applier(f combine, elem int) func(to, from []byte) {
	if f == nil {
		return func(to, from []byte) { copy(to, from) }
	}
	return func(to, from []byte) {
		for i := 0; i < len(to); i += elem {
			write(to[i:], elem, f(read(to[i:], elem), read(from[i:], elem)))
		}
	}
}

// A target is a place in shared memory of the cluster, and the mbarrier in the same block
// that counts what comes there.
type target struct{ to, bar uint64 }

// targets are where an operation with an mbarrier goes: to one block or, of multicasts, to
// the same place in each block of a mask.
type targets struct {
	to, bar pointer
	blocks  int // register of the mask; -1: none
}

func (b *builder) targets(s *statement, to, bar operand, rest []operand) (targets, bool) {
	t := targets{b.pointer(to), b.pointer(bar), -1}
	many := s.has("multicast::cluster")
	if many && len(rest) == 1 {
		t.blocks = b.use(rest[0])
	}
	return t, many == (len(rest) == 1) && len(rest) <= 1
}

func (t *targets) of(w *warp, lane int) []target {
	to, bar := t.to.at(w, lane), t.bar.at(w, lane)
	if t.blocks < 0 {
		w.sameBlock(lane, to, bar)
		return []target{{to, bar}}
	}
	var out []target
	for blocks := uint32(uint16(w.regs[t.blocks][lane])); blocks != 0; blocks &= blocks - 1 {
		rank := uint32(bits.TrailingZeros32(blocks))
		out = append(out, target{inBlock(to, rank), inBlock(bar, rank)})
	}
	return out
}

// bulkToShared: cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes{.multicast}
// {.hint} [d], [a], size, [mbar]{, blocks}{, policy}, and from shared::cta; cp.reduce from
// there.
func (b *builder) bulkToShared(s *statement, args []operand, apply func(to, from []byte)) exec {
	if len(args) < 4 || !kinds(args[:4], "aasa") {
		return nil
	}
	where, ok := b.targets(s, args[0], args[3], args[4:])
	if !ok {
		return nil
	}
	from, size, in := b.pointer(args[1]), b.use(args[2]), global
	if s.route(shared, shared) {
		in = shared
	}
	return func(w *warp, mask uint32) {
		for m := mask; m != 0; m &= m - 1 {
			lane := bits.TrailingZeros32(m)
			n, addr, goals := w.bulkSize(lane, size), from.at(w, lane), where.of(w, lane)
			if in == shared {
				w.own(lane, addr)
			}
			data := w.bytes(lane, in, addr, n, 16)
			for _, g := range goals {
				w.bytes(lane, shared, g.to, n, 16)
			}
			note := w.noteCopy(lane)
			w.later(func() {
				for _, g := range goals {
					to := w.bytes(lane, shared, g.to, n, 16)
					if note != nil {
						if in == shared {
							note(g.bar, addr, data, false)
						}
						note(g.bar, g.to, outcome(to, data, apply), true)
					}
					apply(to, data)
					w.complete(lane, g.bar, n)
				}
			})
		}
	}
}

// bulkSize is the bytes that an operation moves.
func (w *warp) bulkSize(lane, reg int) int {
	n := int(uint32(w.regs[reg][lane]))
	if n%16 != 0 {
		panic(w.fault(lane, "a bulk operation on %d bytes, which are no multiple of 16", n))
	}
	return n
}

// bulkToGlobal: cp.async.bulk.global.shared::cta.bulk_group{.hint} [d], [a], size{, policy};
// cp.reduce.
func (b *builder) bulkToGlobal(args []operand, apply func(to, from []byte)) exec {
	to, from, size := b.pointer(args[0]), b.pointer(args[1]), b.use(args[2])
	return func(w *warp, mask uint32) {
		for m := mask; m != 0; m &= m - 1 {
			lane := bits.TrailingZeros32(m)
			n := w.bulkSize(lane, size)
			w.own(lane, from.at(w, lane))
			source := w.bytes(lane, shared, from.at(w, lane), n, 16)
			dest := w.bytes(lane, global, to.at(w, lane), n, 16)
			data := make([]byte, n)
			w.issueBulk(lane, from.at(w, lane), n, func() { copy(data, source) }, func() { apply(dest, data) })
		}
	}
}

// A bulkQueue is the bulk operations of a lane, for which it waits by groups.
type bulkQueue struct {
	open   []*bulkOp
	groups [][]*bulkOp // oldest first
}

// A bulkOp reads shared memory and then writes global memory, both as late as possible: when
// the lane waits for the read or for the write. A part that is done is nil.
type bulkOp struct {
	read, write func()
	at          *instr
}

func (o *bulkOp) doRead() {
	if o.read != nil {
		o.read()
		o.read = nil
	}
}

func (o *bulkOp) doWrite() {
	o.doRead()
	if o.write != nil {
		o.write()
		o.write = nil
	}
}

// issueBulk adds an operation, which reads so many bytes of shared memory, to the group that
// is open.
func (w *warp) issueBulk(lane int, from uint64, n int, read, write func()) {
	if r := w.cta.cluster.races; r != nil {
		read = r.bulkRead(w, lane, from, n, read)
	}
	o := &bulkOp{read, write, w.at}
	if w.cta.cluster.launch.Early {
		o.doWrite()
	}
	w.cta.cluster.launch.events++
	w.bulk[lane].open = append(w.bulk[lane].open, o)
}

// commitBulk: cp.async.bulk.commit_group.
func commitBulk(w *warp, mask uint32) {
	for m := mask; m != 0; m &= m - 1 {
		q := &w.bulk[bits.TrailingZeros32(m)]
		q.groups = append(q.groups, q.open)
		q.open = nil
	}
}

// waitBulk: cp.async.bulk.wait_group{.read} n: all but the n latest groups are complete, or
// have read what they move.
func waitBulk(latest int, read bool) exec {
	return func(w *warp, mask uint32) {
		w.cta.cluster.launch.events++
		for m := mask; m != 0; m &= m - 1 {
			lane := bits.TrailingZeros32(m)
			q := &w.bulk[lane]
			n := len(q.groups) - int(uint32(w.regs[latest][lane]))
			if n <= 0 {
				continue
			}
			w.eachBulk(slices.Concat(q.groups[:n]...), read)
			if !read {
				q.groups = q.groups[n:]
			}
		}
	}
}

// eachBulk performs operations, which are in no order among each other.
func (w *warp) eachBulk(ops []*bulkOp, read bool) {
	if w.cta.cluster.launch.Backwards {
		slices.Reverse(ops)
	}
	at := w.at
	for _, o := range ops {
		if w.at = o.at; read {
			o.doRead()
		} else {
			o.doWrite()
		}
	}
	w.at = at
}

// finishBulk completes the operations that no lane has waited for. An operation that has not
// read shared memory yet is an error, because that memory is gone when the block has ended.
func (w *warp) finishBulk() {
	for lane := range w.bulk {
		q := &w.bulk[lane]
		rest := slices.Concat(append(q.groups, q.open)...)
		for _, o := range rest {
			if w.at = o.at; o.read != nil {
				panic(w.fault(lane, "the block has ended while this still reads its shared memory: "+
					"expected a wait_group.read"))
			}
		}
		w.eachBulk(rest, false)
	}
}
