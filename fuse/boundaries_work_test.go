package fuse

import (
	"strings"

	"github.com/fusec/fusec/ir"
)

// workSweeps are programs of every strategy in which an element is first computed by one operation more and more. Each costs
// one issue slot, so no limit of work is stepped over.
var workSweeps = func() (out []swept) {
	for _, p := range []struct{ name, inputs, results, first, last string }{
		{"rows", "x: bf16[4000, 700]", "y: bf16[4000, 700]", "exp(f32(x))", "y = bf16(softmax(a$))"},
		{"short_rows", "x: f32[20000, 96]", "y: f32[20000, 96]", "exp(x)", "y = layer_norm(a$)"},
		{"long_rows", "x: bf16[2000, 20000]", "y: bf16[2000, 20000]", "exp(f32(x))", "y = bf16(rms_norm(a$))"},
		{"few_long_rows", "x: f32[60, 100000]", "y: f32[60, 100000]", "exp(x)", "y = softmax(a$)"},
		{"few_rows", "x: f32[20, 4096]", "y: f32[20]", "exp(x)", "y = sum(a$, axis=1)"},
		{"turned", "x: f32[512, 1000]", "y: f32[1000, 512]", "exp(x)", "y = transpose(softmax(a$))"},
		{"columns", "x: f32[3000, 700]", "y: f32[700]", "exp(x)", "y = sum(a$, axis=0)"},
		{"few_columns", "x: bf16[50000, 33]", "y: f32[33]", "exp(f32(x))", "y = max(a$, axis=0)"},
		{"all", "x: f32[4000000]", "y: f32[]", "exp(x)", "y = sum(a$)"},
		{"all_columns", "x: f32[512, 4096, 8]", "y: f32[4096, 8]", "exp(x)", "y = softmax(a$, axis=0)[3]"},
		{"doubles", "x: f64[3000, 300]", "y: f32[300]", "f32(exp(x))", "y = sum(a$, axis=0)"},
		{"scan_rows", "x: f32[300, 3000]", "y: f32[300, 3000]", "exp(x)", "y = cumsum(a$, axis=1)"},
		{"scan_columns", "x: f32[3000, 700]", "y: f32[3000, 700]", "exp(x)", "y = cumsum(a$, axis=0)"},
		{"scan_slabs", "x: f32[6, 3000, 64]", "y: f32[6, 3000, 64]", "exp(x)", "y = cumsum(a$, axis=1)"},
		{"scan_short", "x: f32[9000, 40]", "y: f32[9000, 40]", "exp(x)", "y = cumsum(a$, axis=1)"},
		{"scan_all", "x: f32[300000]", "y: f32[300000]", "exp(x)", "y = cumsum(a$)"},
		{"windows", "x: f32[8, 300, 300]", "y: f32[8, 300, 300]", "exp(x)", "y[b: 8, r: 300, c: 300] = max[i: 3, j: 3] a$[b, r + i - 1, c + j - 1] else 0"},
		{"windows_beside", "x: f32[8, 64, 300]", "y: f32[8, 64, 60]", "exp(x)", "y[b: 8, r: 64, c: 60] = max[j: 5] a$[b, r, 5 * c + j]"},
		{"planes", "x: f32[64, 32, 14, 14]", "y: f32[64, 32]", "exp(x)", "y = mean(a$, axis=(2, 3))"},
		{"transposed", "x: bf16[700, 900]", "y: f32[900, 700]", "exp(f32(x))", "y = transpose(a$)"},
		{"sorted", "x: f32[30, 3000]", "y: f32[30, 3000]", "exp(x)", "y = sort(a$, axis=1)"},
		{"scattered", "x: f32[50000, 64], at: i32[50000]", "y: f32[900, 64]", "exp(x)", "y[k: 900, j: 64] = sum[i: 50000 where at[i] == k] a$[i, j]"},
		{"part", "x: f32[3000, 64], w: f32[3000, 32]", "y: f32[3000, 96]", "exp(x)", "y = concat(softmax(a$), w, axis=1)"},
		{"gradient", "x: f32[4000, 256], d: f32[4000, 256]", "y: f32[4000, 256], s: f32[256]", "exp(x)", "y = d * a$ - mean(d * a$, axis=1, keep=true); s = sum(d * a$, axis=0)"},
		{"two_readers", "x: f32[4000, 256]", "y: f32[4000, 256], s: f32[256]", "exp(x)", "y = a$ * 2; s = sum(a$, axis=0)"},
		{"from_rows", "x: f32[4000, 256]", "y: f32[4000, 256]", "sum(x, axis=1)", "y = x * a$[:, none]"},
		{"from_columns", "x: f32[4000, 256]", "y: f32[4000, 256]", "sum(x, axis=0)", "y = x * a$"},
		{"left", "x: bf16[512, 1024], w: bf16[1024, 512]", "y: bf16[512, 512]", "f32(x)", "y = bf16(a$) @ w"},
		{"left_floats", "x: f32[2000, 300], w: f32[300, 48]", "y: f32[2000, 48]", "exp(x)", "y = a$ @ w"},
		{"left_rows", "x: f32[2000, 300], w: f32[300, 48]", "y: f32[2000, 48]", "exp(x)", "y = softmax(a$) @ w"},
		{"left_parts", "x: f32[2048, 2048], w: f32[2048, 2048]", "y: f32[2048, 2048]", "exp(x)", "y = a$ @ w"},
		{"left_tf32", "x: f32[1024, 1024], w: f32[1024, 1024]", "y: f32[1024, 1024]", "exp(x)", "y = a$ @ w"},
		{"after", "x: bf16[2048, 1024], w: bf16[1024, 2048]", "y: bf16[2048, 2048]", "f32(x @ w)", "y = bf16(a$)"},
		{"after_floats", "x: f32[700, 500], w: f32[500, 700]", "y: f32[700, 700]", "x @ w", "y = exp(a$)"},
		{"after_vector", "x: f16[8, 4096], w: f16[4096, 4096]", "y: f16[8, 4096]", "f32(x @ w)", "y = f16(a$)"},
		{"after_long", "x: bf16[64, 16384], w: bf16[16384, 256]", "y: bf16[64, 256]", "f32(x @ w)", "y = bf16(a$)"},
		{"after_windows", "x: bf16[4, 32, 28, 28], w: bf16[64, 32, 3, 3]", "y: f32[4, 64, 28, 28]", "f32(conv2d(x, w, padding=1))", "y = exp(a$)"},
		{"folded", "x: f32[3000, 64], w: f32[3000, 64]", "y: f32[3000]", "x @ transpose(w)", "y = min(a$, axis=1)"},
		{"pairs", "q: bf16[4, 512, 64], p: f32[512]", "y: bf16[4, 512, 64]", "p[:, none] * p", "y = bf16(softmax(f32(q @ transpose(q, -1, -2)) + a$)) @ q"},
		{"scores", "q: bf16[4, 512, 64]", "y: bf16[4, 512, 64]", "f32(q @ transpose(q, -1, -2))", "y = bf16(softmax(a$)) @ q"},
		{"chained", "q: bf16[4, 512, 64]", "y: bf16[4, 512, 64]", "f32(q @ transpose(q, -1, -2))", "y = bf16(a$) @ q"},
		{"weighted", "q: bf16[4, 512, 64]", "y: bf16[4, 512, 64]", "f32(softmax(q @ transpose(q, -1, -2)) @ q)", "y = bf16(a$)"},
	} {
		text := "graph g(" + p.inputs + ", z: f32[]) -> (" + p.results + ") { a0 = " + p.first + "; [[ a% = a%- - z; ]] " + p.last + " }"
		if strings.HasSuffix(p.name, "tf32") {
			text = "@tf32 " + text
		}
		out = append(out, swept{name: "work_" + p.name, text: times(text), grows: true, walks: upTo(72)})
	}
	return out
}()

