package conformance

import (
	"maps"
	"slices"
	"strings"

	"github.com/fusec/fusec/ir"
)

// windowed are convolutions of one to three dimensions, with what may stand around them, for
// sizes from which their operands are laid out for tensor cores.
var windowed = map[string]string{
	"2d": `@bench(N=64, C=64, O=64, H=56, W=56)
		graph g(x: bf16[N, C, H, W], w: bf16[O, C, 3, 3], b: bf16[O]) -> (y: bf16[N, O, H, W]) {
		y = conv2d(x, w, b, padding=1) }`,
	"2d strided": `@bench(N=64, C=64, O=64, H=57, W=57)
		graph g(x: f16[N, C, H, W], w: f16[O, C, 5, 3], b: f16[O]) -> (y: f16[N, O, (H - 1) / 2 + 1, (W + 1) / 2 + 1]) {
		y = relu(conv2d(x, w, b, stride=2, padding=2)) }`,
	"2d dilated": `@bench(N=64, C=64, O=64, H=56, W=56)
		graph g(x: bf16[N, C, H, W], w: bf16[O, C, 3, 3]) -> (y: f32[N, O, (H - 3) / 3 + 1, (W - 3) / 3 + 1]) {
		y = f32(conv2d(x, w, padding=1, dilation=2, stride=3)) }`,
	"asymmetric": `@bench(N=64, C=64, O=64, H=56, W=56)
		graph g(x: bf16[N, C, H, W], w: bf16[O, C, 2, 3], r: bf16[N, O, H, W]) -> (y: bf16[N, O, H, W]) {
		s[n, o, p: H, q: W] = sum[c, i, j] w[o, c, i, j] * x[n, c, p + i - 1, q + 2 * j - 3]
		y = s + r }`,
	"taps across lines": `@bench(N=64, C=64, O=64, H=56, W=56)
		graph g(x: bf16[N, C, H, W], w: bf16[O, C, 3, 1], b: bf16[O]) -> (y: bf16[N, O, H, W]) {
		y = relu(conv2d(x, w, b, padding=(1, 0))) }`,
	"taps across lines, 3d, tf32": `@tf32 @bench(N=8, C=32, O=64, H=16, W=56)
		graph g(x: f32[N, C, H, W, 8], w: f32[O, C, 3, 2, 1]) -> (y: f32[N, O, H - 2, W + 1, 8]) { y = conv3d(x, w, padding=(0, 1, 0)) }`,
	"taps of one place between": `@bench(N=64, C=1, O=64, H=56, W=56)
		graph g(x: bf16[N, 40, H, W], w: bf16[2 * O, 40, 3, 2], v: bf16[C]) -> (y: bf16[N, 2 * O, (H - 1) / 2 + 1, (W - 1) / 2 + 1]) {
		y = conv2d(x, w, stride=2, padding=(2, 1), dilation=2) * v[0] }`,
	"points": `@bench(N=64, C=64, O=128, H=56, W=56)
		graph g(x: bf16[N, C, H, W], w: bf16[O, C, 1, 1]) -> (y: bf16[N, O, (H - 1) / 2 + 1, (W - 1) / 2 + 1]) { y = conv2d(x, w, stride=2) }`,
	"points of widths": `@bench(N=64, C=15, O=15, H=28, W=1)
		graph g(x: f16[N, 4 * C, H, H], w: f16[4 * O, 4 * C, 1, 1], v: f16[W]) -> (y: f16[N, 4 * O, H, H]) {
		y = relu(conv2d(x, w)) * v[0] }`,
	"points of widths, odd planes": `@bench(N=64, C=16, O=16, H=7, W=1)
		graph g(x: f16[N, 8 * C, H, H], w: f16[8 * O, 8 * C, 1, 1], r: f16[N, 8 * O, H, H], v: f16[W]) -> (y: f16[N, 8 * O, H, H]) {
		y = relu(conv2d(x, w) + r) * v[0] }`,
	"strided of widths": `@bench(N=64, C=8, O=8, H=28, W=1)
		graph g(x: bf16[N, 16 * C, 2 * H, 2 * H], w: bf16[16 * O, 16 * C, 3, 3], u: bf16[16 * O, 16 * O, 1, 1], v: bf16[W]) -> (y: bf16[N, 16 * O, H, H]) {
		y = conv2d(relu(conv2d(x, w, stride=2, padding=1)), u) * v[0] }`,
	"1d": `@bench(N=16, C=64, O=64, H=8192, W=1)
		graph g(x: bf16[N, C, H], w: bf16[O, C, 3], v: bf16[W]) -> (y: bf16[N, O, H]) { y = conv1d(x, w, padding=2, dilation=2) * v[0] }`,
	"3d": `@bench(N=8, C=32, O=32, H=16, W=56)
		graph g(x: bf16[N, C, H, W, W], w: bf16[O, C, 3, 3, 3], b: bf16[O]) -> (y: bf16[N, O, (H - 1) / 2 + 1, (W - 1) / 2 + 1, (W - 1) / 2 + 1]) { y = conv3d(x, w, b, padding=1, stride=2) }`,
	"channels last": `@bench(N=64, C=64, O=64, H=56, W=56)
		graph g(x: bf16[N, H, W, C], w: bf16[O, 3, 3, C]) -> (y: bf16[N, H, W, O]) {
		y[n, p: H, q: W, o] = sum[c, i, j] w[o, i, j, c] * x[n, p + i - 1, q + j - 1, c] }`,
	"chain": `@bench(N=64, C=64, O=64, H=28, W=28)
		graph g(x: bf16[N, C, H, W], w: bf16[O, C, 3, 3], v: bf16[O, O, 3, 3], b: bf16[O]) -> (y: bf16[N, O, H, W]) {
		y = conv2d(relu(conv2d(x, w, b, padding=1)), v, padding=1) }`,
	"2d tf32": `@tf32 @bench(N=64, C=64, O=64, H=56, W=56)
		graph g(x: f32[N, C, H, W], w: f32[O, C, 3, 3], b: f32[O]) -> (y: f32[N, O, H, W]) {
		y = relu(conv2d(x, w, b, padding=1)) }`,
	"1d tf32": `@tf32 @bench(N=16, C=64, O=64, H=8192, W=1)
		graph g(x: f32[N, C, H], w: f32[O, C, 4], v: f32[W]) -> (y: f32[N, O, (H - 2) / 2 + 1]) { y = conv1d(x, w, padding=1, stride=2) * v[0] }`,
	"3d tf32": `@tf32 @bench(N=8, C=32, O=64, H=16, W=56)
		graph g(x: f32[N, C, H, W, W], w: f32[O, C, 3, 3, 3]) -> (y: f32[N, O, H, W, W]) { y = conv3d(x, w, padding=1) }`,
	"2d exact": `@bench(N=64, C=64, O=64, H=56, W=56)
		graph g(x: f32[N, C, H, W], w: f32[O, C, 3, 3], b: f32[O]) -> (y: f32[N, O, (H - 1) / 2 + 1, (W - 1) / 2 + 1]) {
		y = relu(conv2d(x, w, b, padding=1, stride=2)) }`,
	"3d exact": `@bench(N=8, C=32, O=32, H=16, W=56)
		graph g(x: f32[N, C, H, W, W], w: f32[O, C, 3, 1, 3]) -> (y: f32[N, O, H, W + 2, W]) { y = conv3d(x, w, padding=1) }`,
	"transposed": `@bench(N=32, C=64, O=64, H=28, W=28)
		graph g(x: bf16[N, C, H, W], w: bf16[C, O, 4, 4], b: bf16[O]) -> (y: bf16[N, O, 2 * H, 2 * W]) {
		y = relu(conv_transpose2d(x, w, b, stride=2, padding=1)) }`,
	"blocks": `@bench(N=16, C=128, O=64, H=64, W=64)
		graph g(x: f16[N, C, H, W], w: f16[C, 2 * O, 2, 2], b: f16[2 * O]) -> (y: f16[N, 2 * O, 2 * H, 2 * W]) {
		y = relu(conv_transpose2d(x, w, b, stride=2)) }`,
	"blocks of two by four, residual": `@bench(N=16, C=128, O=64, H=64, W=64)
		graph g(x: bf16[N, C, H, W], w: bf16[C, 2 * O, 2, 4], r: bf16[N, 2 * O, 2 * H, 4 * W]) -> (y: bf16[N, 2 * O, 2 * H, 4 * W], z: f32[N, 2 * O, 2 * H, 4 * W]) {
		y = conv_transpose2d(x, w, stride=(2, 4)) + r
		z = f32(y) * 2 }`,
	"blocks of three, 1d": `@bench(N=16, C=128, O=64, H=4096, W=1)
		graph g(x: f16[N, C, H], w: f16[C, O, 3], v: f16[W]) -> (y: f16[N, O, 3 * H]) { y = conv_transpose1d(x, w, stride=3) * v[0] }`,
	"blocks, 3d, tf32": `@tf32 @bench(N=8, C=64, O=32, H=16, W=16)
		graph g(x: f32[N, C, H, W, W], w: f32[C, O, 2, 2, 2], b: f32[O]) -> (y: f32[N, O, 2 * H, 2 * W, 2 * W]) {
		y = conv_transpose3d(x, w, b, stride=2) }`,
	"blocks, joined and multiplied": `@bench(N=16, C=64, O=32, H=32, W=32)
		graph g(x: f16[N, C, H, W], k: f16[N, O, 2 * H, 2 * W], t: f16[C, O, 2, 2], u: f16[O, 2 * O, 3, 3]) -> (y: f16[N, O, 2 * H, 2 * W]) {
		y = relu(conv2d(concat(k, conv_transpose2d(x, t, stride=2), axis=1), u, padding=1)) }`,
	"transposed exact": `@bench(N=32, C=64, O=64, H=28, W=28)
		graph g(x: f32[N, C, H, W], w: f32[C, O, 4, 4], b: f32[O]) -> (y: f32[N, O, 2 * H, 2 * W]) {
		y = relu(conv_transpose2d(x, w, b, stride=2, padding=1)) }`,
	"transposed tf32": `@tf32 @bench(N=32, C=64, O=64, H=28, W=28)
		graph g(x: f32[N, C, H, W], w: f32[C, O, 2, 2], b: f32[O]) -> (y: f32[N, O, 2 * H, 2 * W]) {
		y = conv_transpose2d(x, w, b, stride=2) }`,
	"transposed, without padding": `@tf32 @bench(N=32, C=64, O=64, H=28, W=28)
		graph g(x: f32[N, C, H, W], w: f32[C, O, 4, 4], b: f32[O]) -> (y: f32[N, O, 2 * H + 2, 2 * W + 3]) {
		y = relu(conv_transpose2d(x, w, b, stride=2, output_padding=(0, 1))) }`,
	"transposed, uneven, tf32": `@tf32 @bench(N=32, C=64, O=64, H=28, W=28)
		graph g(x: f32[N, C, H, W], w: f32[C, O, 3, 5], b: f32[O]) -> (y: f32[N, O, 2 * H - 1, 3 * W - 1]) {
		y = relu(conv_transpose2d(x, w, b, stride=(2, 3), padding=(1, 2), output_padding=(0, 1))) }`,
	"transposed, uneven, norms behind": `@tf32 @bench(N=32, C=64, O=64, H=28, W=28)
		graph g(x: f32[N, C, H, W], w: f32[C, O, 4, 4], b: f32[O]) -> (y: f32[N, O, 2 * H + 1, 2 * W + 1], z: f32[N, O, 2 * H + 1, 2 * W + 1]) {
		h = conv_transpose2d(x, w, b, stride=2, padding=1, output_padding=1)
		y = softmax(h, axis=1)
		z = h * rsqrt(mean(h * h, axis=(0, 2, 3), keep=true) + 1e-3) }`,
	"even rows that are no vectors": `@bench(N=64, C=64, O=64, H=56, W=56)
		graph g(x: bf16[N, C, H, W], w: bf16[O, C, 3, 3], b: bf16[O]) -> (y: bf16[N, O, H - 2, W - 2], z: f32[N, O, H - 2, W - 2]) {
		h = conv2d(x, w, b)
		y = relu(h)
		z = tanh(f32(h)) }`,
	"even rows that are no vectors, tf32": `@tf32 @bench(N=64, C=64, O=64, H=56, W=56)
		graph g(x: f32[N, C, H, W], w: f32[O, C, 3, 3], b: f32[O]) -> (y: f32[N, O, H - 2, W - 2]) { y = relu(conv2d(x, w, b)) }`,
	"much behind": `@bench(N=64, C=64, O=64, H=56, W=56)
		graph g(x: bf16[N, C, H, W], w: bf16[O, C, 3, 3], b: bf16[O], r: bf16[N, O, H, W]) -> (y: bf16[N, O, H, W]) {
		y = mish(conv2d(x, w, b, padding=1) + r) }`,
	"much behind, tf32": `@tf32 @bench(N=64, C=64, O=64, H=56, W=56)
		graph g(x: f32[N, C, H, W], w: f32[O, C, 3, 3], r: f32[O, 1, W - 2]) -> (y: f32[N, O, H - 2, W - 2], z: f32[N, O, H - 2, W - 2]) {
		h = conv2d(x, w)
		y = mish(h) * r
		z = erf(h) }`,
	"transposed, uneven, much behind": `@tf32 @bench(N=32, C=64, O=64, H=28, W=28)
		graph g(x: f32[N, C, H, W], w: f32[C, O, 4, 4], r: f32[O, 2 * H + 1, 1]) -> (y: f32[N, O, 2 * H + 1, 2 * W + 1]) {
		y = tanh(conv_transpose2d(x, w, stride=2, padding=1, output_padding=1) - r) * 2 }`,
	"transposed, uneven, 3d": `@bench(N=8, C=32, O=32, H=16, W=28)
		graph g(x: bf16[N, C, H, W, W], w: bf16[C, O, 3, 3, 3]) -> (y: bf16[N, O, 2 * H, 2 * W, 2 * W]) {
		y = conv_transpose3d(x, w, stride=2, padding=1, output_padding=1) }`,
	"transposed, uneven": `@bench(N=32, C=64, O=64, H=28, W=28)
		graph g(x: f32[N, C, H, W], w: f32[C, O, 3, 5]) -> (y: f32[N, O, 3 * H - 1, 3 * W + 1]) {
		y = conv_transpose2d(x, w, stride=3, padding=1, output_padding=1) }`,
	"transposed, dilated": `@bench(N=32, C=64, O=64, H=280, W=1)
		graph g(x: f32[N, C, H], w: f32[C, O, 6], v: f32[W]) -> (y: f32[N, O, 3 * H + 6]) {
		y = conv_transpose1d(x, w, stride=3, padding=1, dilation=2) * v[0] }`,
	"transposed, places of one residue": `@bench(N=32, C=64, O=64, H=280, W=1)
		graph g(x: bf16[N, C, H], w: bf16[C, O, 3], v: bf16[W]) -> (y: bf16[N, O, 2 * H + 1]) {
		y = conv_transpose1d(x, w, stride=2, padding=1, dilation=2) * v[0] }`,
	"transposed, factors shared, 2d": `@tf32 @bench(N=32, C=64, O=64, H=28, W=28)
		graph g(x: f32[N, C, H, W], w: f32[C, O, 3, 2], b: f32[O]) -> (y: f32[N, O, 6 * H + 3, 4 * W + 1]) {
		y = relu(conv_transpose2d(x, w, b, stride=(6, 4), padding=(0, 1), dilation=(4, 6))) }`,
	"transposed, dense": `@tf32 @bench(N=32, C=64, O=64, H=28, W=28)
		graph g(x: f32[N, C, H, W], w: f32[C, O, 3, 5]) -> (y: f32[N, O, H, W + 3]) {
		y = relu(conv_transpose2d(x, w, padding=(1, 0))[..., 1:]) }`,
	"backwards": `@bench(N=32, C=64, O=64, H=28, W=28)
		graph g(x: bf16[N, C, H, W], w: bf16[O, C, 3, 3]) -> (y: bf16[N, O, H, W]) {
		y[n, o, p: H, q: W] = sum[c, i, j] w[o, c, i, j] * x[n, c, p - 2 * i + 3, q - j + 1] }`,
	"covered, lines of half": `@tf32 @bench(N=16, H=128, W=256)
		graph g(x: f32[N, 16, H, W], w: f32[72, 16, 3, 3]) -> (y: f32[N, 72, H, W]) { y = conv2d(x, w, padding=1) }`,
	"covered, columns spread": `@bench(N=64, H=32, W=32)
		graph g(x: bf16[N, 64, H, W], w: bf16[64, 64, 3, 3], b: bf16[64]) -> (y: bf16[N, 64, H, W]) { y = relu(conv2d(x, w, b, padding=1)) }`,
	"inside": `@bench(N=64, C=16, O=64, H=56, W=56)
		graph g(x: bf16[N, C, H, W], w: bf16[O, C, 3, 3], b: bf16[O]) -> (y: bf16[N, O, H - 2, W - 2]) {
		y = relu(conv2d(x, w, b)) }`,
	"inside, few channels": `@tf32 @bench(N=64, C=1, O=64, H=56, W=56)
		graph g(x: f32[N, 3, H, W], w: f32[O, 3, 3, 5], v: f32[C]) -> (y: f32[N, O, H - 2, W - 4]) { y = conv2d(x, w) * v[0] }`,
	"padded, few channels": `@bench(N=64, C=1, O=64, H=114, W=112)
		graph g(x: bf16[N, 3, H, W], w: bf16[O, 3, 7, 7], v: bf16[C]) -> (y: bf16[N, O, (H - 1) / 2 + 1, (W - 1) / 2 + 1]) { y = conv2d(x, w, stride=2, padding=3) * v[0] }`,
	"padded, few channels, tf32": `@tf32 @bench(N=64, C=1, O=64, H=56, W=56)
		graph g(x: f32[N, 4, H, W], w: f32[O, 4, 3, 5], v: f32[C]) -> (y: f32[N, O, H, W + 2]) { y = conv2d(x, w, padding=(1, 3)) * v[0] }`,
	"padded, few channels, uneven": `@bench(N=64, C=1, O=64, H=56, W=56)
		graph g(x: f16[N, 5, H, W], w: f16[O, 5, 2, 3], v: f16[C]) -> (y: f16[N, O, H, W]) {
		y[n, o, p: H, q: W] = (sum[c, i, j] w[o, c, i, j] * x[n, c, p + i - 1, 3 * q + j - 2]) * v[0] }`,
	"padded, few channels, 1d": `@bench(N=16, C=1, O=64, H=8192, W=1)
		graph g(x: bf16[N, 6, H], w: bf16[O, 6, 5], v: bf16[C], u: bf16[W]) -> (y: bf16[N, O, H + 2]) { y = conv1d(x, w, padding=3) * v[0] * u[0] }`,
	"one channel": `@bench(N=8, C=1, O=64, H=256, W=256)
		graph g(x: f16[N, 1, H, W], w: f16[O, 1, 5, 5], b: f16[O], v: f16[C]) -> (y: f16[N, O, H, W]) { y = tanh(conv2d(x, w, b, padding=2)) * v[0] }`,
	"one channel, and then many": `@bench(N=8, C=32, O=64, H=256, W=256)
		graph g(x: bf16[N, 1, H, W], w: bf16[O, 1, 3, 3], u: bf16[C, O, 3, 3]) -> (y: bf16[N, C, H, W]) {
		y = conv2d(relu(conv2d(x, w, padding=1)), u, padding=1) }`,
	"two channels, strided and dilated": `@bench(N=8, C=1, O=64, H=256, W=256)
		graph g(x: bf16[N, 2, H, W], w: bf16[O, 2, 3, 5], v: bf16[C]) -> (y: f32[N, O, (H - 1) / 2 + 1, (W - 1) / 2 + 1]) {
		y = f32(conv2d(x, w, stride=2, dilation=2, padding=(2, 4))) * v[0] }`,
	"one channel, 3d": `@bench(N=4, C=1, O=32, H=64, W=64)
		graph g(x: bf16[N, 1, H, W, W], w: bf16[O, 1, 3, 3, 3], v: bf16[C]) -> (y: bf16[N, O, H, W, W]) { y = conv3d(x, w, padding=1) * v[0] }`,
	"patches": `@bench(N=64, C=16, O=96, H=28, W=28)
		graph g(x: bf16[N, C, 4 * H, 8 * W], w: bf16[O, C, 4, 8], b: bf16[O]) -> (y: bf16[N, H * W, O]) {
		y = permute(reshape(conv2d(x, w, b, stride=(4, 8)), N, O, H * W), (0, 2, 1)) }`,
	"patches, tf32": `@tf32 @bench(N=64, C=16, O=96, H=28, W=28)
		graph g(x: f32[N, C, 2 * H, 4 * W + 3], w: f32[O, C, 2, 4], b: f32[O]) -> (y: f32[N, O, H, W]) { y = relu(conv2d(x * 2, w, b, stride=(2, 4))) }`,
	"patches of few channels": `@bench(N=64, C=1, O=96, H=56, W=56)
		graph g(x: f16[N, 3, 4 * H, 4 * W], w: f16[O, 3, 4, 4], b: f16[O], v: f16[C]) -> (y: f16[N, O, H, W]) { y = conv2d(x, w, b, stride=4) * v[0] }`,
	"2d exact, few channels": `@bench(N=64, C=1, O=64, H=56, W=56)
		graph g(x: f32[N, 16, H, W], w: f32[O, 16, 3, 3], v: f32[C]) -> (y: f32[N, O, H, W]) { y = relu(conv2d(x, w, padding=1)) * v[0] }`,
	"inside, strided": `@bench(N=64, C=1, O=64, H=114, W=56)
		graph g(x: f16[N, 5, 2 * H, 2 * W], w: f16[O, 5, 4, 3], v: f16[C]) -> (y: f16[N, O, H - 1, W - 1]) { y = conv2d(x, w, stride=2) * v[0] }`,
	"inside, 1d": `@tf32 @bench(N=16, C=20, O=64, H=8192, W=1)
		graph g(x: f32[N, C, H], w: f32[O, C, 3], v: f32[W]) -> (y: f32[N, O, H - 2]) { y = conv1d(x, w) * v[0] }`,
	"inside, 3d": `@tf32 @bench(N=16, C=1, O=24, H=24, W=32)
		graph g(x: f32[N, 3, H, W, W], w: f32[O, 3, 3, 3, 3], v: f32[C]) -> (y: f32[N, O, H - 2, W - 2, W - 2]) { y = conv3d(x, w) * v[0] }`,
	"inside, exact": `@bench(N=16, C=3, O=24, H=24, W=32)
		graph g(x: f32[N, C, H, W, W], w: f32[O, C, 3, 3, 3], b: f32[O]) -> (y: f32[N, O, H - 2, W - 2, W - 2]) { y = conv3d(x, w, b) }`,
	"past the end of lines": `@tf32 @bench(N=64, C=64, O=64, H=56, W=56)
		graph g(x: f32[N, C, H, W], w: f32[O, C, 3, 1]) -> (y: f32[N, O, H, W + 1]) {
		y[n, o, p: H, q: W + 1] = sum[c, i, j] w[o, c, i, j] * x[n, c, p + i - 1, q + j + 1] }`,
	"residuals": `@bench(N=64, C=64, O=1, H=14, W=14)
		graph g(x: bf16[N, C, H, W], w: bf16[C, C, 3, 3], v: bf16[C, C, 3, 3], s: bf16[O]) -> (y: bf16[N, C, H, W], m: bf16[N, C]) {
		a = relu(conv2d(x, w, padding=1) * s[0])
		b = relu(conv2d(a, v, padding=1) + a)
		c = relu(conv2d(b, w, padding=1) + b)
		y = conv2d(c, v, padding=1) + c
		m = global_avg_pool(c) }`,
	"points, strided, residual": `@bench(N=64, C=64, O=128, H=14, W=14)
		graph g(x: bf16[N, C, 2 * H, 2 * W], w: bf16[O, C, 1, 1], v: bf16[O, C, 3, 3], u: bf16[O, O, 3, 3]) -> (y: bf16[N, O, H, W]) {
		r = relu(conv2d(x, w, stride=2) + conv2d(x, v, stride=2, padding=1))
		y = relu(r + conv2d(r, u, padding=1)) }`,
	"enlarged": `@bench(N=64, C=64, O=64, H=28, W=28)
		graph g(x: bf16[N, C, H, W], w: bf16[O, C, 3, 3], b: bf16[O]) -> (y: bf16[N, O, 2 * H, 2 * W]) {
		y = relu(conv2d(upsample_nearest2d(x, 2), w, b, padding=1)) }`,
	"enlarged, strided, tf32": `@tf32 @bench(N=64, C=64, O=64, H=28, W=28)
		graph g(x: f32[N, C, H, W], w: f32[O, C, 3, 3]) -> (y: f32[N, O, (3 * H - 1) / 2 + 1, (3 * W - 1) / 2 + 1]) {
		y = conv2d(upsample_nearest2d(x, 3), w, stride=2, padding=1) }`,
	"half of the channels": `@bench(N=64, C=64, O=64, H=28, W=28)
		graph g(x: f16[N, 2 * C, H, W], w: f16[O, C, 3, 3]) -> (y: f16[N, O, H, W], z: f16[N, C, H, W]) {
		z, b = split(x, 2, axis=1)
		y = conv2d(b, w, padding=1) }`,
	"mirrored border": `@tf32 @bench(N=64, C=64, O=64, H=28, W=28)
		graph g(x: f32[N, C, H, W], w: f32[O, C, 3, 3]) -> (y: f32[N, O, H, W]) { y = conv2d(x, w, padding=1, padding_mode="reflect") }`,
	"round a circle": `@bench(N=64, C=64, O=64, H=2048, W=1)
		graph g(x: bf16[N, C, H], w: bf16[O, C, 5], v: bf16[W]) -> (y: bf16[N, O, H]) { y = conv1d(x, w, padding=4, dilation=2, padding_mode="circular") * v[0] }`,
	"three results": `@bench(N=64, C=64, O=1, H=56, W=56)
		graph g(x: bf16[N, C, H, W], w: bf16[3, C, 3, 3], b: bf16[3], v: bf16[O]) -> (y: bf16[N, 3, H, W]) { y = tanh(conv2d(x, w, b, padding=1)) * v[0] }`,
	"transposed, three results": `@bench(N=64, C=64, O=1, H=28, W=28)
		graph g(x: f16[N, C, H, W], w: f16[C, 3, 4, 4], v: f16[O]) -> (y: f16[N, 3, 2 * H, 2 * W]) { y = conv_transpose2d(x, w, stride=2, padding=1) * v[0] }`,
	"turned, few channels": `@bench(N=64, C=1, O=64, H=56, W=56)
		graph g(x: f16[N, 3, H, W], w: f16[3, O, 3, 2], v: f16[C]) -> (y: f16[N, O, H, W - 1]) { y = conv_transpose2d(x, w, padding=1) * v[0] }`,
	"points, padded": `@bench(N=64, C=64, O=64, H=28, W=28)
		graph g(x: bf16[N, C, H, W], w: bf16[O, C, 1, 1], b: bf16[O]) -> (y: bf16[N, O, H + 2, W]) { y = conv2d(x, w, b, padding=(1, 0)) }`,
	"blocks, cropped": `@tf32 @bench(N=32, C=64, O=48, H=28, W=28)
		graph g(x: f32[N, C, H, W], w: f32[C, O, 3, 3], b: f32[O]) -> (y: f32[N, O, 3 * H - 2, 3 * W - 2]) {
		y = relu(conv_transpose2d(x, w, b, stride=3, padding=1)) }`,
	"strided, few results": `@bench(N=64, C=96, O=12, H=57, W=56)
		graph g(x: f16[N, C, H, W], w: f16[O, C, 3, 2], b: f16[O]) -> (y: f16[N, O, (H - 1) / 3 + 1, (W - 2) / 3 + 1]) {
		y = conv2d(x, w, b, stride=3, padding=(1, 0)) }`,
	"of a computed input, few channels": `@bench(N=64, C=1, O=1, H=56, W=56)
		graph g(x: bf16[N, 12, H, W], w: bf16[16, 12, 3, 3], u: bf16[16, 3, 3, 3], v: bf16[C], z: bf16[O]) -> (y: bf16[N, 16, H, W]) {
		y = conv2d(relu(x), w, padding=1) * v[0] + conv2d(x[:, :3] * 0.5, u, padding=1) * z[0] }`,
	"grouped, of a computed input": `@bench(N=64, C=1, O=1, H=56, W=56)
		graph g(x: bf16[N, 24, H, W], w: bf16[48, 8, 3, 3], v: bf16[C], z: bf16[O]) -> (y: bf16[N, 48, H, W]) {
		y = conv2d(relu(x), w, padding=1, groups=3) * v[0] + z[0] }`,
	"grouped": `@bench(N=32, C=1, O=1, H=56, W=56)
		graph g(x: bf16[N, 96, H, W], w: bf16[80, 24, 3, 3], b: bf16[80], u: bf16[C], v: bf16[O]) -> (y: bf16[N, 80, H, W]) {
		y = relu(conv2d(x, w, b, padding=1, groups=4)) + u[0] * v[0] }`,
	"grouped, strided, tf32": `@tf32 @bench(N=32, C=1, O=1, H=56, W=56)
		graph g(x: f32[N, 32, H, W], w: f32[64, 16, 5, 3], u: f32[C], v: f32[O]) -> (y: f32[N, 64, (H - 1) / 2 + 1, (W - 1) / 2 + 1]) {
		y = conv2d(x, w, stride=2, padding=(2, 1), groups=2) + u[0] * v[0] }`,
	"grouped, exact": `@bench(N=32, C=1, O=1, H=56, W=56)
		graph g(x: f32[N, 30, H, W], w: f32[48, 10, 3, 3], u: f32[C], v: f32[O]) -> (y: f32[N, 48, H, W]) {
		y = conv2d(x, w, padding=1, groups=3) + u[0] * v[0] }`,
	"eight a group": `@bench(N=32, C=1, O=1, H=56, W=56)
		graph g(x: bf16[N, 24, H, W], w: bf16[24, 8, 3, 3], b: bf16[24], u: bf16[C], v: bf16[O]) -> (y: bf16[N, 24, H, W]) {
		y = relu(conv2d(x, w, b, padding=1, groups=3)) + u[0] * v[0] }`,
	"eight a group, dilated, tf32": `@tf32 @bench(N=32, C=1, O=1, H=56, W=56)
		graph g(x: f32[N, 12, H, W], w: f32[16, 6, 3, 5], u: f32[C], v: f32[O]) -> (y: f32[N, 16, (H - 1) / 3 + 1, (W - 1) / 3 + 1]) {
		y = conv2d(x, w, stride=3, padding=(2, 4), dilation=2, groups=2) + u[0] * v[0] }`,
	"eight a group, exact": `@bench(N=32, C=1, O=1, H=56, W=56)
		graph g(x: f32[N, 32, H, W], w: f32[32, 8, 3, 3], b: f32[32], u: f32[C], v: f32[O]) -> (y: f32[N, 32, H, W]) {
		y = relu(conv2d(x, w, b, padding=1, groups=4)) + u[0] * v[0] }`,
	"twelve a group, 3d, exact": `@bench(N=8, C=1, O=1, H=28, W=28)
		graph g(x: f32[N, 20, H, W, W], w: f32[24, 10, 3, 2, 3], u: f32[C], v: f32[O]) -> (y: f32[N, 24, (H - 1) / 2 + 1, W / 2 + 1, (W - 1) / 2 + 1]) {
		y = conv3d(x, w, stride=2, padding=1, groups=2) + u[0] * v[0] }`,
	"grouped, transposed": `@bench(N=32, C=1, O=1, H=56, W=56)
		graph g(x: f16[N, 64, H, W], w: f16[64, 24, 3, 3], u: f16[C], v: f16[O]) -> (y: f16[N, 48, 2 * H, 2 * W]) {
		y = conv_transpose2d(x, w, stride=2, padding=1, output_padding=1, groups=2) + u[0] * v[0] }`,
}

