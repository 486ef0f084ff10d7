package passes

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// chainOperations is the operations of products that can be computed again in the time in which one byte is
// moved: the rate that tiles through mma.sync reach, over the bandwidth. It is about the same on an A100 and on
// an H200.
const chainOperations = 80

// chainPoints is the least elements of a product whose kernels take longer than their launches.
const chainPoints = 1 << 18

// chainProducts gives sums that weigh values by a function of products, such as the gradients of attention, products
// of their own. Their kernels compute these again tile by tile, so that no kernel writes a product or a weight. It
// does so if nothing else needs the products written, and if the estimate says that computing them again takes less
// time: for all chains of the graph together or, where that does not hold, for each group that shares products.
func chainProducts(g *ir.Graph) {
	if !mayAddKernels(g) {
		return
	}
	for _, large := range []bool{true, false} { // scores first, which are worth most
		if !form.NewChainFinder(g, large).Any() || chained(g, large, nil) {
			continue
		}
		tried := map[int]bool{}
		for group := nextGroup(g, large, tried); group != nil; group = nextGroup(g, large, tried) {
			chained(g, large, group)
		}
	}
}

// chained rewrites the chains of a graph, or those of a group, and reports whether it did so.
func chained(g *ir.Graph, large bool, group map[int]bool) bool {
	trial := g.Clone()
	c := newChainRewrite(trial, large)
	c.chains = firstChains(c.matches(), group)
	if len(c.chains) == 0 || !c.pays() {
		return false
	}
	c.exchangeAll()
	for _, v := range c.softmaxes {
		s := &form.Stream{Out: v, Keys: v.Reduce.Ranges}
		c.weightings[c.sum(v, c.weighted(s.Factors(c.Expand(v.Body))), s.Epilogue)] = true
	}
	for _, s := range c.chains {
		c.rewrite(s)
	}
	insertBefore(trial, func(v *ir.Value) []*ir.Value { return c.before[v] })
	InlineViews(trial)
	mergeEqual(trial)
	c.readStored()
	if !c.unwritten() {
		return false
	}
	*g = *trial
	return true
}

// chainRewrite makes chains of the sums of a graph.
type chainRewrite struct {
	*form.ChainFinder
	graph      *ir.Graph
	recogniser *form.Recogniser // of the graph as it was
	sizes      map[string]int64
	chains     []*form.Stream
	softmaxes  []*ir.Value               // sums under weights that a stream computes as it goes
	touched    map[*ir.Value]bool        // the products that chains read
	before     map[*ir.Value][]*ir.Value // new values, by the value that they are inserted before

	statistics map[statistic]*ir.Value // new values with one number for each row
	weightings map[*ir.Value]bool      // new sums of values under the weights of a softmax, in f32
	exchanged  map[*ir.Value]bool      // new sums over the depth of a product, which read one of these
}

func newChainRewrite(g *ir.Graph, large bool) *chainRewrite {
	return &chainRewrite{ChainFinder: form.NewChainFinder(g, large), graph: g, recogniser: form.NewRecogniser(g), sizes: algebra.DefaultSizes(g),
		touched: map[*ir.Value]bool{}, before: map[*ir.Value][]*ir.Value{}, statistics: map[statistic]*ir.Value{}, weightings: map[*ir.Value]bool{}, exchanged: map[*ir.Value]bool{}}
}

// softmax reports whether v is a sum weighted by exponentials about their maximum, as streams
// are.
func (c *chainRewrite) softmax(v *ir.Value) bool {
	s := &form.Stream{Out: v, Keys: v.Reduce.Ranges}
	reading := slices.DeleteFunc(s.Factors(c.Expand(v.Body)), func(f *ir.Expr) bool { return !c.Reads(f) })
	if len(reading) != 1 || form.Stripped(reading[0]).Op != ir.OpExp {
		return false
	}
	_, ok := c.recogniser.Exponential(form.Stripped(reading[0]).Args[0], algebra.RangeSet(s.Keys))
	return ok
}

// weighted is the product of factors, those of the weight first.
func (c *chainRewrite) weighted(factors []*ir.Expr) *ir.Expr {
	ordered := slices.Clone(factors)
	slices.SortStableFunc(ordered, func(a, b *ir.Expr) int {
		switch x, y := c.Reads(a), c.Reads(b); {
		case x == y:
			return 0
		case x:
			return -1
		}
		return 1
	})
	for i, f := range ordered {
		ordered[i] = ir.Cast(f, ir.F32)
	}
	return form.ProductOf(ordered)
}

