package codegen

import (
	"fmt"

	"github.com/fusec/fusec/ir"
)

// How a windowed operand gets into its tiles. What belongs to a row of the operand, which is where its
// window is, is computed before the loop over the columns. What belongs to a column, which is its tap and
// channel, is computed once for each stage. From piece to piece a thread keeps either its row or its
// column, depending on which is contiguous in memory.

// windowRows writes what belongs to the thread's rows: where each begins, and how far its window is
// inside.
func (s *side) windowRows() {
	e, w := s.e, s.o.Window
	rows := s.rowsOfThread()
	e.line("INDEX base_%s[%d];", s.name, rows)
	for i := range w.Spans {
		e.line("INDEX %s[%d];", s.spanName(i), rows)
	}
	if len(w.Spans) == 0 {
		e.line("unsigned rows_%s = 0;", s.name)
	}
	e.line("#pragma unroll")
	e.open("for (int turn = 0; turn < %d; ++turn)", rows)
	s.windowPlace()
	e.line("const INDEX at_%s = origin_%s + tile_row;", s.row, s.row)
	if rows*s.length()*s.e.v.Schedule.Threads > s.rowsOfTile()*s.e.v.Schedule.TileK {
		e.line("if (tile_row >= TILE_%s) break;", s.rowUpper())
	}
	if len(w.Spans) == 0 {
		e.line("rows_%s |= (at_%s < extent_%s ? 1u : 0u) << turn;", s.name, s.row, s.row)
	}
	e.take(s.own, "at_"+s.row, w.Rows()...)
	e.line("base_%s[turn] = %s;", s.name, e.s.Bare(w.Base))
	for i, span := range w.Spans {
		text := e.s.Bare(span.Row)
		if i == 0 { // a row that does not exist is outside at every tap
			text = fmt.Sprintf("at_%s < extent_%s ? %s : -((INDEX)1 << (8 * sizeof(INDEX) - 2))", s.row, s.row, text)
		}
		e.line("%s[turn] = %s;", s.spanName(i), text)
	}
	e.close()
	if s.tabulated() {
		s.tapTable()
	}
}

// tabulated reports whether threads look up what belongs to a column in a table. Threads that keep their
// row have another column in every piece, and a whole warp has the same.
func (s *side) tabulated() bool {
	return s.o.Window != nil && !s.o.Window.ByRow && !s.o.KLast && s.o.Window.Pitch == nil
}

// tapTable writes a table of what belongs to the columns of a stage, and the function by which a thread
// for each column fills in the table of the stage at origin_k. There are two tables: one is read while the
// next is written.
func (s *side) tapTable() {
	e, w := s.e, s.o.Window
	e.line("__shared__ __align__(16) INDEX taps_%s[2][TILE_K][%d];", s.name, s.tapWords())
	e.open("auto tabulate_%s = [&](INDEX origin_k)", s.name)
	e.line("if (threadIdx.x >= TILE_K) return;")
	e.line("const int tile_k = threadIdx.x;")
	s.windowTaps()
	e.line("INDEX *const taps = taps_%s[origin_k / TILE_K & 1][tile_k];", s.name)
	e.line("taps[0] = step_%s;", s.name)
	for i := range w.Spans {
		e.line("taps[%d] = tap_%s;", i+1, s.spanName(i))
	}
	e.closeWith(";")
}

// firstTaps writes the tables of the first stage, where sides have any. meet is the barrier that is needed
// where stages are copied without one between them.
func (e *contractSplitK) firstTaps(sides []*side) (meet string) {
	for _, s := range sides {
		if s.tabulated() {
			e.line("tabulate_%s(begin_k);", s.name)
			meet = "        __syncthreads();\n"
		}
	}
	if meet != "" {
		e.line("__syncthreads();")
	}
	return meet
}

// tapWords is the words of a row of the table: a whole access.
func (s *side) tapWords() int {
	n := 2
	for n < 1+len(s.o.Window.Spans) {
		n *= 2
	}
	return n
}

// lookUp writes the lookup of what belongs to the columns of a piece.
func (s *side) lookUp() {
	e := s.e
	e.line("const INDEX at_k = origin_k + tile_k;")
	e.line("const INDEX *const taps = taps_%s[origin_k / TILE_K & 1][tile_k];", s.name)
	e.line("const INDEX step_%s = taps[0];", s.name)
	for i := range s.o.Window.Spans {
		e.line("const INDEX tap_%s = taps[%d];", s.spanName(i), i+1)
	}
}

// windowCopies writes the copies of a stage.
func (s *side) windowCopies() {
	e := s.e
	if s.o.KLast {
		e.line("const int turn = 0;")
		s.windowPlace()
		s.windowTaps()
		s.windowTurns(func() {
			e.line("const int tile_row = (threadIdx.x + turn * THREADS) / (TILE_K / %d);", s.length())
			s.windowCopy("turn")
		})
		return
	}
	taps := s.windowTaps
	if s.tabulated() {
		taps = s.lookUp
	}
	s.windowTurns(func() {
		s.windowPlace()
		taps()
		slot := "0"
		if rows := s.rowsOfThread(); rows > 1 {
			slot = fmt.Sprintf("turn %% %d", rows)
		}
		s.windowCopy(slot)
	})
	if s.tabulated() {
		e.line("tabulate_%s(origin_k + TILE_K); // for the stage after this one, behind the next barrier", s.name)
	}
}