// phased are transposed convolutions of numbers, large enough for warpgroups and small enough for the simulators:
// their phases have unlike numbers of taps, or places past the end of the result.
var phased = map[string]string{
	"three taps": `@tf32 graph g(x: f32[2, 32, 9, 7], w: f32[32, 64, 3, 3], b: f32[64]) -> (y: f32[2, 64, 19, 15]) {
		y = relu(conv_transpose2d(x, w, b, stride=2)) }`,
	"padded": `graph g(x: bf16[3, 40, 8, 8], w: bf16[40, 64, 3, 5]) -> (y: bf16[3, 64, 15, 16]) {
		y = conv_transpose2d(x, w, stride=2, padding=(1, 2), output_padding=(0, 1)) }`,
	"stride 3": `graph g(x: f16[4, 32, 70], w: f16[32, 128, 7], r: f16[4, 128, 214]) -> (y: f16[4, 128, 214]) {
		y = silu(conv_transpose1d(x, w, stride=3)) + r }`,
	"three dims": `@tf32 graph g(x: f32[2, 32, 3, 5, 5], w: f32[32, 64, 3, 3, 3]) -> (y: f32[2, 64, 6, 11, 10]) {
		y = conv_transpose3d(x, w, stride=2, padding=(1, 0, 1), output_padding=(1, 0, 1)) }`,
	"dilated": `@tf32 graph g(x: f32[1, 32, 9, 7], w: f32[32, 64, 3, 3]) -> (y: f32[1, 64, 29, 23]) {
		y = conv_transpose2d(x, w, stride=3, dilation=2) }`,
	"even, past the end": `@tf32 graph g(x: f32[1, 32, 9, 7], w: f32[32, 64, 4, 4]) -> (y: f32[1, 64, 17, 15]) {
		y = conv_transpose2d(x, w, stride=2, padding=(1, 1), output_padding=(0, 1))[..., :17, :15] }`,
	"exact": `graph g(x: f32[2, 16, 9, 7], w: f32[16, 64, 3, 5], b: f32[64]) -> (y: f32[2, 64, 20, 17]) {
		y = relu(conv_transpose2d(x, w, b, stride=2, output_padding=(1, 0))) }`,
	"exact, odd channels": `graph g(x: f32[3, 5, 19, 17], w: f32[5, 48, 3, 3]) -> (y: f32[3, 48, 39, 35]) {
		y = conv_transpose2d(x, w, stride=2) }`,
	"exact, three dims": `graph g(x: f32[2, 17, 5, 7, 6], w: f32[17, 16, 3, 3, 3]) -> (y: f32[2, 16, 11, 14, 13]) {
		y = conv_transpose3d(x, w, stride=2, padding=(0, 1, 0), output_padding=(0, 1, 0)) }`,
	"places of one residue": `graph g(x: f16[2, 32, 160], w: f16[32, 64, 7], b: f16[64]) -> (y: f16[2, 64, 329]) {
		y = relu(conv_transpose1d(x, w, b, stride=2, padding=1, dilation=2)) }`,
	"blocks": `graph g(x: f16[2, 32, 8, 16], w: f16[32, 48, 2, 2], b: f16[48]) -> (y: f16[2, 48, 16, 32]) {
		y = relu(conv_transpose2d(x, w, b, stride=2)) }`,
	"blocks of four": `graph g(x: bf16[3, 16, 5, 16], w: bf16[16, 24, 2, 4], r: bf16[3, 24, 10, 64]) -> (y: bf16[3, 24, 10, 64]) {
		y = conv_transpose2d(x, w, stride=(2, 4)) + r }`,
	"and its mean": `@tf32 graph g(x: f32[2, 32, 9, 7], w: f32[32, 64, 3, 3]) -> (y: f32[2, 64, 19, 15], m: f32[2, 64]) {
		y = conv_transpose2d(x, w, stride=2)
		m = mean(y, axis=(2, 3)) }`,
}

