package explain_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/fuse/explain"
)

// TestCopiesAreNamed: of a kernel without operations it is said what is copied, in which order, and what reads the copy.
func TestCopiesAreNamed(t *testing.T) {
	x := Explain(t, "@tf32 graph g(x: f32[32, 64, 30, 30], w: f32[64, 64, 3, 3]) -> (y: f32[32, 64, 28, 28]) {\n    y = conv2d(x, w)\n}\n", explain.Options{})
	require.Len(t, x.Kernels, 3)
	for i, of := range []string{"w", "x"} {
		c := x.Kernels[i].Copies
		require.NotNil(t, c)
		assert.Equal(t, []string{of}, c.Of)
		assert.Equal(t, "channels last", c.Layout)
		assert.True(t, c.Inserted)
		assert.Equal(t, 2, c.Span.Start.Line)
	}
	assert.Nil(t, x.Kernels[2].Copies)
}

// TestCopyOfTheProgram: a copy that the program says is where it says it.
func TestCopyOfTheProgram(t *testing.T) {
	x := Explain(t, "graph f(x: f32[N, M]) -> (y: f32[M, N]) {\n    y = transpose(x)\n}\n", explain.Options{})
	require.Len(t, x.Kernels, 1)
	c := x.Kernels[0].Copies
	require.NotNil(t, c)
	assert.Equal(t, []string{"x"}, c.Of)
	assert.Equal(t, "transposed", c.Layout)
	assert.False(t, c.Inserted)
	assert.Equal(t, 2, c.Span.Start.Line)
}
