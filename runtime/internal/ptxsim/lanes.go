package ptxsim

import "math/bits"

// lanes is a register of a warp: the bits that each lane holds.
type lanes = [warpSize]uint64

// allLanes is the mask of a warp that has not diverged.
const allLanes = 1<<warpSize - 1

// An operation computes a register from others.
type operation interface {
	// sources is how many it reads.
	sources() int
	// exec is the operation on registers by their index, the result's first.
	exec(r []int) exec
}

// Operations on whole registers also compute inactive lanes, because a loop over all 32 has
// neither branches nor calls. The results of inactive lanes are dropped afterwards. The result
// may be one of the sources.
type (
	whole1 func(d, a *lanes)
	whole2 func(d, a, b *lanes)
	whole3 func(d, a, b, c *lanes)
)

// Operations on single lanes are called only for active lanes. They are for operations that
// take longer.
type (
	single1 func(a uint64) uint64
	single2 func(a, b uint64) uint64
	single3 func(a, b, c uint64) uint64
	single4 func(a, b, c, d uint64) uint64
)

func (whole1) sources() int  { return 1 }
func (whole2) sources() int  { return 2 }
func (whole3) sources() int  { return 3 }
func (single1) sources() int { return 1 }
func (single2) sources() int { return 2 }
func (single3) sources() int { return 3 }
func (single4) sources() int { return 4 }

func (f whole1) exec(r []int) exec {
	d, a := r[0], r[1]
	return func(w *warp, mask uint32) {
		f(w.target(d, mask), &w.regs[a])
		w.keep(d, mask)
	}
}

func (f whole2) exec(r []int) exec {
	d, a, b := r[0], r[1], r[2]
	return func(w *warp, mask uint32) {
		f(w.target(d, mask), &w.regs[a], &w.regs[b])
		w.keep(d, mask)
	}
}

func (f whole3) exec(r []int) exec {
	d, a, b, c := r[0], r[1], r[2], r[3]
	return func(w *warp, mask uint32) {
		f(w.target(d, mask), &w.regs[a], &w.regs[b], &w.regs[c])
		w.keep(d, mask)
	}
}

// target is where an operation on whole registers writes: its destination where all lanes
// are active, a register of the warp's own otherwise.
func (w *warp) target(d int, mask uint32) *lanes {
	if mask == allLanes {
		return &w.regs[d]
	}
	return &w.scratch
}

// keep moves active lanes from where target put them.
func (w *warp) keep(d int, mask uint32) {
	if mask == allLanes {
		return
	}
	to := &w.regs[d]
	for m := mask; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m)
		to[lane] = w.scratch[lane]
	}
}

func (f single1) exec(r []int) exec {
	d, a := r[0], r[1]
	return func(w *warp, mask uint32) {
		to, x := &w.regs[d], &w.regs[a]
		for m := mask; m != 0; m &= m - 1 {
			lane := bits.TrailingZeros32(m)
			to[lane] = f(x[lane])
		}
	}
}

func (f single2) exec(r []int) exec {
	d, a, b := r[0], r[1], r[2]
	return func(w *warp, mask uint32) {
		to, x, y := &w.regs[d], &w.regs[a], &w.regs[b]
		for m := mask; m != 0; m &= m - 1 {
			lane := bits.TrailingZeros32(m)
			to[lane] = f(x[lane], y[lane])
		}
	}
}

func (f single3) exec(r []int) exec {
	d, a, b, c := r[0], r[1], r[2], r[3]
	return func(w *warp, mask uint32) {
		to, x, y, z := &w.regs[d], &w.regs[a], &w.regs[b], &w.regs[c]
		for m := mask; m != 0; m &= m - 1 {
			lane := bits.TrailingZeros32(m)
			to[lane] = f(x[lane], y[lane], z[lane])
		}
	}
}

func (f single4) exec(r []int) exec {
	return func(w *warp, mask uint32) {
		for m := mask; m != 0; m &= m - 1 {
			lane := bits.TrailingZeros32(m)
			w.regs[r[0]][lane] = f(w.regs[r[1]][lane], w.regs[r[2]][lane], w.regs[r[3]][lane], w.regs[r[4]][lane])
		}
	}
}

// inHalves performs an operation on both halves of packed operands of twice so many bits.
// The operation masks its sources and its result.
func inHalves(f operation, width int) operation {
	switch f := f.(type) {
	case single1:
		return single1(func(a uint64) uint64 { return f(a) | f(a>>width)<<width })
	case single2:
		return single2(func(a, b uint64) uint64 { return f(a, b) | f(a>>width, b>>width)<<width })
	case single3:
		return single3(func(a, b, c uint64) uint64 { return f(a, b, c) | f(a>>width, b>>width, c>>width)<<width })
	}
	return nil
}

// apply compiles an operation on a statement's operands, the first of which is the result.
// It is nil, and the form unknown, where f is or where there are others.
func (b *builder) apply(s *statement, f operation) exec {
	if f == nil || len(s.Args) != f.sources()+1 || s.Args[0].kind != regOperand {
		return nil
	}
	var r []int
	for _, o := range s.Args {
		if o.pair != nil || o.negate || o.kind != regOperand && o.kind != immOperand && o.kind != nameOperand {
			return nil
		}
		r = append(r, b.value(o, s.last()))
	}
	return f.exec(r)
}
