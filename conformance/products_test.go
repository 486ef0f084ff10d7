package conformance

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/fusec/fusec/ir"
)

// Products are contractions in every order of their operands, with what may stand
// around them; T is the type of the operands.
var Products = map[string]string{
	"plain":     "(a: T[M, K], b: T[K, N]) -> (y: T[M, N]) { y = a @ b }",
	"bt":        `(a: T[M, K], b: T[N, K]) -> (y: T[M, N]) { y = einsum("mk,nk->mn", a, b) }`,
	"at":        `(a: T[K, M], b: T[K, N]) -> (y: T[M, N]) { y = einsum("km,kn->mn", a, b) }`,
	"at_bt":     `(a: T[K, M], b: T[N, K]) -> (y: T[M, N]) { y = einsum("km,nk->mn", a, b) }`,
	"yt":        `(a: T[M, K], b: T[K, N]) -> (y: T[N, M]) { y = einsum("mk,kn->nm", a, b) }`,
	"wide":      "(a: T[M, K], b: T[K, N]) -> (y: f32[M, N]) { y = f32(a) @ f32(b) }",
	"batch":     `(a: T[3, M, K], b: T[3, K, N]) -> (y: T[3, M, N]) { y = a @ b }`,
	"broadcast": `(a: T[3, M, K], b: T[N, K]) -> (y: T[3, M, N]) { y = einsum("bmk,nk->bmn", a, b) }`,
	"heads":     `(a: T[M, 2, K], b: T[N, 2, K]) -> (y: T[2, M, N]) { y = einsum("mhk,nhk->hmn", a, b) }`,
	"slice":     "(a: T[M, K], b: T[K, N]) -> (y: T[M, N]) { y = a[:, 8:] @ b[8:, :] }",
	"gated":     `(a: T[M, K], b: T[K, N], c: T[K, N]) -> (y: T[M, N]) { y = silu(a @ b) * (a @ c) }`,
	"gated_bt": `(a: T[M, K], b: T[N, K], c: T[N, K], r: T[M, N]) -> (y: T[M, N], z: T[M, N]) {
		y = silu(einsum("mk,nk->mn", a, b)) * einsum("nk,mk->mn", c, a)
		z = r + y
	}`,
	"ffn": `(a: T[M, K], b: T[K, N], bias: T[N], r: T[M, N], s: f32[M]) -> (y: T[M, N], z: f32[M, N]) {
		t = a @ b + bias
		y = gelu(t) + r
		z = f32(t) * unsqueeze(s, 1)
	}`,
	"kept": `(a: T[M, K], b: T[K, N]) -> (y: T[M, N], z: T[M, N]) { y = a @ b
		z = gelu(y) }`,
	"biases": `(a: T[3, M, K], b: T[3, K, N], c: T[3, N], d: T[N]) -> (y: T[3, M, N]) { y = a @ b * d + unsqueeze(c, 1) }`,
}

// productSizes are M, N and K: whole tiles, parts of them, odd sizes that the copy
// engine does not take, no columns, many tiles.
var productSizes = [][]int64{{128, 256, 64}, {129, 264, 72}, {63, 40, 1000}, {33, 520, 16}, {127, 129, 96},
	{129, 65, 33}, {64, 64, 0}, {7, 129, 63}, {1, 1, 1}, {300, 520, 24}}

