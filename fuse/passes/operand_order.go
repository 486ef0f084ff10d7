package passes

import (
	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/forecast"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// Figures of operands that are laid out before a product in tf32. That costs a read and a write of each
// element, and gains the difference between wgmma and mma.sync. It pays if the other operand has some
// hundred rows or more. Products of few tiles use split-K instead.
const (
	orderedRows  = 512 // least rows of the other operand
	orderedTiles = 100 // least tiles of 128 x 128
	orderedSide  = 128
)

// orderOperands makes values of the operands of products in tf32 or of 8 bits that are computed, or that
// are not contiguous along the sum. wgmma takes operands of these types only if they are contiguous
// along the sum. The pass decides for the program's default sizes.
func orderOperands(g *ir.Graph) {
	if !mayAddKernels(g) {
		return
	}
	sizes := algebra.DefaultSizes(g)
	insertBefore(g, func(v *ir.Value) []*ir.Value {
		t := orderedType(g, v)
		if t == ir.Invalid {
			return nil
		}
		return orderSides(g, v, t, sizes)
	})
}

// orderedType is the type of a product's operands if wgmma takes that type only contiguous along the sum:
// f32 where tf32 is allowed, or a type of 8 bits; Invalid for other types.
func orderedType(g *ir.Graph, v *ir.Value) ir.DType {
	a, b := (*ir.Expr)(nil), (*ir.Expr)(nil)
	if v.Reduce != nil && v.Reduce.Op == ir.Sum && v.Reduce.Where == nil {
		a, b = form.SidesOf(v)
	}
	if a == nil || b == nil || algebra.Subset(form.AxesIn(v, a), form.AxesIn(v, b)) || algebra.Subset(form.AxesIn(v, b), form.AxesIn(v, a)) {
		return ir.Invalid
	}
	x, y := byteValue(a).Type, byteValue(b).Type
	switch {
	case x == y && form.ByteTile(x) && (x.IsFloat() || v.Body.Type.Size() > x.Size()):
		return x
	case g.TF32 && v.Body.Type == ir.F32:
		return ir.F32
	}
	return ir.Invalid
}

// byteValue is a side without the casts that widen its 8-bit value; a side of another type is returned
// unchanged.
func byteValue(e *ir.Expr) *ir.Expr {
	for x := e; ; x = x.Args[0] {
		if form.ByteTile(x.Type) {
			return x
		}
		if x.Op != ir.OpCast {
			return e
		}
	}
}

// orderSides moves the sides that wgmma cannot take to new values, if it can take both sides afterwards,
// and returns these values.
func orderSides(g *ir.Graph, v *ir.Value, t ir.DType, sizes map[string]int64) (made []*ir.Value) {
	a, b := form.SidesOf(v)
	if a == nil || b == nil || !worthOrder(v, a, b, t, sizes) {
		return nil
	}
	sides := []**ir.Expr{&a, &b}
	var order []**ir.Expr
	for _, side := range sides {
		switch own := ofType(*side, t); {
		case alongSum(g, v, own, t):
		case orderable(v, own, t, sizes):
			order = append(order, side)
		default:
			return nil
		}
	}
	body := v.Body
	for _, side := range order {
		value, load := operandValue(g, v, ofType(*side, t))
		*side, made = ir.Cast(load, (*side).Type).At((*side).Span), append(made, value)
	}
	if len(made) > 0 {
		v.Body = ir.Apply(ir.OpMul, a, b).At(body.Span)
	}
	return made
}

// ofType is a side without the casts that widen it from a type of 8 bits.
func ofType(e *ir.Expr, t ir.DType) *ir.Expr {
	if form.ByteTile(t) {
		return byteValue(e)
	}
	return e
}

// worthOrder reports whether laying out pays: each side has enough rows to make up for the cost of the
// other, and the product has enough tiles for the warpgroup mapping.
func worthOrder(v *ir.Value, a, b *ir.Expr, t ir.DType, sizes map[string]int64) bool {
	columns := algebra.Product(v.Reduce.Ranges)
	aligned := columns.Op != ir.OpConst || columns.Int%int64(forecast.CopyAlign/t.Size()) == 0
	return aligned && orderedProduct.holds(v, a, b, sizes)
}

// orderedProduct is one worth operands that are laid out: both sides have many rows, and its tiles keep a large GPU busy.
var orderedProduct = largeProduct{rows: orderedRows, points: orderedTiles * orderedSide * orderedSide}

// productAxes divides the axes of a product into those of one side alone, of the other alone, and of both.
func productAxes(v *ir.Value, inA, inB map[*ir.Range]bool) (rows, columns, batch []*ir.Range) {
	for _, r := range v.Axes {
		switch {
		case inA[r] && inB[r]:
			batch = append(batch, r)
		case inA[r]:
			rows = append(rows, r)
		case inB[r]:
			columns = append(columns, r)
		}
	}
	return rows, columns, batch
}

// alongSum reports whether a side is an element of a tensor of type t that is contiguous along the sum.
func alongSum(g *ir.Graph, v *ir.Value, side *ir.Expr, t ir.DType) bool {
	if side.Op != ir.OpLoad || side.Type != t || side.Fill != nil {
		return false
	}
	facts := g.Facts()
	facts.Positive = true
	stride, ok := ir.Stride(ir.FlatOffset(side.From.Shape(), side.Args), algebra.Innermost(v.Reduce.Ranges), facts)
	return ok && stride.IsConst(1)
}

// orderable reports whether a side may become a value of type t: it depends on no reduction and has no
// more elements than what it is computed from.
func orderable(v *ir.Value, side *ir.Expr, t ir.DType, sizes map[string]int64) bool {
	if side.Type != t || !algebra.DependsOnAny(side, algebra.RangeSet(v.Reduce.Ranges)) {
		return false
	}
	free, elements, source := ir.FreeRanges(side), 1.0, 0.0
	for _, r := range algebra.AllRanges(v) {
		if free[r] {
			elements *= algebra.Estimate(r.Extent, sizes)
		}
	}
	for _, l := range ir.Loads(side) {
		if l.From.Reduce != nil {
			return false
		}
		source = max(source, algebra.Estimate(algebra.Product(l.From.Axes), sizes))
	}
	return elements <= source
}