// phasedInFull are large enough for tiles that warpgroups take in turns; the interpreter takes a minute for each.
var phasedInFull = map[string]string{
	"three taps, in turns": `@tf32 graph g(x: f32[16, 16, 16, 16], w: f32[16, 64, 3, 3], b: f32[64]) -> (y: f32[16, 64, 33, 33]) {
		y = relu(conv_transpose2d(x, w, b, stride=2)) }`,
	"stride 3, many": `graph g(x: f16[4, 32, 300], w: f16[32, 128, 7], r: f16[4, 128, 904]) -> (y: f16[4, 128, 904]) {
		y = silu(conv_transpose1d(x, w, stride=3)) + r }`,
}

// reshapedWindows are convolutions and gradients that read what a norm over groups of channels gives, in its shape.
var reshapedWindows = map[string]string{
	"a gradient of a norm": `graph f(x: bf16[N, 32, 9, 9], w: bf16[32, 32, 3, 3], a: bf16[32], b: bf16[32], r: bf16[N, 32, 9, 9]) -> (l: f32[]) {
		y = silu(group_norm(conv2d(x, w, padding=1), 4, a, b)) + x
		l = sum(f32(y * r)) }
		@bench(N=256) graph d = grad(f)`,
	"read twice": `graph f(x: f16[N, 32, 40], w: f16[32, 32, 3], u: f16[32, 32, 5]) -> (y: f16[N, 32, 40]) {
		h[n, g: 4, s: 320] = tanh(x[n, g * 8 + s / 40, s % 40])
		t[n, c: 32, p: 40] = h[n, c / 8, c % 8 * 40 + p]
		y = conv1d(t, w, padding=1) + conv1d(t, u, padding=2) }
		@bench(N=512) graph d = grad(f)`,
}

