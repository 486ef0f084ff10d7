package passes

import (
	"testing"

	"github.com/stretchr/testify/assert"

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
