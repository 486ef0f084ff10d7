package codegen

import (
	"fmt"

	"github.com/fusec/fusec/codegen/spell"
)

// A windowed operand of few columns, such as 25 taps of one channel. Gathered by elements, each with a row and a column of
// its own, it would take longer than everything else: places are divisions, and each has conditions. Here a thread has a
// row of the tile, computes once where its window is, and goes through all columns in a loop that is unrolled. Then
// a tap is a number in the text, conditions of a line of taps are the same for all of the line, and all reads are
// under way at once.

// windowByRow writes the copies of such an operand. Elements of 16 bits go through registers, because copies to shared
// memory are of four bytes at least.
func (s *side) windowByRow() {
	e, w := s.e, s.o.Window
	e.line("const int tile_row = threadIdx.x;")
	e.line("const INDEX at_%s = origin_%s + tile_row;", s.row, s.row)
	e.take(s.own, "at_"+s.row, w.Rows()...)
	e.line("const bool here = at_%s < extent_%s;", s.row, s.row)
	e.line("const INDEX base = here ? %s : 0;", e.s.Bare(w.Base))
	for i, span := range w.Spans {
		e.line("const INDEX %s = %s;", s.spanName(i), e.s.Bare(span.Row))
	}
	half := s.element.Size() == 2
	length := 1
	if half {
		length = 16 / s.element.Size()
	}
	e.line("#pragma unroll")
	e.open("for (int tile_k = 0; tile_k < TILE_K; tile_k += %d)", length)
	if half {
		e.line("Vec<Element, %d> piece;", length)
		e.line("#pragma unroll")
		e.open("for (int v = 0; v < %d; ++v)", length)
	} else {
		e.line("constexpr int v = 0;")
	}
	e.line("const INDEX at_k = origin_k + tile_k + v;")
	s.tapOfRow()
	read := e.operandRead(s.o.Value)
	if half {
		e.noted(read.Span, "piece.v[v] = inside ? %s[base + step] : %s{};", e.args[read.Arg], spell.StorageType(s.element))
		e.close()
		e.line("tile_%s[stage].template put<%d, true>(tile_row, tile_k, piece);", s.name, length)
	} else {
		e.noted(read.Span, "copy_piece<%d>(tile_%s[stage].slot(tile_row, tile_k), %s + (inside ? base + step : 0), inside);",
			s.element.Size(), s.name, e.args[read.Arg])
	}
	e.close()
}

// tapOfRow writes where the column's tap is in the window of the thread's row, and whether it is inside.
func (s *side) tapOfRow() {
	e, w := s.e, s.o.Window
	e.take(e.k.Cols, "at_k", w.Taps()...)
	if w.Pitch != nil {
		e.line("const INDEX step = at_k * %s;", e.s.Expr(w.Pitch))
	} else {
		e.line("const INDEX step = %s;", e.s.Bare(w.Step))
	}
	inside := "here && at_k < extent_k"
	for i, span := range w.Spans {
		inside += " && " + s.within(span, fmt.Sprintf("%s + %s", s.spanName(i), e.s.Expr(span.Tap)))
	}
	e.line("const bool inside = %s;", inside)
}
