package fuse

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// drawScatters writes a program in which scatters by one, two or no indices meet each other and what is computed from
// them: sums, quotients, casts, reductions along either axis, other shapes, other conditions.
func drawScatters(t *rapid.T) string {
	one := func(what string, of ...string) string { return rapid.SampledFrom(of).Draw(t, what) }
	rows := one("rows", "[V, D]", "[V]")
	lanes, at, own := ", d: D", ", d", ", d"
	if rows == "[V]" {
		lanes, at, own = "", ", 0", ""
	}
	var lines, full []string
	for i := range rapid.IntRange(1, 3).Draw(t, "scatters") {
		key := one("key", "at[k]", "at[k]", "bt[k]", "min(at[k], i32(bt[k]))", "at[(k + 1) % K]", "ct[at[k]]")
		where := fmt.Sprintf(one("condition", "%s == v", "%s == v", "(%s == v) && m[k]", "m[k] && (v == %s)", "k < 3 && (%s == v)", "(%s == v) && (ct[k] == d)"), key)
		if own == "" {
			where = strings.ReplaceAll(where, "ct[k] == d", "ct[k] == 2")
		}
		term := strings.ReplaceAll(one("term", "x[k, d]", "x[k, d] * w[k]", "w[k]", "z[bt[k], d] * x[k, d]"), ", d", at)
		read := one("earlier", "", "", "", fmt.Sprintf(" * f%d[v%s]", i-1, own))
		if i > 0 && read != "" {
			term += read
		}
		op := one("reduction", "sum", "sum", "sum", "max", "min", "argmax")
		value := fmt.Sprintf("%s[k: K where %s] %s", op, where, term)
		if op == "sum" && rapid.Bool().Draw(t, "guarded") {
			value = fmt.Sprintf("sum[k: K] where(%s, %s, 0)", where, term)
		}
		lines = append(lines, fmt.Sprintf("r%d[v: V%s] = %s", i, lanes, value),
			fmt.Sprintf("f%d = clamp(f32(r%[1]d), -9, 9)", i))
		full = append(full, fmt.Sprintf("f%d", i))
	}
	sum := strings.Join(full, one("joint", " + ", " - ", " * ", " + 2 * "))
	results := []string{"y: f32" + rows}
	lines = append(lines, "y = "+one("update", sum, "z0 - 0.1 * ("+sum+")", "f32(bf16("+sum+"))", "where(z0 > 0, "+sum+", z0)"))
	if rows == "[V]" {
		lines = []string{strings.ReplaceAll(strings.Join(lines, "\n    "), "z0", "z0[:, 0]")}
	}
	for _, more := range []struct{ decl, line string }{
		{"total: f32[]", "total = sum(y)"}, {"rowsum: f32[V]", "rowsum = sum(y, axis=-1)"},
		{"every: f32[]", "every[] = sum[k: K] w[k]"}, {"turned: f32[D, V]", "turned = transpose(y) * 2"},
		{"flat: f32[V * D]", "flat = reshape(y, V * D) + 1"}, {"n: i64[V]", "n = bincount(at, V)"},
	} {
		if rapid.IntRange(0, 3).Draw(t, more.decl) == 0 && (rows == "[V, D]" || !strings.ContainsAny(more.decl, "Dr") || more.decl[0] == 'n') {
			results, lines = append(results, more.decl), append(lines, more.line)
		}
	}
	return fmt.Sprintf("graph g(at: i32[K], bt: i64[K], ct: i64[K], m: bool[K], x: f32[K, D], w: f32[K], z: f32[V, D], z0: f32[V, D]) -> (%s) {\n    %s\n}\n",
		strings.Join(results, ", "), strings.Join(lines, "\n    "))
}

// TestScattersStay draws programs of scatters: whatever these are merged with, no kernel looks at every column for each
// row, and results are those of the program.
func TestScattersStay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		src := drawScatters(t)
		g := parse(t, src)
		p, err := Plan(g, Options{})
		require.NoError(t, err, src)
		for _, k := range p.Kernels {
			if slices.ContainsFunc(k.Members, func(v *ir.Value) bool { return form.ScatterIn(v) != nil }) {
				require.True(t, slices.ContainsFunc(k.Variants, func(v *ir.Variant) bool { return v.Scatter != nil }), "%s\n%s", src, ir.PrintKernel(g, k))
			}
		}
		if draws(src, 8) {
			compareAt(t, src, rapid.SampledFrom([]int64{1, 2, 7}).Draw(t, "size"))
		}
	})
}
