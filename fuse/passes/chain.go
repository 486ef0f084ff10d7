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
	chainAll(g, true, false) // scores first, which are worth most
	chainAll(g, true, true)
	chainAll(g, false, false)
}

// chainAll rewrites all chains of a graph or, where that does not pay, those of each group for which it does.
func chainAll(g *ir.Graph, large, spread bool) {
	if len(form.NewChainFinder(g, large).Products) == 0 || !newChainRewrite(g.Clone(), large, spread).Any() || chained(g, large, spread, nil) {
		return
	}
	tried := map[int]bool{}
	for group := nextGroup(g, large, spread, tried); group != nil; group = nextGroup(g, large, spread, tried) {
		chained(g, large, spread, group)
	}
}

// chained rewrites the chains of a graph, or those of a group, and reports whether it did so. With spread set, it gives chains operands
// that they lack.
func chained(g *ir.Graph, large, spread bool, group map[int]bool) bool {
	trial := g.Clone()
	c := newChainRewrite(trial, large, spread)
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
	inlineWhere(trial, func(v *ir.Value) bool { return isView(v) && c.replaced[v] })
	c.inlineUnread()
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
	sums       map[*ir.Value]bool      // the sums of chains
	made       map[*ir.Value]bool      // new operands
	replaced   map[*ir.Value]bool      // sums that are functions of new ones now
}

// newChainRewrite looks at a copy of a graph, to which it adds operands if spread is set.
func newChainRewrite(g *ir.Graph, large, spread bool) *chainRewrite {
	made := map[*ir.Value]bool{}
	if spread {
		dropIdleAxes(g)
		made = spreadOperands(g, large)
	}
	finder := form.NewChainFinder(g, large)
	finder.Counting = spread
	return &chainRewrite{made: made, ChainFinder: finder, graph: g, recogniser: form.NewRecogniser(g), sizes: algebra.DefaultSizes(g),
		touched: map[*ir.Value]bool{}, before: map[*ir.Value][]*ir.Value{}, statistics: map[statistic]*ir.Value{}, weightings: map[*ir.Value]bool{}, exchanged: map[*ir.Value]bool{},
		sums: map[*ir.Value]bool{}, replaced: map[*ir.Value]bool{}}
}

// softmax reports whether v is a sum weighted by exponentials about their maximum, as streams
// are. Its other factors do not depend on the scores.
func (c *chainRewrite) softmax(v *ir.Value) bool {
	s := &form.Stream{Out: v, Keys: v.Reduce.Ranges}
	factors := s.Factors(c.Expand(v.Body))
	reading := slices.DeleteFunc(slices.Clone(factors), func(f *ir.Expr) bool { return !c.Reads(f) })
	if len(reading) != 1 || form.Stripped(reading[0]).Op != ir.OpExp {
		return false
	}
	_, ok := c.recogniser.Exponential(form.Stripped(reading[0]).Args[0], algebra.RangeSet(s.Keys))
	return ok && !slices.ContainsFunc(factors, func(f *ir.Expr) bool { return f != reading[0] && c.follows(f, reading[0]) })
}

// follows reports whether an expression depends on a product that a weight is made of, be it through sums.
func (c *chainRewrite) follows(e, weight *ir.Expr) bool {
	return slices.ContainsFunc(ir.Loads(weight), func(l *ir.Expr) bool { return c.Products[l.From] && form.DependsOn(e, l.From) })
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
			bytes += points * float64(s.Tensors().Size())
		}
		bytes += points * float64(s.Tensors().Size()) // each chain reads its weights
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
	if s.Value == nil {
		c.sums[c.count(s, weight)] = true
	} else {
		c.sums[c.sum(s.Out, ir.Apply(ir.OpMul, weight, s.Value), s.Epilogue)] = true
	}
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
	c.replaced[v] = true
	c.before[v] = append(c.before[v], acc)
	return acc
}

// unwritten reports whether no kernel has to write the products that chains read before: each is now the
// scores of a stream, or has no reader.
func (c *chainRewrite) unwritten() bool {
	streams := form.NewRecogniser(c.graph).Streams()
	scores := map[*ir.Value]bool{}
	for _, s := range streams {
		scores[s.Score.From] = true
	}
	return !slices.ContainsFunc(c.graph.Values, func(v *ir.Value) bool { return c.touched[v] && !scores[v] })
}
