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
