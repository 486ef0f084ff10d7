package parser

import (
	"math"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/diag"
)

// Indices are exact integers: those of range names, symbols and numbers, and what they are
// computed from, must be such that the difference of two fits in 64 bits. A bound of their
// magnitude is kept below mostIndex: now, for the least sizes, and for others when the
// symbols bind, where the numbers in it are large. Sizes alone are those of tensors in
// memory, and come nowhere near.

const (
	mostIndex  = 1 << 62
	largeIndex = 1 << 31 // of the numbers in an index, from which sizes matter
	largeBound = 1000    // nodes of a bound, beyond which it is not kept
)

// bound is of the magnitude of an index and of all that it is computed from.
type bound struct {
	size  *ir.Expr // over symbols; nil where the index depends on data, whose integers wrap
	least float64  // for sizes of 1
	nodes int      // of size, as a tree
}

type fitting struct {
	*builder
	bounds map[*ir.Expr]bound
}

// indicesFit checks every index of the graph.
func (b *builder) indicesFit() {
	f := &fitting{b, map[*ir.Expr]bound{}}
	for _, v := range b.g.Values {
		v.MapExprs(func(e *ir.Expr) *ir.Expr {
			f.check(e, v.Origin.Span)
			return e
		})
	}
}

// check checks the indices in e, those at the root of their kind.
func (f *fitting) check(e *ir.Expr, span diag.Span) {
	ir.Walk(e, func(e *ir.Expr) bool {
		if e.Op == ir.OpLoad && !e.Span.IsZero() {
			span = e.Span
		}
		if e.Type != ir.Index {
			return true
		}
		m := f.bound(e)
		switch {
		case m.size == nil:
			return true
		case m.least >= mostIndex:
			f.errorf(span, "the index %s does not stay below 2^62 in magnitude", sizeText(e))
		case m.least >= largeIndex && len(f.g.Symbols) > 0 && m.nodes <= largeBound:
			f.require(ir.Apply(ir.OpLt, m.size, ir.IntConst(mostIndex)), "the index "+sizeText(e)+" must stay below 2^62 in magnitude", span)
		}
		return false
	})
}

func (f *fitting) bound(e *ir.Expr) bound {
	m, ok := f.bounds[e]
	if !ok {
		m = f.boundOf(e)
		f.bounds[e] = m
	}
	return m
}

func (f *fitting) boundOf(e *ir.Expr) bound {
	switch e.Op {
	case ir.OpConst:
		n := max(e.Int, -e.Int, -(e.Int + 1)) // that of the least integer is one more
		return bound{ir.IntConst(n), float64(n), 1}
	case ir.OpSym:
		return bound{e, 1, 1}
	case ir.OpRange:
		return f.bound(e.Range.Extent)
	}
	args := e.Args
	if e.Op == ir.OpSelect {
		args = args[1:]
	}
	var out bound
	for i, a := range args {
		if a.Type != ir.Index || f.bound(a).size == nil {
			return bound{}
		}
		if m := f.bound(a); i == 0 {
			out = m
		} else {
			out = joined(e.Op, out, m)
		}
	}
	return out
}

// joined is the bound of an operation on two indices.
func joined(op ir.Op, a, b bound) bound {
	nodes := min(a.nodes+b.nodes+1, largeBound+1)
	switch op {
	case ir.OpAdd, ir.OpSub:
		return bound{addIndex(a.size, b.size), a.least + b.least, nodes}
	case ir.OpMul:
		return bound{mulIndex(a.size, b.size), a.least * b.least, nodes}
	}
	return bound{indexOp(ir.OpMax, a.size, b.size), math.Max(a.least, b.least), nodes}
}