// pays compares the time of products that are computed again with that of writing and reading products and weights.
func (c *chainRewrite) pays() bool {
	again, bytes := 0.0, 0.0
	weights := map[uint64]bool{}
	points := 0.0
	for _, s := range c.chains {
		pair := slices.DeleteFunc(algebra.Widened(s.Out.Axes), func(r *ir.Range) bool { return s.Own[r] })
		points = algebra.PointsAt(append(pair, s.Keys...), c.sizes)
		if h := weightKey(s); !weights[h] {
			weights[h] = true
			bytes += points * float64(form.TensorType(s.Value).Size())
		}
		bytes += points * float64(form.TensorType(s.Value).Size()) // each chain reads its weights
		for _, l := range s.Products() {
			again += multiplied(l.From, c.sizes)
			if !c.touched[l.From] {
				c.touched[l.From] = true
				again -= multiplied(l.From, c.sizes)
				bytes += 2 * algebra.BytesAt(l.From, c.sizes)
			}
		}
	}
	return points >= chainPoints && again <= chainOperations*bytes
}

// weightKey is the same for chains whose weights are the same function, such as the gradients of queries and
// of keys.
func weightKey(s *form.Stream) uint64 {
	key := uint64(0)
	for _, l := range s.Out.Loads() {
		if l.From.Reduce == nil && !l.From.IsInput() {
			key ^= uint64(l.From.ID+1) * 0x9e3779b97f4a7c15
		}
	}
	return key
}

// multiplied is the operations of a product.
func multiplied(p *ir.Value, sizes map[string]int64) float64 {
	return 2 * algebra.PointsAt(p.Axes, sizes) * algebra.PointsAt(p.Reduce.Ranges, sizes)
}

// rewrite gives a chain products of its own, and writes its weights over them.
func (c *chainRewrite) rewrite(s *form.Stream) {
	weight := c.masked(s)
	for _, l := range s.Products() {
		own := c.own(s, l)
		c.before[s.Out] = append(c.before[s.Out], own.From)
		weight = ir.Rewrite(weight, func(e *ir.Expr) *ir.Expr {
			if ir.Equal(e, l) {
				return own
			}
			return e
		})
	}
	c.sum(s.Out, ir.Apply(ir.OpMul, weight, s.Value), s.Epilogue)
}

// own loads a new copy of the product that l loads, over the rows and keys of a chain.
func (c *chainRewrite) own(s *form.Stream, l *ir.Expr) *ir.Expr {
	free := ir.FreeRanges(l)
	var ranges []*ir.Range
	var shape []*ir.Expr
	for _, r := range append(algebra.Widened(s.Out.Axes), s.Keys...) {
		if free[r] {
			ranges, shape = append(ranges, r), append(shape, r.Extent)
		}
	}
	axes, at := c.graph.NewAxes(shape), map[*ir.Range]*ir.Expr{}
	for d, r := range ranges {
		at[r] = axes[d].At()
	}
	product := l.From
	inner, depth := c.depthOf(product)
	facts := c.graph.Facts()
	facts.Within = slices.Concat(axes, depth)
	body := ir.Simplify(ir.Substitute(ir.Substitute(form.BodyAt(l), at), inner), facts)
	v := c.graph.Adopt(&ir.Value{Name: product.Name + "_again", Type: product.Type, Axes: axes, Body: body,
		Reduce: &ir.Reduction{Op: ir.Sum, Ranges: depth}, Origin: product.Origin, Again: true})
	return ir.Load(v, ir.Indices(ranges), nil).At(l.Span)
}

// depthOf makes new ranges for a sum over the depth of a product, and maps the product's own ranges
// to them.
func (c *chainRewrite) depthOf(product *ir.Value) (to map[*ir.Range]*ir.Expr, depth []*ir.Range) {
	to = map[*ir.Range]*ir.Expr{}
	for _, r := range product.Reduce.Ranges {
		fresh := c.graph.NewRange(r.Name, r.Extent)
		to[r], depth = fresh.At(), append(depth, fresh)
	}
	return to, depth
}

