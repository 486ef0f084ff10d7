package conformance

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime"
	"github.com/fusec/fusec/runtime/simtest"
	"github.com/fusec/fusec/runtime/tensor"
)

// partPrograms have products of f32 that are multiplied as sums of parts of bf16 where they are large.
var partPrograms = map[string]string{
	"plain":     "@bench(M=4096, K=4096, N=4096) graph g(a: f32[M, K], b: f32[K, N]) -> (y: f32[M, N]) { y = a @ b }",
	"bt":        "@bench(M=4096, K=4096, N=4096) graph g(a: f32[M, K], b: f32[N, K]) -> (y: f32[M, N]) { y = a @ transpose(b) }",
	"at":        "@bench(M=4096, K=4096, N=4096) graph g(a: f32[K, M], b: f32[K, N]) -> (y: f32[M, N]) { y = transpose(a) @ b }",
	"at_bt":     "@bench(M=4096, K=4096, N=4096) graph g(a: f32[K, M], b: f32[N, K]) -> (y: f32[M, N]) { y = transpose(a) @ transpose(b) }",
	"batch":     "@bench(M=4096, K=4096, N=4096) graph g(a: f32[2, M, K], b: f32[2, K, N]) -> (y: f32[2, M, N]) { y = a @ b }",
	"broadcast": "@bench(M=4096, K=4096, N=4096) graph g(a: f32[2, M, K], b: f32[K, N]) -> (y: f32[2, M, N]) { y = a @ b }",
	"slice":     "@bench(M=4096, K=4096, N=4096) graph g(a: f32[M, K + 3], b: f32[K + 3, N]) -> (y: f32[M, N]) { y = a[:, 3:] @ b[3:, :] }",
	"itself":    "@bench(M=4096, K=4096, N=4096) graph g(a: f32[M, K], b: f32[N]) -> (y: f32[M, M]) { y = a @ transpose(a) + b[0] }",
	"among": `@bench(M=4096, K=4096, N=4096) graph g(a: f32[M, K], b: f32[K, N], c: f32[N]) -> (y: f32[M, N]) {
		y = silu(relu(a) @ b + c)
	}`,
	"narrowed": "@bench(M=4096, K=4096, N=4096) graph g(a: f32[M, K], b: f32[K, N]) -> (y: bf16[M, N]) { y = bf16(a @ b) }",
	"window": `@bench(M=64, K=64, N=64) graph g(x: f32[M, 40, K, N], w: f32[65, 40, 3, 3]) -> (y: f32[M, 65, K, N]) {
		y = conv2d(x, w, padding=1)
	}`,
	"phases": `@bench(M=64, K=64, N=64) graph g(x: f32[M, 40, K, N], w: f32[40, 32, 3, 3]) -> (y: f32[M, 32, 2 * K - 1, 2 * N - 1]) {
		y = conv_transpose2d(x, w, stride=2, padding=1)
	}`,
}

// partSizes are M, K and N: odd, whole tiles, few; partImages those of convolutions.
var (
	partSizes  = []map[string]int64{{"M": 70, "K": 37, "N": 45}, {"M": 64, "K": 16, "N": 136}, {"M": 3, "K": 5, "N": 9}}
	partImages = []map[string]int64{{"M": 2, "K": 5, "N": 7}, {"M": 1, "K": 4, "N": 8}}
)

// inPartsOnly is a program whose products of f32 are multiplied in parts whatever their sizes.
func inPartsOnly(t *testing.T, dev *Engine, src string) (*ir.Graph, *runtime.Function) {
	return asForLarge(t, dev, src, func(v *ir.Variant) bool {
		return v.Schedule.Mapping == ir.WarpgroupMapping && v.Contract.InParts()
	})
}

// asForLarge is a program that runs at any sizes as it does at large ones, where one kernel has variants of a kind.
func asForLarge(t *testing.T, dev *Engine, src string, kind func(*ir.Variant) bool) (*ir.Graph, *runtime.Function) {
	t.Helper()
	p, err := fusec.CompileSource(source("g", src), fusec.Options{Arch: dev.Arch()})
	require.NoError(t, err)
	plan := p.Plan().At(map[string]int64{"M": 4096, "K": 4096, "N": 4096})
	kernels := 0
	for _, k := range plan.Kernels {
		k.When = nil
		if slices.ContainsFunc(k.Variants, kind) {
			kernels++
		}
	}
	require.Equal(t, 1, kernels, "kernels of that kind")
	return p.Graph(), loadForAll(t, dev, plan)
}

// TestPartsSimulated: products in parts are those of f32. Unless FUSEC_TEST_FULL is set, one program in five is run, which its
// text draws.
func TestPartsSimulated(t *testing.T) {
	RequireNVRTC(t)
	t.Parallel()
	compareParts(t, openSimulated(t, simtest.Config{Arch: "sm_90a", Limit: 1 << 28}), func(src string) bool { return inFull() || hashDraws(src, 5) })
}

func TestPartsOnGPU(t *testing.T) {
	mustEnd(t)
	dev := openHopper(t, "products are multiplied in parts by warpgroups")
	compareParts(t, dev, func(string) bool { return true })
}

func compareParts(t *testing.T, dev *Engine, takes func(src string) bool) {
	for name, src := range partPrograms {
		if !takes(src) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, f := inPartsOnly(t, dev, src)
			all, fills := partSizes, []Fill{Random, wideRange, notFinite}
			switch name {
			case "window", "phases":
				all = partImages
			case "itself":
				fills = fills[:2] // squares of large numbers overflow in several terms, of either sign
			}
			for _, sizes := range all {
				for _, fill := range fills {
					compareFilled(t, g, f, sizes, fill)
				}
			}
		})
	}
}

// wideRange are numbers of many magnitudes.
func wideRange(v *ir.Value, place int, shape []int) (*tensor.Tensor, error) {
	return filled(v, place, shape, func(rng *rand.Rand) float64 { return math.Ldexp(rng.NormFloat64(), rng.IntN(60)-30) })
}

// notFinite are numbers a few of which are infinite, NaN or, in the first tensor, so large that they are infinite in
// bf16. The others are small, so that sums of these are finite.
func notFinite(v *ir.Value, place int, shape []int) (*tensor.Tensor, error) {
	special := []float64{math.Inf(1), math.Inf(-1), math.NaN(), 0}
	if place == 0 {
		special = append(special, 3.4e38, -3.4e38)
	}
	return filled(v, place, shape, func(rng *rand.Rand) float64 {
		if n := rng.IntN(500); n < len(special) {
			return special[n]
		}
		return rng.NormFloat64() * 1e-3
	})
}

func filled(v *ir.Value, place int, shape []int, draw func(*rand.Rand) float64) (*tensor.Tensor, error) {
	rng := rand.New(rand.NewPCG(uint64(place), 7))
	x, err := tensor.New(ir.F32, shape...)
	if err != nil {
		return nil, err
	}
	data, _ := tensor.View[float32](x)
	for i := range data {
		data[i] = float32(draw(rng))
	}
	return x.Convert(v.Type)
}
