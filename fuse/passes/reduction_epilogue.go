package passes

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// foldProducts cuts reductions of products into those of tiles. A graph that is to be one kernel stays
// whole, because another kernel combines the partial results.
func foldProducts(g *ir.Graph) {
	if !mayAddKernels(g) {
		return
	}
	for {
		m := form.NewRecogniser(g)
		folds, _ := m.ReductionEpilogues()
		if len(folds) == 0 {
			return
		}
		(&foldRewrite{Recogniser: m, ReductionEpilogue: folds[0], before: map[*ir.Value][]*ir.Value{}}).run()
	}
}

// foldRewrite cuts the reductions of one product.
type foldRewrite struct {
	*form.Recogniser
	*form.ReductionEpilogue
	parts  *ir.Expr                  // number of chunks
	tile   *ir.Value                 // the product, in chunks
	tops   map[*ir.Value]*ir.Value   // maxima of chunks, by the maximum of the row
	before map[*ir.Value][]*ir.Value // new values, by the value that reads them
}

func (rw *foldRewrite) run() {
	extent := rw.Product.Axes[rw.Axis].Extent
	rw.parts = ir.Simplify(algebra.CeilDiv(extent, form.FoldTile), rw.Graph.Facts())
	rw.tops = map[*ir.Value]*ir.Value{}
	rw.tile = rw.tiled()
	rw.before[rw.Product] = []*ir.Value{rw.tile}
	type weighing struct {
		x    form.Exponential
		rest *ir.Expr
	}
	weighed, follows := map[*ir.Value]*weighing{}, rw.Following(rw.Product)
	for _, u := range rw.Folds { // collected before any of them changes
		if x, rest, ok := rw.Weighed(u, rw.ReductionEpilogue, follows); ok {
			weighed[u] = &weighing{x, rest}
		}
	}
	for _, u := range rw.Folds {
		switch w := weighed[u]; {
		case w != nil:
			rw.weights(u, w.x, w.rest)
		case u.Reduce.Op.IsArg():
			rw.place(u)
		default:
			rw.plain(u)
		}
	}
	for _, v := range rw.Graph.Values {
		if !slices.Contains(rw.Folds, v) && v != rw.tile {
			rw.pick(v)
		}
	}
	var values []*ir.Value
	for _, v := range rw.Graph.Values {
		values = append(append(values, rw.before[v]...), v)
	}
	rw.Graph.Values = values
	DropDead(rw.Graph)
}

// tiled is the product with the folded axis in chunks: its axes are the chunks, then the other axes in
// order, then the points of a chunk.
func (rw *foldRewrite) tiled() *ir.Value {
	v := rw.Product
	chunk, point := rw.chunk(), rw.Graph.NewRange(v.Axes[rw.Axis].Name, ir.IntConst(form.FoldTile))
	axes, at := []*ir.Range{chunk}, map[*ir.Range]*ir.Expr{v.Axes[rw.Axis]: rw.index(chunk, point)}
	for d, r := range v.Axes {
		if d == rw.Axis {
			continue
		}
		fresh := rw.Graph.NewRange(r.Name, r.Extent)
		axes, at[r] = append(axes, fresh), algebra.UnitIndices([]*ir.Range{fresh})[0]
	}
	reduce := *v.Reduce
	reduce.Ranges = nil
	for _, r := range v.Reduce.Ranges {
		fresh := rw.Graph.NewRange(r.Name, r.Extent)
		reduce.Ranges, at[r] = append(reduce.Ranges, fresh), fresh.At()
	}
	return rw.Graph.Adopt(&ir.Value{Name: v.Name + "_tile", Type: v.Type, Axes: append(axes, point), Reduce: &reduce,
		Body: rw.substitute(v.Body, at, v.Axes[rw.Axis]), Origin: v.Origin})
}

func (rw *foldRewrite) chunk() *ir.Range {
	return rw.Graph.NewRange(rw.Product.Axes[rw.Axis].Name+"_chunk", rw.parts)
}

