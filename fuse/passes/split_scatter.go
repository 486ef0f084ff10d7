package passes

import (
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
// time than one kernel.
func histogramPays(v *ir.Value, s *ir.Scatter, parts float64, sizes map[string]int64) bool {
	on := ir.Devices()[0] // the same device for all, so that results do not depend on the one in use
	rows, cols := algebra.PointsAt(v.Axes, sizes), algebra.PointsAt(v.Reduce.Ranges, sizes)
	whole := cols / forecast.HistogramLeast * forecast.HistogramStep
	moved := 2 * parts * rows * float64(v.Reduce.Op.Accumulator(v.Body.Type).Size())
	return parts > 1 && whole/parts+on.Launch+moved/on.Bandwidth < whole
}
