package parser

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// drawSizes writes a program whose sizes are computed in steps, and its lines. The result is declared
// as the steps say, in another form than what they give.
func drawSizes(t *rapid.T) (header string, lines []string) {
	size := "N"
	last := "x"
	for i := range rapid.IntRange(1, 5).Draw(t, "steps") {
		k := rapid.SampledFrom([]int{2, 3, 4, 8}).Draw(t, fmt.Sprint("k", i))
		var text string
		switch rapid.IntRange(0, 7).Draw(t, fmt.Sprint("step", i)) {
		case 0:
			text, size = fmt.Sprintf("max_pool1d(%s, %d)", last, k), fmt.Sprintf("(%s) / %d", size, k)
		case 1:
			text, size = fmt.Sprintf("concat(%s, %[1]s, axis=1)", last), fmt.Sprintf("(%s) * 2", size)
		case 2:
			text, size = fmt.Sprintf("%s[:, ::%d]", last, k), fmt.Sprintf("(%s + %d) / %d", size, k-1, k)
		case 3:
			text = fmt.Sprintf("reshape(reshape(%s, M, %s, 1), M, -1)", last, size)
		case 4:
			text, size = fmt.Sprintf("repeat(%s, %d, axis=1)", last, k), fmt.Sprintf("(%s) * %d", size, k)
		case 5:
			text = fmt.Sprintf("%s + sum(%[1]s, axis=0)", last)
		case 6:
			text = fmt.Sprintf("%s + (%[1]s @ transpose(%[1]s)) @ %[1]s", last)
		case 7:
			text = fmt.Sprintf("softmax(reshape(%s, M, %s))", last, size)
		}
		last = fmt.Sprintf("v%d", i)
		lines = append(lines, fmt.Sprintf("    %s = %s", last, text))
	}
	lines = append(lines, fmt.Sprintf("    y = %s * 2", last))
	return fmt.Sprintf("graph g(x: f32[M, N]) -> (y: f32[M, %s]) {", size), lines
}

// TestConditionsRefuseNothing: a program that is accepted stays so when it says more of its sizes.
func TestConditionsRefuseNothing(t *testing.T) {
	accepted := 0
	rapid.Check(t, func(t *rapid.T) {
		header, lines := drawSizes(t)
		accepts := func(lines []string) (string, error) {
			src := header + "\n" + strings.Join(lines, "\n") + "\n}\n"
			f, err := Parse("test.fuse", []byte(src), Options{})
			if err == nil {
				_, err = f.Graph("")
			}
			return src, err
		}
		if _, err := accepts(lines); err != nil {
			t.Skip("not accepted")
		}
		accepted++
		for i := range rapid.IntRange(1, 3).Draw(t, "conditions") {
			n := rapid.SampledFrom([]int{2, 3, 4, 6, 8, 16, 24}).Draw(t, fmt.Sprint("n", i))
			cond := rapid.SampledFrom([]string{"N %% %d == 0", "M %% %d == 0", "N >= %d", "M * N %% %d == 0"}).Draw(t, fmt.Sprint("condition", i))
			at := rapid.IntRange(0, len(lines)).Draw(t, fmt.Sprint("at", i))
			lines = slices.Insert(lines, at, fmt.Sprintf("    require("+cond+`, "so it is")`, n))
		}
		src, err := accepts(lines)
		require.NoError(t, err, src)
	})
	require.Greater(t, accepted, 10, "most programs are not accepted")
}
