package fusec

import (
	"testing"

	"github.com/fusec/fusec/runtime"
)

// byteProducts are products of 8-bit operands that lie along the sum, or are laid out along
// it ahead of the product, with what may stand around them.
var byteProducts = map[string]string{
	"e4m3 bt":    `(a: f8e4m3[B, M, K], b: f8e4m3[B, N, K]) -> (y: f32[B, M, N]) { y = einsum("bmk,bnk->bmn", f32(a), f32(b)) }`,
	"e4m3 plain": `(a: f8e4m3[B, M, K], b: f8e4m3[B, K, N]) -> (y: bf16[B, M, N]) { y = bf16(f32(a) @ f32(b)) }`,
	"e5m2 shared": `(a: f8e5m2[B, M, K], b: f8e5m2[N, K], s: f32[B, M], t: f32[N]) -> (y: bf16[B, M, N]) {
		y = bf16(einsum("bmk,nk->bmn", f32(a), f32(b)) * s[:, :, none] * t) }`,
	"quantised": `(a: f32[B, M, K], b: f8e4m3[B, N, K]) -> (y: f32[B, M, N]) { y = einsum("bmk,bnk->bmn", f32(f8e4m3(a)), f32(b)) }`,
	"i8 bt":     `(a: i8[B, M, K], b: i8[B, N, K]) -> (y: i32[B, M, N]) { y = i32(einsum("bmk,bnk->bmn", i32(a), i32(b))) }`,
	"i8 plain":  `(a: i8[B, M, K], b: i8[B, K, N]) -> (y: i64[B, M, N]) { y = i16(a) @ i16(b) }`,
	"i8 scaled": `(a: i8[B, M, K], b: i8[B, N, K], s: f32[N]) -> (y: f32[B, M, N]) { y = f32(einsum("bmk,bnk->bmn", i32(a), i32(b))) * s }`,
	"i8 yt":     `(a: i8[B, M, K], b: i8[B, N, K]) -> (y: i32[B, N, M]) { y = i32(einsum("bmk,bnk->bnm", i32(a), i32(b))) }`,
}

// byteGraph is one of them, with defaults for which operands are laid out ahead.
func byteGraph(name string) string {
	return "@bench(B=4, M=2048, N=2048, K=2048) graph product" + byteProducts[name]
}

// byteSizes are B, M, N and K: tiles enough for every shape of tile, sums of one stage and
// of several rounds of the ring, parts of tiles on either side, sizes that the copy engine
// does not take.
var byteSizes = [][4]int64{{100, 33, 48, 272}, {25, 129, 144, 80}, {3, 300, 272, 1040}, {20, 33, 35, 66}, {2, 64, 64, 0}}

// TestByteTilesOnGPU multiplies small integers, which all types and their sums hold.
func TestByteTilesOnGPU(t *testing.T) {
	mustEnd(t)
	dev := openGPU(t, runtime.Options{OnWarning: func(err error) { t.Log("warning:", err) }})
	for name := range byteProducts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			compareBatches(t, dev, byteGraph(name), byteSizes)
		})
	}
}
