package fuse

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/forecast"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// A scatter stays one only while all folds of its kernel take the columns that one key sends to their row, in one
// pass. Otherwise each row would look at every column.

// keepsKeys refuses to merge a scatter with a region after which its kernel would look at every column for each row:
// with a reduction by another key or by none, or with one that needs the results of the scatter. Where the sizes are
// known to be so few that this is quick, the merge saves a launch.
func (m *merging) keepsKeys() *form.Refusal {
	if m.al.fewer != nil {
		return m.repeatsLanes()
	}
	if m.g.OneKernel {
		return nil
	}
	for _, r := range []*region{m.a, m.b} {
		if !m.isScatter(r) || fewPairs(r) || m.isScatter(m.region()) {
			continue
		}
		v := reductionOf(r)
		return form.Refuse(ir.ReasonDifferentRanges, v.Origin.Span, "%s takes the elements that indices from memory send to each of its rows; "+
			"one kernel does that by one set of indices, in one pass", v.Name)
	}
	return nil
}

// Figures of scatters that are quick although each row looks at every column, whatever the batch: the most columns, and the most
// rows that one key chooses from.
const (
	quickColumns = 128
	quickPlaces  = 64
)

// fewPairs reports whether a region is known to have few pairs of a row and a column: in all, or for each point of its batch.
func fewPairs(r *region) bool {
	points := ir.Simplify(algebra.Product(r.space), ir.Facts{})
	if points.Op == ir.OpConst && points.Int < forecast.ScatterWork {
		return true
	}
	few := func(extent *ir.Expr, most int64) bool { return extent.Op == ir.OpConst && extent.Int <= most }
	columns := ir.Simplify(algebra.Product(ordered(r.space, r.cols)), ir.Facts{})
	return few(columns, quickColumns) && !slices.ContainsFunc(r.members, func(v *ir.Value) bool {
		s := form.ScatterIn(v)
		return s != nil && !few(s.To.Extent, quickPlaces)
	})
}

// scattersIn reports whether a region has a scatter for which it may not be known to be few.
func scattersIn(r *region) bool {
	return !fewPairs(r) && slices.ContainsFunc(r.members, func(v *ir.Value) bool { return form.ScatterIn(v) != nil })
}

// isScatter reports whether the reductions of a region are one pass over the columns that a common key sends to a row.
func (fl *flow) isScatter(r *region) bool {
	cols := ordered(r.space, r.cols)
	rows := slices.DeleteFunc(slices.Clone(r.space), func(own *ir.Range) bool { return r.cols[own] })
	var common []*ir.Expr
	found, ofPlaces := false, -1 // the fewest conditions of the place of an extreme, which has no term without effect
	for _, v := range r.members {
		if v.Reduce == nil {
			continue
		}
		where := form.ConditionOf(v)
		if where == nil {
			return false
		}
		own := form.Conditions(r.index(v, where, fl.facts))
		if !found {
			common, found = own, true
		}
		if common = form.CommonConditions(common, own, rows, cols); v.Reduce.Op.IsArg() {
			ofPlaces = max(ofPlaces, len(own))
		}
	}
	return len(common) > 0 && ofPlaces <= len(common) && fl.passes(r.members) == 1 && fl.hasPlace(common, rows, cols)
}

// hasPlace reports whether one of the conditions compares a row, or an index whose digits are rows, with a key of the
// columns.
func (p *program) hasPlace(conditions []*ir.Expr, rows, cols []*ir.Range) bool {
	var where *ir.Expr
	rows = slices.Clone(rows)
	for _, c := range conditions {
		if digits, key := p.placeDigits(c, rows); len(digits) > 1 {
			whole := &ir.Range{Name: digits[0].Name, Extent: algebra.Product(digits)}
			rows, c = append(rows, whole), ir.Apply(ir.OpEq, whole.At(), key)
		}
		where = ir.Join(ir.OpAnd, where, c)
	}
	return form.ScatterOf(where, rows, cols) != nil
}

// placeDigits reads a condition as the comparison of an index whose digits are rows, outermost first, with a key. There
// are no digits where it is another condition.
func (p *program) placeDigits(condition *ir.Expr, rows []*ir.Range) (digits []*ir.Range, key *ir.Expr) {
	if condition.Op != ir.OpEq {
		return nil, nil
	}
	m := &matcher{facts: p.facts}
	for i, side := range condition.Args {
		digits := m.digits(side)
		if len(digits) > 0 && !slices.ContainsFunc(digits, func(d *ir.Range) bool { return !slices.Contains(rows, d) }) {
			return digits, condition.Args[1-i]
		}
	}
	return nil, nil
}
