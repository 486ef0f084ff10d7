package fusec

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/codegen"
	"github.com/fusec/fusec/fuse"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/interp"
	"github.com/fusec/fusec/runtime"
	"github.com/fusec/fusec/runtime/tensor"
)

// productBodies are sums of products in every order of their operands' axes, with
// batches, with work on an operand before and on the product after. T stands for
// the dtype.
var productBodies = map[string]string{
	"plain":             `graph g(a: T[M, K], b: T[K, N]) -> (y: T[M, N]) { y = a @ b }`,
	"b transposed":      `graph g(a: T[M, K], b: T[N, K]) -> (y: T[M, N]) { y[m, n] = sum[k] a[m, k] * b[n, k] }`,
	"a transposed":      `graph g(a: T[K, M], b: T[K, N]) -> (y: T[M, N]) { y[m, n] = sum[k] a[k, m] * b[k, n] }`,
	"both transposed":   `graph g(a: T[K, M], b: T[N, K]) -> (y: T[M, N]) { y[m, n] = sum[k] a[k, m] * b[n, k] }`,
	"result transposed": `graph g(a: T[M, K], b: T[K, N]) -> (y: T[N, M]) { y[n, m] = sum[k] a[m, k] * b[k, n] }`,
	"batched":           `graph g(a: T[3, M, K], b: T[3, K, N], c: T[N], r: T[3, M, N]) -> (y: T[3, M, N]) { y = a @ b * 0.5 + c + r }`,
	"batch innermost":   `graph g(a: T[M, K, 3], b: T[K, N, 3]) -> (y: T[M, N, 3]) { y[m, n, z] = sum[k] a[m, k, z] * b[k, n, z] }`,
	"two results": `graph g(a: T[M, K], b: T[K, N], r: T[M]) -> (y: T[M, N], z: T[M, N]) { y = a @ b + r[:, none]
		z = max(y, 0) * r[:, none] }`,
	"prologue":         `graph g(a: T[M, K], b: T[K, N], s: T[K]) -> (y: T[M, N]) { y = (max(a, 0) * s) @ (b + 1) }`,
	"parts of an axis": `graph g(a: T[M, 2, K], b: T[K, 4, N]) -> (y: T[M, 4, N]) { y[m, h, n] = sum[i: 2, k] a[m, i, k] * b[k, h, n] }`,
	"windows":          `graph g(a: T[M, K], b: T[5, N]) -> (y: T[M, K, N]) { y[m, k, n] = sum[i: 5] a[m, k + i - 2] * b[i, n] }`,
}

// sliceSizes are M, N and K: few rows of either side, few tiles, many tiles, long
// sums that blocks share, none at all; aligned and not.
var sliceSizes = [][3]int64{
	{1, 70, 33}, {16, 256, 2048}, {13, 67, 1029}, {300, 5, 70}, {256, 16, 512}, {33, 129, 65}, {64, 64, 64},
	{5, 1032, 1032}, {1100, 16, 1288}, {130, 200, 2304}, {128, 96, 1031}, {1300, 1304, 24}, {1301, 1300, 17}, {40, 48, 0}, {0, 5, 7},
}

func TestSlicesOnGPU(t *testing.T) {
	dev := openGPU(t, runtime.Options{OnWarning: func(err error) { t.Log("warning:", err) }})
	for name, body := range productBodies {
		for _, dtype := range []string{"f32", "bf16", "f16", "f64"} {
			t.Run(name+" "+dtype, func(t *testing.T) {
				t.Parallel()
				p, f := loaded(t, dev, strings.ReplaceAll(body, "T[", dtype+"["))
				for _, s := range sliceSizes {
					sizes := map[string]int64{"M": s[0], "N": s[1], "K": s[2]}
					if work(p.Graph(), sizes) > 1<<25 || dtype == "f16" && s[0] > 100 {
						continue
					}
					t.Run(fmt.Sprint(s), func(t *testing.T) { compareWithInterpreter(t, p.Graph(), f, sizes) })
				}
			})
		}
	}
}

