package plantest

import (
	"fmt"

	"pgregory.net/rapid"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/diag"
)

// RandomGraph is a chain of values over [N, M] with inputs x and z: pointwise
// ones, shifted reads, transposes, gathers and row reductions. All are outputs.
// Choices and indices depend on the inputs only, so that roundings cannot flip them.
func RandomGraph(t *rapid.T) *ir.Graph {
	g := ir.NewGraph("random")
	g.Symbols = []ir.Symbol{{Name: "N"}, {Name: "M"}}
	shape := []*ir.Expr{ir.Sym("N"), ir.Sym("M")}
	dtype := rapid.SampledFrom([]ir.DType{ir.F32, ir.BF16, ir.F64, ir.F16}).Draw(t, "dtype")
	values := []*ir.Value{g.Input("x", dtype, shape, diag.Span{}), g.Input("z", dtype, shape, diag.Span{})}
	for i := range rapid.IntRange(1, 5).Draw(t, "values") {
		a := rapid.SampledFrom(values).Draw(t, "a")
		b := rapid.SampledFrom(values).Draw(t, "b")
		axes := g.NewAxes(shape)
		at := ir.Indices(axes)
		values = append(values, g.Define(fmt.Sprintf("v%d", i), axes, randomBody(t, g, a, b, at), ir.Origin{}))
	}
	for _, v := range values[2:] {
		g.Output(v.Name, v, diag.Span{})
	}
	return g
}

func randomBody(t *rapid.T, g *ir.Graph, a, b *ir.Value, at []*ir.Expr) *ir.Expr {
	x, zero, choice := ir.Load(a, at, nil), ir.Num(a.Type, 0), ir.Load(g.Inputs[0], at, nil)
	switch rapid.IntRange(0, 5).Draw(t, "body") {
	case 0:
		op := rapid.SampledFrom([]ir.Op{ir.OpAdd, ir.OpSub, ir.OpMul, ir.OpMax, ir.OpMin}).Draw(t, "op")
		return ir.Apply(op, x, ir.Load(b, at, nil))
	case 1:
		shift := ir.IntConst(rapid.Int64Range(-2, 2).Draw(t, "shift"))
		return ir.Apply(ir.OpAdd, x, ir.Load(b, []*ir.Expr{at[0], ir.Apply(ir.OpAdd, at[1], shift)}, zero))
	case 2:
		return ir.Apply(ir.OpTanh, ir.Load(b, []*ir.Expr{at[1], at[0]}, ir.Num(b.Type, 1)))
	case 3:
		row := ir.Cast(ir.Cast(choice, ir.I32), ir.Index)
		return ir.Load(b, []*ir.Expr{row, at[1]}, zero)
	case 4:
		return ir.Where(ir.Apply(ir.OpLt, choice, ir.Num(a.Type, 0.5)), x, zero)
	}
	r := g.NewRange("r", ir.Sym("M"))
	op := rapid.SampledFrom([]ir.Monoid{ir.Sum, ir.Max, ir.Min}).Draw(t, "monoid")
	reduce := &ir.Reduction{Op: op, Ranges: []*ir.Range{r}, Where: ir.Apply(ir.OpLe, r.At(), at[1])}
	return ir.Apply(ir.OpSub, x, ir.Reduce(reduce, ir.Load(b, []*ir.Expr{at[0], r.At()}, nil)))
}
