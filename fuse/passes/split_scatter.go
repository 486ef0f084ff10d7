package passes

import (
	"math"
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/forecast"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// splitScatter cuts the columns of a scatter into chunks, and returns the partial results; none where v is
// no scatter or should stay whole.
func splitScatter(g *ir.Graph, v *ir.Value, sizes map[string]int64) []*ir.Value {
	if v.Reduce == nil || v.Reduce.Op.IsArg() || v.Reduce.Rank != nil || form.ScanOf(v) != nil {
		return nil
	}
	s := form.ScatterIn(v)
	if s == nil {
		return nil
	}
	to, rows, cols := algebra.Estimate(s.To.Extent, sizes), algebra.PointsAt(v.Axes, sizes), algebra.PointsAt(v.Reduce.Ranges, sizes)
	if rows*cols < forecast.ScatterWork {
		return nil
	}
	var cut chunks
	var pays bool
	axes := v.Axes
	if rows > forecast.HistogramLanes*to*algebra.PointsAt(s.Batch, sizes) {
		cut = scatterChunks(v, s)
		pays = scatterPays(v, s, algebra.Estimate(cut.count, sizes), sizes)
		axes = placesFirst(v, s)
	} else if to >= forecast.HistogramPlaces {
		cut = histogramChunks(v, s)
		pays = histogramPays(v, s, algebra.Estimate(cut.count, sizes), sizes)
	}
	if !pays {
		return nil
	}
	if v.Reduce.Where == nil { // the condition of the chunk is joined to that of the term
		r := *v.Reduce
		r.Where, v.Body = form.ConditionIn(r.Op, v.Body)
		v.Reduce = &r
	}
	return splitInOrder(g, v, cut, axes)
}

// histogramChunks cuts the columns so that the chunks, times the tiles of rows, are as many as the blocks
// that a large GPU runs at once. Partial results then take 17 MB at most, whatever the sizes.
func histogramChunks(v *ir.Value, s *ir.Scatter) chunks {
	rows := s.To.Extent
	for _, r := range v.Axes {
		if r != s.To && !slices.Contains(s.Batch, r) {
			rows = ir.Apply(ir.OpMul, rows, r.Extent)
		}
	}
	bytes := forecast.RunningBytes(v.Reduce.Op, v.Reduce.Op.Accumulator(v.Body.Type))
	tiles, outer := algebra.SomeOf(rows, forecast.RunningRows(bytes)), v.Reduce.Ranges[0].Extent
	for _, b := range s.Batch {
		tiles = ir.Apply(ir.OpMul, tiles, ir.Apply(ir.OpMax, b.Extent, ir.IntConst(1)))
	}
	parts, most, last := ir.Apply(ir.OpFloorDiv, ir.IntConst(forecast.HistogramGrid), tiles), algebra.SomeOf(outer, forecast.HistogramLeast), outer
	if len(v.Reduce.Ranges) > 1 { // a chunk may be few points of the outermost range, with many columns each
		columns := algebra.SomeOf(algebra.Product(v.Reduce.Ranges), forecast.HistogramLeast)
		most, last = ir.Apply(ir.OpMin, outer, columns), ir.Apply(ir.OpSub, outer, ir.IntConst(1))
	}
	parts = ir.Apply(ir.OpMax, ir.Apply(ir.OpMin, parts, most), ir.IntConst(1))
	size := ir.Apply(ir.OpAdd, ir.Apply(ir.OpFloorDiv, last, parts), ir.IntConst(1))
	return chunks{ir.Simplify(size, ir.Facts{}), ir.Simplify(parts, ir.Facts{})}
}

// histogramPays reports whether parts chunks, and a kernel that reads their partial results, take less
// time than one kernel, whatever its mapping.
func histogramPays(v *ir.Value, s *ir.Scatter, parts float64, sizes map[string]int64) bool {
	one := scatterSizes(v, s)
	bytes := forecast.RunningBytes(v.Reduce.Op, v.Reduce.Op.Accumulator(v.Body.Type))
	tile := forecast.RunningTile(bytes, algebra.Estimate(one.To, sizes)*algebra.Estimate(one.Lanes, sizes))
	whole := min(wholeTime(one, sizes), secondsAt(one, one.Histogram(tile), sizes))
	chunk := scatterChunk(one, parts, sizes)
	return parts > 1 && secondsAt(chunk, chunk.Histogram(tile), sizes)+partialTime(v, parts, sizes) < whole
}

// scatterSizes is what estimates of a scatter go by.
func scatterSizes(v *ir.Value, s *ir.Scatter) forecast.Scatter {
	lanes := slices.DeleteFunc(slices.Clone(v.Axes), func(r *ir.Range) bool { return r == s.To || slices.Contains(s.Batch, r) })
	return forecast.Scatter{Batch: algebra.Product(s.Batch), To: s.To.Extent, Lanes: algebra.Product(lanes), Columns: algebra.Product(v.Reduce.Ranges)}
}

// scatterChunk is a scatter with its columns cut into so many parts.
func scatterChunk(s forecast.Scatter, parts float64, sizes map[string]int64) forecast.Scatter {
	s.Batch = ir.Apply(ir.OpMul, ir.IntConst(int64(parts)), s.Batch)
	s.Columns = ir.IntConst(int64(math.Ceil(algebra.Estimate(s.Columns, sizes) / parts)))
	return s
}

// secondsAt is the time of a scatter in which a column takes so many picoseconds.
func secondsAt(s forecast.Scatter, column *ir.Expr, sizes map[string]int64) float64 {
	return forecast.Seconds(algebra.Estimate(s.Columns, sizes), algebra.Estimate(column, sizes))
}

// wholeTime estimates the seconds of a scatter in one kernel that is no histogram.
func wholeTime(s forecast.Scatter, sizes map[string]int64) float64 {
	batch, to, cols := algebra.Estimate(s.Batch, sizes), algebra.Estimate(s.To, sizes), algebra.Estimate(s.Columns, sizes)
	least := min(secondsAt(s, s.Written(), sizes), secondsAt(s, s.Lists(forecast.ScatterTile(batch, to, cols)), sizes))
	if cols <= forecast.ScatterOnce {
		return min(least, secondsAt(s, s.Once(forecast.BinFew), sizes))
	}
	if s.Batch.IsConst(1) && to >= forecast.BinFew && cols <= forecast.ScatterBinned*to {
		least = min(least, secondsAt(s, s.Binned(), sizes))
	}
	return least
}

// partialTime estimates the seconds that partial results take: one more kernel, and what is written and read.
func partialTime(v *ir.Value, parts float64, sizes map[string]int64) float64 {
	on := ir.Devices()[0] // the same device for all, so that results do not depend on the one in use
	moved := 2 * parts * algebra.PointsAt(v.Axes, sizes) * float64(v.Reduce.Op.Accumulator(v.Body.Type).Size())
	return on.Launch + moved/on.Bandwidth
}
