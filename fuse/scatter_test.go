package fuse

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/interp"
)

// scatters are programs whose folds take the columns that go to their row, and what is
// printed of that.
var scatters = []struct{ name, src, want string }{
	{"rows", `graph g(z: bool[V], at: i32[K], x: f32[K, D]) -> (y: f32[V, D]) { y[v: V, d: D] = sum[k: K where at[k] == v] x[k, d] }`,
		"columns go to v = at_2"},
	{"library", `graph g(y0: f16[V, D], at: i64[K], x: f16[K, D]) -> (y: f16[V, D]) { y = index_add(y0, at, x) }`,
		"columns go to i = at_2"},
	{"batched", `graph g(y0: f32[B, V], at: i32[B, K], x: f32[B, K]) -> (y: f32[B, V]) { y = scatter_add(y0, at, x) }`,
		"columns go to i = at_2"},
	{"where", `@bench(K=64) graph g(z: bool[V], at: i32[K], x: f32[K]) -> (y: f32[V]) { y[v: V] = sum[k: K] where(at[k] == v, x[k], 0) }`,
		"columns go to v = at_2"},
	{"cast", `@bench(K=64) graph g(z: bool[V], at: i32[K]) -> (y: f32[V]) { y[v: V] = sum[k: K] f32(at[k] == v) }`,
		"columns go to v = at_2"},
	{"count", `@bench(K=64) graph g(z: bool[V], at: i32[K]) -> (y: i64[V]) { y = bincount(at, dim(z, 0)) }`, "columns go to i = at_2"},
	{"mean", `@bench(K=64) graph g(z: bool[V], at: i32[K], x: f32[K, D]) -> (y: f32[V, D]) {
		s[v: V, d: D] = sum[k: K where at[k] == v] x[k, d]
		n[v: V] = sum[k: K where at[k] == v] f32(1)
		y = s / max(n, 1)[:, none] }`, "columns go to v = at_2"},
	{"more conditions", `graph g(z: bool[V], at: i32[K], m: bool[K], x: f32[K, D]) -> (y: f32[V, D]) {
		y[v: V, d: D] = max[k: K where (at[k] == v) & m[k]] x[k, d] }`, "columns go to v = at_2 where m_2"},
	{"a condition of one fold", `graph g(z: bool[V], at: i32[K], m: bool[K], x: f32[K, D]) -> (y: f32[V, D], s: f32[V, D], i: i64[V, D]) {
		y[v: V, d: D] = max[k: K where (at[k] == v) & m[k]] x[k, d]
		s[v: V, d: D] = sum[k: K where at[k] == v] x[k, d]
		i[v: V, d: D] = argmin[k: K where at[k] == v] x[k, d] }`, "columns go to v = at_2"},
	{"keys of two types", `graph g(y0: f32[V, D], at: i32[K], x: f32[K, D]) -> (y: f32[V, D], i: i64[V, D]) {
		y = index_add(y0, at, x)
		i[v: V, d: D] = argmax[k: K where at[k] == v] x[k, d] }`, "columns go to v = at_2"},
	{"two columns", `graph g(z: bool[V], at: i32[J, K], x: f32[J, K, D]) -> (y: f32[V, D]) {
		y[v: V, d: D] = sum[j: J, k: K where at[j, k] == v] x[j, k, d] }`, "columns go to j = at_2 where " +
		"i * ((J - 1) / max(1, min(528 / (V / 256 + 1), min(J * K / max(1024, V * 2), J)))) * K + i * K + jk < J * K"},
	{"rows in chunks", `@bench(K=65536, V=100, D=64) graph g(y0: f32[V, D], at: i32[K], x: f32[K, D]) -> (y: f32[V, D]) { y = index_add(y0, at, x) }`,
		"columns go to j = at_2 where i * ((K - 1) / max(1, min(528 / (V / 256 + 1), K / max(1024, V * 2)))) + i + j < K"},
	{"edges", `graph g(x: f32[N, D], from: i32[M], to: i32[M], w: f32[M]) -> (y: f32[N, D]) {
		y = index_add(full(0.0, N, D, dtype=f32), to, x[from] * w[:, none]) }`, "columns go to i = to_2"},
	{"computed", `graph g(z: bool[V], at: i32[K], x: f32[K, D]) -> (y: f32[V, D]) {
		y[v: V, d: D] = sum[k: K where at[k] / 2 == v] x[k, d] }`, "columns go to v = at_2 / 2"},
	{"first", `graph g(z: bool[V], at: i32[K], x: f32[K, D]) -> (y: i64[V, D]) {
		y[v: V, d: D] = argmax[k: K where at[k] == v] x[k, d] }`, "columns go to v = at_2"},
	{"counts of chunks", `@bench(K=1048576) graph g(z: bool[V], at: i32[K]) -> (y: i64[V]) { y = bincount(at, dim(z, 0)) }`,
		"columns go to j = at_2 where i * (K / max(1, min(K / 1024 + 1, 1056 / (V / 2048 + 1)))) + i + j < K"},
	{"counts of two ranges in chunks", `@bench(K=65536, V=256) graph g(z: bool[V], at: i32[3, K, 8], w: f32[3, K]) -> (y: f32[3, V], s: f32[3, K]) {
		y[b: 3, v: V] = sum[k: K, l: 8] f32(at[b, k, l] == v)
		s[b, k] = w[b, k] * y[b, 0] }`,
		"columns go to k = at_2 where i * ((K - 1) / max(1, min(1056 / (V / 4096 * 3 + 3), min(K / 128 + 1, K)))) * 8 + i * 8 + kl < K * 8"},
	{"few lanes in chunks", `@bench(D=3, K=1048576, V=512) graph g(z: bool[V], at: i32[K], x: bf16[K, D]) -> (y: bf16[V, D]) {
		y[v: V, d: D] = min[k: K where at[k] == v] x[k, d] }`,
		"columns go to j = at_2 where i * (K / max(1, min(K / 1024 + 1, 1056 / (D * V / 4096 + 1)))) + i + k < K"},
	{"batches in chunks", `@bench(B=2, K=262144) graph g(z: bool[V], at: i32[B, K], x: f32[B, K]) -> (y: f32[B, V]) {
		y[b: B, v: V] = sum[k: K where at[b, k] == v] x[b, k] }`,
		"columns go to k = at_2 where i * (K / max(1, min(K / 1024 + 1, 1056 / (V / 4096 * B + B)))) + i + k < K"},
	{"floats", `graph g(z: bool[V], at: f32[K], x: f32[K, D]) -> (y: f32[V, D]) {
		y[v: V, d: D] = sum[k: K where at[k] == f32(v)] x[k, d] }`, ""},
	{"of the lane", `graph g(z: bool[V], at: i32[K, D], x: f32[K, D], w: f32[D]) -> (y: f32[V, D]) {
		y[v: V, d: D] = sum[k: K where (at[k, d] == v) & (w[d] > f32(v))] x[k, d] }`, ""},
	{"no key", `graph g(z: bool[V], x: f32[K, D]) -> (y: f32[V, D]) { y[v: V, d: D] = sum[k: K where k < v] x[k, d] }`, ""},
}

