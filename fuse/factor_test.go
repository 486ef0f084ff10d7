package fuse

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/interp"
)

// factored are sums with factors that may leave them: x and m have the reduced axis.
var factored = []string{
	"sum(x * unsqueeze(g, 1), axis=1)",
	"sum(x / unsqueeze(g, 1), axis=1)",
	"sum(-(x * unsqueeze(g * h, 1)) / unsqueeze(h, 1), axis=1)",
	"sum(x * 3 * unsqueeze(sum(x, axis=1), 1), axis=1)",
	"sum(x / unsqueeze(sum(exp(x), axis=1), 1), axis=1)",
	"(x / unsqueeze(sum(abs(x), axis=1), 1)) @ w",
	"softmax(x) @ w",
	"sum(where(x > 0, x, 0) * unsqueeze(g, 1), axis=1) + h",
	"sum[j: K where j < 1] x[i, j] * g[i]",
	"sum[j: K where j < 0] x[i, j] / g[i]",
}

// TestFactorsOfEmptySums compares sums, over nothing among others, with factors that are
// infinite or NaN. A sum over nothing is 0 whatever stands before it. A factor outside a
// sum of terms keeps NaN, and an infinity where the terms have one sign.
func TestFactorsOfEmptySums(t *testing.T) {
	special := []float64{0, 1, -2, math.Inf(1), math.Inf(-1), math.NaN()}
	rapid.Check(t, func(t *rapid.T) {
		body := rapid.SampledFrom(factored).Draw(t, "body")
		k := rapid.IntRange(0, 3).Draw(t, "k")
		shape := "f32[N]"
		if body[len(body)-1] == 'w' {
			shape = "f32[N, 2]"
		}
		at := ""
		if strings.Contains(body, "where j") {
			at = "[i]"
		}
		src := fmt.Sprintf("graph f(x: f32[N, K], g: f32[N], h: f32[N], w: f32[K, 2]) -> (y: %s) { y%s = %s }", shape, at, body)
		g := parse(t, src)
		p, err := Plan(g, Options{})
		require.NoError(t, err)
		const n = 4
		draw := func(finite bool, dims ...int) *interp.Tensor {
			x := interp.New(ir.F32, dims...)
			rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
			for i := range x.F {
				x.F[i] = 1 + rng.Float64()
				if !finite {
					x.F[i] = special[rng.IntN(len(special))]
				}
			}
			return x
		}
		inputs := []*interp.Tensor{draw(true, n, k), draw(false, n), draw(false, n), draw(true, k, 2)}
		comparePlan(t, g, p, inputs, map[string]int64{"N": n, "K": int64(k)}, src)
	})
}
