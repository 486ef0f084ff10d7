package passes

import (
	"slices"

	"github.com/fusec/fusec/ir"
)

// Specialize replaces symbols by their sizes.
func Specialize(g *ir.Graph, sizes map[string]int64) {
	if len(sizes) == 0 {
		return
	}
	bind := func(e *ir.Expr) *ir.Expr {
		return ir.Rewrite(e, func(e *ir.Expr) *ir.Expr {
			if e.Op == ir.OpSym {
				if v, ok := sizes[e.Name]; ok {
					return ir.IntConst(v)
				}
			}
			return e
		})
	}
	for _, v := range g.Values {
		v.MapExprs(bind)
	}
	replaceExtents(g, func(e *ir.Expr) *ir.Expr { return ir.Simplify(bind(e), ir.Facts{}) })
	for i := range g.Constraints {
		g.Constraints[i].Cond = ir.Simplify(bind(g.Constraints[i].Cond), ir.Facts{})
	}
	g.Symbols = slices.DeleteFunc(g.Symbols, func(s ir.Symbol) bool { // no input determines a replaced symbol
		_, baked := sizes[s.Name]
		return baked
	})
}

// simplifyExtents simplifies extents by the graph's constraints: where C is a multiple of 32, C/32*32 is
// C.
func simplifyExtents(g *ir.Graph) {
	facts := g.Facts()
	replaceExtents(g, func(e *ir.Expr) *ir.Expr { return ir.Simplify(e, facts) })
}

// replaceExtents makes new ranges in place of those whose extent f changes.
func replaceExtents(g *ir.Graph, f func(*ir.Expr) *ir.Expr) {
	fresh := map[*ir.Range]*ir.Range{}
	rebind := func(list []*ir.Range) []*ir.Range {
		out := make([]*ir.Range, len(list))
		for i, r := range list {
			if fresh[r] == nil {
				c := *r
				c.Extent = f(r.Extent)
				fresh[r] = &c
			}
			out[i] = fresh[r]
		}
		return out
	}
	for _, v := range g.Values {
		v.Axes = rebind(v.Axes)
		if v.Reduce != nil {
			r := *v.Reduce
			r.Ranges = rebind(r.Ranges)
			v.Reduce = &r
		}
		v.MapExprs(func(e *ir.Expr) *ir.Expr {
			return ir.Rewrite(e, func(e *ir.Expr) *ir.Expr {
				if e.Op == ir.OpRange && fresh[e.Range] != nil {
					return fresh[e.Range].At().At(e.Span)
				}
				return e
			})
		})
	}
}
