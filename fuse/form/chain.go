package form

import (
	"maps"
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/ir"
)

// Chained contractions: sums over keys of values, weighted by any function of one or more products of 16-bit
// tensors. The gradients of attention are such sums. They run like streams, but without a running maximum: no
// weight is written, and each chain computes the products that it reads again.

const (
	// LargestChain is the most depth of a product of a chain, and the most columns of its values.
	LargestChain = 128
	// mostChained is the most products that the weights of a chain are made of. Their tiles share the
	// shared memory of a block, and their scores its registers.
	mostChained = 2
)

// ChainFinder matches the chained contractions of a graph.
type ChainFinder struct {
	graph    *ir.Graph
	Products map[*ir.Value]bool // what weights may be made of
	through  map[*ir.Value]bool // pointwise values that read a product, and are no results
	wide     map[*ir.Value]bool // values of which some reader needs more precision than 16 bits

	Counting bool // sums of weights alone are chains too, without a value
}

// NewChainFinder looks for chains in a graph whose products may still have other readers. If large is set, products are only
// those that have more elements than what they are made of, as scores have: a short projection is a product too, but what reads
// it need not compute it again.
func NewChainFinder(g *ir.Graph, large bool) *ChainFinder {
	c := &ChainFinder{graph: g, Products: map[*ir.Value]bool{}, through: map[*ir.Value]bool{}, wide: map[*ir.Value]bool{}}
	results, sizes := map[*ir.Value]bool{}, algebra.DefaultSizes(g)
	for _, o := range g.Outputs {
		results[o.Value], c.wide[o.Value] = true, o.Value.Type != ir.BF16
	}
	for _, v := range g.Values {
		for _, l := range v.Loads() {
			if v.Reduce != nil || v.Type != ir.BF16 || Stripped(v.Body) != l {
				c.wide[l.From] = true
			}
		}
		switch {
		case results[v] || v.IsInput():
		case isProduct(v) && Crosses(v) && algebra.PointsAt(v.Reduce.Ranges, sizes) <= LargestChain:
			c.Products[v] = !large || outgrows(v, sizes)
		case v.Reduce == nil && len(c.Products) > 0:
			c.through[v] = slices.ContainsFunc(v.Loads(), func(l *ir.Expr) bool { return c.Products[l.From] || c.through[l.From] })
		}
	}
	return c
}

// outgrows reports whether a product has more elements than each of its factors.
func outgrows(v *ir.Value, sizes map[string]int64) bool {
	points := algebra.PointsAt(v.Axes, sizes)
	return !slices.ContainsFunc(summed(v), func(f *ir.Expr) bool {
		return algebra.PointsAt(algebra.RangesOf(ir.FreeRanges(f)), sizes) >= points
	})
}

// Chains returns the chained contractions of a graph in which each chain has products of its
// own.
func Chains(g *ir.Graph) (out []*Stream) {
	if g.Numerics != ir.Fast {
		return nil
	}
	c := &ChainFinder{graph: g, Products: map[*ir.Value]bool{}, through: map[*ir.Value]bool{}}
	for _, v := range g.Values {
		if v.Again {
			c.Products[v] = true
		}
	}
	for _, v := range g.Values {
		if s := c.Match(v); s != nil {
			out = append(out, s)
		}
	}
	return out
}

// Expand writes an expression directly over the products that it reads through pointwise
// values.
func (c *ChainFinder) Expand(e *ir.Expr) *ir.Expr {
	for {
		grown := Expand(e, c.through)
		if grown == e || CostOf(grown).Nodes > largestStream {
			return e
		}
		e = grown
	}
}

// Reads reports whether an expression reads a product, or a pointwise value of one.
func (c *ChainFinder) Reads(e *ir.Expr) bool {
	return slices.ContainsFunc(ir.Loads(e), func(l *ir.Expr) bool { return c.Products[l.From] || c.through[l.From] })
}

// Any reports whether the graph has a chained contraction.
func (c *ChainFinder) Any() bool {
	return len(c.Products) > 0 && slices.ContainsFunc(c.graph.Values, func(v *ir.Value) bool { return c.Match(v) != nil })
}

// Match reads v as a chained contraction; nil where it is none. Where all factors of v read products, one that is stored in 16
// bits may be what is weighed, such as the gradient that comes to a layer: it is not computed again.
func (c *ChainFinder) Match(v *ir.Value) *Stream {
	if s := c.match(v, false); s != nil {
		return s
	}
	for _, f := range summed(v) {
		l := WithoutWidening(f)
		if l.Op != ir.OpLoad || !IsHalf(l.Type) || !c.Reads(l) {
			continue
		}
		product, through := c.Products[l.From], c.through[l.From]
		c.Products[l.From], c.through[l.From] = false, false
		s := c.match(v, false)
		c.Products[l.From], c.through[l.From] = product, through
		if s != nil {
			return s
		}
	}
	if c.Counting {
		return c.match(v, true)
	}
	return nil
}

// match is Match where the values that read products are known. With counting set, v is a sum of weights alone.
func (c *ChainFinder) match(v *ir.Value, counting bool) *Stream {
	if v.Again || v.IsInput() || summed(v) == nil || !v.Type.IsFloat() || !c.Reads(v.Body) || c.wide[v] && !c.narrows(v) {
		return nil
	}
	s := &Stream{Out: v, Keys: v.Reduce.Ranges, Chained: true}
	factors := s.split(c.Expand(v.Body), algebra.RangeSet(s.Keys))
	rows := map[*ir.Range]bool{}
	for _, f := range factors {
		if c.Reads(f) {
			for r := range AxesIn(v, f) {
				rows[r] = true
			}
		}
	}
	s.Own = map[*ir.Range]bool{}
	for _, r := range algebra.Widened(v.Axes) {
		if !rows[r] {
			s.Own[r] = true
		}
	}
	for _, f := range factors {
		if algebra.DependsOnAny(f, s.Own) {
			s.Value = times(s.Value, f)
		} else {
			s.Factor = times(s.Factor, f)
		}
	}
	if s.Factor == nil || (s.Value == nil) != counting || counting && !c.counts(factors) || !c.scores(s) || !s.fitsChain(algebra.DefaultSizes(c.graph), c.graph.Facts()) {
		return nil
	}
	s.overNothing()
	return s
}

