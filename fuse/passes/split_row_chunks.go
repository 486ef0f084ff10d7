package passes

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/forecast"
	"github.com/fusec/fusec/ir"
)

// Figures of chunks of rows.
const (
	rowChunkParts   = ir.ReferenceSMs // chunks into which AccumulateColumns columns are cut
	rowChunkColumns = 128             // columns below which a block has too little to do
	rowChunkRows    = 4               // least rows of a chunk
)

// rowChunks returns the chunks for a reduction over rows where another value of the graph reads the same
// tensor along its rows; nil where none does. The number of chunks does not depend on the number of rows.
// Of several reduced ranges the longest is moved to the front, because the first is the one that is cut.
func (s *splitter) rowChunks(v *ir.Value) *chunks {
	columns := algebra.PointsAt(v.Axes, s.sizes)
	if columns < rowChunkColumns || columns > forecast.AccumulateColumns || contiguousColumns(v, s.sizes) || v.Reduce.Where != nil {
		return nil
	}
	parts := int64(rowChunkParts)
	for c := columns; 2*c <= forecast.AccumulateColumns && parts < 8*rowChunkParts; c *= 2 {
		parts *= 2
	}
	longest := longestRange(v.Reduce.Ranges, s.sizes)
	if algebra.Estimate(v.Reduce.Ranges[longest].Extent, s.sizes) < float64(rowChunkRows*parts) || !s.sharesTensor(v) {
		return nil
	}
	r := *v.Reduce
	r.Ranges = slices.Clone(r.Ranges)
	r.Ranges[0], r.Ranges[longest] = r.Ranges[longest], r.Ranges[0]
	v.Reduce = &r
	rows := ir.Apply(ir.OpAdd, r.Ranges[0].Extent, ir.IntConst(parts-1))
	size := ir.Apply(ir.OpMax, ir.Apply(ir.OpFloorDiv, rows, ir.IntConst(parts)), ir.IntConst(1))
	return &chunks{size, ir.IntConst(parts)}
}

func longestRange(ranges []*ir.Range, sizes map[string]int64) int {
	longest := 0
	for i, r := range ranges {
		if algebra.Estimate(r.Extent, sizes) > algebra.Estimate(ranges[longest].Extent, sizes) {
			longest = i
		}
	}
	return longest
}

// sharesTensor reports whether another value of the graph reads the largest tensor that v reads, and has
// an element for each of the rows that v reduces.
func (s *splitter) sharesTensor(v *ir.Value) bool {
	var largest *ir.Expr
	for _, l := range v.Loads() {
		if largest == nil || algebra.BytesAt(l.From, s.sizes) > algebra.BytesAt(largest.From, s.sizes) {
			largest = l
		}
	}
	if largest == nil {
		return false
	}
	reduced := map[*ir.Range]bool{}
	for _, r := range v.Reduce.Ranges {
		reduced[r] = true
	}
	for _, u := range s.readers[largest.From] {
		if u == v || len(u.Axes) == 0 {
			continue
		}
		own := map[*ir.Range]bool{}
		for _, r := range u.Axes {
			own[r] = true
		}
		for _, l := range u.Loads() {
			if l.From != largest.From {
				continue
			}
			beside := true
			for d, e := range largest.Args {
				if algebra.DependsOnAny(e, reduced) {
					beside = beside && algebra.DependsOnAny(l.Args[d], own)
				}
			}
			if beside {
				return true
			}
		}
	}
	return false
}
