package cpu

import (
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/num"
)

// apply compiles a row of the op table.
func (g *gen) apply(e *ir.Expr) operand {
	args := make([]operand, len(e.Args))
	vec := false
	for i, a := range e.Args {
		args[i] = g.value(a)
		vec = vec || args[i].vec
	}
	switch {
	case !vec && args[0].class == classInt:
		return g.scalarInt(e, args)
	case !vec:
		return g.scalarFloat(e, args)
	case args[0].class == classF32:
		return applyFloat(g, e, &opsF32, f32s, args)
	case args[0].class == classF64:
		return applyFloat(g, e, &opsF64, f64s, args)
	}
	return g.applyInt(e, args)
}

func (g *gen) scalarInt(e *ir.Expr, args []operand) operand {
	if g.saturates(e) {
		return g.saturating(e.Op, args...)
	}
	f := e.Op.Info().Int
	if len(args) == 1 {
		return g.emit(classInt, false, 0, func(w *worker, i *instr) {
			w.si[i.dst.reg] = f(w.si[i.src[0].reg], 0, 0)
		}, args...)
	}
	switch e.Op { // what offsets are made of
	case ir.OpAdd:
		return g.emit(classInt, false, 0, func(w *worker, i *instr) {
			w.si[i.dst.reg] = w.si[i.src[0].reg] + w.si[i.src[1].reg]
		}, args...)
	case ir.OpMul:
		return g.emit(classInt, false, 0, func(w *worker, i *instr) {
			w.si[i.dst.reg] = w.si[i.src[0].reg] * w.si[i.src[1].reg]
		}, args...)
	}
	return g.emit(classInt, false, 0, func(w *worker, i *instr) {
		w.si[i.dst.reg] = f(w.si[i.src[0].reg], w.si[i.src[1].reg], 0)
	}, args...)
}

func (g *gen) scalarFloat(e *ir.Expr, args []operand) operand {
	f, second := e.Op.Info().Float, 0
	if args[0].class == classF32 {
		f = narrow32(f)
	}
	if len(args) == 2 {
		second = 1
	}
	if !e.Type.IsFloat() {
		return g.emit(classInt, false, 0, func(w *worker, i *instr) {
			w.si[i.dst.reg] = int64(f(w.sf[i.src[0].reg], w.sf[i.src[second].reg], 0))
		}, args...)
	}
	return g.emit(args[0].class, false, 0, func(w *worker, i *instr) {
		w.sf[i.dst.reg] = f(w.sf[i.src[0].reg], w.sf[i.src[second].reg], 0)
	}, args...)
}

// applyFloat compiles an operation of floats of which one at least is a tile.
func applyFloat[T float](g *gen, e *ir.Expr, table *opTable[T], at bank[T], args []operand) operand {
	c := args[0].class
	switch {
	case !e.Type.IsFloat():
		return testFloat(g, e.Op, at, args)
	case len(args) == 1:
		f := unaryOp(table, e.Op)
		return g.emit(c, true, 0, func(w *worker, i *instr) { f(at(w, i.dst.reg), at(w, i.src[0].reg)) }, args...)
	}
	if e.Op.Info().Commutative && !args[0].vec {
		args[0], args[1] = args[1], args[0]
	}
	if f := table.vs[e.Op]; f != nil && args[0].vec && !args[1].vec {
		return g.emit(c, true, 0, func(w *worker, i *instr) {
			f(at(w, i.dst.reg), at(w, i.src[0].reg), T(w.sf[i.src[1].reg]))
		}, args...)
	}
	f := binaryOp(table, e.Op)
	return g.emit(c, true, 0, func(w *worker, i *instr) {
		f(at(w, i.dst.reg), at(w, i.src[0].reg), at(w, i.src[1].reg))
	}, g.splat(args[0]), g.splat(args[1]))
}

// testFloat compiles a comparison or a predicate of floats.
func testFloat[T float](g *gen, op ir.Op, at bank[T], args []operand) operand {
	if len(args) == 1 {
		f := testOp[T](op)
		return g.emit(classInt, true, 0, func(w *worker, i *instr) {
			f(ints(w, i.dst.reg), at(w, i.src[0].reg))
		}, args...)
	}
	f := compare[T](op)
	return g.emit(classInt, true, 0, func(w *worker, i *instr) {
		f(ints(w, i.dst.reg), at(w, i.src[0].reg), at(w, i.src[1].reg))
	}, g.splat(args[0]), g.splat(args[1]))
}

func (g *gen) applyInt(e *ir.Expr, args []operand) operand {
	f, second := intOp(e.Op), 0
	if g.saturates(e) {
		f = saturatingOp(e.Op)
	}
	for i := range args {
		args[i] = g.splat(args[i])
		second = i
	}
	return g.emit(classInt, true, 0, func(w *worker, i *instr) {
		f(ints(w, i.dst.reg), ints(w, i.src[0].reg), ints(w, i.src[second].reg))
	}, args...)
}

// round brings a computed value to its type: integers wrap, and floats narrower than f32 are rounded. Kernels have such
// types only where the plan says that a value is rounded.
func (g *gen) round(t ir.DType, o operand) operand {
	switch {
	case t.IsFloat() && t.Size() < 4:
		return g.roundFloat(t, o)
	case !t.IsInt() || t.Size() == 8:
		return o
	case o.vec:
		return g.emit(classInt, true, 0, func(w *worker, i *instr) {
			wrap(ints(w, i.dst.reg), ints(w, i.src[0].reg), t)
		}, o)
	}
	return g.emit(classInt, false, 0, func(w *worker, i *instr) {
		w.si[i.dst.reg] = num.RoundInt(t, w.si[i.src[0].reg])
	}, o)
}

