package form

import (
	"slices"

	"github.com/fusec/fusec/ir"
)

// expansions are the expanded bodies that a graph keeps. Many passes make a recogniser, and few values change in between. Each
// expansion is kept with all the values that it looked at, as they were then: while these are the same, so is the expansion.
type expansions struct{ of map[expansionOf]*expansion }

// expansionOf is what was expanded: a body over all products, or over one alone.
type expansionOf struct {
	body *ir.Expr
	over *ir.Value // nil for all products
}

type expansion struct {
	whole    *ir.Expr
	lookedAt []lookedAt
}

// lookedAt is a value that an expansion looked at, and all of it on which expansions depend.
type lookedAt struct {
	v    *ir.Value
	axes []*ir.Range
	is   aspects
}

type aspects struct {
	body                   *ir.Expr
	reduced                bool
	product, near, through bool // what the recogniser says about the value
}

type expansionsKey struct{}

// expansionsOf is what a graph keeps.
func expansionsOf(g *ir.Graph) *expansions {
	kept, ok := ir.Kept[*expansions](g, expansionsKey{})
	if !ok {
		kept = &expansions{of: map[expansionOf]*expansion{}}
		g.Keep(expansionsKey{}, kept)
	}
	return kept
}

// expandOnce is expand of the body of a value, over one product, or over all where that is nil. It returns the kept expansion
// while that is right.
func (m *Recogniser) expandOnce(v, over *ir.Value, through map[*ir.Value]bool) *ir.Expr {
	key := expansionOf{v.Body, over}
	if x := m.kept.of[key]; x != nil && m.holds(x, through) {
		return x.whole
	}
	seen := map[*ir.Value]bool{}
	x := &expansion{whole: m.expand(v.Body, through, seen)}
	for u := range seen {
		x.lookedAt = append(x.lookedAt, lookedAt{u, slices.Clone(u.Axes), m.aspectsOf(u, through)})
	}
	m.kept.of[key] = x
	return x.whole
}

// aspectsOf is a value as it is now.
func (m *Recogniser) aspectsOf(v *ir.Value, through map[*ir.Value]bool) aspects {
	return aspects{v.Body, v.Reduce != nil, m.products[v], m.near[v], through[v]}
}

// holds reports whether the values that an expansion looked at are as they were.
func (m *Recogniser) holds(x *expansion, through map[*ir.Value]bool) bool {
	for i := range x.lookedAt {
		then := &x.lookedAt[i] // not copied: there are many
		if m.aspectsOf(then.v, through) != then.is || !slices.Equal(then.v.Axes, then.axes) {
			return false
		}
	}
	return true
}

// expand substitutes into e the pointwise values between it and the products that it reads. It also
// substitutes values with an element for each pair of a row of one operand and a row of the other, such
// as masks and biases. It adds the values that it looks at to seen.
func (m *Recogniser) expand(e *ir.Expr, through, seen map[*ir.Value]bool) *ir.Expr {
	loads := ir.Loads(e)
	see(seen, loads)
	for m.productsWithin(loads, through, seen) <= mostProducts {
		grown := m.views.expand(e, through)
		loads = ir.Loads(grown)
		see(seen, loads)
		products := m.pairsIn(loads)
		if products.distinct() > mostProducts {
			return e
		}
		if isPair := func(l *ir.Expr) bool { return m.perPair(l, products) }; slices.ContainsFunc(loads, isPair) {
			grown = ir.Rewrite(grown, func(l *ir.Expr) *ir.Expr {
				if l.Op == ir.OpLoad && isPair(l) {
					return m.views.bodyAt(l)
				}
				return l
			})
			loads = ir.Loads(grown)
			see(seen, loads)
		}
		if grown == e || CostOf(grown).Nodes > largestStream {
			return e
		}
		e = grown
	}
	return e
}

// see adds the values that loads read to seen.
func see(seen map[*ir.Value]bool, loads []*ir.Expr) {
	for _, l := range loads {
		seen[l.From] = true
	}
}