// shapeSweeps are programs in which a stride, a dilation, a width or a number of tensors grows, each by one.
var shapeSweeps = []swept{
	{name: "strided_points", text: with(`graph g(x: f32[300, 301 * $], b: f32[300, 301]) -> (y: f32[300, 301]) { y[i: 300, j: 301] = x[i, $ * j] + b[i, j] }`), walks: upTo(12)},
	{name: "points_in_turns", text: with(`graph g(x: f32[301, $], b: f32[301, $]) -> (y: f32[301, $]) { y[i: 301, j: $] = x[i, $ - 1 - j] + b[i, j] }`), walks: upTo(20)},
	{name: "points_of_turns", text: with(`graph g(x: f16[301, 77], b: f16[301, 77]) -> (y: f16[301, 77]) { y[i: 301, j: 77] = x[i, (j + $) % 77] + b[i, j] * b[i, j % $] }`), walks: upTo(12)},
	{name: "reads_near", text: with(`graph g(x: f32[301, 333], b: f32[301, 333]) -> (y: f32[301, 333]) { y[i: 301, j: 333] = b[i, j] + sum[k: $] x[i, min(j + k, 332)] }`), walks: upTo(12)},
	{name: "windows_apart", text: with(`graph g(x: f32[8, 64, 40 * $]) -> (y: f32[8, 64, 40]) { y = max_pool1d(x, $) }`), walks: upTo(150)},
	{name: "windows_apart_bytes", text: with(`graph g(x: u8[8, 64, 40 * $]) -> (y: u8[8, 64, 40]) { y[a: 8, b: 64, c: 40] = max[k: $] x[a, b, $ * c + k] }`), walks: upTo(300)},
	{name: "boxes_apart", text: with(`graph g(x: f16[8, 8, 40 * $, 40 * $]) -> (y: f16[8, 8, 40, 40]) { y = max_pool2d(x, $) }`), walks: upTo(24)},
	{name: "boxes_of_lines", text: with(`graph g(x: f32[8, 8, 8 * $, 400]) -> (y: f32[8, 8, 8, 200]) { y[a: 8, b: 8, c: 8, d: 200] = max[i: $, j: 2] x[a, b, $ * c + i, 2 * d + j] }`), walks: upTo(80)},
	{name: "stencil_strides", text: with(`graph g(x: f32[4, 100 * $ + 9, 300]) -> (y: f32[4, 100, 298]) { y[n: 4, r: 100, c: 298] = sum[i: 3, j: 3] x[n, $ * r + i, c + j] }`), walks: upTo(12)},
	{name: "stencil_dilations", text: with(`graph g(x: f32[4, 130, 330]) -> (y: f32[4, 100, 298]) { y[n: 4, r: 100, c: 298] = sum[i: 3, j: 3] x[n, r + $ * i, c + j] }`), walks: upTo(12)},
	{name: "stencil_lines", text: with(`graph g(x: f32[4, 500 + $, 407]) -> (y: f32[4, 500, 400]) { y[n: 4, r: 500, c: 400] = max[i: $, j: 8] x[n, r + i, c + j] }`), walks: upTo(200)},
	{name: "stencil_of_one", text: with(`graph g(x: f32[4, 500 + $, 400]) -> (y: f32[4, 500, 400]) { y[n: 4, r: 500, c: 400] = sum[i: $] x[n, r + i, c] }`), walks: upTo(400)},
	{name: "halo_taps", text: with(`graph g(x: f32[4, 8, 60, 60 + $], w: f32[24, 8, 3, $]) -> (y: f32[4, 24, 58, 61]) { y = conv2d(x, w) }`), walks: upTo(60)},
	{name: "halo_channels", text: with(`graph g(x: f32[4, $, 40, 40], w: f32[24, $, 3, 3]) -> (y: f32[4, 24, 38, 38]) { y = conv2d(x, w) }`), walks: upTo(80)},
	{name: "halo_weights", text: with(`graph g(x: f32[4, 3, 40, 40], w: f32[$, 3, 5, 5]) -> (y: f32[4, $, 36, 36]) { y = conv2d(x, w) }`), walks: upTo(200)},
	{name: "halo_channels_tf32", text: with(`@tf32 graph g(x: f32[4, $, 40, 40], w: f32[24, $, 3, 3]) -> (y: f32[4, 24, 38, 38]) { y = conv2d(x, w) }`), walks: upTo(80)},
	{name: "halo_channels_half", text: with(`graph g(x: f16[4, $, 40, 40], w: f16[24, $, 5, 5]) -> (y: f16[4, 24, 36, 36]) { y = conv2d(x, w) }`), walks: upTo(80)},
	{name: "halo_planes", text: with(`graph g(x: bf16[4, 3, $, $], w: bf16[64, 3, 7, 7]) -> (y: bf16[4, 64, $ / 2, $ / 2]) { y = conv2d(x, w, stride=2, padding=3) }`), walks: []walk{{2, 300, 2}}},
	{name: "halo_3d", text: with(`graph g(x: f32[2, $, 10, 12, 14], w: f32[8, $, 3, 3, 3]) -> (y: f32[2, 8, 8, 10, 12]) { y = conv3d(x, w) }`), walks: upTo(40)},
	{name: "taps_3d", text: with(`graph g(x: bf16[2, 32, 4 + $, 12, 14], w: bf16[32, 32, $, 3, 3]) -> (y: bf16[2, 32, 5, 10, 12]) { y = conv3d(x, w) }`), walks: upTo(12)},
	{name: "windows_without_batch", text: with(`graph g(x: bf16[64, 58, 56 + $], w: bf16[96, 64, 3, $]) -> (y: bf16[96, 56, 57]) {
		y[o: 96, i: 56, j: 57] = sum[c: 64, p: 3, q: $] x[c, i + p, j + q] * w[o, c, p, q]
	}`), walks: upTo(4)},
	{name: "windows_along_diagonals", text: with(`graph g(x: bf16[4, 64, 127 + $, 127 + $], w: bf16[96, 64, $]) -> (y: bf16[4, 96, 128, 128]) {
		y[b: 4, o: 96, i: 128, j: 128] = sum[c: 64, p: $] x[b, c, i + p, j + p] * w[o, c, p]
	}`), walks: upTo(4)},
	{name: "conv_channels_tf32", text: with(`@tf32 graph g(x: f32[32, $, 130, 130], w: f32[64, $, 3, 3], b: f32[64]) -> (y: f32[32, 64, 128, 128]) { y = relu(conv2d(x, w, b)) }`), walks: upTo(24)},
	{name: "conv_groups", text: with(`graph g(x: bf16[4, 8 * $, 30, 30], w: bf16[8 * $, $, 3, 3]) -> (y: bf16[4, 8 * $, 28, 28]) { y = conv2d(x, w, groups=8) }`), walks: upTo(40)},
	{name: "conv_groups_floats", text: with(`graph g(x: f32[4, 2 * $, 30, 30], w: f32[4 * $, $, 3, 3]) -> (y: f32[4, 4 * $, 28, 28]) { y = conv2d(x, w, groups=2) }`), walks: upTo(48)},
	{name: "conv_1d", text: with(`graph g(x: bf16[4, 64, 999 + $], w: bf16[96, 64, $]) -> (y: bf16[4, 96, 1000]) { y = conv1d(x, w) }`), walks: upTo(64)},
	{name: "transposed_taps", text: with(`graph g(x: bf16[4, 32, 20, 20], w: bf16[32, 48, $, $]) -> (y: bf16[4, 48, 57 + $, 57 + $]) { y = conv_transpose2d(x, w, stride=3) }`), walks: upTo(12)},
	{name: "bits_of_fields", text: func(n int64) string {
		return with(`graph g(a: f16[4, 1024], b: i32[512, 32 * $]) -> (y: f32[4, 512]) { y[i: 4, j: 512] = sum[k: 1024] f32(a[i, k]) * f32(b[j, k / (32 / $)] >> $ * (k % (32 / $)) & ((1 << $) - 1)) }`)(1 << n)
	}, walks: []walk{{0, 4, 1}}},
	{name: "bits_kept", text: with(`graph g(a: bf16[64, 1024], b: i32[512, 512]) -> (y: f32[64, 512]) { y[i: 64, j: 512] = sum[k: 1024] f32(a[i, k]) * f32(bf16(b[j, k / 2] >> 16 * (k % 2) & ((1 << $) - 1))) }`), walks: upTo(16)},
	{name: "offsets_of_fields", text: with(`graph g(a: f16[4, 1024], b: u8[512, 512]) -> (y: f32[4, 512]) { y[i: 4, j: 512] = sum[k: 1024] f32(a[i, k]) * f32(f16(i32(b[j, k / 2]) >> 4 * (k % 2) & 15) - $) }`), walks: upTo(3000)},
	{name: "attention_heads_floats", text: with(`graph g(q: f32[2, 200, $], k: f32[2, 300, $], v: f32[2, 300, $]) -> (y: f32[2, 200, $]) { y = attention(q, k, v) }`), walks: upTo(320)},
	{name: "attention_values", text: with(`graph g(q: bf16[2, 200, 64], k: bf16[2, 300, 64], v: bf16[2, 300, $]) -> (y: bf16[2, 200, $]) { y = softmax(q @ transpose(k, -1, -2)) @ v }`), walks: upTo(320)},
	{name: "attention_axes", text: with(`graph g(q: bf16[3, 256, $, 5, 64], k: bf16[3, 256, 5, $, 64], v: bf16[3, 256, 5, $, 64]) -> (y: bf16[3, $, 5, 256, 64]) {
		s[a: 3, b: $, c: 5, i: 256, j: 256] = sum[d: 64] f32(q[a, i, b, c, d]) * f32(k[a, j, c, b, d])
		p = bf16(softmax(s))
		y[a: 3, b: $, c: 5, i: 256, e: 64] = sum[j: 256] p[a, b, c, i, j] * v[a, j, c, b, e]
	}`), walks: upTo(3)},
	{name: "attention_few", text: with(`graph g(q: f16[4, $, 64], k: f16[4, 900, 64], v: f16[4, 900, 64]) -> (y: f16[4, $, 64]) { y = softmax(q @ transpose(k, -1, -2)) @ v }`), walks: upTo(80)},
	{name: "attention_far", text: with(`graph g(q: f16[4, 512, 64]) -> (y: f16[4, 512, 64]) {
		s[b: 4, i: 512, j: 512] = sum[d: 64] f32(q[b, i, d]) * f32(q[b, j, d])
		m[b: 4, i: 512, j: 512] = where(i * $ >= j, s[b, i, j], -inf)
		y = f16(softmax(m)) @ q
	}`), walks: []walk{{1, 1 << 40, 1}, {1<<53 - 2, 1<<53 - 1, 1}}},
	{name: "chained_heads", text: with(`graph g(q: bf16[2, 200, $], k: bf16[2, 300, $], v: bf16[2, 300, $]) -> (y: bf16[2, 200, $]) { y = relu(q @ transpose(k, -1, -2)) @ v }`), walks: upTo(320)},
	{name: "many_weights", text: times(`graph g(x: bf16[256, 64] [[, w%: bf16[64, 64], v%: bf16[256, 64] ]]) -> (y: bf16[256, 64]) { y = x [[ + softmax(x @ w% @ transpose(x)) @ v% ]] }`), grows: true, walks: upTo(6)},
	{name: "many_scores", text: times(`graph g(q: bf16[256, 64], v: bf16[256, 64] [[, k%: bf16[256, 64] ]]) -> (y: bf16[256, 64]) { s0 = f32(q @ transpose(v)) [[; s% = s%- + f32(q @ transpose(k%)) ]]; y = bf16(softmax(s$)) @ v }`), grows: true, walks: upTo(6)},
	{name: "sums_of_one", text: times(`graph g(x: f32[500, 64], d: f32[500, 64]) -> (y: f32[500, 64] [[, s%: f32[64] ]]) {
		y = x - mean(x, axis=1, keep=true)
		[[ s% = sum(d * x + %, axis=0); ]]
	}`), grows: true, walks: upTo(24)},
	{name: "kept_rows", text: times(`graph g(x0: f32[4000, 700] [[, x%: f32[4000, 700] ]]) -> (y: f32[4000, 700]) { s = sum(x0 [[ * x% ]], axis=1, keep=true); y = s [[ + x% / s ]] }`), grows: true, walks: upTo(12)},
	{name: "kept_long_rows", text: times(`graph g(x0: f32[2000, 20000] [[, x%: f32[2000, 20000] ]]) -> (y: f32[2000, 20000]) { s = sum(x0 [[ * x% ]], axis=1, keep=true); y = s [[ + x% / s ]] }`), grows: true, walks: upTo(12)},
	{name: "kept_few_rows", text: times(`graph g(x0: bf16[60, 100000] [[, x%: bf16[60, 100000] ]]) -> (y: f32[60, 100000]) { s = sum(f32(x0) [[ * f32(x%) ]], axis=1, keep=true); y = s [[ + f32(x%) / s ]] }`), grows: true, walks: upTo(12)},
	{name: "kept_turned", text: times(`graph g(x0: f32[512, 1000] [[, x%: f32[512, 1000] ]]) -> (y: f32[1000, 512]) { s = sum(x0 [[ * x% ]], axis=1, keep=true); y = transpose(s [[ + x% / s ]]) }`), grows: true, walks: upTo(8)},
	{name: "backwards", text: with(`graph g(x: f32[300, $]) -> (y: f32[300, $], z: f32[300]) { y[i: 300, j: $] = sum[k: $ where k >= j] x[i, k]; z = max(x, axis=1) / sum(y, axis=1) }`), walks: modest},
	{name: "many_parts", text: times(`graph g(x0: f32[500, 64] [[, x%: f32[500, 64] ]]) -> (y: f32[500, 64 * $ + 64]) { y = concat(exp(x0) [[, exp(x%) ]], axis=1) }`), grows: true, walks: upTo(40)},
	{name: "ranks", text: times(`graph g(x: f32[4, 4 [[, 2 ]]]) -> (y: f32[4 [[, 2 ]], 4]) { y[i: 4 [[, r%: 2 ]], j: 4] = x[i, j [[, r% ]]] * 2 }`), grows: true, walks: upTo(8)},
	{name: "weighed_sums", text: with(`graph g(a: bf16[512, 64], b: bf16[64, $], u: f32[$]) -> (y: f32[512]) {
		l = f32(a @ b)
		e = exp(l - max(l, axis=1, keep=true))
		y = sum(e * u, axis=1) / sum(e, axis=1)
	}`), walks: []walk{{256, 8192, 16}}},
	{name: "differences_in_parts", text: with(`graph g(x: f32[2048, $], z: f32[$], w: f32[$, 2048]) -> (y: f32[2048, 2048]) { y = relu(x - z) @ w }`), walks: []walk{{512, 4096, 16}}},
	{name: "many_scans", text: times(`graph g(x: f32[3000, 700]) -> (z: f32[3000, 700][[, a%: f32[3000, 700] ]]) { z = x [[; a% = cumsum(x * %, axis=0) ]] }`), grows: true, walks: upTo(20)},
	{name: "product_in_part", text: with(`graph g(a: bf16[2048, 1024], b: bf16[$, 1024], c: bf16[2048, 1024 - $]) -> (y: bf16[2048, 1024]) { y = concat(a @ transpose(b), c, axis=1) }`), walks: []walk{{992, 1016, 4}}},
	{name: "rejoined_rows", text: with(`graph g(a: bf16[192, 256], b: bf16[256, 512]) -> (y: bf16[$, 512], z: bf16[192 - $, 512]) {
		p = a @ b
		y = relu(p[:$])
		z = relu(p[$:])
	}`), walks: []walk{{32, 160, 32}}},
	{name: "nested_sums", text: with(`graph g(x: f32[40, 50, $, 30]) -> (y: f32[40], z: f32[50, 30]) { y = sum(max(max(x, axis=3), axis=2), axis=1); z = max(max(x, axis=2), axis=0) }`), walks: few},
	{name: "sums_of_one_element", text: with(`graph g(x: f32[N]) -> (y: f32[]) { t[i: 1, j: 1] = sum[k: N] x[k]; y = sum[a: $] t[a / $, 0] }`), walks: upTo(4)},
	{name: "tile_of_rows", text: times(`graph g(x: f32[500], w: f32[500, 700], z: f32[]) -> (y: f32[500, 700]) { a0 = x * z; [[ a% = a%- - z; ]] y = w * a$[:, none] }`), grows: true, walks: upTo(100)},
	{name: "tile_of_both", text: times(`graph g(x: f32[500, 500], z: f32[]) -> (y: f32[500, 500]) { a0 = x * z; [[ a% = a%- - z; ]] y = a$ + transpose(a$) }`), grows: true, walks: upTo(100)},
	{name: "tile_of_operands", text: times(`graph g(x: bf16[512, 512], w: bf16[512, 512], z: bf16[]) -> (y: bf16[512, 512]) { a0 = x * z; [[ a% = a%- - z; ]] y = a$ @ w }`), grows: true, walks: upTo(100)},
	{name: "tensors_of_a_sum", text: times(`graph g(x0: f32[100000] [[, x%: f32[100000] ]]) -> (y: f32[]) { y = sum(x0 [[ * x% ]]) }`), grows: true, walks: []walk{{248, 260, 1}}},
	{name: "columns_in_turns", text: with(`graph g(x: f32[$, 301], b: f32[301, $]) -> (y: f32[301, $]) { y[i: 301, j: $] = x[j, i] + b[i, j] }`), walks: upTo(12)},
	{name: "bits_kept_halves", text: with(`graph g(a: f16[64, 1024], b: i32[512, 512]) -> (y: f32[64, 512]) { y[i: 64, j: 512] = sum[k: 1024] f32(a[i, k]) * f32(f16(b[j, k / 2] >> 16 * (k % 2) & ((1 << $) - 1))) }`), walks: upTo(16)},
	{name: "read_beside_product", text: times(`graph g(x0: bf16[512, 512] [[, x%: bf16[512, 512] ]], w: bf16[512, 512]) -> (y: bf16[512, 512], z: bf16[512, 512]) { h = x0 [[ * x% ]]; y = h @ w; z = h + 1 }`), grows: true, walks: upTo(8)},
	{name: "read_beside_product_floats", text: times(`@tf32 graph g(x0: f32[512, 512] [[, x%: f32[512, 512] ]], w: f32[512, 512]) -> (y: f32[512, 512], z: f32[512]) { h = x0 [[ * x% ]]; y = h @ w; z = sum(h, axis=1) }`), grows: true, walks: upTo(8)},
	{name: "square_floats", text: with(`graph g(a: f32[$, 320], b: f32[320, $]) -> (y: f32[$, $]) { y = a @ b }`), walks: modest},
	{name: "square_halves", text: with(`graph g(a: bf16[$, 320], b: bf16[320, $]) -> (y: f32[$, $]) { y = f32(a @ b) }`), walks: modest},
	{name: "square_windows", text: with(`@tf32 graph g(x: f32[$, 16, 16, 16], w: f32[$, 16, 3, 3]) -> (y: f32[$, $, 14, 14]) { y = conv2d(x, w) }`), walks: few},
	{name: "experts", text: with(`graph g(x: bf16[$, 4, 64], w: bf16[4, 64, 128]) -> (y: bf16[$, 4, 128]) { y[i: $, e: 4, j: 128] = sum[k: 64] x[i, e, k] * w[e, k, j] }`), walks: modest},
	{name: "interleaved", text: with(`graph g(a: bf16[256, 64, $], b: bf16[64, $, 128]) -> (y: bf16[256, 128]) { y[i: 256, j: 128] = sum[k: 64, l: $] a[i, k, l] * b[k, l, j] }`), walks: few},
	{name: "heads_beside", text: with(`graph g(q: bf16[300, $, 64], k: bf16[300, $, 64], v: bf16[300, $, 64]) -> (y: bf16[300, $, 64]) {
		s[h: $, i: 300, j: 300] = sum[d: 64] f32(q[i, h, d]) * f32(k[j, h, d])
		p = softmax(s)
		y[i: 300, h: $, d: 64] = bf16(sum[j: 300] bf16(p[h, i, j]) * v[j, h, d])
	}`), walks: upTo(40)},
	{name: "turned_planes", text: times(`graph g(x0: f32[3000, 28, 28] [[, x%: f32[3000, 28, 28] ]]) -> (y: f32[28, 28, 3000]) { y[a: 28, b: 28, c: 3000] = x0[c, b, a] [[ + x%[c, b, a] ]] }`), grows: true, walks: upTo(8)},
	{name: "fields_apart", text: with(`graph g(a: f16[4, 1024], b: i32[512, 512 + $]) -> (y: f32[4, 512]) { y[i: 4, j: 512] = sum[k: 1024] f32(a[i, k]) * f32(f16(b[j, 4 * (k / 8) + $ * (k / 4 % 2)] >> 8 * (k % 4) & 255)) }`), walks: []walk{{4, 256, 4}}},
	{name: "windows_of_few_places", text: with(`graph g(x: bf16[64, $, $], w: bf16[96, 64, 3, 3]) -> (y: bf16[96, $ + 2, $ + 2]) { y[o: 96, i: $ + 2, j: $ + 2] = sum[c: 64, p: 3, q: 3] x[c, i + p - 2, j + q - 2] * w[o, c, p, q] else 0 }`), walks: upTo(9)},
	{name: "exponents", text: with(`graph g(x: f32[1000]) -> (y: f32[1000]) { y = x ** ($ - 40) }`), walks: upTo(80)},
	{name: "no_cache", text: always(`graph g(x: f32[300, 4096]) -> (y: f32[300, 4096]) { y = softmax(x) }`), figure: func(d *ir.Device, n int64) { d.L2 = n - 1 }, walks: upTo(4)},
}

