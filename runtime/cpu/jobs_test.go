package cpu

import (
	"math"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
)

// TestEveryJobIsDoneOnce, however many goroutines there are, and so is each of a scatter's.
func TestEveryJobIsDoneOnce(t *testing.T) {
	for _, n := range []int64{0, 1, 2, 7, 8, 15, 16, 17, 63, 64, 100, 129, 1000} {
		for _, threads := range []int{1, 2, 3, 8} {
			count := make([]atomic.Int64, n)
			l := (&code{}).launch(nil, threads, new(atomic.Bool))
			l.each(n, func(_ *worker, i int64) { count[i].Add(1) })
			eachOf(n, threads, new(atomic.Bool), func(i int64) { count[i].Add(1) })
			for i := range count {
				require.EqualValues(t, 2, count[i].Load(), "job %d of %d, %d goroutines", i, n, threads)
			}
		}
	}
}

// TestStoppedJobsEnd: no job begins once the caller gave up.
func TestStoppedJobsEnd(t *testing.T) {
	for _, threads := range []int{1, 3} {
		var stop atomic.Bool
		var begun atomic.Int64
		job := func() {
			begun.Add(1)
			stop.Store(true)
		}
		(&code{}).launch(nil, threads, &stop).each(1000, func(*worker, int64) { job() })
		eachOf(1000, threads, &stop, func(int64) { job() })
		assert.LessOrEqual(t, begun.Load(), int64(threads))
	}
}

// TestChunksOfPasses: only a long pass of few jobs is split, into parts of equal length but the last, of at least so many
// elements and at most so many parts.
func TestChunksOfPasses(t *testing.T) {
	for _, tile := range []int64{1, 8, 1024, 1 << 17} {
		for _, items := range []int64{1, 63, 64, 1000} {
			for _, steps := range []int64{0, 1, 2, 3, 127, 128, 129, 255, 256, 257, 511, 512, 513, 1 << 16, 1<<17 - 1, 1 << 17, 1 << 24, 1<<24 + 1, 1 << 30} {
				g := &gen{code: &code{tile: tile, items: items, steps: steps}}
				assert.Equal(t, max(steps, 1), g.chunkSteps(false), "what does not pass over columns")
				chunk, least := g.chunkSteps(true), max(1, 1<<16/tile)
				if items >= 64 || steps < 2*least || steps < 2 {
					assert.Equal(t, max(steps, 1), chunk)
					continue
				}
				want := least // the shortest of which there are not too many
				for (steps+want-1)/want > 256 {
					want = max(want+1, steps/256)
				}
				assert.Equal(t, want, chunk, "%d steps of %d, %d jobs", steps, tile, items)
			}
		}
	}
}

// TestScratchOfPasses: what workers keep, and a part of each fold for each chunk, the last one too.
func TestScratchOfPasses(t *testing.T) {
	c := &code{tile: 16, items: 3, steps: 100, chunk: 100, kept: make([]class, 2), folds: make([]*fold, 5)}
	whole := c.scratch(4)
	assert.EqualValues(t, 4*2*100*16*8, whole)
	for chunk, parts := range map[int64]int64{99: 2, 51: 2, 50: 2, 49: 3, 1: 100} {
		c.chunk = chunk
		assert.Equal(t, whole+3*parts*5*64, c.scratch(4), chunk)
	}
}

// TestPoints of ranges, up to as many as there are numbers.
func TestPoints(t *testing.T) {
	extents := func(of ...int64) (out []*ir.Range) {
		for _, n := range of {
			out = append(out, &ir.Range{Extent: ir.IntConst(n)})
		}
		return out
	}
	for _, test := range []struct {
		of   []int64
		want int64
		ok   bool
	}{
		{nil, 1, true}, {[]int64{3, 4}, 12, true}, {[]int64{0}, 0, true}, {[]int64{5, 0}, 0, true}, {[]int64{-1}, 0, false},
		{[]int64{1 << 31, 1 << 31}, 1 << 62, true}, {[]int64{1 << 31, 1<<31 + 1}, 0, false}, {[]int64{1 << 62}, 1 << 62, true},
		{[]int64{1<<62 + 1}, 0, false}, {[]int64{0, math.MaxInt64}, 0, true},
	} {
		n, ok := points(extents(test.of...), nil)
		assert.Equal(t, test.ok, ok, test.of)
		assert.Equal(t, test.want, n, test.of)
	}
}
