package conformance

import (
	"slices"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime/tensor"
)

// overs are programs that are large at the sizes of @bench, so that a kernel stores over a temporary that it reads: the
// gradient of a loss over scores, of which it reads one out of turn, and rows that several passes read. Scores are integers
// that bf16 holds.
var overs = []row{
	{name: "gradient of a loss", graph: "gradient", src: `@bench(N=16384, V=50304, D=768)
		graph loss(t: bf16[N, D], w: bf16[V, D], next: i32[N]) -> (l: f32[]) { l = cross_entropy(f32(t @ transpose(w, 0, 1)), next) }
		graph gradient = grad(loss, wrt=[t, w], values=true)`, sizes: [][]int64{{3, 40, 8}, {5, 1001, 16}, {2, 9000, 8}, {130, 264, 24}}},
	{name: "of a known size", graph: "gradient", src: `@bench(N=16384)
		graph loss(t: bf16[N, 8], w: bf16[40960, 8], next: i64[N]) -> (l: f32[]) { l = cross_entropy(f32(t @ transpose(w, 0, 1)), next) }
		graph gradient = grad(loss, wrt=[t, w], values=true)`, sizes: [][]int64{{2}}},
	{name: "rows", src: `@bench(N=16384, V=65536, D=1024)
		graph g(t: bf16[N, D], w: bf16[D, V], b: bf16[V]) -> (y: bf16[N, D]) {
		y = bf16(softmax(f32(t @ w + b))) @ transpose(w, 0, 1) }`, sizes: [][]int64{{3, 40, 8}, {5, 1001, 16}, {2, 9000, 8}}},
	{name: "between orders", src: `@bench(N=16384, V=65536)
		graph g(x: f16[N, V], next: i32[N]) -> (y: f16[N, V], l: f32[N]) {
		p = f32(sort(x, axis=1))
		m = max(p, axis=1)
		s = sum(exp(p - m[:, none]), axis=1)
		l[i] = m[i] + log(s[i]) - where(0 <= next[i] && next[i] < V, p[i, next[i]], 0.0)
		y = sort(f16(exp(p - m[:, none]) / s[:, none] - where(next[:, none] == iota(V), 1.0, 0.0)), axis=1) }`,
		sizes: [][]int64{{3, 40}, {5, 1001}, {70, 264}}},
}

func overFamilies() []family {
	return []family{{name: "temporaries over each other", rows: overs, plan: hasOver, variants: named("between orders"), fill: ones,
		on: append(races(nil), pass{engine: "gpu"}, pass{engine: "cpu"})}}
}

func hasOver(p *ir.Plan) bool {
	return slices.ContainsFunc(p.Buffers, func(b *ir.Buffer) bool { return b.Over != nil })
}

// ones is a Fill of floats that are -1, 0 or 1, and of integers from 0 to 47.
func ones(v *ir.Value, place int, shape []int) (*tensor.Tensor, error) {
	if !v.Type.IsFloat() {
		return Integers(0, 48)(v, place, shape)
	}
	return Integers(-1, 2)(v, place, shape)
}
