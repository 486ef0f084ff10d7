package fuse

import (
	"math"
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/forecast"
	"github.com/fusec/fusec/ir"
)

// A tile of a windowed contraction has rows of weights, and as columns places of the image (or the reverse). Which places
// is free: they are a box of any shape, as 2 x 128 or 8 x 32 places of an image, or the same 2 x 4 places of 32 images.
// Boxes that reach over the image's edge multiply zeros. Boxes of short lines are slow to store where the places of a
// channel lie side by side in memory: a line that ends inside of a sector is written in part, by two tiles.

// A placeBoxes chooses the places of tiles. It compares the cycles in which a tile is multiplied with those in which
// memory takes what it stores.
type placeBoxes struct {
	rows    int         // of the operand that is divided
	line    int         // bytes of a row in a stage
	others  []*ir.Range // the rows of the other operand, of which a tile has so many
	other   int
	cluster int // blocks that bring an equal share each

	multiply float64 // cycles
	turns    int     // warpgroups that take tiles in turns
	times    float64 // tiles of each box: those of the other operand, of each batch
	blocks   float64 // tiles at a time
	stores   []*storing
	facts    ir.Facts
}

// placeBoxes are the figures for a contraction in tiles of one shape, at the given sizes, if the L2 cache brings so many bytes in a
// cycle.
func (lo warpgroupKernel) placeBoxes(c *ir.Contract, tile warpgroupTile, sizes map[string]int64, bytesL2 float64) placeBoxes {
	read := float64((tile.m+tile.n/tile.cluster)*warpgroupLine) / bytesL2 // cycles of a stage
	steps := math.Max(1, algebra.Estimate(lo.stepsOf(c), sizes))
	return placeBoxes{line: warpgroupLine, turns: tile.turns, multiply: steps * math.Max(float64(tile.step), read), stores: lo.stores, facts: lo.inside(ir.RowLevel),
		times: math.Max(1, algebra.Estimate(algebra.Product(c.Batch), sizes)), blocks: float64(lo.device.SMs)}
}

// ofM is the choice for the operand with the rows of a tile: what is stored does not matter, since lines are those of
// the other one's rows.
func (b placeBoxes) ofM(tile warpgroupTile) placeBoxes {
	b.rows, b.cluster, b.stores, b.blocks = tile.m, 1, nil, 1
	return b
}

// ofN is the choice for the operand with the columns, beside the rows m.
func (b placeBoxes) ofN(tile warpgroupTile, m []*ir.Range, sizes map[string]int64) placeBoxes {
	b.rows, b.cluster, b.others, b.other = tile.n, tile.cluster, m, tile.m
	b.times *= math.Ceil(algebra.Estimate(algebra.Product(m), sizes) / float64(tile.m))
	return b
}

// choose divides the rows of a tile whose boxes are copied for each tap. It returns nil where the blocks of a cluster cannot
// have an equal share.
func (b placeBoxes) choose(x *windowTiling, sizes map[string]int64) []int {
	best, _ := b.divide(x.rows, sizes, func(tile []int) (cycles float64, ok bool) {
		for d, at := range x.along {
			if at >= 0 && tile[at]*x.steps[d] > mostTMATile {
				return 0, false
			}
		}
		return b.multiply, sharesEqually(tile, b.cluster)
	})
	return best
}

// divide divides the rows of a tile among ranges, in powers of two, for the least time of all tiles. The last ranges lie side
// by side in memory. A function says in how many cycles a tile is multiplied; ok is false for tiles that cannot be.
func (b placeBoxes) divide(rows []*ir.Range, sizes map[string]int64, multiply func(tile []int) (cycles float64, ok bool)) (best []int, least float64) {
	extents := pointsOf(rows, sizes)
	least = math.Inf(1)
	lines := b.linesOf(rows, extents, sizes)
	var try func(tile []int, left int, boxes float64)
	try = func(tile []int, left int, boxes float64) {
		d := len(extents) - 1 - len(tile)
		if d < 0 {
			if left > 1 {
				return
			}
			cycles, ok := multiply(tile)
			if time := b.cycles(tile, cycles, lines) * b.rounds(boxes); ok && time < least*(1-1e-6) {
				best, least = slices.Clone(tile), time
			}
			return
		}
		for n := left; n >= 1; n /= 2 {
			try(append([]int{n}, tile...), left/n, boxes*math.Ceil(extents[d]/float64(n)))
		}
	}
	try(nil, b.rows, 1)
	return best, least
}

// timeOf is the time of all tiles whose rows are divided so.
func (b placeBoxes) timeOf(rows []*ir.Range, tile []int, sizes map[string]int64) float64 {
	extents, boxes := pointsOf(rows, sizes), 1.0
	for d, n := range extents {
		boxes *= math.Ceil(n / float64(tile[d]))
	}
	return b.cycles(tile, b.multiply, b.linesOf(rows, extents, sizes)) * b.rounds(boxes)
}

// pointsOf is the points of each range, at least one, at some sizes.
func pointsOf(ranges []*ir.Range, sizes map[string]int64) []float64 {
	out := make([]float64, len(ranges))
	for d, r := range ranges {
		out[d] = math.Max(1, algebra.Estimate(r.Extent, sizes))
	}
	return out
}

