package fuse

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fusec/fusec/ir"
)

// A swept is a program whose plan depends on a number.
type swept struct {
	name   string
	text   func(n int64) string
	figure func(d *ir.Device, n int64) // of the device, which n is; nil where n is of the program
	grows  bool                        // n is how much the program does
	walks  []walk
}

// A walk is the numbers from, from+step, and so on, up to to.
type walk struct{ from, to, step int64 }

// Numbers to walk over. Extents are those that are whole accesses of any type, those that are so only of some, and
// those that are none.
var (
	extents = []walk{{16, 1 << 17, 16}, {8, 1<<13 + 8, 16}, {1, 1<<17 + 1, 2}}
	modest  = []walk{{16, 1 << 13, 16}, {1, 1<<13 + 1, 2}}
	lengths = []walk{{16, 1 << 24, 16}, {1, 1<<20 + 1, 2}}
	few     = upTo(96)
)

func upTo(n int64) []walk { return []walk{{1, n, 1}} }

// with is a text with n in place of $.
func with(text string) func(int64) string {
	return func(n int64) string { return strings.ReplaceAll(text, "$", fmt.Sprint(n)) }
}

// times is a text with each part between [[ and ]] n times, with its number in place of %, and that of the part before
// it in place of %-.
func times(text string) func(int64) string {
	return func(n int64) (out string) {
		for rest := text; rest != ""; {
			plain, repeated, _ := strings.Cut(rest, "[[")
			repeated, after, _ := strings.Cut(repeated, "]]")
			out += strings.ReplaceAll(plain, "$", fmt.Sprint(n))
			for i := range n {
				out += strings.NewReplacer("%-", fmt.Sprint(i), "%", fmt.Sprint(i+1)).Replace(repeated)
			}
			rest = after
		}
		return out
	}
}

func always(text string) func(int64) string { return func(int64) string { return text } }

// Figures of devices. The steps of shared memory are those of single bytes.
func sharedBlock(d *ir.Device, n int64)     { d.SharedBlock = int(n) }
func multiprocessors(d *ir.Device, n int64) { d.SMs = int(n) }
func cache(d *ir.Device, n int64)           { d.L2 = n }

var (
	sharedBytes = []walk{{32 << 10, 228 << 10, 1}}
	cacheBytes  = []walk{{1 << 10, 1 << 28, 1}}
)

// sweeps are programs of every strategy.
var sweeps = slices.Concat(strategySweeps, workSweeps, shapeSweeps, sharedSweeps)