// MixedProducts have an operand of integers, which tiles of 16-bit floats cannot take as
// memory holds it.
var MixedProducts = map[string]string{
	"right":     "(x: bf16[M, K], w: T[N, K]) -> (y: f32[M, N]) { y[m, n] = sum[k] f32(x[m, k]) * f32(w[n, k]) }",
	"left":      "(x: T[M, K], w: f16[K, N]) -> (y: f32[M, N]) { y[m, n] = sum[k] f32(x[m, k]) * f32(w[k, n]) }",
	"gated":     "(x: bf16[M, K], a: T[K, N], b: bf16[K, N]) -> (y: bf16[M, N]) { y = silu(x @ bf16(a)) * (x @ b) }",
	"epilogue":  "(x: bf16[M, K], w: T[N, K], s: f32[N]) -> (y: bf16[M, N]) { y[m, n] = bf16(sum[k] f32(x[m, k]) * f32(w[n, k]) * s[n]) }",
	"attention": "(q: bf16[2, M, 64], k: T[2, N, 64], v: bf16[2, N, 64], z: bf16[K]) -> (o: bf16[2, M, 64]) { o = attention(q * 0.125, bf16(k) * 0.125, v) + z[0] }",
	"keys":      "(q: bf16[2, M, 64], k: T[2, N, 64], v: bf16[2, N, 64], z: bf16[K]) -> (o: bf16[2, M, 64]) { o = attention(q, bf16(k), v) + z[0] }",
}

// LongSums are products in every order of their operands; r is added in f32.
var LongSums = map[string]string{
	"plain":   "(a: bf16[M, K], b: bf16[K, N]) -> (y: f32[M, N]) { y = f32(a) @ f32(b) }",
	"bt":      "(a: f16[M, K], b: f16[N, K], r: f32[M, N]) -> (y: f32[M, N]) { y[m, n] = (sum[k] f32(a[m, k]) * f32(b[n, k])) * 2 + r[m, n] }",
	"at":      "(a: bf16[K, M], b: bf16[K, N], r: bf16[N]) -> (y: f32[M, N]) { y[m, n] = (sum[k] f32(a[k, m]) * f32(b[k, n])) + f32(r[n]) }",
	"yt":      "(a: bf16[M, K], b: bf16[K, N]) -> (y: f32[N, M]) { y[n, m] = sum[k] f32(a[m, k]) * f32(b[k, n]) }",
	"batched": "(a: bf16[2, M, K], b: bf16[2, N, K]) -> (y: f32[2, M, N]) { y[z, m, n] = sum[k] f32(a[z, m, k]) * f32(b[z, n, k]) }",
}

// columnProducts are products whose results have few columns: a large matrix on the left, in
// every order, with what may stand around them.
var columnProducts = map[string]string{
	"plain":      "(w: bf16[M, K], x: bf16[K, N]) -> (y: bf16[M, N]) { y = w @ x }",
	"x along":    "(w: f16[M, K], x: f16[N, K]) -> (y: f16[M, N]) { y = w @ transpose(x) }",
	"w across":   "(w: bf16[K, M], x: bf16[K, N]) -> (y: bf16[M, N]) { y = transpose(w) @ x }",
	"both":       "(w: f16[K, M], x: f16[N, K]) -> (y: f16[M, N]) { y = einsum(\"km,nk->mn\", w, x) }",
	"f32":        "(w: f32[M, K], x: f32[K, N]) -> (y: f32[M, N]) { y = w @ x }",
	"f64":        "(w: f64[M, K], x: f64[K, N]) -> (y: f64[M, N]) { y = w @ x }",
	"batch":      "(w: bf16[3, M, K], x: bf16[3, K, N]) -> (y: bf16[3, M, N]) { y = w @ x }",
	"broadcast":  "(w: bf16[M, K], x: bf16[3, K, N]) -> (y: bf16[3, M, N]) { y = einsum(\"mk,bkn->bmn\", w, x) }",
	"int8":       "(w: i8[M, K], s: f32[M], x: bf16[K, N]) -> (y: bf16[M, N]) { y[m, n] = bf16(sum[k] f32(w[m, k]) * f32(x[k, n]) * s[m]) }",
	"epilogue":   "(w: bf16[M, K], x: bf16[K, N], b: f32[M], c: bf16[N], r: bf16[M, N]) -> (y: bf16[M, N]) { y = bf16(gelu(f32(w @ x) + b[:, none] + f32(c)) + f32(r)) }",
	"prologue":   "(w: bf16[M, K], x: f32[N, K], s: f32[K]) -> (y: f32[M, N]) { y[m, n] = sum[k] f32(w[m, k]) * silu(x[n, k]) * s[k] }",
	"gated":      "(x: bf16[M, K], a: bf16[K, N], b: bf16[K, N]) -> (y: bf16[M, N]) { y = silu(x @ a) * (x @ b) }",
	"two":        "(w: bf16[M, K], x: bf16[K, N]) -> (y: bf16[M, N], z: f32[N, M]) { y = w @ x; z[n, m] = f32(y[m, n]) * 2 }",
	"vector":     "(w: bf16[M, K], x: bf16[K], z: bf16[N]) -> (y: bf16[M]) { y[m] = sum[k] w[m, k] * x[k] + z[0] }",
	"one column": "(w: bf16[M, K], x: bf16[K, 1], z: bf16[N]) -> (y: bf16[M, 1]) { y = w @ x + z[0] }",
}

