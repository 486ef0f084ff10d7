package codegen

import (
	"fmt"
	"strings"

	"github.com/fusec/fusec/ir"
)

// The parts of gemv kernels for operands that are computed from bit fields, or that have a factor
// which is hoisted out of the sums.

// gemvOrder is the lanes of a piece, in the order of the pairs in the fragments of w.
func gemvOrder(p *ir.Piece) string {
	lanes := make([]string, p.Length)
	for i := range lanes {
		lanes[i] = fmt.Sprint(i)
		if p.Fields != nil {
			lanes[i] = fmt.Sprint(p.Fields.Order[i])
		}
	}
	return strings.Join(lanes, ", ")
}

// gemvScale writes the addition of a tile's sums, times their factor.
func (e *contractGemv) gemvScale(s *side) {
	e.unrolled("upper", "2", func() {
		s.gemvPosition("16 * tile + 8 * upper + lane_row", "")
		e.line("float factor = 0;")
		e.open("if (inside)")
		e.line("factor = %s;", s.firstValue("[turn][2 * tile + upper]", s.o.Pieces.Value))
		e.close()
		e.line("#pragma unroll")
		e.open("for (int few = 0; few < TILE_M / 8; ++few)")
		e.line("#pragma unroll")
		e.line("for (int part = 2 * upper; part < 2 * upper + 2; ++part) parts[tile][few][part] += factor * sums_w[few][part];")
		e.close()
	})
}

// fieldConstants writes the multiplier of fields, twice in a word.
func (e *contractGemv) fieldConstants(f *ir.Fields) {
	e.line("using Field = BitField<Element, %d, %d, %d, %d, %t>;", f.Bits, f.First, f.Width, f.Flip, f.Twice)
	e.line("const unsigned step_w = twice<Element>(%s);", e.s.Expr(ir.Num(ir.F32, f.Step)))
}

// unpack writes eight elements of a piece, in the order of its fields, as words for the tensor cores.
// Outside they may be any numbers, because x is 0 there.
func (s *side) unpack(to, at string) {
	e, f := s.e, s.o.Pieces.Fields
	base := ir.Num(ir.F32, f.Added(s.element))
	raw := e.rawName[s.o.Pieces.Reads[f.Read].Local] + at
	if f.Offset == nil {
		e.line("Field::unpack(%s, %s, sub, step_w, twice<Element>(%s));", to, raw, e.s.Expr(base))
		return
	}
	e.line("float base = 0;")
	e.open("if (inside)")
	e.line("base = %s;", s.firstValue(at, ir.Apply(ir.OpAdd, f.Offset, base)))
	e.close()
	e.line("Field::unpack(%s, %s, sub, step_w, twice<Element>(base));", to, raw)
}

// firstValue writes the locals of an expression that is the same for all elements of a piece, and
// returns its text. The reads are in registers, at the given place.
func (s *side) firstValue(at string, value *ir.Expr) string {
	e, p := s.e, s.o.Pieces
	locals := ir.LocalsIn(p.Locals, value)
	s.take(append(definitions(locals), value)...)
	e.ranges[p.Lane] = "0"
	for _, r := range p.Reads {
		e.place[r.Local] = fmt.Sprintf("%s%s.v[%s]", e.rawName[r.Local], at, e.s.Bare(r.At))
	}
	for _, l := range locals {
		e.constant(l)
	}
	return e.s.Bare(value)
}
