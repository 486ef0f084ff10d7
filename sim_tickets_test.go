package fusec

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/runtime/simtest"
)

// TestTicketsForRowsSimulated: clusters of four and of eight that take tickets for their rows, of
// which a block has fewer warps than a power of two: one and two clusters, several rows for each,
// of which blocks have their share in full, in part and none.
func TestTicketsForRowsSimulated(t *testing.T) {
	for _, c := range []struct {
		name, src string
		sizes     []map[string]int64
	}{
		{"moments", "graph g(x: bf16[N, C, L], w: bf16[C], b: bf16[C]) -> (y: bf16[N, C, L]) { y, m, v = batch_norm_train(x, w, b) }",
			[]map[string]int64{{"N": 3, "C": 7, "L": 1272}, {"N": 3, "C": 5, "L": 36864}, {"N": 1, "C": 6, "L": 8}}},
		{"a sum behind a maximum", "graph g(x: bf16[N, M]) -> (y: bf16[N, M]) { p = softmax(f32(x))\n y = bf16(tanh(p * x) + p) }",
			[]map[string]int64{{"N": 7, "M": 3816}, {"N": 5, "M": 20008}}},
	} {
		program, err := CompileSource(Source{Name: "g.fuse", Text: []byte(c.src)}, Options{Arch: "sm_90a"})
		require.NoError(t, err)
		code, err := program.CUDA()
		require.NoError(t, err)
		f := &forcing{graph: program.Graph(), plan: program.Plan(), program: code, known: map[string]*reference{}}
		found := 0
		for j, v := range f.plan.Kernels[0].Variants {
			if s := v.Schedule; !s.Tickets || s.Unroll > 0 || s.Index64 {
				continue
			}
			for _, order := range []simtest.Order{{Races: true}, {Early: true, Backwards: true}} {
				_, dev := openSimulated(t, simtest.Config{Arch: "sm_90a", Multiprocessors: 8, BlocksPerMultiprocessor: 1, Order: order})
				for _, sizes := range c.sizes {
					values := make([]int64, len(code.Symbols))
					for i, name := range code.Symbols {
						values[i] = sizes[name]
					}
					t.Run(fmt.Sprint(c.name, v.Schedule.Cluster, order, sizes), func(t *testing.T) {
						assert.NoError(t, f.compare(t, dev, 0, j, values))
					})
				}
			}
			found++
		}
		assert.Positive(t, found, "%s: no rows by tickets", c.name)
	}
}
