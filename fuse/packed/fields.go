// Package packed finds elements that are packed into integers: which bits of an integer hold each element, and how the
// element is computed from these bits.
package packed

import (
	"math/bits"
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/num"
)

// Fields finds at which bits of a packed read the elements of a piece are, and which multiply-adds in t,
// a 16-bit float, compute the elements from these bits; nil where there is no such way. It does not match
// what the program writes: it evaluates the program for every value that a field may have. So masks, signs
// by shifts or by a comparison, zero points, and any order of the fields all come out the same.
func Fields(p *ir.Piece, t ir.DType) *ir.Fields {
	read := packedRead(p)
	if read < 0 {
		return nil
	}
	f := slotsOf(p, read)
	if f == nil {
		return nil
	}
	taken := make([]bool, p.Length)
	for v := range p.Length {
		one, bit := elementField(p, read, v)
		if one == nil || v > 0 && !one.alike(f) {
			return nil
		}
		if v == 0 {
			f.First, f.Width, f.Flip, f.Step, f.Base, f.Offset = bit%f.Bits, one.width, one.flip, one.step, one.base, one.offset
		}
		slot := slotOf(bit, f.Bits)
		if bit%f.Bits != f.First || slot >= p.Length || taken[slot] {
			return nil
		}
		f.Order[slot], taken[slot] = v, true
	}
	if f.First+f.Width > f.Bits || !exact(f, t) || f.Offset != nil && ir.DependsOn(f.Offset, p.Lane) {
		return nil
	}
	return f
}

// packedRead is the index of the one read of a piece that reads several integers; -1 where there are
// several such reads, or none.
func packedRead(p *ir.Piece) int {
	several := func(r ir.Packed) bool { return r.Width > 1 }
	read := slices.IndexFunc(p.Reads, several)
	if read < 0 || slices.ContainsFunc(p.Reads[read+1:], several) || !p.Reads[read].Arg.Type.IsInt() {
		return -1
	}
	return read
}

// slotsOf divides a packed read evenly among the elements of a piece; nil where that does not give slots
// of 2 to 16 bits, a power of two, that fill words.
func slotsOf(p *ir.Piece, read int) *ir.Fields {
	size := p.Reads[read].Width * p.Reads[read].Arg.Type.Size() * 8
	f := &ir.Fields{Read: read, Bits: size / p.Length, Order: make([]int, p.Length)}
	if f.Bits < 2 || f.Bits > 16 || f.Bits*p.Length != size || bits.OnesCount(uint(f.Bits)) != 1 || size%32 != 0 {
		return nil
	}
	return f
}

// elementField is element v of a piece as a function of one bit field, and the bit of the read at which
// that field starts; nil where it is no such function.
func elementField(p *ir.Piece, read, v int) (one *unpacking, bit int) {
	main := p.Reads[read]
	at := map[*ir.Range]*ir.Expr{p.Lane: ir.IntConst(int64(v))}
	element := ir.Simplify(ir.Substitute(main.At, at), ir.Facts{})
	one = unpackingOf(ir.Simplify(ir.Substitute(algebra.WithoutLocals(p.Value), at), ir.Facts{}), main.Local)
	if one == nil || element.Op != ir.OpConst {
		return nil, 0
	}
	return one, int(element.Int)*main.Arg.Type.Size()*8 + one.first
}

// slotOf is the slot of the field that starts at a bit of the read.
func slotOf(bit, size int) int {
	word, in := bit/32, bit%32/size
	pairs := 16 / size
	return 2*(word*pairs+in%pairs) + in/pairs
}

// exact reports whether the one or two multiply-adds that compute an element from a field lose nothing in
// t, apart from the rounding of the element itself.
func exact(f *ir.Fields, t ir.DType) bool {
	if f.Width > t.Info().Mantissa && !f.Wide(t) || num.Round(t, f.Step) != f.Step {
		return false
	}
	offsets := []float64{0}
	if f.Offset != nil {
		in, whole := wholeRangeOf(f.Offset)
		if !whole {
			f.Twice = true
			return f.Base == 0 && isElementOf(f.Offset, t)
		}
		offsets = nil
		for v := in.lo; v <= in.hi; v++ {
			offsets = append(offsets, float64(v))
		}
	}
	for _, f.Twice = range []bool{false, true} {
		if allExact(f, t, offsets) {
			return true
		}
	}
	return false
}

// allExact reports whether t holds the addend and the result for every offset and every field.
func allExact(f *ir.Fields, t ir.DType, offsets []float64) bool {
	if f.Wide(t) && !f.Twice && (f.Step != 1 || f.Added(t) != 0 || f.Offset != nil) {
		return false
	}
	for _, offset := range offsets {
		added := f.Added(t) + offset
		if num.Round(t, added) != added {
			return false
		}
		for field := range 1 << f.Width {
			if v := f.Step*float64(field) + f.Base + offset; num.Round(t, v) != v {
				return false
			}
		}
	}
	return true
}

