package cpu

import (
	"math"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/num"
)

// TestEveryJobIsDoneOnce, however many goroutines there are, and so is each of a scatter's.
func TestEveryJobIsDoneOnce(t *testing.T) {
	for _, n := range []int64{0, 1, 2, 7, 8, 15, 16, 17, 63, 64, 100, 129, 1000} {
		for _, threads := range []int{1, 2, 3, 8} {
			count := make([]atomic.Int64, n)
			l := (&code{}).launch(nil, threads, new(call))
			l.each(n, func(_ *worker, i int64) { count[i].Add(1) })
			eachOf(n, threads, new(call), func(i int64) { count[i].Add(1) })
			for i := range count {
				require.EqualValues(t, 2, count[i].Load(), "job %d of %d, %d goroutines", i, n, threads)
			}
		}
	}
}

// TestStoppedJobsEnd: no job begins once the caller gave up.
func TestStoppedJobsEnd(t *testing.T) {
	for _, threads := range []int{1, 3} {
		var call call
		var begun atomic.Int64
		job := func() {
			begun.Add(1)
			call.stop.Store(true)
		}
		(&code{}).launch(nil, threads, &call).each(1000, func(*worker, int64) { job() })
		eachOf(1000, threads, &call, func(int64) { job() })
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

// TestElementsAreReadInside: an offset of an element gives that element, and any other what is outside; a store there stores nothing.
func TestElementsAreReadInside(t *testing.T) {
	offsets := []int64{-1, 0, 1, 2, 3, math.MinInt64, math.MaxInt64, 1 << 61}
	const n, outside = 3, 9
	for _, of := range ir.DTypes() {
		src := make([]byte, n*of.Size())
		f32, f64, i64 := make([]float32, len(offsets)), make([]float64, len(offsets)), make([]int64, len(offsets))
		gatherF32(f32, ir.F32, make([]byte, 4*n), offsets, outside)
		if of.IsFloat() && of != ir.F64 {
			gatherF32(f32, of, src, offsets, outside)
		}
		gatherF64(f64, ir.F64, make([]byte, 8*n), offsets, outside)
		gatherInt(i64, ir.I64, make([]byte, 8*n), offsets, outside)
		if !of.IsFloat() {
			gatherInt(i64, of, src, offsets, outside)
		}
		for i, o := range offsets {
			want := map[bool]int64{true: 0, false: outside}[o >= 0 && o < n]
			assert.EqualValues(t, want, f32[i], "%s at %d", of, o)
			assert.EqualValues(t, want, f64[i], "%s at %d", of, o)
			assert.EqualValues(t, want, i64[i], "%s at %d", of, o)
		}
		for i := range offsets { // no store is outside
			f32[i], f64[i], i64[i] = 1, 1, 1
		}
		switch {
		case of == ir.F64:
			scatterF64(src, of, f64, offsets)
		case of.IsFloat():
			scatterF32(src, of, f32, offsets)
		default:
			scatterInt(src, of, i64, offsets)
		}
		for at := range n {
			assert.NotEqual(t, make([]byte, of.Size()), src[at*of.Size():(at+1)*of.Size()], "%s at %d", of, at)
		}
	}
}

// TestScratchOfSorts: the keys, the values with their places, and for each goroutine two buffers of words and places.
func TestScratchOfSorts(t *testing.T) {
	s := &sorter{rows: 3, cols: 10, places: 5, keyType: ir.F32}
	for threads, rows := range map[int]int64{1: 1, 2: 2, 3: 3, 8: 3} {
		assert.EqualValues(t, 3*10*4+3*5*(4+8)+rows*10*2*16, s.scratch(threads), threads)
	}
}

// TestRunsAcrossTheEdge: consecutive elements of which some are outside, at either end.
func TestRunsAcrossTheEdge(t *testing.T) {
	const n, lanes = 10, 6
	src := make([]byte, 4*n)
	for i := range n {
		num.Store(ir.F32, src[4*i:], float64(i+1))
	}
	for from := int64(-lanes - 1); from <= n+1; from++ {
		dst := make([]float32, lanes)
		runOf(&moveF32, dst, src, ir.F32, from, -1)
		for k, have := range dst {
			want := float32(-1)
			if at := from + int64(k); at >= 0 && at < n {
				want = float32(at + 1)
			}
			assert.Equal(t, want, have, "lane %d from %d", k, from)
		}
	}
}

// TestScansAreFound in any section: passes with scans are not cut.
func TestScansAreFound(t *testing.T) {
	whole, scan := &ir.Fold{Prefix: ir.WholeRow}, &ir.Fold{Prefix: ir.Inclusive}
	for _, c := range []struct {
		sections []*ir.Section
		want     bool
	}{
		{nil, false}, {[]*ir.Section{{}}, false}, {[]*ir.Section{{Folds: []*ir.Fold{whole}}}, false},
		{[]*ir.Section{{Folds: []*ir.Fold{scan}}}, true}, {[]*ir.Section{{Folds: []*ir.Fold{whole}}, {Folds: []*ir.Fold{whole, scan}}}, true},
		{[]*ir.Section{{Folds: []*ir.Fold{scan}}, {}}, true},
	} {
		assert.Equal(t, c.want, hasScans(&ir.Variant{Sections: c.sections}), "%d sections", len(c.sections))
	}
}
