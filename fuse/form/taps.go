package form

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/ir"
)

// FewColumns is the most taps times channels of windows that threads read row by row into a single tile. All reads
// of a row are then under way at the same time.
const FewColumns = 96

// Products for which what windows cover is copied to shared memory.
const (
	HaloRows   = 2  // least rows of weights
	HaloPlanes = 64 // most channels, for tensor cores
)

// HaloColumns is the most taps times channels of windows whose planes are all in shared memory at the same time,
// beside their weights.
func HaloColumns(t ir.DType) int64 {
	if IsHalf(t) {
		return 256
	}
	return 160
}

// WindowAxes are the axes of a tensor that a load of a reduction reads at indices that depend on a result and on a term.
func WindowAxes(v *ir.Value, load *ir.Expr) (axes []int) {
	results, terms := algebra.RangeSet(v.Axes), algebra.RangeSet(v.Reduce.Ranges)
	for d, at := range load.Args {
		if algebra.DependsOnAny(at, results) && algebra.DependsOnAny(at, terms) {
			axes = append(axes, d)
		}
	}
	return axes
}

// ReadsThroughWindow reports whether a reduction reads neighbours: at an index of an axis and of a reduced range.
func ReadsThroughWindow(v *ir.Value) bool {
	return slices.ContainsFunc(ir.Loads(v.Body), func(l *ir.Expr) bool { return len(WindowAxes(v, l)) > 0 })
}

// MarginOf is an integer that is not negative where a comparison holds; nil for other conditions.
func MarginOf(c *ir.Expr) *ir.Expr {
	if c.Op != ir.OpLe && c.Op != ir.OpLt || c.Args[0].Type != ir.Index {
		return nil
	}
	m := ir.Apply(ir.OpSub, c.Args[1], c.Args[0])
	if c.Op == ir.OpLt {
		m = ir.Apply(ir.OpSub, m, ir.IntConst(1))
	}
	return m
}

// TapCounts reads a condition as numbers of taps: it holds for the first so many of each of some of the given
// ranges, where the numbers depend on none of these. It is nil for other conditions.
func TapCounts(where *ir.Expr, ranges []*ir.Range, facts ir.Facts) map[*ir.Range]*ir.Expr {
	facts.Positive = true
	counts := map[*ir.Range]*ir.Expr{}
	for _, c := range ir.Conjuncts(where) {
		margin := MarginOf(c)
		if margin == nil || ir.Has(margin, ir.OpRead) || ir.Has(margin, ir.OpLoad) || ir.Has(margin, ir.OpLocal) {
			return nil
		}
		var tap *ir.Range
		for _, r := range ranges {
			if !ir.DependsOn(margin, r) {
				continue
			}
			if tap != nil {
				return nil
			}
			tap = r
		}
		if tap == nil {
			return nil
		}
		step, ok := ir.Stride(margin, tap, facts)
		if !ok || step.Op != ir.OpConst || step.Int >= 0 {
			return nil
		}
		rest := ir.Substitute(margin, map[*ir.Range]*ir.Expr{tap: ir.IntConst(0)})
		count := ir.Apply(ir.OpAdd, ir.Apply(ir.OpFloorDiv, rest, ir.IntConst(-step.Int)), ir.IntConst(1))
		if other := counts[tap]; other != nil {
			count = ir.Apply(ir.OpMin, count, other)
		}
		count = ir.Apply(ir.OpMax, ir.Apply(ir.OpMin, count, tap.Extent), ir.IntConst(0)) // the condition may allow more than there are
		if counts[tap] = ir.Simplify(count, facts); algebra.DependsOnAny(counts[tap], algebra.RangeSet(ranges)) {
			return nil
		}
	}
	return counts
}