var strategySweeps = []swept{
	{name: "softmax", text: with(`graph g(x: bf16[300, $]) -> (y: bf16[300, $]) { y = softmax(x) }`), walks: extents},
	{name: "softmax_rows", text: with(`graph g(x: f32[$, 96]) -> (y: f32[$, 96]) { y = softmax(x) }`), walks: modest},
	{name: "layer_norm", text: with(`graph g(x: f32[4000, $], w: f32[$], b: f32[$]) -> (y: f32[4000, $]) { y = layer_norm(x, w, b) }`), walks: extents},
	{name: "few_rows", text: with(`graph g(x: f16[3, $]) -> (y: f16[3, $]) { y = rms_norm(x) }`), walks: extents},
	{name: "group_norm", text: with(`graph g(x: f32[8, 6, $]) -> (y: f32[8, 6, $]) { y = group_norm(x, 3) }`), walks: extents},
	{name: "sum_rows", text: with(`graph g(x: f32[500, $]) -> (y: f32[500]) { y = sum(x, axis=1) }`), walks: extents},
	{name: "sum_columns", text: with(`graph g(x: bf16[$, 384]) -> (y: f32[384]) { y = sum(f32(x), axis=0) }`), walks: extents},
	{name: "sum_few_columns", text: with(`graph g(x: f32[50000, $]) -> (y: f32[$]) { y = max(x, axis=0) }`), walks: modest},
	{name: "softmax_columns", text: with(`graph g(x: f32[$, 512]) -> (y: f32[$, 512]) { y = softmax(x, axis=0) }`), walks: modest},
	{name: "turned", text: with(`graph g(x: f32[512, $]) -> (y: f32[$, 512]) { y = transpose(softmax(x)) }`), walks: modest},
	{name: "loss", text: with(`graph g(x: bf16[200, $], t: i32[200]) -> (y: f32[]) { y = mean(cross_entropy(f32(x), t)) }`), walks: modest},
	{name: "mean_of_all", text: with(`graph g(x: f32[$]) -> (y: f32[]) { y = mean(x) }`), walks: lengths},
	{name: "argmax", text: with(`graph g(x: i8[64, $]) -> (y: i64[64]) { y = argmax(x, axis=1) }`), walks: modest},
	{name: "points", text: with(`graph g(x: f16[$, 7], b: f16[7]) -> (y: f16[$, 7]) { y = gelu(x + b) }`), walks: modest},
	{name: "doubles", text: with(`graph g(x: f64[$]) -> (y: f64[$]) { y = exp(x) * 2 }`), walks: modest},
	{name: "transposed", text: with(`graph g(x: bf16[$, 200]) -> (y: bf16[200, $]) { y = transpose(x) * 2 }`), walks: modest},
	{name: "stencil", text: with(`graph g(x: f32[500, 500]) -> (y: f32[500, 500]) { y[r: 500, c: 500] = sum[i: $, j: 3] x[r + i - 1, c + j - 1] else 0 }`), walks: few},
	{name: "stencil_rows", text: with(`graph g(x: f16[$, $]) -> (y: f16[$, $]) { y[r: $, c: $] = max[i: 3, j: 5] x[r + i - 1, c + j - 2] else 0 }`), walks: modest},
	{name: "max_pool", text: with(`graph g(x: f32[8, $, 64, 64]) -> (y: f32[8, $, 32, 32]) { y = max_pool2d(x, 2) }`), walks: few},
	{name: "scan_rows", text: with(`graph g(x: f32[50, $]) -> (y: f32[50, $]) { y = cumsum(x, axis=1) }`), walks: extents},
	{name: "scan_columns", text: with(`graph g(x: f32[$, 700]) -> (y: f32[$, 700]) { y = cumsum(x, axis=0) }`), walks: extents},
	{name: "scan_one_row", text: with(`graph g(x: i64[$]) -> (y: i64[$]) { y = cumsum(x) }`), walks: extents},
	{name: "sort", text: with(`graph g(x: f32[20, $]) -> (y: f32[20, $]) { y = sort(x, axis=1) }`), walks: extents},
	{name: "argsort_bytes", text: with(`graph g(x: u8[20, $]) -> (y: i64[20, $]) { y = argsort(x, axis=1) }`), walks: modest},
	{name: "topk", text: with(`graph g(x: f16[20, $ + 8]) -> (y: f16[20, 8], i: i64[20, 8]) { y, i = topk(x, 8) }`), walks: extents},
	{name: "topk_many", text: with(`graph g(x: f32[20, 4000]) -> (y: f32[20, $], i: i64[20, $]) { y, i = topk(x, $) }`), walks: upTo(3000)},
	{name: "scatter_rows", text: with(`graph g(x: f32[$, 64], at: i32[$]) -> (y: f32[100, 64]) { y[k: 100, j: 64] = sum[i: $ where at[i] == k] x[i, j] }`), walks: modest},
	{name: "scatter_places", text: with(`graph g(x: bf16[3000, 33], at: i64[3000]) -> (y: f32[$, 33]) { y[k: $, j: 33] = sum[i: 3000 where at[i] == k] f32(x[i, j]) }`), walks: extents},
	{name: "histogram", text: with(`graph g(at: i32[100000]) -> (y: i64[$]) { y = bincount(at, $) }`), walks: extents},
	{name: "count_few", text: with(`graph g(at: u8[$]) -> (y: i64[200]) { y = bincount(at, 200) }`), walks: extents},
	{name: "product", text: with(`graph g(a: bf16[1000, 512], b: bf16[512, $]) -> (y: bf16[1000, $]) { y = relu(a @ b) }`), walks: extents},
	{name: "product_rows", text: with(`graph g(a: f16[$, 768], b: f16[768, 768]) -> (y: f16[$, 768]) { y = a @ b }`), walks: extents},
	{name: "product_long", text: with(`graph g(a: bf16[128, $], b: bf16[256, $]) -> (y: f32[128, 256]) { y = f32(a @ transpose(b)) }`), walks: extents},
	{name: "product_floats", text: with(`graph g(a: f32[$, 320], b: f32[320, 500]) -> (y: f32[$, 500]) { y = a @ b }`), walks: modest},
	{name: "product_floats_long", text: with(`graph g(a: f32[100, $], b: f32[$, 90]) -> (y: f32[100, 90]) { y = a @ b }`), walks: modest},
	{name: "product_tf32", text: with(`@tf32 graph g(a: f32[$, 512], b: f32[512, $]) -> (y: f32[$, $]) { y = a @ b }`), walks: modest},
	{name: "product_doubles", text: with(`graph g(a: f64[$, 100], b: f64[100, 60]) -> (y: f64[$, 60]) { y = a @ b }`), walks: modest},
	{name: "product_bytes", text: with(`graph g(a: i8[$, 256], b: i8[256, 512]) -> (y: i64[$, 512]) { y[i: $, j: 512] = sum[k: 256] i32(a[i, k]) * i32(b[k, j]) }`), walks: modest},
	{name: "product_packed", text: with(`graph g(a: bf16[$, 1024], b: i8[512, 1024], s: f32[512]) -> (y: bf16[$, 512]) { y = a @ transpose(bf16(b)) * bf16(s) }`), walks: modest},
	{name: "product_bits", text: with(`graph g(a: f16[4, 1024], b: u8[$, 512]) -> (y: f32[4, $]) { y[i: 4, j: $] = sum[k: 1024] f32(a[i, k]) * f32(i32(b[j, k / 2]) >> 4 * (k % 2) & 15) }`), walks: modest},
	{name: "batched", text: with(`graph g(a: bf16[$, 64, 96], b: bf16[$, 96, 80]) -> (y: bf16[$, 64, 80]) { y = a @ b }`), walks: few},
	{name: "vector", text: with(`graph g(a: bf16[3000, $], b: bf16[$]) -> (y: bf16[3000]) { y = a @ b }`), walks: extents},
	{name: "vector_rows", text: with(`graph g(a: f32[$], b: f32[$, 600]) -> (y: f32[600]) { y = a @ b }`), walks: modest},
	{name: "gemv", text: with(`graph g(a: f16[$, 2048], b: f16[1024, 2048]) -> (y: f16[$, 1024]) { y = a @ transpose(b) }`), walks: few},
	{name: "norm_product", text: with(`graph g(a: f32[200, $], b: f32[$, 48]) -> (y: f32[200, 48]) { y = softmax(a) @ b }`), walks: modest},
	{name: "small_product", text: with(`graph g(a: f32[20000, $], b: f32[$, $]) -> (y: f32[20000, $]) { y = a @ b }`), walks: few},
	{name: "gated", text: with(`graph g(a: bf16[512, 256], b: bf16[256, $], c: bf16[256, $]) -> (y: bf16[512, $]) { y = silu(a @ b) * (a @ c) }`), walks: modest},
	{name: "distances", text: with(`graph g(a: f32[300, 64], b: f32[$, 64]) -> (y: f32[300]) { y = min(cdist(a, b), axis=1) }`), walks: modest},
	{name: "masked_product", text: with(`graph g(a: f16[$, 256], b: f16[256, 128]) -> (y: f16[$, 128]) { y = tril(a @ b) }`), walks: modest},
	{name: "conv2d", text: with(`graph g(x: bf16[4, $, 28, 28], w: bf16[64, $, 3, 3]) -> (y: bf16[4, 64, 28, 28]) { y = conv2d(x, w, padding=1) }`), walks: upTo(128)},
	{name: "conv2d_floats", text: with(`@tf32 graph g(x: f32[4, 32, $ + 2, 30], w: f32[64, 32, 3, 3]) -> (y: f32[4, 64, $, 28]) { y = conv2d(x, w) }`), walks: few},
	{name: "conv_taps", text: with(`@tf32 graph g(x: f32[2, 16, 100, 100 + $], w: f32[32, 16, 3, $]) -> (y: f32[2, 32, 98, 101]) { y = conv2d(x, w) }`), walks: upTo(40)},
	{name: "conv_stride", text: with(`@tf32 graph g(x: f32[2, 16, 40 * $, 200], w: f32[32, 16, 5, 5]) -> (y: f32[2, 32, 40, 200]) { y = conv2d(x, w, stride=($, 1), padding=2) }`), walks: upTo(9)},
	{name: "conv_dilated", text: with(`@tf32 graph g(x: f32[2, 16, 60, 60], w: f32[32, 16, 3, 3], u: f32[32, 16, 3, 3]) -> (y: f32[2, 32, 60 - 2 * $, 60 - 2 * $], z: f32[2, 32, (59 - 2 * $) / 2 + 1, (59 - 2 * $) / 2 + 1]) {
		y = conv2d(x, w, dilation=$)
		z = conv2d(x, u, dilation=$, stride=2)
	}`), walks: upTo(4)},
	{name: "rejoined", text: with(`graph g(a: bf16[512, 256], b: bf16[256, 192], c: bf16[$]) -> (y: bf16[512, $], z: bf16[512, 192 - $]) {
		p = a @ b
		y = relu(p[:, :$])
		z = relu(p[:, $:])
	}`), walks: []walk{{32, 160, 32}}},
	{name: "values_of_all_heads", text: with(`graph g(q: bf16[8, 300, $], k: bf16[8, 300, $], v: bf16[300, $]) -> (y: bf16[8, 300, $]) { y = softmax(q @ transpose(k, -1, -2)) @ v }`), walks: []walk{{16, 256, 16}}},
	{name: "depthwise", text: with(`graph g(x: f32[4, $, 56, 56], w: f32[$, 1, 3, 3]) -> (y: f32[4, $, 56, 56]) { y = conv2d(x, w, padding=1, groups=$) }`), walks: few},
	{name: "conv_transposed", text: with(`@tf32 graph g(x: f32[4, 32, $, 32], w: f32[32, 48, 4, 4]) -> (y: f32[4, 48, 2 * $ + 2, 66]) { y = conv_transpose2d(x, w, stride=2) }`), walks: few},
	{name: "attention", text: with(`graph g(q: bf16[2, 200, $], k: bf16[2, 300, $], v: bf16[2, 300, $]) -> (y: bf16[2, 200, $]) { y = attention(q, k, v) }`), walks: upTo(320)},
	{name: "attention_queries", text: with(`graph g(q: f16[4, $, 64], k: f16[4, 900, 64], v: f16[4, 900, 64]) -> (y: f16[4, $, 64]) { y = attention(q, k, v) }`), walks: modest},
	{name: "attention_causal", text: with(`graph g(q: bf16[8, $, 128], k: bf16[8, $, 128], v: bf16[8, $, 128]) -> (y: bf16[8, $, 128]) { y = attention(q, k, v, causal=true) }`), walks: modest},
	{name: "attention_one", text: with(`graph g(q: bf16[2, 8, 1, 64], k: bf16[2, 8, $, 64], v: bf16[2, 8, $, 64]) -> (y: bf16[2, 8, 1, 64]) { y = attention(q, k, v) }`), walks: modest},
	{name: "attention_window", text: with(`graph g(q: f16[4, 512, 64], k: f16[4, 512, 64], v: f16[4, 512, 64]) -> (y: f16[4, 512, 64]) {
		s[b: 4, i: 512, j: 512] = sum[d: 64] f32(q[b, i, d]) * f32(k[b, j, d])
		m[b: 4, i: 512, j: 512] = where((j <= i) & (i - j < $), s[b, i, j], -inf)
		y = f16(softmax(m)) @ v
	}`), walks: upTo(600)},
	{name: "beside_rows", text: with(`graph g(x: f32[500, $], d: f32[500, $]) -> (y: f32[500, $], s: f32[$]) {
		y = d * x - mean(d * x, axis=1, keep=true)
		s = sum(d * x, axis=0)
	}`), walks: modest},

	{name: "many_tensors", text: times(`graph g(x: f32[1000][[, a%: f32[1000] ]]) -> (y: f32[1000]) { y = x[[ * a% ]] }`), grows: true, walks: upTo(280)},
	{name: "many_results", text: times(`graph g(x: f32[1000, 50]) -> (z: f32[1000, 50][[, a%: f32[1000, 50] ]]) { z = x [[; a% = x * % ]] }`), grows: true, walks: upTo(40)},
	{name: "side_by_side", text: times(`graph g(x: f32[1000] [[, x%: f32[1000] ]]) -> (z: f32[1000][[, a%: f32[1000] ]]) { z = x [[; a% = exp(x%) ]] }`), grows: true, walks: upTo(40)},
	{name: "many_folds", text: times(`graph g(x: f32[1000, 50]) -> (z: f32[1000][[, a%: f32[1000] ]]) { z = sum(x, axis=1) [[; a% = sum(exp(x * %), axis=1) ]] }`), grows: true, walks: upTo(40)},
	{name: "many_passes", text: times(`graph g(a0: f32[1000, 50]) -> (y: f32[1000, 50]) { [[ a% = a%- / sum(exp(a%-), axis=1, keep=true); ]] y = a$ }`), grows: true, walks: upTo(20)},
	{name: "many_partials", text: times(`graph g(x: f32[500, 64] [[, d%: f32[500, 64] ]]) -> (y: f32[500, 64] [[, s%: f32[64] ]]) {
		y = x - mean(x, axis=1, keep=true)
		[[ s% = sum(d% * x, axis=0); ]]
	}`), grows: true, walks: upTo(8)},
	{name: "partials_of_one", text: times(`graph g(x: f32[500, 64], w: f32[64], d: f32[500, 64]) -> (y: f32[500, 64] [[, s%: f32[64] ]]) {
		y = rms_norm(x, w) * d
		[[ s% = sum(d * x * rsqrt(mean(x * x, axis=1, keep=true) + %), axis=0); ]]
	}`), grows: true, walks: upTo(8)},
	{name: "chain_of_results", text: times(`graph g(x0: f32[1000] [[, x%: f32[1000] ]]) -> (y0: f32[1000] [[, y%: f32[1000] ]]) { y0 = exp(x0) [[; y% = exp(y%-) + x% ]] }`), grows: true, walks: upTo(140)},
	{name: "transposed_many", text: times(`graph g(x0: f16[4096, 4096] [[, x%: f16[4096, 4096] ]]) -> (y: f16[4096, 4096]) { y = transpose(x0) [[ + transpose(x%) ]] }`), grows: true, walks: upTo(14)},
	{name: "work_of_columns", text: times(`graph g(x: f32[20000, 33]) -> (y: f32[33]) { a0 = x; [[ a% = abs(a%-) + %; ]] y = sum(a$, axis=0) }`), grows: true, walks: upTo(40)},
	{name: "stores_apart", text: with(`graph g(x: f32[$, 8, 5000]) -> (y: f32[5000, $]) { y[i: 5000, j: $] = sum[k: 8] x[j, k, i] }`), walks: upTo(40)},
	{name: "deep", text: times(`graph g(a0: f32[1000]) -> (y: f32[1000]) { [[ a% = sin(a%-) + %; ]] y = a$ }`), grows: true, walks: upTo(150)},
	{name: "read_twice", text: times(`graph g(x: f32[200, 300]) -> (y: f32[200, 300]) { a0 = x; [[ a% = sin(a%-) + %; ]] y[i: 200, j: 300] = a$[i, j] + a$[i, 299 - j] }`), grows: true, walks: upTo(40)},
	{name: "read_by_rows", text: times(`graph g(x: f32[200], w: f32[200, 300]) -> (y: f32[200, 300]) { a0 = x; [[ a% = exp(a%-) + %; ]] y = w * a$[:, none] }`), grows: true, walks: upTo(40)},
	{name: "work_of_a_row", text: times(`graph g(x: bf16[4000, 8192]) -> (y: bf16[4000, 8192]) { a0 = f32(x); [[ a% = sin(a%-) + %; ]] y = bf16(softmax(a$)) }`), grows: true, walks: upTo(30)},
	{name: "products_of_one", text: times(`graph g(x: bf16[512, 256] [[, w%: bf16[256, 512] ]]) -> (y: bf16[512, 256] [[, s%: bf16[512, 512] ]]) { y = x [[; s% = x @ w% ]] }`), grows: true, walks: upTo(5)},
	{name: "epilogue", text: times(`graph g(x: bf16[2048, 1024], w: bf16[1024, 2048]) -> (y: bf16[2048, 2048]) { a0 = f32(x @ w); [[ a% = tanh(a%-) + %; ]] y = bf16(a$) }`), grows: true, walks: upTo(30)},
	{name: "prologue", text: times(`graph g(x: bf16[512, 1024], w: bf16[1024, 512]) -> (y: bf16[512, 512]) { a0 = f32(x); [[ a% = tanh(a%-) + %; ]] y = bf16(a$) @ w }`), grows: true, walks: upTo(30)},
	{name: "scores", text: times(`graph g(q: bf16[2, 512, 64], k: bf16[2, 512, 64], v: bf16[2, 512, 64]) -> (y: bf16[2, 512, 64]) {
		a0[b: 2, i: 512, j: 512] = sum[d: 64] f32(q[b, i, d]) * f32(k[b, j, d])
		[[ a% = tanh(a%-) + %; ]]
		y = bf16(softmax(a$)) @ v
	}`), grows: true, walks: upTo(40)},

	{name: "shared_softmax", text: always(`graph g(x: f32[4000, 12000]) -> (y: f32[4000, 12000]) { y = softmax(x) }`), figure: sharedBlock, walks: sharedBytes},
	{name: "shared_norm", text: always(`graph g(x: bf16[3000, 30000], w: bf16[30000]) -> (y: bf16[3000, 30000]) { y = rms_norm(x, w) }`), figure: sharedBlock, walks: sharedBytes},
	{name: "shared_norm_few", text: always(`graph g(x: f32[60, 100000]) -> (y: f32[60, 100000]) { y = layer_norm(x) }`), figure: sharedBlock, walks: sharedBytes},
	{name: "shared_product", text: always(`graph g(a: bf16[2048, 512], b: bf16[512, 2048]) -> (y: bf16[2048, 2048]) { y = relu(a @ b) }`), figure: sharedBlock, walks: sharedBytes},
	{name: "shared_product_few", text: always(`graph g(a: bf16[64, 4096], b: bf16[4096, 512]) -> (y: bf16[64, 512]) { y = a @ b }`), figure: sharedBlock, walks: sharedBytes},
	{name: "shared_floats", text: always(`graph g(a: f32[700, 8192], b: f32[8192, 700]) -> (y: f32[700, 700]) { y = a @ b }`), figure: sharedBlock, walks: sharedBytes},
	{name: "shared_floats_few", text: always(`graph g(a: f32[90, 500], b: f32[500, 70]) -> (y: f32[90, 70]) { y = a @ b }`), figure: sharedBlock, walks: sharedBytes},
	{name: "shared_tf32", text: always(`@tf32 graph g(a: f32[1024, 1024], b: f32[1024, 1024], c: f32[1024, 1024]) -> (y: f32[1024, 1024]) { y = silu(a @ b) * (a @ c) }`), figure: sharedBlock, walks: sharedBytes},
	{name: "shared_row_product", text: always(`graph g(a: f32[2000, 300], b: f32[300, 48]) -> (y: f32[2000, 48]) { y = softmax(a) @ b }`), figure: sharedBlock, walks: sharedBytes},
	{name: "shared_long_row_product", text: always(`graph g(a: f32[2000, 1500], b: f32[1500, 48]) -> (y: f32[2000, 48]) { y = softmax(a) @ b }`), figure: sharedBlock, walks: sharedBytes},
	{name: "shared_attention", text: always(`graph g(q: bf16[8, 2048, 128], k: bf16[8, 2048, 128], v: bf16[8, 2048, 128]) -> (y: bf16[8, 2048, 128]) { y = attention(q, k, v, causal=true) }`), figure: sharedBlock, walks: sharedBytes},
	{name: "shared_attention_floats", text: always(`graph g(q: f32[8, 300, 64], k: f32[8, 300, 64], v: f32[8, 300, 64]) -> (y: f32[8, 300, 64]) { y = attention(q, k, v) }`), figure: sharedBlock, walks: sharedBytes},
	{name: "shared_mask", text: always(`graph g(q: bf16[8, 2048, 64], k: bf16[8, 2048, 64], v: bf16[8, 2048, 64], s: i32[2048]) -> (y: bf16[8, 2048, 64]) {
		a[b: 8, i: 2048, j: 2048] = sum[d: 64] f32(q[b, i, d]) * f32(k[b, j, d])
		m[b: 8, i: 2048, j: 2048] = where(s[i] == s[j], a[b, i, j], -inf)
		y = bf16(softmax(m)) @ v
	}`), figure: sharedBlock, walks: sharedBytes},
	{name: "shared_sort", text: always(`graph g(x: f32[50, 100000]) -> (y: f32[50, 100000], i: i64[50, 100000]) { y = sort(x, axis=1); i = argsort(x, axis=1) }`), figure: sharedBlock, walks: sharedBytes},
	{name: "shared_sort_doubles", text: always(`graph g(x: f64[50, 3000]) -> (y: f64[50, 3000]) { y = sort(x, axis=1) }`), figure: sharedBlock, walks: sharedBytes},
	{name: "shared_turned", text: always(`graph g(x: f32[512, 1000]) -> (y: f32[1000, 512]) { y = transpose(softmax(x)) }`), figure: sharedBlock, walks: sharedBytes},
	{name: "shared_tiles", text: always(`graph g(x: f64[512, 512], z: f64[512, 512]) -> (y: f64[512, 512]) { y = transpose(x) * z + transpose(z) * x }`), figure: sharedBlock, walks: sharedBytes},
	{name: "shared_scatter", text: always(`graph g(x: f32[50000, 64], at: i32[50000]) -> (y: f32[900, 64]) { y[k: 900, j: 64] = sum[i: 50000 where at[i] == k] x[i, j] }`), figure: sharedBlock, walks: sharedBytes},
	{name: "shared_conv", text: always(`@tf32 graph g(x: f32[4, 64, 58, 58], w: f32[128, 64, 3, 3]) -> (y: f32[4, 128, 56, 56]) { y = conv2d(x, w) }`), figure: sharedBlock, walks: sharedBytes},
	{name: "shared_conv_few", text: always(`graph g(x: bf16[8, 3, 130, 130], w: bf16[32, 3, 3, 3]) -> (y: bf16[8, 32, 128, 128]) { y = conv2d(x, w) }`), figure: sharedBlock, walks: sharedBytes},
	{name: "shared_distances", text: always(`graph g(a: f32[3000, 64], b: f32[3000, 64]) -> (y: f32[3000]) { y = min(cdist(a, b), axis=1) }`), figure: sharedBlock, walks: sharedBytes},
	{name: "cache_softmax", text: always(`graph g(x: f32[300, 4096]) -> (y: f32[300, 4096]) { y = softmax(x) }`), figure: cache, walks: cacheBytes},
	{name: "cache_norm", text: always(`graph g(x: bf16[3000, 4096], w: bf16[4096], z: bf16[3000, 4096]) -> (y: bf16[3000, 4096], s: bf16[4096]) { y = rms_norm(x, w) * z; s = sum(x, axis=0) }`), figure: cache, walks: cacheBytes},
	{name: "cache_product", text: always(`graph g(a: bf16[4096, 512], b: bf16[512, 3000]) -> (y: bf16[4096, 3000]) { y = a @ b }`), figure: cache, walks: cacheBytes},
	{name: "cache_scatter", text: always(`graph g(x: f32[50000, 64], at: i32[50000]) -> (y: f32[900, 64]) { y[k: 900, j: 64] = sum[i: 50000 where at[i] == k] x[i, j] }`), figure: cache, walks: cacheBytes},
	{name: "multiprocessors_softmax", text: always(`graph g(x: f32[300, 4096]) -> (y: f32[300, 4096]) { y = softmax(x) }`), figure: multiprocessors, walks: upTo(300)},
	{name: "multiprocessors_product", text: always(`graph g(a: bf16[1000, 512], b: bf16[512, 1000]) -> (y: bf16[1000, 1000]) { y = a @ b }`), figure: multiprocessors, walks: upTo(300)},
	{name: "multiprocessors_gemv", text: always(`graph g(a: bf16[8, 4096], b: bf16[4096, 4096]) -> (y: bf16[8, 4096]) { y = a @ b }`), figure: multiprocessors, walks: upTo(300)},
	{name: "multiprocessors_columns", text: always(`graph g(x: f32[3000, 700]) -> (y: f32[700]) { y = sum(x, axis=0) }`), figure: multiprocessors, walks: upTo(300)},
	{name: "multiprocessors_attention", text: always(`graph g(q: bf16[8, 1000, 64], k: bf16[8, 1000, 64], v: bf16[8, 1000, 64]) -> (y: bf16[8, 1000, 64]) { y = attention(q, k, v) }`), figure: multiprocessors, walks: upTo(300)},
}
