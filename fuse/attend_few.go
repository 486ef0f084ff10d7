package fuse

import (
	"math"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/ir"
)

// Streams with few queries, as when a model writes one token after another: the
// time is that of reading keys and values once. Heads that share keys are rows of one
// tile, warps divide the keys of a block, and chunks of the keys are blocks of their
// own, whose states are merged in the graph.

const (
	chunkLeast  = 256 // keys of a chunk
	chunkBlocks = 2048
)

// fewQueries reports whether a number of queries, heads not counted, is a small
// constant.
func fewQueries(n *ir.Expr) bool { return n.Op == ir.OpConst && n.Int <= fragment }

// groupOf is n where expressions depend on r through r / n alone, and |r| is a
// multiple of n; 1 for none.
func groupOf(r *ir.Range, facts ir.Facts, exprs ...*ir.Expr) int64 {
	n := int64(0)
	for _, e := range exprs {
		ir.Walk(e, func(e *ir.Expr) bool {
			quotient := e.Op == ir.OpFloorDiv && e.Args[0].Op == ir.OpRange && e.Args[0].Range == r &&
				e.Args[1].Op == ir.OpConst
			switch {
			case quotient && (n == 0 || n == e.Args[1].Int):
				n = e.Args[1].Int
				return false
			case e.Op == ir.OpRange && e.Range == r:
				n = 1
			}
			return true
		})
	}
	if n < 2 || !ir.Multiple(r.Extent, n, facts) {
		return 1
	}
	return n
}

// packHeads makes rows of a tile of the heads of a group: a batch range of which keys
// and values know the quotient alone becomes that quotient and the head in the group.
func (lo *lowering) packHeads(a *ir.Attend) {
	for i, r := range a.Batch {
		n := groupOf(r, lo.facts(), a.K.Value, a.V.Value)
		if n == 1 {
			continue
		}
		g := lo.f.g
		outer := g.NewRange(r.Name, ir.Simplify(ir.Apply(ir.OpFloorDiv, r.Extent, ir.IntConst(n)), lo.facts()))
		inner := g.NewRange(r.Name+"_in_group", ir.IntConst(n))
		at := ir.Apply(ir.OpAdd, ir.Apply(ir.OpMul, outer.At(), ir.IntConst(n)), inner.At())
		with := map[*ir.Range]*ir.Expr{r: at}
		var rows []*ir.Range
		for _, row := range lo.k.Rows {
			if row == r {
				rows = append(rows, outer, inner)
			} else {
				rows = append(rows, row)
			}
		}
		lo.k.Rows = rows
		apply := func(e *ir.Expr) *ir.Expr {
			if e == nil {
				return nil
			}
			return ir.Simplify(ir.Substitute(e, with), lo.inside(ir.FullLevel))
		}
		for _, root := range lo.roots() { // a row may have no columns: what is done once a row must not assume one
			*root.expr = ir.Simplify(ir.Substitute(*root.expr, with), lo.inside(root.level))
		}
		lo.score.Def = apply(lo.score.Def)
		a.Q.Value, a.K.Value, a.V.Value = apply(a.Q.Value), apply(a.K.Value), apply(a.V.Value)
		a.Weight = apply(a.Weight)
		a.Batch[i] = outer
		a.M = append([]*ir.Range{inner}, a.M...)
		return
	}
}

// splitStreams cuts the keys of streams with few queries into chunks: each has its
// own maximum and sums, which then are merged. The chunk is a constant of the
// program, as for other reductions. A graph that is to be one kernel stays whole.
func splitStreams(g *ir.Graph) {
	if g.OneKernel {
		return
	}
	streams, _ := newRecogniser(g).streams()
	for _, s := range streams {
		if chunk := chunkOfKeys(g, s); chunk > 0 {
			(&streamSplit{g: g, stream: s, chunk: chunk}).run()
		}
	}
}

// inStreams is the reductions that run as one stream, and are not cut any more.
func inStreams(g *ir.Graph) map[*ir.Value]bool {
	out := map[*ir.Value]bool{}
	if g.Numerics == ir.Strict {
		return out
	}
	streams, _ := newRecogniser(g).streams()
	for _, s := range streams {
		if len(s.finish) > 0 {
			continue // not brought to the form of a stream: the device has none
		}
		for _, v := range append([]*ir.Value{s.out, s.score.From, s.weight.max.From}, s.sums...) {
			out[v] = true
		}
	}
	return out
}

// chunkOfKeys is the keys that a block should take; 0 where the stream is better left
// whole.
func chunkOfKeys(g *ir.Graph, s *stream) int64 {
	sizes := algebra.DefaultSizes(g)
	_, key, _ := s.sides()
	value := axesIn(s.out, s.value)
	queries, blocks := ir.IntConst(1), 1.0
	for _, r := range algebra.Widened(s.out.Axes) {
		switch {
		case s.n[r]:
		case value[r]:
			group := groupOf(r, g.Facts(), s.value)
			for d, a := range s.score.Args {
				if a.Op == ir.OpRange && a.Range == r && group > 1 {
					group = min(group, groupOf(s.score.From.Axes[d], g.Facts(), key))
				}
			}
			blocks *= algebra.Estimate(r.Extent, sizes) / float64(group)
		default:
			queries = ir.Simplify(ir.Apply(ir.OpMul, queries, r.Extent), g.Facts())
		}
	}
	keys := algebra.Estimate(s.keys[0].Extent, sizes)
	if !fewQueries(queries) || blocks >= chunkBlocks/2 || keys < 2*chunkLeast {
		return 0
	}
	chunk := int64(chunkLeast)
	for float64(chunk) < keys*blocks/chunkBlocks {
		chunk *= 2
	}
	return chunk
}

