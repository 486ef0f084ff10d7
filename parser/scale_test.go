package parser

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// longPrograms are programs of so many statements, or sizes, which grow in one way each.
var longPrograms = map[string]func(n int) string{
	"a chain of statements": func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "    v%d = v%d * 0.5 + x\n", i+1, i)
		}
		return fmt.Sprintf("graph g(x: f32[N]) -> (y: f32[N]) {\n    v0 = x\n%s    y = v%d\n}\n", b.String(), n)
	},
	"many sizes": func(n int) string {
		var in, out, b []string
		for i := range n {
			in, out = append(in, fmt.Sprintf("x%d: f32[N%d]", i, i)), append(out, fmt.Sprintf("y%d: f32[N%d]", i, i))
			b = append(b, fmt.Sprintf("    y%d = x%d + 1", i, i))
		}
		return fmt.Sprintf("graph g(%s) -> (%s) {\n%s\n}\n", strings.Join(in, ", "), strings.Join(out, ", "), strings.Join(b, "\n"))
	},
	"many conditions": func(n int) string {
		var in, b []string
		for i := range n {
			in, b = append(in, fmt.Sprintf("x%d: f32[N%d]", i, i)), append(b, fmt.Sprintf("    require(N%d %% 4 == 0, \"fours\")", i))
		}
		return fmt.Sprintf("graph g(%s) -> (y: f32[N0]) {\n%s\n    y = x0\n}\n", strings.Join(in, ", "), strings.Join(b, "\n"))
	},
}

// TestParsingIsLinear: a program of twice the statements or sizes takes about twice the allocations, which are counted, as
// the time depends on what else the machine does.
func TestParsingIsLinear(t *testing.T) {
	for name, program := range longPrograms {
		small, large := mallocsOf(t, program(400)), mallocsOf(t, program(800))
		t.Log(name, small, large)
		assert.Less(t, float64(large), 2.3*float64(small), name)
	}
}

// mallocsOf is how many allocations parsing takes.
func mallocsOf(t *testing.T, text string) uint64 {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	file, err := Parse("in.fuse", []byte(text), Options{})
	require.NoError(t, err)
	_, err = file.Graph("")
	require.NoError(t, err)
	runtime.ReadMemStats(&after)
	return after.Mallocs - before.Mallocs
}
