package conformance

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime"
	"github.com/fusec/fusec/runtime/simtest"
)

// symmetricRows are products of a tensor by itself: along its rows and across them, in batches, with what may follow the sums, also
// where that is not symmetric, and stored either way.
var symmetricRows = []row{
	{name: "columns", src: `@bench(M=784, K=60000) graph g(x: f32[K, M]) -> (y: f32[M, M]) { y = transpose(x) @ x / 3 }`},
	{name: "rows", src: `@bench(M=784, K=60000) graph g(x: f32[M, K], r: f32[M]) -> (y: f32[M, M]) { y = relu(x @ transpose(x) + r) }`},
	{name: "stored across", src: `@bench(M=784, K=60000) graph g(x: f32[M, K], r: f32[M]) -> (y: f32[M, M]) {
		y[j: M, i: M] = (sum[k: K] x[i, k] * x[j, k]) * r[i] }`},
	{name: "batches", src: `@bench(M=784, K=6000) graph g(x: f32[2, K, M], z: f32[M, M]) -> (y: f32[2, M, M]) { y = transpose(x) @ x + z }`},
	{name: "rows of two axes", src: `@bench(M=392, K=60000) graph g(x: f32[K, M, 2]) -> (y: f32[M, 2, M, 2]) {
		y[i, p, j, q] = sum[k] x[k, i, p] * x[k, j, q] }`},
	{name: "computed", src: `@bench(M=784, K=60000) graph g(x: f32[K, M], m: f32[M]) -> (y: f32[M, M], z: f32[K, 50]) {
		y = transpose(x - m) @ (x - m)
		z = (x - m)[:, 0:1] * f32(iota(50)) }`},
}

// otherRows are products of two parts of a tensor, whose results are not symmetric.
var otherRows = []row{
	{name: "shifted", src: `@bench(M=784, K=60000) graph g(x: f32[K, M + 1]) -> (y: f32[M, M]) { y = transpose(x[:, 1:]) @ x[:, :-1] }`},
	{name: "axes swapped", src: `@bench(M=392, K=60000) graph g(x: f32[K, M, M]) -> (y: f32[M, M]) { y[i, j] = sum[k] x[k, i, j] * x[k, j, i] }`},
	{name: "of another batch", src: `@bench(M=784, K=6000) graph g(x: f32[3, K, M]) -> (y: f32[2, M, M]) { y = transpose(x[1:]) @ x[:-1] }`},
}

// symmetricFamilies are products whose tiles below the diagonal are those above it, and some that look alike.
func symmetricFamilies() []family {
	const points = 8e6
	isSymmetric := func(v *ir.Variant) bool { return v.Contract != nil && v.Contract.Symmetric }
	hasSymmetric := func(p *ir.Plan) bool {
		return slices.ContainsFunc(p.Kernels, func(k *ir.Kernel) bool { return slices.ContainsFunc(k.Variants, isSymmetric) })
	}
	f := family{
		name: "symmetric products", rows: symmetricRows, symbols: []string{"M", "K"}, repeat: true,
		sizes: [][]int64{{300, 40}, {140, 70}, {256, 36}, {9, 33}, {1, 5}}, variants: all, plan: hasSymmetric,
		on:      []pass{{engine: "cpu", most: points}, {engine: "sm_80", most: points}, {engine: "sm_90a", most: points}, {engine: "gpu"}},
		compile: []compiling{{archs: []string{"sm_90a", "sm_80"}, ends: true, keep: isSymmetric}},
	}
	other := f
	other.name, other.rows, other.compile = "products of parts of one tensor", otherRows, nil
	other.plan = func(p *ir.Plan) bool { return !hasSymmetric(p) }
	return []family{f, other}
}

// TestSymmetricSimulated runs each variant of symmetric products that is there, whatever the sizes that it is for, where there are
// tiles above the diagonal. Unless FUSEC_TEST_FULL is set, one program in three is run, which its text draws.
func TestSymmetricSimulated(t *testing.T) {
	RequireNVRTC(t)
	t.Parallel()
	for _, r := range symmetricRows {
		if !inFull() && !hashDraws(r.src, 3) {
			continue
		}
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			dev := openSimulated(t, simtest.Config{Arch: "sm_90a", Limit: 1 << 28})
			g, all := symmetricVariants(t, dev, r.src)
			require.NotEmpty(t, all)
			for _, f := range all {
				for _, sizes := range []map[string]int64{{"M": 300, "K": 40}, {"M": 172, "K": 24}} {
					compareFilled(t, g, f, sizes, Random)
				}
			}
		})
	}
}

// symmetricVariants are the graph of a program, and functions each of which runs its product by one of the symmetric variants.
func symmetricVariants(t *testing.T, dev *Engine, src string) (g *ir.Graph, out []*runtime.Function) {
	for at := 0; ; at++ {
		p, err := fusec.CompileSource(source("g", src), fusec.Options{Arch: dev.Arch()})
		require.NoError(t, err)
		plan, one := p.Plan().At(map[string]int64{"M": 500, "K": 60000}), false
		for _, k := range plan.Kernels {
			k.When = nil
			symmetric := slices.DeleteFunc(slices.Clone(k.Variants), func(v *ir.Variant) bool {
				return v.Contract == nil || !v.Contract.Symmetric || v.Schedule.Index64
			})
			if at < len(symmetric) {
				one, k.Variants = true, symmetric[at:at+1]
				k.Variants[0].When = nil
			}
		}
		if !one {
			return g, out
		}
		g, out = p.Graph(), append(out, loadForAll(t, dev, plan))
	}
}
