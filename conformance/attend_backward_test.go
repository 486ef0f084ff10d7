package conformance

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/parser"
	"github.com/fusec/fusec/runtime/simtest"
)

// chainSizes are B, H, L and S, of which a graph takes those that it has.
var chainSizes = [][]int64{{1, 1, 2, 3}, {2, 1, 5, 130}, {1, 2, 129, 200}, {1, 1, 200, 70}, {1, 2, 7, 0}}

// chainFamilies are the gradients of attention in testdata: no product and no weight of them goes through memory.
func chainFamilies(t testing.TB) []family {
	text := sourceFiles(t, "testdata/chains.fuse")[0].Text
	file, err := parser.Parse("chains.fuse", text, parser.Options{})
	require.NoError(t, err)
	f := family{name: "attend backward", symbols: []string{"B", "H", "L", "S"}, sizes: chainSizes, repeat: true, variants: named("keys_back"),
		plan: streamsBackward, planned: []string{"sm_90a", "sm_80", "sm_89"},
		compile: onAll(true, "sm_90a", "sm_80")}
	for _, arch := range []string{"sm_90a", "sm_80"} {
		f.on = append(f.on, pass{engine: arch, sim: simtest.Config{Order: simtest.Order{Races: true}}})
	}
	for _, g := range file.Graphs {
		if strings.HasSuffix(g.Name, "back") {
			f.rows = append(f.rows, row{name: g.Name, src: string(text), graph: g.Name})
		}
	}
	everywhere := []pass{{engine: "cpu"}, {engine: "sm_80"}, {engine: "sm_90a"}, {engine: "gpu"}}
	return []family{f,
		{name: "projected attention", rows: projectedAttention, repeat: true, plan: keepsScores, planned: []string{"sm_90a", "sm_80"}, on: everywhere},
		{name: "reduced attention", rows: inGraph("g", rowsOf(reducedAttention, reducedProgram)), repeat: true, plan: keepsScores, planned: []string{"sm_90a", "sm_80"},
			sizes: [][]int64{{2, 5}, {1, 130}, {1, 70}}, on: everywhere, compile: inTurn(true, "sm_90a", "sm_80")}}
}

// reducedAttention are losses of attention y behind which not every query, feature or head has a gradient of its own.
var reducedAttention = map[string]string{
	"a sum":                         "sum(f32(y))",
	"a sum over features, weighted": "sum(f32(y) * f32(t[0, 0]))",
	"a sum over queries, weighted":  "sum(f32(y * t[0, 0, :, :1]))",
	"a mean over queries":           "sum(f32(mean(y, axis=2) @ w) * 0.5)",
	"the largest over queries":      "sum(f32(max(y, axis=2) * t[:, :, 0]))",
	"a mean over heads, in f32":     "sum(mean(f32(y), axis=1) * f32(t[:, 0]))",
	"one head":                      "sum(f32(y[:, 1] * t[:, 1]))",
	"a bias of the keys of a head":  "sum(f32(z * t))",
}

func reducedProgram(_, loss string) string {
	return `graph f(q: bf16[B, 2, S, 64], k: bf16[B, 2, S, 64], v: bf16[B, 2, S, 64], t: bf16[B, 2, S, 64], w: bf16[64, 32], b: bf16[B, 2, 1, S]) -> (l: f32[]) {
		y = attention(q, k, v)
		z = attention(q, k, v, bias=b)
		l = ` + loss + ` }
		@bench(B=64, S=1024) graph g = grad(f)`
}

