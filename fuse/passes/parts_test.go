package passes

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/diag"
)

// TestDimOfTheDepth: the one along which the depth of a product lies, where it is the index itself and fills are zeros.
func TestDimOfTheDepth(t *testing.T) {
	g := ir.NewGraph("g")
	shape := []*ir.Expr{ir.IntConst(8), ir.IntConst(8), ir.IntConst(8)}
	x := g.Input("x", ir.F32, shape, diag.Span{})
	axes := g.NewAxes(shape)
	i, j, k := axes[0].At(), axes[1].At(), axes[2].At()
	later := ir.Apply(ir.OpAdd, k, i)
	p := &partProduct{depth: axes[2]}
	for _, c := range []struct {
		at   []*ir.Expr
		fill *ir.Expr
		want int
	}{
		{[]*ir.Expr{i, j, k}, nil, 2}, {[]*ir.Expr{i, k, j}, nil, 1}, {[]*ir.Expr{k, i, j}, nil, 0},
		{[]*ir.Expr{k, k, j}, nil, -1}, {[]*ir.Expr{i, k, k}, nil, -1}, {[]*ir.Expr{k, i, later}, nil, -1}, {[]*ir.Expr{later, k, i}, nil, -1},
		{[]*ir.Expr{i, j, later}, nil, -1}, {[]*ir.Expr{i, j, i}, nil, -1},
		{[]*ir.Expr{i, j, k}, ir.Num(ir.F32, 0), 2}, {[]*ir.Expr{i, j, k}, ir.Num(ir.F32, 1), -1},
	} {
		assert.Equal(t, c.want, p.dim(ir.Load(x, c.at, c.fill)), "%v", c.at)
	}
	assert.Equal(t, -1, p.dim(ir.Num(ir.F32, 1)), "no read")
}

// TestPartsThatPay: products of f32 are multiplied in parts where that saves more than operands and results take, whatever the order of
// the sides, and the condition on the sizes says the same as the decision at them.
func TestPartsThatPay(t *testing.T) {
	for _, c := range []struct {
		batch, m, k, n int64
		pays           bool
	}{
		{1, 4096, 4096, 4096, true}, {1, 8192, 256, 8192, true}, {1, 16384, 128, 32768, true}, {1, 16384, 192, 32768, true},
		{1, 16384, 64, 32768, false}, {1, 16384, 32, 32768, false}, {1, 16384, 96, 32768, false}, {1, 1024, 256, 2048, true}, {32, 512, 1024, 2048, true},
		{64, 1024, 512, 1024, true}, {1024, 512, 1024, 512, false}, {1024, 512, 256, 512, false}, {1, 1024, 8192, 4096, true},
		{1, 256, 65536, 8192, false}, {1, 1024, 4096, 1024, false},
	} {
		for _, turned := range []bool{false, true} {
			m, n := c.m, c.n
			if turned {
				m, n = n, m
			}
			sizes := map[string]int64{"B": c.batch, "M": m, "K": c.k, "N": n}
			g, v := batchedProduct()
			p := plainParts(g, v, sizes)
			assert.Equal(t, c.pays, p != nil, "%v", sizes)
			g, v = batchedProduct()
			require.NotNil(t, plainParts(g, v, map[string]int64{"B": 1, "M": 4096, "K": 4096, "N": 4096}))
			holds, ok := ir.EvalSize(g.For, sizes)
			require.True(t, ok)
			assert.Equal(t, c.pays, holds != 0, "%v", sizes)
		}
	}
}

// batchedProduct is a graph of B products of M x K by K x N.
func batchedProduct() (*ir.Graph, *ir.Value) {
	g := ir.NewGraph("g")
	b, m, k, n := ir.Sym("B"), ir.Sym("M"), ir.Sym("K"), ir.Sym("N")
	x, y := g.Input("x", ir.F32, []*ir.Expr{b, m, k}, diag.Span{}), g.Input("y", ir.F32, []*ir.Expr{b, k, n}, diag.Span{})
	axes, over := g.NewAxes([]*ir.Expr{b, m, n}), g.NewRange("k", k)
	at := func(v *ir.Value, ranges ...*ir.Range) *ir.Expr { return ir.Load(v, ir.Indices(ranges), nil) }
	return g, g.Adopt(&ir.Value{Name: "z", Type: ir.F32, Axes: axes, Reduce: &ir.Reduction{Op: ir.Sum, Ranges: []*ir.Range{over}},
		Body: ir.Apply(ir.OpMul, at(x, axes[0], axes[1], over), at(y, axes[0], over, axes[2]))})
}
