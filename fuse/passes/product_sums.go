package passes

import (
	"math"
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// Figures of products with few tiles whose sums are cut into partial ones.
const (
	productTile  = 128 // rows of a tile, either way
	productTiles = 16  // most tiles: the clusters that share the sum of a tile would have more blocks than multiprocessors are;
	joinedTiles  = 1   // where all that is summed is one range in memory, so that clusters share it evenly
	productParts = 8   // least parts: clusters cut a sum into as many
	productPart  = 512 // least points of a part
)

// splitProductSums makes sums of products over several ranges, with few tiles, sums of partial results along one of these
// ranges. The gradient of weights is such a sum: over all places of all images, or all tokens of all texts. Each part is then a
// product of a batch, whose tiles fill the device. It decides for the program's default sizes.
func splitProductSums(g *ir.Graph) {
	if !mayAddKernels(g) {
		return
	}
	sizes := algebra.DefaultSizes(g)
	insertBefore(g, func(v *ir.Value) []*ir.Value {
		part := partOfProduct(g, v, sizes)
		if part == nil {
			return nil
		}
		reduce := *v.Reduce
		reduce.Ranges = append([]*ir.Range{part}, slices.DeleteFunc(slices.Clone(reduce.Ranges), func(r *ir.Range) bool { return r == part })...)
		v.Reduce = &reduce
		return splitReduction(g, v, chunksOf(v, 1))
	})
}

// partOfProduct is the range along which a product's sum is cut: the first that is long enough, of which both operands have
// other elements at each point; nil where none is, or the product has tiles enough.
func partOfProduct(g *ir.Graph, v *ir.Value, sizes map[string]int64) *ir.Range {
	factors := loadsMultiplied(v)
	if factors == nil || v.Reduce.Where != nil || v.Reduce.Rank != nil || len(v.Reduce.Ranges) < 2 || windowedProduct(v) != nil {
		return nil
	}
	a, b := factors[0], factors[1]
	if a.Type != b.Type || !form.IsHalf(a.Type) && (a.Type != ir.F32 || !g.TF32) {
		return nil
	}
	rows, columns, both := productAxes(v, form.AxesIn(v, a), form.AxesIn(v, b))
	tiles := algebra.PointsAt(both, sizes) * math.Ceil(algebra.PointsAt(rows, sizes)/productTile) * math.Ceil(algebra.PointsAt(columns, sizes)/productTile)
	most := float64(productTiles)
	if sumsOneRange(v, a) && sumsOneRange(v, b) {
		if inSlices(v, a, b, sizes) {
			return nil
		}
		most = joinedTiles
	}
	if len(rows) == 0 || len(columns) == 0 || tiles > most {
		return nil
	}
	points := algebra.PointsAt(v.Reduce.Ranges, sizes)
	for _, r := range v.Reduce.Ranges {
		parts := algebra.Estimate(r.Extent, sizes)
		if ir.DependsOn(a, r) && ir.DependsOn(b, r) && parts >= productParts && points/parts >= productPart {
			return r
		}
	}
	return nil
}

// sumsOneRange reports whether a load reads all that its sum goes over side by side: its indices are the ranges of the sum,
// whole, in their order.
func sumsOneRange(v *ir.Value, load *ir.Expr) bool {
	first := slices.IndexFunc(load.Args, func(at *ir.Expr) bool { return at.Op == ir.OpRange && at.Range == v.Reduce.Ranges[0] })
	if first < 0 || first+len(v.Reduce.Ranges) > len(load.Args) {
		return false
	}
	for i, r := range v.Reduce.Ranges {
		at := load.Args[first+i]
		if at.Op != ir.OpRange || at.Range != r || !ir.SameSize(r.Extent, load.From.Axes[first+i].Extent) {
			return false
		}
	}
	return true
}
