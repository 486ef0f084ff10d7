package passes

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/forecast"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// Figures of chunks of rows.
const (
	rowChunkParts   = ir.ReferenceSMs // chunks into which AccumulateColumns columns are cut
	rowChunkColumns = 128             // least columns; with fewer, a block has too little work
	rowChunkRows    = 4               // least rows of a chunk, but where the device would not be full
)

// rowChunks returns the chunks for a reduction over rows where another value of the graph reads the same
// tensor along its rows; nil where none does. The number of chunks does not depend on the number of rows.
// Several reduced ranges that are neighbouring axes of that tensor, as together says, are taken as one, so that there
// are enough rows whichever of the axes is long. Otherwise the longest is moved to the front, because the first is the one that is cut.
func (s *splitter) rowChunks(v *ir.Value, together bool) *chunks {
	columns := algebra.PointsAt(v.Axes, s.sizes)
	if columns < rowChunkColumns || columns > forecast.AccumulateColumns || contiguousColumns(v, s.sizes) || v.Reduce.Where != nil {
		return nil
	}
	parts := partsBeside(columns)
	longest, points := longestRange(v.Reduce.Ranges, s.sizes), algebra.PointsAt(v.Reduce.Ranges, s.sizes)
	if !together {
		points = algebra.Estimate(v.Reduce.Ranges[longest].Extent, s.sizes)
	}
	if points < rowChunkParts || !s.sharesTensor(v) {
		return nil
	}
	parts = max(rowChunkParts, min(parts, int64(points/rowChunkRows))) // a block for each multiprocessor, of a few rows where there are few
	if together {
		takeAsOne(s.g, v)
		longest = 0
	}
	r := *v.Reduce
	r.Ranges = slices.Clone(r.Ranges)
	r.Ranges[0], r.Ranges[longest] = r.Ranges[longest], r.Ranges[0]
	v.Reduce = &r
	cut := countedChunks(v, parts)
	return &cut
}

// partsBeside is the number of chunks of rows that fill the device, if each block has so many columns.
func partsBeside(columns float64) int64 {
	parts := int64(rowChunkParts)
	for c := columns; 2*c <= forecast.AccumulateColumns && parts < 8*rowChunkParts; c *= 2 {
		parts *= 2
	}
	return parts
}

// stripParts is the number of chunks of rows if the columns are also divided, so that each block has a strip of them.
// It fills the device with only a few rounds of blocks, so that each thread has several rows.
func stripParts(columns float64) int64 {
	const most, strip, turns = 2 * rowChunkParts, 64, 8
	return int64(min(most, max(1, turns*rowChunkParts*strip/columns)))
}

// countedChunks cuts v's outermost range into a constant number of chunks, however long it is.
func countedChunks(v *ir.Value, parts int64) chunks {
	points := ir.Apply(ir.OpAdd, v.Reduce.Ranges[0].Extent, ir.IntConst(parts-1))
	size := ir.Apply(ir.OpMax, ir.Apply(ir.OpFloorDiv, points, ir.IntConst(parts)), ir.IntConst(1))
	return chunks{size, ir.IntConst(parts)}
}

// neighbours reports whether several ranges index neighbouring axes of a tensor in order, each in full, or index one
// axis together. Taken as one range, their points are then in the order of memory.
func neighbours(ranges []*ir.Range, load *ir.Expr) bool {
	if load == nil || len(ranges) < 2 {
		return false
	}
	var extents []*ir.Expr
	for _, r := range ranges {
		extents = append(extents, r.Extent)
	}
	all, facts := ir.FlatOffset(extents, ir.Indices(ranges)), ir.Facts{Positive: true}
	if slices.ContainsFunc(load.Args, func(e *ir.Expr) bool { return e.Op == ir.OpAdd && ir.SameIndex(e, all, facts) }) {
		return true
	}
	first := slices.IndexFunc(load.Args, func(e *ir.Expr) bool { return e.Op == ir.OpRange && e.Range == ranges[0] })
	if first < 0 || first+len(ranges) > len(load.Args) {
		return false
	}
	for i, r := range ranges {
		e := load.Args[first+i]
		if e.Op != ir.OpRange || e.Range != r || !ir.SameSize(r.Extent, load.From.Shape()[first+i]) {
			return false
		}
	}
	return true
}

// takeAsOne makes the ranges of a reduction one range over all their points.
func takeAsOne(g *ir.Graph, v *ir.Value) {
	r := *v.Reduce
	one := g.NewRange(r.Ranges[0].Name, algebra.Product(r.Ranges))
	v.Body = ir.Substitute(v.Body, ir.Digits(r.Ranges, one.At()))
	r.Ranges = []*ir.Range{one}
	v.Reduce = &r
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

// largestRead is the load of the largest tensor that a value reads; nil where it reads none.
func largestRead(v *ir.Value, sizes map[string]int64) (largest *ir.Expr) {
	for _, l := range v.Loads() {
		if largest == nil || algebra.BytesAt(l.From, sizes) > algebra.BytesAt(largest.From, sizes) {
			largest = l
		}
	}
	return largest
}

// sharesTensor reports whether another value of the graph reads the largest tensor that v reads, and has an element
// for each of the rows that v reduces. A product does not count, because its kernel does not go through rows, unless
// the kernel that computes the tensor does.
func (s *splitter) sharesTensor(v *ir.Value) bool {
	largest := largestRead(v, s.sizes)
	if largest == nil {
		return false
	}
	reduced := map[*ir.Range]bool{}
	for _, r := range v.Reduce.Ranges {
		reduced[r] = true
	}
	for _, u := range s.readers[largest.From] {
		if u == v || len(u.Axes) == 0 || form.Crosses(u) && !fromRows(largest.From) {
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

// fromRows reports whether a value is computed from results of reductions, other than products, such as those of its
// rows.
func fromRows(v *ir.Value) bool {
	return slices.ContainsFunc(v.Loads(), func(l *ir.Expr) bool { return l.From.Reduce != nil && !form.Crosses(l.From) })
}