// sharedSweeps are programs whose plans depend on the shared memory of a block.
var sharedSweeps = func() (out []swept) {
	for _, p := range []struct{ name, text string }{
		{"chain", `graph g(q: bf16[4, 1024, 64], k: bf16[4, 1024, 64], v: bf16[4, 1024, 64]) -> (y: bf16[4, 1024, 64]) { y = relu(q @ transpose(k, -1, -2)) @ v }`},
		{"gradient", `graph g(x: bf16[4000, 768], d: bf16[4000, 768], w: bf16[768]) -> (y: bf16[4000, 768], s: f32[768]) { y = bf16(f32(d) * w - f32(x) * mean(f32(d) * w * x, axis=1, keep=true)); s = sum(f32(d) * x, axis=0) }`},
		{"short_rows", `graph g(x: f32[20000, 24]) -> (y: f32[20000, 24]) { y = softmax(x) }`},
		{"packed", `graph g(a: bf16[16, 1024], b: i8[512, 1024], s: f32[512]) -> (y: bf16[16, 512]) { y = a @ transpose(bf16(b)) * bf16(s) }`},
		{"halo", `graph g(x: f32[4, 6, 40, 40], w: f32[24, 6, 3, 3]) -> (y: f32[4, 24, 38, 38]) { y = conv2d(x, w) }`},
		{"halo_half", `graph g(x: f16[4, 3, 64, 64], w: f16[64, 3, 7, 7]) -> (y: f16[4, 64, 58, 58]) { y = conv2d(x, w) }`},
		{"windows", `graph g(x: bf16[4, 64, 28, 28], w: bf16[96, 64, 3, 3]) -> (y: bf16[4, 96, 28, 28]) { y = conv2d(x, w, padding=1) }`},
		{"scan", `graph g(x: f32[3000, 700]) -> (y: f32[3000, 700]) { y = cumsum(x, axis=0) }`},
	} {
		out = append(out, swept{name: "shared_memory_" + p.name, text: always(p.text), figure: sharedBlock, walks: []walk{{32 << 10, 228 << 10, 16}}})
	}
	return out
}()