// counts reports whether the factors of a sum are weights that are not summed otherwise. Sums of exponentials normalise the stream of their
// scores, and sums of one product, or of what a sum gives for each key, under weights may be exchanged.
func (c *ChainFinder) counts(factors []*ir.Expr) bool {
	return !slices.ContainsFunc(factors, func(f *ir.Expr) bool {
		x := Stripped(f)
		return x.Op == ir.OpLoad && x.From.Reduce != nil || x.Op == ir.OpExp && len(factors) == 1
	})
}

// narrows reports whether the program itself rounds the weights of a sum to 16 bits, as tiles do.
func (c *ChainFinder) narrows(v *ir.Value) bool {
	return !slices.ContainsFunc(summed(v), func(f *ir.Expr) bool { return c.Reads(f) && !IsHalf(WithoutWidening(f).Type) })
}

// scores lists the products that a chain's weights read; false if one of them cannot be part of the
// chain.
func (c *ChainFinder) scores(s *Stream) bool {
	keys := algebra.RangeSet(s.Keys)
	for _, l := range ir.Loads(s.Factor) {
		if !c.Products[l.From] || slices.ContainsFunc(s.Products(), func(x *ir.Expr) bool { return ir.Equal(x, l) }) {
			continue
		}
		if l.Fill != nil || !algebra.DependsOnAny(l, keys) {
			return false
		}
		if s.Score == nil {
			s.Score = l
		} else {
			s.Others = append(s.Others, l)
		}
	}
	return s.Score != nil && IsHalf(s.Tensors()) &&
		!slices.ContainsFunc(s.Products(), func(l *ir.Expr) bool { return TensorType(l.From.Body) != s.Tensors() })
}

// Tensors is the type of the tensors that a chain multiplies.
func (s *Stream) Tensors() ir.DType {
	if s.Value == nil {
		return TensorType(s.Score.From.Body)
	}
	return TensorType(s.Value)
}

// Products are the loads of all products that the weights of a stream are made of.
func (s *Stream) Products() []*ir.Expr {
	if s.Score == nil {
		return nil
	}
	return append([]*ir.Expr{s.Score}, s.Others...)
}

// fitsChain reports whether the tiles of a chain fit on chip, each of its products has rows of its own on one side and keys on the
// other, and one has all rows that others have. Products of different rows, as in a sum of relu(a[i, r]) * relu(b[j, r]) over r, would be computed again
// for each pair of these.
func (s *Stream) fitsChain(sizes map[string]int64, facts ir.Facts) bool {
	fits := func(ranges []*ir.Range) bool {
		return algebra.PointsAt(ranges, sizes) <= LargestChain
	}
	if len(s.Products()) > mostChained || !fits(algebra.RangesOf(s.Own)) {
		return false
	}
	var sides []*ir.Expr // of rows
	shared := map[*ir.Range]bool{}
	for _, l := range s.Products() {
		q, k, ok := s.SidesAt(l, facts)
		if !ok || !fits(l.From.Reduce.Ranges) {
			return false
		}
		sides = append(sides, q)
		maps.Copy(shared, s.batch(k))
	}
	all := map[*ir.Range]bool{}
	for _, q := range sides {
		maps.Copy(all, s.rows(q, shared))
	}
	return slices.ContainsFunc(sides, func(q *ir.Expr) bool { return maps.Equal(s.rows(q, shared), all) })
}

// SidesAt divides the factors of a product, at the indices of a load, by whether they depend on the keys. Axes of the chain on which
// what depends on the keys depends too belong to the batch, as those of the values do. ok is false if no other axis, a row, is left.
func (s *Stream) SidesAt(load *ir.Expr, facts ir.Facts) (q, k *ir.Expr, ok bool) {
	keys := algebra.RangeSet(s.Keys)
	facts.Within = slices.Concat(s.Out.Axes, s.Keys, load.From.Reduce.Ranges)
	for _, f := range FactorsOf(ir.Simplify(Uncast(BodyAt(load)), facts)) {
		if algebra.DependsOnAny(f, keys) {
			k = times(k, f)
		} else {
			q = times(q, f)
		}
	}
	if q == nil || k == nil || len(s.rows(q, s.batch(k))) == 0 {
		return nil, nil, false
	}
	return q, k, true
}

// batch are the axes of the chain that the side k of a product shares with the side of the rows, and those of the values.
func (s *Stream) batch(k *ir.Expr) map[*ir.Range]bool {
	out := AxesIn(s.Out, k)
	if s.Value != nil {
		maps.Copy(out, AxesIn(s.Out, s.Value))
	}
	return out
}

// rows are the axes of the chain that the side q of a product has beside those of a batch.
func (s *Stream) rows(q *ir.Expr, batch map[*ir.Range]bool) map[*ir.Range]bool {
	out := AxesIn(s.Out, q)
	maps.DeleteFunc(out, func(r *ir.Range, _ bool) bool { return batch[r] || s.Own[r] })
	return out
}

// WeightCondition is the condition without which a weight is 0; nil where there is none.
func WeightCondition(weight *ir.Expr) *ir.Expr {
	if w := Stripped(weight); w.Op == ir.OpSelect && w.Args[2].IsConst(0) {
		return w.Args[0]
	}
	return nil
}
