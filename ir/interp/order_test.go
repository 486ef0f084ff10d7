package interp

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/diag"
)

// orderOf evaluates op[k at j] x[k] for the places j from 0 to places-1.
func orderOf(t *testing.T, op ir.Monoid, x *Tensor, places int64) *Tensor {
	t.Helper()
	b := build("N")
	v := b.in("x", x.Type, ir.Sym("N"))
	b.out(dims(places), func(at []*ir.Expr) *ir.Expr {
		k := b.NewRange("k", ir.Sym("N"))
		return ir.Reduce(&ir.Reduction{Op: op, Ranges: []*ir.Range{k}, Rank: at[0]}, ir.Load(v, []*ir.Expr{k.At()}, nil))
	})
	require.NoError(t, ir.Verify(b.Graph))
	out, err := Run(b.Graph, []*Tensor{x}, Options{})
	require.NoError(t, err)
	return out[0]
}

// TestOrder: equal elements keep their order, NaN is above every number, and past
// the last element is what no elements give.
func TestOrder(t *testing.T) {
	x := vector(2, nan, -inf, 2, 1, nan, inf)
	same(t, vector(-inf, 1, 2, 2, inf, nan, nan, inf), orderOf(t, ir.Min, x, 8))
	same(t, vector(nan, nan, inf, 2, 2, 1, -inf, -inf), orderOf(t, ir.Max, x, 8))
	assert.Equal(t, []int64{2, 4, 0, 3, 6, 1, 5, 0}, orderOf(t, ir.ArgMin, x, 8).I)
	assert.Equal(t, []int64{1, 5, 6, 0, 3, 4, 2, 0}, orderOf(t, ir.ArgMax, x, 8).I)
	y := ints(ir.I32, []int{3}, 5, -7, 5)
	assert.Equal(t, []int64{-7, 5, 5, 1<<31 - 1}, orderOf(t, ir.Min, y, 4).I)
	assert.Equal(t, []int64{0, 2, 1, 0}, orderOf(t, ir.ArgMax, y, 4).I)
}

// TestOrderInvariants: what Verify refuses.
func TestOrderInvariants(t *testing.T) {
	for want, change := range map[string]func(r *ir.Reduction, k *ir.Range){
		"sum at a rank":               func(r *ir.Reduction, _ *ir.Range) { r.Op = ir.Sum },
		"rank depends on the range k": func(r *ir.Reduction, k *ir.Range) { r.Rank = k.At() },
		"rank has type f32":           func(r *ir.Reduction, _ *ir.Range) { r.Rank = ir.Num(ir.F32, 1) },
		"want one range and none":     func(r *ir.Reduction, _ *ir.Range) { r.Where = ir.IntNum(ir.Bool, 1) },
	} {
		b := build("N")
		v := b.in("x", ir.F32, ir.Sym("N"))
		k := b.NewRange("k", ir.Sym("N"))
		r := &ir.Reduction{Op: ir.Max, Ranges: []*ir.Range{k}, Rank: ir.IntConst(0)}
		change(r, k)
		b.Output("y", b.Define("y", nil, ir.Reduce(r, ir.Load(v, []*ir.Expr{k.At()}, nil)), ir.Origin{}), diag.Span{})
		assert.ErrorContains(t, ir.Verify(b.Graph), want)
	}
}
