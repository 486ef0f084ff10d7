package passes

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// Figures of products of f32 by multiply-adds whose operands are computed on the way to their tiles. A thread then needs registers for
// what it computes beside the sums of its part of a tile (208 in place of 130), so that two blocks fit a multiprocessor in place of
// three, and it waits for what it reads, where plain elements are copied behind its back. A number that is written once and read again
// costs as much as that does for some 384 partners; where computing it takes more than an addition, for fewer.
const (
	computedPartners = 384
	computedSlots    = 24 // work of an operand that costs as much again
)

// computedProduct is a product of f32 worth computing operands ahead of it, with at least a tile of rows on each side: it takes as
// long as many launches.
var computedProduct = largeProduct{rows: productTile, work: 1 << 29}

// computeOperands gives operands of large products of f32 that are computed values of their own. Products that read the same
// operand afterwards read that value too. If sizes are symbols, the default sizes decide; the graph then records for which sizes it
// was rewritten.
func computeOperands(g *ir.Graph) {
	if !mayAddKernels(g) || g.TF32 {
		return
	}
	c := &operandComputer{g: g, sizes: algebra.DefaultSizes(g)}
	insertBefore(g, c.separate)
}

type operandComputer struct {
	g       *ir.Graph
	sizes   map[string]int64
	streams map[*ir.Value]bool // found when they are first asked for
	made    []*ir.Value
}

// separate moves the computed sides of a product to new values, and returns these.
func (c *operandComputer) separate(v *ir.Value) (made []*ir.Value) {
	if !form.Crosses(v) || v.Body.Type != ir.F32 || form.ReadsThroughWindow(v) {
		return nil
	}
	a, b := form.SidesOf(v)
	if a == nil || b == nil || !allF32(a) || !allF32(b) || form.PlainLoad(a) && form.PlainLoad(b) || c.inStream(v) {
		return nil
	}
	sides, separated := [2]*ir.Expr{a, b}, false
	for i, side := range sides {
		if form.PlainLoad(side) || !repeatsInTiles(v, side) {
			continue
		}
		value, load := operandInOrder(c.g, v, side)
		switch old := c.sameAs(value); {
		case old != nil:
			load = ir.Load(old, load.Args, nil).At(side.Span)
		case c.pays(v, sides[0], sides[1], side):
			made, c.made = append(made, value), append(c.made, value)
		default:
			continue
		}
		sides[i], separated = load, true
	}
	if separated {
		v.Body = ir.Apply(ir.OpMul, sides[0], sides[1]).At(v.Body.Span)
	}
	return made
}

// inStream reports whether a product belongs to attention, which keeps what it multiplies.
func (c *operandComputer) inStream(v *ir.Value) bool {
	if c.streams == nil {
		c.streams = form.InStreams(c.g)
	}
	return c.streams[v]
}

// sameAs is a value that was made before and holds the same numbers; nil where there is none.
func (c *operandComputer) sameAs(value *ir.Value) *ir.Value {
	at := slices.IndexFunc(c.made, func(old *ir.Value) bool { return form.SameDefinition(old, value) })
	if at < 0 {
		return nil
	}
	return c.made[at]
}

// pays reports whether a side of a product is computed for so many partners that it is worth a value of its own. It adds to the graph
// the sizes for which that is so.
func (c *operandComputer) pays(v *ir.Value, a, b, side *ir.Expr) bool {
	if !computedProduct.holds(v, a, b, c.sizes) {
		return false
	}
	free := ir.FreeRanges(side)
	partners := slices.DeleteFunc(slices.Clone(v.Axes), func(r *ir.Range) bool { return free[r] })
	least := int64(computedPartners * computedSlots / (computedSlots + form.WorkOf(side)))
	if algebra.PointsAt(partners, c.sizes) < float64(least) {
		return false
	}
	if when := algebra.And(computedProduct.at(v, a, b), algebra.AtLeastSize(algebra.Product(partners), least)); when != nil {
		c.g.For = ir.Join(ir.OpOr, c.g.For, when)
	}
	return true
}
