package fuse

import (
	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/diag"
)

// Recognition of streams: a sum over keys of values under exponential weights of
// scores that are products themselves, as in softmax(q k^T) v however it is
// written. Nothing here knows a name: what is asked is which ranges the factors
// depend on, and whether a maximum is that of the exponent.

// stream is a weighted sum that matched, in the ranges of its value.
type stream struct {
	out    *ir.Value
	keys   []*ir.Range
	score  *ir.Expr                    // the load of the scores
	weight exponential                 // of each key
	factor *ir.Expr                    // of the weight beside the exponential; nil for 1
	value  *ir.Expr                    // what is summed
	finish []func(e *ir.Expr) *ir.Expr // what the sum's terms have in common, innermost first
	sums   []*ir.Value                 // other sums of the same exponentials
	n      map[*ir.Range]bool          // axes of out that the value has alone
}

// exponential is exp(scale*(logit - max)), max a load of the largest logit.
type exponential struct {
	scale      float64
	logit, max *ir.Expr
}

// recogniser finds the streams of a graph.
type recogniser struct {
	g        *ir.Graph
	products map[*ir.Value]bool        // sums of products of two 16-bit tensors
	near     map[*ir.Value]bool        // pointwise values that read a product
	whole    map[*ir.Value]*ir.Expr    // bodies over products
	users    map[*ir.Value][]*ir.Value // reductions, and results, whose bodies read a product
}

// largestStream is the nodes of a body after the pointwise values between product
// and sum are substituted: mask, bias and softmax take a few dozen.
const largestStream = 1000

func newRecogniser(g *ir.Graph) *recogniser {
	m := &recogniser{g: g, products: map[*ir.Value]bool{}, near: map[*ir.Value]bool{},
		whole: map[*ir.Value]*ir.Expr{}, users: map[*ir.Value][]*ir.Value{}}
	results := map[*ir.Value]bool{}
	for _, o := range g.Outputs {
		results[o.Value] = true
	}
	for _, v := range g.Values {
		reads := false
		for _, l := range v.Loads() {
			reads = reads || m.products[l.From] || m.near[l.From]
		}
		if reads {
			m.whole[v] = m.expand(v.Body)
			m.near[v] = v.Reduce == nil
			if v.Reduce != nil || results[v] {
				for _, l := range ir.Loads(m.whole[v]) {
					if m.products[l.From] && !contains(m.users[l.From], v) {
						m.users[l.From] = append(m.users[l.From], v)
					}
				}
			}
		}
		m.products[v] = isProduct(v)
	}
	return m
}

func contains(list []*ir.Value, v *ir.Value) bool {
	for _, u := range list {
		if u == v {
			return true
		}
	}
	return false
}

// isProduct reports whether v sums products of 16-bit tensors.
func isProduct(v *ir.Value) bool {
	if v.Reduce == nil || v.Reduce.Op != ir.Sum || v.Reduce.Where != nil {
		return false
	}
	return len(factorsOf(uncast(v.Body))) > 1 && tensorType(v.Body) != ir.Invalid
}

// tensorType is the 16-bit float of every float that e loads; Invalid where they
// differ or one is wider.
func tensorType(e *ir.Expr) ir.DType {
	t := ir.Invalid
	for _, l := range ir.Loads(e) {
		if !l.Type.IsFloat() {
			continue
		}
		if l.Type != ir.BF16 && l.Type != ir.F16 || t != ir.Invalid && t != l.Type {
			return ir.Invalid
		}
		t = l.Type
	}
	return t
}

// uncast drops conversions between floats, which fast kernels do not make.
func uncast(e *ir.Expr) *ir.Expr {
	return ir.Rewrite(e, func(e *ir.Expr) *ir.Expr {
		if e.Op == ir.OpMul {
			return ir.Apply(ir.OpMul, widened32(e.Args[0]), widened32(e.Args[1])).At(e.Span)
		}
		return e
	})
}

// widened32 is e in f32, without conversions that only narrowed it before.
func widened32(e *ir.Expr) *ir.Expr {
	if !e.Type.IsFloat() {
		return e
	}
	return ir.Cast(stripped(e), ir.F32)
}

// stripped is e without the float conversions around it.
func stripped(e *ir.Expr) *ir.Expr {
	for e.Op == ir.OpCast && e.Type.IsFloat() && e.Args[0].Type.IsFloat() {
		e = e.Args[0]
	}
	return e
}

// expand substitutes the pointwise values between e and the products it reads, and
// those that are computed for each pair of a row of one operand and one of the
// other, as masks and biases are.
func (m *recogniser) expand(e *ir.Expr) *ir.Expr {
	for {
		grown := expand(e, m.near)
		grown = ir.Rewrite(grown, func(l *ir.Expr) *ir.Expr {
			if l.Op == ir.OpLoad && m.perPair(l, grown) {
				return bodyAt(l)
			}
			return l
		})
		if grown == e || costOf(grown).nodes > largestStream {
			return e
		}
		e = grown
	}
}

// pairSlots is the work of a value of each pair that is computed again rather than
// written and read: less than the pair's share of the products.
const pairSlots = 120

// perPair reports whether a load is of a value of each pair of rows that a product
// in e multiplies, cheap enough to compute in place.
func (m *recogniser) perPair(l, e *ir.Expr) bool {
	if l.From.Body == nil || l.From.Reduce != nil || m.near[l.From] || costOf(l.From.Body).slots > pairSlots {
		return false
	}
	free := ir.FreeRanges(l)
	for _, p := range ir.Loads(e) {
		if !m.products[p.From] {
			continue
		}
		factors := factorsOf(uncast(p.From.Body))
		left, right := axesIn(p.From, factors[0]), axesIn(p.From, productOf(factors[1:]))
		onLeft, onRight := false, false
		for d, r := range p.From.Axes {
			if p.Args[d].Op == ir.OpRange && free[p.Args[d].Range] {
				onLeft = onLeft || left[r] && !right[r]
				onRight = onRight || right[r] && !left[r]
			}
		}
		if onLeft && onRight {
			return true
		}
	}
	return false
}

