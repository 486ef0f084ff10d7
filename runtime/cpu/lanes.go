package cpu

import "github.com/fusec/fusec/ir"

// stride returns by how much an integer expression grows from one lane to the
// next, where that is a constant.
func (g *gen) stride(e *ir.Expr) (int64, bool) {
	if !g.dep(e).vec {
		return 0, true
	}
	switch e.Op {
	case ir.OpRange:
		return 1, true
	case ir.OpLocal:
		if e.Local.Def == nil {
			return 0, false
		}
		return g.stride(e.Local.Def)
	case ir.OpCast:
		if from := e.Args[0].Type; e.Type.IsFloat() || e.Type.Size() < 8 || from.IsFloat() || from.Size() < 8 {
			return 0, false
		}
		return g.stride(e.Args[0])
	}
	if e.Type.IsFloat() || e.Type.Size() < 8 || len(e.Args) == 0 {
		return 0, false
	}
	return g.strideOp(e)
}

func (g *gen) strideOp(e *ir.Expr) (int64, bool) {
	if e.Op == ir.OpSelect { // one side in some lanes and the other in others, unless all are the same
		return 0, false
	}
	a, ok := g.stride(e.Args[0])
	if !ok {
		return 0, false
	}
	if e.Op == ir.OpNeg {
		return -a, true
	}
	if len(e.Args) < 2 {
		return 0, false
	}
	b, ok := g.stride(e.Args[1])
	if !ok {
		return 0, false
	}
	if a == 0 && b == 0 {
		return 0, e.Op.Info().Int != nil
	}
	switch e.Op {
	case ir.OpFloorDiv:
		return 0, a == 1 && g.withinBlocks(e)
	case ir.OpMod:
		return 1, a == 1 && g.withinBlocks(e)
	case ir.OpAdd:
		return a + b, true
	case ir.OpSub:
		return a - b, true
	case ir.OpMul:
		return g.strideMul(e, a, b)
	}
	return 0, false
}

// withinBlocks reports whether the divisor of e is a multiple of the block that
// tiles do not cross, and the dividend counts from a multiple of it.
func (g *gen) withinBlocks(e *ir.Expr) bool {
	c, ok := g.number(e.Args[1])
	return ok && c > 0 && g.block > 0 && c%g.block == 0 && g.startsAt(e.Args[0], c)
}

// startsAt reports whether e, with the lanes' range at 0, is a multiple of c
// whatever the other ranges are.
func (g *gen) startsAt(e *ir.Expr, c int64) bool {
	switch e.Op {
	case ir.OpRange:
		return e.Range == g.vec || g.extent[e.Range] == 1
	case ir.OpAdd, ir.OpSub:
		return g.startsAt(e.Args[0], c) && g.startsAt(e.Args[1], c)
	case ir.OpMul:
		for i, a := range e.Args {
			if v, ok := g.number(a); ok && v%c == 0 || g.startsAt(e.Args[1-i], c) && g.dep(a).stage == stageConst {
				return true
			}
		}
		return false
	}
	v, ok := g.number(e)
	return ok && v%c == 0
}