// rowScaledProducts are products whose operands' rows are multiplied by what follows from
// reductions of them: their sums are instead.
var rowScaledProducts = map[string]string{
	"rms norm":     `(x: T[M, K], w: T[K, N]) -> (y: T[M, N]) { y = rms_norm(x) @ w }`,
	"on the right": `(x: T[M, K], w: T[N, K]) -> (y: T[M, N]) { y = x @ transpose(rms_norm(w)) }`,
	"two":          `(x: T[M, K], v: T[K, N], w: T[K, N]) -> (y: T[M, N]) { n = rms_norm(x); y = silu(n @ v) * (n @ w) }`,
	"batch": `(x: T[3, M, K], w: T[3, K, N], r: T[3, M, N]) -> (y: T[3, M, N]) {
		y = T(f32(x) / (1 + max(abs(f32(x)), axis=-1, keep=true))) @ w + r }`,
}

// rowProducts are products that wait for folds over the rows of one side, in every
// order of axes. K stands for the columns, a number.
var rowProducts = map[string]string{
	"softmax": `@bench(M=64, N=64) graph g(h: f32[M, K], w: f32[K, N], r: f32[M, N]) -> (y: f32[M, N]) { y = gelu(softmax(h) @ w) + r }`,
	"rms_norm": `@bench(M=64, N=64) graph g(h: f32[M, K], g: f32[K], w: f32[K, N]) -> (y: f32[M, N]) {
		s[m, k] = h[m, k] / sqrt((sum[j: K] h[m, j] * h[m, j]) * 0.01 + 1e-5) * g[k] + 1
		y = s @ w }`,
	"layer_norm": `@bench(M=64, N=64) graph g(h: f32[M, K], g: f32[K], b: f32[K], w: f32[K, N]) -> (y: f32[M, N]) { y = layer_norm(h, g, b) @ w }`,
	"weights transposed": `@bench(M=64, N=64) graph g(h: f32[M, K], w: f32[N, K]) -> (y: f32[M, N]) {
		s = softmax(h)
		y[m, n] = sum[k: K] s[m, k] * w[n, k] }`,
	"result transposed": `@bench(M=64, N=64) graph g(h: f32[M, K], w: f32[K, N], r: f32[N, M]) -> (y: f32[N, M]) {
		s = softmax(h)
		p[n, m] = sum[k: K] s[m, k] * w[k, n]
		y = p * r }`,
	"batched":         `@bench(M=64, N=64) graph g(h: f32[3, M, K], w: f32[3, K, N], c: f32[N]) -> (y: f32[3, M, N]) { y = softmax(h) @ w + c }`,
	"rows of batches": `@bench(M=64, N=64) graph g(h: f32[3, M, K], w: f32[K, N]) -> (y: f32[3, M, N]) { y = softmax(h) @ w }`,
	"rows transposed": `@bench(M=2048, N=64) graph g(h: f32[K, M], w: f32[K, N]) -> (y: f32[M, N]) {
		s = softmax(h, axis=0)
		y[m, n] = sum[k: K] s[k, m] * w[k, n] }`,
	"on the right": `@bench(M=64, N=2048) graph g(w: f32[M, K], h: f32[K, N]) -> (y: f32[M, N]) { y = w @ softmax(h, axis=0) }`,
	"two axes": `@bench(M=64, N=64) graph g(h: f32[M, 2, K], w: f32[2, K, N]) -> (y: f32[M, N]) {
		top[m] = max[i: 2, k: K] h[m, i, k]
		total[m] = sum[i: 2, k: K] exp(h[m, i, k] - top[m])
		y[m, n] = sum[i: 2, k: K] (exp(h[m, i, k] - top[m]) / total[m] + 0.5) * w[i, k, n] }`,
	"masked": `@bench(M=64, N=64) graph g(h: f32[M, K], w: f32[K, N]) -> (y: f32[M, N]) { y = softmax(where(h > 0.25, h, -inf)) @ w }`,
	"weights computed": `@bench(M=64, N=64) graph g(h: f32[M, K], q: i8[K, N], s: f32[N]) -> (y: f32[M, N]) {
		v[k, n] = f32(q[k, n]) + s[n]
		y = softmax(h) @ v }`,
	"place of the largest": `@bench(M=64, N=64) graph g(h: f32[M, K], w: f32[K, N]) -> (y: f32[M, N]) {
		at = argmax(h, axis=1)
		s[m, k] = where(at[m] == k, 1.0, h[m, k] * 0.5)
		y = s @ w }`,
	"scaled after":               `@bench(M=64, N=64) graph g(h: f32[M, K], w: f32[K, N]) -> (y: f32[M, N]) { y = rms_norm(h) @ w }`,
	"scaled after, on the right": `@bench(M=64, N=64) graph g(w: f32[M, K], h: f32[N, K]) -> (y: f32[M, N]) { y = w @ transpose(rms_norm(h)) }`,
	"divided after": `@bench(M=64, N=64) graph g(h: f32[M, K], w: f32[K, N]) -> (y: f32[N, M]) {
		top[m] = max[k: K] h[m, k]
		total[m] = sum[k: K] exp(h[m, k] - top[m])
		p[n, m] = sum[k: K] exp(h[m, k] - top[m]) * w[k, n]
		y[n, m] = p[n, m] / total[m] }`,
	"no folds":          `@bench(M=64, N=64) graph g(h: f32[M, K], w: f32[K, N], r: f32[M, N]) -> (y: f32[M, N]) { y = gelu(h @ w) + r }`,
	"batches, no folds": `@bench(M=64, N=64) graph g(h: f32[3, M, K], w: f32[3, K, N]) -> (y: f32[3, M, N]) { y = h @ w }`,
	"layers": `@bench(M=64) graph g(h: f32[M, K], w: f32[K, K], r: f32[M, K]) -> (y: f32[M, K]) {
		a = gelu(softmax(h) @ w) + r
		b = gelu(softmax(a) @ w) + r
		y = gelu(softmax(b) @ w) + r }`,
}

