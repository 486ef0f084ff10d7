package passes

import (
	"slices"

	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// Which products are added: sums are flattened, also through values that only other sums read, as those of linear(x, w, b) + linear(h, u, c) are.

// findTerms finds the sums that only other sums read.
func (p *productAdder) findTerms() {
	p.terms = map[*ir.Value]bool{}
	for _, v := range p.g.Values {
		p.terms[v] = !v.IsInput() && v.Reduce == nil && form.Stripped(v.Body).Op == ir.OpAdd && v.Type.IsFloat()
	}
	for _, o := range p.g.Outputs {
		p.terms[o.Value] = false
	}
	for _, v := range p.g.Values {
		p.eachLoad(v, func(l *ir.Expr, added bool) {
			if !added || l.Fill != nil {
				p.terms[l.From] = false
			}
		})
	}
}

// eachLoad calls f for each load of a value, with whether it is a term of a sum.
func (p *productAdder) eachLoad(v *ir.Value, f func(l *ir.Expr, added bool)) {
	if v.IsInput() {
		return
	}
	var walk func(e *ir.Expr)
	walk = func(e *ir.Expr) {
		ir.Walk(e, func(e *ir.Expr) bool {
			if e.Op == ir.OpLoad {
				f(e, false)
			}
			if e.Op != ir.OpAdd || !e.Type.IsFloat() {
				return true
			}
			terms := written(e)
			if terms[0] == e {
				return true // it has too many
			}
			for _, term := range terms {
				if l := form.Stripped(term); l.Op == ir.OpLoad {
					f(l, true)
					for _, at := range l.Args {
						walk(at)
					}
				} else {
					walk(term)
				}
			}
			return false
		})
	}
	walk(v.Body)
	if v.Reduce != nil {
		walk(v.Reduce.Where)
		walk(v.Reduce.Rank)
	}
}

// findPairs finds the products that are added, and those that something else reads.
func (p *productAdder) findPairs() {
	p.pairs, p.alone = map[[2]*ir.Value]bool{}, map[*ir.Value]bool{}
	for _, o := range p.g.Outputs {
		p.alone[o.Value] = true
	}
	for _, v := range p.g.Values {
		if p.terms[v] || v.IsInput() {
			continue
		}
		p.eachLoad(v, func(l *ir.Expr, added bool) {
			p.alone[l.From] = p.alone[l.From] || !added
		})
		p.eachSum(v.Body, func(e *ir.Expr) {
			terms := p.allTerms(e)
			if a := p.added(e); a != nil {
				p.pairs[a.pair], terms = true, a.others
			}
			for _, term := range terms {
				if l := form.Stripped(term); l.Op == ir.OpLoad {
					p.alone[l.From] = true
				}
			}
		})
	}
}

// eachSum calls f for each sum in an expression that is no term of another.
func (p *productAdder) eachSum(e *ir.Expr, f func(*ir.Expr)) {
	ir.Walk(e, func(e *ir.Expr) bool {
		if e.Op != ir.OpAdd || !e.Type.IsFloat() {
			return true
		}
		terms := p.allTerms(e)
		if terms[0] == e {
			return true // it has too many
		}
		f(e)
		for _, term := range terms {
			if term = form.Stripped(term); term.Op != ir.OpLoad {
				p.eachSum(term, f)
			}
		}
		return false
	})
}

// An addedPair is two products of 16-bit tensors, each over one range, of which the same element is added, with its indices, and what else is
// added.
type addedPair struct {
	pair       [2]*ir.Value
	at, others []*ir.Expr
}

// added is the first two products of a sum of terms; nil where there are no two.
func (p *productAdder) added(e *ir.Expr) *addedPair {
	if e.Op != ir.OpAdd || !e.Type.IsFloat() {
		return nil
	}
	var first *ir.Expr
	var out *addedPair
	terms := p.allTerms(e)
	for _, term := range terms {
		switch l := form.Stripped(term); {
		case !isAddedProduct(l) || p.isWeighted(l.From):
		case first == nil:
			first = l
		case l.From != first.From && slices.EqualFunc(l.Args, first.Args, ir.Equal):
			out = &addedPair{pair: [2]*ir.Value{first.From, l.From}, at: l.Args}
		}
		if out != nil {
			break
		}
	}
	if out == nil {
		return nil
	}
	for _, term := range terms {
		if l := form.Stripped(term); l.Op != ir.OpLoad || !slices.Contains(out.pair[:], l.From) || !slices.EqualFunc(l.Args, out.at, ir.Equal) {
			out.others = append(out.others, term)
		}
	}
	if len(out.others) != len(terms)-2 { // a product is added twice
		return nil
	}
	return out
}

// isWeighted reports whether a product is a sum of attention.
func (p *productAdder) isWeighted(v *ir.Value) bool {
	if p.weighted == nil {
		p.weighted = form.Weighted(p.g)
	}
	return p.weighted[v]
}

// allTerms are what a sum adds, also through sums that nothing computes. Under fast, kernels do not round these.
func (p *productAdder) allTerms(e *ir.Expr) (out []*ir.Expr) {
	for open := written(e); len(open) > 0; {
		term := open[0]
		open = open[1:]
		if l := form.Stripped(term); l.Op == ir.OpLoad && p.terms[l.From] && len(out)+len(open) < mostAdded {
			open = append(written(form.BodyAt(l)), open...)
		} else {
			out = append(out, term)
		}
	}
	return out
}

// mostAdded is the most terms of a sum: each of two sums may read both of those before it, and so on.
const mostAdded = 16

// written are what a sum adds as it is written.
func written(e *ir.Expr) []*ir.Expr {
	return ir.Flattened(e, func(e *ir.Expr) []*ir.Expr {
		if inner := form.Stripped(e); inner.Op == ir.OpAdd && inner.Type.IsFloat() {
			return inner.Args
		}
		return nil
	})
}

func isAddedProduct(e *ir.Expr) bool {
	if e.Op != ir.OpLoad || e.Fill != nil || !form.IsTileProduct(e.From) {
		return false
	}
	r := e.From.Reduce
	return r.Where == nil && len(r.Ranges) == 1
}