func roundFloat(t ir.DType, v float64) float64 { return num.Round(t, v) }

func (g *gen) roundFloat(t ir.DType, o operand) operand {
	if o.vec {
		return g.emit(classF32, true, 0, func(w *worker, i *instr) {
			roundF32(f32s(w, i.dst.reg), f32s(w, i.src[0].reg), t)
		}, o)
	}
	return g.emit(classF32, false, 0, func(w *worker, i *instr) {
		w.sf[i.dst.reg] = num.Round(t, w.sf[i.src[0].reg])
	}, o)
}

// roundF32 rounds floats to what t stores: where the processor has an instruction for it, by way of the stored form.
func roundF32(dst, a []float32, t ir.DType) {
	const chunk = 64
	a = a[:len(dst)]
	narrow, widen, whole := opsF32.narrow[t], opsF32.widen[t], 0
	if narrow != nil && widen != nil {
		whole = len(dst) &^ 7
	}
	var stored [2 * chunk]byte
	for from := 0; from < whole; from += chunk {
		to := min(from+chunk, whole)
		narrow(stored[:2*(to-from)], a[from:to])
		widen(dst[from:to], stored[:2*(to-from)])
	}
	roundTo(dst[whole:], a[whole:], t)
}

// cast converts o between types. Among the floats of one class it only rounds.
func (g *gen) cast(from, to ir.DType, o operand) operand {
	a, b := classOf(from), classOf(to)
	switch {
	case b == classInt && a == classInt:
		return g.castInt(from, to, o)
	case b == classInt:
		return g.floatToInt(to, o)
	case a == classInt:
		return g.intToFloat(to, o)
	case a == b:
		if to.Size() >= from.Size() && to != ir.F8E4M3 && to != ir.F8E5M2 && to != ir.F16 && to != ir.BF16 {
			return o
		}
		return g.round(to, o)
	}
	return g.round(to, g.convertFloat(b, o))
}

func (g *gen) castInt(from, to ir.DType, o operand) operand {
	switch {
	case to == ir.Bool && from != ir.Bool:
		zero := g.intConst(0)
		if o.vec {
			return g.emit(classInt, true, 0, func(w *worker, i *instr) {
				neVV(ints(w, i.dst.reg), ints(w, i.src[0].reg), ints(w, i.src[1].reg))
			}, o, g.splat(zero))
		}
		return g.emit(classInt, false, 0, func(w *worker, i *instr) {
			w.si[i.dst.reg] = truth(w.si[i.src[0].reg] != 0)
		}, o)
	case to.Size() >= from.Size() && from.Info().Signed == to.Info().Signed, from == ir.Bool, to.Size() == 8:
		return o
	}
	return g.round(to, o)
}

func (g *gen) floatToInt(to ir.DType, o operand) operand {
	switch {
	case !o.vec:
		return g.emit(classInt, false, 0, func(w *worker, i *instr) {
			w.si[i.dst.reg] = num.FloatToInt(to, w.sf[i.src[0].reg])
		}, o)
	case o.class == classF32:
		return g.emit(classInt, true, 0, func(w *worker, i *instr) {
			truncate(ints(w, i.dst.reg), f32s(w, i.src[0].reg), to)
		}, o)
	}
	return g.emit(classInt, true, 0, func(w *worker, i *instr) {
		truncate(ints(w, i.dst.reg), f64s(w, i.src[0].reg), to)
	}, o)
}

// intToFloat rounds once, straight from the integer.
func (g *gen) intToFloat(t ir.DType, o operand) operand {
	to := classOf(t)
	switch {
	case !o.vec:
		return g.emit(to, false, 0, func(w *worker, i *instr) { w.sf[i.dst.reg] = num.FromInt(t, w.si[i.src[0].reg]) }, o)
	case t.Size() < 4:
		return g.emit(to, true, 0, func(w *worker, i *instr) {
			for lane, v := range ints(w, i.src[0].reg) {
				w.f32[i.dst.reg][lane] = float32(num.FromInt(t, v))
			}
		}, o)
	case to == classF32:
		return g.emit(to, true, 0, func(w *worker, i *instr) {
			convert(f32s(w, i.dst.reg), ints(w, i.src[0].reg))
		}, o)
	}
	return g.emit(to, true, 0, func(w *worker, i *instr) {
		convert(f64s(w, i.dst.reg), ints(w, i.src[0].reg))
	}, o)
}

func (g *gen) convertFloat(to class, o operand) operand {
	switch {
	case !o.vec && to == classF32:
		return g.emit(to, false, 0, func(w *worker, i *instr) {
			w.sf[i.dst.reg] = float64(float32(w.sf[i.src[0].reg]))
		}, o)
	case !o.vec:
		return g.emit(to, false, 0, func(w *worker, i *instr) { w.sf[i.dst.reg] = w.sf[i.src[0].reg] }, o)
	case to == classF32:
		return g.emit(to, true, 0, func(w *worker, i *instr) {
			convert(f32s(w, i.dst.reg), f64s(w, i.src[0].reg))
		}, o)
	}
	return g.emit(to, true, 0, func(w *worker, i *instr) {
		convert(f64s(w, i.dst.reg), f32s(w, i.src[0].reg))
	}, o)
}