var columnsName = regexp.MustCompile(`\bK\b`)

// rowProduct is one of them with a number of columns.
func rowProduct(name string, columns int) string {
	return columnsName.ReplaceAllString(rowProducts[name], strconv.Itoa(columns))
}

// rowProductColumns are numbers of columns: whole vectors and not, less than a warp's and
// as many as a block holds.
var rowProductColumns = []int{256, 67, 1000, 31, 255, 64, 257}

// rowProductRows are M and N: whole tiles, parts of them, nothing.
var rowProductRows = [][]int64{{1, 1}, {31, 67}, {64, 64}, {130, 255}, {0, 5}, {5, 0}}

// ReductionEpilogues are reductions of products that are not written: along either side, in
// every order of the operands, one after another, of what follows the product, with
// elements picked, and with batches. None of their intermediates has an element for
// each of the product.
var ReductionEpilogues = map[string]string{
	"cross entropy": `(x: bf16[M, K], w: bf16[K, N], t: i64[M]) -> (y: f32[M]) {
		y = cross_entropy(f32(x) @ f32(w), t * 61 - 5, reduction="none")
	}`,
	"cross entropy bt": `(x: f16[M, K], w: f16[N, K], t: i32[M], b: f16[N]) -> (y: f16[]) {
		y = cross_entropy(einsum("mk,nk->mn", x, w) + b, t * 7, label_smoothing=0.1)
	}`,
	"logsumexp":   "(x: bf16[M, K], w: bf16[K, N]) -> (y: f32[M]) { y = logsumexp(f32(x @ w) * 3, axis=-1) }",
	"squares":     "(x: bf16[M, K], w: bf16[K, N]) -> (y: f32[M]) { y = sum(f32(x @ w) ** 2, axis=-1) }",
	"column max":  "(x: bf16[M, K], w: bf16[K, N]) -> (y: bf16[N]) { y = max(x @ w, axis=0) }",
	"column sums": "(x: f16[K, M], w: f16[N, K], b: f16[M]) -> (y: f32[N]) { y[n] = sum[m: M] gelu(f32(sum[k: K] x[k, m] * w[n, k]) + f32(b[m])) }",
	"mean":        "(x: bf16[M, K], w: bf16[K, N]) -> (y: f32[]) { y = mean(relu(f32(x @ w))) }",
	"several": `(x: bf16[M, K], w: bf16[K, N], s: f32[N]) -> (low: f32[M], high: f32[M], most: f32[M], some: bool[M]) {
		p = f32(x @ w) * s
		low = min(p, axis=-1)
		high = max(abs(p), axis=-1)
		most = sum(exp(p - max(p, axis=-1, keep=true)) * p, axis=-1)
		some[i] = any[j: N] p[i, j] > 9.0
	}`,
	"argmax": "(x: bf16[M, K], w: bf16[K, N]) -> (y: i64[M], z: i64[M]) { p = x @ w; y = argmax(p, axis=-1); z = argmin(p, axis=-1) }",
	"heads":  `(x: bf16[M, 2, K], w: bf16[2, K, N]) -> (y: f32[2, M]) { y = logsumexp(f32(einsum("mhk,hkn->hmn", x, w)), axis=-1) }`,
}