// quantised are products with a weight that is stored in few bits, a scale for each
// group of 32 columns.
var quantised = map[string]string{
	"int4 in u8": `@bench(M=4) graph g(x: bf16[M, 1024], q: u8[N, 512], s: bf16[N, 32]) -> (y: bf16[M, N]) {
		w[n: N, k: 1024] = (bf16(i32(q[n, k / 2]) >> (4 * (k % 2)) & 15) - 8) * s[n, k / 32]
		y[m, n] = sum[k] x[m, k] * w[n, k] }`,
	"int4 in i32": `@bench(M=4) graph g(x: f16[M, 1024], q: i32[N, 128], s: f16[N, 32]) -> (y: f16[M, N]) {
		w[n: N, k: 1024] = (f16(q[n, k / 8] >> (4 * (k % 8)) & 15) - 8) * s[n, k / 32]
		y[m, n] = sum[k] x[m, k] * w[n, k] }`,
	"int4, outputs innermost": `@bench(M=4) graph g(x: bf16[M, 1024], q: u8[512, N], s: bf16[32, N]) -> (y: bf16[M, N]) {
		w[k: 1024, n: N] = (bf16(i32(q[k / 2, n]) >> (4 * (k % 2)) & 15) - 8) * s[k / 32, n]
		y = x @ w }`,
	"int8": `@bench(M=4) graph g(x: bf16[M, 1024], q: i8[N, 1024], s: f32[N]) -> (y: bf16[M, N]) {
		y[m, n] = bf16(sum[k: 1024] f32(x[m, k]) * f32(q[n, k]) * s[n]) }`,
	"f8": `@bench(M=4) graph g(x: bf16[M, 1024], q: f8e4m3[N, 1024], s: bf16[N, 32]) -> (y: bf16[M, N]) {
		y[m, n] = sum[k: 1024] x[m, k] * (bf16(q[n, k]) * s[n, k / 32]) }`,
	"one vector": `graph g(x: bf16[1024], q: u8[N, 512], s: bf16[N, 32]) -> (y: bf16[N]) {
		w[n: N, k: 1024] = (bf16(i32(q[n, k / 2]) >> (4 * (k % 2)) & 15) - 8) * s[n, k / 32]
		y[n] = sum[k] x[k] * w[n, k] }`,
	"int4, groups of 128": `@bench(M=4) graph g(x: bf16[M, 1152], q: u8[N, 576], s: f32[N, 9]) -> (y: bf16[M, N]) {
		w[n: N, k: 1152] = (f32(i32(q[n, k / 2]) >> (4 - 4 * (k % 2)) & 15) - 8) * s[n, k / 128]
		y[m, n] = bf16(sum[k] f32(x[m, k]) * w[n, k]) }`,
	"int4, signed": `@bench(M=4) graph g(x: bf16[M, 1088], q: i8[N, 544], s: bf16[N, 17]) -> (y: f32[N, M]) {
		y[n, m] = sum[k: 1088] f32(x[m, k]) * f32(i32(q[n, k / 2]) << i32(28 - 4 * (k % 2)) >> 28) * s[n, k / 64] }`,
	"int4, zero points": `@bench(M=4) graph g(x: f16[M, 1024], q: i32[N, 128], z: u8[N, 8], s: f16[N, 8]) -> (y: f16[M, N]) {
		w[n: N, k: 1024] = f16((q[n, k / 8] >> (4 * (k % 8)) & 15) - i64(z[n, k / 128] & 15) - 1) * s[n, k / 128]
		y[m, n] = sum[k] x[m, k] * w[n, k] }`,
	"int4, zero points of bf16": `@bench(M=4) graph g(x: bf16[M, 1024], q: u8[N, 512], z: bf16[N, 8], s: bf16[N, 8]) -> (y: f32[M, N]) {
		w[n: N, k: 1024] = (bf16(i32(q[n, k / 2]) >> (4 * (k % 2)) & 15) - z[n, k / 128]) * s[n, k / 128]
		y[m, n] = sum[k] f32(x[m, k]) * f32(w[n, k]) }`,
	"2 bits": `@bench(M=4) graph g(x: bf16[M, 2176], q: u8[N, 544], s: bf16[N, 34]) -> (y: f32[M, N]) {
		w[n: N, k: 2176] = (2 * bf16(i32(q[n, k / 4]) >> (2 * (k % 4)) & 3) - 3) * s[n, k / 64]
		y[m, n] = sum[k] f32(x[m, k]) * f32(w[n, k]) }`,
	"int8, zero points": `@bench(M=4) graph g(x: f16[M, 1152], q: u8[N, 1152], z: u8[N, 9], s: f32[N, 9]) -> (y: f32[M, N]) {
		y[m, n] = sum[k: 1152] f32(x[m, k]) * (f32(q[n, k]) - f32(z[n, k / 128])) * s[n, k / 128] }`,
}

func TestQuantisedProductsOnGPU(t *testing.T) {
	mustEnd(t)
	dev := openGPU(t, runtime.Options{})
	for name, src := range quantised {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, f := loaded(t, dev, src)
			for _, s := range [][2]int64{{1, 64}, {1, 1025}, {3, 1032}, {2, 6400}, {16, 1024}, {13, 1041}, {17, 67}, {70, 130}, {130, 264}} {
				t.Run(fmt.Sprint(s), func(t *testing.T) {
					compareProduct(t, p.Graph(), f, map[string]int64{"M": s[0], "N": s[1]}, math.MinInt32, math.MaxInt32)
				})
			}
		})
	}
}

