package form

import (
	"maps"
	"slices"

	"github.com/fusec/fusec/ir"
)

// Recogniser finds the streams of a graph.
type Recogniser struct {
	Graph    *ir.Graph
	products map[*ir.Value]bool        // sums of products of two 16-bit tensors
	rows     map[*ir.Value]operandRows // of products, computed when first needed
	near     map[*ir.Value]bool        // pointwise values that read a reduced product
	reading  []*ir.Value               // reductions and results that read a product, found when first needed
	whole    map[*ir.Value]*ir.Expr    // their bodies, over products, computed when first needed
	loads    [][]*ir.Expr              // of each value of the graph
	users    map[*ir.Value][]*ir.Value // reductions, and results, whose bodies read a product
	read     map[*ir.Value][]*ir.Value // products that the bodies of values read, computed when first needed
	related  map[*ir.Value][]*ir.Expr  // by a product, the bodies of its users over it, computed when first needed
}

// largestStream is the most nodes of a body in which the pointwise values between product and sum are
// substituted: mask, bias and softmax take a few dozen.
const largestStream = 1000

// mostProducts is the most products that such a body reads: the scores and a few more. A residual stream is a sum
// of products of all layers; substituting it into each reader would take longer the deeper the network is.
const mostProducts = 8

// NewRecogniser finds the products of a graph. What they are read by is looked at when it is first asked for, and as the
// graph is then: who changes the graph asks before. Most graphs have no products, and some questions need no more than a
// look at the reductions.
func NewRecogniser(g *ir.Graph) *Recogniser {
	m := &Recogniser{Graph: g, products: map[*ir.Value]bool{}, near: map[*ir.Value]bool{},
		rows: map[*ir.Value]operandRows{}, users: map[*ir.Value][]*ir.Value{},
		read: map[*ir.Value][]*ir.Value{}, related: map[*ir.Value][]*ir.Expr{}}
	for _, v := range g.Values {
		if isProduct(v) {
			m.products[v] = true
		}
	}
	return m
}

// readers are the reductions and results that read a product, directly or through pointwise values.
func (m *Recogniser) readers() []*ir.Value {
	if m.loads != nil || len(m.products) == 0 {
		return m.reading
	}
	results := map[*ir.Value]bool{}
	for _, o := range m.Graph.Outputs {
		results[o.Value] = true
	}
	m.loads = make([][]*ir.Expr, len(m.Graph.Values))
	for i, v := range m.Graph.Values {
		m.loads[i] = v.Loads()
	}
	reduced := m.reduced()
	for i, v := range m.Graph.Values {
		if !slices.ContainsFunc(m.loads[i], func(l *ir.Expr) bool { return reduced[l.From] || m.near[l.From] }) {
			continue
		}
		m.near[v] = v.Reduce == nil
		if v.Reduce != nil || results[v] {
			m.reading = append(m.reading, v)
		}
	}
	return m.reading
}

// Whole is the body of a reduction or result over the products that it reads; nil where it reads none.
func (m *Recogniser) Whole(v *ir.Value) *ir.Expr {
	m.expandAll()
	return m.whole[v]
}

// expandAll writes the bodies of all readers of products over these.
func (m *Recogniser) expandAll() {
	if m.whole != nil {
		return
	}
	m.whole = map[*ir.Value]*ir.Expr{}
	for _, v := range m.readers() {
		m.whole[v] = m.expand(v.Body, m.near)
		for _, l := range ir.Loads(m.whole[v]) {
			if m.products[l.From] && !slices.Contains(m.users[l.From], v) {
				m.users[l.From] = append(m.users[l.From], v)
			}
		}
	}
}

// usersOf is the reductions and results whose bodies read a product.
func (m *Recogniser) usersOf(product *ir.Value) []*ir.Value {
	m.expandAll()
	return m.users[product]
}

// reduced is the products that may be scores or have a reduction epilogue. Something reduces them,
// directly or through pointwise values, and not only as the operand of another product; or they are in
// exponents, which may be those of weights.
func (m *Recogniser) reduced() map[*ir.Value]bool {
	out, by := map[*ir.Value]bool{}, map[*ir.Value]map[*ir.Value]bool{} // by: the products from which a pointwise value is computed
	add := func(to map[*ir.Value]bool, loads []*ir.Expr) {
		for _, l := range loads {
			if m.products[l.From] {
				to[l.From] = true
			}
			maps.Copy(to, by[l.From])
		}
	}
	reads := func(l *ir.Expr) bool { return m.products[l.From] || by[l.From] != nil }
	for i, v := range m.Graph.Values {
		if !slices.ContainsFunc(m.loads[i], reads) {
			continue
		}
		of := map[*ir.Value]bool{}
		add(of, m.loads[i])
		switch {
		case v.Reduce == nil:
			by[v] = of
		case !Crosses(v):
			maps.Copy(out, of)
		}
		ir.Walk(v.Body, func(e *ir.Expr) bool {
			if e.Op == ir.OpExp {
				add(out, ir.Loads(e))
			}
			return true
		})
	}
	return out
}

