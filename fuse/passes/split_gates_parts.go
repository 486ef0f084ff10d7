package passes

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/ir"
)

// A gatePart is the columns of a value that a reader reads: so many, from a place on, so far apart.
type gatePart struct {
	from   *ir.Expr
	apart  int64
	length *ir.Expr
}

// same reports whether two parts are the same columns.
func (p gatePart) same(o gatePart, facts ir.Facts) bool {
	return p.apart == o.apart && ir.SameIndex(p.from, o.from, facts) && ir.SameSize(p.length, o.length)
}

// disjoint reports whether two parts have no column in common.
func (p gatePart) disjoint(o gatePart, facts ir.Facts) bool {
	if p.apart != o.apart {
		return false
	}
	if p.apart > 1 {
		return p.from.Op == ir.OpConst && o.from.Op == ir.OpConst && (p.from.Int-o.from.Int)%p.apart != 0
	}
	facts.Positive = true
	before := func(a, b gatePart) bool {
		return ir.Decide(ir.Apply(ir.OpLe, ir.Apply(ir.OpAdd, a.from, a.length), b.from), facts) == ir.True
	}
	return before(p, o) || before(o, p)
}

// partsOf are the parts of a value that its readers read, at least two, none of which are reductions; nil where they read otherwise, or parts
// overlap.
func (s *gateSplitter) partsOf(v *ir.Value) (parts []gatePart) {
	if v.IsInput() || s.results[v] {
		return nil
	}
	facts := s.g.Facts()
	for _, reader := range s.readers[v] {
		if reader.Reduce != nil {
			return nil
		}
		for _, l := range reader.Loads() {
			if l.From != v {
				continue
			}
			part, _, ok := columnsAt(l, reader, facts)
			if !ok {
				return nil
			}
			if slices.ContainsFunc(parts, func(p gatePart) bool { return p.same(part, facts) }) {
				continue
			}
			if slices.ContainsFunc(parts, func(p gatePart) bool { return !p.disjoint(part, facts) }) {
				return nil
			}
			parts = append(parts, part)
		}
	}
	if len(parts) < 2 || len(parts) > mostParts {
		return nil
	}
	return parts
}

// columnsAt is the columns that a load reads, where its reader reads each place along all other axes once, in any order, and by which of
// its ranges. ok is false where it does not, or where it may be outside of the tensor.
func columnsAt(l *ir.Expr, reader *ir.Value, facts ir.Facts) (part gatePart, column *ir.Range, ok bool) {
	last := len(l.Args) - 1
	if last < 0 {
		return part, nil, false
	}
	free := algebra.RangesOf(ir.FreeRanges(l.Args[last]))
	if l.Fill != nil || len(free) != 1 || !slices.Contains(reader.Axes, free[0]) {
		return part, nil, false
	}
	column = free[0]
	seen := map[*ir.Range]bool{column: true}
	for d, at := range l.Args[:last] {
		axis := l.From.Axes[d]
		switch {
		case at.Op == ir.OpRange && !seen[at.Range] && slices.Contains(reader.Axes, at.Range) && ir.SameSize(at.Range.Extent, axis.Extent):
			seen[at.Range] = true
		case algebra.IsUnit(axis) && at.IsConst(0):
		default:
			return part, nil, false
		}
	}
	if slices.ContainsFunc(reader.Axes, func(r *ir.Range) bool { return !seen[r] && !algebra.IsUnit(r) }) {
		return part, nil, false
	}
	facts.Positive = true
	stride, ok := ir.Stride(l.Args[last], column, facts)
	if !ok || stride.Op != ir.OpConst || stride.Int < 1 || ir.Has(l.Args[last], ir.OpLoad) {
		return part, nil, false
	}
	return gatePart{ir.Simplify(ir.AtZero(l.Args[last], column), facts), stride.Int, column.Extent}, column, true
}
