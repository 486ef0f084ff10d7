package passes

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// A gate multiplies halves of one product: z = x @ w, then z[:, :n] * sigmoid(z[:, n:]). What computes an element of the result needs two of z
// that lie far apart, so that z is written. As two products, by the columns of w that each half comes from, both are in one kernel, as
// silu(x @ w1) * (x @ w3) is: a tile of each, with x read once.

// splitGates makes a product for each of two parts of one, where one value reads both, at the same place of each part.
func splitGates(g *ir.Graph) {
	if !mayAddKernels(g) {
		return
	}
	only := soleReaders(g)
	split := map[*ir.Value][]*ir.Value{} // the products of the parts, by the whole one
	for _, v := range g.Values {
		reader := only[v]
		if reader == nil || !form.IsTileProduct(v) {
			continue
		}
		if parts := gateParts(g, v, reader); parts != nil {
			split[v] = splitInto(g, v, reader, parts)
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

// soleReaders are the values that read another alone, where these are no reductions and what they read is no result.
func soleReaders(g *ir.Graph) map[*ir.Value]*ir.Value {
	readers, only := countReaders(g), map[*ir.Value]*ir.Value{}
	for _, u := range g.Values {
		if u.IsInput() || u.Reduce != nil {
			continue
		}
		for _, l := range u.Loads() {
			if readers[l.From] == 1 {
				only[l.From] = u
			}
		}
	}
	return only
}

// gateParts is the places along the last axis of a product from which its reader reads: two, as long as the reader's last axis and apart
// by at least that; nil where the reader reads otherwise.
func gateParts(g *ir.Graph, v, reader *ir.Value) (from []*ir.Expr) {
	last := len(v.Axes) - 1
	if len(reader.Axes) != len(v.Axes) || !columnsOfOne(v) {
		return nil
	}
	for _, l := range reader.Loads() {
		if l.From != v {
			continue
		}
		at := offsetAlong(l, reader, last, g.Facts())
		if at == nil {
			return nil
		}
		if !slices.ContainsFunc(from, func(e *ir.Expr) bool { return ir.SameIndex(e, at, g.Facts()) }) {
			from = append(from, at)
		}
	}
	if len(from) != gateProducts || !apartBy(from[0], from[1], reader.Axes[last].Extent, g.Facts()) {
		return nil
	}
	return from
}

// gateProducts is how many products with a common operand share a kernel.
const gateProducts = 2

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

// offsetAlong is how far behind its reader's place along an axis a load is, where it reads the same place along all others; nil where it does
// not, or where it may be outside of the tensor.
func offsetAlong(l *ir.Expr, reader *ir.Value, axis int, facts ir.Facts) *ir.Expr {
	if l.Fill != nil {
		return nil
	}
	for d, at := range l.Args {
		r := reader.Axes[d]
		if d != axis && !(at.Op == ir.OpRange && at.Range == r || algebra.IsUnit(l.From.Axes[d]) && algebra.IsUnit(r)) {
			return nil
		}
	}
	offset := ir.Simplify(ir.Apply(ir.OpSub, l.Args[axis], reader.Axes[axis].At()), facts)
	if len(ir.FreeRanges(offset)) > 0 || ir.Has(offset, ir.OpLoad) {
		return nil
	}
	return offset
}

// apartBy reports whether one of two places is behind the other by at least a length.
func apartBy(a, b, length *ir.Expr, facts ir.Facts) bool {
	facts.Positive = true
	behind := func(a, b *ir.Expr) bool {
		return ir.Decide(ir.Apply(ir.OpLe, ir.Apply(ir.OpAdd, a, length), b), facts) == ir.True
	}
	return behind(a, b) || behind(b, a)
}

// splitInto makes a product for each part of one, and has the reader read these.
func splitInto(g *ir.Graph, v, reader *ir.Value, from []*ir.Expr) (products []*ir.Value) {
	last := len(v.Axes) - 1
	column := v.Axes[last]
	for _, at := range from {
		u := *v
		u.Name, u.Axes = v.Name+"_part", slices.Clone(v.Axes)
		u.Axes[last] = g.NewRange(column.Name, reader.Axes[last].Extent)
		place := ir.Simplify(ir.Apply(ir.OpAdd, u.Axes[last].At(), at), g.Facts())
		reduce := *v.Reduce
		u.Reduce, u.Body = &reduce, ir.Substitute(v.Body, map[*ir.Range]*ir.Expr{column: place})
		products = append(products, freshAxes(g, &u))
	}
	reader.MapExprs(func(e *ir.Expr) *ir.Expr {
		return ir.Rewrite(e, func(e *ir.Expr) *ir.Expr {
			if e.Op != ir.OpLoad || e.From != v {
				return e
			}
			offset := offsetAlong(e, reader, last, g.Facts())
			i := slices.IndexFunc(from, func(at *ir.Expr) bool { return ir.SameIndex(at, offset, g.Facts()) })
			return ir.Load(products[i], ir.Indices(reader.Axes), nil).At(e.Span)
		})
	})
	return products
}
