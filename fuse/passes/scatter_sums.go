package passes

import (
	"slices"

	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// addBeforeScatters adds what goes to the same rows by the same key before it goes there: the sum of
// sum[n where key[n] == v] a[n] and sum[n where key[n] == v] b[n] is sum[n where key[n] == v] (a[n] + b[n]). Gradients of
// a table whose rows are read once and used several times are such sums. The order of additions changes, so strict graphs
// keep both.
func addBeforeScatters(g *ir.Graph) {
	if g.Numerics == ir.Strict {
		return
	}
	s := &scatterSums{g: g, readers: countReaders(g)}
	insertBefore(g, func(w *ir.Value) []*ir.Value {
		s.made = nil
		if w.Body != nil && w.Reduce == nil {
			w.Body = ir.Rewrite(w.Body, s.joined)
		}
		return s.made
	})
	DropDead(g)
}

// scatterSums makes the joint scatters of a graph.
type scatterSums struct {
	g       *ir.Graph
	readers map[*ir.Value]int
	made    []*ir.Value // for the value at hand
}

// addend is a term of a sum, or what is taken from it.
type addend struct {
	e     *ir.Expr
	minus bool
}

// added is the addend as a term.
func (a addend) added() *ir.Expr {
	if a.minus {
		return ir.Apply(ir.OpNeg, a.e)
	}
	return a.e
}

// to is a sum with the addend.
func (a addend) to(sum *ir.Expr) *ir.Expr {
	if a.minus {
		return ir.Apply(ir.OpSub, sum, a.e)
	}
	return ir.Apply(ir.OpAdd, sum, a.e)
}

// joined is a sum with one term for all scatters by the same key.
func (s *scatterSums) joined(e *ir.Expr) *ir.Expr {
	if e.Op != ir.OpAdd && e.Op != ir.OpSub {
		return e
	}
	if ir.Flattened(e, ir.SumParts)[0] == e {
		return e // it has too many terms
	}
	terms := addendsOf(e, false, nil)
	before := len(terms)
	for i := 0; i < len(terms); i++ {
		for j := i + 1; j < len(terms); j++ {
			if u := s.together(terms[i], terms[j]); u != nil {
				terms[i] = addend{e: ir.Load(u, terms[i].e.Args, nil).At(e.Span)}
				terms = slices.Delete(terms, j, j+1)
				j--
			}
		}
	}
	if len(terms) == before {
		return e
	}
	out := terms[0].added()
	for _, t := range terms[1:] {
		out = t.to(out).At(e.Span)
	}
	return out
}

// addendsOf lists the terms of nested sums and differences.
func addendsOf(e *ir.Expr, minus bool, out []addend) []addend {
	switch e.Op {
	case ir.OpAdd:
		return addendsOf(e.Args[1], minus, addendsOf(e.Args[0], minus, out))
	case ir.OpSub:
		return addendsOf(e.Args[1], !minus, addendsOf(e.Args[0], minus, out))
	case ir.OpNeg:
		return addendsOf(e.Args[0], !minus, out)
	}
	return append(out, addend{e, minus})
}

// together is the scatter of the sum of what two scatters add, where both are read at the same place and nowhere else, and
// take the same columns; nil where they are not.
func (s *scatterSums) together(x, y addend) *ir.Value {
	if !s.sums(x.e) || !s.sums(y.e) || !slices.EqualFunc(x.e.Args, y.e.Args, ir.Equal) {
		return nil
	}
	a, b := x.e.From, y.e.From
	if a == b || a.Type != b.Type || !sameExtents(a.Axes, b.Axes) || !sameExtents(a.Reduce.Ranges, b.Reduce.Ranges) {
		return nil
	}
	at := map[*ir.Range]*ir.Expr{}
	for i, r := range b.Axes {
		at[r] = a.Axes[i].At()
	}
	for i, r := range b.Reduce.Ranges {
		at[r] = a.Reduce.Ranges[i].At()
	}
	whereA, bodyA := conditionAndTerm(a)
	whereB, bodyB := conditionAndTerm(b)
	if !sameConditions(whereA, ir.Substitute(whereB, at)) {
		return nil
	}
	r := *a.Reduce
	r.Where = whereA
	body := addend{ir.Substitute(bodyB, at), y.minus}.to(addend{bodyA, x.minus}.added())
	u := freshAxes(s.g, &ir.Value{Name: a.Name, Type: a.Type, Axes: a.Axes, Body: body, Reduce: &r, Origin: a.Origin})
	s.made = append(s.made, u)
	s.readers[u] = 1
	return u
}

// sums reports whether a term is the result of a scatter that adds in the type of its result, and that nothing else reads.
func (s *scatterSums) sums(e *ir.Expr) bool {
	if e.Op != ir.OpLoad || e.Fill != nil || e.From.Reduce == nil || s.readers[e.From] != 1 {
		return false
	}
	v := e.From
	return v.Reduce.Op == ir.Sum && v.Type.IsFloat() && v.Type == v.Body.Type && v.Type == ir.Sum.Accumulator(v.Type) && form.ScatterIn(v) != nil
}

// conditionAndTerm is the condition of a scatter, and what it folds there.
func conditionAndTerm(v *ir.Value) (where, term *ir.Expr) {
	if v.Reduce.Where != nil {
		return v.Reduce.Where, v.Body
	}
	return form.ConditionIn(v.Reduce.Op, v.Body)
}

// sameConditions reports whether two conditions have the same parts, in any order.
func sameConditions(a, b *ir.Expr) bool {
	within := func(a, b []*ir.Expr) bool {
		return !slices.ContainsFunc(a, func(c *ir.Expr) bool {
			return !slices.ContainsFunc(b, func(d *ir.Expr) bool { return ir.Equal(c, d) })
		})
	}
	x, y := form.Conditions(a), form.Conditions(b)
	return within(x, y) && within(y, x)
}