// streamSplit rewrites one stream.
type streamSplit struct {
	*stream
	g      *ir.Graph
	chunk  int64
	scores *ir.Value // of a chunk
	top    *ir.Value // of a chunk
	parts  *ir.Expr  // how many chunks
}

func (sp *streamSplit) run() {
	keys := sp.keys[0].Extent
	sp.parts = ir.Simplify(ir.Apply(ir.OpFloorDiv, ir.Apply(ir.OpAdd, keys, ir.IntConst(sp.chunk-1)),
		ir.IntConst(sp.chunk)), sp.g.Facts())
	before := map[*ir.Value][]*ir.Value{}
	score, top := sp.score.From, sp.weight.max.From
	sp.scores = sp.chunkOfScores(score)
	before[score] = []*ir.Value{sp.scores}
	m := newRecogniser(sp.g)
	sums := append([]*ir.Value(nil), sp.sums...)
	logit := stripped(m.whole[top])
	sp.top = sp.part(top, top.Reduce.Ranges[0], func(
		at func(*ir.Expr) *ir.Expr, inside *ir.Expr, _ *ir.Value,
	) *ir.Expr {
		return sp.masked(at(logit), inside)
	})
	before[top] = []*ir.Value{sp.top}
	for _, u := range append(sums, sp.out) {
		r := u.Reduce.Ranges[0]
		x, rest := sp.weight, []*ir.Expr{sp.factor, sp.value}
		if u != sp.out {
			x, _ = m.exponential(stripped(m.whole[u]).Args[0], map[*ir.Range]bool{r: true})
			rest = nil
		}
		part := sp.part(u, r, func(at func(*ir.Expr) *ir.Expr, inside *ir.Expr, part *ir.Value) *ir.Expr {
			maximum := ir.Load(sp.top, append([]*ir.Expr{part.Axes[0].At()}, at(x.max).Args...), nil)
			e := ir.Apply(ir.OpExp, scaled(x.scale, ir.Apply(ir.OpSub, sp.masked(at(x.logit), inside), maximum)))
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
	dropDead(sp.g)
}

// masked is a logit where the key exists, else -inf.
func (sp *streamSplit) masked(logit, inside *ir.Expr) *ir.Expr {
	return ir.Where(inside, ir.Cast(logit, ir.F32), ir.Num(ir.F32, math.Inf(-1)))
}

// chunkOfScores is the product with its keys in chunks, the outermost axis.
func (sp *streamSplit) chunkOfScores(v *ir.Value) *ir.Value {
	part, point := sp.g.NewRange("chunk", sp.parts), sp.g.NewRange(sp.keys[0].Name, ir.IntConst(sp.chunk))
	axes, at := []*ir.Range{part}, map[*ir.Range]*ir.Expr{}
	for d, r := range v.Axes {
		if a := sp.score.Args[d]; a.Op == ir.OpRange && a.Range == sp.keys[0] {
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
		Body: guardLoads(ir.Substitute(v.Body, at)), Reduce: &reduce, Origin: v.Origin})
}

func (sp *streamSplit) index(part, point *ir.Range) *ir.Expr {
	return ir.Apply(ir.OpAdd, ir.Apply(ir.OpMul, part.At(), ir.IntConst(sp.chunk)), point.At())
}

// part is a reduction over the keys of a chunk. body gets what writes an expression
// of v over the part's ranges, whether a key exists, and the part itself.
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
		return ir.Rewrite(guardLoads(ir.Substitute(e, rename)), func(l *ir.Expr) *ir.Expr {
			if l.Op != ir.OpLoad || l.From != sp.score.From {
				return l
			}
			args := []*ir.Expr{chunk.At()}
			for d, a := range l.Args {
				if s := sp.score.Args[d]; s.Op == ir.OpRange && s.Range == sp.keys[0] {
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

// merge makes v the sum of its parts, each as it is under the maximum of all. A part
// without a logit above -inf adds nothing.
func (sp *streamSplit) merge(v, part *ir.Value, x exponential) {
	over := sp.g.NewRange("chunk", sp.parts)
	load := func(of *ir.Value, at []*ir.Expr) *ir.Expr {
		return ir.Load(of, append([]*ir.Expr{over.At()}, at...), nil)
	}
	own := load(sp.top, x.max.Args)
	weight := ir.Apply(ir.OpExp, scaled(x.scale, ir.Apply(ir.OpSub, own, x.max)))
	none := ir.Apply(ir.OpEq, own, ir.Num(ir.F32, math.Inf(-1)))
	v.Body = ir.Where(none, ir.Num(ir.F32, 0), ir.Apply(ir.OpMul, weight, load(part, algebra.UnitIndices(v.Axes))))
	v.Reduce = &ir.Reduction{Op: ir.Sum, Ranges: []*ir.Range{over}}
}
