package passes

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// A gate multiplies halves of one product: z = x @ w, then z[:, :n] * sigmoid(z[:, n:]). What computes an element of the result needs two of z
// that lie far apart, so that z is written. As two products, by the columns of w that each half comes from, both are in one kernel, as
// silu(x @ w1) * (x @ w3) is: a tile of each, with x read once. The halves may also lie between each other, z[:, ::2] and z[:, 1::2], and
// each may have a reader of its own: then each product is in the kernel of its reader.

// Figures of products that become several.
const (
	gateProducts = 2 // products with a common operand that share a kernel
	mostParts    = 4 // parts of a product
)

// splitGates makes a product for each part of one, where its readers read it in parts.
func splitGates(g *ir.Graph) {
	if !mayAddKernels(g) {
		return
	}
	s := &gateSplitter{g: g, sizes: algebra.DefaultSizes(g)}
	s.find()
	s.sink()
	split := map[*ir.Value][]*ir.Value{} // the products of the parts, by the whole one
	for _, v := range g.Values {
		if parts := s.partsOf(v); parts != nil && s.splits(v, parts) {
			split[v] = s.splitInto(v, parts)
		}
	}
	if len(split) == 0 {
		return
	}
	var values []*ir.Value
	for _, v := range g.Values {
		values = append(append(values, v), split[v]...)
	}
	g.Values = values
	DropDead(g)
}

// gateSplitter is a graph with the readers of its values.
type gateSplitter struct {
	g       *ir.Graph
	sizes   map[string]int64
	readers map[*ir.Value][]*ir.Value // in order, each once
	results map[*ir.Value]bool
}

func (s *gateSplitter) find() {
	s.readers, s.results = map[*ir.Value][]*ir.Value{}, map[*ir.Value]bool{}
	for _, u := range s.g.Values {
		for _, l := range u.Loads() {
			if !slices.Contains(s.readers[l.From], u) {
				s.readers[l.From] = append(s.readers[l.From], u)
			}
		}
	}
	for _, o := range s.g.Outputs {
		s.results[o.Value] = true
	}
}

// sink computes values that are only read in parts, and follow products, in the readers of the parts. Each element is still computed
// once, and the products are then read in parts.
func (s *gateSplitter) sink() {
	sunk := false
	for _, v := range slices.Backward(s.g.Values) {
		if v.IsInput() || v.Reduce != nil || !s.followsProducts(v) {
			continue
		}
		if parts := s.partsOf(v); parts == nil || !s.pays(v, parts) {
			continue
		}
		for _, reader := range s.readers[v] {
			reader.MapExprs(func(e *ir.Expr) *ir.Expr {
				return ir.Rewrite(e, func(e *ir.Expr) *ir.Expr {
					if e.Op != ir.OpLoad || e.From != v {
						return e
					}
					at := map[*ir.Range]*ir.Expr{}
					for d, r := range v.Axes {
						at[r] = e.Args[d]
					}
					return ir.Simplify(ir.Substitute(v.Body, at), s.g.Facts())
				})
			})
		}
		sunk = true
	}
	if sunk {
		DropDead(s.g)
		s.find()
	}
}

// followsProducts reports whether a value reads products that nothing else reads, each element at its own place, so that the
// products may become those of its parts.
func (s *gateSplitter) followsProducts(v *ir.Value) bool {
	some := false
	for _, l := range v.Loads() {
		if !form.IsTileProduct(l.From) {
			continue
		}
		own := len(l.Args) == len(v.Axes) && l.Fill == nil && columnsOfOne(l.From) && len(s.readers[l.From]) == 1 && !s.results[l.From]
		for d, at := range l.Args {
			own = own && at.Op == ir.OpRange && at.Range == v.Axes[d] && ir.SameSize(at.Range.Extent, l.From.Axes[d].Extent)
		}
		if !own {
			return false
		}
		some = true
	}
	return some
}

// splits reports whether a product becomes those of its parts.
func (s *gateSplitter) splits(v *ir.Value, parts []gatePart) bool {
	return form.IsTileProduct(v) && columnsOfOne(v) && s.pays(v, parts)
}

