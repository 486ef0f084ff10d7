package spell

import (
	"fmt"

	"github.com/fusec/fusec/ir"
)

// Indices made of data. A kernel computes indices in INDEX, which may have 32 bits, and indices
// made of ranges and sizes fit. An element of a tensor may be any number, and a sum with it
// could wrap in INDEX to a place that is inside. So arithmetic on an index made of data is
// written in INDEX only if its operands are known to be bounded, by the condition of their read
// or by their form. Otherwise it is written in 64 bits that saturate (ir.Saturating), or in 128 bits
// where parts of it need more (ir.Int128, int128.cuh). Converting from 64 bits to INDEX clamps to the ends
// of INDEX, where no tensor has elements.

// Place writes the place of a read or store that happens under a condition, which may be nil.
func (s *Speller) Place(under, place *ir.Expr) string {
	outer := s.bounds
	s.bounds = append(append([]*ir.Expr(nil), outer...), conditions(under)...)
	text := s.Expr(place)
	s.bounds = outer
	return text
}

// conditions lists the parts of a conjunction.
func conditions(e *ir.Expr) []*ir.Expr {
	if e == nil {
		return nil
	}
	return ir.Operands(ir.OpAnd, e)
}

// bounded reports whether an index is known to be bounded on one side by ranges and sizes.
func (s *Speller) bounded(e *ir.Expr, above bool) bool {
	if !ir.OfData(e) || s.boundedByCondition(e, above) {
		return true
	}
	switch e.Op {
	case ir.OpCast:
		t := e.Args[0].Type
		return t.Size() < 4 && !t.IsFloat() || t == ir.U32 && !above
	case ir.OpLocal:
		return e.Local.Def != nil && s.bounded(e.Local.Def, above)
	case ir.OpMin, ir.OpMax:
		a, b := s.bounded(e.Args[0], above), s.bounded(e.Args[1], above)
		if (e.Op == ir.OpMin) == above {
			return a || b
		}
		return a && b
	case ir.OpMod:
		return !ir.OfData(e.Args[1]) || s.within(e.Args[1])
	case ir.OpFloorDiv:
		return !ir.OfData(e.Args[1]) && ir.ProveNonNegative(e.Args[1], s.Facts) && s.bounded(e.Args[0], above)
	case ir.OpSelect:
		return s.bounded(e.Args[1], above) && s.bounded(e.Args[2], above)
	case ir.OpAdd:
		return s.bounded(e.Args[0], above) && s.bounded(e.Args[1], above)
	case ir.OpSub:
		return s.bounded(e.Args[0], above) && s.bounded(e.Args[1], !above)
	case ir.OpMul:
		return s.within(e.Args[0]) && s.within(e.Args[1])
	}
	return false
}

// within reports whether an index is bounded on both sides.
func (s *Speller) within(e *ir.Expr) bool { return s.bounded(e, false) && s.bounded(e, true) }

// boundedByCondition reports whether a condition that holds here bounds e by ranges and sizes. The
// condition may compare e itself, a multiple of e, or e plus something made of ranges and sizes.
func (s *Speller) boundedByCondition(e *ir.Expr, above bool) bool {
	for _, c := range s.bounds {
		if c.Op != ir.OpLt && c.Op != ir.OpLe || c.Args[0].Type != ir.Index {
			continue
		}
		of, other := c.Args[0], c.Args[1]
		if !above {
			of, other = other, of
		}
		if !ir.OfData(other) && grownFrom(of, e) {
			return true
		}
	}
	return false
}

// grownFrom reports whether x is e, or a positive multiple of e, plus something made of ranges
// and sizes.
func grownFrom(x, e *ir.Expr) bool {
	switch {
	case ir.Equal(x, e):
		return true
	case x.Op == ir.OpAdd && !ir.OfData(x.Args[1]), x.Op == ir.OpMul && x.Args[1].Op == ir.OpConst && x.Args[1].Int > 0:
		return grownFrom(x.Args[0], e)
	case x.Op == ir.OpAdd && !ir.OfData(x.Args[0]), x.Op == ir.OpMul && x.Args[0].Op == ir.OpConst && x.Args[0].Int > 0:
		return grownFrom(x.Args[1], e)
	}
	return false
}

