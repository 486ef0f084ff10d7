package fuse

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestSquaresDoNotWaitForTheirCentre says which sums of squares are cut so that
// they are taken beside the sum that their centre is made of: in these programs
// the first kernel reads x, and no other kernel with columns does.
func TestSquaresDoNotWaitForTheirCentre(t *testing.T) {
	for _, c := range []struct {
		name, src string
		once      bool
	}{
		{"variance of everything", `graph g(x: f32[N, M]) -> (y: f32[]) { y = var(x) }`, true},
		{"variance of columns", `graph g(x: f32[N, M]) -> (y: f32[M]) { y = var(x, axis=0, correction=0) }`, true},
		{"moments of channels", `@bench(N=64, C=32) graph g(x: f16[N, C, L]) -> (m: f32[1, C, 1], v: f32[1, C, 1]) { m, v = moments(x, axis=(0, 2)) }`, true},
		{"about another centre", `graph g(x: f32[N, M], c: f32[M]) -> (y: f32[M], s: f32[M]) { d = x - c
			y = sum(d * d, axis=0)
			s = sum(x, axis=0) }`, true},
		{"of a function of x", `graph g(x: f32[N, M]) -> (y: f32[M]) { y = var(x * x, axis=0) }`, true},
		{"weighted", `graph g(x: f32[N, M], w: f32[N]) -> (y: f32[M]) { d = x - mean(x, axis=0)
			y = sum(w[:, none] * d * d, axis=0) }`, false},
		{"cubed", `graph g(x: f32[N, M]) -> (y: f32[M]) { d = x - mean(x, axis=0)
			y = sum(d * d * d, axis=0) }`, false},
		{"strict", `@strict graph g(x: f32[N, M]) -> (y: f32[M]) { y = var(x, axis=0) }`, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := planOf(t, c.src)
			readers := 0
			for _, k := range p.Kernels {
				for _, a := range k.Args {
					if a.Name == "x" && len(k.Cols) > 0 {
						readers++
					}
				}
			}
			assert.Equal(t, c.once, readers == 1, "%d kernels read x", readers)
			compareAtSizes(t, c.src)
		})
	}
}

// TestPlanIsGraphForSquares compares plans with graphs on sums of squares over
// several chunks, about centres that are means and others that are not.
func TestPlanIsGraphForSquares(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.SampledFrom([]string{"x", "x * z", "exp(x)", "(x + 100)"}).Draw(t, "x")
		axis := rapid.SampledFrom([]string{"0", "(0, 2)", "(0, 1, 2)", "2"}).Draw(t, "axis")
		centre := rapid.SampledFrom([]string{"mean", "max", "sum"}).Draw(t, "centre")
		of := rapid.SampledFrom([]string{x, "z"}).Draw(t, "of")
		lines := []string{
			fmt.Sprintf("c = %s(%s, axis=%s, keep=true)", centre, of, axis),
			rapid.SampledFrom([]string{"d = %s - c", "d = c - %s"}).Draw(t, "order"),
			fmt.Sprintf("v = sum(d * d, axis=%s, keep=true)", axis),
			fmt.Sprintf("y = %s * rsqrt(v + 1) + c", x),
		}
		lines[1] = fmt.Sprintf(lines[1], x)
		src := fmt.Sprintf("graph g(x: f64[N, M, L], z: f64[N, M, L]) -> (y: f64[N, M, L]) {\n%s\n}", strings.Join(lines, "\n"))
		g := parse(t, src)
		p, err := Plan(g, Options{})
		require.NoError(t, err, src)
		sizes := map[string]int64{
			"N": rapid.SampledFrom([]int64{1, 2, 5, 33, 65, 130}).Draw(t, "N"),
			"M": rapid.SampledFrom([]int64{1, 3}).Draw(t, "M"),
			"L": rapid.SampledFrom([]int64{1, 2, 8}).Draw(t, "L"),
		}
		inputs, err := drawInputs(g, sizes, rapid.Uint64().Draw(t, "seed"))
		require.NoError(t, err)
		comparePlan(t, g, p, inputs, sizes, src)
	})
}
