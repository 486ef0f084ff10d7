package ir_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/diag"
)

func mul(a, b *ir.Expr) *ir.Expr { return ir.Apply(ir.OpMul, a, b) }

func graphOf(symbols []string, shapes ...[]*ir.Expr) *ir.Graph {
	g := ir.NewGraph("g")
	for _, s := range symbols {
		g.Symbols = append(g.Symbols, ir.Symbol{Name: s})
	}
	for i, shape := range shapes {
		g.Input(string(rune('a'+i)), ir.F32, shape, diag.Span{})
	}
	return g
}

func TestBindLinear(t *testing.T) {
	n, k := ir.Sym("N"), ir.Sym("K")
	g := graphOf([]string{"N", "K"},
		[]*ir.Expr{ir.Apply(ir.OpAdd, mul(ir.IntConst(2), k), ir.IntConst(1)), mul(n, k)}, []*ir.Expr{n})
	have, err := ir.BindGraph(g, [][]int{{7, 15}, {5}})
	require.NoError(t, err)
	assert.Equal(t, map[string]int64{"N": 5, "K": 3}, have)

	_, err = ir.BindGraph(g, [][]int{{8, 15}, {5}})
	assert.EqualError(t, err, "input a: dimension 0 should be (2*K)+1 for some K, found 8")
	_, err = ir.BindGraph(g, [][]int{{7, 16}, {5}})
	assert.EqualError(t, err, "input a: dimension 1 should be N*K = 15 "+
		"(N is 5 in dimension 0 of b, K is 3 in dimension 0 of a), found 16")
	_, err = ir.BindGraph(g, [][]int{{7, 25}, {5}})
	assert.ErrorContains(t, err, "found")
}

func TestBindChecksEveryDimension(t *testing.T) {
	n := ir.Sym("N")
	half := ir.Apply(ir.OpFloorDiv, n, ir.IntConst(2))
	g := graphOf([]string{"N"}, []*ir.Expr{half}, []*ir.Expr{n, ir.IntConst(3)})
	_, err := ir.BindGraph(g, [][]int{{4}, {9, 3}})
	require.NoError(t, err)
	_, err = ir.BindGraph(g, [][]int{{5}, {9, 4}})
	assert.EqualError(t, err, "input a: dimension 0 should be N/2 = 4 (N is 9 in dimension 0 of b), found 5\n"+
		"input b: dimension 1 should be 3, found 4")
}

func TestBindUndetermined(t *testing.T) {
	n := ir.Sym("N")
	g := graphOf([]string{"N"}, []*ir.Expr{ir.Apply(ir.OpFloorDiv, n, ir.IntConst(2))})
	_, err := ir.BindGraph(g, [][]int{{5}})
	assert.EqualError(t, err, "no input determines the size N")
}

func TestBindConstraint(t *testing.T) {
	n := ir.Sym("N")
	g := graphOf([]string{"N"}, []*ir.Expr{n})
	even := ir.Apply(ir.OpEq, ir.Apply(ir.OpMod, n, ir.IntConst(2)), ir.IntConst(0))
	g.Constraints = []ir.Constraint{{Cond: even, Why: "the halves need an even N"}}
	_, err := ir.BindGraph(g, [][]int{{4}})
	require.NoError(t, err)
	_, err = ir.BindGraph(g, [][]int{{5}})
	assert.EqualError(t, err, "sizes do not fit: the halves need an even N; found N=5 in dimension 0 of a")
	g.Constraints[0].Span = diag.Span{Start: diag.Pos{Filename: "f.fuse", Line: 3, Column: 7}}
	_, err = ir.BindGraph(g, [][]int{{5}})
	assert.EqualError(t, err, "sizes do not fit at f.fuse:3:7: the halves need an even N; found N=5 in dimension 0 of a")
}

// A failed check names the symbols of its condition only, each with where it was read.
func TestSizeCheckNamesItsSymbols(t *testing.T) {
	n, k := ir.Sym("N"), ir.Sym("K")
	g := graphOf([]string{"N", "K", "M"}, []*ir.Expr{ir.Sym("M")}, []*ir.Expr{n, ir.Apply(ir.OpMul, ir.IntConst(2), k)})
	g.Constraints = []ir.Constraint{{Cond: ir.Apply(ir.OpEq, ir.Apply(ir.OpAdd, k, k), n), Why: "halves"}}
	_, err := ir.BindGraph(g, [][]int{{7}, {8, 10}})
	assert.EqualError(t, err, "sizes do not fit: halves; found K=5 in dimension 1 of b, N=8 in dimension 0 of b")
	_, err = ir.BindGraph(g, [][]int{{7}, {10, 10}})
	assert.NoError(t, err)
}

// Whatever sizes shapes are made from are found again.
func TestBindInvertsShapes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.Int64Range(0, 1000)
		want := map[string]int64{"N": size.Draw(t, "N"), "K": size.Draw(t, "K")}
		scale, offset := rapid.Int64Range(1, 9).Draw(t, "scale"), rapid.Int64Range(-5, 5).Draw(t, "offset")
		shape := []*ir.Expr{ir.Apply(ir.OpAdd, mul(ir.Sym("K"), ir.IntConst(scale)), ir.IntConst(offset)),
			ir.Apply(ir.OpSub, ir.Sym("N"), ir.Sym("K"))}
		actual := make([]int, len(shape))
		for i, e := range shape {
			v, ok := ir.EvalSize(e, want)
			require.True(t, ok)
			actual[i] = int(v)
		}
		have, err := ir.BindGraph(graphOf([]string{"N", "K"}, shape), [][]int{actual})
		require.NoError(t, err)
		assert.Equal(t, want, have)
	})
}
