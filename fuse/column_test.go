package fuse

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
)

// TestWindowsAreLoopsInAThread checks which kernels loop over all columns in one thread: windows that lie over each
// other, and few columns, whether a number or a symbol says so.
func TestWindowsAreLoopsInAThread(t *testing.T) {
	depthwise := func(extents string) string {
		return "graph g(x: f32[" + extents + "], w: f32[64, 3, 7]) -> (y: f32[64, 62, 250]) { y[c, p, q] = sum[i: 3, j: 7] x[c, p + i, q + j] * w[c, i, j] }"
	}
	for _, c := range []struct {
		name, src string
		loops     bool // whether a variant has all columns of a row in one thread
	}{
		{"a window of 21", depthwise("64, 64, 256"), true},
		{"columns that no other row reads", `graph g(x: f32[640, 21, 1000]) -> (y: f32[640, 1000]) { y = sum(x, axis=1) }`, false},
		{"few, in a symbol", `@bench(K=8) graph g(x: f32[N, K, 33]) -> (y: f32[N, 33]) { y = sum(x, axis=1) }`, true},
		{"many, in a symbol", `@bench(K=800) graph g(x: f32[N, K, 33]) -> (y: f32[N, 33]) { y = sum(x, axis=1) }`, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := planOf(t, c.src)
			require.Len(t, p.Kernels, 1)
			assert.Equal(t, c.loops, slices.ContainsFunc(p.Kernels[0].Variants, func(v *ir.Variant) bool {
				return v.Schedule.Mapping == ir.FlatMapping && v.Schedule.ColThreads == 0
			}))
		})
	}
}

func TestFewColumnsInASymbol(t *testing.T) {
	compareAtSizes(t, `@bench(K=8) graph g(x: f32[N, K, M]) -> (y: f32[N, M]) { y = sum(x, axis=1) }`)
}

// TestThreadsOfManyTensorsHaveNoVectors: where a point has an element of each of very many tensors, a thread has one of them.
func TestThreadsOfManyTensorsHaveNoVectors(t *testing.T) {
	widest := func(n int) (vector, args int) {
		var in, out, body strings.Builder
		for i := range n {
			fmt.Fprintf(&in, ", x%d: bf16[768]", i)
			fmt.Fprintf(&out, "y%d: bf16[768], ", i)
			fmt.Fprintf(&body, "y%d = x%d * s\n", i, i)
		}
		p, err := Plan(parse(t, fmt.Sprintf("graph g(s: bf16[]%s) -> (%s) {\n%s}", in.String(), strings.TrimSuffix(out.String(), ", "), body.String())),
			Options{Device: ir.Devices()[0]})
		require.NoError(t, err)
		for _, k := range p.Kernels {
			args = max(args, len(k.Args))
			for _, v := range k.Variants {
				vector = max(vector, v.Schedule.Vector)
			}
		}
		return vector, args
	}
	vector, args := widest(16)
	assert.Equal(t, []int{8, 33}, []int{vector, args})
	vector, args = widest(50)
	assert.Equal(t, []int{1, 101}, []int{vector, args})
}
