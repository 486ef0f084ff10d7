package algebra

import (
	"sort"

	"github.com/fusec/fusec/ir"
)

// Subset reports whether every range of one set is in another.
func Subset(a, b map[*ir.Range]bool) bool {
	for r := range a {
		if !b[r] {
			return false
		}
	}
	return true
}

// RangesOf lists a set of ranges in the order they were made.
func RangesOf(set map[*ir.Range]bool) []*ir.Range {
	var out []*ir.Range
	for r := range set {
		out = append(out, r)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].ID < out[j].ID })
	return out
}

// UnitIndices are the indices of ranges, 0 for those of extent 1.
func UnitIndices(axes []*ir.Range) []*ir.Expr {
	out := ir.Indices(axes)
	for d, r := range axes {
		if IsUnit(r) {
			out[d] = ir.IntConst(0)
		}
	}
	return out
}

// DependsOnAny reports whether an expression depends on a range of a set.
func DependsOnAny(e *ir.Expr, ranges map[*ir.Range]bool) bool {
	for r := range ir.FreeRanges(e) {
		if ranges[r] {
			return true
		}
	}
	return false
}

// BySize reports whether a divisor depends on sizes. Such a divisor must stay inside a sum:
// without terms, a sum of x / size is 0, but sum / size would be 0 / 0.
func BySize(e *ir.Expr) bool { return ir.Has(e, ir.OpSym) }

// RangeSet is a list of ranges as a set.
func RangeSet(ranges []*ir.Range) map[*ir.Range]bool {
	out := map[*ir.Range]bool{}
	for _, r := range ranges {
		out[r] = true
	}
	return out
}

// AllRanges lists the axes of a value and the ranges that it reduces over.
func AllRanges(v *ir.Value) []*ir.Range {
	if v.Reduce == nil {
		return v.Axes
	}
	return append(append([]*ir.Range(nil), v.Axes...), v.Reduce.Ranges...)
}

// SameRanges reports whether a list of ranges, each once, is a set.
func SameRanges(list []*ir.Range, set map[*ir.Range]bool) bool {
	for _, r := range list {
		if !set[r] {
			return false
		}
	}
	return len(list) == len(set)
}

// GroupOf is n where expressions depend on r through r / n alone, and |r| is a
// multiple of n; 1 for none.
func GroupOf(r *ir.Range, facts ir.Facts, exprs ...*ir.Expr) int64 {
	n := int64(0)
	for _, e := range exprs {
		ir.Walk(e, func(e *ir.Expr) bool {
			quotient := e.Op == ir.OpFloorDiv && e.Args[0].Op == ir.OpRange && e.Args[0].Range == r &&
				e.Args[1].Op == ir.OpConst
			switch {
			case quotient && (n == 0 || n == e.Args[1].Int):
				n = e.Args[1].Int
				return false
			case e.Op == ir.OpRange && e.Range == r:
				n = 1
			}
			return true
		})
	}
	if n < 2 || !ir.Multiple(r.Extent, n, facts) {
		return 1
	}
	return n
}