// ReductionEpilogueProgram is one of them as a program, with sizes at which it is planned.
func ReductionEpilogueProgram(name string) string {
	return "@bench(M=4096, N=4096, K=512) graph folds" + ReductionEpilogues[name]
}

// mnk are the symbols of most products.
var mnk = []string{"M", "N", "K"}

// ofType replaces the T of a program.
func ofType(dtype string) func(string, string) string {
	return func(_, program string) string {
		if !strings.HasPrefix(program, "graph ") {
			program = "graph product" + program
		}
		return strings.NewReplacer("T[", dtype+"[", "T(", dtype+"(").Replace(program)
	}
}

// ofTypes are rows of programs in several types.
func ofTypes(programs map[string]string, dtypes ...string) (out []row) {
	for _, dtype := range dtypes {
		for _, r := range rowsOf(programs, ofType(dtype)) {
			r.name += " " + dtype
			out = append(out, r)
		}
	}
	return out
}

// productFamilies are products of matrices, with what may stand around them.
// conditionalProducts sum under conditions of which a part does not depend on what is summed: such a part may keep rows from
// being read that are outside of a tensor.
var conditionalProducts = map[string]string{
	"of data": `(a: bf16[M, K], b: bf16[N, K], s: i32[M], t: i32[N]) -> (y: f32[M, N]) {
		y[i: M, j: N] = sum[k: K where s[i] == t[j]] f32(a[i, k]) * f32(b[j, k]) }`,
	"of places": `(a: f32[M, K], b: f32[K, N]) -> (y: f32[M, N]) {
		y[i: M, j: N] = 1 + (sum[k: K where j <= i] a[i, k] * b[k, j]) }`,
	"of both sides": `(a: f16[M, K], b: f16[N, K], m: bool[M, N]) -> (y: f16[M, N]) {
		y[i: M, j: N] = sum[k: K where m[i, j] && i != j] a[i, k] * b[j, k] }`,
	"of what is outside": `(a: bf16[M, K], b: bf16[K, N]) -> (y: bf16[M, N]) {
		y[i: M, j: N] = sum[k: K where i + 1 < M && 2 <= j] a[i + 1, k] * b[k, j - 2] }`,
}

