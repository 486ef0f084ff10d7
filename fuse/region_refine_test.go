package fuse

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// drawGrouped writes a program whose channels (8 of them) are reduced in groups,
// by position, or both, and whose results are read back at each channel: loops
// that one value has whole and another in two parts.
func drawGrouped(t *rapid.T) string {
	var lines []string
	full, n := []string{"x", "z"}, 0
	add := func(format string, args ...any) string {
		n++
		lines = append(lines, fmt.Sprintf("v%d = %s", n, fmt.Sprintf(format, args...)))
		return fmt.Sprintf("v%d", n)
	}
	for range rapid.IntRange(1, 3).Draw(t, "statements") {
		a := rapid.SampledFrom(full).Draw(t, "a")
		groups := rapid.SampledFrom([]int{1, 2, 4, 8}).Draw(t, "groups")
		r := add("reshape(%s, N, %d, %d, M)", a, groups, 8/groups)
		f := rapid.SampledFrom([]string{"mean", "max", "min"}).Draw(t, "reduction")
		axis := rapid.SampledFrom([]string{"(2, 3)", "2", "3", "(1, 3)"}).Draw(t, "axis")
		m := add("%s(%s, axis=%s, keep=true)", f, r, axis)
		o := rapid.SampledFrom([]string{"%s - %s", "tanh(%s * %s)", "exp(-abs(%s - %s))"}).Draw(t, "combination")
		y := add("reshape(%s, N, 8, M)", add(o, r, m))
		if rapid.Bool().Draw(t, "affine") {
			y = add("%s * w[:, none] + %s", y, rapid.SampledFrom(full).Draw(t, "b"))
		}
		if rapid.IntRange(0, 3).Draw(t, "regroup") == 0 { // channels in another order: other groups
			y = add("reshape(transpose(reshape(%s, N, 2, 4, M), 1, 2), N, 8, M)", y)
		}
		full = append(full, y)
	}
	lines = append(lines, "y = "+full[len(full)-1])
	return fmt.Sprintf("graph g(x: f64[N, 8, M], z: f64[N, 8, M], w: f64[8]) -> (y: f64[N, 8, M]) {\n    %s\n}\n",
		strings.Join(lines, "\n    "))
}

// TestPlanIsGraphForGroups compares plans with graphs where loops are split.
func TestPlanIsGraphForGroups(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		src := drawGrouped(t)
		g := parse(t, src)
		p, err := Plan(g, Options{})
		require.NoError(t, err, src)
		sizes := map[string]int64{
			"N": rapid.SampledFrom([]int64{1, 3}).Draw(t, "N"),
			"M": rapid.SampledFrom([]int64{1, 4, 7, 8}).Draw(t, "M"),
		}
		inputs, err := drawInputs(g, sizes, rapid.Uint64().Draw(t, "seed"))
		require.NoError(t, err)
		comparePlan(t, g, p, inputs, sizes, src)
	})
}