// exact reports whether an index in INDEX has its true value. Other indices are clamped to the ends
// of INDEX.
func (s *Speller) exact(e *ir.Expr) bool {
	if !ir.OfData(e) {
		return true
	}
	switch e.Op {
	case ir.OpCast:
		t := e.Args[0].Type
		return t.Size() <= 4 && t != ir.U32 && !t.IsFloat() || s.within(e)
	case ir.OpLocal:
		return e.Local.Def != nil && s.exact(e.Local.Def)
	case ir.OpMin, ir.OpMax:
		return s.exact(e.Args[0]) && s.exact(e.Args[1]) || s.within(e)
	case ir.OpSelect:
		return s.exact(e.Args[1]) && s.exact(e.Args[2])
	}
	return !s.outgrows(e) || s.within(e)
}

// outgrows reports whether an operation on indices has to be computed in 64 bits.
func (s *Speller) outgrows(e *ir.Expr) bool {
	if !ir.OfData(e) {
		return false
	}
	switch e.Op {
	case ir.OpAdd, ir.OpSub, ir.OpMul, ir.OpNeg:
		for _, a := range e.Args {
			if !s.within(a) {
				return true
			}
		}
		return e.Op == ir.OpMul && ir.OfData(e.Args[0]) && ir.OfData(e.Args[1])
	case ir.OpFloorDiv, ir.OpMod:
		return !s.exact(e.Args[0]) || !s.exact(e.Args[1])
	}
	return false
}

// comparesWide reports whether a comparison of indices has to be done in 64 bits, because a side that
// is clamped to the ends of INDEX could become equal to the other side.
func (s *Speller) comparesWide(e *ir.Expr) bool {
	a, b := e.Args[0], e.Args[1]
	return !s.exact(a) && !s.within(b) || !s.exact(b) && !s.within(a)
}

// wide writes an index in 64 bits.
func (s *Speller) wide(e *ir.Expr) string {
	if !ir.OfData(e) {
		return "(long long)" + s.Expr(e)
	}
	switch e.Op {
	case ir.OpCast:
		if from := e.Args[0]; from.Type.IsFloat() {
			return "to_i64(" + s.Bare(from) + ")"
		}
		return "(long long)" + s.Expr(e.Args[0])
	case ir.OpLocal:
		return "(long long)" + s.Expr(e)
	case ir.OpSelect:
		return fmt.Sprintf("(%s ? %s : %s)", s.Expr(e.Args[0]), s.wide(e.Args[1]), s.wide(e.Args[2]))
	}
	if ir.Needs128(e, ir.SizeBits) {
		return "clamped(" + s.operation128(e) + ")"
	}
	if e.Op == ir.OpNeg {
		return fmt.Sprintf("sub_saturating(0LL, %s)", s.wide(e.Args[0]))
	}
	a, b := s.wide(e.Args[0]), s.wide(e.Args[1])
	if fits := ir.IndexBits(e, ir.SizeBits) < 64; fits && spellings[e.Op].infix != "" {
		return fmt.Sprintf("(%s %s %s)", a, spellings[e.Op].infix, b)
	}
	switch e.Op {
	case ir.OpAdd:
		return fmt.Sprintf("add_saturating(%s, %s)", a, b)
	case ir.OpSub:
		return fmt.Sprintf("sub_saturating(%s, %s)", a, b)
	case ir.OpMul:
		return fmt.Sprintf("mul_saturating(%s, %s)", a, b)
	}
	return fmt.Sprintf(s.format(spellings[e.Op], ir.Index), a, b)
}

// in128 writes an index that may not fit 64 bits.
func (s *Speller) in128(e *ir.Expr) string {
	switch {
	case !ir.MayOverflow(e, ir.SizeBits):
		return "int128(" + s.wide(e) + ")"
	case e.Op == ir.OpSelect:
		return fmt.Sprintf("(%s ? %s : %s)", s.Expr(e.Args[0]), s.in128(e.Args[1]), s.in128(e.Args[2]))
	}
	return s.operation128(e)
}

// operation128 writes an operation on such indices.
func (s *Speller) operation128(e *ir.Expr) string {
	if e.Op == ir.OpNeg {
		return "(int128(0LL) - " + s.in128(e.Args[0]) + ")"
	}
	a, b := s.in128(e.Args[0]), s.in128(e.Args[1])
	if infix := spellings[e.Op].infix; infix != "" {
		return fmt.Sprintf("(%s %s %s)", a, infix, b)
	}
	return fmt.Sprintf(s.format(spellings[e.Op], ir.Index), a, b)
}
