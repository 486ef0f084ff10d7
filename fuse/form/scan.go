package form

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/ir"
)

// A reduction whose predicate bounds its range by an output index, and whose terms do not depend on that
// index, is a prefix scan: sum[k: N where k <= i] x[k]. Its range and the output index are one loop of the
// kernel, a range of columns, and the result at each column is the fold of the columns so far. Prologues
// and epilogues at the same index share the loop.

// Scan describes a value that is a prefix scan.
type Scan struct {
	Axis    *ir.Range // the output index that bounds the range
	Over    *ir.Range // the reduced range
	Prefix  ir.Prefix
	Reverse bool     // from the last index to the first
	Where   *ir.Expr // the rest of the predicate; nil for nothing
}

// ScanOf describes v as a scan; nil where it is none.
func ScanOf(v *ir.Value) *Scan {
	if v.Reduce == nil || v.Reduce.Where == nil || v.Reduce.Rank != nil || v.Reduce.Op.IsArg() || len(v.Reduce.Ranges) != 1 {
		return nil
	}
	over, terms := v.Reduce.Ranges[0], ir.Conjuncts(v.Reduce.Where)
	for i, term := range terms {
		if s := prefixBound(term, over, v.Axes); s != nil {
			for _, rest := range slices.Delete(terms, i, i+1) {
				s.Where = algebra.And(s.Where, rest)
			}
			if ir.DependsOn(v.Body, s.Axis) || s.Where != nil && ir.DependsOn(s.Where, s.Axis) {
				return nil
			}
			return s
		}
	}
	return nil
}

// RowsAt is the number of rows that a reduction folds, or scans, at the given sizes.
func RowsAt(v *ir.Value, sizes map[string]int64) float64 {
	rows := algebra.PointsAt(v.Axes, sizes)
	if scan := ScanOf(v); scan != nil {
		rows /= max(algebra.Estimate(scan.Axis.Extent, sizes), 1)
	}
	return rows
}

// prefixBound recognises a comparison that puts over at or before one of the axes, or at or after it: over
// <= axis, perhaps with its sides swapped, reversed or strict.
func prefixBound(cond *ir.Expr, over *ir.Range, axes []*ir.Range) *Scan {
	if len(cond.Args) != 2 || cond.Args[0].Type != ir.Index {
		return nil
	}
	gap := ir.Apply(ir.OpSub, cond.Args[0], cond.Args[1]) // the condition as gap <= 0
	one := ir.IntConst(1)
	switch cond.Op {
	case ir.OpLe:
	case ir.OpLt:
		gap = ir.Apply(ir.OpAdd, gap, one)
	case ir.OpGe:
		gap = ir.Apply(ir.OpNeg, gap)
	case ir.OpGt:
		gap = ir.Apply(ir.OpSub, one, gap)
	default:
		return nil
	}
	for _, axis := range axes {
		if algebra.IsUnit(axis) || !ir.DependsOn(gap, axis) || !ir.SameSize(axis.Extent, over.Extent) {
			continue
		}
		along, ok := ir.Stride(gap, over, ir.Facts{})
		against, okAxis := ir.Stride(gap, axis, ir.Facts{})
		if !ok || !okAxis {
			return nil
		}
		at := map[*ir.Range]*ir.Expr{over: ir.IntConst(0), axis: ir.IntConst(0)}
		return boundKind(along, against, ir.Simplify(ir.Substitute(gap, at), ir.Facts{}), axis, over)
	}
	return nil
}

// boundKind reads along*over + against*axis + offset <= 0.
func boundKind(along, against, offset *ir.Expr, axis, over *ir.Range) *Scan {
	s := &Scan{Axis: axis, Over: over, Prefix: ir.Inclusive}
	switch {
	case along.IsConst(1) && against.IsConst(-1):
	case along.IsConst(-1) && against.IsConst(1):
		s.Reverse = true
	default:
		return nil
	}
	switch {
	case offset.IsConst(0):
	case offset.IsConst(1):
		s.Prefix = ir.Exclusive
	default:
		return nil
	}
	return s
}

// LoopsOf is the ranges over whose points v loops: for a scan each index of its axis once, for an order
// the range that is sorted.
func LoopsOf(v *ir.Value) []*ir.Range {
	switch s := SortOf(v); {
	case ScanOf(v) != nil:
		return v.Axes
	case s != nil:
		return append(slices.DeleteFunc(slices.Clone(v.Axes), func(r *ir.Range) bool { return r == s.Place }), s.Over)
	}
	return algebra.AllRanges(v)
}
