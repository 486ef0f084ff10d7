package conformance

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime/simtest"
)

// segmentPrograms have products whose operands are concatenations along the sum, or that are added, and read the parts where they lie if they are
// large.
var segmentPrograms = map[string]string{
	"both sides": `@bench(M=4096, K=1024, L=1024, N=1024) graph g(x: bf16[M, K], h: bf16[M, L], w: bf16[K, N], u: bf16[L, N]) -> (y: bf16[M, N]) {
		y = concat(x, h, axis=1) @ concat(w, u, axis=0)
	}`,
	"one side": `@bench(M=4096, K=1024, L=1024, N=1024) graph g(x: f16[M, K], h: f16[M, L], w: f16[K + L, N], b: f32[N]) -> (y: f16[M, N]) {
		y = f16(f32(concat(x, h, axis=1) @ w) + b)
	}`,
	"weights alone": `@bench(M=4096, K=1024, L=1024, N=1024) graph g(x: bf16[M, K + L], w: bf16[N, K], u: bf16[N, L]) -> (y: bf16[M, N]) {
		y = relu(linear(x, concat(w, u, axis=1)))
	}`,
	"added": `@bench(M=4096, K=1024, L=1024, N=1024) graph g(x: bf16[M, K], h: bf16[M, L], w: bf16[N, K], u: bf16[N, L], b: bf16[N], c: bf16[N]) -> (y: bf16[M, N]) {
		y = tanh(linear(x, w, b) + linear(h, u, c))
	}`,
	"added, in two orders": `@bench(M=4096, K=1024, L=1024, N=1024) graph g(x: bf16[M, K], h: bf16[M, L], w: bf16[K, N], u: bf16[N, L]) -> (y: f32[M, N]) {
		y = f32(x @ w + linear(relu(h), u))
	}`,
	"three parts, in batches": `@bench(M=1024, K=1024, L=1024, N=1024) graph g(x: f16[3, M, K], h: f16[M, L], w: f16[3, K, N], u: f16[L, N], v: f16[3, K, N]) -> (y: f16[3, M, N]) {
		y = concat(x, repeat(h[none], 3, axis=0), x, axis=-1) @ concat(w, repeat(u[none], 3, axis=0), v, axis=1)
	}`,
	"columns first": `@bench(M=4096, K=1024, L=1024, N=1024) graph g(x: bf16[K, M], h: bf16[L, M], w: bf16[K, N], u: bf16[L, N]) -> (y: bf16[N, M]) {
		y = transpose(transpose(x) @ w + transpose(h) @ u)
	}`,
	"rows folded": `@bench(M=4096, K=1024, L=1024, N=1024) graph g(x: bf16[M, K], h: bf16[M, L], w: bf16[K, N], u: bf16[L, N]) -> (y: f32[M]) {
		y = max(f32(x @ w + h @ u), axis=1)
	}`,
	"scores": `@bench(M=8192, N=8192) graph g(x: bf16[2, M, 64], h: bf16[M, 32], w: bf16[2, N, 64], u: bf16[N, 32], v: bf16[2, N, 64], z: bf16[K, L]) -> (y: bf16[2, M, 64]) {
		y = softmax((einsum("bik,bjk->bij", x, w) + einsum("ik,bjk->bij", h, repeat(u[none], 2, axis=0))) * 0.1) @ v
	}`,
	"gates": `@bench(M=4096, K=1024, L=1024, N=1024) graph g(x: bf16[M, K], h: bf16[M, L], w: bf16[K, 2 * N], u: bf16[L, 2 * N]) -> (y: bf16[M, N]) {
		z = x @ w + h @ u
		y = z[:, :N] * sigmoid(z[:, N:])
	}`,
}

// segmentSizes are sizes of which parts are whole accesses: few, more than a tile, segments that end within a stage and with one.
var segmentSizes = []map[string]int64{{"M": 24, "K": 8, "L": 72, "N": 40}, {"M": 136, "K": 64, "L": 16, "N": 264}, {"M": 72, "K": 136, "L": 128, "N": 128}}

// TestSegmentsSimulated: products that read the parts of their operands where they lie are those of the whole. Unless FUSEC_TEST_FULL is set, one
// program in three is run.
func TestSegmentsSimulated(t *testing.T) {
	RequireNVRTC(t)
	t.Parallel()
	compareSegments(t, openSimulated(t, simtest.Config{Arch: "sm_90a", Limit: 1 << 28, Order: simtest.Order{Races: true}}),
		func(src string) bool { return inFull() || hashDraws(src, 3) })
}

func TestSegmentsOnGPU(t *testing.T) {
	mustEnd(t)
	dev := openHopper(t, "segments are copied by the tensor copy engine")
	compareSegments(t, dev, func(string) bool { return true })
}

func compareSegments(t *testing.T, dev *Engine, draws func(string) bool) {
	large := map[string]int64{"M": 4096, "K": 1024, "L": 1024, "N": 1024}
	for name, src := range segmentPrograms {
		if !draws(src) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			inSegments := func(v *ir.Variant) bool { return v.Attend != nil || v.Contract != nil && v.Contract.Segments != nil }
			g, variants := eachVariant(t, dev, src, large, inSegments)
			require.NotEmpty(t, variants, "variants that read segments")
			_, others := eachVariant(t, dev, src, large, func(v *ir.Variant) bool { // they are for sizes that the copy engine does not take
				return v.Contract != nil && v.Contract.Segments == nil && hashDraws(fmt.Sprint(src, v.Schedule), 6)
			})
			for _, f := range append(variants, others...) {
				for _, sizes := range segmentSizes {
					compareFilled(t, g, f, sizes, Random)
				}
			}
		})
	}
}