func (rw *foldRewrite) index(chunk, point *ir.Range) *ir.Expr {
	return ir.Apply(ir.OpAdd, ir.Apply(ir.OpMul, chunk.At(), ir.IntConst(form.FoldTile)), point.At())
}

// substitute writes an expression over other ranges. An index that depends on folded may be past the end
// in the last chunk; what such loads return is not used.
func (rw *foldRewrite) substitute(e *ir.Expr, at map[*ir.Range]*ir.Expr, folded *ir.Range) *ir.Expr {
	e = ir.Rewrite(e, func(l *ir.Expr) *ir.Expr {
		if l.Op == ir.OpLoad && l.Fill == nil && l.From != rw.Product && ir.DependsOn(l, folded) {
			return ir.Load(l.From, l.Args, ir.Num(l.Type, 0)).At(l.Span)
		}
		return l
	})
	return ir.Substitute(e, at)
}

// part is a fold over the points of a chunk. Its axes are those of u, then the other ranges that u
// reduces, then the chunks, over which the partial results are combined.
func (rw *foldRewrite) part(u *ir.Value, name string, op ir.Monoid, body func(at func(*ir.Expr) *ir.Expr, chunk *ir.Expr) *ir.Expr) *ir.Value {
	load := form.OnlyLoad(rw.Whole(u), rw.Product)
	folded := load.Args[rw.Axis].Range
	chunk, point := rw.chunk(), rw.Graph.NewRange(folded.Name, ir.IntConst(form.FoldTile))
	var axes []*ir.Range
	rename := map[*ir.Range]*ir.Expr{folded: rw.index(chunk, point)}
	for _, r := range algebra.AllRanges(u) {
		if r == folded {
			continue
		}
		fresh := rw.Graph.NewRange(r.Name, r.Extent)
		axes, rename[r] = append(axes, fresh), algebra.UnitIndices([]*ir.Range{fresh})[0]
	}
	at := func(e *ir.Expr) *ir.Expr {
		e = rw.substitute(e, rename, folded)
		tile := rw.loadTile(chunk.At(), ir.Substitute(load, rename).Args, point.At())
		return ir.Rewrite(e, func(l *ir.Expr) *ir.Expr {
			if l.Op == ir.OpLoad && l.From == rw.Product {
				return tile.At(l.Span)
			}
			return l
		})
	}
	part := &ir.Value{Name: name, Axes: append(axes, chunk), Origin: u.Origin, Body: body(at, chunk.At()),
		Reduce: &ir.Reduction{Op: op, Ranges: []*ir.Range{point}, Where: rw.inside(rename[folded])}}
	if u.Reduce.Where != nil {
		part.Reduce.Where = ir.Join(ir.OpAnd, part.Reduce.Where, at(u.Reduce.Where))
	}
	part.Type = op.Accumulator(part.Body.Type)
	if op.IsArg() {
		part.Type = ir.I64
	} else {
		part.Body = ir.Cast(part.Body, part.Type)
	}
	rw.before[u] = append(rw.before[u], rw.Graph.Adopt(part))
	return part
}

// inside is the predicate that a point of a chunk exists; nil where all points of all chunks do.
func (rw *foldRewrite) inside(index *ir.Expr) *ir.Expr {
	cond := ir.Simplify(ir.Apply(ir.OpLt, index, rw.Product.Axes[rw.Axis].Extent), rw.Graph.Facts())
	if cond.IsConst(1) {
		return nil
	}
	return cond
}

// loadTile reads the product in chunks; at are the indices in the original product.
func (rw *foldRewrite) loadTile(chunk *ir.Expr, at []*ir.Expr, point *ir.Expr) *ir.Expr {
	args := []*ir.Expr{chunk}
	for d, e := range at {
		if d != rw.Axis {
			args = append(args, e)
		}
	}
	return ir.Load(rw.tile, append(args, point), nil)
}

