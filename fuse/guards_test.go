package fuse

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/interp"
)

// drawGuarded draws a sum of products under conditions on what is summed and on rows of one factor, of both, or of none.
func drawGuarded(rng *rand.Rand) string {
	pick := func(of ...string) string { return of[rng.IntN(len(of))] }
	element := pick("bf16", "f16", "f32")
	a, b := pick("A[i, k]", "At[k, i]"), pick("B[k, j]", "Bt[j, k]")
	conditions := []string{pick("k <= i", "k > i", "m[i, k]", "k < n[i]", "k % 3 != i % 2", "j >= k", "q[k, j]", "2 * k + 1 < j")}
	for rng.IntN(2) == 0 {
		conditions = append(conditions, pick("k >= i", "m[i, k]", "k <= j", "k != j", "u[k]", "k % 2 == 0", "i != j", "n[i] < j", "s[0] < k"))
	}
	where, terms := strings.Join(conditions, " && "), a+" * "+b
	if rng.IntN(3) == 0 {
		terms = fmt.Sprintf("f32(%s) * f32(%s)", a, b)
	}
	sum := fmt.Sprintf("sum[k: K where %s] %s", where, terms)
	if rng.IntN(3) == 0 {
		sum = fmt.Sprintf("sum[k: K] where(%s, %s, 0)", where, terms)
	}
	return fmt.Sprintf(`%s@bench(M=4096, K=4096, N=4096) graph g(A: %[2]s[M, K], At: %[2]s[K, M], B: %[2]s[K, N], Bt: %[2]s[N, K],
		m: bool[M, K], q: bool[K, N], n: i32[M], u: bool[K], s: i32[1]) -> (y: f32[M, N]) {
		c[i: M, j: N] = %s
		y[i, j] = %s
	}`, pick("", "@tf32 "), element, sum, pick("f32(c[i, j])", "max(f32(c[i, j]), 0) + f32(i)"))
}

// TestGuardsKeepSums: conditions of products become guards of their factors, and the sums are what they were, also where what is left
// out, or what it would be multiplied by, is no number or infinite.
func TestGuardsKeepSums(t *testing.T) {
	guarded := 0
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 5))
		src := drawGuarded(rng)
		g := parse(t, src)
		inputs, err := drawInputs(g, map[string]int64{"M": rng.Int64N(8), "K": rng.Int64N(8), "N": rng.Int64N(8)}, seed)
		require.NoError(t, err, src)
		spoil(rng, inputs)
		want, err := interp.Run(g, inputs, interp.Options{})
		require.NoError(t, err, src)
		device, err := ir.DeviceNamed([]string{"H200", "A100"}[seed%2])
		require.NoError(t, err)
		now, err := Normalize(g, Options{Device: device})
		require.NoError(t, err, src)
		for _, v := range now.Values {
			if form.IsMatrixProduct(v) && v.Reduce.Where == nil {
				guarded++
			}
		}
		got, err := interp.Run(now, inputs, interp.Options{})
		require.NoError(t, err, src)
		requireSame(t, want, got, 1e-2, src)
	}
	assert.Greater(t, guarded, 290)
}

// spoil makes a few numbers infinite or NaN.
func spoil(rng *rand.Rand, inputs []*interp.Tensor) {
	for _, x := range inputs {
		for n := range x.F {
			if rng.IntN(12) == 0 {
				x.F[n] = []float64{math.Inf(1), math.Inf(-1), math.NaN()}[rng.IntN(3)]
			}
		}
	}
}

// TestGuardsStay: a condition that has rows of both factors besides what is summed is no guard of one, and small products, strict ones
// and windows keep their conditions.
func TestGuardsStay(t *testing.T) {
	for _, src := range []string{
		`@bench(M=4096, K=4096, N=4096) graph g(a: bf16[M, K], b: bf16[K, N]) -> (y: f32[M, N]) { y[i, j] = sum[k: K where k < i + j] f32(a[i, k]) * f32(b[k, j]) }`,
		`@bench(M=64, K=4096, N=4096) graph g(a: bf16[M, K], b: bf16[K, N]) -> (y: f32[M, N]) { y[i, j] = sum[k: K where k < i] f32(a[i, k]) * f32(b[k, j]) }`,
		`@strict @bench(M=4096, K=4096, N=4096) graph g(a: f32[M, K], b: f32[K, N]) -> (y: f32[M, N]) { y[i, j] = sum[k: K where k < i] a[i, k] * b[k, j] }`,
		`@bench(M=4096, K=256, N=4096) graph g(a: f32[M, K + N], b: f32[K, N]) -> (y: f32[M, N]) { y[i, j] = sum[k: K where k < i] a[i, k + j] * b[k, j] }`,
	} {
		now, err := Normalize(parse(t, src), Options{})
		require.NoError(t, err)
		conditions := 0
		for _, v := range now.Values {
			if v.Reduce != nil && v.Reduce.Where != nil {
				conditions++
				assert.False(t, form.OnlyForNaN(v.Reduce.Where, v.Reduce.Ranges), src)
			}
		}
		assert.Equal(t, 1, conditions, src)
	}
}
