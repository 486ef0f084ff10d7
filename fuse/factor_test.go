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

// factored are sums with factors that may leave them: x and w have the reduced axis. z has one of its own, which may be empty.
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
	"sum(x * unsqueeze(tanh(g) / (2 + sin(h)), 1), axis=1)",
	"sum(x * unsqueeze(rsqrt(h * h + 0.5), 1), axis=1) / (abs(g) + 1)",
	"sum(x * unsqueeze(rsqrt(sum(x * x, axis=1) / K + 0.01) * exp(min(g, 4)), 1), axis=1)",
	"sum(x / unsqueeze(max(sum(exp(x - max(x, axis=1, keep=true)), axis=1) * 2, g), 1), axis=1)",
	"sum(x / unsqueeze(sum(exp((w[0, 0] + h)[:, none] - max(w[0, 0] + h)), axis=1), 1), axis=1)",
	"sum(x / sum(exp(z - max(z))), axis=1)",
	"sum(x / sum(exp(2 * (z - max(z)))), axis=1)",
	"(x / sum(exp(z - max(z)))) @ w",
	"einsum(\"ab,a->a\", x, g)",
}

// TestFactorsOfSums compares sums, over nothing among others, of terms of either sign, of 0
// and of special values, with factors that are infinite or NaN. A sum over nothing is 0
// whatever stands before it, and one with a term of 0 times infinity is NaN.
func TestFactorsOfSums(t *testing.T) {
	special := []float64{0, 1, -2, math.Inf(1), math.Inf(-1), math.NaN()}
	rapid.Check(t, func(t *rapid.T) {
		body := rapid.SampledFrom(factored).Draw(t, "body")
		k, m := rapid.IntRange(0, 3).Draw(t, "k"), rapid.IntRange(0, 1).Draw(t, "m")
		shape := "f32[N]"
		if body[len(body)-1] == 'w' {
			shape = "f32[N, 2]"
		}
		at := ""
		if strings.Contains(body, "where j") {
			at = "[i]"
		}
		src := fmt.Sprintf("graph f(x: f32[N, K], g: f32[N], h: f32[N], w: f32[K, 2], z: f32[M]) -> (y: %s) { y%s = %s }", shape, at, body)
		g := parse(t, src)
		host := ir.Devices()[0]
		host.Name, host.Arch = "CPU", ""
		p, err := Plan(g, Options{Device: rapid.SampledFrom([]ir.Device{host, ir.Devices()[0]}).Draw(t, "device")})
		require.NoError(t, err)
		const n = 4
		ordinary := rapid.Bool().Draw(t, "ordinary terms")
		draw := func(finite bool, dims ...int) *interp.Tensor {
			x := interp.New(ir.F32, dims...)
			rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
			for i := range x.F {
				x.F[i] = rng.Float64()*4 - 2
				if zero := rng.IntN(8) == 0; zero {
					x.F[i] = 0
				} else if !finite && rng.IntN(2) == 0 {
					x.F[i] = special[rng.IntN(len(special))]
				}
			}
			return x
		}
		inputs := []*interp.Tensor{draw(ordinary, n, k), draw(false, n), draw(false, n), draw(ordinary, k, 2), draw(true, m)}
		comparePlan(t, g, p, inputs, map[string]int64{"N": n, "K": int64(k), "M": int64(m)}, src)
	})
}
