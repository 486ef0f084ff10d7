package conformance

import (
	"math"
	"strings"

	"github.com/fusec/fusec/ir"
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
var sliceSizes = [][]int64{
	{1, 70, 33}, {16, 256, 2048}, {13, 67, 1029}, {300, 5, 70}, {256, 16, 512}, {33, 129, 65}, {64, 64, 64},
	{5, 1032, 1032}, {1100, 16, 1288}, {130, 200, 2304}, {128, 96, 1031}, {1300, 1304, 24}, {1301, 1300, 17}, {40, 48, 0}, {0, 5, 7},
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

// tf32Products are products in tf32 whose operands lie along the sum, or are laid out
// along it ahead of the product, with what may stand around them.
var tf32Products = map[string]string{
	"bt":      `(a: f32[B, M, K], b: f32[B, N, K]) -> (y: f32[B, M, N]) { y = einsum("bmk,bnk->bmn", a, b) }`,
	"plain":   `(a: f32[B, M, K], b: f32[B, K, N]) -> (y: f32[B, M, N]) { y = a @ b }`,
	"at_bt":   `(a: f32[B, K, M], b: f32[B, N, K]) -> (y: f32[B, M, N]) { y = einsum("bkm,bnk->bmn", a, b) }`,
	"yt":      `(a: f32[B, M, K], b: f32[B, N, K]) -> (y: f32[B, N, M]) { y = einsum("bmk,bnk->bnm", a, b) }`,
	"shared":  `(a: f32[B, M, K], b: f32[N, K]) -> (y: f32[B, M, N]) { y = einsum("bmk,nk->bmn", a, b) }`,
	"heads":   `(a: f32[M, B, K], b: f32[N, B, K]) -> (y: f32[B, M, N]) { y = einsum("mbk,nbk->bmn", a, b) }`,
	"slice":   `(a: f32[B, M, K], b: f32[B, N, K]) -> (y: f32[B, M, N]) { y = einsum("bmk,bnk->bmn", a[:, :, 4:], b[:, :, 4:]) }`,
	"relu_bt": `(a: f32[B, M, K], b: f32[B, N, K], s: f32[K]) -> (y: f32[B, M, N]) { y = einsum("bmk,bnk->bmn", max(a, 0) * s, b) }`,
	"ffn": `(a: f32[B, M, K], b: f32[N, K], bias: f32[N], r: f32[B, M, N]) -> (y: f32[B, M, N], z: f32[B, M, N]) {
		t = einsum("bmk,nk->bmn", a, b) + bias
		y = max(t, 0) + r
		z = t * 2 }`,
}

// tf32Graph is one of them, with defaults for which operands are laid out ahead.
func tf32Graph(name string) string {
	return "@tf32 @bench(B=4, M=2048, N=2048, K=2048) graph product" + tf32Products[name]
}

// tf32Sizes are B, M, N and K: tiles enough for every shape of tile, sums of one step and
// of several rounds of the ring, parts of tiles on either side, sizes that the copy
// engine does not take.
var tf32Sizes = [][]int64{{100, 33, 36, 68}, {25, 129, 132, 20}, {100, 40, 64, 32}, {20, 33, 35, 66}, {2, 64, 64, 0}}

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
var byteSizes = [][]int64{{100, 33, 48, 272}, {25, 129, 144, 80}, {3, 300, 272, 1040}, {20, 33, 35, 66}, {2, 64, 64, 0}}

// sliceFamilies are sums of products that threads multiply and add, whose columns blocks share.
func sliceFamilies() []family {
	bodies := family{name: "sums of products", rows: ofTypes(productBodies, "bf16", "f32", "f64", "f16"), symbols: mnk, sizes: sliceSizes,
		on: []pass{{engine: "gpu", most: 1 << 25}},
		variants: func(_ int, name string) bool {
			return strings.HasSuffix(name, " f32") || strings.HasSuffix(name, " f64")
		},
		compile: []compiling{
			{archs: []string{"sm_90a"}, keep: offsetsOf32, rows: func(_ int, name string) bool { return name == "plain f32" || name == "plain bf16" }},
			{archs: []string{"sm_90a", "sm_80"}, ends: true, keep: offsetsOf32, // of each body one type
				rows: func(i int, _ string) bool { n := len(productBodies); return i/n == i%n%4 }},
		}}
	for i := range bodies.rows {
		if strings.HasSuffix(bodies.rows[i].name, " f16") {
			bodies.rows[i].sizes = upToRows(sliceSizes, 100)
		}
	}
	few := [][]int64{{1, 64}, {1, 1025}, {3, 1032}, {2, 6400}, {16, 1024}, {13, 1041}, {17, 67}, {70, 130}, {130, 264}}
	return []family{bodies,
		{name: "quantised products", rows: rowsOf(quantised, verbatim), symbols: []string{"M", "N"}, sizes: few,
			fill: Integers(math.MinInt32, math.MaxInt32), exact: rounded, repeat: true, variants: all,
			on:      []pass{{engine: "gpu"}},
			compile: []compiling{{archs: []string{"sm_90a", "sm_80"}, ends: true, keep: offsetsOf32}}},
	}
}

func upToRows(list [][]int64, most int64) (out [][]int64) {
	for _, s := range list {
		if s[0] <= most {
			out = append(out, s)
		}
	}
	return out
}

// offsetsOf32: 64-bit offsets change no more than types.
func offsetsOf32(v *ir.Variant) bool { return !v.Schedule.Index64 }

// tileFamilies are products on tensor cores of operands that are not 16-bit floats. They multiply small
// integers, which tf32, bytes and the sums hold.
func tileFamilies() []family {
	bmnk := []string{"B", "M", "N", "K"}
	six := map[string]string{}
	for _, name := range []string{"plain", "b transposed", "a transposed", "both transposed", "batched", "prologue"} {
		six[name] = productBodies[name]
	}
	tiles := rowsOf(tf32Products, func(name, _ string) string { return tf32Graph(name) })
	for i := range tiles {
		if tiles[i].name == "slice" { // which starts at column 4
			for _, s := range tf32Sizes {
				if s[3] >= 16 {
					tiles[i].sizes = append(tiles[i].sizes, s)
				}
			}
		}
	}
	return []family{
		{name: "tf32", rows: rowsOf(six, func(name, body string) string { return "@tf32 " + ofType("f32")(name, body) }),
			symbols: mnk, sizes: sliceSizes, fill: Integers(-8, 8), exact: rounded, repeat: true, on: []pass{{engine: "gpu", most: 1 << 25}},
			compile: []compiling{{archs: []string{"sm_90a"}, keep: offsetsOf32, rows: named("b transposed")}}},
		{name: "tf32 tiles", rows: tiles, symbols: bmnk, sizes: tf32Sizes, fill: Integers(-8, 8), exact: rounded, repeat: true,
			on: []pass{{engine: "gpu"}}, variants: all,
			compile: []compiling{{archs: []string{"sm_90a"}, keep: offsetsOf32, rows: named("plain", "ffn")},
				{archs: []string{"sm_80"}, ends: true, keep: offsetsOf32, rows: named("plain", "ffn")}}},
		{name: "bytes", rows: rowsOf(byteProducts, func(name, _ string) string { return byteGraph(name) }), symbols: bmnk, sizes: byteSizes,
			fill: Integers(-8, 8), exact: rounded, repeat: true, on: []pass{{engine: "gpu"}}, variants: all,
			compile: []compiling{{archs: []string{"sm_90a"}, keep: offsetsOf32, rows: named("e5m2 shared", "i8 bt")},
				{archs: []string{"sm_80"}, ends: true, keep: offsetsOf32, rows: named("e4m3 plain")}}},
	}
}