// projectedAttention are gradients of attention among products as short as those of a chain, which are none of its own.
var projectedAttention = []row{
	{name: "a projection behind it", graph: "g", src: `graph f(q: bf16[B, S, 64], k: bf16[B, S, 64], v: bf16[B, S, 64], w: bf16[64, 64], r: bf16[B, S, 64]) -> (l: f32[]) {
		l = sum(f32((attention(q, k, v, causal=true) @ w) * r)) }
		@bench(B=64, S=1024) graph g = grad(f, wrt=[q, k, v, w])`, sizes: [][]int64{{2, 5}, {1, 130}}},
	{name: "one gradient", graph: "g", src: `graph f(q: f16[B, S, 64], k: f16[B, S, 64], v: f16[B, S, 64], w: f16[64, 64], r: f16[B, S, 64]) -> (l: f16[]) {
		y = attention(q, k, v) @ w
		l = f16((sum(f32(y * y)) + sum(f32(r * r))) * 0.001) }
		@bench(B=64, S=1024) graph g = grad(f, wrt=[v], values=true)`, sizes: [][]int64{{2, 5}, {1, 70}}},
	{name: "projections on all sides", graph: "g", src: `graph f(x: bf16[B, S, 64], a: bf16[64, 64], b: bf16[64, 64], c: bf16[64, 64], w: bf16[64, 64], r: bf16[B, S, 64]) -> (l: f32[]) {
		l = sum(f32((attention(x @ a, x @ b, x @ c) @ w + x) * r)) }
		@bench(B=64, S=1024) graph g = grad(f, wrt=[x, a, b, c, w])`, sizes: [][]int64{{2, 5}, {1, 70}}},
	{name: "heads that share keys, in two layers", graph: "g", src: `fn layer(x: T[B, S, 128], a: T[128, 128], b: T[128, 32], c: T[128, 32]) -> T[B, S, 128] {
			q = transpose(reshape(rms_norm(x) @ (a * 0.05), B, S, 4, 32), 1, 2)
			k = transpose(reshape(rms_norm(x) @ (b * 0.05), B, S, 1, 32), 1, 2)
			v = transpose(reshape(rms_norm(x) @ (c * 0.05), B, S, 1, 32), 1, 2)
			return reshape(transpose(attention(q, repeat(k, 4, axis=1), repeat(v, 4, axis=1), causal=true), 1, 2), B, S, 128) + x
		}
		graph f(x: bf16[B, S, 128], a: bf16[128, 128], b: bf16[128, 32], c: bf16[128, 32], w: bf16[128, 128], r: bf16[B, S, 128]) -> (l: f32[]) {
		l = sum(f32((layer(layer(x, a, b, c), a, b, c) @ w) * r)) }
		@bench(B=64, S=1024) graph g = grad(f, wrt=[x, a, b, c, w])`, sizes: [][]int64{{2, 5}, {1, 70}}},
	{name: "scores that are read elsewhere, in another layer", graph: "g", src: `graph f(q: bf16[B, S, 64], k: bf16[B, S, 64], v: bf16[B, S, 64], r: bf16[B, S, 64]) -> (l: f32[], s: bf16[B, S, S]) {
		s = q @ transpose(k, -1, -2)
		y = bf16(softmax(f32(s))) @ v
		z = attention(y, k, v)
		l = sum(f32(z * r)) }
		@bench(B=64, S=1024) graph g = grad(f, wrt=[q, k, v], values=true)`, sizes: [][]int64{{2, 5}, {1, 70}}},
}

// keepsScores reports whether a kernel computes two sums of a chain at once, or one, from products that it computes again.
func keepsScores(p *ir.Plan) bool {
	return slices.ContainsFunc(p.Kernels, func(k *ir.Kernel) bool {
		a := k.Variants[0].Attend
		return a != nil && a.Max == nil
	})
}

// streamsBackward reports whether all products of a plan are parts of streams, of at least three sums.
func streamsBackward(p *ir.Plan) bool {
	chains := 0
	for _, k := range p.Kernels {
		if k.Template == ir.ContractTemplate {
			return false
		}
		if v := k.Variants[0]; v.Attend != nil && v.Attend.Max == nil {
			chains++
			if v.Attend.Also != nil {
				chains++
			}
		}
	}
	return chains >= 3
}
