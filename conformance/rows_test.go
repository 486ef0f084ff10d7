package conformance

import (
	"fmt"
	"maps"
	"slices"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime/simtest"
)

// prefetchedRows are programs whose blocks go from row to row, the next rows on their way to
// shared memory: rows too long for a block, and rows that sums over them are taken beside.
var prefetchedRows = map[string]struct {
	src   string
	sizes [][]int64
}{
	"softmax": {`graph g(x: %[1]s[N, M]) -> (y: %[1]s[N, M]) { y = softmax(x) }`,
		[][]int64{{1, 131072}, {70, 70016}, {3, 65544}, {2, 262144}}},
	"rms norm": {`graph g(x: %[1]s[N, M], w: %[1]s[M]) -> (y: %[1]s[N, M]) {
		y = %[1]s(wide(x) * rsqrt(mean(wide(x) * x, axis=-1, keep=true) + 1e-6) * w) }`,
		[][]int64{{2, 131072}, {5, 100000}, {140, 33000}}},
	"gradients of a norm": {`graph g(dy: %[1]s[N, M], x: %[1]s[N, M], w: %[1]s[M]) -> (dx: %[1]s[N, M], dw: f32[M], db: %[1]s[M]) {
		h = wide(x) * rsqrt(mean(wide(x) * x, axis=-1, keep=true) + 1e-6)
		g = wide(dy) * w
		dx = %[1]s(g - h * mean(g * h, axis=-1, keep=true))
		dw = sum(wide(dy) * h, axis=0)
		db = sum(dy, axis=0) }`,
		[][]int64{{1, 8192}, {140, 8184}, {700, 2048}, {300, 4104}, {133, 520}, {1500, 264}}},
	"a row's own value beside a sum": {`graph g(x: %[1]s[N, M]) -> (y: %[1]s[N, M], s: f32[M]) {
		y = tanh(x)
		s = sum(wide(x), axis=0) }`, [][]int64{{600, 4096}, {270, 1032}}},
}

// persistentRows are programs whose long rows blocks and clusters hold while the next ones are on
// their way. Sizes are those of blocks, of each cluster, of rows in many and in few runs of
// memory, of shares that end inside a run, and of rows that are no whole vectors.
var persistentRows = []row{
	{name: "batch norm", src: `@bench(N=64, C=256, L=3136) graph g(x: f32[N, C, L], w: f32[C], b: f32[C]) -> (y: f32[N, C, L], m: f32[C], v: f32[C]) {
		y, m, v = batch_norm_train(x, w, b) }`,
		sizes: [][]int64{{1, 2, 20000}, {64, 3, 400}, {33, 2, 1004}, {65, 3, 1028}, {129, 2, 1024}, {4100, 2, 8}, {64, 3, 401}, {0, 3, 8}, {3, 0, 8}, {2, 3, 0}}},
	{name: "batch norm in bf16", src: `@bench(N=64, C=256, L=3136) graph g(x: bf16[N, C, L], w: f32[C]) -> (y: bf16[N, C, L], m: f32[C], v: f32[C]) {
		y, m, v = batch_norm_train(x, w) }`, sizes: [][]int64{{64, 3, 1000}, {65, 2, 3136}, {2100, 3, 16}, {33, 3, 1001}}},
	{name: "group norm in f16", src: `@bench(N=64, H=80, W=80) graph g(x: f16[N, 6, H, W], w: f16[6], b: f16[6]) -> (y: f16[N, 6, H, W]) {
		y = group_norm(x, 2, w, b) }`, sizes: [][]int64{{2, 120, 120}, {1, 160, 200}, {2, 119, 121}}},
	{name: "the norm of a sum", src: `@bench(N=64, C=256, L=1568) graph g(x: f32[N, C, L], r: f32[N, C, L]) -> (y: f32[N, C, L]) {
		y, m, v = batch_norm_train(x + r) }`, sizes: [][]int64{{64, 3, 400}, {17, 4, 1568}, {43, 2, 3136}}},
	{name: "softmax around an axis", src: `@bench(N=64, C=256, L=3136) graph g(x: bf16[N, C, L]) -> (y: bf16[N, C, L]) {
		w = f32(x)
		e = exp(w - max(w, axis=(0, 2), keep=true))
		y = bf16(e / sum(e, axis=(0, 2), keep=true)) }`, sizes: [][]int64{{64, 3, 1000}, {70, 2, 3136}}},
	{name: "tensors of two types", src: `@bench(N=64, C=256, L=1568) graph g(x: bf16[N, C, L], r: f32[N, C, L]) -> (y: f32[N, C, L]) {
		w = f32(x) * r
		e = exp(w - max(w, axis=(0, 2), keep=true))
		y = e / sum(e, axis=(0, 2), keep=true) }`, sizes: [][]int64{{32, 3, 1040}, {9, 3, 2008}}},
	{name: "three axes", src: `@bench(A=8, B=256, C=8, D=1568) graph g(x: f32[A, B, C, D]) -> (y: f32[A, B, C, D]) {
		m, v = moments(x, axis=(0, 2, 3))
		y = (x - m) * rsqrt(v + 1e-5) + x / sum(abs(x), axis=(0, 2, 3), keep=true) }`, sizes: [][]int64{{5, 3, 8, 640}, {3, 2, 12, 2048}}},
	{name: "rows of a slice", src: `@bench(N=2048, M=65536) graph g(x: f32[N, 2 * M]) -> (y: f32[N, M]) { y = softmax(x[:, 0:M]) }`,
		sizes: [][]int64{{2, 20001}, {2, 20002}, {3, 40004}}},
	{name: "gradient of cross entropy in bf16", src: `@bench(N=4096, C=128256) graph g(x: bf16[N, C], at: i64[N]) -> (y: bf16[N, C]) {
		p = softmax(f32(x))
		y = bf16(where(at[:, none] == iota(C), p - 1, p) / N) }`, sizes: [][]int64{{1, 118792}, {1, 131072}}},
	{name: "layer norm", src: `@bench(N=2048, M=131072) graph g(x: f32[N, M], w: f32[M]) -> (y: f32[N, M]) { y = layer_norm(x, w) }`,
		sizes: [][]int64{{2, 33332}, {3, 50000}, {2, 140004}, {1, 262144}}},
}

