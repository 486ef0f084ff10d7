package passes

import (
	"cmp"
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/forecast"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// separateOperands makes values of the operands of products that would be computed in place. Tensor cores
// then read them from memory, which is many times faster than computing them again for every tile. An
// operand that depends on a reduction stays in place: it may be part of a stream with that reduction.
func separateOperands(g *ir.Graph) {
	if !mayAddKernels(g) {
		return
	}
	c := &converting{g: g, sizes: algebra.DefaultSizes(g), streams: productsOfStreams(g)}
	insertBefore(g, c.separate)
}

// convertedProduct is a product worth operands of 16 bits that are made of bytes or f32: with fewer rows of the other side,
// tiles convert them as fast as memory takes them back.
var convertedProduct = largeProduct{rows: 256, depth: 64, work: 1 << 28}

// converting is a graph whose products get operands of 16 bits.
type converting struct {
	g       *ir.Graph
	sizes   map[string]int64
	streams map[*ir.Value]bool // products of streams, which take all their operands in one type
}

// productsOfStreams are the products of streams and of chains.
func productsOfStreams(g *ir.Graph) map[*ir.Value]bool {
	out := form.InStreams(g)
	if g.Numerics != ir.Strict {
		for _, s := range form.NewRecogniser(g).Streams() {
			out[s.Out], out[s.Score.From] = true, true
		}
	}
	return out
}

// worth reports whether a product of two sides is worth operands made of bytes or f32, and when it is; nil for always.
func (c *converting) worth(v *ir.Value, a, b *ir.Expr) (when *ir.Expr, ok bool) {
	if c.streams[v] || c.g.Numerics != ir.Fast || !sameHalves(a, b) || form.ReadsThroughWindow(v) || !convertedProduct.holds(v, a, b, c.sizes) {
		return nil, false
	}
	return convertedProduct.at(v, a, b), true
}

// separate moves the computed sides of a product to new values, and returns these.
func (c *converting) separate(v *ir.Value) (made []*ir.Value) {
	if v.Reduce == nil || v.Reduce.Op != ir.Sum {
		return nil
	}
	g := c.g
	a, b := form.SidesOf(v)
	if a == nil || b == nil {
		return nil
	}
	converted := false
	if !form.IsTileProduct(v) {
		when, worth := c.worth(v, a, b)
		if converted = worth; !worth {
			return nil
		}
		if when != nil {
			g.For = ir.Join(ir.OpOr, g.For, when)
		}
	}
	body := v.Body
	for _, side := range []**ir.Expr{&a, &b} {
		if computedOperand(v, *side, converted) && !unpackedForFew(v, *side, c.sizes) {
			lay := operandValue
			if converted {
				lay = operandInOrder
			}
			value, load := lay(g, v, form.WithoutWidening(*side))
			*side, made = ir.Cast(load, (*side).Type).At((*side).Span), append(made, value)
		}
	}
	if len(made) > 0 {
		v.Body = ir.Apply(ir.OpMul, a, b).At(body.Span)
	}
	return made
}

// operandValue makes a value of one side of a product, over the ranges that the side depends on, those of
// the sum last, and returns it with the load that replaces the side.
func operandValue(g *ir.Graph, v *ir.Value, inner *ir.Expr) (value *ir.Value, load *ir.Expr) {
	return operandOver(g, v, inner, rangesIn(v, inner))
}

// operandInOrder does the same with the ranges in the order of memory of the largest tensor that the side reads: the value is then
// stored as that tensor is read.
func operandInOrder(g *ir.Graph, v *ir.Value, inner *ir.Expr) (value *ir.Value, load *ir.Expr) {
	ranges, sizes := rangesIn(v, inner), algebra.DefaultSizes(g)
	if loads := ir.Loads(inner); len(loads) > 0 {
		largest := slices.MaxFunc(loads, func(a, b *ir.Expr) int {
			return cmp.Compare(algebra.PointsAt(algebra.RangesOf(ir.FreeRanges(a)), sizes), algebra.PointsAt(algebra.RangesOf(ir.FreeRanges(b)), sizes))
		})
		place := func(r *ir.Range) int {
			return slices.IndexFunc(largest.Args, func(at *ir.Expr) bool { return ir.DependsOn(at, r) })
		}
		slices.SortStableFunc(ranges, func(a, b *ir.Range) int { return cmp.Compare(place(a), place(b)) })
	}
	return operandOver(g, v, inner, ranges)
}

// rangesIn are the axes of a product and the ranges of its sum, in this order, that an expression depends on.
func rangesIn(v *ir.Value, inner *ir.Expr) (ranges []*ir.Range) {
	free := ir.FreeRanges(inner)
	for _, r := range algebra.AllRanges(v) {
		if free[r] {
			ranges = append(ranges, r)
		}
	}
	return ranges
}

func operandOver(g *ir.Graph, v *ir.Value, inner *ir.Expr, ranges []*ir.Range) (value *ir.Value, load *ir.Expr) {
	shape, rename := []*ir.Expr(nil), map[*ir.Range]*ir.Expr{}
	for _, r := range ranges {
		shape = append(shape, r.Extent)
	}
	axes := g.NewAxes(shape)
	for d, r := range ranges {
		rename[r] = axes[d].At()
	}
	value = g.Adopt(&ir.Value{Name: v.Name + "_operand", Type: inner.Type, Axes: axes, Body: ir.Substitute(inner, rename), Origin: v.Origin})
	return value, ir.Load(value, ir.Indices(ranges), nil).At(inner.Span)
}

// sameHalves reports whether both sides of a product have values of one 16-bit type, not converted from one 8-bit type that tensor
// cores multiply as it is.
func sameHalves(a, b *ir.Expr) bool {
	t := form.WithoutWidening(a).Type
	if !form.IsHalf(t) || form.WithoutWidening(b).Type != t {
		return false
	}
	x, y := byteValue(a).Type, byteValue(b).Type
	return x != y || !form.ByteTile(x) || !x.IsFloat()
}

// computedOperand reports whether a factor of a product is computed from tensors, with converted only converted perhaps, and has
// a 16-bit value, and the other side has enough rows for tiles.
func computedOperand(v *ir.Value, factor *ir.Expr, converted bool) bool {
	factor = form.WithoutWidening(factor)
	if factor.Op == ir.OpLoad || !form.IsHalf(factor.Type) || !converted && (form.PlainLoad(factor) || !form.Halves(factor)) {
		return false
	}
	for _, l := range ir.Loads(factor) {
		if l.From.Reduce != nil {
			return false
		}
	}
	return repeatsInTiles(v, factor)
}

// repeatsInTiles reports whether a factor of a product depends on rows and on what is summed, and the other side has
// enough rows for tiles: each tile needs the factor again.
func repeatsInTiles(v *ir.Value, factor *ir.Expr) bool {
	free := ir.FreeRanges(factor)
	own, other := false, int64(1)
	for _, r := range v.Axes {
		switch {
		case free[r]:
			own = true
		case r.Extent.Op == ir.OpConst:
			other *= r.Extent.Int
		default:
			other = forecast.ContractLeast
		}
	}
	return own && other >= forecast.ContractLeast && algebra.DependsOnAny(factor, algebra.RangeSet(v.Reduce.Ranges))
}

// unpackedForFew reports whether a factor of a product takes more bytes than what it is computed from, as
// an unpacked weight does, and all rows of the other side fit one tile. Computing the factor in place
// then reads fewer bytes and repeats nothing.
func unpackedForFew(v *ir.Value, factor *ir.Expr, sizes map[string]int64) bool {
	factor = form.WithoutWidening(factor)
	free := ir.FreeRanges(factor)
	var own, others []*ir.Range
	for _, r := range algebra.AllRanges(v) {
		if free[r] {
			own = append(own, r)
		} else {
			others = append(others, r)
		}
	}
	read := 0.0
	for _, l := range ir.Loads(factor) {
		read += algebra.BytesAt(l.From, sizes)
	}
	return read < algebra.PointsAt(own, sizes)*float64(factor.Type.Size()) && algebra.PointsAt(others, sizes) <= tilePoints
}
