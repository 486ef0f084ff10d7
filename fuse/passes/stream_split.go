package passes

import (
	"math"
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/forecast"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

const (
	chunkLeast  = 256 // keys of a chunk
	chunkBlocks = 2048
	tileKeys    = 2048 // least keys of a chunk for a tile of queries: a block takes 10 to 20 us for them
	partKeys    = 400  // keys that take as long as writing and reading the results of a chunk
	unevenCost  = 1.05 // times that of chunks of the same size, for checking the last keys
	keysAligned = 8    // keys that a vector of a mask has
)

// tileQueries are the queries of a block, in the mappings that there are.
var tileQueries = []float64{128, 192}

// splitStreams cuts the keys of streams with few queries into chunks. Each chunk has its own maximum and
// sums, which are then merged. The chunk is a constant of the program, as for other reductions. A graph
// that is to be one kernel stays whole.
func splitStreams(g *ir.Graph) {
	if g.OneKernel {
		return
	}
	streams := form.NewRecogniser(g).Streams()
	for _, s := range streams {
		if chunk := chunkOfKeys(g, s); chunk > 0 {
			(&streamSplit{g: g, Stream: s, chunk: chunk}).run()
		}
	}
}

// chunkOfKeys is the keys that a block should take; 0 where the stream should stay whole.
func chunkOfKeys(g *ir.Graph, s *form.Stream) int64 {
	sizes := algebra.DefaultSizes(g)
	queries, blocks := queriesOf(g, s), headsOf(g, s, sizes)
	keys := algebra.Estimate(s.Keys[0].Extent, sizes)
	if !forecast.FewQueries(queries) {
		return chunkOfTiles(g, s, queries, blocks, sizes)
	}
	if blocks >= chunkBlocks/2 || keys < 2*chunkLeast {
		return 0
	}
	chunk := int64(chunkLeast)
	for float64(chunk) < keys*blocks/chunkBlocks {
		chunk *= 2
	}
	return chunk
}

// queriesOf is the number of queries of each head.
func queriesOf(g *ir.Graph, s *form.Stream) *ir.Expr {
	queries, value := ir.IntConst(1), form.AxesIn(s.Out, s.Value)
	for _, r := range algebra.Widened(s.Out.Axes) {
		if !s.Own[r] && !value[r] {
			queries = ir.Simplify(ir.Apply(ir.OpMul, queries, r.Extent), g.Facts())
		}
	}
	return queries
}

// headsOf is the number of heads that have keys of their own, at the given sizes.
func headsOf(g *ir.Graph, s *form.Stream, sizes map[string]int64) float64 {
	_, key, _ := s.Sides()
	heads, value := 1.0, form.AxesIn(s.Out, s.Value)
	for _, r := range algebra.Widened(s.Out.Axes) {
		if s.Own[r] || !value[r] {
			continue
		}
		group := algebra.GroupOf(r, g.Facts(), s.Value)
		for d, a := range s.Score.Args {
			if a.Op == ir.OpRange && a.Range == r {
				group = min(group, algebra.GroupOf(s.Score.From.Axes[d], g.Facts(), key))
			}
		}
		heads *= algebra.Estimate(r.Extent, sizes) / float64(group)
	}
	return heads
}

// chunkOfTiles is the keys that a block should take if tiles of queries, in all heads, are fewer than the
// multiprocessors of a large GPU; 0 where the stream should stay whole. It is the size with which the last
// round of blocks and the results of the chunks, which go through memory, together cost least. If chunks can
// be of the same size, no key has to be checked.
func chunkOfTiles(g *ir.Graph, s *form.Stream, queries *ir.Expr, heads float64, sizes map[string]int64) int64 {
	for _, r := range append(slices.Clone(s.Out.Axes), s.Keys...) {
		if !algebra.HasUsualSize(g, r.Extent) { // a guess at a size is no reason for a second kernel
			return 0
		}
	}
	keys := algebra.Estimate(s.Keys[0].Extent, sizes)
	rows := algebra.Estimate(queries, sizes)
	if heads*math.Ceil(rows/tileQueries[0]) >= ir.ReferenceSMs {
		return 0
	}
	cost := func(parts, chunk float64) (most float64) {
		for _, tile := range tileQueries {
			tiles := heads * math.Ceil(rows/tile)
			rounds := math.Ceil(tiles * parts / ir.ReferenceSMs)
			most = max(most, tile/tileQueries[0]*(rounds*chunk+tiles/ir.ReferenceSMs*partKeys*parts))
		}
		return most
	}
	best, least := int64(0), cost(1, keys)-tileKeys
	for parts := 2.0; parts <= keys/tileKeys; parts++ {
		chunk := int64(math.Ceil(keys/parts/chunkLeast)) * chunkLeast
		even := int64(keys / parts)
		same := s.Keys[0].Extent.IsConst(float64(even)*parts) && even%keysAligned == 0
		if same {
			chunk = even
		}
		takes := cost(parts, float64(chunk))
		if !same {
			takes *= unevenCost
		}
		if takes < least {
			best, least = chunk, takes
		}
	}
	return best
}

// streamSplit rewrites one stream.
type streamSplit struct {
	*form.Stream
	g      *ir.Graph
	chunk  int64
	scores *ir.Value // of a chunk
	top    *ir.Value // of a chunk
	parts  *ir.Expr  // number of chunks
}

func (sp *streamSplit) run() {
	keys := sp.Keys[0].Extent
	sp.parts = ir.Simplify(ir.Apply(ir.OpFloorDiv, ir.Apply(ir.OpAdd, keys, ir.IntConst(sp.chunk-1)),
		ir.IntConst(sp.chunk)), sp.g.Facts())
	before := map[*ir.Value][]*ir.Value{}
	score, top := sp.Score.From, sp.Weight.Max.From
	sp.scores = sp.chunkOfScores(score)
	before[score] = []*ir.Value{sp.scores}
	m := form.NewRecogniser(sp.g)
	sums := append([]*ir.Value(nil), sp.Sums...)
	logit := form.Stripped(m.Whole(top))
	sp.top = sp.part(top, top.Reduce.Ranges[0], func(
		at func(*ir.Expr) *ir.Expr, inside *ir.Expr, _ *ir.Value,
	) *ir.Expr {
		return sp.masked(at(logit), inside)
	})
	before[top] = []*ir.Value{sp.top}
	for _, u := range append(sums, sp.Out) {
		r := u.Reduce.Ranges[0]
		x, rest := sp.Weight, []*ir.Expr{sp.Factor, sp.Value}
		if u != sp.Out {
			x, _ = m.Exponential(form.Stripped(m.Whole(u)).Args[0], map[*ir.Range]bool{r: true})
			rest = nil
		}
		part := sp.part(u, r, func(at func(*ir.Expr) *ir.Expr, inside *ir.Expr, part *ir.Value) *ir.Expr {
			maximum := ir.Load(sp.top, append([]*ir.Expr{part.Axes[0].At()}, at(x.Max).Args...), nil)
			e := ir.Apply(ir.OpExp, form.Scaled(x.Scale, ir.Apply(ir.OpSub, sp.masked(at(x.Logit), inside), maximum)))
			for _, f := range rest {
				if f != nil {
					e = ir.Apply(ir.OpMul, e, at(f))
				}
			}
			return e
		})
		before[u] = []*ir.Value{part}
		sp.merge(u, part, x)
	}
	over := sp.g.NewRange("chunk", sp.parts)
	top.Reduce = &ir.Reduction{Op: ir.Max, Ranges: []*ir.Range{over}}
	top.Body = ir.Load(sp.top, append([]*ir.Expr{over.At()}, algebra.UnitIndices(top.Axes)...), nil)
	var values []*ir.Value
	for _, v := range sp.g.Values {
		values = append(append(values, before[v]...), v)
	}
	sp.g.Values = values
	DropDead(sp.g)
}

// masked is a logit where the key exists, and -inf elsewhere.
func (sp *streamSplit) masked(logit, inside *ir.Expr) *ir.Expr {
	return ir.Where(inside, ir.Cast(logit, ir.F32), ir.Num(ir.F32, math.Inf(-1)))
}

// chunkOfScores is the product of queries and keys with its keys in chunks, which are the outermost axis.
func (sp *streamSplit) chunkOfScores(v *ir.Value) *ir.Value {
	part, point := sp.g.NewRange("chunk", sp.parts), sp.g.NewRange(sp.Keys[0].Name, ir.IntConst(sp.chunk))
	axes, at := []*ir.Range{part}, map[*ir.Range]*ir.Expr{}
	for d, r := range v.Axes {
		if a := sp.Score.Args[d]; a.Op == ir.OpRange && a.Range == sp.Keys[0] {
			axes, at[r] = append(axes, point), sp.index(part, point)
			continue
		}
		fresh := sp.g.NewRange(r.Name, r.Extent)
		axes, at[r] = append(axes, fresh), fresh.At()
		if algebra.IsUnit(r) {
			at[r] = ir.IntConst(0)
		}
	}
	reduce := *v.Reduce
	return sp.g.Adopt(&ir.Value{Name: v.Name + "_part", Type: v.Type, Axes: axes,
		Body: form.GuardLoads(ir.Substitute(v.Body, at)), Reduce: &reduce, Origin: v.Origin})
}

func (sp *streamSplit) index(part, point *ir.Range) *ir.Expr {
	return ir.Apply(ir.OpAdd, ir.Apply(ir.OpMul, part.At(), ir.IntConst(sp.chunk)), point.At())
}

// part is a reduction over the keys of a chunk. body gets a function that writes an expression of v over
// the part's ranges, the condition that a key exists, and the part itself.
func (sp *streamSplit) part(
	v *ir.Value, keys *ir.Range,
	body func(at func(*ir.Expr) *ir.Expr, inside *ir.Expr, part *ir.Value) *ir.Expr,
) *ir.Value {
	chunk, point := sp.g.NewRange("chunk", sp.parts), sp.g.NewRange(keys.Name, ir.IntConst(sp.chunk))
	axes := sp.g.NewAxes(v.Shape())
	rename := map[*ir.Range]*ir.Expr{keys: sp.index(chunk, point)}
	for d, r := range v.Axes {
		rename[r] = algebra.UnitIndices(axes)[d]
	}
	at := func(e *ir.Expr) *ir.Expr {
		return ir.Rewrite(form.GuardLoads(ir.Substitute(e, rename)), func(l *ir.Expr) *ir.Expr {
			if l.Op != ir.OpLoad || l.From != sp.Score.From {
				return l
			}
			args := []*ir.Expr{chunk.At()}
			for d, a := range l.Args {
				if s := sp.Score.Args[d]; s.Op == ir.OpRange && s.Range == sp.Keys[0] {
					a = point.At()
				}
				args = append(args, a)
			}
			return ir.Load(sp.scores, args, nil)
		})
	}
	part := &ir.Value{Name: v.Name + "_part", Type: ir.F32, Axes: append([]*ir.Range{chunk}, axes...),
		Origin: v.Origin,
		Reduce: &ir.Reduction{Op: v.Reduce.Op, Ranges: []*ir.Range{point}}}
	part.Body = body(at, ir.Apply(ir.OpLt, sp.index(chunk, point), keys.Extent), part)
	return sp.g.Adopt(part)
}

// merge makes v the sum of its parts, each rescaled to the maximum of all. A part in which every logit is
// -inf adds nothing.
func (sp *streamSplit) merge(v, part *ir.Value, x form.Exponential) {
	over := sp.g.NewRange("chunk", sp.parts)
	load := func(of *ir.Value, at []*ir.Expr) *ir.Expr {
		return ir.Load(of, append([]*ir.Expr{over.At()}, at...), nil)
	}
	own := load(sp.top, x.Max.Args)
	weight := ir.Apply(ir.OpExp, form.Scaled(x.Scale, ir.Apply(ir.OpSub, own, x.Max)))
	none := ir.Apply(ir.OpEq, own, ir.Num(ir.F32, math.Inf(-1)))
	v.Body = ir.Where(none, ir.Num(ir.F32, 0), ir.Apply(ir.OpMul, weight, load(part, algebra.UnitIndices(v.Axes))))
	v.Reduce = &ir.Reduction{Op: ir.Sum, Ranges: []*ir.Range{over}}
}
