package fuse

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// scattersOf is the scatters that a kernel computes.
func scattersOf(k *ir.Kernel) (names []string) {
	for _, v := range k.Members {
		if v.Reduce != nil && form.ScatterIn(v) != nil {
			names = append(names, v.Name)
		}
	}
	slices.Sort(names)
	return names
}

// drawLanes writes two or three scatters by one key of which each has lanes of its own.
func drawLanes(t *rapid.T) string {
	one := func(what string, of ...string) string { return rapid.SampledFrom(of).Draw(t, what) }
	extent := map[string]string{"h": one("H", "H", "3", "1"), "d": one("D", "D", "D", "5")}
	key, where := one("key", "i32", "i64"), one("where", "at[k] == v", "(at[k] == v) && m[k]", "v == at[k]")
	inputs, results, lines := []string{"at: " + key + "[K]", "m: bool[K]", "z: f32[V, " + extent["h"] + ", " + extent["d"] + "]"}, []string{}, []string{}
	for i := range rapid.IntRange(2, 3).Draw(t, "scatters") {
		lanes := strings.Fields(one("lanes", "h d", "d", "h", "", "d h", "h d"))
		dims, axes, at := "", "", ""
		for _, l := range lanes {
			dims, axes, at = dims+", "+extent[l], axes+", "+l+": "+extent[l], at+", "+l
		}
		in, op := one("type", "f32", "bf16", "f64", "i32"), one("reduction", "sum", "sum", "max", "min", "argmax")
		out := in
		if in == "i32" && op == "sum" || op == "argmax" {
			out = "i64"
		}
		inputs, results = append(inputs, fmt.Sprintf("x%d: %s[K%s]", i, in, dims)), append(results, fmt.Sprintf("y%d: %s[V%s]", i, out, dims))
		axes = one("places first", "v: V"+axes, "v: V"+axes, strings.TrimPrefix(axes+", v: V", ", "))
		if !strings.HasPrefix(axes, "v") {
			results[i] = fmt.Sprintf("y%d: %s[%s]", i, out, strings.TrimPrefix(dims+", V", ", "))
		}
		lines = append(lines, fmt.Sprintf("y%d[%s] = %s[k: K where %s] x%d[k%s]", i, axes, op, where, i, at))
	}
	bench := "K=" + one("columns", "262144", "4000") + ", V=" + one("places", "16384", "128", "1000")
	for _, e := range extent {
		if e == "D" || e == "H" {
			bench += ", " + e + "=" + map[string]string{"D": "64", "H": "4"}[e]
		}
	}
	return fmt.Sprintf("@bench(%s) graph g(%s) -> (%s) {\n    %s\n}\n", bench, strings.Join(inputs, ", "), strings.Join(results, ", "), strings.Join(lines, "\n    "))
}

// TestLanesOfOneKey draws scatters by one key with lanes of their own: each kernel is still a scatter, and results are those of the
// program at sizes with no lane too. Some programs share a kernel, and others do not.
func TestLanesOfOneKey(t *testing.T) {
	shared, apart := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		src := drawLanes(t)
		g := parse(t, src)
		p, err := Plan(g, Options{})
		require.NoError(t, err, src)
		most := 0
		for _, k := range p.Kernels {
			if names := scattersOf(k); len(names) > 0 {
				most = max(most, len(names))
				require.True(t, slices.ContainsFunc(k.Variants, func(v *ir.Variant) bool { return v.Scatter != nil }), "%s\n%s", src, ir.PrintKernel(g, k))
			}
		}
		if most > 1 {
			shared++
		} else {
			apart++
		}
		if draws(src, 8) {
			compareAt(t, src, 0, 1, 2, 5)
		}
	})
	assert.Positive(t, shared)
	assert.Positive(t, apart)
}

