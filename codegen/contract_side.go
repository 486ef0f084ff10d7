package codegen

import (
	"fmt"
	"strings"

	"github.com/fusec/fusec/codegen/spell"
	"github.com/fusec/fusec/ir"
)

// side writes how one operand of a product gets into its tiles. fetch_x starts the copies of a tile, or
// reads the values from which its elements are computed. After the multiplication of the current tile,
// put_x computes the elements and stores them.
type side struct {
	e       *contractEmitter
	name    string // a or b
	row     string // m or n
	tile    string // type of the tile
	own     []*ir.Range
	o       ir.Operand
	element ir.DType
	turned  bool // whether a piece may be stored across the lines of the tile
	words   bool // whether reads may be kept as words; see inWords
}

func (s *side) write() {
	e := s.e
	byRow := s.o.Window != nil && s.o.Window.ByRow
	if !byRow && s.o.Band == nil {
		e.line("constexpr int PIECES_%s = TILE_%s * TILE_K / %d, TURNS_%s = (PIECES_%s + THREADS - 1) / THREADS;", s.upper(), s.rowUpper(), s.length(), s.upper(), s.upper())
	}
	if s.o.Pieces != nil {
		s.declare("[TURNS_" + s.upper() + "]")
	}
	if s.o.Window != nil && !byRow {
		s.windowRows()
	}
	e.open("auto fetch_%s = [&]([[maybe_unused]] int stage, [[maybe_unused]] INDEX origin_k, [[maybe_unused]] bool whole)", s.name)
	switch {
	case s.o.Pieces != nil:
		s.turns(func() { s.loads("[turn]") })
	case byRow:
		s.windowByRow()
	case s.o.Band != nil:
		s.bandCopies()
	case s.o.Window != nil:
		s.windowCopies()
	case s.o.Wide || s.o.Async:
		s.turns(s.copies)
	}
	e.closeWith(";")
	e.open("auto put_%s = [&]([[maybe_unused]] int stage, [[maybe_unused]] INDEX origin_k, [[maybe_unused]] bool whole)", s.name)
	switch {
	case s.o.Pieces != nil:
		s.turns(s.computePiece)
	case !s.o.Wide && !s.o.Async && s.o.Band == nil:
		s.turns(s.computeElement)
	}
	e.closeWith(";")
}

// length is the number of neighbours that are copied or computed together.
func (s *side) length() int {
	switch {
	case s.o.Pieces != nil:
		return s.o.Pieces.Length
	case s.o.Wide:
		return 16 / s.element.Size()
	}
	return 1
}

func (s *side) upper() string { return strings.ToUpper(s.name) }

func (s *side) rowUpper() string { return map[string]string{"m": "M", "n": "N"}[s.row] }

// turns writes a loop over a thread's pieces of a tile, with the coordinates of each piece: row and k
// in the tile, at_x and at_k in the operand.
func (s *side) turns(body func()) {
	e := s.e
	unroll := "" // unrolled completely, so that registers of pieces have constant indices
	if s.length() == 1 && e.v.Schedule.Stages != 1 {
		unroll = " 4"
	}
	e.line("#pragma unroll%s", unroll)
	e.open("for (int turn = 0; turn < TURNS_%s; ++turn)", s.upper())
	e.line("const int piece = threadIdx.x + turn * THREADS;")
	e.line("if (PIECES_%s %% THREADS != 0 && piece >= PIECES_%s) break;", s.upper(), s.upper())
	n := s.length()
	switch {
	case s.across():
		// The lanes of a warp take 16 rows and two neighbours along K of each. So reads fill sectors of memory,
		// and the lines of the tile that they are stored across lie in different banks.
		e.line("constexpr int GROUPS = TILE_K / %d;", n)
		e.line("const int tile_row = piece / (16 * GROUPS) * 16 + piece / 2 %% 16, tile_k = (piece %% 2 + piece / 32 %% (GROUPS / 2) * 2) * %d;", n)
	case s.o.KLast:
		e.line("const int tile_row = piece / (TILE_K / %d), tile_k = piece %% (TILE_K / %d) * %d;", n, n, n)
	default:
		e.line("const int tile_k = piece / (TILE_%s / %d), tile_row = piece %% (TILE_%s / %d) * %d;", s.rowUpper(), n, s.rowUpper(), n, n)
	}
	e.line("const INDEX at_%s = origin_%s + tile_row, at_k = origin_k + tile_k;", s.row, s.row)
	e.line("const bool inside = whole || at_%s < extent_%s && at_k < extent_k;", s.row, s.row)
	body()
	e.close()
}

