package fuse

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/ir"
)

// The results of a transposed convolution's phases lie between each other. Along the axis that is innermost in memory, at
// stride 2, a phase has every other element: a kernel that stores a phase at a time writes each sector in two halves, for
// which the L2 cache reads it from memory first. So a tile has the results of both phases, and threads store these together.

// betweenTiles is the shapes of tiles with two sums for each row and column. Their cycles are of one of the two.
var betweenTiles = []warpgroupTile{
	{m: 128, n: 128, turns: 1, cluster: 1, step: 540, around: 1500},
	{m: 64, n: 128, turns: 2, cluster: 1, step: 400, around: 1500},
}

// storeTogether takes a range from the batch, or from the rows, whose two results lie between each other along the columns, so
// that tiles have both. It swaps the sides if that is so along the rows.
func (lo warpgroupKernel) storeTogether(c *ir.Contract) {
	if c.InParts() || c.Type.Size() == 1 || len(c.B) > 1 || len(lo.stores) == 0 || !lo.hasTaps() {
		return
	}
	for _, turned := range []bool{false, true} {
		own := *c
		if turned {
			own = *swapped(c)
		}
		for _, ranges := range []*[]*ir.Range{&own.Batch, &own.M} {
			i := slices.IndexFunc(*ranges, func(r *ir.Range) bool { return lo.alternates(r, own.N) })
			if i < 0 || ranges == &own.M && len(own.M) == 1 {
				continue
			}
			r, inner := (*ranges)[i], algebra.Innermost(own.N)
			*ranges = slices.Delete(slices.Clone(*ranges), i, i+1)
			own.Between = r
			own.Lane = lo.g.NewRange(inner.Name, ir.Simplify(ir.Apply(ir.OpMul, inner.Extent, r.Extent), lo.facts))
			*c = own
			return
		}
	}
}

// alternates reports whether all that is stored has the two results of a range in turn along the innermost of some columns.
func (lo warpgroupKernel) alternates(r *ir.Range, columns []*ir.Range) bool {
	return r.Extent.IsConst(betweenSums) && lo.allStores(func(offset *ir.Expr) bool { return liesBetween(offset, []*ir.Range{r}, columns) })
}

const betweenSums = 2 // sums of a tile for each row and column, for which there are registers

// byLane is the kernel whose stores count the points of both ranges by the lane, as tiles that have both do.
func (lo warpgroupKernel) byLane(c *ir.Contract) warpgroupKernel {
	if c.Between == nil {
		return lo
	}
	n := c.Between.Extent
	at := map[*ir.Range]*ir.Expr{
		algebra.Innermost(c.N): ir.Apply(ir.OpFloorDiv, c.Lane.At(), n),
		c.Between:              ir.Apply(ir.OpMod, c.Lane.At(), n),
	}
	facts := lo.inside(ir.RowLevel)
	facts.Within = append(slices.Clone(facts.Within), c.Lane)
	counted := func(e *ir.Expr) *ir.Expr {
		if e == nil {
			return nil
		}
		return ir.Simplify(ir.Substitute(e, at), facts)
	}
	u := *lo.kernel
	u.stores = nil
	for _, s := range lo.stores {
		st := *s.Store
		st.Guard, st.Offset, st.Value = counted(st.Guard), counted(st.Offset), counted(st.Value)
		u.stores = append(u.stores, &storing{Store: &st, level: s.level})
	}
	return warpgroupKernel{productKernel{&u}}
}
