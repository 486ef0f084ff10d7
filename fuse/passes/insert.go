package passes

import "github.com/fusec/fusec/ir"

// mayAddKernels reports whether a pass may compute in a kernel of its own what a fused kernel
// would compute on the way, rounded otherwise than there.
func mayAddKernels(g *ir.Graph) bool { return !g.OneKernel && g.Numerics == ir.Fast }

// insertBefore calls create for each value of a graph and puts the values that it returns before
// that one, which reads them from then on.
func insertBefore(g *ir.Graph, create func(*ir.Value) []*ir.Value) {
	var out []*ir.Value
	for _, v := range g.Values {
		out = append(append(out, create(v)...), v)
	}
	g.Values = out
}