// ragged are programs of persistent rows, read once and streamed, of one type and of several, beside
// rows that all of them share and rows that are looked up, for lengths that are no whole number of vectors.
var ragged = map[string]string{
	"softmax":    "graph g(x: bf16[N, M]) -> (y: bf16[N, M]) { y = softmax(x) }",
	"layer_norm": "graph g(x: bf16[N, M], w: bf16[M], b: f32[M]) -> (y: bf16[N, M], z: f32[N, M]) { z = layer_norm(f32(x), f32(w), b)\n y = bf16(z) }",
	"sums":       "graph g(x: f32[N, M], w: f16[M]) -> (y: f32[N], z: f32[N]) { y = sum(x * f32(w), axis=1)\n z = max(x, axis=1) }",
	"places":     "graph g(x: f16[N, M]) -> (y: i64[N], z: f16[N, M]) { y = argmax(x, axis=1)\n z = x - max(x, axis=1, keep=true) }",
	"bytes":      "graph g(x: u8[N, M], w: f32[N, M]) -> (y: u8[N, M]) { y = u8(f32(x) - min(f32(x), axis=1, keep=true) + 0 * sum(w, axis=1, keep=true)) }",
	"looked_up":  "graph g(at: i64[N], x: bf16[7, M]) -> (y: bf16[N, M]) { y = softmax(embedding(at, x)) }",
	"doubles":    "graph g(x: f64[N, M]) -> (y: f64[N, M]) { y = x / sum(abs(x), axis=1, keep=true) }",
}