// streams returns the weighted sums of the graph, and why others that weigh by
// exponentials of scores are none.
func (m *recogniser) streams() (out []*stream, refused []ir.Refusal) {
	for _, v := range m.g.Values {
		if v.Reduce == nil || m.whole[v] == nil {
			continue
		}
		s, no := m.match(v)
		switch {
		case s != nil:
			out = append(out, s)
		case no != nil:
			refused = append(refused, ir.Refusal{Producer: no.product.Name, Consumer: v.Name, Span: v.Origin.Span,
				Template: ir.AttendTemplate, Reason: no.reason, Detail: no.detail, Bytes: algebra.Bytes(no.product)})
		}
	}
	return out, refused
}

// miss is why a weighted sum is no stream.
type miss struct {
	*refusal
	product *ir.Value
}

// match takes v apart; neither result is set where it weighs nothing.
func (m *recogniser) match(v *ir.Value) (*stream, *miss) {
	if v.Reduce.Op != ir.Sum || v.Reduce.Where != nil || !v.Type.IsFloat() {
		return nil, nil
	}
	s := &stream{out: v, keys: v.Reduce.Ranges}
	bound := map[*ir.Range]bool{}
	for _, r := range s.keys {
		bound[r] = true
	}
	factors := s.split(m.whole[v], bound)
	var weight *ir.Expr
	for _, f := range factors {
		if l := m.productIn(f, bound); l != nil && stripped(f).Op == ir.OpExp && weight == nil {
			weight, s.score = stripped(f), l
		}
	}
	if weight == nil {
		return nil, nil
	}
	no := func(reason ir.Reason, span diag.Span, format string, args ...any) (*stream, *miss) {
		return nil, &miss{refuse(reason, span, format, args...), s.score.From}
	}
	var ok bool
	if s.weight, ok = m.exponential(weight.Args[0], bound); !ok {
		if len(factors) == 1 {
			return nil, nil // a sum of exponentials that weighs nothing
		}
		return no(ir.ReasonDifferentRanges, weight.Span, "the exponent is not scores minus their largest over %s",
			names(s.keys))
	}
	s.classify(factors, weight)
	if s.value == nil {
		return nil, nil // the sum of the weights themselves
	}
	s.overNothing()
	if reason := s.check(m, bound); reason != "" {
		return no(ir.ReasonIndexMismatch, v.Origin.Span, "%s", reason)
	}
	for _, o := range m.g.Outputs {
		if o.Value == s.score.From {
			return no(ir.ReasonResources, o.Span, "the scores are a result, and then are written anyway")
		}
	}
	for _, u := range m.users[s.score.From] {
		switch {
		case u == v || u == s.weight.max.From:
		case m.sameWeights(s, u):
			s.sums = append(s.sums, u)
		default:
			return no(ir.ReasonResources, u.Origin.Span, "%s needs the scores as well, which then are written anyway",
				u.Name)
		}
	}
	return s, nil
}

// productIn returns the load of a product, at indices that depend on the keys.
func (m *recogniser) productIn(e *ir.Expr, bound map[*ir.Range]bool) *ir.Expr {
	for _, l := range ir.Loads(e) {
		if m.products[l.From] && algebra.DependsOnAny(l, bound) {
			return l
		}
	}
	return nil
}

// exponential reads an exponent as scale*(logit - max), and checks that max is the
// largest of logit over the keys.
func (m *recogniser) exponential(e *ir.Expr, bound map[*ir.Range]bool) (exponential, bool) {
	x := exponential{scale: 1}
	e = stripped(e)
	if e.Op == ir.OpMul {
		c, rest := e.Args[0], e.Args[1]
		if rest.Op == ir.OpConst {
			c, rest = rest, c
		}
		if c.Op != ir.OpConst || c.Val <= 0 {
			return x, false
		}
		x.scale, e = c.Val, stripped(rest)
	}
	if e.Op != ir.OpSub {
		return x, false
	}
	x.logit, x.max = stripped(e.Args[0]), stripped(e.Args[1])
	if x.max.Op != ir.OpLoad || x.max.From.Reduce == nil || x.max.From.Reduce.Op != ir.Max ||
		x.max.From.Reduce.Where != nil || algebra.DependsOnAny(x.max, bound) {
		return x, false
	}
	body := m.whole[x.max.From]
	if body == nil {
		return x, false
	}
	return x, sameAt(x.logit, stripped(body), x.max, algebra.RangesOf(bound), m.g.Facts())
}

// sameAt reports whether body, of the reduction that load reads, is e where the
// reduction's ranges are those given.
func sameAt(e, body, load *ir.Expr, keys []*ir.Range, facts ir.Facts) bool {
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

// sameWeights reports whether u sums the exponentials of the stream alone.
func (m *recogniser) sameWeights(s *stream, u *ir.Value) bool {
	if u.Reduce == nil || u.Reduce.Op != ir.Sum || u.Reduce.Where != nil || len(u.Reduce.Ranges) != 1 {
		return false
	}
	body := stripped(m.whole[u])
	if body.Op != ir.OpExp {
		return false
	}
	bound := map[*ir.Range]bool{u.Reduce.Ranges[0]: true}
	x, ok := m.exponential(body.Args[0], bound)
	return ok && x.scale == s.weight.scale && x.max.From == s.weight.max.From && plainIndices(x.max)
}
