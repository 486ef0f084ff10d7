package form

import (
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
	streams := NewRecogniser(g).Streams()
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

// Weighted is the sums of streams, whose weights are never written.
func Weighted(g *ir.Graph) map[*ir.Value]bool {
	out := map[*ir.Value]bool{}
	if g.Numerics == ir.Strict {
		return out
	}
	for _, s := range append(NewRecogniser(g).Streams(), Chains(g)...) {
		out[s.Out] = true
		for _, sum := range s.Sums {
			out[sum] = true
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

// Streams returns the weighted sums of the graph that are streams. Without a maximum of something that reads a product there
// is none, however much else reads products.
func (m *Recogniser) Streams() []*Stream {
	if !slices.ContainsFunc(m.readers(), isMaximum) {
		return nil
	}
	streams, _ := m.StreamsAndRefused()
	return streams
}

// isMaximum reports whether a value is such as exponents of streams subtract.
func isMaximum(v *ir.Value) bool {
	return v.Reduce != nil && v.Reduce.Op == ir.Max && v.Reduce.Where == nil
}

// StreamsAndRefused returns the weighted sums of the graph that are streams, and why other sums weighted by
// exponentials of scores are none.
func (m *Recogniser) StreamsAndRefused() (out []*Stream, refused []ir.Refusal) {
	for _, v := range m.Graph.Values {
		if v.Reduce == nil || m.Whole(v) == nil {
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
	if _, s.Score = m.weightIn(s.split(m.Whole(v), bound), bound); s.Score == nil {
		return nil, nil
	}
	m.relate(s.Score.From)
	s.Epilogue = nil
	factors := s.split(m.Whole(v), bound)
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
	for _, u := range m.usersOf(s.Score.From) {
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
	if x.Max.Op != ir.OpLoad || !isMaximum(x.Max.From) || algebra.DependsOnAny(x.Max, bound) {
		return x, false
	}
	body := m.Whole(x.Max.From)
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
	body := Stripped(m.Whole(u))
	if body.Op != ir.OpExp {
		return false
	}
	bound := map[*ir.Range]bool{u.Reduce.Ranges[0]: true}
	x, ok := m.Exponential(body.Args[0], bound)
	return ok && x.Scale == s.Weight.Scale && x.Max.From == s.Weight.Max.From && PlainIndices(x.Max)
}
