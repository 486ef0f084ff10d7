package passes

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// scaleSums moves constant factors from an operand of a product to its sums: (q * 0.125) @ k becomes 0.125 times q @ k. The
// operand is then a tensor that is in memory anyway, and none has to be computed, rounded, written and read. What is computed
// for the operand alone keeps its factors, because its kernel multiplies by them for nothing.
func scaleSums(g *ir.Graph) {
	if g.Numerics == ir.Strict {
		return
	}
	s := &scales{rs: newReaches(g), readers: readersOf(g), results: resultsOf(g), operands: map[*ir.Value]bool{}}
	for _, t := range g.Values {
		if t.Body != nil && t.Reduce == nil && form.IsHalf(t.Type) && !s.results[t] && len(s.readers[t]) > 0 {
			s.operands[t] = !slices.ContainsFunc(s.readers[t], func(v *ir.Value) bool { return s.scaled(v, t) == nil })
		}
	}
	insertAfter(g, func(v *ir.Value) *ir.Value {
		for _, l := range v.Loads() {
			if !s.operands[l.From] {
				continue
			}
			if p := s.scaled(v, l.From); p != nil { // nil where what it scales is a new value now
				return scaledSums(g, v, p.products, p.factors)
			}
		}
		return nil
	})
	DropDead(g)
}

// scales is what scaleSums asks about a graph.
type scales struct {
	rs       *reaches
	readers  map[*ir.Value][]*ir.Value
	results  map[*ir.Value]bool
	operands map[*ir.Value]bool // with factors that can be moved, in all products that read them
}

// A scaledProduct is a sum of products and the factors of all of its terms.
type scaledProduct struct {
	products *ir.Expr
	factors  []factor
}

// scaled writes a product with t as an operand as one of what t scales; nil where that is not possible, or not in memory.
func (s *scales) scaled(v, t *ir.Value) *scaledProduct {
	if !form.IsTileProduct(v) {
		return nil
	}
	a, b := form.SidesOf(v)
	if a == nil || b == nil {
		return nil
	}
	of := map[*ir.Value]bool{t: true}
	if _, ok := operandLoad(b, of); ok {
		a, b = b, a
	}
	load, ok := operandLoad(a, of)
	if !ok || slices.ContainsFunc(ir.Loads(b), func(l *ir.Expr) bool { return s.operands[l.From] || l.From == t }) {
		return nil
	}
	body := form.BodyAt(load)
	if body.Op == ir.OpCast && body.Args[0].Type == ir.F32 {
		body = body.Args[0]
	}
	inner, factors := splitFactors(body, algebra.RangeSet(algebra.AllRanges(v)), func(f factor) bool { return s.rs.safe(v, f) })
	if inner == nil || len(factors) == 0 {
		return nil
	}
	if inner = form.WithoutWidening(inner); inner.Op != ir.OpLoad || inner.Fill != nil || inner.Type != load.Type || !s.inMemory(inner.From) {
		return nil
	}
	return &scaledProduct{ir.Apply(ir.OpMul, ir.Cast(inner, ir.F32), ir.Cast(b, ir.F32)), factors}
}

// inMemory reports whether a value is written whatever becomes of one of its readers: an input, a result, or a sum that has
// other readers.
func (s *scales) inMemory(v *ir.Value) bool {
	return v.IsInput() || s.results[v] || v.Reduce != nil && len(s.readers[v]) > 1
}