// pays reports whether the products of parts are better than one, or than the products that a value follows: where one value reads two parts
// together, or where each part has a reader of its own, and these products read no more than one product would write, and its readers
// read. Columns that have to be copied to lie beside each other take no more than half of what is not written then.
func (s *gateSplitter) pays(v *ir.Value, parts []gatePart) bool {
	depth, copied := 0.0, 0.0
	for _, product := range productsIn(v) {
		depth = max(depth, algebra.PointsAt(product.Reduce.Ranges, s.sizes))
		a, b := form.SidesOf(product)
		if a == nil || b == nil || parts[0].apart == 1 {
			continue
		}
		if side := s.columnsApart(product, &a, &b); side != nil {
			copied += algebra.BytesAt(form.WithoutWidening(*side).From, s.sizes)
		}
	}
	if 2*copied > algebra.BytesAt(v, s.sizes) {
		return false
	}
	if len(s.readers[v]) == 1 {
		return len(parts) == gateProducts
	}
	columns := algebra.Estimate(v.Axes[len(v.Axes)-1].Extent, s.sizes)
	return len(parts) == len(s.readers[v]) && depth*float64(len(parts)-1) <= 2*columns
}

// productsIn is a product, or the products that another value reads.
func productsIn(v *ir.Value) (out []*ir.Value) {
	if v.Reduce != nil {
		return []*ir.Value{v}
	}
	for _, l := range v.Loads() {
		if form.IsTileProduct(l.From) {
			out = append(out, l.From)
		}
	}
	return out
}

// columnsOfOne reports whether one side alone of a product depends on its last axis.
func columnsOfOne(v *ir.Value) bool {
	a, b := form.SidesOf(v)
	if v.Reduce.Where != nil || a == nil || b == nil || !halfLoad(a) || !halfLoad(b) {
		return false
	}
	last := v.Axes[len(v.Axes)-1]
	inA, inB := form.AxesIn(v, a), form.AxesIn(v, b)
	return inA[last] != inB[last]
}

// splitInto makes a product for each part of one, and has the readers read these. Columns that lie between those of other parts are copied
// beside each other, unless the sum runs along memory.
func (s *gateSplitter) splitInto(v *ir.Value, parts []gatePart) (made []*ir.Value) {
	g, last := s.g, len(v.Axes)-1
	column := v.Axes[last]
	products := make([]*ir.Value, len(parts))
	for i, part := range parts {
		u := *v
		u.Name, u.Axes = v.Name+"_part", slices.Clone(v.Axes)
		u.Axes[last] = g.NewRange(column.Name, part.length)
		place := ir.Simplify(ir.Apply(ir.OpAdd, ir.Apply(ir.OpMul, u.Axes[last].At(), ir.IntConst(part.apart)), part.from), g.Facts())
		reduce := *v.Reduce
		u.Reduce, u.Body = &reduce, ir.Substitute(v.Body, map[*ir.Range]*ir.Expr{column: place})
		products[i] = freshAxes(g, &u)
		if part.apart > 1 {
			made = append(made, s.copyColumns(products[i])...)
		}
		made = append(made, products[i])
	}
	for _, reader := range s.readers[v] {
		reader.MapExprs(func(e *ir.Expr) *ir.Expr {
			return ir.Rewrite(e, func(e *ir.Expr) *ir.Expr {
				if e.Op != ir.OpLoad || e.From != v {
					return e
				}
				part, column, _ := columnsAt(e, reader, g.Facts())
				i := slices.IndexFunc(parts, func(p gatePart) bool { return p.same(part, g.Facts()) })
				at := slices.Clone(e.Args)
				at[last] = column.At()
				return ir.Load(products[i], at, nil).At(e.Span)
			})
		})
	}
	return made
}

// copyColumns gives the side of a product that has its columns a value of its own where these lie apart in memory, with others between
// them, and returns it.
func (s *gateSplitter) copyColumns(v *ir.Value) []*ir.Value {
	a, b := form.SidesOf(v)
	side := s.columnsApart(v, &a, &b)
	if side == nil {
		return nil
	}
	copied := copyAlongSum(s.g, v, form.WithoutWidening(*side), s.sizes)
	*side = ir.Cast(copied, (*side).Type).At((*side).Span)
	v.Body = ir.Apply(ir.OpMul, a, b).At(v.Body.Span)
	return []*ir.Value{copied.From}
}

// columnsApart is which of the sides of a product has its columns, where these would lie apart in memory with others between them; nil where the
// sum runs along memory.
func (s *gateSplitter) columnsApart(v *ir.Value, a, b **ir.Expr) **ir.Expr {
	last := v.Axes[len(v.Axes)-1]
	for _, side := range []**ir.Expr{a, b} {
		load := form.WithoutWidening(*side)
		if !ir.DependsOn(load, last) {
			continue
		}
		if _, term := stridesAlong(load, []*ir.Range{algebra.Innermost(v.Reduce.Ranges)}, s.g.Facts()); term != nil && term.IsConst(1) {
			return nil
		}
		return side
	}
	return nil
}