// windowTurns writes the loop over the pieces of a thread.
func (s *side) windowTurns(body func()) {
	e := s.e
	if rows := s.rowsOfThread(); rows > 1 && !s.o.KLast { // whole rounds, so that it is known which row a turn has
		e.line("#pragma unroll %d", 2*rows)
	} else {
		e.line("#pragma unroll")
	}
	e.open("for (int turn = 0; turn < TURNS_%s; ++turn)", s.upper())
	e.line("if (PIECES_%s %% THREADS != 0 && (int)threadIdx.x + turn * THREADS >= PIECES_%s) break;", s.upper(), s.upper())
	body()
	e.close()
}

// windowPlace writes where the current piece of the thread is in the tile.
func (s *side) windowPlace() {
	e, n := s.e, s.length()
	e.line("[[maybe_unused]] const int piece = threadIdx.x + turn * THREADS;")
	across := s.rowsOfTile() / n
	if s.o.KLast {
		across = e.v.Schedule.TileK / n
	}
	threads := e.v.Schedule.Threads
	if threads%across != 0 && (s.o.KLast || across%threads != 0) {
		panic(fmt.Sprintf("BUG: %d threads do not keep their place along %d pieces of a tile", threads, across))
	}
	switch {
	case s.o.KLast:
		e.line("[[maybe_unused]] const int tile_row = piece / %d, tile_k = threadIdx.x %% %d * %d;", across, across, n)
	case across > threads:
		e.line("[[maybe_unused]] const int tile_k = piece / %d, tile_row = piece %% %d * %d;", across, across, n)
	default:
		e.line("[[maybe_unused]] const int tile_k = piece / %d, tile_row = threadIdx.x %% %d * %d;", across, across, n)
	}
}

// windowTaps writes what belongs to the columns of a piece.
func (s *side) windowTaps() {
	e, w := s.e, s.o.Window
	e.line("const INDEX at_k = origin_k + tile_k;")
	e.take(e.k.Cols, "at_k", w.Taps()...)
	if w.Pitch != nil {
		e.line("const INDEX step_%s = at_k * %s;", s.name, e.s.Expr(w.Pitch))
	} else {
		e.line("const INDEX step_%s = %s;", s.name, e.s.Bare(w.Step))
	}
	for i, span := range w.Spans {
		e.line("const INDEX tap_%s = %s;", s.spanName(i), e.s.Bare(span.Tap))
	}
}

// windowCopy writes the copy of one piece; slot holds the figures of its row. It writes zeros where the
// piece is outside.
func (s *side) windowCopy(slot string) {
	e, w := s.e, s.o.Window
	inside := "(whole || at_k < extent_k)"
	if len(w.Spans) == 0 {
		inside += fmt.Sprintf(" && (rows_%s >> %s & 1u)", s.name, slot)
	}
	for i, span := range w.Spans {
		inside += " && " + s.within(span, fmt.Sprintf("%s[%s] + tap_%s", s.spanName(i), slot, s.spanName(i)))
	}
	read := e.operandRead(s.o.Value)
	e.line("const bool inside = %s;", inside)
	e.noted(read.Span, "copy_piece<%d>(tile_%s[stage].slot(tile_row, tile_k), %s + (inside ? base_%s[%s] + step_%s : 0), inside);",
		s.length()*s.element.Size(), s.name, e.args[read.Arg], s.name, slot, s.name)
}

// within is the condition that a place along a span is inside.
func (s *side) within(span ir.Span, place string) string {
	if span.Extent == nil {
		return place + " >= 0"
	}
	unsigned := "unsigned"
	if s.e.v.Schedule.Index64 {
		unsigned = "unsigned long long"
	}
	return fmt.Sprintf("(%s)(%s) < (%s)%s", unsigned, place, unsigned, s.e.s.Expr(span.Extent))
}

func (s *side) spanName(i int) string { return fmt.Sprintf("span_%s%d", s.name, i) }

func (s *side) rowsOfTile() int {
	if s.row == "m" {
		return s.e.v.Schedule.TileM
	}
	return s.e.v.Schedule.TileN
}

// rowsOfThread is the rows that a thread keeps: those of all its pieces where these run along the columns; otherwise
// the one, or the few that are a block's threads apart, to which it comes back.
func (s *side) rowsOfThread() int {
	if s.o.KLast {
		return s.turnsOfTile()
	}
	return max(1, s.rowsOfTile()/s.length()/s.e.v.Schedule.Threads)
}

// turnsOfTile is the most pieces of a tile that a thread has.
func (s *side) turnsOfTile() int {
	threads := s.e.v.Schedule.Threads
	return (s.rowsOfTile()*s.e.v.Schedule.TileK/s.length() + threads - 1) / threads
}