// across reports whether pieces along K are stored to a tile that is contiguous along the rows, and the
// tile's depth and height allow whole warps to divide it as turns does.
func (s *side) across() bool {
	v := s.e.v
	if !s.turned || s.o.Pieces == nil || !s.o.KLast || kInner(v.Contract, s.o) {
		return false
	}
	rows := map[string]int{"m": v.Schedule.TileM, "n": v.Schedule.TileN}[s.row]
	return v.Schedule.TileK/s.length()%2 == 0 && rows%16 == 0
}

// take writes the operand's coordinates that expressions use.
func (s *side) take(uses ...*ir.Expr) {
	if p := s.o.Pieces; p != nil { // coordinates in a piece follow from those of its first element
		uses = append([]*ir.Expr{p.Inner.At()}, uses...)
	}
	s.e.take(s.own, "at_"+s.row, uses...)
	s.e.take(s.e.k.Cols, "at_k", uses...)
	if p := s.o.Pieces; p != nil {
		s.e.ranges[p.Outer] = s.e.ranges[p.Inner] + "_piece"
		s.e.ranges[p.Lane] = "v"
		s.e.line("[[maybe_unused]] const INDEX %s = %s / %d;", s.e.ranges[p.Outer], s.e.ranges[p.Inner], p.Length)
	}
}

// copies writes asynchronous copies of elements that need no computing.
func (s *side) copies() {
	e := s.e
	read := e.operandRead(s.o.Value)
	s.take(read.Args[0])
	e.noted(read.Span, "copy_piece<%d>(tile_%s[stage].slot(tile_row, tile_k), %s + (inside ? %s : 0), inside);",
		s.length()*s.element.Size(), s.name, e.args[read.Arg], e.s.Expr(read.Args[0]))
}

// computePiece writes the computation of a piece from what was read.
func (s *side) computePiece() {
	e, p := s.e, s.o.Pieces
	half := s.element != s.element.Info().Compute
	values := "packed(values)"
	if half {
		values = "packed(values, Element{})"
	}
	e.line("%s values[%d] = {};", spell.ComputeType(s.element), p.Length)
	e.open("if (inside)")
	s.pieceValues("[turn]", "", func(value string) {
		if !half {
			value = s.stored(value)
		}
		e.noted(p.Value.Span, "values[v] = %s;", value)
	})
	e.close()
	e.line("tile_%s[stage].template put<%d, %t>(tile_row, tile_k, %s);", s.name, p.Length, s.o.KLast, values)
}

// pieceValues writes a loop over the elements of a piece, or over eight of them from sub on, and what body
// does with each. The reads are in registers, at the given place.
func (s *side) pieceValues(at, sub string, body func(value string)) {
	e, p := s.e, s.o.Pieces
	uses := append(definitions(p.Locals), p.Value)
	s.take(uses...)
	e.line("#pragma unroll")
	if sub == "" {
		e.open("for (int v = 0; v < %d; ++v)", p.Length)
	} else {
		e.open("for (int v = 8 * %s; v < 8 * %s + 8; ++v)", sub, sub)
	}
	for _, r := range p.Reads {
		e.place[r.Local] = fmt.Sprintf("%s%s.v[%s]", e.rawName[r.Local], at, e.s.Bare(r.At))
	}
	for _, l := range p.Locals {
		e.constant(l)
	}
	body(e.s.Bare(p.Value))
	e.close()
}

// computeElement writes the computation of one element from memory.
func (s *side) computeElement() {
	e := s.e
	e.line("Element element = {};")
	e.open("if (inside)")
	s.value("at_k", func(value string) { e.noted(s.o.Value.Span, "element = %s;", s.stored(value)) })
	e.close()
	e.line("*tile_%s[stage].slot(tile_row, tile_k) = element;", s.name)
}

// value writes the locals that the operand's value at a column needs, and calls body with the
// value.
func (s *side) value(col string, body func(value string)) {
	e := s.e
	locals := e.operandLocals(s.o.Value)
	uses := append(definitions(locals), s.o.Value)
	e.take(s.own, "at_"+s.row, uses...)
	e.take(e.k.Cols, col, uses...)
	for _, l := range locals {
		e.constant(l)
	}
	body(e.s.Bare(s.o.Value))
	for _, l := range locals {
		delete(e.place, l) // because another operand, or the epilogue, computes it again
	}
}

// stored converts a computed value to an element of the tile.
func (s *side) stored(value string) string {
	if s.element != s.element.Info().Compute {
		return fmt.Sprintf("from_f32<Element>(%s)", value)
	}
	return value
}
