package codegen

import (
	"fmt"

	"github.com/fusec/fusec/ir"
)

// laneVectors is the number of vectors along the innermost range of all rows that blocks share.
func laneVectors(k *ir.Kernel, v *ir.Variant) *ir.Expr {
	rows := dealt(k, v)
	if len(rows) == 0 {
		return ir.IntConst(1)
	}
	outer, lane := rows[:len(rows)-1], rows[len(rows)-1]
	return ir.Apply(ir.OpMul, product(extents(outer)), ceilDiv(lane.Extent, int64(v.Schedule.Vector)))
}

// columnBlocks is the number of blocks whose threads have a vector each.
func columnBlocks(k *ir.Kernel, v *ir.Variant) *ir.Expr {
	return ceilDiv(laneVectors(k, v), int64(v.Schedule.Threads))
}

func columnDefines(v *ir.Variant) string {
	if v.Schedule.Unroll > 1 {
		return fmt.Sprintf("#define ITEMS %d\n", v.Schedule.Unroll)
	}
	return ""
}

// flatPosition writes the thread's coordinates and n, how many of its lanes are
// inside. Threads of a group stay when their lanes are outside: they meet at
// barriers.
func (e *emitter) flatPosition() {
	if e.grouped() {
		e.line("constexpr int LANES = THREADS / COL_THREADS;")
		e.line("[[maybe_unused]] constexpr int MERGED = LANES < 32 ? THREADS / 32 : COL_THREADS; // groups, once those of a warp are one")
		e.line("const int group = threadIdx.x / LANES;")
		block := "(INDEX)" + e.block
		switch {
		case e.bySlab():
			e.slabPosition()
			return
		case e.chained():
			block = e.chainPosition()
		}
		e.line("const INDEX t = %s * LANES + threadIdx.x %% LANES;", block)
	} else {
		e.line("const INDEX t = (INDEX)%s * THREADS + threadIdx.x;", e.block)
	}
	e.flatPoint("return")
}

// flatPoint writes the coordinates of position t; leave is the statement for those
// outside.
func (e *emitter) flatPoint(leave string) {
	if e.lane == nil {
		e.line("if (t > 0) %s;", leave)
		e.line("[[maybe_unused]] const int n = 1;")
		return
	}
	extent := e.s.Expr(e.lane.Extent)
	outer := e.rows()
	outer = outer[:len(outer)-1]
	inside := fmt.Sprintf("t * VECTOR < %s", extent)
	if len(outer) == 0 {
		e.line("[[maybe_unused]] const INDEX first = t * VECTOR;")
	} else {
		e.line("const INDEX vectors = (%s + VECTOR - 1) / VECTOR;", extent)
		inside = fmt.Sprintf("t < %s * vectors", e.s.Expr(product(extents(outer))))
		by := e.divisorOf("vectors", fmt.Sprintf("(%s + VECTOR - 1) / VECTOR", extent), ceilDiv(e.lane.Extent, int64(e.v.Schedule.Vector)))
		e.line("[[maybe_unused]] const INDEX first = t %% %s * VECTOR;", by)
		if e.grouped() { // those outside read what the last row does
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
	if e.grouped() {
		e.line("[[maybe_unused]] const int n = %s ? %s : 0;", inside, lanes)
		return
	}
	e.line("if (!(%s)) %s;", inside, leave)
	if !e.lanesApart() {
		e.line("[[maybe_unused]] const int n = %s;", lanes)
	}
}

// wholeLanes reports whether the innermost range is a whole number of vectors, or the one in
// hand is known to be whole.
func (e *emitter) wholeLanes() bool {
	return e.allLanes || ir.Multiple(e.lane.Extent, int64(e.v.Schedule.Vector), e.v.Facts)
}
