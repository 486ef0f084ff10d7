package fuse

import (
	"slices"

	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// Windows that lack some taps at some places, such as those of the phases of a transposed convolution: of three taps
// at stride 2, one phase has two and the other one. Each tile is of one phase, and sums over the taps of that phase.

// absentTaps describes the condition of the kernel's only fold; nil if it has none, or one of another form. The
// innermost columns, which are channels, are never absent.
func (lo productKernel) absentTaps() *tapCounts {
	if len(lo.folds) != 1 || lo.folds[0].Where == nil {
		return nil
	}
	t := &tapCounts{where: lo.folds[0].Where}
	t.of = form.TapCounts(t.where, lo.k.Cols, lo.facts)
	if last := len(lo.k.Cols) - 1; len(t.of) == 0 || t.of[lo.k.Cols[last]] != nil {
		return nil
	}
	return t
}

// batchTaps makes a batch of the rows that say which taps are absent; false where a side is left without rows.
func (lo productKernel) batchTaps(c *ir.Contract) bool {
	if lo.taps == nil {
		return true
	}
	says := func(r *ir.Range) bool { return ir.DependsOn(lo.taps.where, r) }
	batch := slices.Clone(c.Batch)
	c.Batch = nil
	for _, r := range lo.k.Rows {
		if slices.Contains(batch, r) || says(r) {
			c.Batch = append(c.Batch, r)
		}
	}
	c.M, c.N = slices.DeleteFunc(slices.Clone(c.M), says), slices.DeleteFunc(slices.Clone(c.N), says)
	return len(c.M) > 0 && len(c.N) > 0
}

// tapsOf is the number of points of each column range but the innermost; nil if no taps are
// absent.
func (lo productKernel) tapsOf() (out []*ir.Expr) {
	if lo.taps == nil {
		return nil
	}
	for _, r := range lo.k.Cols[:len(lo.k.Cols)-1] {
		n := lo.taps.of[r]
		if n == nil {
			n = r.Extent
		}
		out = append(out, n)
	}
	return out
}

// mostTapPoints is the most points of a batch at which taps are counted one by one.
const mostTapPoints = 1 << 10

// hasTaps reports whether a batch is known to have some tap at each of its points.
func (lo productKernel) hasTaps() bool {
	if lo.taps == nil {
		return true
	}
	for _, n := range lo.taps.of {
		if ir.Decide(ir.Apply(ir.OpLe, ir.IntConst(1), n), lo.inside(ir.RowLevel)) == ir.True {
			continue
		}
		var ranges []*ir.Range
		points := int64(1)
		for r := range ir.FreeRanges(n) {
			if r.Extent.Op != ir.OpConst || r.Extent.Int*points > mostTapPoints {
				return false
			}
			ranges, points = append(ranges, r), points*r.Extent.Int
		}
		for point := range points {
			at := map[*ir.Range]*ir.Expr{}
			for _, r := range ranges {
				at[r] = ir.IntConst(point % r.Extent.Int)
				point /= r.Extent.Int
			}
			if taps := ir.Simplify(ir.Substitute(n, at), lo.facts); taps.Op != ir.OpConst || taps.Int < 1 {
				return false
			}
		}
	}
	return true
}
