package interp

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
)

// A prefixCase is y[i, j] = op[k where mask && k <= i] x[k, j], or with j in place of i, another comparison, or its sides swapped.
type prefixCase struct {
	op      ir.Monoid
	compare ir.Op
	axis    int
	swapped bool
}

// graph defines the fold; with scale 2 it compares twice the indices, in which nobody sees a prefix.
func (p prefixCase) graph(scale int64) (*ir.Graph, *ir.Value) {
	b := build("N", "M")
	shape := []*ir.Expr{ir.Sym("N"), ir.Sym("M")}
	x, mask := b.in("x", ir.F32, shape...), b.in("mask", ir.Bool, shape[1])
	axes := b.NewAxes(shape)
	k := b.NewRange("k", shape[p.axis])
	left, right := k.At(), axes[p.axis].At()
	if scale > 1 {
		left, right = ir.Apply(ir.OpMul, left, ir.IntConst(scale)), ir.Apply(ir.OpMul, right, ir.IntConst(scale))
	}
	if p.swapped {
		left, right = right, left
	}
	at := ir.Indices(axes)
	at[p.axis] = k.At()
	where := ir.Apply(ir.OpAnd, ir.Load(mask, at[1:], nil), ir.Apply(p.compare, left, right))
	y := b.Define("y", axes, ir.Reduce(&ir.Reduction{Op: p.op, Ranges: []*ir.Range{k}, Where: where}, ir.Load(x, at, nil)), ir.Origin{})
	b.Outputs = append(b.Outputs, ir.Output{Name: "y", Value: y})
	return b.Graph, y
}

// TestPrefixes: a fold up to an index, or from one on, is what each result is when it is folded alone, along each axis of the
// result. Whole numbers are exact in any order.
func TestPrefixes(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	x, mask := New(ir.F32, 4, 5), New(ir.Bool, 5)
	for i := range x.F {
		x.F[i] = float64(rng.IntN(9) - 4)
	}
	copy(mask.I, []int64{1, 0, 1, 1, 0})
	for n := range 4 * 4 * 2 * 2 {
		p := prefixCase{[]ir.Monoid{ir.Sum, ir.Max, ir.ArgMax, ir.ArgMin}[n%4], []ir.Op{ir.OpLe, ir.OpLt, ir.OpGe, ir.OpGt}[n/4%4], n / 16 % 2, n >= 32}
		var results [2]*Tensor
		for i := range results {
			g, y := p.graph(int64(i + 1))
			c := newCompiler(Strict, nil)
			c.leaf = func(*ir.Expr) code { return code{int: func(*frame) int64 { return 0 }} }
			assert.Equal(t, i == 0, c.prefix(y) != nil, "%v", p)
			out, err := Run(g, []*Tensor{x, mask}, Options{Mode: Strict})
			require.NoError(t, err, "%v", p)
			results[i] = out[0]
		}
		assert.Equal(t, results[1], results[0], "%v", p)
	}
}

// TestPrefixReadsWhatItNeeds: points that no result depends on are not evaluated, because they may be outside.
func TestPrefixReadsWhatItNeeds(t *testing.T) {
	b := build("N")
	n := ir.Sym("N")
	x := b.in("x", ir.F32, n)
	axes := b.NewAxes([]*ir.Expr{n})
	k := b.NewRange("k", n)
	where := ir.Apply(ir.OpLt, k.At(), axes[0].At())
	next := ir.Load(x, []*ir.Expr{ir.Apply(ir.OpAdd, k.At(), ir.IntConst(1))}, nil)
	y := b.Define("y", axes, ir.Reduce(&ir.Reduction{Op: ir.Sum, Ranges: []*ir.Range{k}, Where: where}, next), ir.Origin{})
	b.Outputs = append(b.Outputs, ir.Output{Name: "y", Value: y})
	out, err := Run(b.Graph, []*Tensor{floats(ir.F32, []int{3}, 5, 6, 7)}, Options{})
	require.NoError(t, err)
	assert.Equal(t, []float64{0, 6, 13}, out[0].F)
}
