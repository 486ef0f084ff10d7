package passes

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// rejoinParts makes one value of several pointwise values that are the same function of the parts of
// one product, or of what follows a product element by element. An example is a bias that a program adds to queries, keys and
// values, after splitting the one product that computes them. The value becomes an epilogue of the product's kernel, and its
// parts are views.
func rejoinParts(g *ir.Graph) {
	parts, wholes := map[*ir.Value][]*part{}, productsWithEpilogues(g)
	for _, v := range g.Values {
		if p := asPart(g, v, wholes); p != nil {
			parts[p.product] = append(parts[p.product], p)
		}
	}
	readers := countReaders(g)
	before := map[*ir.Value]*ir.Value{} // the joined value, by the first of its parts
	for _, v := range g.Values {
		for _, group := range sameFunction(parts[v]) {
			if len(group) == readers[v] && tilesAxis(group, g.Facts()) {
				before[group[0].value] = rejoined(g, group)
			}
		}
	}
	if len(before) == 0 {
		return
	}
	var values []*ir.Value
	for _, v := range g.Values {
		if whole := before[v]; whole != nil {
			values = append(values, whole)
		}
		values = append(values, v)
	}
	g.Values = values
	InlineViews(g)
}

// productsWithEpilogues are the products of a graph, and the values that are computed element by element from one that nothing else
// reads.
func productsWithEpilogues(g *ir.Graph) map[*ir.Value]bool {
	readers, wholes, alone := countReaders(g), map[*ir.Value]bool{}, map[*ir.Value]bool{}
	for _, v := range g.Values {
		if v.IsInput() {
			continue
		}
		wholes[v] = form.Crosses(v) || v.Reduce == nil && followsOne(v, alone)
		alone[v] = wholes[v] && readers[v] == 1
	}
	return wholes
}

// A part is a pointwise value that depends on the points of a product from an offset on, along one axis.
type part struct {
	value, product *ir.Value // product may be what follows one
	axis           int
	offset         *ir.Expr
	body           *ir.Expr // over the ranges of the product
}

// asPart describes a value as a part of the one product that it reads; nil where it is none.
func asPart(g *ir.Graph, v *ir.Value, products map[*ir.Value]bool) *part {
	if v.IsInput() || v.Reduce != nil || v.Body.Op == ir.OpLoad {
		return nil
	}
	var load *ir.Expr
	for _, l := range v.Loads() {
		if !products[l.From] {
			continue
		}
		if load != nil && !ir.Equal(l, load) {
			return nil
		}
		load = l
	}
	if load == nil || len(load.Args) != len(v.Axes) || load.Fill != nil {
		return nil
	}
	p := &part{value: v, product: load.From, axis: -1, offset: ir.IntConst(0)}
	at := map[*ir.Range]*ir.Expr{}
	for d, arg := range load.Args {
		r, own := v.Axes[d], load.From.Axes[d]
		at[r] = own.At()
		if ir.SameSize(r.Extent, own.Extent) && arg.Op == ir.OpRange && arg.Range == r {
			continue
		}
		offset := ir.Simplify(ir.Apply(ir.OpSub, arg, r.At()), g.Facts())
		if p.axis >= 0 || len(ir.FreeRanges(offset)) > 0 {
			return nil
		}
		p.axis, p.offset = d, offset
		at[r] = ir.Apply(ir.OpSub, own.At(), offset)
	}
	if p.axis < 0 {
		return nil
	}
	p.body = ir.Simplify(ir.Substitute(v.Body, at), g.Facts())
	return p
}

// sameFunction groups parts that are the same function of the product's points.
func sameFunction(parts []*part) (groups [][]*part) {
	for _, p := range parts {
		like := func(group []*part) bool {
			return group[0].axis == p.axis && group[0].value.Type == p.value.Type && ir.Equal(group[0].body, p.body)
		}
		if i := slices.IndexFunc(groups, like); i >= 0 {
			groups[i] = append(groups[i], p)
		} else {
			groups = append(groups, []*part{p})
		}
	}
	return slices.DeleteFunc(groups, func(group []*part) bool { return len(group) < 2 })
}

// tilesAxis reports whether parts follow each other from the start of their axis to its end.
func tilesAxis(group []*part, facts ir.Facts) bool {
	at := ir.IntConst(0)
	for range group {
		next := slices.IndexFunc(group, func(p *part) bool { return ir.SameIndex(p.offset, at, facts) })
		if next < 0 {
			return false
		}
		at = ir.Simplify(ir.Apply(ir.OpAdd, at, group[next].value.Axes[group[next].axis].Extent), facts)
	}
	return ir.SameIndex(at, group[0].product.Axes[group[0].axis].Extent, facts)
}

// rejoined is the value of all parts, each of which becomes a view of it.
func rejoined(g *ir.Graph, group []*part) *ir.Value {
	first := group[0]
	axes := g.NewAxes(first.product.Shape())
	at := map[*ir.Range]*ir.Expr{}
	for d, r := range first.product.Axes {
		at[r] = axes[d].At()
	}
	whole := g.Adopt(&ir.Value{Name: first.product.Name + "_whole", Type: first.value.Type, Axes: axes,
		Body: ir.Substitute(first.body, at), Origin: first.value.Origin})
	for _, p := range group {
		args := algebra.UnitIndices(p.value.Axes)
		args[p.axis] = ir.Apply(ir.OpAdd, p.value.Axes[p.axis].At(), p.offset)
		p.value.Body = ir.Load(whole, args, nil)
	}
	return whole
}