// blockOf finds the block for the current lanes: what divides every constant that
// the lanes' range, plus multiples of it, is divided by. 0 where tiles of blocks
// would be too short.
func (g *gen) blockOf(s *survey) int64 {
	const shortest = 32
	g.block = 0
	block := int64(0)
	for _, e := range s.divisions {
		if c, ok := g.number(e.Args[1]); ok && c > 0 {
			if a, ok := g.stride(e.Args[0]); ok && a == 1 && g.startsAt(e.Args[0], c) {
				block = gcd(block, c)
			}
		}
	}
	if block < shortest {
		return 0
	}
	return block
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

func (g *gen) strideMul(e *ir.Expr, a, b int64) (int64, bool) {
	if a != 0 && b != 0 {
		return 0, false
	}
	factor, s := e.Args[1], a
	if a == 0 {
		factor, s = e.Args[0], b
	}
	v, ok := g.number(factor)
	return s * v, ok
}

// number evaluates a 64-bit integer expression that depends on sizes only.
func (g *gen) number(e *ir.Expr) (int64, bool) {
	if e.Type != ir.Index && e.Type != ir.I64 || g.dep(e).stage != stageConst {
		return 0, false
	}
	switch e.Op {
	case ir.OpConst:
		return e.Int, true
	case ir.OpSym:
		return g.symbols[e.Name], true
	case ir.OpLocal:
		return g.number(e.Local.Def)
	case ir.OpCast:
		return g.number(e.Args[0])
	}
	f := e.Op.Info().Int
	if f == nil || len(e.Args) > 2 {
		return 0, false
	}
	var args [2]int64
	for i, a := range e.Args {
		var ok bool
		if args[i], ok = g.number(a); !ok {
			return 0, false
		}
	}
	return f(args[0], args[1], 0), true
}

// interval is the lanes from lo to hi-1, both integer registers.
type interval struct{ lo, hi operand }

// limit is first + stride*lane >= 0.
type limit struct{ first, stride int64 }

// lanes compiles a condition that holds for an interval of lanes: comparisons of
// affine expressions, joined by and. ok is false where cond is anything else.
func (g *gen) lanes(cond *ir.Expr) (out interval, ok bool) {
	var regs []int
	var strides []int64
	at, ok := g.bounds(cond, &regs, &strides)
	if !ok {
		return interval{}, false
	}
	out.hi = g.newReg(classInt, false, at)
	hi := out.hi.reg
	out.lo = g.emit(classInt, false, at, func(w *worker, i *instr) {
		lo, end := int64(0), int64(w.n)
		for k, r := range regs {
			lo, end = limit{w.si[r], strides[k]}.clip(lo, end)
		}
		w.si[i.dst.reg], w.si[hi] = lo, max(lo, end)
	})
	out.hi.stage = out.lo.stage
	return out, true
}

// clip cuts the interval from lo to hi-1 down to where the bound holds.
func (b limit) clip(lo, hi int64) (int64, int64) {
	const far = 1 << 62 // more than there are lanes, and less than wraps below
	first := min(max(b.first, -far), far)
	switch {
	case b.stride > 0:
		return max(lo, -ir.FloorDiv(first, b.stride)), hi
	case b.stride < 0:
		return lo, min(hi, ir.FloorDiv(first, -b.stride)+1)
	case b.first < 0:
		return lo, lo
	}
	return lo, hi
}

// bounds lists the bounds that cond is the conjunction of.
func (g *gen) bounds(cond *ir.Expr, regs *[]int, strides *[]int64) (stage, bool) {
	add := func(first operand, stride int64) stage {
		*regs, *strides = append(*regs, first.reg), append(*strides, stride)
		return first.stage
	}
	switch {
	case !g.dep(cond).vec:
		o := g.value(cond)
		return add(g.scalarInt(plusOp(ir.OpSub), []operand{o, g.intConst(1)}), 0), true
	case cond.Op == ir.OpLocal && cond.Local.Def != nil:
		return g.bounds(cond.Local.Def, regs, strides)
	case cond.Op == ir.OpAnd:
		a, okA := g.bounds(cond.Args[0], regs, strides)
		if !okA {
			return 0, false
		}
		b, okB := g.bounds(cond.Args[1], regs, strides)
		return max(a, b), okB
	}
	return g.compareBounds(cond, add)
}

func (g *gen) compareBounds(cond *ir.Expr, add func(operand, int64) stage) (stage, bool) {
	if len(cond.Args) != 2 || classOf(cond.Args[0].Type) != classInt {
		return 0, false
	}
	small, large := cond.Args[0], cond.Args[1]
	if cond.Op == ir.OpGt || cond.Op == ir.OpGe {
		small, large = large, small
	}
	a, okA := g.stride(small)
	b, okB := g.stride(large)
	if !okA || !okB {
		return 0, false
	}
	diff := func(x, y *ir.Expr) operand {
		if ir.MayOverflow(x, g.bits) || ir.MayOverflow(y, g.bits) {
			return g.clamp128(g.apply128(ir.OpSub, g.in128(x, g.first), g.in128(y, g.first)))
		}
		return g.saturating(ir.OpSub, g.first(x), g.first(y))
	}
	switch cond.Op {
	case ir.OpLt, ir.OpGt:
		return add(g.saturating(ir.OpSub, diff(large, small), g.intConst(1)), b-a), true
	case ir.OpLe, ir.OpGe:
		return add(diff(large, small), b-a), true
	case ir.OpEq:
		return max(add(diff(large, small), b-a), add(diff(small, large), a-b)), true
	}
	return 0, false
}

// plusOp is an integer operation without arguments, for scalarInt.
func plusOp(op ir.Op) *ir.Expr { return &ir.Expr{Op: op, Type: ir.Index} }

// clamp returns the interval within the current lanes.
func (l interval) clamp(w *worker) (lo, hi int) {
	n := int64(w.n)
	lo64 := min(max(w.si[l.lo.reg], 0), n)
	return int(lo64), int(max(lo64, min(w.si[l.hi.reg], n)))
}

// selectLanes is a on the interval, b elsewhere.
func (g *gen) selectLanes(l interval, a, b operand) operand {
	at := max(l.lo.stage, l.hi.stage)
	switch a.class {
	case classF32:
		return g.emit(a.class, true, at, mergeTile(f32s, l), a, b)
	case classF64:
		return g.emit(a.class, true, at, mergeTile(f64s, l), a, b)
	}
	return g.emit(a.class, true, at, mergeTile(ints, l), a, b)
}

func mergeTile[T element](at bank[T], l interval) func(*worker, *instr) {
	return func(w *worker, i *instr) {
		lo, hi := l.clamp(w)
		dst, a, b := at(w, i.dst.reg), at(w, i.src[0].reg), at(w, i.src[1].reg)
		copy(dst[:lo], b[:lo])
		copy(dst[lo:hi], a[lo:hi])
		copy(dst[hi:], b[hi:])
	}
}