// expand substitutes into e the pointwise values between it and the products that it reads. It also
// substitutes values with an element for each pair of a row of one operand and a row of the other, such
// as masks and biases.
func (m *Recogniser) expand(e *ir.Expr, through map[*ir.Value]bool) *ir.Expr {
	for m.productsWithin(e, through) <= mostProducts {
		grown := Expand(e, through)
		products := m.pairsIn(grown)
		if products.distinct() > mostProducts {
			return e
		}
		grown = ir.Rewrite(grown, func(l *ir.Expr) *ir.Expr {
			if l.Op == ir.OpLoad && m.perPair(l, products) {
				return BodyAt(l)
			}
			return l
		})
		if grown == e || CostOf(grown).Nodes > largestStream {
			return e
		}
		e = grown
	}
	return e
}

// productsWithin counts the products that e reads once the given values are substituted. It leaves out products
// in the indices of loads that are replaced, so there may be more, but not fewer.
func (m *Recogniser) productsWithin(e *ir.Expr, through map[*ir.Value]bool) int {
	var found []*ir.Value
	for _, l := range ir.Loads(e) {
		read := []*ir.Value{l.From}
		if through[l.From] {
			read = m.productsRead(l.From)
		}
		for _, p := range read {
			if m.products[p] && !slices.Contains(found, p) {
				found = append(found, p)
			}
		}
	}
	return len(found)
}

// productsRead is the products that the body of a value reads.
func (m *Recogniser) productsRead(v *ir.Value) []*ir.Value {
	if out, ok := m.read[v]; ok {
		return out
	}
	var out []*ir.Value
	for _, l := range ir.Loads(v.Body) {
		if m.products[l.From] && !slices.Contains(out, l.From) {
			out = append(out, l.From)
		}
	}
	m.read[v] = out
	return out
}

// pairSlots is the most work of a value of each pair that is computed again instead of being written and
// read. It is less than the multiplications of a pair take.
const pairSlots = 120

// pairs are the products that an expression reads, each with the ranges of the rows of its two operands. From
// these follows which values have an element for each pair of rows.
type pairs []pair

type pair struct {
	product     *ir.Value
	left, right map[*ir.Range]bool // of the expression, not of the product's value
}

// distinct counts the products.
func (p pairs) distinct() int {
	seen := map[*ir.Value]bool{}
	for _, pair := range p {
		seen[pair.product] = true
	}
	return len(seen)
}

// pairsIn finds the products that e reads, so that this is done once for all loads of e.
func (m *Recogniser) pairsIn(e *ir.Expr) (out pairs) {
	for _, p := range ir.Loads(e) {
		if !m.products[p.From] {
			continue
		}
		rows := m.rowsOf(p.From)
		left, right := map[*ir.Range]bool{}, map[*ir.Range]bool{}
		for d, r := range p.From.Axes {
			if p.Args[d].Op == ir.OpRange {
				left[p.Args[d].Range] = left[p.Args[d].Range] || rows.left[r]
				right[p.Args[d].Range] = right[p.Args[d].Range] || rows.right[r]
			}
		}
		out = append(out, pair{p.From, left, right})
	}
	return out
}

// operandRows are the axes of a product that belong to one of its operands alone.
type operandRows struct{ left, right map[*ir.Range]bool }

// rowsOf says which axes of a product are rows of which operand.
func (m *Recogniser) rowsOf(product *ir.Value) operandRows {
	if rows, ok := m.rows[product]; ok {
		return rows
	}
	factors := FactorsOf(Uncast(product.Body))
	left, right := AxesIn(product, factors[0]), AxesIn(product, ProductOf(factors[1:]))
	rows := operandRows{map[*ir.Range]bool{}, map[*ir.Range]bool{}}
	for _, r := range product.Axes {
		rows.left[r], rows.right[r] = left[r] && !right[r], right[r] && !left[r]
	}
	m.rows[product] = rows
	return rows
}

// perPair reports whether a load is of a value with an element for each pair of rows that one of the products
// multiplies, cheap enough to compute in place.
func (m *Recogniser) perPair(l *ir.Expr, products pairs) bool {
	if l.From.Body == nil || l.From.Reduce != nil || m.near[l.From] || len(products) == 0 {
		return false
	}
	free := ir.FreeRanges(l)
	for _, p := range products {
		onLeft, onRight := false, false
		for r := range free {
			onLeft, onRight = onLeft || p.left[r], onRight || p.right[r]
		}
		if onLeft && onRight {
			return CostOf(l.From.Body).Slots <= pairSlots
		}
	}
	return false
}

// relate writes the bodies of the values that read a product over this product and over other values.
// Values of other products, such as projected values, stay loads of what the kernels of those products
// write.
func (m *Recogniser) relate(score *ir.Value) {
	bodies, ok := m.related[score]
	if !ok {
		bodies = m.over(score)
		m.related[score] = bodies
	}
	for i, u := range m.usersOf(score) {
		m.whole[u] = bodies[i]
	}
}

// over is the bodies of the users of a product, over it and over values that do not depend on it.
func (m *Recogniser) over(score *ir.Value) (bodies []*ir.Expr) {
	through, after := map[*ir.Value]bool{}, map[*ir.Value]bool{score: true}
	for i, v := range m.Graph.Values {
		if slices.ContainsFunc(m.loads[i], func(l *ir.Expr) bool { return after[l.From] }) {
			after[v], through[v] = true, m.near[v]
		}
	}
	for _, u := range m.usersOf(score) {
		bodies = append(bodies, m.expand(u.Body, through))
	}
	return bodies
}