// rounds is how often all blocks take a tile each, of so many boxes, at the program's default sizes, and as often again at
// sizes at which none is idle.
func (b placeBoxes) rounds(boxes float64) float64 {
	all := boxes * b.times / b.blocks
	return math.Max(1, all) + all
}

// Figures of stores, fitted to windows whose results have channels outermost (H100): the cycles of a warpgroup for each line of
// neighbouring results, and its bytes in a cycle. Lines are at least of a sector or two, of which several tiles may write parts.
const (
	cyclesLine  = 27
	cyclesImage = 0.5 // more, for each image of which a tile has places: they are far from each other in memory
	bytesCycle  = 7
	shown       = 32 // the part of stores that adds to the time also where products take longer
	together    = 4  // how much faster two warpgroups store that have a tile together, while the next one's operands come
)

// cycles is the time of a tile that is multiplied in so many. Where warpgroups take tiles in turns, one stores while the other multiplies.
func (b placeBoxes) cycles(tile []int, multiply float64, lines []placeLines) float64 {
	store := 0.0
	for _, l := range lines {
		store += l.cycles(tile)
	}
	if b.turns > 1 {
		return math.Max(multiply, (multiply+store)/2) + store/shown
	}
	return multiply + store/together
}

// placeLines is how places lie in a tensor that is stored for each of them.
type placeLines struct {
	times            float64   // rows of the other operand that have lines of their own
	size             float64   // bytes that are side by side for one place
	extents, strides []float64 // of the ranges of places; strides in so many bytes
}

// linesOf describes the tensors that are stored for each place, but for those of which a place has whole sectors: lines of
// places are nothing to these.
func (b placeBoxes) linesOf(places []*ir.Range, extents []float64, sizes map[string]int64) (out []placeLines) {
	for _, s := range b.stores {
		l := placeLines{times: 1, size: float64(s.Arg.Type.Size()), extents: extents}
		side := 1.0 // elements of one place that are side by side
		for _, r := range b.others {
			if !ir.DependsOn(s.Offset, r) {
				continue
			}
			extent := math.Max(1, algebra.Estimate(r.Extent, sizes))
			if stride, ok := ir.Stride(s.Offset, r, b.facts); ok && stride.IsConst(1) {
				side = extent
			}
			l.times *= extent
		}
		l.size *= side
		l.times = math.Max(1, math.Min(l.times, float64(b.other))/side)
		for _, r := range places {
			if stride, ok := ir.Stride(s.Offset, r, b.facts); ok {
				l.strides = append(l.strides, algebra.Estimate(stride, sizes)/side)
			}
		}
		if len(l.strides) == len(places) && l.size < forecast.SectorBytes {
			out = append(out, l)
		}
	}
	return out
}

// cycles is the time in which a warpgroup stores a box of places.
func (l placeLines) cycles(tile []int) float64 {
	last := len(tile) - 1
	inside := func(d int) float64 { // places along an axis that are stored apart
		if l.strides[d] == 0 {
			return 1
		}
		return math.Min(float64(tile[d]), l.extents[d])
	}
	line, lines, whole := inside(last), 1.0, inside(last) >= l.extents[last]
	for d := last - 1; d >= 0; d-- {
		if whole = whole && l.strides[d] == l.strides[d+1]*l.extents[d+1]; whole { // the line goes on
			line *= inside(d)
		} else {
			lines *= inside(d)
		}
		whole = whole && inside(d) >= l.extents[d]
	}
	bytes := ((line-1)*l.strides[last] + 1) * l.size
	each := cyclesLine + bytes/bytesCycle
	if last > 0 && inside(0) > 1 {
		each += cyclesImage * inside(0)
	}
	return each * lines * l.times
}

// sharesEqually reports whether the first range of which a tile has several places has a multiple of the
// cluster's blocks of them.
func sharesEqually(tile []int, cluster int) bool {
	for _, n := range tile {
		if n > 1 {
			return n%cluster == 0
		}
	}
	return cluster == 1
}

// mostPhases is the most tiles that follow each other although they are of different batches.
const mostPhases = 8

// phases is the number of points of the last ranges of the batch whose results lie between each other: with each step along
// such a range a result is followed by another one of the same tile. 0 for none.
func (lo warpgroupKernel) phases(c *ir.Contract) int {
	n := int64(1)
	for _, r := range slices.Backward(c.Batch) {
		if r.Extent.Op != ir.OpConst || n*r.Extent.Int > mostPhases || !lo.isBetween(r, c.N) {
			break
		}
		n *= r.Extent.Int
	}
	if n == 1 {
		return 0
	}
	return int(n)
}

// isBetween reports whether all that is stored has the points of r between two neighbours along one of the places.
func (lo warpgroupKernel) isBetween(r *ir.Range, places []*ir.Range) bool {
	facts := lo.inside(ir.RowLevel)
	return len(lo.stores) > 0 && lo.allStores(func(offset *ir.Expr) bool {
		stride, ok := ir.Stride(offset, r, facts)
		if !ok {
			return false
		}
		step := ir.Simplify(ir.Apply(ir.OpMul, stride, r.Extent), facts)
		return slices.ContainsFunc(places, func(p *ir.Range) bool {
			along, ok := ir.Stride(offset, p, facts)
			return ok && ir.SameSize(along, step)
		})
	})
}
