package parser

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestDiscard: _ keeps no value, may stand several times, and is neither a value of the graph, nor a symbol, nor warned of.
func TestDiscard(t *testing.T) {
	text := `graph f(x: f32[N], g: f32[N]) -> (y: f32[N]) {
    y, _, _ = three(x, g)
}

fn three(x: T[N], g: T[N]) {
    return x + g, x - g, x * g
}
`
	file, err := Parse("in.fuse", []byte(text), Options{})
	require.NoError(t, err)
	for _, v := range file.Graphs[0].Values {
		assert.NotEqual(t, "_", v.Name)
	}
	formatted, err := Format("in.fuse", []byte(text))
	require.NoError(t, err)
	assert.Equal(t, text, string(formatted))
	analysis := analyze(t, text)
	assert.Empty(t, analysis.Errors)
	for _, s := range analysis.Details().Symbols {
		assert.NotEqual(t, "_", s.Name)
	}
}

// TestDiscardOfState: a state or a result of that name keeps what it is given.
func TestDiscardOfState(t *testing.T) {
	file, err := Parse("in.fuse", []byte("graph f(x: f32[N], state _: f32[N]) -> () {\n    _ = x + 1\n}\n"), Options{})
	require.NoError(t, err)
	assert.NotEmpty(t, file.Graphs[0].Values[2:], "the next value of the state")
}
