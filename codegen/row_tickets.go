package codegen

import "github.com/fusec/fusec/ir"

// Memory serves some multiprocessors faster than others, so blocks that go from row to row may
// do without rows of their own (ir.Schedule.Tickets): each begins with two and takes a ticket
// for one more when it begins with a row, which goes along with the first exchange of the row.

// ticketsOwn is the counter of the tickets, for blocks that take some.
func ticketsOwn(_ *ir.Kernel, v *ir.Variant) workspace {
	if !v.Schedule.Tickets {
		return workspace{}
	}
	return workspace{counters: ir.IntConst(1)}
}

// ticketing reports whether a ticket goes along with the folds of a section.
func (e *rowEmitter) ticketing(sec *ir.Section) bool {
	return e.v.Schedule.Tickets && sec == e.v.Sections[0]
}

// firstRows writes the rows that a block begins with.
func (e *rowEmitter) firstRows() {
	e.line("INDEX row = blockIdx.x / CLUSTER, row_1 = row + stride, row_2 = rows; // this, the next and the one behind it, once known")
}

// nextRow goes on to the next row.
const nextRow = "row = row_1, row_1 = row_2, row_2 = rows"

func (e *rowEmitter) startTickets() {
	e.line("const unsigned last_ticket = (unsigned)(max(rows - 2 * stride, (INDEX)0) + stride) - 1; // each block's last one is too high")
	e.line("bool more = true; // tickets to take")
}

// takeTicket asks for a row. The answer is on its way while this row arrives.
func (e *rowEmitter) takeTicket() {
	e.line("unsigned ticket = 0;")
	e.line("if (more && lane == 0) ticket = next_ticket(%s, last_ticket);", e.tickets)
}

// shareTicket has a ticket sent to all warps of the blocks that share a row.
func (e *rowEmitter) shareTicket() {
	e.line("__shared__ unsigned ticket_slots[2][slots<ROW_THREADS, CLUSTER>];")
	e.line("const unsigned ticket_warp = row_partial<Sum, ROW_THREADS, CLUSTER>(ticket, ticket_slots[turn & 1], meetings);")
}

// takeRow makes the ticket a row, which may be fetched from now on.
func (e *rowEmitter) takeRow() {
	e.line("if (more) row_2 = 2 * stride + (INDEX)row_total<Sum, ROW_THREADS, CLUSTER>(ticket_warp, ticket_slots[turn & 1]);")
	e.line("more = more && row_2 < rows;")
	e.call(e.row)
}
