package form

import (
	"maps"
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/diag"
)

// Recognition of streams: sums over keys of values, weighted by exponentials of scores that are products
// themselves, as in softmax(q k^T) v however it is written. Nothing here knows a name: what counts is on
// which ranges the factors depend, and whether a maximum is that of the exponent.

// InStreams is the reductions that run as part of a stream, and so must not be cut.
func InStreams(g *ir.Graph) map[*ir.Value]bool {
	out := map[*ir.Value]bool{}
	if g.Numerics == ir.Strict {
		return out
	}
	streams, _ := NewRecogniser(g).Streams()
	for _, s := range streams {
		if len(s.Epilogue) > 0 {
			continue // the value is not in the form of a stream yet, because the device runs none
		}
		for _, v := range append([]*ir.Value{s.Out, s.Score.From, s.Weight.Max.From}, s.Sums...) {
			out[v] = true
		}
	}
	for _, s := range Chains(g) {
		out[s.Out] = true
		for _, l := range s.Products() {
			out[l.From] = true
		}
	}
	return out
}

// Stream is a weighted sum that was recognised, over the ranges of its value.
type Stream struct {
	Out      *ir.Value
	Keys     []*ir.Range
	Score    *ir.Expr                    // the load of the scores
	Weight   Exponential                 // weight of each key
	Factor   *ir.Expr                    // the weight is the exponential times this factor; nil for 1
	Value    *ir.Expr                    // what is summed
	Epilogue []func(e *ir.Expr) *ir.Expr // what all terms have in common, applied to the sum, innermost first
	Sums     []*ir.Value                 // other sums of the same exponentials
	Own      map[*ir.Range]bool          // axes of Out on which the value alone depends

	Chained bool       // a chained contraction: Factor is all of the weight, a function of Score and Others
	Others  []*ir.Expr // the loads of further products
}

// Exponential is exp(scale*(logit - max)), max a load of the largest logit.
type Exponential struct {
	Scale      float64
	Logit, Max *ir.Expr
}

// Recogniser finds the streams of a graph.
type Recogniser struct {
	Graph    *ir.Graph
	products map[*ir.Value]bool        // sums of products of two 16-bit tensors
	rows     map[*ir.Value]operandRows // of products, computed when first needed
	near     map[*ir.Value]bool        // pointwise values that read a reduced product
	Whole    map[*ir.Value]*ir.Expr    // bodies of reductions and results, over products
	loads    [][]*ir.Expr              // of each value of the graph
	users    map[*ir.Value][]*ir.Value // reductions, and results, whose bodies read a product
}

// largestStream is the most nodes of a body in which the pointwise values between product and sum are
// substituted: mask, bias and softmax take a few dozen.
const largestStream = 1000

// mostProducts is the most products that such a body reads: the scores and a few more. A residual stream is a sum
// of products of all layers; substituting it into each reader would take longer the deeper the network is.
const mostProducts = 8

