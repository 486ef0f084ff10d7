package fuse

import (
	"github.com/fusec/fusec/fuse/forecast"
	"github.com/fusec/fusec/ir"
)

// widestPacked is the most elements that one piece reads of a tensor. Strided reads of more would fetch
// bytes that nothing uses.
const widestPacked = 64

// pieces rewrites an operand's value for length neighbours along inner. A read that serves several of
// them, of packed integers or of the scale of a group, becomes one access: the index algebra says which of
// the elements read belongs to which neighbour. It returns nil where a read is guarded, is a gather or is
// not aligned, or where inner's extent is no whole number of pieces.
func (lo productKernel) pieces(value *ir.Expr, locals []*ir.Local, inner *ir.Range, length int, facts ir.Facts) *ir.Piece {
	if !ir.Multiple(inner.Extent, int64(length), facts) {
		return nil
	}
	p := &ir.Piece{Length: length, Inner: inner}
	count := ir.Simplify(ir.Apply(ir.OpFloorDiv, inner.Extent, ir.IntConst(int64(length))), facts)
	p.Outer, p.Lane = lo.g.NewRange(inner.Name+"_piece", count), lo.g.NewRange("v", ir.IntConst(int64(length)))
	s := &splitting{piece: p, facts: facts, locals: map[*ir.Local]*ir.Local{}, reads: map[*ir.Expr]*ir.Local{}, lo: lo.kernel}
	for _, l := range ir.LocalsIn(locals, value) {
		c := *l
		c.Def = s.expr(l.Def)
		s.locals[l] = &c
		p.Locals = append(p.Locals, &c)
	}
	p.Value = s.expr(value)
	if s.failed {
		return nil
	}
	return p
}

// splitting rewrites expressions over inner to ones over pieces and lanes.
type splitting struct {
	lo     *kernel
	piece  *ir.Piece
	facts  ir.Facts
	locals map[*ir.Local]*ir.Local
	reads  map[*ir.Expr]*ir.Local
	failed bool
}

func (s *splitting) expr(e *ir.Expr) *ir.Expr {
	p := s.piece
	at := ir.Apply(ir.OpAdd, ir.Apply(ir.OpMul, p.Outer.At(), ir.IntConst(int64(p.Length))), p.Lane.At())
	e = ir.Simplify(ir.Substitute(e, map[*ir.Range]*ir.Expr{p.Inner: at}), s.facts)
	return ir.Rewrite(e, func(e *ir.Expr) *ir.Expr {
		switch e.Op {
		case ir.OpLocal:
			if l := s.locals[e.Local]; l != nil {
				return ir.LocalRef(l)
			}
		case ir.OpRead:
			return s.read(e)
		case ir.OpRandom: // random numbers are drawn in blocks of their own
			s.failed = true
		}
		return e
	})
}

// read turns e into a packed read.
func (s *splitting) read(e *ir.Expr) *ir.Expr {
	for known, l := range s.reads {
		if ir.Equal(known, e) {
			return ir.LocalRef(l)
		}
	}
	p, ok := s.packed(e)
	if !ok {
		s.failed = true
		return e
	}
	l := s.lo.local(e.Arg.Name, e.Type, ir.FullLevel)
	l.Span = e.Span
	p.Local = l
	s.reads[e] = l
	s.piece.Reads = append(s.piece.Reads, p)
	return ir.LocalRef(l)
}

func (s *splitting) packed(e *ir.Expr) (p ir.Packed, ok bool) {
	if e.Guard != nil && !e.Guard.IsConst(1) || ir.Has(e.Args[0], ir.OpLocal, ir.OpRead) {
		return p, false
	}
	lane := s.piece.Lane
	first := ir.AtZero(e.Args[0], lane)
	p = ir.Packed{Arg: e.Arg, Base: ir.Simplify(first, s.facts)}
	p.At = ir.Simplify(ir.Apply(ir.OpSub, e.Args[0], first), s.facts)
	for r := range ir.FreeRanges(p.At) {
		if r != lane {
			return p, false
		}
	}
	most := int64(0)
	for v := range s.piece.Length {
		at := ir.Simplify(ir.Substitute(p.At, map[*ir.Range]*ir.Expr{lane: ir.IntConst(int64(v))}), s.facts)
		if at.Op != ir.OpConst || at.Int < 0 || at.Int >= widestPacked {
			return p, false
		}
		most = max(most, at.Int)
	}
	p.Width = 1
	for int64(p.Width) <= most {
		p.Width *= 2
	}
	access := min(p.Width, forecast.AccessBytes/e.Type.Size())
	return p, ir.Multiple(p.Base, int64(access), s.facts)
}
