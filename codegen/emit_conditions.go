package codegen

import (
	"fmt"
	"slices"

	"github.com/fusec/fusec/ir"
)

// prefix finds the conditions of a section that hold for the first columns of a row and for no others, i +
// c < n. Ranges cut into chunks, and reads near an edge, have such conditions. It returns them with the
// number of columns for which all hold, as text; without such conditions that is the number of all
// columns. The number is the same for all lanes of a thread.
func (e *emitter) prefix(sec *ir.Section, full []*ir.Local, cols string) (conds []*ir.Expr, limit string) {
	outer := e.k.Cols[0]
	limit = e.s.Expr(outer.Extent)
	for _, c := range conjuncts(sec, full) {
		n := e.holdsBelow(c, outer)
		if n == nil || e.differsInLanes(n) {
			continue
		}
		if !holds(conds, c) {
			conds = append(conds, c)
			limit = fmt.Sprintf("min((INDEX)%s, (INDEX)%s)", limit, e.s.Expr(n))
			if ir.OfData(n) { // data may be far below 0, where subtracting from it would wrap
				limit = "max(" + limit + ", (INDEX)0)"
			}
		}
	}
	if len(conds) == 0 {
		return nil, cols
	}
	if inner := product(extents(e.k.Cols[1:])); !inner.IsConst(1) {
		limit = fmt.Sprintf("(%s * %s)", limit, e.s.Expr(inner))
	}
	return conds, limit
}

// differsInLanes reports whether an expression has other values in other lanes of a thread: it depends on their range, or on what is
// read or folded for each of them.
func (e *emitter) differsInLanes(x *ir.Expr) bool {
	return ir.Contains(x, func(x *ir.Expr) bool {
		return x.Op == ir.OpRange && e.variesBetweenLanes(x.Range) || x.Op == ir.OpLocal && e.perLane(x.Local)
	})
}

// perLane reports whether a local differs between the lanes of a thread. Where it is folded, each lane has a fold of its own.
func (e *emitter) perLane(l *ir.Local) bool {
	return e.lane != nil && (l.Def == nil || e.differsInLanes(l.Def))
}

// variesBetweenLanes reports whether a range has different values in the lanes of a thread.
func (e *emitter) variesBetweenLanes(r *ir.Range) bool {
	return e.lane != nil && (r == e.lane || e.acrossRows && slices.Contains(e.k.Rows, r))
}

// conjuncts are the conditions under which a section folds and reads.
func conjuncts(sec *ir.Section, full []*ir.Local) []*ir.Expr {
	var out []*ir.Expr
	var split func(x *ir.Expr)
	split = func(x *ir.Expr) {
		switch {
		case x == nil:
		case x.Op == ir.OpAnd:
			split(x.Args[0])
			split(x.Args[1])
		default:
			out = append(out, x)
		}
	}
	for _, f := range sec.Folds {
		split(f.Where)
	}
	for _, l := range full {
		if r := readOf(l.Def); r != nil {
			split(r.Guard)
		}
	}
	return out
}

// holdsBelow returns n if cond holds exactly for r < n, whatever the other columns are; nil for
// other conditions.
func (e *emitter) holdsBelow(cond *ir.Expr, r *ir.Range) *ir.Expr {
	if cond.Op != ir.OpLt || cond.Args[0].Type != ir.Index || usesFull(cond) {
		return nil
	}
	free := ir.FreeRanges(cond)
	for _, col := range e.k.Cols {
		if free[col] != (col == r) {
			return nil
		}
	}
	gap := ir.Apply(ir.OpSub, cond.Args[1], cond.Args[0])
	stride, ok := ir.Stride(gap, r, e.s.Facts)
	if !ok || !stride.IsConst(-1) {
		return nil
	}
	return ir.Simplify(ir.AtZero(gap, r), e.s.Facts)
}

// given is the part of a condition that still has to be tested if those of e.assumed hold; nil
// for none.
func (e *emitter) given(cond *ir.Expr) *ir.Expr {
	switch {
	case cond == nil || holds(e.assumed, cond):
		return nil
	case cond.Op != ir.OpAnd:
		return cond
	}
	return ir.Join(ir.OpAnd, e.given(cond.Args[0]), e.given(cond.Args[1]))
}

func holds(conds []*ir.Expr, cond *ir.Expr) bool {
	return slices.ContainsFunc(conds, func(c *ir.Expr) bool { return ir.Equal(c, cond) })
}

// inside writes text for pieces that are whole and where the conditions hold.
func (e *emitter) inside(conds []*ir.Expr, body func()) {
	e.whole, e.assumed = true, conds
	body()
	e.whole, e.assumed = false, nil
}
