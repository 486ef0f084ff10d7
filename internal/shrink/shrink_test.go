package shrink

import (
	"iter"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/parser"
)

// long has everything that is to be left out, around one line with tanh.
const long = `# A layer.
import "lib.fuse"

const HALF = 0.5

fn unused(x: T[N]) = x * 2

fn act(x: T[...]) {
    a = x * HALF
    b = tanh(a + 1)
    return b * 3
}

graph other(x: f32[K]) -> (y: f32[K]) { y = doubled(x) }

@strict @bench(N=64, M=32)
graph layer(x: f32[N, M], w: f32[M, 24], c: f32[N], s: f32) -> (y: f32[N, 24], z: f32[N]) {
    require(N > 0, "rows")
    h = doubled(x) @ w # the product
    for i in 0..3 {
        h = h + i
    }
    g = act(h)
    if N > 4 {
        y = softmax(g, axis=-1)
    } else {
        y = g
    }
    z = c * s
}
`

func layer() *Program {
	return &Program{Name: "a.fuse", Text: long, Graph: "layer", Sizes: map[string]int64{"N": 100, "M": 32},
		ReadFile: func(string) ([]byte, error) { return []byte("fn doubled(x: T[...]) = x + x\n"), nil }}
}

// Each injected failure is what a short text still has; all else goes.
func TestSearchKeepsTheFailure(t *testing.T) {
	for _, c := range []struct {
		name  string
		fails func(p *Program) bool
		want  string
	}{
		{"a function", func(p *Program) bool { return strings.Contains(p.Text, "tanh(") },
			"fn act(x: T[...]) {\n    a = x\n    b = tanh(a)\n    return b\n}\n"},
		{"an operation of one output", func(p *Program) bool { return strings.Contains(p.Text, "c * s") },
			"graph layer(c: f32[N], s: f32) -> (z: f32[N]) {\n    z = c * s\n}\n"},
		{"a size", func(p *Program) bool { return p.Sizes["N"] > 36 && strings.Contains(p.Text, "softmax") },
			"softmax("},
		{"an annotation", func(p *Program) bool { return strings.Contains(p.Text, "@strict") }, "@strict\ngraph layer("},
		{"a loop", func(p *Program) bool { return strings.Contains(p.Text, "for ") }, "for i in 0..1 {"},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.True(t, c.fails(layer()))
			small := Search(layer(), 2000, steps, c.fails)
			assert.True(t, c.fails(small))
			assert.NotNil(t, small.right(), small.Text)
			text, err := parser.Format(small.Name, []byte(small.Text))
			require.NoError(t, err)
			assert.Contains(t, string(text), c.want)
			assert.LessOrEqual(t, strings.Count(string(text), "\n"), 9, string(text))
			assert.NotContains(t, small.Text, "unused")
			assert.NotContains(t, small.Text, "other")
			assert.NotContains(t, small.Text, "import")
			t.Log(small.Sizes, "\n"+string(text))
		})
	}
}

func TestSearchStopsAtItsLimit(t *testing.T) {
	calls := 0
	Search(layer(), 7, steps, func(*Program) bool {
		calls++
		return true
	})
	assert.Equal(t, 7, calls)
}

func TestBelow(t *testing.T) {
	assert.Empty(t, Below(1))
	assert.Equal(t, []int64{1}, Below(2))
	assert.Equal(t, []int64{1, 2, 3, 25, 50, 75, 92, 99}, Below(100))
}

func steps(p *Program) iter.Seq[*Program] { return p.Simpler }