// NewRecogniser looks at the values of a graph that are near products. Most graphs have none, and it
// is done at once.
func NewRecogniser(g *ir.Graph) *Recogniser {
	m := &Recogniser{Graph: g, products: map[*ir.Value]bool{}, near: map[*ir.Value]bool{},
		rows: map[*ir.Value]operandRows{}, Whole: map[*ir.Value]*ir.Expr{}, users: map[*ir.Value][]*ir.Value{}}
	for _, v := range g.Values {
		if isProduct(v) {
			m.products[v] = true
		}
	}
	if len(m.products) == 0 {
		return m
	}
	results := map[*ir.Value]bool{}
	for _, o := range g.Outputs {
		results[o.Value] = true
	}
	m.loads = make([][]*ir.Expr, len(g.Values))
	for i, v := range g.Values {
		m.loads[i] = v.Loads()
	}
	reduced := m.reduced()
	for i, v := range g.Values {
		reads := false
		for _, l := range m.loads[i] {
			reads = reads || reduced[l.From] || m.near[l.From]
		}
		if !reads {
			continue
		}
		m.near[v] = v.Reduce == nil
		if v.Reduce != nil || results[v] {
			m.Whole[v] = m.expand(v.Body, m.near)
			for _, l := range ir.Loads(m.Whole[v]) {
				if m.products[l.From] && !Contains(m.users[l.From], v) {
					m.users[l.From] = append(m.users[l.From], v)
				}
			}
		}
	}
	return m
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

// Contains reports whether a value is in a list.
func Contains(list []*ir.Value, v *ir.Value) bool {
	for _, u := range list {
		if u == v {
			return true
		}
	}
	return false
}

// expand substitutes into e the pointwise values between it and the products that it reads. It also
// substitutes values with an element for each pair of a row of one operand and a row of the other, such
// as masks and biases.
func (m *Recogniser) expand(e *ir.Expr, through map[*ir.Value]bool) *ir.Expr {
	for {
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

// Streams returns the weighted sums of the graph that are streams, and why other sums weighted by
// exponentials of scores are none.
func (m *Recogniser) Streams() (out []*Stream, refused []ir.Refusal) {
	for _, v := range m.Graph.Values {
		if v.Reduce == nil || m.Whole[v] == nil {
			continue
		}
		s, no := m.match(v)
		switch {
		case s != nil:
			out = append(out, s)
		case no != nil:
			refused = append(refused, ir.Refusal{Producer: no.product.Name, Consumer: v.Name, Span: v.Origin.Span,
				Template: ir.AttendTemplate, Reason: no.Reason, Detail: no.Detail, Bytes: algebra.Bytes(no.product)})
		}
	}
	return out, refused
}

// miss is why a weighted sum is no stream.
type miss struct {
	*Refusal
	product *ir.Value
}

// match reads v as a stream; neither result is set where v is no weighted sum.
func (m *Recogniser) match(v *ir.Value) (*Stream, *miss) {
	if v.Reduce.Op != ir.Sum || v.Reduce.Where != nil || !v.Type.IsFloat() {
		return nil, nil
	}
	s := &Stream{Out: v, Keys: v.Reduce.Ranges}
	bound := map[*ir.Range]bool{}
	for _, r := range s.Keys {
		bound[r] = true
	}
	if _, s.Score = m.weightIn(s.split(m.Whole[v], bound), bound); s.Score == nil {
		return nil, nil
	}
	m.relate(s.Score.From)
	s.Epilogue = nil
	factors := s.split(m.Whole[v], bound)
	weight, score := m.weightIn(factors, bound)
	if weight == nil || score.From != s.Score.From {
		return nil, nil
	}
	s.Score = score
	no := func(reason ir.Reason, span diag.Span, format string, args ...any) (*Stream, *miss) {
		return nil, &miss{Refuse(reason, span, format, args...), s.Score.From}
	}
	var ok bool
	if s.Weight, ok = m.Exponential(weight.Args[0], bound); !ok {
		if len(factors) == 1 {
			return nil, nil // a sum of exponentials that multiply nothing
		}
		return no(ir.ReasonDifferentRanges, weight.Span, "to be one kernel of attention, the exponent has to be the scores minus their maximum over the keys, %s", Shape(s.Keys))
	}
	s.classify(factors, weight)
	if s.Value == nil {
		return nil, nil // the sum of the weights themselves
	}
	s.overNothing()
	if reason := s.check(m); reason != "" {
		return no(ir.ReasonIndexMismatch, v.Origin.Span, "%s", reason)
	}
	for _, o := range m.Graph.Outputs {
		if o.Value == s.Score.From {
			return nil, &miss{WrittenAnyway(o.Span, s.Score.From, nil), s.Score.From}
		}
	}
	for _, u := range m.users[s.Score.From] {
		switch {
		case u == v || u == s.Weight.Max.From:
		case m.sameWeights(s, u):
			s.Sums = append(s.Sums, u)
		default:
			return nil, &miss{WrittenAnyway(u.Origin.Span, s.Score.From, u), s.Score.From}
		}
	}
	return s, nil
}

// weightIn returns the factor that is an exponential of a product, and the load of that product; nil if there is
// none.
func (m *Recogniser) weightIn(factors []*ir.Expr, bound map[*ir.Range]bool) (weight, score *ir.Expr) {
	for _, f := range factors {
		if l := m.productIn(f, bound); l != nil && Stripped(f).Op == ir.OpExp {
			return Stripped(f), l
		}
	}
	return nil, nil
}

// relate writes the bodies of the values that read a product over this product and over other values.
// Values of other products, such as projected values, stay loads of what the kernels of those products
// write.
func (m *Recogniser) relate(score *ir.Value) {
	through, after := map[*ir.Value]bool{}, map[*ir.Value]bool{score: true}
	for i, v := range m.Graph.Values {
		if slices.ContainsFunc(m.loads[i], func(l *ir.Expr) bool { return after[l.From] }) {
			after[v], through[v] = true, m.near[v]
		}
	}
	for _, u := range m.users[score] {
		m.Whole[u] = m.expand(u.Body, through)
	}
}

// productIn returns the load of a product, at indices that depend on the keys.
func (m *Recogniser) productIn(e *ir.Expr, bound map[*ir.Range]bool) *ir.Expr {
	for _, l := range ir.Loads(e) {
		if m.products[l.From] && algebra.DependsOnAny(l, bound) {
			return l
		}
	}
	return nil
}

// Exponential reads an exponent as scale*(logit - max), and checks that max is the
// largest of logit over the keys.
func (m *Recogniser) Exponential(e *ir.Expr, bound map[*ir.Range]bool) (Exponential, bool) {
	x := Exponential{Scale: 1}
	e = Stripped(e)
	if e.Op == ir.OpMul {
		c, rest := e.Args[0], e.Args[1]
		if rest.Op == ir.OpConst {
			c, rest = rest, c
		}
		if c.Op != ir.OpConst || c.Val <= 0 {
			return x, false
		}
		x.Scale, e = c.Val, Stripped(rest)
	}
	if e.Op != ir.OpSub {
		return x, false
	}
	x.Logit, x.Max = Stripped(e.Args[0]), Stripped(e.Args[1])
	if x.Max.Op != ir.OpLoad || x.Max.From.Reduce == nil || x.Max.From.Reduce.Op != ir.Max ||
		x.Max.From.Reduce.Where != nil || algebra.DependsOnAny(x.Max, bound) {
		return x, false
	}
	body := m.Whole[x.Max.From]
	if body == nil {
		return x, false
	}
	return x, SameAt(x.Logit, Stripped(body), x.Max, algebra.RangesOf(bound), m.Graph.Facts())
}

// SameAt reports whether the body of the reduction that load reads equals e, with the reduction's
// ranges replaced by keys.
func SameAt(e, body, load *ir.Expr, keys []*ir.Range, facts ir.Facts) bool {
	v := load.From
	if len(v.Reduce.Ranges) != len(keys) {
		return false
	}
	at := map[*ir.Range]*ir.Expr{}
	for d, r := range v.Axes {
		at[r] = load.Args[d]
	}
	for d, r := range v.Reduce.Ranges {
		if !ir.SameSize(r.Extent, keys[d].Extent) {
			return false
		}
		at[r] = keys[d].At()
	}
	return ir.Equal(ir.Simplify(e, facts), ir.Simplify(ir.Substitute(body, at), facts))
}

// sameWeights reports whether u sums the exponentials of the stream and nothing else.
func (m *Recogniser) sameWeights(s *Stream, u *ir.Value) bool {
	if u.Reduce == nil || u.Reduce.Op != ir.Sum || u.Reduce.Where != nil || len(u.Reduce.Ranges) != 1 {
		return false
	}
	body := Stripped(m.Whole[u])
	if body.Op != ir.OpExp {
		return false
	}
	bound := map[*ir.Range]bool{u.Reduce.Ranges[0]: true}
	x, ok := m.Exponential(body.Args[0], bound)
	return ok && x.Scale == s.Weight.Scale && x.Max.From == s.Weight.Max.From && PlainIndices(x.Max)
}
