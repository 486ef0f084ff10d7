package ir

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir/diag"
)

// rowSums is y[i] = sum[k] x[i, k] + 1, with its parts for breaking.
func rowSums() (g *Graph, x, s, y *Value) {
	g = NewGraph("rows")
	g.Symbols = []Symbol{{Name: "N"}, {Name: "M"}}
	x = g.Input("x", F32, []*Expr{Sym("N"), Sym("M")}, diag.Span{})
	i, k := g.NewRange("i", Sym("N")), g.NewRange("k", Sym("M"))
	sum := Reduce(&Reduction{Op: Sum, Ranges: []*Range{k}}, Load(x, []*Expr{i.At(), k.At()}, nil))
	s = g.Define("s", []*Range{i}, sum, Origin{})
	j := g.NewRange("j", Sym("N"))
	y = g.Define("y", []*Range{j}, Apply(OpAdd, Load(s, []*Expr{j.At()}, Num(F32, 0)), Num(F32, 1)), Origin{})
	g.Output("y", y, diag.Span{})
	return g, x, s, y
}

func TestVerifyAccepts(t *testing.T) {
	g, _, _, _ := rowSums()
	require.NoError(t, Verify(g))
}

// TestVerifyFinds breaks each invariant in turn.
func TestVerifyFinds(t *testing.T) {
	for _, c := range []struct {
		want  string
		spoil func(g *Graph, x, s, y *Value)
	}{
		{"name is taken", func(g *Graph, x, s, y *Value) { s.Name = "x" }},
		{"ID 1 is taken", func(g *Graph, x, s, y *Value) { s.ID = x.ID }},
		{"cannot be stored", func(g *Graph, x, s, y *Value) { x.Type = Index }},
		{"symbol N is listed twice", func(g *Graph, x, s, y *Value) { g.Symbols[1].Name = "N" }},
		{"extent of i: unknown symbol K", func(g *Graph, x, s, y *Value) { s.Axes[0].Extent = Sym("K") }},
		{"extent of i: type i64", func(g *Graph, x, s, y *Value) { s.Axes[0].Extent = IntNum(I64, 3) }},
		{"has no extent", func(g *Graph, x, s, y *Value) { s.Axes[0].Extent = nil }},
		{"is bound by s too", func(g *Graph, x, s, y *Value) { y.Axes = s.Axes }},
		{"ranges i and j have the number 3 both", func(g *Graph, x, s, y *Value) { y.Axes[0].ID = s.Axes[0].ID }},
		{"range j is not in scope", func(g *Graph, x, s, y *Value) { y.Axes = nil }},
		{"reads s, which is not defined before", func(g *Graph, x, s, y *Value) { g.Values[1], g.Values[2] = y, s }},
		{"reads s at 1 indices, want 0", func(g *Graph, x, s, y *Value) { s.Axes = nil; s.Body = Num(F32, 1) }},
		{"reads x as f32, want f16", func(g *Graph, x, s, y *Value) { x.Type = F16 }},
		{"fill of s", func(g *Graph, x, s, y *Value) { y.Body = Load(s, Indices(y.Axes), Num(F64, 0)) }},
		{"body has type f64", func(g *Graph, x, s, y *Value) { y.Body = Num(F64, 0) }},
		{"sum of bool gives i64", func(g *Graph, x, s, y *Value) { s.Body = IntNum(Bool, 1) }},
		{"any does not take f32", func(g *Graph, x, s, y *Value) { s.Reduce.Op = Any }},
		{"predicate has type f32", func(g *Graph, x, s, y *Value) { s.Reduce.Where = Num(F32, 1) }},
		{"a reduction inside an expression", func(g *Graph, x, s, y *Value) {
			y.Body = Apply(OpNeg, Reduce(&Reduction{Op: Sum}, y.Body))
		}},
		{"belongs into plans", func(g *Graph, x, s, y *Value) { y.Body = LocalRef(&Local{Type: F32}) }},
		{"add takes arguments of one type", func(g *Graph, x, s, y *Value) {
			y.Body = (&Expr{Op: OpAdd, Type: F32, Args: []*Expr{Num(F32, 1), Num(F64, 1)}}).seal()
		}},
		{"unknown symbol Q", func(g *Graph, x, s, y *Value) { y.Body = Cast(Sym("Q"), F32) }},
		{"listed as an input", func(g *Graph, x, s, y *Value) { g.Inputs = append(g.Inputs, y) }},
		{"not listed as an input", func(g *Graph, x, s, y *Value) { g.Inputs = nil }},
		{"output y is listed twice", func(g *Graph, x, s, y *Value) { g.Outputs = append(g.Outputs, g.Outputs[0]) }},
		{"is not a value of the graph", func(g *Graph, x, s, y *Value) { g.Values = g.Values[:2] }},
		{"constraint \"w\" has type index", func(g *Graph, x, s, y *Value) {
			g.Constraints = []Constraint{{Cond: Sym("N"), Why: "w"}}
		}},
		{"range in an expression over symbols", func(g *Graph, x, s, y *Value) {
			g.Constraints = []Constraint{{Cond: Apply(OpLt, y.Axes[0].At(), Sym("N"))}}
		}},
	} {
		t.Run(c.want, func(t *testing.T) {
			g, x, s, y := rowSums()
			c.spoil(g, x, s, y)
			assert.ErrorContains(t, Verify(g), c.want)
		})
	}
}