// TestTF32OnGPU multiplies small integers, which tf32 holds: what differs is wrong.
// With other numbers the results differ from f32, or tf32 was not used.
func TestTF32OnGPU(t *testing.T) {
	dev := openGPU(t, runtime.Options{})
	for _, name := range []string{"plain", "b transposed", "a transposed", "both transposed", "batched", "prologue"} {
		p, f := loaded(t, dev, "@tf32 "+strings.ReplaceAll(productBodies[name], "T[", "f32["))
		for _, s := range sliceSizes {
			sizes := map[string]int64{"M": s[0], "N": s[1], "K": s[2]}
			if work(p.Graph(), sizes) <= 1<<25 {
				t.Run(fmt.Sprint(name, s), func(t *testing.T) { compareProduct(t, p.Graph(), f, sizes, -8, 8) })
			}
		}
	}
}

// compareProduct compares with the interpreter on integers from lo to hi-1, which
// leave no room for rounding but that of the result.
func compareProduct(t *testing.T, g *ir.Graph, f *runtime.Function, sizes map[string]int64, lo, hi int64) {
	args, inputs := integers(t, g, f, sizes, lo, hi)
	want, err := interp.Run(g, inputs, interp.Options{})
	require.NoError(t, err)
	got, err := f.Call(context.Background(), args)
	require.NoError(t, err)
	for i, o := range g.Outputs {
		expected, err := tensor.FromBytes(want[i].Type, want[i].Bytes(), want[i].Shape...)
		require.NoError(t, err)
		diff, err := tensor.Compare(got[o.Name], expected, tolerance(expected, 0))
		require.NoError(t, err)
		assert.True(t, diff.OK(), "%s: %v", o.Name, diff)
	}
	for range repetitions() {
		again, err := f.Call(context.Background(), args)
		require.NoError(t, err)
		for _, o := range g.Outputs {
			require.Equal(t, got[o.Name].Data, again[o.Name].Data, "the same bits every time")
		}
	}
}

// repetitions is how often a call is repeated whose bits are to be the same every time: seldom
// in short tests, which run under tools that look at each access themselves.
func repetitions() int {
	if testing.Short() {
		return 1
	}
	return 10
}

func integers(t *testing.T, g *ir.Graph, f *runtime.Function, sizes map[string]int64, lo, hi int64) (runtime.Args, []*interp.Tensor) {
	shapes, err := f.Shapes(sizes)
	require.NoError(t, err)
	args, inputs := runtime.Args{}, []*interp.Tensor(nil)
	for i, v := range g.Inputs {
		from, to := lo, hi
		if v.Type.IsFloat() {
			from, to = max(lo, -8), min(hi, 8)
		} else if most := int64(v.Type.Info().Max); v.Type.Info().Signed {
			from, to = max(lo, -most-1), min(hi, most+1)
		} else {
			from, to = max(lo, 0), min(hi, most+1)
		}
		x, err := tensor.RandomInts(v.Type, uint64(i+1), from, to, shapes[v.Name]...)
		require.NoError(t, err)
		args[v.Name] = x
		inputs = append(inputs, interp.FromBytes(v.Type, x.Shape, slices.Clone(x.Data)))
	}
	return args, inputs
}

// TestLargeTilesOnGPU runs large products in f32 under every tile that tuning may choose.
func TestLargeTilesOnGPU(t *testing.T) {
	dev := openGPU(t, runtime.Options{})
	const src = `graph g(a: f32[M, K], b: f32[K, N], c: f32[N]) -> (y: f32[M, N]) { y = a @ b + c }`
	sizes := map[string]int64{"M": 1284, "N": 1288, "K": 20}
	g, err := parse(Source{Name: "g.fuse", Text: []byte(src)}, Options{})
	require.NoError(t, err)
	base, err := fuse.Plan(g, fuse.Options{Device: dev.Figures()})
	require.NoError(t, err)
	for _, choice := range fuse.Candidates(base, base.Kernels[0], sizes) {
		if choice.Variant != choice.Class {
			continue
		}
		t.Run(fmt.Sprintf("%+v", choice.Schedule), func(t *testing.T) {
			t.Parallel()
			plan, err := fuse.Plan(g, fuse.Options{Device: dev.Figures(), Choices: []fuse.Choice{choice}})
			require.NoError(t, err)
			program, err := codegen.Generate(plan)
			require.NoError(t, err)
			f, err := dev.Load(context.Background(), program)
			require.NoError(t, err)
			compareProduct(t, g, f, sizes, -8, 8)
		})
	}
}