// halos are such convolutions whose channels have other places, or are symbols, or which are transposed.
var halos = map[string]string{
	"transposed": `@bench(N=64, D=1, H=56, W=56) graph g(x: f16[N, 16, H, W], w: f16[16, 8, 4, 4], v: f16[D]) -> (y: f16[N, 8, 2 * H, 2 * W]) {
		y = relu(conv_transpose2d(x, w, stride=2, padding=1)) * v[0] }`,
	"transposed, one apart": `@tf32 @bench(N=64, D=1, H=56, W=56) graph g(x: f32[N, 12, H, W], w: f32[12, 20, 3, 3], v: f32[D]) -> (y: f32[N, 20, H + 2, W + 2]) {
		y = conv_transpose2d(x, w) * v[0] }`,
	"transposed, by numbers": `@bench(N=64, D=1, H=1, W=1) graph g(x: f16[N, 16, 21, 19], w: f16[16, 8, 4, 4], v: f16[D, H, W]) -> (y: f16[N, 8, 42, 38]) {
		y = relu(conv_transpose2d(x, w, stride=2, padding=1)) * v[0, 0, 0] }`,
	"transposed, three apart": `@bench(N=64, D=1, H=1, W=1) graph g(x: bf16[N, 24, 13, 17], w: bf16[24, 12, 6, 6], v: bf16[D, H, W]) -> (y: bf16[N, 12, 39, 51]) {
		y = conv_transpose2d(x, w, stride=3, padding=2, output_padding=1) * v[0, 0, 0] }`,
	"four a group": `@bench(N=64, D=1, H=56, W=56) graph g(x: bf16[N, 32, H, W], w: bf16[32, 4, 3, 3], v: bf16[D]) -> (y: bf16[N, 32, H, W]) {
		y = conv2d(x, w, padding=1, groups=8) * v[0] }`,
	"channels of symbols": `@bench(N=64, D=2, H=56, W=56) graph g(x: f16[N, 7 * D, H, W], w: f16[9, 7 * D, 3, 3], r: f16[N, 9, H, W]) -> (y: f16[N, 9, H, W]) {
		y = conv2d(x, w, padding=1) + r }`,
	"taps of one place between": `@bench(N=64, D=1, H=56, W=56) graph g(x: f16[N, 20, H, W], w: f16[9, 20, 4, 4], v: f16[D]) -> (y: f16[N, 9, (H - 1) / 2 + 1, (W - 1) / 2 + 1]) {
		y = conv2d(x, w, stride=2, padding=3, dilation=2) * v[0] }`,
	"taps across lines": `@bench(N=64, D=1, H=56, W=56) graph g(x: bf16[N, 12, H, W], w: bf16[16, 12, 5, 1], v: bf16[D]) -> (y: bf16[N, 16, H, W]) {
		y = conv2d(x, w, padding=(2, 0)) * v[0] }`,
	"3d, in rounds": `@bench(N=4, D=16, H=56, W=56) graph g(x: bf16[N, 32, D, H, W], w: bf16[32, 32, 3, 3, 3], b: bf16[32]) -> (y: bf16[N, 32, D, H, W]) {
		y = conv3d(x, w, b, padding=1) }`,
	"exact, in rounds": `@bench(N=16, D=1, H=56, W=56) graph g(x: f32[N, 37, H, W], w: f32[7, 37, 3, 3], v: f32[D]) -> (y: f32[N, 7, H, W]) {
		y = conv2d(x, w, padding=1) * v[0] }`,
	"exact, computed in front": `@bench(N=64, D=1, H=56, W=56) graph g(x: f32[N, 8, H, W], w: f32[8, 8, 5, 5], v: f32[D]) -> (y: f32[N, 8, (H - 5) / 2 + 1, (W - 5) / 2 + 1]) {
		y = conv2d(exp(-x), w, stride=2) * v[0] }`,
	"exact, transposed": `@bench(N=64, D=1, H=1, W=1) graph g(x: f32[N, 24, 21, 19], w: f32[24, 5, 4, 4], v: f32[D, H, W]) -> (y: f32[N, 5, 42, 38]) {
		y = conv_transpose2d(x, w, stride=2, padding=1) * v[0, 0, 0] }`,
	"exact, 32 results in groups": `@bench(N=64, D=1, H=56, W=56) graph g(x: f32[N, 18, H, W], w: f32[64, 9, 5, 5], v: f32[D]) -> (y: f32[N, 64, H, W]) {
		y = conv2d(x, w, padding=2, groups=2) * v[0] }`,
	"to channels last": `@bench(N=64, D=1, H=56, W=56) graph g(x: f16[N, 10, H, W], w: f16[24, 10, 3, 3], v: f16[D]) -> (y: f32[N, H, W, 24]) {
		y = f32(permute(conv2d(x, w, padding=1), (0, 2, 3, 1))) * f32(v[0]) }`,
}