// TestScatterPlans says which folds are scatters, and that the folds of their bodies are
// those of the program.
func TestScatterPlans(t *testing.T) {
	for _, c := range scatters {
		t.Run(c.name, func(t *testing.T) {
			g := parse(t, c.src)
			p, err := Plan(g, Options{})
			require.NoError(t, err)
			var found []*ir.Variant
			for _, k := range p.Kernels {
				for _, v := range k.Variants {
					if v.Scatter != nil {
						found = append(found, v)
						v.When = nil
					}
				}
			}
			if c.want == "" {
				assert.Empty(t, found)
				return
			}
			require.NotEmpty(t, found)
			for _, line := range strings.Split(ir.PrintPlan(p), "\n") {
				if line, _, _ = strings.Cut(line, " for each of"); strings.Contains(line, "columns go to") {
					assert.Equal(t, c.want, strings.TrimSpace(line))
				}
			}
			compareScatters(t, g, p)
		})
	}
}

// compareScatters runs the bodies of a plan for few and for many columns a row, with keys
// beyond the rows on either side.
func compareScatters(t *testing.T, g *ir.Graph, p *ir.Plan) {
	t.Helper()
	for _, n := range []int64{1, 5, 17} {
		sizes := sizesOf(g, n)
		for _, s := range g.Symbols {
			if s.Name == "K" {
				sizes["K"] = 40
				if n == 5 {
					sizes["K"] = 2100 // three chunks, where there are any
				}
			}
		}
		inputs, err := drawInputs(g, sizes, uint64(n))
		require.NoError(t, err)
		for i, in := range g.Inputs {
			if in.Name == "at" {
				for at := range inputs[i].I {
					inputs[i].I[at] = int64(at*7%23) - 2
				}
			}
		}
		want, err := interp.Run(g, inputs, interp.Options{})
		require.NoError(t, err)
		compareVariants(t, g, p, want, inputs, interp.Options{}, sizes, g.Name)
	}
}

// TestPlacesComeFirst: where places are two ranges that become one, the rows that keys depend on are ahead of them, and a plan in which
// they are not is refused: an engine takes the rows in that order.
func TestPlacesComeFirst(t *testing.T) {
	plan, err := Plan(parse(t, `graph g(at: i64[N, 2], d: f32[N, 2]) -> (s: f32[8, 16]) {
		s[i: 8, k: 16] = sum[n: N where i * 8 + k / 2 == at[n, k % 2]] d[n, k % 2] }`), Options{Device: ir.Devices()[0]})
	require.NoError(t, err)
	scatters := 0
	for _, k := range plan.Kernels {
		for _, v := range k.Variants {
			if s := v.Scatter; s != nil {
				scatters++
				require.Equal(t, append(slices.Clone(s.Batch), s.To), k.Rows[:len(s.Batch)+1])
			}
		}
		if k.Variants[0].Scatter != nil {
			slices.Reverse(k.Rows)
		}
	}
	require.Positive(t, scatters)
	require.ErrorContains(t, ir.VerifyPlan(plan), "the rows that keys depend on and the places do not come first")
}
