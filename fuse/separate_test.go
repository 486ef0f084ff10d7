package fuse

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/fusec/fusec/ir"
)

// drawLargeWindows writes a reduction over windows of one, two or three axes, of a value that is computed or not, with any stride,
// dilation and border; some have terms that depend on two taps at once.
func drawLargeWindows(t *rapid.T) string {
	one := func(what string, of ...string) string { return rapid.SampledFrom(of).Draw(t, what) }
	at := func(row, tap string) string {
		return fmt.Sprintf(one("place of "+row, "%s + %s - 4", "%s + %s", "%s * 2 + %s - 3", "%s - 2 * %s + 5", "3 - %s + %s"), row, tap)
	}
	places := fmt.Sprintf("n, %s, %s, %s", one("outer", "o", "o", at("o", "k")), at("p", "i"), at("q", "j"))
	op := one("reduction", "max", "min", "sum", "argmax", "prod")
	outside := map[string]string{"max": "-inf", "argmax": "-inf", "min": "inf", "sum": "0", "prod": "1"}[op]
	of := one("tensor", "x", "t")
	term := fmt.Sprintf(one("term", "(%[1]s[%[2]s] else %[3]s)", "(%[1]s[%[2]s] else %[3]s)", "f64(f32(%[1]s[%[2]s] else %[3]s))", "(%[1]s[%[2]s] else 0) * w[i, j]",
		"(%[1]s[%[2]s] else 0) * w[i, 0]", "(%[1]s[%[2]s] else 1) + z[n, q]", "(%[1]s[%[2]s] else %[3]s) * 2"),
		of, places, one("outside", outside, outside, outside, "0", "1", "-inf"))
	where := one("condition", "", "", "", " where i + j < 12", " where p < i")
	third := ""
	if strings.Contains(places, "k") {
		third = ", k: 3"
	}
	return fmt.Sprintf(`@bench(N=4096) graph g(x: f64[N, 2, 11, 12], w: f64[9, 9], z: f64[N, 9]) -> (y: f64[N, 2, 7, 9]) {
    t = -x
    y[n, o: 2, p: 7, q: 9] = f64(%s[i: 9, j: 9%s%s] %s)
}`, op, third, where, term)
}

// TestSeparateWindows compares plans of large windows with their graphs.
func TestSeparateWindows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		src := drawLargeWindows(t)
		g := parse(t, src)
		p, err := Plan(g, Options{})
		require.NoError(t, err, src)
		sizes := map[string]int64{"N": rapid.SampledFrom([]int64{1, 2, 3}).Draw(t, "N")}
		inputs, err := drawInputs(g, sizes, rapid.Uint64().Draw(t, "seed"))
		require.NoError(t, err)
		comparePlan(t, g, p, inputs, sizes, src)
	})
}

// separates reports whether a plan has a reduction along one axis of windows.
func separates(p *ir.Plan) bool {
	return slices.ContainsFunc(p.Kernels, func(k *ir.Kernel) bool {
		return slices.ContainsFunc(k.Members, func(v *ir.Value) bool { return strings.HasSuffix(v.Name, "_across") })
	})
}

// TestSeparatedWindows says which windows have an inner reduction along one axis.
func TestSeparatedWindows(t *testing.T) {
	for _, c := range []struct {
		name, y   string
		separates bool
	}{
		{"pooling", "max_pool2d(x, 9, stride=1, padding=4)", true},
		{"of a computed value", "-max_pool2d(-x, 9, stride=1, padding=4)", true},
		{"means", "avg_pool2d(x, 15, stride=1, padding=7)", true},
		{"dilated", "max_pool2d(x, 9, stride=1, padding=8, dilation=2)", true},
		{"small", "max_pool2d(x, 3, stride=1, padding=1)", false},
		{"side by side", "upsample_nearest2d(max_pool2d(x, 9), 9)", false},
		{"places of the largest", "f32(max_pool2d_indices(x, 9, stride=1, padding=4))", false},
		{"weighted", "conv2d(x, w, padding=4)", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := planOf(t, fmt.Sprintf("@bench(N=4) graph g(x: f32[N, 1, 189, 189], w: f32[1, 1, 9, 9]) -> (y: f32[N, 1, 189, 189]) { y = %s }", c.y))
			require.Equal(t, c.separates, separates(p))
		})
	}
}
