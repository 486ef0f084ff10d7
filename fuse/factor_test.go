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

// TestSumsOfWeightsAreNotZero: a sum of exp(z - m) leaves another sum as its divisor where m is the largest z of the same
// points, because one of its terms is 1. Other such sums may be 0, and stay.
func TestSumsOfWeightsAreNotZero(t *testing.T) {
	for body, leaves := range map[string]bool{
		"sum(exp(z - max(z)))":                              true,
		"sum(exp((z - max(z)) * 2))":                        true,
		"sum(exp((z - max(z)) / 3))":                        true,
		"sum(exp((z - max(z)) * -2))":                       false,
		"sum(exp(z - c))":                                   false,
		"sum(exp(z - v))":                                   false,
		"sum(exp(z - exp(c)))":                              false,
		"sum(exp(z - sum(z)))":                              false,
		"sum(exp(z - min(z)))":                              false,
		"sum(exp(z - max(v)))":                              false,
		"sum(exp(max(z) - z))":                              false,
		"sum(exp(z))":                                       false,
		"sum[j: K where j > 0] exp(z[j] - max(z))":          false,
		"sum(exp(z - (max[j: K where j > 0] z[j])))":        false,
		"sum[j: K] exp(z[j] - (max[l: K] z[l] + v[j]))":     false,
		"sum[j: K] exp(z[j] - (max[l: K] z[l] * v[j]))":     false,
		"sum[j: K] exp(z[j] - max(z)) * exp(v[j] - max(v))": false,
	} {
		g := parse(t, fmt.Sprintf("graph f(x: f32[N, K], z: f32[K], v: f32[K], c: f32[]) -> (y: f32[N]) { d = %s; y = sum(x / d, axis=1) }", body))
		before, changed := "", false
		_, err := Normalize(g, Options{Observe: func(pass string, now *ir.Graph) error {
			changed = changed || pass == "factor" && ir.Print(now) != before
			before = ir.Print(now)
			return nil
		}})
		require.NoError(t, err)
		require.Equal(t, leaves, changed, body)
	}
}

// TestPhasesGiveTheSums: sums over the points that a residue picks, for all strides, steps of points and of places, whatever
// common factors these have. The first point may be a size, which is known later. It compares one program in four, which its
// text draws, unless FUSEC_TEST_FULL is set.
func TestPhasesGiveTheSums(t *testing.T) {
	for stride := 2; stride <= 6; stride++ {
		for place := 1; place <= 4; place++ {
			for step := 1; step <= 4; step++ {
				for _, first := range []string{"1", "2", "P"} {
					src := fmt.Sprintf(`graph f(x: f32[9], w: f32[P]) -> (y: f32[13], z: f32[]) {
						y[i: 13] = sum[k: 9 where (%d * i + %d * k + %s) %% %d == 0] x[k]
						z = sum(w) }`, place, step, first, stride)
					if draws(src, 4) {
						compareAt(t, src, 1, 2, 3)
					}
				}
			}
		}
	}
}
