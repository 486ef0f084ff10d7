package fuse

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
)

// TestThreadsKeepWhatFits: as many vectors as registers hold, halved from what a candidate wants, and one in any case; no block of one cluster is
// called a cluster.
func TestThreadsKeepWhatFits(t *testing.T) {
	for _, threads := range []int{8, warpThreads, 128, 256, 512, 1024} {
		for _, items := range []int{1, 2, 4, 8} {
			for _, vector := range []int{1, 2, 4, 8} {
				for _, words := range []float64{0, 0.25, 1, 2, 3, 7, 8, 16, 100, 1000} {
					for _, cluster := range []int{0, 1, 2, 8} {
						c := rowCandidate{threads: threads, items: items, cluster: cluster}
						wanted, got := c.fit(0, vector), c.fit(words, vector)
						assert.GreaterOrEqual(t, got, 1)
						assert.LessOrEqual(t, got, wanted)
						fits := func(n int) bool { return words*float64(n*vector) <= rowRegisters(threads) }
						assert.True(t, got == 1 || fits(got), "%+v of %v, %d", c, words, vector)
						assert.True(t, got == wanted || !fits(2*got), "%+v of %v, %d", c, words, vector)
						if vector > 1 {
							assert.Equal(t, items, wanted)
						}
						s := c.schedule(words, vector)
						assert.Equal(t, got, s.Items)
						assert.NotEqual(t, 1, s.Cluster)
						assert.Equal(t, ir.RowMapping, s.Mapping)
					}
				}
			}
		}
	}
}

// TestWorkOfRows: work that belongs to a row does not keep its columns from being fetched ahead, however much it is.
func TestWorkOfRows(t *testing.T) {
	for _, of := range []string{
		`fn f(x: T[N, V], at: I[N]) = cross_entropy(f32(x), at)`,
		`fn f(x: T[N, V], at: I[N]) = sum(tanh(tanh(tanh(tanh(tanh(tanh(logsumexp(f32(x), axis=-1))))))) * f32(at))`,
	} {
		p := planOf(t, of+`
graph g(x: bf16[N, V], at: i32[N]) -> (y: f32[], d: bf16[N, V]) {
	y = f(x, at)
	d = grad(f, x, at)
}`)
		rows := func(k *ir.Kernel) bool { return len(k.Cols) > 0 && len(k.Rows) > 0 && k.Cols[0].Extent.String() == "V" }
		at := slices.IndexFunc(p.Kernels, rows)
		require.GreaterOrEqual(t, at, 0, of)
		pipelined := func(v *ir.Variant) bool { return v.Schedule.Mapping == ir.RowMapping && v.Schedule.Stages > 0 }
		assert.True(t, slices.ContainsFunc(p.Kernels[at].Variants, pipelined), of)
	}
}
