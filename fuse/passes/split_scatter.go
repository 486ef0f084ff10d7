package passes

import (
	"math"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/forecast"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// A scatterCut is the chunks into which the columns of a scatter are cut.
type scatterCut struct {
	chunks
	placesFirst bool // whether partial results have the axes of the places first, see placesFirst
}

// scatterCuts finds the chunks of the scatters of a graph; those that stay whole have nil.
func scatterCuts(g *ir.Graph, sizes map[string]int64) map[*ir.Value]*scatterCut {
	out, with := map[*ir.Value]*scatterCut{}, withLanes(g, sizes)
	for _, v := range g.Values {
		if w := with[v]; w != nil {
			out[v], _ = cutScatter(w, sizes)
		} else if isPlainScatter(v) {
			out[v], _ = cutScatter(v, sizes)
		}
	}
	return out
}

// isPlainScatter reports whether a value is a scatter whose partial results can be folded.
func isPlainScatter(v *ir.Value) bool {
	return v.Reduce != nil && !v.Reduce.Op.IsArg() && v.Reduce.Rank == nil && form.ScanOf(v) == nil && form.ScatterIn(v) != nil
}

// splitScatter cuts the columns of a scatter into chunks, and returns the partial results.
func splitScatter(g *ir.Graph, v *ir.Value, cut *scatterCut) []*ir.Value {
	axes := v.Axes
	if cut.placesFirst {
		axes = placesFirst(v, form.ScatterIn(v))
	}
	if v.Reduce.Where == nil { // the condition of the chunk is joined to that of the term
		r := *v.Reduce
		r.Where, v.Body = form.ConditionIn(r.Op, v.Body)
		v.Reduce = &r
	}
	return splitInOrder(g, v, cut.chunks, axes)
}

// cutScatter estimates how a scatter takes the least time: in chunks, or whole, where it returns none. It returns the seconds too.
func cutScatter(v *ir.Value, sizes map[string]int64) (*scatterCut, float64) {
	s := form.ScatterIn(v)
	one := forecast.ScatterOf(s, v.Axes, v.Reduce.Ranges)
	whole, cut := wholeTime(one, sizes), &scatterCut{}
	to, rows, cols := algebra.Estimate(s.To.Extent, sizes), algebra.PointsAt(v.Axes, sizes), algebra.PointsAt(v.Reduce.Ranges, sizes)
	if rows*cols < forecast.ScatterWork {
		return nil, whole
	}
	var parted func(parts float64) float64
	switch {
	case rows > forecast.HistogramLanes*to*algebra.PointsAt(s.Batch, sizes):
		cut.chunks, cut.placesFirst = scatterChunks(v, s), true
		parted = func(parts float64) float64 { return wholeTime(scatterChunk(one, parts, sizes), sizes) }
	case to >= forecast.HistogramPlaces:
		tile := runningTile(v, one, sizes)
		cut.chunks, whole = histogramChunks(v, s), min(whole, secondsAt(one, one.Histogram(tile), sizes))
		parted = func(parts float64) float64 {
			chunk := scatterChunk(one, parts, sizes)
			return secondsAt(chunk, chunk.Histogram(tile), sizes)
		}
	default:
		return nil, whole
	}
	if parts := algebra.Estimate(cut.count, sizes); parts > 1 {
		if seconds := parted(parts) + partialTime(v, parts, sizes); seconds < whole {
			return cut, seconds
		}
	}
	return nil, whole
}

// histogramChunks cuts the columns so that the chunks, times the tiles of rows, are as many as the blocks
// that a large GPU runs at once. Partial results then take 17 MB at most, whatever the sizes.
func histogramChunks(v *ir.Value, s *ir.Scatter) chunks {
	rows := s.To.Extent
	for _, r := range s.Lanes(v.Axes) {
		rows = ir.Apply(ir.OpMul, rows, r.Extent)
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

// runningTile is how many running values a block of a histogram has.
func runningTile(v *ir.Value, s forecast.Scatter, sizes map[string]int64) int {
	bytes := forecast.RunningBytes(v.Reduce.Op, v.Reduce.Op.Accumulator(v.Body.Type))
	return forecast.RunningTile(bytes, algebra.Estimate(s.To, sizes)*algebra.Estimate(s.Lanes, sizes))
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
