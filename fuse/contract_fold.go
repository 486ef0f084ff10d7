package fuse

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/forecast"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// foldKernel makes the variants of a product with a reduction epilogue.
type foldKernel struct{ warpgroupKernel }

// foldVariants makes the variants of a product with a reduction epilogue.
func (lo foldKernel) foldVariants() []*ir.Variant {
	c := lo.foldedSides()
	out := lo.foldWarpgroups(*c)
	for _, wide := range []bool{true, false} {
		v, any := lo.foldTiles(*c, wide)
		if wide && !any {
			continue
		}
		out = append(out, v)
		if v.When == nil {
			break // this variant takes all sizes
		}
	}
	return out
}

// foldedSides splits the product into its sides. N is the columns, and the rows that only the side with
// the columns depends on. M is the rows that only the other side depends on.
func (lo foldKernel) foldedSides() *ir.Contract {
	var a, b []*ir.Expr
	for _, f := range form.FactorsOf(lo.score.Def.Args[0]) {
		if algebra.DependsOnAny(f, lo.r.cols) {
			b = append(b, lo.unguarded(f))
		} else {
			a = append(a, f)
		}
	}
	c := &ir.Contract{A: ir.Operand{Value: form.ProductOf(a)}, B: []ir.Operand{{Value: form.ProductOf(b)}}, Type: lo.tileType(lo.score.Def.Args[0]),
		Depth: lo.r.folded.depth, Product: lo.score, Width: lo.r.folded.extent}
	left, right := ir.FreeRanges(c.A.Value), ir.FreeRanges(c.B[0].Value)
	for _, r := range lo.k.Rows {
		switch {
		case left[r] && right[r]:
			c.Batch = append(c.Batch, r)
		case left[r]:
			c.M = append(c.M, r)
		default:
			c.N = append(c.N, r)
		}
	}
	c.N = append(c.N, lo.k.Cols...)
	return c
}

// unguarded drops from reads the condition that the column exists: tiles leave out columns that do not.
func (lo foldKernel) unguarded(e *ir.Expr) *ir.Expr {
	t := lo.r.folded
	if t.index == nil {
		return e
	}
	return ir.Rewrite(e, func(e *ir.Expr) *ir.Expr {
		if e.Op != ir.OpRead || e.Guard == nil || e.Guard.Op != ir.OpLt ||
			!ir.SameIndex(e.Guard.Args[0], t.index, lo.positive()) || !ir.SameSize(e.Guard.Args[1], t.extent) {
			return e
		}
		return ir.Read(e.Arg, e.Args[0], nil, nil).At(e.Span)
	})
}

// foldBody lowers the folds and stores over locals, one of which is the product.
func (lo foldKernel) foldBody(c *ir.Contract, s ir.Schedule) *ir.Variant {
	b := newBody(lo.kernel)
	v := &ir.Variant{Sections: b.sections(lo.passes(false)), Contract: c, Schedule: s, Keep: []*ir.Local{lo.score}}
	v.Locals = b.locals
	return v
}

// foldWarpgroups makes the variants through the tensor copy engine; none where it cannot copy the
// operands.
func (lo foldKernel) foldWarpgroups(c ir.Contract) []*ir.Variant {
	needs := algebra.NewNeeds(lo.positive(), true)
	if !lo.device.Warpgroups() || !lo.viewable(&c, needs) {
		return nil
	}
	tiles := slices.DeleteFunc(tilesFor(&c, false), func(t warpgroupTile) bool { return t.n%form.FoldTile != 0 })
	var out []*ir.Variant
	for i, tile := range tiles {
		own := c
		own.B = slices.Clone(c.B)
		v := lo.foldBody(&own, lo.warpgroupSchedule(tile, c.Type, 1))
		lo.warpgroupViews(v, &own, tile)
		lo.require(v, needs)
		v.When = algebra.And(lo.worthTiles(&c, forecast.ContractLeast), algebra.And(lo.cheapest(&c, tiles[i:]), v.When))
		if ir.Decide(algebra.OrTrue(v.When), ir.Facts{}) != ir.False {
			out = append(out, v)
		}
	}
	return out
}

// foldTiles makes a variant through mma.sync. any says whether an operand is copied in vectors, unchanged.
func (lo foldKernel) foldTiles(c ir.Contract, wide bool) (v *ir.Variant, any bool) {
	needs := algebra.NewNeeds(lo.positive(), wide)
	c.B = slices.Clone(c.B)
	lo.operand(&c.A, c.M, c.Type, needs)
	lo.operand(&c.B[0], c.N, c.Type, needs)
	v = lo.foldBody(&c, ir.Schedule{Mapping: ir.ContractMapping, Threads: contractThreads, Vector: operandVector,
		TileM: contractTile, TileN: form.FoldTile, TileK: contractDepth, Stages: contractStages, MinBlocks: 1})
	lo.require(v, needs)
	return v, c.A.Wide || c.B[0].Wide
}