// windowSizes are N, C, O, H and W: channels that fill an access and that do not, rows that tiles
// divide and that they do not.
var windowSizes = [][]int64{{1, 1, 1, 7, 5}, {2, 3, 40, 9, 8}, {1, 24, 17, 8, 16}}

func windowFamilies() []family {
	const points = 4e6
	phases := maps.Clone(phased)
	maps.Copy(phases, phasedInFull)
	var run []string // all, where nil
	if !inFull() {
		run = slices.Sorted(maps.Keys(phased))
	}
	return []family{
		{
			name: "windows", rows: rowsOf(windowed, func(_, program string) string { return program }),
			symbols: []string{"N", "C", "O", "H", "W"}, sizes: windowSizes,
			on:       []pass{{engine: "cpu", most: points}, {engine: "sm_80", most: points}, {engine: "sm_90a", most: points}, {engine: "gpu"}},
			compile:  []compiling{{archs: []string{"sm_80"}, keep: isWindowed}, {archs: []string{"sm_90a"}, keep: isWindowed}},
			variants: all,
		},
		{
			name: "phases", rows: rowsOf(phases, func(_, program string) string { return program }),
			on:      []pass{{engine: "cpu", rows: run}, {engine: "sm_80", rows: run}, {engine: "sm_90a", rows: run}, {engine: "gpu", rows: run}},
			compile: inTurn(false, "sm_90a", "sm_80"),
		},
		{
			name: "drawn transposed", rows: drawnTransposed(16), sizes: [][]int64{{2, 3, 5, 7}, {1, 2, 1, 12}},
			on: []pass{{engine: "cpu"}, {engine: "sm_90a"}, {engine: "gpu"}},
		},
		{
			name: "drawn gradients of windows", rows: drawnWindowGradients(12), symbols: []string{"N", "C", "O", "H"},
			sizes: [][]int64{{2, 3, 5, 23}, {1, 2, 1, 36}},
			on:    []pass{{engine: "cpu"}, {engine: "sm_90a"}, {engine: "gpu"}},
		},
		{
			name: "drawn gradients of transposed", rows: drawnTransposedGradients(16), sizes: [][]int64{{2}, {9}},
			on: []pass{{engine: "cpu"}, {engine: "sm_90a"}, {engine: "gpu"}},
		},
		{
			name: "reshaped", rows: inGraph("d", rowsOf(reshapedWindows, func(_, program string) string { return program })), sizes: [][]int64{{2}, {9}},
			on: []pass{{engine: "cpu"}, {engine: "sm_80"}, {engine: "sm_90a"}, {engine: "gpu"}},
		},
		{
			name: "unfolded", rows: drawnUnfolded(12), symbols: []string{"N", "H", "W"}, sizes: [][]int64{{2, 9, 11}, {1, 16, 30}},
			on:      []pass{{engine: "cpu"}, {engine: "sm_80"}, {engine: "sm_90a"}, {engine: "gpu"}},
			compile: []compiling{{archs: []string{"sm_80"}, keep: isWindowed}, {archs: []string{"sm_90a"}, keep: isWindowed}},
		},
		{
			name: "points", rows: drawnPoints(12),
			on:      []pass{{engine: "cpu"}, {engine: "sm_80"}, {engine: "sm_90a"}, {engine: "gpu"}},
			compile: inTurn(true, "sm_90a", "sm_80"),
		},
		{
			name: "layouts", rows: drawnLayouts(), sizes: [][]int64{{1}, {3}},
			on:      []pass{{engine: "cpu"}, {engine: "sm_80"}, {engine: "sm_90a"}, {engine: "gpu"}},
			compile: inTurn(true, "sm_90a", "sm_80"),
		},
		{
			name: "strided", rows: drawnStrided(9),
			on:       []pass{{engine: "cpu"}, {engine: "sm_90a"}, {engine: "gpu"}},
			compile:  []compiling{{archs: []string{"sm_90a"}, keep: isWindowed}},
			variants: all,
			planned:  []string{"sm_90a"},
			plan: func(p *ir.Plan) bool {
				return slices.ContainsFunc(p.Kernels, func(k *ir.Kernel) bool {
					return slices.ContainsFunc(k.Variants, func(v *ir.Variant) bool { return v.Strategy == ir.ContractWarpgroup && isWindowed(v) })
				})
			},
		},
		{
			name: "written windows", rows: drawnWritten(12),
			on:      []pass{{engine: "cpu"}, {engine: "sm_80"}, {engine: "sm_90a"}, {engine: "gpu"}},
			compile: inTurn(true, "sm_90a", "sm_80"),
			plan: func(p *ir.Plan) bool {
				return slices.ContainsFunc(p.Kernels, func(k *ir.Kernel) bool { return strings.HasSuffix(k.Name, "_input") }) &&
					!slices.ContainsFunc(p.Kernels, func(k *ir.Kernel) bool { return slices.ContainsFunc(k.Variants, isWindowed) })
			},
		},
		{
			name: "halos", rows: drawnHalos(24), symbols: []string{"N", "D", "H", "W"}, sizes: [][]int64{{2, 3, 5, 70}, {3, 4, 7, 23}},
			on:       []pass{{engine: "cpu"}, {engine: "sm_80"}, {engine: "sm_90a"}, {engine: "gpu"}},
			compile:  []compiling{{archs: []string{"sm_80"}, keep: hasHalo}, {archs: []string{"sm_90a"}, keep: hasHalo}},
			variants: func(_ int, name string) bool { return halos[name] != "" },
		},
	}
}

func hasHalo(v *ir.Variant) bool {
	return v.Contract != nil && v.Contract.B[0].Window != nil && v.Contract.B[0].Window.Halo != nil
}

func isWindowed(v *ir.Variant) bool {
	return v.Contract != nil && (v.Contract.A.Window != nil || v.Contract.A.WindowTiles != nil)
}

// inGraph is rows of the graph of a name.
func inGraph(name string, rows []row) []row {
	for i := range rows {
		rows[i].graph = name
	}
	return rows
}
