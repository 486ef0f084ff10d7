package parser

import (
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/diag"
)

func rank(b *builder, args []val, span diag.Span) val {
	switch {
	case !args[0].ok():
		return val{}
	case args[0].kind == listVal:
		return intv(int64(len(args[0].list)))
	case args[0].isNumber():
		return intv(0)
	case args[0].kind != arrayVal:
		return b.fail(span, "rank takes a tensor, not %s", args[0].describe())
	}
	return intv(int64(len(args[0].arr.shape)))
}

func dimOf(b *builder, args []val, span diag.Span) val {
	a := b.tensor(args[0], "dim")
	if a == nil {
		return val{}
	}
	d, ok := b.axis(args[1], len(a.shape), "dim")
	if !ok {
		return val{}
	}
	return sizeVal(a.shape[d])
}

func count(b *builder, args []val, span diag.Span) val {
	a := b.tensor(args[0], "count")
	if a == nil {
		return val{}
	}
	axes, ok := b.axes(args[1], len(a.shape), "count")
	if !ok {
		return val{}
	}
	var sizes []*ir.Expr
	for _, d := range axes {
		sizes = append(sizes, a.shape[d])
	}
	n, _ := product(sizes)
	return sizeVal(normal(n))
}

func counting(b *builder, args []val, span diag.Span) val {
	n := b.sizeOf(args[0], args[0].span)
	if n == nil {
		return val{}
	}
	return arrv(&array{dtype: ir.I64, shape: []*ir.Expr{n}, size: 1, cheap: true,
		elem: func(at []*ir.Expr) *ir.Expr { return ir.Cast(at[0], ir.I64) }})
}

func full(b *builder, args []val, span diag.Span) val {
	shape, ok := b.shapeArgs(args[1].list, "full", span)
	if !ok || !args[0].ok() || !args[2].ok() {
		return val{}
	}
	v := args[0]
	a := b.element(v)
	if args[2].kind == dtypeVal {
		a = b.convert(v, args[2].dtype)
	} else if args[2].kind != noneVal {
		return b.fail(args[2].span, "dtype of full must be a dtype, not %s", args[2].describe())
	}
	if a == nil {
		return val{}
	}
	if len(a.shape) > 0 {
		return b.fail(v.span, "value of full must be a scalar, not %s", a.describe())
	}
	return arrv(b.spread(a, shape, span))
}

// spread gives a scalar a shape.
func (b *builder) spread(a *array, shape []*ir.Expr, span diag.Span) *array {
	a = b.settle("full", a, span)
	return moved(a, shape, func([]*ir.Expr) []*ir.Expr { return nil })
}

func likeRow(value int64) func(b *builder, args []val, span diag.Span) val {
	return func(b *builder, args []val, span diag.Span) val {
		a := b.tensor(args[0], "a ..._like function")
		if a == nil {
			return val{}
		}
		return arrv(b.spread(constant(ir.IntNum(a.dtype, value)), a.shape, span))
	}
}

func wide(b *builder, args []val, span diag.Span) val {
	v := args[0]
	if v.isNumber() {
		return floatv(v.toFloat())
	}
	a := b.tensor(v, "wide")
	if a == nil {
		return val{}
	}
	if a.dtype.IsFloat() {
		a = castArray(a, a.dtype.Info().Compute)
	}
	return arrv(a)
}

// random makes the expression of one draw.
type random func(seed, index *ir.Expr) *ir.Expr

func randomBits(b *builder, args []val, span diag.Span) val {
	return b.randomLike(ir.Random, "random_bits", args, span)
}

func randomBits16(b *builder, args []val, span diag.Span) val {
	return b.randomLike(ir.Random16, "random_bits16", args, span)
}

// randomLike numbers the elements of like in row-major order, the ranges of
// surrounding index notation outermost.
func (b *builder) randomLike(draw random, name string, args []val, span diag.Span) val {
	like := b.tensor(args[1], name)
	seed := args[0]
	s := b.integerScalar(seed, ir.I64, "seed")
	if like == nil || s == nil {
		return val{}
	}
	at := b.shown(span)
	probe := b.g.NewAxes(like.shape)
	around := freeRanges(like.elem(ir.Indices(probe)), probe)
	outer, extents := make([]*ir.Expr, len(around)), make([]*ir.Expr, len(around))
	for i, r := range around {
		outer[i], extents[i] = r.At(), r.Extent
	}
	shape := concat(extents, like.shape)
	return arrv(&array{dtype: ir.U32, shape: like.shape, size: 3 + len(shape) + s.size,
		elem: func(index []*ir.Expr) *ir.Expr {
			return draw(s.elem(nil), flatten(concat(outer, index), shape)).At(at)
		}})
}

// integerScalar converts v, an integer without axes, to t.
func (b *builder) integerScalar(v val, t ir.DType, what string) *array {
	if !v.ok() {
		return nil
	}
	if v.kind != intVal && (v.kind != arrayVal || !v.arr.dtype.IsInt() || len(v.arr.shape) > 0) {
		b.errorf(v.span, "%s must be an integer scalar, not %s", what, v.describe())
		return nil
	}
	return b.convert(v, t)
}

func randomAt(b *builder, args []val, span diag.Span) val {
	return b.randomAt(ir.Random, args, span)
}

func randomAt16(b *builder, args []val, span diag.Span) val {
	return b.randomAt(ir.Random16, args, span)
}

func (b *builder) randomAt(draw random, args []val, span diag.Span) val {
	seed := b.integerScalar(args[0], ir.I64, "seed")
	position := b.integerScalar(args[1], ir.Index, "position")
	if seed == nil || position == nil {
		return val{}
	}
	e := draw(seed.elem(nil), position.elem(nil)).At(b.shown(span))
	return arrv(scalar(e, seed.size+position.size+1))
}
