package passes

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/forecast"
	"github.com/fusec/fusec/ir"
)

// A scatter of rows to few places, such as the sums of the points of each cluster in k-means, has few
// blocks, and each of them reads all keys. With its columns cut into chunks, each block takes one chunk,
// reads the keys of that chunk alone, and has a table of partial results of its own.

// scatterChunks cuts the columns so that the chunks, times the tiles of places, are as many as the blocks
// that keep a large GPU busy. A chunk has at least twice as many columns as there are places, so that the
// tables of partial results are no larger than what is read.
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

// placesFirst is the axes of a scatter in the order in which its blocks write them: those that keys depend
// on, then the places, then the lanes.
func placesFirst(v *ir.Value, s *ir.Scatter) []*ir.Range {
	return append(append(slices.Clone(s.Batch), s.To), s.Lanes(v.Axes)...)
}