// total makes v the reduction of whole over the chunks and the points of the other ranges that v reduces.
func (rw *foldRewrite) total(v *ir.Value, whole func(chunk *ir.Expr, at []*ir.Expr) *ir.Expr) {
	folded := form.OnlyLoad(rw.Whole(v), rw.Product).Args[rw.Axis].Range
	over := rw.chunk()
	ranges, at := []*ir.Range{over}, algebra.UnitIndices(v.Axes)
	for _, r := range v.Reduce.Ranges {
		if r != folded {
			ranges, at = append(ranges, r), append(at, algebra.UnitIndices([]*ir.Range{r})[0])
		}
	}
	body := whole(over.At(), at)
	v.Reduce = &ir.Reduction{Op: v.Reduce.Op, Ranges: ranges}
	v.Body = body
	if v.Type != body.Type {
		rw.before[v] = append(rw.before[v], roundToType(rw.Graph, v, body))
	}
}

// plain cuts a reduction that depends on the product alone.
func (rw *foldRewrite) plain(u *ir.Value) {
	part := rw.part(u, u.Name+"_part", u.Reduce.Op, func(at func(*ir.Expr) *ir.Expr, _ *ir.Expr) *ir.Expr { return at(rw.Whole(u)) })
	rw.tops[u] = part
	rw.total(u, func(chunk *ir.Expr, at []*ir.Expr) *ir.Expr {
		return partOf(part, chunk, at)
	})
}

// partOf reads a partial result.
func partOf(part *ir.Value, chunk *ir.Expr, at []*ir.Expr) *ir.Expr {
	return ir.Load(part, append(slices.Clone(at), chunk), nil)
}

// weights cuts a sum of exponentials. A chunk in which everything is -inf adds nothing. Where all chunks
// are such, the sum is NaN, as exp(-inf - -inf) is.
func (rw *foldRewrite) weights(u *ir.Value, x form.Exponential, rest *ir.Expr) {
	top := rw.tops[x.Max.From]
	part := rw.part(u, u.Name+"_part", ir.Sum, func(at func(*ir.Expr) *ir.Expr, chunk *ir.Expr) *ir.Expr {
		own := partOf(top, chunk, at(x.Max).Args)
		e := ir.Apply(ir.OpExp, form.Scaled(x.Scale, ir.Apply(ir.OpSub, ir.Cast(at(x.Logit), ir.F32), own)))
		if rest != nil {
			e = ir.Apply(ir.OpMul, e, ir.Cast(at(rest), ir.F32))
		}
		return e
	})
	rw.total(u, func(chunk *ir.Expr, at []*ir.Expr) *ir.Expr {
		own, all := partOf(top, chunk, x.Max.Args), ir.Cast(x.Max, ir.F32)
		weight := ir.Apply(ir.OpExp, form.Scaled(x.Scale, ir.Apply(ir.OpSub, own, all)))
		nothing := ir.Apply(ir.OpAnd, ir.Apply(ir.OpEq, own, form.MinusInfinity()), ir.Apply(ir.OpNe, all, form.MinusInfinity()))
		return ir.Where(nothing, ir.Num(ir.F32, 0), ir.Apply(ir.OpMul, weight, partOf(part, chunk, at)))
	})
}

