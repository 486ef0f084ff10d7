package fuse

import (
	"math"
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/ir"
)

// A scatter to places that few rows share a key of, one in a histogram, has too little work
// for a list of each place's columns. In HistogramMapping a block holds the running values
// of many places and folds columns into them as it comes by. The columns are cut into
// chunks, so that there are blocks enough.

// Figures of the histogram mapping.
const (
	histogramThreads = 128
	histogramBytes   = 16 << 10 // running values of a block
	histogramMany    = 1 << 18  // rows from which on blocks have twice as many, so that fewer read all keys
	histogramBlocks  = 8        // that fit a multiprocessor beside each other
	histogramLanes   = 31       // rows that share a key, at most; more are better listed
	histogramPlaces  = 128      // below which every row may as well ask every column
	histogramLeast   = 1024     // columns of a chunk
	histogramStep    = 1e-6     // seconds in which a block takes so many, an estimate
	histogramGrid    = ir.ReferenceSMs * histogramBlocks
)

// histograms makes the body for rows few of which share a key.
func (lo *lowering) histograms(sections []*ir.Section) []*ir.Variant {
	s := lo.scatter(sections[0].Folds)
	lanes, to := algebra.Product(s.Lanes(lo.k.Rows)), s.To.Extent
	when := algebra.And(algebra.AtLeastSize(lanes, 1), algebra.AtMostSize(lanes, histogramLanes))
	when = algebra.And(when, algebra.And(algebra.AtLeastSize(to, histogramPlaces), algebra.AtMostSize(to, math.MaxInt32)))
	bytes := 0
	for _, f := range sections[0].Folds {
		bytes += runningBytes(f.Op, f.Result.Type)
	}
	many := algebra.And(when, algebra.AtLeastSize(ir.Simplify(ir.Apply(ir.OpMul, to, lanes), ir.Facts{}), histogramMany))
	tile := func(rows int, when *ir.Expr) []*ir.Variant {
		return lo.aligned(sections, nil, 1, false, func(vector int) (ir.Schedule, *ir.Expr) {
			return ir.Schedule{Mapping: ir.HistogramMapping, Threads: histogramThreads, Vector: vector, TileM: rows}, when
		})
	}
	out := append(tile(2*runningRows(bytes), many), tile(runningRows(bytes), when)...)
	for _, v := range out {
		v.Scatter = lo.scatter(v.Sections[0].Folds)
	}
	return out
}

// runningBytes is the size of a running value: its type, or a word, or a value and where it is.
func runningBytes(op ir.Monoid, t ir.DType) int {
	if op.IsArg() {
		return 2 * ir.I64.Size()
	}
	return max(t.Size(), ir.I32.Size())
}

// runningRows is how many rows a block has whose running values take so many bytes each.
func runningRows(bytes int) int {
	rows := histogramLanes + 1
	for 2*rows*bytes <= histogramBytes {
		rows *= 2
	}
	return rows
}

// splitHistogram cuts a reduction that is a histogram into chunks of its columns; it
// returns the partial results, none where it is no histogram or better left whole.
func splitHistogram(g *ir.Graph, v *ir.Value, sizes map[string]int64) []*ir.Value {
	if v.Reduce == nil || v.Reduce.Op.IsArg() || v.Reduce.Rank != nil || scanOf(v) != nil {
		return nil
	}
	s := scatterIn(v)
	if s == nil {
		return nil
	}
	to, rows, cols := algebra.Estimate(s.To.Extent, sizes), algebra.PointsAt(v.Axes, sizes), algebra.PointsAt(v.Reduce.Ranges, sizes)
	if to < histogramPlaces || rows > histogramLanes*to*algebra.PointsAt(s.Batch, sizes) || rows*cols < scatterWork {
		return nil
	}
	cut := histogramChunks(v, s)
	if !histogramPays(v, s, algebra.Estimate(cut.count, sizes), sizes) {
		return nil
	}
	if v.Reduce.Where == nil { // the chunk's own condition goes beside that of the term
		r := *v.Reduce
		r.Where, v.Body = conditionIn(r.Op, v.Body)
		v.Reduce = &r
	}
	return splitReduction(g, v, cut)
}

// histogramChunks cuts the columns so that chunks and tiles of rows are as many as blocks
// that a large GPU holds at once: partial results take 17 MB at most, whatever the sizes.
func histogramChunks(v *ir.Value, s *ir.Scatter) chunks {
	rows := s.To.Extent
	for _, r := range v.Axes {
		if r != s.To && !slices.Contains(s.Batch, r) {
			rows = ir.Apply(ir.OpMul, rows, r.Extent)
		}
	}
	bytes := runningBytes(v.Reduce.Op, v.Reduce.Op.Accumulator(v.Body.Type))
	tiles, outer := algebra.SomeOf(rows, runningRows(bytes)), v.Reduce.Ranges[0].Extent
	for _, b := range s.Batch {
		tiles = ir.Apply(ir.OpMul, tiles, ir.Apply(ir.OpMax, b.Extent, ir.IntConst(1)))
	}
	parts := ir.Apply(ir.OpFloorDiv, ir.IntConst(histogramGrid), tiles)
	parts = ir.Apply(ir.OpMax, ir.Apply(ir.OpMin, parts, algebra.SomeOf(outer, histogramLeast)), ir.IntConst(1))
	size := ir.Apply(ir.OpAdd, ir.Apply(ir.OpFloorDiv, outer, parts), ir.IntConst(1))
	return chunks{ir.Simplify(size, ir.Facts{}), ir.Simplify(parts, ir.Facts{})}
}

// histogramPays reports whether so many chunks, and a kernel that reads their partial
// results, take less time than one.
func histogramPays(v *ir.Value, s *ir.Scatter, parts float64, sizes map[string]int64) bool {
	on := ir.Devices()[0] // for all, so that results do not depend on the device
	rows, cols := algebra.PointsAt(v.Axes, sizes), algebra.PointsAt(v.Reduce.Ranges, sizes)
	whole := cols / histogramLeast * histogramStep
	moved := 2 * parts * rows * float64(v.Reduce.Op.Accumulator(v.Body.Type).Size())
	return parts > 1 && whole/parts+on.Launch+moved/on.Bandwidth < whole
}
