package fusec

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/runtime/simtest"
)

// TestClustersOfRowsSimulated: clusters of four and of eight that go from row to row, those that
// take tickets, of which a block has fewer warps than a power of two, and those that do not: one
// and two clusters, several rows for each, of which blocks have their share in full, in part and
// none.
func TestClustersOfRowsSimulated(t *testing.T) {
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
		found := map[bool]int{} // by whether they take tickets
		for j, v := range f.plan.Kernels[0].Variants {
			s, orders := v.Schedule, []simtest.Order{{Races: true}}
			if s.Stages == 0 || s.Cluster < 2 || s.Unroll > 0 || s.Index64 {
				continue
			}
			if s.Tickets {
				orders = append(orders, simtest.Order{Early: true, Backwards: true})
			}
			for _, order := range orders {
				_, dev := openSimulated(t, simtest.Config{Arch: "sm_90a", Multiprocessors: 8, BlocksPerMultiprocessor: 1, Order: order})
				for _, sizes := range c.sizes {
					values := make([]int64, len(code.Symbols))
					for i, name := range code.Symbols {
						values[i] = sizes[name]
					}
					t.Run(fmt.Sprint(c.name, s.Tickets, s.Cluster, order, sizes), func(t *testing.T) {
						assert.NoError(t, f.compare(t, dev, 0, j, values))
					})
				}
			}
			found[s.Tickets]++
		}
		assert.Positive(t, found[true], "%s: no rows by tickets", c.name)
		assert.Positive(t, found[false], "%s: no rows in turns", c.name)
	}
}