func productFamilies() []family {
	products := family{name: "products", rows: ofTypes(Products, "bf16", "f16"), symbols: mnk, sizes: productSizes, repeat: true,
		on: []pass{{engine: "gpu"}}, variants: endsIn(" bf16"), compile: []compiling{{archs: []string{"sm_90a"}, rows: endsIn(" bf16")}}}
	for i := range products.rows { // the slice starts at column 8
		if strings.HasPrefix(products.rows[i].name, "slice") {
			products.rows[i].sizes = slices.DeleteFunc(slices.Clone(productSizes), func(s []int64) bool { return s[2] < 16 })
		}
	}
	return []family{products,
		{name: "mixed products", rows: ofTypes(MixedProducts, "i8", "bool"), symbols: mnk,
			sizes:   [][]int64{{70, 136, 64}, {640, 648, 16}, {33, 40, 1000}, {129, 65, 33}},
			on:      []pass{{engine: "gpu"}},
			compile: []compiling{{archs: []string{"sm_90a", "sm_80"}, ends: true, rows: endsIn(" i8"), keep: offsetsOf32}}},
		{name: "products of many sizes", rows: manySizes(), symbols: mnk, fill: Integers(-3, 4), exact: rounded, repeat: true,
			on: []pass{{engine: "gpu", most: 1 << 23}}},
		{name: "products under conditions", rows: rowsOf(conditionalProducts, ofType("")), symbols: mnk,
			plan: func(p *ir.Plan) bool {
				return slices.ContainsFunc(p.Kernels, func(k *ir.Kernel) bool { return k.Template == ir.ContractTemplate })
			},
			sizes: [][]int64{{70, 45, 64}, {33, 40, 100}, {1, 65, 33}, {129, 1, 8}, {5, 7, 0}}, compile: inTurn(true, "sm_90a", "sm_80"),
			on: append(races([][]int64{{70, 45, 64}, {1, 9, 33}, {5, 7, 0}}), pass{engine: "cpu"}, pass{engine: "gpu"})},
		{name: "long sums", rows: rowsOf(LongSums, ofType("")), compile: inTurn(true, "sm_90a"), variants: all}, // the first of which is sliced
		{name: "few columns", rows: columnRows(), symbols: mnk, fill: Integers(-2, 3), exact: rounded, repeat: true,
			on: []pass{{engine: "gpu"}}},
		{name: "row scaled products", rows: ofTypes(rowScaledProducts, "bf16", "f16"), symbols: mnk, fill: Integers(-8, 8), exact: rounded,
			repeat: true, sizes: [][]int64{{300, 264, 520}, {129, 136, 64}, {7, 48, 72}, {65, 33, 35}}, on: []pass{{engine: "gpu"}}},
		{name: "row products", rows: rowProductRun(), symbols: []string{"M", "N"}, sizes: rowProductRows, on: []pass{{engine: "gpu", most: 1 << 22}},
			variants: func(i int, _ string) bool { return i%2 == 0 }},
		{name: "row products compiled", rows: rowProductsToCompile(), plan: isRowProduct, compile: inTurn(true)},
		{name: "reduction epilogues", rows: rowsOf(ReductionEpilogues, func(name, _ string) string { return ReductionEpilogueProgram(name) }), symbols: mnk, repeat: true,
			sizes: [][]int64{{264, 520, 72}, {1, 136, 200}, {129, 257, 33}, {8, 8, 0}}, on: []pass{{engine: "gpu"}}, variants: all,
			compile: inTurn(true, "sm_90a", "sm_90a", "sm_80")},
	}
}

