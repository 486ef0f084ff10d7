package fuse

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/diag"
)

// foldedRegions makes a region of every product that has a reduction epilogue.
func (fl *flow) foldedRegions() (out []*region) {
	for _, v := range fl.g.Values {
		if r := fl.foldedRegion(v); r != nil {
			out = append(out, r)
		}
	}
	return out
}

// foldedRegion maps the ranges of a product's readers to those of the product, where all readers fold it
// over one axis that is as wide as a tile; nil where they do not.
func (fl *flow) foldedRegion(v *ir.Value) *region {
	if !form.IsTileProduct(v) || fl.results[v] || len(fl.readers[v]) == 0 || fl.estimate(algebra.Product(v.Axes)) < form.FoldLeast {
		return nil
	}
	r := &region{space: algebra.Widened(v.Axes), cols: map[*ir.Range]bool{}, at: map[*ir.Value]map[*ir.Range]*ir.Expr{}}
	r.folded = &folded{product: v, depth: v.Reduce.Ranges}
	own := map[*ir.Range]*ir.Expr{}
	for _, axis := range append(slices.Clone(r.space), r.folded.depth...) {
		own[axis] = axis.At()
	}
	r.at[v], r.members = own, []*ir.Value{v}
	for _, u := range fl.readers[v] {
		if !fl.foldsTile(r, u) {
			return nil
		}
		r.members = append(r.members, u)
	}
	for col := range r.cols {
		if !chunkAxis(v, col) {
			return nil
		}
	}
	return r
}

// foldsTile adds a reader of the product to a region; false where the reader is not a fold over the
// columns of a tile, at the region's points.
func (fl *flow) foldsTile(r *region, u *ir.Value) bool {
	v := r.folded.product
	load := form.OnlyLoad(u.Body, v)
	if u.Reduce == nil || u.Reduce.Rank != nil || len(u.Reduce.Ranges) != 1 || load == nil || !form.PlainIndices(load) || form.ScanOf(u) != nil {
		return false
	}
	point, at := u.Reduce.Ranges[0], map[*ir.Range]*ir.Expr{}
	for d, e := range load.Args {
		if e.Op == ir.OpRange {
			at[e.Range] = v.Axes[d].At()
		}
	}
	for _, own := range algebra.Widened(algebra.AllRanges(u)) {
		if at[own] == nil {
			return false
		}
	}
	if at[point] == nil || !point.Extent.IsConst(form.FoldTile) || len(r.cols) > 0 && !r.cols[at[point].Range] {
		return false
	}
	first := len(r.cols) == 0
	r.cols[at[point].Range], r.at[u] = true, at
	return fl.readsBeside(r, u) && r.folded.limit(u, at, first)
}

// readsBeside reports whether u reads other folds of the region only at the region's point, and reads
// nothing else that depends on the product.
func (fl *flow) readsBeside(r *region, u *ir.Value) bool {
	for _, l := range fl.loads[u] {
		if l.From == r.folded.product {
			continue
		}
		if !r.has(l.From) {
			if fl.dependsOn(l.From, r.folded.product) {
				return false
			}
			continue
		}
		for d, e := range l.Args {
			if e.Op == ir.OpRange && !ir.Equal(r.at[l.From][l.From.Axes[d]], r.at[u][e.Range]) || e.Op != ir.OpRange && !algebra.IsUnit(l.From.Axes[d]) {
				return false
			}
		}
	}
	return true
}

// limit takes the bound on the columns from a fold's predicate. All folds must have the same.
func (t *folded) limit(u *ir.Value, at map[*ir.Range]*ir.Expr, first bool) bool {
	var index, extent *ir.Expr
	if u.Reduce.Where != nil {
		for _, term := range ir.Conjuncts(u.Reduce.Where) {
			if term.Op == ir.OpLt && ir.DependsOn(term.Args[0], u.Reduce.Ranges[0]) && len(ir.FreeRanges(term.Args[1])) == 0 && index == nil {
				index, extent = ir.Substitute(term.Args[0], at), term.Args[1]
			}
		}
	}
	if first {
		t.index, t.extent = index, extent
		return true
	}
	return (index == nil) == (t.index == nil) && (index == nil || ir.SameIndex(index, t.index, ir.Facts{}) && ir.SameSize(extent, t.extent))
}

// chunkAxis reports whether one side of a product depends on col, the other does not, and each has rows of
// its own.
func chunkAxis(v *ir.Value, col *ir.Range) bool {
	a, b := form.SidesOf(v)
	if a == nil || b == nil {
		return false
	}
	left, right := form.AxesIn(v, a), form.AxesIn(v, b)
	if left[col] {
		left, right = right, left
	}
	for _, axis := range algebra.Widened(v.Axes) {
		if !left[axis] && !right[axis] {
			return false
		}
	}
	return right[col] && !left[col] && !algebra.Subset(left, right)
}

// keepsFolds refuses to merge anything with a product that has a reduction epilogue: its registers hold
// the sums of a tile.
func keepsFolds(a, b *region) *form.Refusal {
	for _, r := range []*region{a, b} {
		if r.folded != nil {
			return form.Refuse(ir.ReasonResources, diag.Span{}, "%s is reduced in the kernel that multiplies it, whose registers have no room for more", r.folded.product.Name)
		}
	}
	return nil
}
