package hunt

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/conformance/gen"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/interp"
	"github.com/fusec/fusec/parser"
	"github.com/fusec/fusec/runtime/tensor"
)

func graph(t *testing.T, text string) *ir.Graph {
	t.Helper()
	file, err := parser.Parse("g.fuse", []byte(text), parser.Options{})
	require.NoError(t, err)
	g, err := file.Graph("")
	require.NoError(t, err)
	return g
}

// TestSampledAgreesWhereNothingRounds: what roundings do not touch is the same in every sample,
// and what they touch is not.
func TestSampledAgreesWhereNothingRounds(t *testing.T) {
	g := graph(t, `graph g(x: f32[N]) -> (a: f32[], b: i64[], c: f32[]) {
    a = sum(x * x)
    b = argmax(x)
    c = sum(exp(x))
}`)
	x := interp.New(ir.F32, 5)
	copy(x.F, []float64{3, -1, 4, 0, 4})
	seen := map[float64]bool{}
	for seed := range uint64(8) {
		got, err := interp.Run(g, []*interp.Tensor{x}, interp.Options{Mode: interp.Sampled, Seed: seed})
		require.NoError(t, err)
		require.Equal(t, 42.0, got[0].F[0])
		require.Equal(t, int64(2), got[1].I[0])
		require.InEpsilon(t, math.Exp(3)+math.Exp(-1)+2*math.Exp(4)+1, got[2].F[0], 1e-5)
		seen[got[2].F[0]] = true
	}
	require.Greater(t, len(seen), 1)
}

// TestReferenceSeesMistakes: the least change of an exact result is a difference, and so is one
// of a rounded result beyond a few roundings, or of a class of numbers.
func TestReferenceSeesMistakes(t *testing.T) {
	g := graph(t, `graph g(x: f32[N]) -> (exact: f32[N], rounded: f32[N], place: i64[]) {
    exact = x * 2
    rounded = exp(x)
    place = argmax(x)
}`)
	inputs, err := gen.Inputs(g, map[string]int64{"N": 9}, 1, false)
	require.NoError(t, err)
	r, err := NewReference(g, inputs)
	require.NoError(t, err)
	for _, c := range []struct {
		output int
		change func(x *interp.Tensor)
		right  bool
	}{
		{0, func(*interp.Tensor) {}, true},
		{0, func(x *interp.Tensor) { x.F[3] *= 1 + 0x1p-23 }, false},
		{0, func(x *interp.Tensor) { x.F[8] = math.NaN() }, false},
		{1, func(x *interp.Tensor) { x.F[3] *= 1 + 0x1p-22 }, true},
		{1, func(x *interp.Tensor) { x.F[3] *= 1 + 0x1p-14 }, false},
		{1, func(x *interp.Tensor) { x.F[0] = math.Inf(1) }, false},
		{2, func(x *interp.Tensor) { x.I[0]++ }, false},
	} {
		got := map[string]*tensor.Tensor{}
		for i, w := range r.Want {
			x := interp.FromBytes(w.Type, w.Shape, w.Bytes())
			if i == c.output {
				c.change(x)
			}
			got[g.Outputs[i].Name], err = tensor.FromBytes(x.Type, x.Bytes(), x.Shape...)
			require.NoError(t, err)
		}
		require.Equal(t, c.right, r.Check(got) == nil, "output %d", c.output)
	}
}