// manySizes are products at sizes around those of tiles, steps and vectors.
func manySizes() []row {
	sizes := []int64{1, 2, 7, 31, 70, 127, 128, 129, 130, 255, 257, 8, 24, 72, 136, 264, 32, 64, 200, 520}
	var list [][]int64
	for i := range 2 * len(sizes) {
		list = append(list, []int64{sizes[i%len(sizes)], sizes[i*7%len(sizes)], sizes[(i*3+i/len(sizes))%len(sizes)]})
	}
	rows := rowsOf(map[string]string{
		"plain":  "graph g(a: bf16[M, K], b: bf16[K, N]) -> (y: bf16[M, N]) { y = a @ b }",
		"ahead":  "graph g(a: bf16[M, K], b: bf16[N, K], s: bf16[M, K]) -> (y: bf16[M, N]) { y = einsum(\"mk,nk->mn\", a * s, b) }",
		"both":   "graph g(a: bf16[K, M], b: bf16[K, N], s: bf16[K]) -> (y: bf16[M, N]) { y = einsum(\"km,kn->mn\", a + 1, b * s[:, none]) }",
		"shared": "graph g(a: bf16[M, K], b: bf16[K, N], c: bf16[K, N]) -> (y: bf16[M, N]) { y = max(a @ b, a @ c) }",
	}, verbatim)
	for i := range rows {
		rows[i].sizes = list
	}
	return rows
}

// columnRows are products with few columns: around the numbers of columns at which kernels change, with
// sides that are vectors and odd ones; where the matrix is read in vectors and x is not, and where
// warpgroups have the few columns on their left.
func columnRows() []row {
	large := map[string][][]int64{"plain": {{1031, 3, 1032}, {1040, 13, 1032}, {1608, 16, 2056}}, "x along": {{1615, 5, 2056}},
		"w across": {{1672, 8, 2056}}}
	rows := rowsOf(columnProducts, ofType(""))
	for i, r := range rows {
		ns := []int64{1, 2, 16}
		if r.name == "plain" || r.name == "x along" {
			ns = []int64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 31, 64}
		}
		for _, n := range ns {
			rows[i].sizes = append(rows[i].sizes, []int64{67, n, 133}, []int64{72, n, 264}, []int64{1, n, 40})
		}
		rows[i].sizes = append(rows[i].sizes, large[r.name]...)
	}
	return rows
}

// rowProductRun are the row products with two numbers of columns each.
func rowProductRun() (out []row) {
	for i, name := range slices.Sorted(maps.Keys(rowProducts)) {
		for turn := range 2 {
			columns := rowProductColumns[(2*i+turn)%len(rowProductColumns)]
			out = append(out, row{name: fmt.Sprint(name, " ", columns), src: rowProduct(name, columns)})
		}
	}
	return out
}

// rowProductsToCompile are products that wait for folds over their rows: aligned, of odd length, and as
// long as a block holds.
func rowProductsToCompile() (out []row) {
	for i, name := range slices.Sorted(maps.Keys(rowProducts)) {
		lengths := []int{[]int{67, 256}[i%2], 1000}
		switch name {
		case "rows transposed", "on the right": // longer folds across rows are split
			lengths = []int{67}
		case "no folds", "batches, no folds": // longer ones are the split-K mapping's
			lengths = []int{67, 256}
		case "two axes": // more than a block holds
			lengths = []int{256}
		}
		for j, columns := range lengths {
			arch := []string{"sm_90a", "sm_80"}[(i/2+j)%2]
			if columns == 1000 {
				arch = "sm_90a"
			}
			out = append(out, row{name: fmt.Sprint(name, " ", columns), src: rowProduct(name, columns), arch: arch})
		}
	}
	return out
}

func isRowProduct(p *ir.Plan) bool {
	return p.Launched()[0].Variants[0].Schedule.Mapping == ir.RowProductMapping
}
