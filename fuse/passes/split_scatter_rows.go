package passes

import (
	"math"
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/forecast"
	"github.com/fusec/fusec/ir"
)

// A scatter of rows to few places, such as the sums of the points of each centre, has few
// blocks, and each of them reads all keys. Cut into chunks of its columns it has a table of
// partial results for each chunk: blocks take a chunk each, and read the keys of that alone.

// scatterChunks cuts the columns so that chunks and tiles of places are as many as blocks
// that keep a large GPU busy, and a chunk has twice as many columns as places at least: the
// tables of partial results then are no larger than what is read.
func scatterChunks(v *ir.Value, s *ir.Scatter) chunks {
	to, outer := s.To.Extent, v.Reduce.Ranges[0].Extent
	tiles := algebra.SomeOf(to, forecast.ScatterPlaces)
	for _, b := range s.Batch {
		tiles = ir.Apply(ir.OpMul, tiles, ir.Apply(ir.OpMax, b.Extent, ir.IntConst(1)))
	}
	inner := ir.Apply(ir.OpMax, algebra.Product(v.Reduce.Ranges[1:]), ir.IntConst(1))
	least := ir.Apply(ir.OpMax, ir.Apply(ir.OpMul, to, ir.IntConst(forecast.ScatterColumns)), ir.IntConst(forecast.ScatterListed))
	most := ir.Apply(ir.OpFloorDiv, ir.Apply(ir.OpMul, outer, inner), least)
	parts := ir.Apply(ir.OpMin, ir.Apply(ir.OpMin, most, outer), ir.Apply(ir.OpFloorDiv, ir.IntConst(forecast.ScatterGrid), tiles))
	parts = ir.Apply(ir.OpMax, parts, ir.IntConst(1))
	size := ir.Apply(ir.OpAdd, ir.Apply(ir.OpFloorDiv, ir.Apply(ir.OpSub, outer, ir.IntConst(1)), parts), ir.IntConst(1))
	return chunks{ir.Simplify(size, ir.Facts{}), ir.Simplify(parts, ir.Facts{})}
}

// scatterPays reports whether so many chunks, and a kernel that reads their tables, take less
// time than one reading of all columns.
func scatterPays(v *ir.Value, s *ir.Scatter, parts float64, sizes map[string]int64) bool {
	on := ir.Devices()[0] // for all, so that results do not depend on the device
	rows, cols := algebra.PointsAt(v.Axes, sizes), algebra.PointsAt(v.Reduce.Ranges, sizes)
	to, batch := algebra.Estimate(s.To.Extent, sizes), algebra.PointsAt(s.Batch, sizes)
	if binned := len(s.Batch) == 0 && cols <= forecast.ScatterBinned*to; binned || parts <= 1 {
		return false
	}
	moved := 2 * parts * rows * float64(v.Reduce.Op.Accumulator(v.Body.Type).Size())
	whole := forecast.ScatterTime(batch, to, cols)
	return forecast.ScatterTime(parts*batch, to, math.Ceil(cols/parts))+on.Launch+moved/on.Bandwidth < whole
}

// placesFirst is the axes of a scatter in the order in which its blocks write them: those that
// keys depend on, the places, and the lanes.
func placesFirst(v *ir.Value, s *ir.Scatter) []*ir.Range {
	axes := append(slices.Clone(s.Batch), s.To)
	for _, r := range v.Axes {
		if !slices.Contains(axes, r) {
			axes = append(axes, r)
		}
	}
	return axes
}
