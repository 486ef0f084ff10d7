package passes

import "github.com/fusec/fusec/ir"

// mayAddKernels reports whether a pass may move work from a fused kernel to a kernel of its
// own, where it is rounded differently.
func mayAddKernels(g *ir.Graph) bool { return !g.OneKernel && g.Numerics == ir.Fast }

// insertBefore calls create for each value of a graph, and inserts the values that create
// returns before it. The value may then read them.
func insertBefore(g *ir.Graph, create func(*ir.Value) []*ir.Value) {
	var out []*ir.Value
	for _, v := range g.Values {
		out = append(append(out, create(v)...), v)
	}
	g.Values = out
}

// insertAfter calls create for each value of a graph, and inserts the value that create returns behind it. Readers and results
// then have the new value in its place.
func insertAfter(g *ir.Graph, create func(*ir.Value) *ir.Value) {
	var out []*ir.Value
	to := map[*ir.Value]*ir.Value{}
	for _, v := range g.Values {
		v.MapExprs(func(e *ir.Expr) *ir.Expr { return ir.RetargetLoads(e, to) })
		out = append(out, v)
		if s := create(v); s != nil {
			out, to[v] = append(out, s), s
		}
	}
	g.Values = out
	for i, o := range g.Outputs {
		if s := to[o.Value]; s != nil {
			g.Outputs[i].Value = s
		}
	}
}
