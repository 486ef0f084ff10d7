package conformance

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime"
	"github.com/fusec/fusec/runtime/simtest"
	"github.com/fusec/fusec/runtime/tensor"
)

// guardedPrograms are products under conditions that become guards of their factors where the products are large.
var guardedPrograms = map[string]string{
	"a band": `@bench(M=4096, K=4096, N=4096) graph g(a: f32[M, K], b: f32[K, N]) -> (y: f32[M, N]) {
		y[i, j] = sum[k: K where k >= i && k <= j] a[i, k] * b[k, j] }`,
	"rows": `@bench(M=4096, K=4096, N=4096) graph g(a: bf16[M, K], b: bf16[K, N]) -> (y: bf16[M, N]) {
		y[i, j] = sum[k: K where k <= i] a[i, k] * b[k, j] }`,
	"rows of the other, behind": `@bench(M=4096, K=4096, N=4096) graph g(a: f16[K, M], b: f16[N, K], c: f16[N]) -> (y: f16[M, N]) {
		p[i: M, j: N] = sum[k: K where k != j] a[k, i] * b[j, k]
		y = relu(p + c) }`,
	"tf32": `@tf32 @bench(M=4096, K=4096, N=4096) graph g(a: f32[M, K], b: f32[K, N], m: bool[M, K]) -> (y: f32[M, N]) {
		y[i, j] = sum[k: K] where(m[i, k] && i != j, a[i, k] * b[k, j], 0) }`,
	"lengths": `@bench(M=1024, K=1024, N=1024) graph g(a: bf16[3, M, K], b: bf16[3, K, N], n: i32[3]) -> (y: f32[3, M, N]) {
		y[t: 3, i, j] = sum[k: K where k < 7 * n[t] + 3] f32(a[t, i, k]) * f32(b[t, k, j]) }`,
}

// guardedOnly is a program whose products are multiplied by guarded factors whatever their sizes.
func guardedOnly(t *testing.T, dev *Engine, src string) (*ir.Graph, *runtime.Function) {
	t.Helper()
	p, err := fusec.CompileSource(source("g", src), fusec.Options{Arch: dev.Arch()})
	require.NoError(t, err)
	plan := p.Plan().At(map[string]int64{"M": 4096, "K": 4096, "N": 4096})
	for _, k := range plan.Kernels {
		k.When = nil
		multiplies := slices.ContainsFunc(k.Members, func(v *ir.Value) bool {
			return form.IsMatrixProduct(v) && !form.OnlyForNaN(v.Reduce.Where, v.Reduce.Ranges)
		})
		require.Equal(t, multiplies, k.Template == ir.ContractTemplate, k.Name)
	}
	return p.Graph(), loadForAll(t, dev, plan)
}

// spoiled are small numbers, a few of which are infinite or NaN, so that some sums of products are numbers and others are not.
func spoiled(v *ir.Value, place int, shape []int) (*tensor.Tensor, error) {
	if !v.Type.IsFloat() {
		return Random(v, place, shape)
	}
	special := []float64{math.Inf(1), math.Inf(-1), math.NaN(), 0}
	return filled(v, place, shape, func(rng *rand.Rand) float64 {
		if n := rng.IntN(300); n < len(special) {
			return special[n]
		}
		return rng.NormFloat64()
	})
}

// TestGuardedSimulated: sums under conditions are the same where their factors are guarded.
func TestGuardedSimulated(t *testing.T) {
	RequireNVRTC(t)
	t.Parallel()
	dev := openSimulated(t, simtest.Config{Arch: "sm_90a", Limit: 1 << 28})
	for name, src := range guardedPrograms {
		if !inFull() && !hashDraws(src, 3) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, f := guardedOnly(t, dev, src)
			for _, sizes := range partSizes {
				for _, fill := range []Fill{Random, spoiled} {
					compareFilled(t, g, f, sizes, fill)
				}
			}
		})
	}
}