// sum makes v the sum of a body over its ranges, in f32, with an epilogue, and returns the value with the sum alone.
func (c *chainRewrite) sum(v *ir.Value, body *ir.Expr, epilogue []func(*ir.Expr) *ir.Expr) *ir.Value {
	rw := &streamRewrite{Recogniser: &form.Recogniser{Graph: c.graph}, fresh: map[*ir.Value]*ir.Value{}}
	acc := rw.replace(v, v.Name+"_acc", body, epilogue...)
	c.before[v] = append(c.before[v], acc)
	return acc
}

// exchangeAll rewrites sums over keys of weights times a product as sums over the product's depth: with
// P = a b^T, sum_j w[i, j] P[i, j] is sum_e a[i, e] (sum_j w[i, j] b[j, e]). The inner sum is a stream, which does
// not need P. If a chain reads the product itself, the sum is not rewritten.
func (c *chainRewrite) exchangeAll() {
	chained := map[*ir.Value]bool{}
	for _, s := range c.chains {
		chained[s.Out] = true
	}
	for _, v := range c.graph.Values {
		if v.Reduce != nil && v.Reduce.Op == ir.Sum && v.Reduce.Where == nil && v.Type.IsFloat() && !chained[v] && !c.touched[v] && c.Reads(v.Body) {
			c.exchange(v)
		}
	}
}

func (c *chainRewrite) exchange(v *ir.Value) {
	s := &form.Stream{Out: v, Keys: v.Reduce.Ranges}
	factors := s.Factors(c.Expand(v.Body))
	at, others := -1, 0
	for i, f := range factors {
		l := form.Stripped(f)
		switch {
		case l.Op == ir.OpLoad && c.touched[l.From] && l.Fill == nil:
			at = i
		case c.Reads(f):
			others++
		}
	}
	if at < 0 || others != 1 {
		return
	}
	l := form.Stripped(factors[at])
	to, depth := c.depthOf(l.From)
	keys := algebra.RangeSet(s.Keys)
	row, weighted := ir.Num(ir.F32, 1), slices.Delete(slices.Clone(factors), at, at+1)
	for _, f := range form.FactorsOf(ir.Substitute(form.BodyAt(l), to)) {
		if algebra.DependsOnAny(f, keys) {
			weighted = append(weighted, f)
		} else {
			row = ir.Apply(ir.OpMul, row, ir.Cast(f, ir.F32))
		}
	}
	inner := c.inner(v, c.weighted(weighted), depth)
	c.before[v], c.weightings[inner.From] = append(c.before[v], inner.From), true
	v.Reduce = &ir.Reduction{Op: ir.Sum, Ranges: depth}
	c.exchanged[c.sum(v, ir.Apply(ir.OpMul, row, inner), s.Epilogue)] = true
}

// inner is the load, at v's points and a depth, of a new sum over v's keys.
func (c *chainRewrite) inner(v *ir.Value, body *ir.Expr, depth []*ir.Range) *ir.Expr {
	free, keys := ir.FreeRanges(body), map[*ir.Range]*ir.Expr{}
	at, fresh := map[*ir.Range]*ir.Expr{}, []*ir.Range(nil)
	for _, r := range v.Reduce.Ranges {
		k := c.graph.NewRange(r.Name, r.Extent)
		keys[r], fresh = k.At(), append(fresh, k)
	}
	var ranges []*ir.Range
	var shape []*ir.Expr
	for _, r := range append(algebra.Widened(v.Axes), depth...) {
		if free[r] {
			ranges, shape = append(ranges, r), append(shape, r.Extent)
		}
	}
	axes := c.graph.NewAxes(shape)
	for d, r := range ranges {
		at[r] = axes[d].At()
	}
	sum := c.graph.Adopt(&ir.Value{Name: v.Name + "_weighted", Type: ir.F32, Axes: axes,
		Body: ir.Substitute(ir.Substitute(body, keys), at), Reduce: &ir.Reduction{Op: ir.Sum, Ranges: fresh}, Origin: v.Origin})
	return ir.Load(sum, ir.Indices(ranges), nil)
}

// unwritten reports whether no kernel has to write the products that chains read before: each is now the
// scores of a stream, or has no reader.
func (c *chainRewrite) unwritten() bool {
	streams, _ := form.NewRecogniser(c.graph).Streams()
	scores := map[*ir.Value]bool{}
	for _, s := range streams {
		scores[s.Score.From] = true
	}
	return !slices.ContainsFunc(c.graph.Values, func(v *ir.Value) bool { return c.touched[v] && !scores[v] })
}
