package form

import (
	"slices"

	"github.com/fusec/fusec/ir"
)

// Sorted describes how a value picks from a sorted order.
type Sorted struct {
	Place *ir.Range // the axis that is the rank
	Over  *ir.Range // the range that is sorted
}

// SortOf returns the order that v picks from; nil where v is no such reduction. Along an axis on which the
// elements do not depend all rows are equal, and each is sorted.
func SortOf(v *ir.Value) *Sorted {
	if v.Reduce == nil || v.Reduce.Rank == nil || v.Reduce.Rank.Op != ir.OpRange {
		return nil
	}
	s := &Sorted{Place: v.Reduce.Rank.Range, Over: v.Reduce.Ranges[0]}
	if ir.DependsOn(v.Body, s.Place) {
		return nil
	}
	return s
}

// EachRow reports whether the sorted elements depend on all axes but the place, so that no two rows are
// known to be equal.
func (s *Sorted) EachRow(v *ir.Value) bool {
	free := ir.FreeRanges(v.Body)
	return !slices.ContainsFunc(v.Axes, func(r *ir.Range) bool { return r != s.Place && !free[r] })
}
