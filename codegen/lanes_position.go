package codegen

import (
	"fmt"
	"slices"

	"github.com/fusec/fusec/ir"
)

// flatPoint writes the coordinates of position t, and with count also n, how many of the thread's lanes
// are inside. leave is the statement for threads outside.
func (e *laneEmitter) flatPoint(leave string, count bool) {
	if e.lane == nil {
		e.line("if (t > 0) %s;", leave)
		e.line("[[maybe_unused]] const int n = 1;")
		return
	}
	extent := e.s.Expr(e.lane.Extent)
	outer := e.rows()
	outer = outer[:len(outer)-1]
	inside := fmt.Sprintf("t * VECTOR < %s", extent)
	switch {
	case len(outer) == 0 && e.stays && e.wholeLanes() && e.readsRows(): // threads outside read the last vector
		e.line("[[maybe_unused]] const INDEX first = min(t * VECTOR, (INDEX)%s - VECTOR);", extent)
	case len(outer) == 0:
		e.line("[[maybe_unused]] const INDEX first = t * VECTOR;")
	default:
		e.line("const INDEX vectors = (%s + VECTOR - 1) / VECTOR;", extent)
		inside = fmt.Sprintf("t < %s * vectors", e.s.Expr(product(extents(outer))))
		by := e.divisorOf("vectors", fmt.Sprintf("(%s + VECTOR - 1) / VECTOR", extent), ceilDiv(e.lane.Extent, int64(e.v.Schedule.Vector)))
		e.line("[[maybe_unused]] const INDEX first = t %% %s * VECTOR;", by)
		if e.stays { // threads outside read the last row
			e.line("const INDEX outer = min(t / %s, (INDEX)%s - 1);", by, e.s.Expr(product(extents(outer))))
		} else {
			e.line("const INDEX outer = t / %s;", by)
		}
		e.take(outer, "outer", e.every()...)
	}
	lanes := "VECTOR"
	if !e.wholeLanes() {
		lanes = fmt.Sprintf("(int)min(%s - first, (INDEX)VECTOR)", extent)
	}
	if e.stays {
		e.line("[[maybe_unused]] const int n = %s ? %s : 0;", inside, lanes)
		return
	}
	e.line("if (!(%s)) %s;", inside, leave)
	if count {
		e.line("[[maybe_unused]] const int n = %s;", lanes)
	}
}

// readsRows reports whether values of the rows are read from memory before the passes over the columns.
func (e *laneEmitter) readsRows() bool {
	return slices.ContainsFunc(e.v.Locals, func(l *ir.Local) bool {
		return l.Level == ir.RowLevel && l.Def != nil && readsMemory(l.Def)
	})
}