// isElementOf reports whether an expression is an element of a tensor of type t, or the negative of one.
func isElementOf(e *ir.Expr, t ir.DType) bool {
	for e.Op == ir.OpNeg || e.Op == ir.OpCast && e.Type == ir.F32 {
		e = e.Args[0]
	}
	return e.Op == ir.OpLocal && e.Type == t
}

// unpacking is an element as a function of one bit field: step*(field^flip) + base + offset.
type unpacking struct {
	bitField
	flip       int64
	step, base float64
	offset     *ir.Expr
}

func (u *unpacking) alike(f *ir.Fields) bool {
	same := u.offset == nil && f.Offset == nil || u.offset != nil && f.Offset != nil && ir.Equal(u.offset, f.Offset)
	return same && u.width == f.Width && u.flip == f.Flip && u.step == f.Step && u.base == f.Base
}

// unpackingOf writes e, an f32 over the element from, as such a function; nil where it is none.
func unpackingOf(e *ir.Expr, from *ir.Local) *unpacking {
	u := &unpacking{}
	var term *ir.Expr
	added := 0.0
	for _, t := range termsOf(e) {
		switch {
		case t.Op == ir.OpConst:
			added += t.Val
		case algebra.ReadsLocal(t, from) && term != nil:
			return nil
		case algebra.ReadsLocal(t, from):
			term = t
		case u.offset == nil:
			u.offset = t
		default:
			u.offset = ir.Apply(ir.OpAdd, u.offset, t)
		}
	}
	if term == nil || e.Type != ir.F32 {
		return nil
	}
	x := &evaluation{from: from}
	field, ok := x.only(term)
	if !ok || field.width > ir.BF16.Info().Mantissa && field.width > ir.F16.Info().Mantissa {
		return nil
	}
	u.bitField = field
	values := make([]float64, 1<<field.width)
	for raw := range values {
		x.raw = int64(raw)
		v, ok := x.value(term)
		if !ok {
			return nil
		}
		values[raw] = v.f + added
	}
	return u.line(values)
}

// line finds the straight line through the values of the fields: in the order of the fields, or with their
// highest bit flipped, which is the order of signed fields.
func (u *unpacking) line(values []float64) *unpacking {
	for _, flip := range []int64{0, int64(len(values) / 2)} {
		base := values[flip]
		step := values[1^flip] - base
		straight := step != 0
		for field, v := range values {
			straight = straight && v == base+step*float64(int64(field)^flip)
		}
		if straight {
			u.flip, u.step, u.base = flip, step, base
			return u
		}
	}
	return nil
}

// sumParts is what a sum or a difference is made of, and what is negated or converted; nil for others.
func sumParts(e *ir.Expr) []*ir.Expr {
	if e.Op == ir.OpCast {
		return e.Args
	}
	return ir.SumParts(e)
}

// termsOf flattens a sum of floats. It flattens a sum of integers too, where that is so small that it is
// exact before and after its conversion to a float.
func termsOf(e *ir.Expr) []*ir.Expr {
	switch {
	case ir.Flattened(e, sumParts)[0] == e:
		return []*ir.Expr{e} // one term, or too many
	case e.Op == ir.OpAdd:
		return append(termsOf(e.Args[0]), termsOf(e.Args[1])...)
	case e.Op == ir.OpSub:
		return append(termsOf(e.Args[0]), negated(termsOf(e.Args[1]))...)
	case e.Op == ir.OpNeg:
		return negated(termsOf(e.Args[0]))
	case e.Op == ir.OpCast && e.Type.IsFloat() && e.Args[0].Type.IsInt():
		if _, ok := wholeRangeOf(e.Args[0]); !ok {
			return []*ir.Expr{e}
		}
		terms := termsOf(e.Args[0])
		for i, t := range terms {
			if _, ok := wholeRangeOf(t); !ok {
				return []*ir.Expr{e}
			}
			terms[i] = ir.Cast(t, e.Type)
		}
		return terms
	}
	return []*ir.Expr{e}
}

func negated(terms []*ir.Expr) []*ir.Expr {
	for i, t := range terms {
		if t.Op == ir.OpConst {
			terms[i] = ir.IntNum(t.Type, -t.Int)
			if t.Type.IsFloat() {
				terms[i] = ir.Num(t.Type, -t.Val)
			}
			continue
		}
		terms[i] = ir.Apply(ir.OpNeg, t)
	}
	return terms
}