// lowOccupancyRows are kernels of few rows, which read early what their later passes need, of columns and
// of rows, or read rows once; and some that divide positions by sizes of several axes.
var lowOccupancyRows = []row{
	{name: "1", src: "graph g(x: bf16[N, M], w: bf16[M], b: bf16[M]) -> (y: bf16[N, M]) {\n    y = layer_norm(x, w, b)\n}",
		sizes: [][]int64{{5, 256}, {3, 248}, {2, 264}, {2, 250}, {1, 1032}}},
	{name: "2", src: "graph g(x: f32[N, M], w: f32[M]) -> (y: f32[N, M]) {\n    y = rms_norm(x, w)\n}", sizes: [][]int64{{6, 256}, {1, 132}, {2, 260}, {3, 516}}},
	{name: "3", src: "graph g(x: f16[N, M], w: f16[N], v: i8[N]) -> (y: f16[N, M]) {\n    y = rms_norm(x) * w[:, none] + f16(v[:, none])\n}", sizes: [][]int64{{3, 256}, {2, 520}}},
	{name: "4", src: "graph g(x: f64[N, M], w: f64[N]) -> (y: f64[N, M]) {\n    y = x * w[:, none] / sum(x * x, axis=1, keep=true)\n}", sizes: [][]int64{{3, 64}, {2, 130}}},
	{name: "5", src: "graph g(x: f32[N, M]) -> (y: f32[N]) {\n    y = sum(x, axis=1)\n}", sizes: [][]int64{{5, 512}, {3, 516}, {2, 1024}, {4, 100}}},
	{name: "6", src: "graph g(x: i8[N, M], z: i8[N, M]) -> (y: i64[N]) {\n    y = sum(i64(x) * i64(z), axis=1)\n}", sizes: [][]int64{{5, 512}, {2, 1024}}},
	{name: "7", src: "graph g(x: f32[N, C, L], w: f32[C], b: f32[C]) -> (y: f32[N, C, L]) {\n    y, m, v = batch_norm_train(x, w, b)\n}",
		sizes: [][]int64{{3, 5, 36}, {2, 3, 70}, {4, 2, 64}}},
	{name: "8", src: "graph g(x: bf16[A, B, C, D]) -> (y: bf16[C, B, A, D]) {\n    y[c, b, a, d] = x[a, b, c, d]\n}", sizes: [][]int64{{3, 5, 7, 8}, {2, 1, 3, 5}, {1, 9, 4, 24}}},
	{name: "9", src: "graph g(w: f32[N, M]) -> (z: f32[N, M], y: f32[N]) {\n    z[n: N, m: M] = tanh(f32(n * m)) * exp(sin(f32(n) + f32(m))) * erf(f32(m))\n    y[n: N] = sum[m: M] z[n, m]\n}",
		sizes: [][]int64{{3, 512}, {2, 130}}}, // reads nothing
	{name: "10", src: "graph g(x: bf16[N, M]) -> (y: f32[N]) {\n    y = logsumexp(f32(x), axis=1)\n}", sizes: [][]int64{{3, 1024}, {2, 520}, {4, 264}, {5, 256}}},
	{name: "11", src: "graph g(x: f32[N, C], t: i64[N]) -> (y: f32[]) {\n    y = cross_entropy(x, t)\n}", sizes: [][]int64{{5, 1000}, {70, 516}, {2, 64}, {0, 8}}},
	{name: "12", src: "graph g(x: f32[A, B, C, D]) -> (y: f32[B, D]) {\n    y[b, d] = max[a: A, c: C] x[a, b, c, d]\n}", sizes: [][]int64{{3, 5, 7, 8}, {2, 3, 1, 33}}},
}

// short are programs over many short rows, which share warps or have a thread each: read once and
// held, with results of each row and of each element, and with what is read of the row itself.
var short = []row{
	{name: "sums", src: `graph g(x: bf16[N, M], w: f32[M]) -> (y: f32[N], z: f32[N], some: bool[N]) {
		y = sum(f32(x) * w, axis=1)
		z = max(f32(x), axis=1)
		some = any(x > 2, axis=1) }`},
	{name: "softmax", src: `graph g(x: bf16[N, M]) -> (y: bf16[N, M]) { y = softmax(x) }`},
	{name: "logsumexp", src: `graph g(x: f32[N, M]) -> (y: f32[N]) { y = logsumexp(x, axis=1) }`},
	{name: "layer_norm", src: `graph g(x: f32[N, M], r: f32[N, M], w: f32[M], b: f32[M]) -> (y: f32[N, M], s: f32[N, M]) {
		s = x + r
		y = layer_norm(s, w, b) }`},
	{name: "rms_norm", src: `graph g(x: f16[N, M], w: f16[M]) -> (y: f16[N, M]) { y = rms_norm(x, w) }`},
	{name: "scaled by row", src: `graph g(x: f32[N, M], scale: f32[N]) -> (y: f32[N, M], top: f32[N]) {
		top = max(abs(x), axis=1)
		y = x * (scale / (top + 1))[:, none] }`},
	{name: "targets", src: `graph g(x: f32[N, M], at: i64[N]) -> (y: f32[N]) {
		total = logsumexp(x, axis=1)
		y[n: N] = total[n] - x[n, min(at[n], i64(M) - 1)] }`},
	{name: "doubles", src: `graph g(x: f64[N, M]) -> (y: f64[N, M], at: i64[N]) {
		y = x - mean(x, axis=1, keep=true)
		at = argmin(x, axis=1) }`},
	{name: "bytes", src: `graph g(x: i8[N, M]) -> (y: i32[N], m: i8[N]) {
		y = i32(sum(x, axis=1))
		m = max(x, axis=1) }`},
	{name: "two axes", src: `graph g(x: f32[N, K, M]) -> (y: f32[N, K, M]) { y = x - max(x, axis=(1, 2), keep=true) }`},
}

var shortRows = [][2]int64{{1, 5}, {265, 1}, {266, 3}, {301, 7}, {270, 8}, {300, 16}, {265, 17}, {999, 24}, {301, 100}, {267, 33}, {270, 64}, {300, 32}, {700, 2}, {266, 31}, {265, 63}, {300, 127}, {265, 128}, {267, 129}, {271, 200}, {266, 256}}

