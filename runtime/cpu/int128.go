package cpu

import "github.com/fusec/fusec/ir"

// operand128 is an index that may not fit 64 bits, as the two halves of an ir.Int128.
type operand128 struct{ high, low operand }

// clamped128 compiles an operation on such indices, a comparison too. value compiles the parts that fit 64 bits.
func (g *gen) clamped128(e *ir.Expr, value func(*ir.Expr) operand) operand {
	return g.clamp128(g.operation128(e, value))
}

func (g *gen) clamp128(x operand128) operand {
	return g.eachLane(func(v [4]int64) int64 { return ir.Int128{High: v[0], Low: uint64(v[1])}.Clamped() }, x.high, x.low)
}

func (g *gen) operation128(e *ir.Expr, value func(*ir.Expr) operand) operand128 {
	args := [2]operand128{}
	for i, a := range e.Args {
		args[i] = g.in128(a, value)
	}
	if len(e.Args) == 1 {
		args[1] = args[0]
	}
	return g.apply128(e.Op, args[0], args[1])
}

func (g *gen) in128(e *ir.Expr, value func(*ir.Expr) operand) operand128 {
	switch {
	case !ir.MayOverflow(e, g.bits):
		part := value(e)
		return operand128{high: g.eachLane(func(v [4]int64) int64 { return v[0] >> 63 }, part), low: part}
	case e.Op == ir.OpSelect:
		cond, a, b := value(e.Args[0]), g.in128(e.Args[1], value), g.in128(e.Args[2], value)
		pick := func(v [4]int64) int64 {
			if v[0] != 0 {
				return v[1]
			}
			return v[2]
		}
		return operand128{high: g.eachLane(pick, cond, a.high, b.high), low: g.eachLane(pick, cond, a.low, b.low)}
	}
	return g.operation128(e, value)
}

func (g *gen) apply128(op ir.Op, a, b operand128) operand128 {
	f := ir.Apply128(op)
	apply := func(v [4]int64) ir.Int128 {
		return f(ir.Int128{High: v[0], Low: uint64(v[1])}, ir.Int128{High: v[2], Low: uint64(v[3])})
	}
	return operand128{
		high: g.eachLane(func(v [4]int64) int64 { return apply(v).High }, a.high, a.low, b.high, b.low),
		low:  g.eachLane(func(v [4]int64) int64 { return int64(apply(v).Low) }, a.high, a.low, b.high, b.low),
	}
}

// eachLane applies a function to at most four integers: to scalars, or to each lane where one of them is a tile.
func (g *gen) eachLane(f func(v [4]int64) int64, args ...operand) operand {
	vec := false
	for _, a := range args {
		vec = vec || a.vec
	}
	if !vec {
		return g.emit(classInt, false, 0, func(w *worker, i *instr) {
			var v [4]int64
			for k := range args {
				v[k] = w.si[i.src[k].reg]
			}
			w.si[i.dst.reg] = f(v)
		}, args...)
	}
	tiles := make([]operand, len(args))
	for k, a := range args {
		tiles[k] = g.splat(a)
	}
	return g.emit(classInt, true, 0, func(w *worker, i *instr) {
		for lane, dst := 0, ints(w, i.dst.reg); lane < len(dst); lane++ {
			var v [4]int64
			for k := range tiles {
				v[k] = w.i64[i.src[k].reg][lane]
			}
			dst[lane] = f(v)
		}
	}, tiles...)
}