// place cuts the search for the place of an extreme into two: the first chunk that has the extreme, and
// its place there.
func (rw *foldRewrite) place(u *ir.Value) {
	body := func(at func(*ir.Expr) *ir.Expr, _ *ir.Expr) *ir.Expr { return at(rw.Whole(u)) }
	value, where := rw.part(u, u.Name+"_best", u.Reduce.Op.Extreme(), body), rw.part(u, u.Name+"_part", u.Reduce.Op, body)
	over := rw.chunk()
	axes := rw.Graph.NewAxes(u.Shape())
	best := rw.Graph.Adopt(&ir.Value{Name: u.Name + "_chunk", Type: ir.I64, Axes: axes, Origin: u.Origin,
		Body:   partOf(value, over.At(), algebra.UnitIndices(axes)),
		Reduce: &ir.Reduction{Op: u.Reduce.Op, Ranges: []*ir.Range{over}}})
	rw.before[u] = append(rw.before[u], best)
	chunk := ir.Load(best, algebra.UnitIndices(u.Axes), nil)
	// A reduction over nothing has no chunk, and its place is 0.
	in := ir.Load(where, append(algebra.UnitIndices(u.Axes), ir.Cast(chunk, ir.Index)), ir.IntNum(ir.I64, 0))
	u.Body = ir.Cast(ir.Apply(ir.OpAdd, ir.Apply(ir.OpMul, chunk, ir.IntNum(ir.I64, form.FoldTile)), in), u.Type)
	u.Reduce = nil
}

// pick replaces the elements of the product that a value picks.
func (rw *foldRewrite) pick(v *ir.Value) {
	v.MapExprs(func(e *ir.Expr) *ir.Expr {
		return ir.Rewrite(e, func(l *ir.Expr) *ir.Expr {
			if l.Op != ir.OpLoad || l.From != rw.Product || !rw.Picks(l) {
				return l
			}
			return rw.picked(v, l)
		})
	})
}

// picked is an element of the product, as the sum over the chunks of the one element whose index is asked
// for.
func (rw *foldRewrite) picked(v *ir.Value, l *ir.Expr) *ir.Expr {
	chunk, point, over := rw.chunk(), rw.Graph.NewRange(rw.Product.Axes[rw.Axis].Name, ir.IntConst(form.FoldTile)), rw.chunk()
	index := rw.index(chunk, point)
	var shape, args, at []*ir.Expr // shape of the element; indices at which v picks it; indices of a part
	rename := map[*ir.Range]*ir.Expr{}
	var axes []*ir.Range
	for d, e := range l.Args {
		if d == rw.Axis {
			at = append(at, index)
			continue
		}
		fresh := rw.Graph.NewRange(rw.Product.Axes[d].Name, rw.Product.Axes[d].Extent)
		axes, shape, args = append(axes, fresh), append(shape, fresh.Extent), append(args, e)
		at = append(at, algebra.UnitIndices([]*ir.Range{fresh})[0])
		if e.Op == ir.OpRange {
			rename[e.Range] = fresh.At()
		}
	}
	asked := ir.Apply(ir.OpEq, index, ir.Substitute(l.Args[rw.Axis], rename))
	part := rw.Graph.Adopt(&ir.Value{Name: rw.Product.Name + "_at_part", Type: ir.F32, Axes: append(axes, chunk), Origin: v.Origin,
		Body:   ir.Cast(rw.loadTile(chunk.At(), at, point.At()), ir.F32),
		Reduce: &ir.Reduction{Op: ir.Sum, Ranges: []*ir.Range{point}, Where: ir.Join(ir.OpAnd, rw.inside(index), asked)}})
	own := rw.Graph.NewAxes(shape)
	whole := rw.Graph.Adopt(&ir.Value{Name: rw.Product.Name + "_at", Type: ir.F32, Axes: own, Origin: v.Origin,
		Body:   partOf(part, over.At(), algebra.UnitIndices(own)),
		Reduce: &ir.Reduction{Op: ir.Sum, Ranges: []*ir.Range{over}}})
	rw.before[v] = append(rw.before[v], part, whole)
	out := ir.Cast(ir.Load(whole, args, nil), l.Type).At(l.Span)
	if l.Fill == nil {
		return out
	}
	extent := rw.Product.Axes[rw.Axis].Extent
	if guard := ir.Inside([]*ir.Expr{extent}, []*ir.Expr{l.Args[rw.Axis]}, rw.Graph.Facts()); guard != nil {
		return ir.Where(guard, out, l.Fill)
	}
	return out
}
