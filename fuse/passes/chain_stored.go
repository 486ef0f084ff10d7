package passes

import (
	"slices"

	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// readStored lets sums over the depth of a product read what attention gives in the 16 bits in which it is stored, as flash
// attention does: the sum of u[i, e] / l[i] * d[i, e] over e reads y[i, e], which is u[i, e] / l[i], instead of u, which would be
// kept beside it in f32.
func (c *chainRewrite) readStored() {
	stored := map[*ir.Value]*ir.Value{} // values in 16 bits, by the weighting that they are made of
	for _, v := range c.graph.Values {
		if u := ownLoad(v, c.weightings); u != nil && form.IsHalf(v.Type) {
			stored[u.From] = v
		}
	}
	for _, v := range c.graph.Values {
		sum := ownLoad(v, c.exchanged)
		if sum == nil {
			continue
		}
		acc := sum.From
		for _, l := range ir.Loads(acc.Body) {
			if y := stored[l.From]; y != nil && y != v && c.scaledAlike(v, sum, l, y) {
				acc.Body = ir.Rewrite(acc.Body, func(e *ir.Expr) *ir.Expr {
					if ir.Equal(e, l) {
						return ir.Cast(ir.Load(y, l.Args, nil), l.Type)
					}
					return e
				})
				v.Body = ir.Cast(sum, v.Type)
			}
		}
	}
}

// ownLoad is the load in a pointwise value of one of some values at its own place; nil where there is none.
func ownLoad(v *ir.Value, of map[*ir.Value]bool) *ir.Expr {
	if v.IsInput() || v.Reduce != nil {
		return nil
	}
	for _, l := range ir.Loads(v.Body) {
		if of[l.From] && l.Fill == nil && slices.EqualFunc(l.Args, ir.Indices(v.Axes), ir.Equal) {
			return l
		}
	}
	return nil
}

// scaledAlike reports whether v is the same function of sum as y is of the weighting that l loads in the body of that sum. This
// function is a product with numbers of a row: it comes before the sum as well as after it.
func (c *chainRewrite) scaledAlike(v *ir.Value, sum, l *ir.Expr, y *ir.Value) bool {
	n := len(v.Axes)
	if len(y.Axes) <= n || !slices.EqualFunc(l.Args[:n], ir.Indices(sum.From.Axes), ir.Equal) {
		return false
	}
	at := map[*ir.Range]*ir.Expr{}
	for d, r := range v.Axes {
		at[r] = y.Axes[d].At()
	}
	own := ir.Rewrite(v.Body, func(e *ir.Expr) *ir.Expr {
		if ir.Equal(e, sum) {
			return ir.Load(l.From, ir.Indices(y.Axes), nil)
		}
		return e
	})
	return ir.Equal(form.Stripped(ir.Substitute(own, at)), form.Stripped(y.Body))
}
