package fuse

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/fusec/fusec/fuse/form"
)

// drawFreeRanges writes a scatter whose key depends on some of the ranges that it reduces over, and says whether it leaves ranges
// free along which terms or their conditions differ.
func drawFreeRanges(t *rapid.T) (src string, free bool) {
	one := func(what string, of ...string) string { return rapid.SampledFrom(of).Draw(t, what) }
	key := one("key", "at[k]", "bt[k, l]", "bt[k, l]", "ct[n, l]", "ct[n, l] + at[k]", "at[k] + bt[k, l]")
	term := one("term", "x[n, k, l, d]", "x[n, k, l, d] * w[k]", "x[n, k, l, d] * u[d, l]", "w[k]", "x[n, k, l, d] * z[v]", "x[n, k, l, d] * f32(ct[n, l])")
	where := fmt.Sprintf("(%s == v)", key) + one("condition", "", "", " & m[n]", " & (at[k] > 1)", " & (ct[n, l] < 3)", " & (n != d)")
	of := one("type", "f32", "f32", "bf16", "i32")
	op := one("reduction", "sum", "sum", "max", "min", "argmax")
	body := fmt.Sprintf("%s[n: 8, k: K, l: 5 where %s] %s(%s)", op, where, of, term)
	if op == "sum" && rapid.Bool().Draw(t, "guarded") {
		body = fmt.Sprintf("sum[n: 8, k: K, l: 5] where(%s, %s(%s), 0)", where, of, term)
	}
	src = fmt.Sprintf(`@bench(K=65536) graph g(at: i32[K], bt: i32[K, 5], ct: i32[8, 5], m: bool[8], x: f32[8, K, 5, 3], w: f32[K], u: f32[3, 5],
    z: f32[9]) -> (y: f32[9, 3]) {
    r[v: 9, d: 3] = %s
    y = clamp(f32(r), -99, 99)
}`, body)
	for _, r := range []string{"n", "k", "l"} {
		reads := func(e string) bool {
			return slices.Contains(strings.FieldsFunc(e, func(c rune) bool { return !('a' <= c && c <= 'z') }), r)
		}
		free = free || !reads(key) && reads(term)
	}
	return src, free && op != "argmax" && !strings.Contains(term, "z[v]")
}

// TestReducedBeforeScatters compares plans of scatters that leave ranges free with their graphs, and says that each key is read for what is
// left of them.
func TestReducedBeforeScatters(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		src, free := drawFreeRanges(t)
		g := parse(t, src)
		p, err := Plan(g, Options{})
		require.NoError(t, err, src)
		if free {
			for _, k := range p.Kernels {
				for _, v := range k.Members {
					if s := form.ScatterIn(v); s != nil {
						require.NotEqual(t, 3, len(v.Reduce.Ranges), "%s reduces over all ranges at once:\n%s", v.Name, src)
					}
				}
			}
		}
		sizes := map[string]int64{"K": rapid.SampledFrom([]int64{1, 7, 40}).Draw(t, "K")}
		inputs, err := drawInputs(g, sizes, rapid.Uint64().Draw(t, "seed"))
		require.NoError(t, err)
		comparePlan(t, g, p, inputs, sizes, src)
	})
}
