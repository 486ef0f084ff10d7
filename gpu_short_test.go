package fusec

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/runtime"
	"github.com/fusec/fusec/runtime/simtest"
)

// short are programs over many short rows, which share warps or have a thread each: read once and
// held, with results of each row and of each element, and with what is read of the row itself.
var short = []struct{ name, src string }{
	{"sums", `graph g(x: bf16[N, M], w: f32[M]) -> (y: f32[N], z: f32[N], some: bool[N]) {
		y = sum(f32(x) * w, axis=1)
		z = max(f32(x), axis=1)
		some = any(x > 2, axis=1) }`},
	{"softmax", `graph g(x: bf16[N, M]) -> (y: bf16[N, M]) { y = softmax(x) }`},
	{"logsumexp", `graph g(x: f32[N, M]) -> (y: f32[N]) { y = logsumexp(x, axis=1) }`},
	{"layer_norm", `graph g(x: f32[N, M], r: f32[N, M], w: f32[M], b: f32[M]) -> (y: f32[N, M], s: f32[N, M]) {
		s = x + r
		y = layer_norm(s, w, b) }`},
	{"rms_norm", `graph g(x: f16[N, M], w: f16[M]) -> (y: f16[N, M]) { y = rms_norm(x, w) }`},
	{"scaled by row", `graph g(x: f32[N, M], scale: f32[N]) -> (y: f32[N, M], top: f32[N]) {
		top = max(abs(x), axis=1)
		y = x * (scale / (top + 1))[:, none] }`},
	{"targets", `graph g(x: f32[N, M], at: i64[N]) -> (y: f32[N]) {
		total = logsumexp(x, axis=1)
		y[n: N] = total[n] - x[n, min(at[n], i64(M) - 1)] }`},
	{"doubles", `graph g(x: f64[N, M]) -> (y: f64[N, M], at: i64[N]) {
		y = x - mean(x, axis=1, keep=true)
		at = argmin(x, axis=1) }`},
	{"bytes", `graph g(x: i8[N, M]) -> (y: i32[N], m: i8[N]) {
		y = i32(sum(x, axis=1))
		m = max(x, axis=1) }`},
	{"two axes", `graph g(x: f32[N, K, M]) -> (y: f32[N, K, M]) { y = x - max(x, axis=(1, 2), keep=true) }`},
}

var shortRows = [][2]int64{{1, 5}, {265, 1}, {266, 3}, {301, 7}, {270, 8}, {300, 16}, {265, 17}, {999, 24}, {301, 100}, {267, 33}, {270, 64}, {300, 32}, {700, 2}, {266, 31}, {265, 63}, {300, 127}, {265, 128}, {267, 129}, {271, 200}, {266, 256}}

// forShort compares each of the programs with the interpreter.
func forShort(t *testing.T, dev *runtime.Device, rows [][2]int64) {
	for _, c := range short {
		t.Run(c.name, func(t *testing.T) {
			p, f := loaded(t, dev, c.src)
			for _, size := range rows {
				set := map[string]int64{"N": size[0], "M": size[1], "K": 1 + size[1]%3}
				var list []int64
				for _, s := range p.Graph().Symbols {
					list = append(list, set[s.Name])
				}
				compareUpTo(t, p, f, [][]int64{list}, 1<<21)
			}
		})
	}
}

func TestShortRowsOnGPU(t *testing.T) { forShort(t, openGPU(t, runtime.Options{}), shortRows) }

func TestShortRows(t *testing.T) {
	for _, arch := range []string{"sm_90a", "sm_80"} {
		_, dev := openSimulated(t, simtest.Config{Arch: arch, Order: simtest.Order{Races: true}})
		t.Run(arch, func(t *testing.T) { forShort(t, dev, shortRows[:11]) })
	}
}

// TestShortRowsShareWarps: rows of the sizes above have less than a warp each where they are many.
func TestShortRowsShareWarps(t *testing.T) {
	for _, c := range short {
		p, err := CompileSource(Source{Name: "short.fuse", Text: []byte(c.src)}, Options{Arch: "sm_90a"})
		require.NoError(t, err)
		threads := map[int]bool{}
		for _, v := range p.Plan().Kernels[0].Variants {
			threads[v.Schedule.RowThreads] = true
		}
		require.True(t, threads[1] && threads[8], c.name)
	}
}