// sharing says which scatters have one kernel.
var sharing = []struct{ name, src, kernels string }{
	{"sums beside counts", `@bench(K=262144, V=16384, D=64) graph g(z: bool[V], at: i64[K], x: f32[K, D]) -> (y: f32[V, D], n: i64[V]) {
		y[v: V, d: D] = sum[k: K where at[k] == v] x[k, d]
		n = bincount(at, V) }`, "n y"},
	{"chunks of both", `@bench(K=262144, V=128, D=64) graph g(z: bool[V], at: i64[K], x: f32[K, D], w: f32[K]) -> (y: f32[V, D], n: f32[V]) {
		y[v: V, d: D] = sum[k: K where at[k] == v] x[k, d]
		n[v: V] = sum[k: K where at[k] == v] w[k] }`, "n_part y_part"},
	{"chunks of equal lanes", `@bench(K=262144, V=256, D=64) graph g(z: bool[V], at: i64[K], x: f32[K, D], y: f32[K, D]) -> (a: f32[V, D], b: f32[V, D]) {
		a[v: V, d: D] = max[k: K where at[k] == v] x[k, d]
		b[v: V, d: D] = sum[k: K where at[k] == v] y[k, d] }`, "a_part b_part"},
	{"other keys", `@bench(K=262144, V=16384, D=64) graph g(z: bool[V], at: i64[K], bt: i64[K], x: f32[K, D]) -> (y: f32[V, D], n: i64[V]) {
		y[v: V, d: D] = sum[k: K where at[k] == v] x[k, d]
		n = bincount(bt, V) }`, "n_part; y"},
	{"more registers than a thread has", `@bench(K=262144, V=16384, D=64) graph g(z: bool[V], at: i64[K], x: f64[K, D], w: f64[K]) -> (y: f64[V, D], n: f64[V], m: f64[V]) {
		y[v: V, d: D] = sum[k: K where at[k] == v] x[k, d]
		n[v: V] = sum[k: K where at[k] == v] w[k]
		m[v: V] = max[k: K where at[k] == v] w[k] }`, "m_part; n y"},
	{"a costly term", `@bench(K=4194304, V=65536, D=512) graph g(z: bool[V], at: i64[K], x: bf16[K, D], w: f32[K]) -> (y: f32[V, D], n: f32[V]) {
		y[v: V, d: D] = sum[k: K where at[k] == v] f32(x[k, d])
		n[v: V] = sum[k: K where at[k] == v] exp(sin(w[k])) * erf(w[k]) * tanh(w[k]) * log(w[k]) }`, "n_part; y_part"},
	{"one needs the other", `@bench(K=262144, V=16384, D=64) graph g(z: bool[V], at: i64[K], x: f32[K, D], w: f32[K]) -> (y: f32[V, D], n: f32[V]) {
		n[v: V] = sum[k: K where at[k] == v] w[k]
		y[v: V, d: D] = sum[k: K where at[k] == v] x[k, d] / n[at[k]] }`, "n_part; y"},
	{"different axes lacking", `@bench(K=262144, V=16384, H=4, D=32) graph g(z: bool[V], at: i64[K], x: f32[K, H, D], w: f32[K, H]) -> (y: f32[V, H, D], t: f32[V, H], n: i64[V]) {
		y[v: V, h: H, d: D] = sum[k: K where at[k] == v] x[k, h, d]
		t[v: V, h: H] = sum[k: K where at[k] == v] w[k, h]
		n = bincount(at, V) }`, "n; t y"},
}

func TestSharedKernels(t *testing.T) {
	for _, c := range sharing {
		t.Run(c.name, func(t *testing.T) {
			p := planOf(t, c.src)
			var kernels []string
			for _, k := range p.Kernels {
				if names := scattersOf(k); len(names) > 0 {
					kernels = append(kernels, strings.Join(names, " "))
				}
			}
			slices.Sort(kernels)
			assert.Equal(t, c.kernels, strings.Join(kernels, "; "))
		})
	}
}
