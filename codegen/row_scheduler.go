package codegen

import "github.com/fusec/fusec/ir"

// Memory serves some multiprocessors faster than others. So blocks that go from row to row may get their rows from a
// dynamic scheduler (ir.Schedule.Dynamic), which is a counter in memory. Each block begins with two rows, and requests
// one more whenever it begins a row. The answer is passed on in the first exchange of the row.

// schedulerOwn is the counter of the scheduler, for blocks that ask it for rows.
func schedulerOwn(_ *ir.Kernel, v *ir.Variant) workspace {
	if !v.Schedule.Dynamic {
		return workspace{}
	}
	return workspace{counters: ir.IntConst(1)}
}

// schedules reports whether the request for the next row goes along with the folds of a section.
func (e *rowEmitter) schedules(sec *ir.Section) bool {
	return e.v.Schedule.Dynamic && sec == e.v.Sections[0]
}

// firstRows writes the rows that a block begins with.
func (e *rowEmitter) firstRows() {
	e.line("INDEX row = blockIdx.x / CLUSTER, row_1 = row + stride, row_2 = rows; // this, the next and the one behind it, once known")
}

// nextRow goes on to the next row.
const nextRow = "row = row_1, row_1 = row_2, row_2 = rows"

func (e *rowEmitter) startScheduler() {
	e.line("const unsigned last_tile = (unsigned)(max(rows - 2 * stride, (INDEX)0) + stride) - 1; // each block's last one is too high")
	e.line("bool more = true; // counters to take")
}

// takeTile asks for a row. The answer is on its way while this row arrives.
func (e *rowEmitter) takeTile() {
	e.line("unsigned claimed = 0;")
	e.line("if (more && lane == 0) claimed = next_tile(%s, last_tile);", e.counters)
}

// shareTile sends the answer to all warps of the blocks that share a row.
func (e *rowEmitter) shareTile() {
	e.line("__shared__ unsigned tile_slots[2][slots<ROW_THREADS, CLUSTER>];")
	e.line("const unsigned tile_warp = row_partial<Sum, ROW_THREADS, CLUSTER>(claimed, tile_slots[turn & 1], meetings);")
}

// takeRow turns the answer into a row, which may be fetched from now on.
func (e *rowEmitter) takeRow() {
	e.line("if (more) row_2 = 2 * stride + (INDEX)row_total<Sum, ROW_THREADS, CLUSTER>(tile_warp, tile_slots[turn & 1]);")
	e.line("more = more && row_2 < rows;")
	e.call(e.row)
}
