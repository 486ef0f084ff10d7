package passes

import (
	"math"
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// Tensor cores multiply small whole numbers exactly: bf16 holds those up to 256, and f32 their sums up to 2^24. The zeros and ones of
// masks are such numbers. A product of two masks, which counts what they have in common, is one of bf16 then, and not of f32.
const (
	wholeInHalf = 1 << 8  // most magnitude of the whole numbers that bf16 holds, all of them
	wholeInSum  = 1 << 24 // the same for f32
)

// wholeProduct is a product worth operands of 16 bits: writing and reading one takes as long as some 64 multiply-adds.
var wholeProduct = largeProduct{rows: 128, depth: 64, work: 1 << 28}

// narrowWholeNumbers gives products of f32 whose operands are computed from small whole numbers operands of bf16, where no sum is
// rounded either way. If sizes are symbols, the default sizes decide; the graph then records for which sizes it was rewritten.
func narrowWholeNumbers(g *ir.Graph) {
	if !mayAddKernels(g) || g.TF32 {
		return
	}
	sizes, known := algebra.DefaultSizes(g), wholeNumbers{}
	insertBefore(g, func(v *ir.Value) []*ir.Value {
		if v.Reduce == nil || v.Reduce.Op != ir.Sum || v.Reduce.Where != nil || v.Body.Type != ir.F32 || form.ReadsThroughWindow(v) {
			return nil
		}
		a, b := form.SidesOf(v)
		if a == nil || b == nil || !wholeProduct.holds(v, a, b, sizes) || !known.sumsAreExact(v, a, b) {
			return nil
		}
		made, factors := make([]*ir.Value, 2), make([]*ir.Expr, 2)
		for i, side := range []*ir.Expr{a, b} {
			value, load := operandInOrder(g, v, ir.Cast(side, ir.BF16).At(side.Span))
			made[i], factors[i] = value, ir.Cast(load, ir.F32).At(side.Span)
		}
		if when := wholeProduct.at(v, a, b); when != nil {
			g.For = ir.Join(ir.OpOr, g.For, when)
		}
		v.Body = ir.Apply(ir.OpMul, factors[0], factors[1]).At(v.Body.Span)
		return made
	})
}

// interval is the least and the greatest that an expression of whole numbers may be.
type interval struct{ least, most float64 }

// anything is the interval of all other expressions.
var anything = interval{math.Inf(-1), math.Inf(1)}

func (i interval) magnitude() float64 { return max(-i.least, i.most) }

func (i interval) with(o interval) interval {
	return interval{min(i.least, o.least), max(i.most, o.most)}
}

func (i interval) minus(o interval) interval { return interval{i.least - o.most, i.most - o.least} }

func (i interval) times(o interval) interval {
	ends := []float64{i.least * o.least, i.least * o.most, i.most * o.least, i.most * o.most}
	return interval{slices.Min(ends), slices.Max(ends)}
}

// wholeNumbers are the intervals of expressions that were looked at.
type wholeNumbers map[*ir.Expr]interval

// sumsAreExact reports whether both sides of a product are whole numbers that bf16 holds, and f32 holds their sum. Numbers of
// magnitude 1 are added up by threads as they are by tensor cores: no sum grows beyond what f32 counts to.
func (w wholeNumbers) sumsAreExact(v *ir.Value, a, b *ir.Expr) bool {
	reduced := algebra.RangeSet(v.Reduce.Ranges)
	mostA, mostB := w.of(a).magnitude(), w.of(b).magnitude()
	if max(mostA, mostB) > wholeInHalf || !algebra.DependsOnAny(a, reduced) || !algebra.DependsOnAny(b, reduced) {
		return false
	}
	terms := algebra.Product(v.Reduce.Ranges)
	return mostA*mostB <= 1 || terms.Op == ir.OpConst && mostA*mostB*float64(terms.Int) <= wholeInSum
}

// of is the interval of an expression.
func (w wholeNumbers) of(e *ir.Expr) interval {
	known, seen := w[e]
	if !seen {
		if known = w.computed(e); !(known.magnitude() <= wholeInSum) { // or NaN, where there are infinities
			known = anything
		}
		w[e] = known
	}
	return known
}

// computed is the same, of an expression that is not known yet.
func (w wholeNumbers) computed(e *ir.Expr) interval {
	switch e.Type {
	case ir.Bool:
		return interval{0, 1}
	case ir.I8:
		return interval{-1 << 7, 1<<7 - 1}
	case ir.U8:
		return interval{0, 1<<8 - 1}
	case ir.I32, ir.I64, ir.F32, ir.F64: // these hold all whole numbers that are looked at
	default:
		return anything
	}
	arg := func(i int) interval { return w.of(e.Args[i]) }
	switch e.Op {
	case ir.OpConst:
		return constantInterval(e)
	case ir.OpLoad:
		return w.loaded(e)
	case ir.OpCast:
		return arg(0)
	case ir.OpNeg:
		return interval{}.minus(arg(0))
	case ir.OpAbs:
		return interval{0, arg(0).magnitude()}
	case ir.OpMin, ir.OpMax:
		return arg(0).with(arg(1))
	case ir.OpSelect:
		return arg(1).with(arg(2))
	case ir.OpAdd:
		return arg(0).minus(interval{}.minus(arg(1)))
	case ir.OpSub:
		return arg(0).minus(arg(1))
	case ir.OpMul:
		return arg(0).times(arg(1))
	}
	return anything
}

// constantInterval is the interval of a constant, where that is a whole number.
func constantInterval(e *ir.Expr) interval {
	x := e.Val
	if !e.Type.IsFloat() {
		x = float64(e.Int)
	}
	if x != math.Trunc(x) {
		return anything
	}
	return interval{x, x}
}

// loaded is the interval of the elements of a tensor, and of what is read outside of it, which is 0 where nothing else is said.
func (w wholeNumbers) loaded(load *ir.Expr) interval {
	v, outside := load.From, interval{}
	if v.IsInput() || v.Reduce != nil {
		return anything
	}
	if load.Fill != nil {
		outside = w.of(load.Fill)
	}
	return w.of(v.Body).with(outside)
}
