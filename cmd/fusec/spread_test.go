package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/interp"
	"github.com/fusec/fusec/runtime/tensor"
)

func none(int) bool { return false }

// sizeOf is the root mean square of a graph's outputs, with inputs that lie as spreads say, or
// standard normal.
func sizeOf(t *testing.T, g *ir.Graph, sizes map[string]int64, scaled bool) []float64 {
	t.Helper()
	spread := map[string]tensor.Spread{}
	if scaled {
		spread = spreads(g, sizes, none)
	}
	var inputs []*interp.Tensor
	for i, v := range g.Inputs {
		var shape []int
		for _, e := range v.Shape() {
			n, ok := ir.EvalSize(e, sizes)
			require.True(t, ok)
			shape = append(shape, int(n))
		}
		x, err := tensor.RandomFloats(v.Type, uint64(i), spread[v.Name], shape...)
		require.NoError(t, err)
		inputs = append(inputs, interp.FromBytes(x.DType, x.Shape, x.Data))
	}
	outputs, err := interp.Run(g, inputs, interp.Options{})
	require.NoError(t, err)
	var out []float64
	for _, x := range outputs {
		assert.NotContains(t, fmt.Sprint(x.F), "NaN")
		out = append(out, rootMeanSquare(x.F))
	}
	return out
}

// Layers one behind the other multiply what they make too large; scaled weights keep it near
// 1, at any depth.
func TestDeepNetworksStayNearOne(t *testing.T) {
	for _, depth := range []int{1, 3, 20} {
		var b strings.Builder
		b.WriteString("graph deep(x: f32[4, N]")
		for i := range depth {
			fmt.Fprintf(&b, ", w%d: f32[N, N]", i)
		}
		b.WriteString(") -> (y: f32[4, N]) {\n    h0 = x\n")
		for i := range depth {
			fmt.Fprintf(&b, "    h%d = relu(h%d @ transpose(w%d))\n", i+1, i, i)
		}
		fmt.Fprintf(&b, "    y = h%d\n}\n", depth)
		g, sizes := graphOf(t, b.String()), map[string]int64{"N": 40}
		size := sizeOf(t, g, sizes, true)[0]
		assert.Greater(t, size, 0.02, "depth %d", depth)
		assert.Less(t, size, 50.0, "depth %d", depth)
		if depth == 20 {
			assert.Greater(t, sizeOf(t, g, sizes, false)[0], 1e9)
		}
	}
}

func TestSpreads(t *testing.T) {
	sizes := map[string]int64{"N": 64, "M": 100, "K": 400, "D": 16}
	scaled := func(x float64) tensor.Spread { return tensor.Spread{Scale: x} }
	for _, c := range []struct {
		name, src string
		want      map[string]tensor.Spread
	}{
		{"a weight", `graph g(x: f32[N, K], w: f32[K, M]) -> (y: f32[N, M]) { y = x @ w }`,
			map[string]tensor.Spread{"x": scaled(1), "w": scaled(1. / 20)}},
		{"a weight that comes moved", `graph g(x: f32[N, K], w: f32[M, K]) -> (y: f32[N, M]) {
    v = transpose(w)
    y = x @ v
}`, map[string]tensor.Spread{"x": scaled(1), "w": scaled(1. / 20)}},
		{"no products", `graph g(x: f32[N, K]) -> (y: f32[N]) { y = sum(x, axis=1) }`,
			map[string]tensor.Spread{"x": scaled(1)}},
		{"scores that are divided", `graph g(q: f32[N, D], k: f32[M, D], v: f32[M, D]) -> (o: f32[N, D]) {
    s = q @ transpose(k)
    t = s / sqrt(f32(D))
    p = exp(t - max(t, axis=1, keep=true))
    o = (p / sum(p, axis=1, keep=true)) @ v
}`, map[string]tensor.Spread{"q": scaled(1), "k": scaled(1), "v": scaled(1)}},
		{"a variance", `graph g(x: f32[N], v: f32[N]) -> (y: f32[N]) { y = x * rsqrt(v + 0.001) }`,
			map[string]tensor.Spread{"x": scaled(1), "v": {Scale: 1, Positive: true}}},
		{"a logarithm", `graph g(x: f32[N, M]) -> (y: f32[N]) { y = sum(log(x), axis=1) }`,
			map[string]tensor.Spread{"x": {Scale: 1, Positive: true}}},
	} {
		got := spreads(graphOf(t, c.src), sizes, none)
		for name, want := range c.want {
			assert.Equal(t, want.Positive, got[name].Positive, "%s: %s", c.name, name)
			assert.InEpsilon(t, want.Scale, got[name].Scale, 0.3, "%s: %s", c.name, name)
		}
	}
	g := graphOf(t, `graph g(x: f32[N, K], w: f32[K, M]) -> (y: f32[N, M]) { y = x @ w }`)
	got := spreads(g, sizes, func(i int) bool { return i == 1 })
	assert.InEpsilon(t, 1./20, got["x"].Scale, 0.3, "where the weight is given")
	assert.NotContains(t, got, "w")
}
