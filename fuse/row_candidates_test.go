package fuse

import (
	"testing"

	"github.com/stretchr/testify/assert"

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