// rowFamilies are programs over rows: few and many, short and long, of any length.
func rowFamilies() []family {
	lengths := func(all ...int64) (out [][]int64) {
		for _, m := range all {
			out = append(out, []int64{11, m})
		}
		return out
	}
	var shortSizes [][]int64
	for _, s := range shortRows {
		shortSizes = append(shortSizes, []int64{s[0], s[1], 1 + s[1]%3})
	}
	shortPasses := races(shortSizes[:11])
	for i := range shortPasses {
		shortPasses[i].most = 1 << 21
	}
	ahead := family{name: "rows ahead", plan: hasRowsAhead, planned: []string{"sm_90a"}, on: []pass{{engine: "gpu"}}}
	for _, name := range slices.Sorted(maps.Keys(prefetchedRows)) {
		c := prefetchedRows[name]
		for _, dtype := range []ir.DType{ir.F32, ir.BF16} {
			ahead.rows = append(ahead.rows, row{name: fmt.Sprint(name, " ", dtype), src: fmt.Sprintf(c.src, dtype), sizes: c.sizes})
		}
	}
	return []family{ahead,
		{name: "persistent rows", rows: persistentRows, plan: persistentInOneKernel, variants: all,
			on: []pass{{engine: "gpu", most: 1 << 21}, {engine: "cpu", most: 1 << 21}},
			compile: []compiling{{archs: []string{"sm_90a"}, short: true,
				keep: func(v *ir.Variant) bool { return v.Schedule.Stages > 0 && !v.Schedule.Index64 }}}},
		{name: "ragged rows", rows: rowsOf(ragged, verbatim), on: append(races(lengths(33, 257, 1023, 1025, 4095)),
			pass{engine: "gpu", sizes: lengths(17, 33, 100, 129, 257, 513, 1001, 1023, 1025, 2047, 2049, 4095, 4097, 8191, 8193, 16383, 20001)})},
		{name: "low occupancy", rows: lowOccupancyRows, on: append(races(nil), pass{engine: "gpu"})},
		{name: "short rows", rows: short, symbols: []string{"N", "M", "K"}, plan: sharesWarps,
			on: append(shortPasses, pass{engine: "gpu", sizes: shortSizes, most: 1 << 21})},
		{name: "rows in chunks", plan: hasChunks, rows: chunkedRows, on: []pass{
			{engine: "sm_90a", sim: simtest.Config{Multiprocessors: 2, BlocksPerMultiprocessor: 1, Order: simtest.Order{Races: true}}},
			{engine: "sm_90a", sim: simtest.Config{Multiprocessors: 2, BlocksPerMultiprocessor: 1, Order: simtest.Order{Early: true, Backwards: true}},
				rows: []string{"softmax"}},
		}},
	}
}

// chunkedRows are rows that registers and rings hold together, more than two for each block, so that
// a dynamic scheduler gives blocks the others: of one row all its chunks are whole, of the other its last warps
// have none. The first of many equal elements is found in a pass that goes through the chunks of a row
// in another order than theirs.
var chunkedRows = []row{
	{name: "softmax", src: "graph g(x: bf16[N, M]) -> (y: bf16[N, M]) {\n    y = softmax(x)\n}", sizes: [][]int64{{7, 81920}, {9, 66320}}},
	{name: "places", src: `graph g(x: bf16[N, M]) -> (y: bf16[N, M], at: i64[N]) {
		m = max(x, axis=1, keep=true)
		y = x - m
		at = argmax(f32(x) > f32(m) - 3, axis=1) }`, sizes: [][]int64{{7, 81920}}},
}

func hasRowsAhead(p *ir.Plan) bool {
	for _, k := range p.Kernels {
		if slices.ContainsFunc(k.Variants, func(v *ir.Variant) bool { return len(v.Staged) > 0 }) {
			return true
		}
	}
	return false
}

func persistentInOneKernel(p *ir.Plan) bool {
	return len(p.Kernels) == 1 && slices.ContainsFunc(p.Kernels[0].Variants, func(v *ir.Variant) bool {
		return v.Schedule.Mapping == ir.RowMapping && v.Schedule.Stages > 0
	})
}

func hasChunks(p *ir.Plan) bool {
	return len(p.Kernels) == 1 && slices.ContainsFunc(p.Kernels[0].Variants, func(v *ir.Variant) bool { return v.Schedule.RegisterChunks > 0 })
}

// sharesWarps: rows have less than a warp each where they are many.
func sharesWarps(p *ir.Plan) bool {
	threads := map[int]bool{}
	for _, v := range p.Kernels[0].Variants {
		threads[v.Schedule.RowThreads] = true
	}
	return threads[1] && threads[8]
}
