package fuse

import (
	"cmp"
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/forecast"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// The shapes of tiles of the warpgroup mapping, and the cycles that products take with them.

// Figures of reduction epilogues, beside those of products; see docs/performance.md.
const (
	foldSpares = 1000 // cycles saved by a tile whose sums are neither staged nor stored
	placeSlots = 60   // slots for comparing two values and their places
)

// foldSpared is the cycles after a tile's products that a reduction epilogue saves.
func (lo warpgroupKernel) foldSpared() int64 {
	if lo.r.folded == nil {
		return 0
	}
	return foldSpares
}

// foldSlots is the work that a reduction epilogue does for each element of the product.
func (lo warpgroupKernel) foldSlots() int {
	slots := 0
	if lo.r.folded == nil {
		return 0
	}
	for _, f := range lo.folds {
		slots += form.CostOf(f.Body).Slots + f.Op.Info().Combine.Info().Cost
		if f.Op.IsArg() {
			slots += placeSlots
		}
	}
	return slots
}

// warpgroupTile is a shape of tile and the cycles that it takes a multiprocessor; docs/performance.md has
// the measurements.
type warpgroupTile struct {
	m, n, turns, cluster int
	step                 int64 // cycles for each stage: of the tensor cores, or of the L2 cache where reading the operands of a small tile takes longer
	around               int64 // cycles for each tile: filling the pipeline, staging and storing the sums
	splits               int   // splits of the columns; 0 for one
	blocks               int   // blocks that a multiprocessor should hold; 0 for one
	fewRows              int   // rows of the TMA tiles of A, where no more rows are multiplied; 0 for m
	full                 bool  // replaces a tile that warpgroups share, if a long epilogue needs the registers

	shares *ir.Expr // tiles of a batch, those of a cluster taken together, where they are boxes; nil else
}

// sides is the warpgroups that lie side by side along the columns of a tile.
func (t warpgroupTile) sides() int {
	return ir.Schedule{TileM: t.m, Turns: t.turns, SplitK: t.splits}.Sides()
}

// smallestTile is the tile of the fewest results.
func smallestTile(tiles []warpgroupTile) warpgroupTile {
	return slices.MinFunc(tiles, func(a, b warpgroupTile) int { return cmp.Compare(a.m*a.n, b.m*b.n) })
}

// warpgroupTiles is the shapes; of those that cost the same the first is used. The last takes all that is
// left, and tensors whose offsets need 64 bits.
var warpgroupTiles = []warpgroupTile{
	{m: 128, n: 256, turns: 1, cluster: 2, step: 1024, around: 2600},
	{m: 128, n: 192, turns: 2, cluster: 2, step: 790, around: 15000, full: true}, // a guess, because it waits for reads
	{m: 128, n: 64, turns: 1, cluster: 1, step: 400, around: 800},
	{m: 128, n: 128, turns: 2, cluster: 1, step: 540, around: 1500},
}

// partTiles is the shapes for 8-bit floats, and for parts of f32. Registers hold the sums of two stages beside those of the
// tile, so each of the two warpgroups multiplies half of a tile.
var partTiles = []warpgroupTile{
	{m: 128, n: 128, turns: 1, cluster: 2, step: 560, around: 2000},
	{m: 128, n: 64, turns: 1, cluster: 1, step: 400, around: 800},
	{m: 128, n: 128, turns: 1, cluster: 1, step: 580, around: 1500},
}

// longEpilogue is the number of operations for each element from which on products should not wait for the
// epilogue.
const longEpilogue = 16

// lanesSM is how many f32 operations a multiprocessor does in a cycle.
const lanesSM = 128

// cost is the cycles that a product takes with tiles of a shape: the rounds of tiles over the
// multiprocessors, times what a tile takes. The epilogue, slots operations for each element, runs between
// the products of one tile and those of the next. Where warpgroups take tiles in turns, the epilogue of
// one overlaps with the products of the other, and only that of the last tile adds to the time as long as
// it is no longer than those products.
func (lo warpgroupKernel) cost(c *ir.Contract, t warpgroupTile, slots int) *ir.Expr {
	shares := t.shares
	if shares == nil {
		shares = ir.Apply(ir.OpMul, algebra.CeilDiv(algebra.Product(c.M), int64(t.m*t.cluster)), algebra.CeilDiv(algebra.Product(c.N), int64(t.n/len(c.B))))
	}
	tiles := ir.Apply(ir.OpMul, shares, algebra.Product(c.Batch))
	rounds := algebra.CeilDiv(tiles, int64(lo.device.SMs/t.cluster))
	steps := ir.Apply(ir.OpMul, lo.stepsOf(c), lo.stepCycles(c, t))
	each := c.SumsEach()
	around := ir.IntConst(t.around*int64(each) - lo.foldSpared() + int64(slots*t.m*t.n*each/len(c.B)/lanesSM))
	if t.turns > 1 {
		both := ir.Apply(ir.OpFloorDiv, ir.Apply(ir.OpAdd, steps, around), ir.IntConst(2))
		return ir.Simplify(ir.Apply(ir.OpAdd, ir.Apply(ir.OpMul, rounds, ir.Apply(ir.OpMax, steps, both)), around), lo.facts)
	}
	return ir.Simplify(ir.Apply(ir.OpMul, rounds, ir.Apply(ir.OpAdd, steps, around)), lo.facts)
}

// Figures of the copy engine: that of a multiprocessor requests a line of the L2 cache every 2.08 cycles,
// measured with tiles whose stages take longer to bring than to multiply. Rows that do not begin at a line need
// two lines for one.
const (
	linesNumerator  = 208
	linesOfTheCount = 100
)

// stepCycles is the cycles of a stage: those of the tile, or of the lines of its operands where those take
// longer.
func (lo warpgroupKernel) stepCycles(c *ir.Contract, t warpgroupTile) *ir.Expr {
	if lo.isWindowed(c) {
		return ir.IntConst(t.step)
	}
	a := lo.linesOf(c.A, c.Type, int64(t.m))
	b := lo.linesOf(c.B[0], c.Type, int64(t.n/t.cluster))
	lines := ir.Apply(ir.OpMul, ir.Apply(ir.OpAdd, a, b), ir.IntConst(linesNumerator))
	return ir.Apply(ir.OpMax, ir.IntConst(t.step), ir.Apply(ir.OpFloorDiv, lines, ir.IntConst(linesOfTheCount)))
}

// linesOf is the lines of an operand's rows in a stage: twice as many where rows of the tensor are no whole number
// of lines.
func (lo warpgroupKernel) linesOf(o ir.Operand, t ir.DType, rows int64) *ir.Expr {
	read := storedRead(o.Value, t)
	if read == nil {
		return ir.IntConst(rows)
	}
	shape := read.Arg.Buffer.Shape
	rest := ir.Apply(ir.OpMod, shape[len(shape)-1], ir.IntConst(int64(forecast.LineBytes/t.Size())))
	across := ir.Apply(ir.OpMin, rest, ir.IntConst(1))
	return ir.Apply(ir.OpMul, ir.Apply(ir.OpAdd, across, ir.IntConst(1)), ir.IntConst(rows))
}

// stepsOf is the stages of all columns, for all sums of a tile; those of a window begin anew with each tap.
func (lo warpgroupKernel) stepsOf(c *ir.Contract) *ir.Expr {
	cols, depth := lo.columns(), int64(depthOf(c.Type))
	if !lo.isWindowed(c) {
		return algebra.CeilDiv(algebra.Product(cols), depth)
	}
	last := len(cols) - 1
	steps := ir.Apply(ir.OpMul, algebra.Product(cols[:last]), algebra.CeilDiv(cols[last].Extent, depth))
	return ir.Apply(ir.OpMul, steps, ir.IntConst(int64(c.SumsEach())))
}

// tilesFor is the shapes of which the share of each fold and of each block is whole TMA tiles. much says
// that the epilogue is long: then the largest shape is one that warpgroups take in turns.
func tilesFor(c *ir.Contract, much bool) []warpgroupTile {
	var out []warpgroupTile
	shapes := warpgroupTiles
	parts := c.InParts()
	if form.ByteTile(c.Type) && c.Type.IsFloat() || parts {
		shapes = partTiles
	}
	much = much && len(c.B) == 1 && c.Type.Size() == 2 && !parts
	for _, t := range shapes {
		if t.full != much && (t.full || t.cluster > 1) {
			continue
		}
		each := t.n / len(c.B) // the blocks divide its rows among themselves or, where those lie side by side, its columns
		if c.B[0].KLast && each/t.cluster%8 == 0 || each%depthOf(c.Type) == 0 {
			out = append(out, t)
		}
	}
	return out
}

// cheapest is the condition that the first of several shapes costs least.
func (lo warpgroupKernel) cheapest(c *ir.Contract, tiles []warpgroupTile) *ir.Expr {
	slots := lo.slotsAfter(c) + lo.foldSlots()
	var out *ir.Expr
	for _, other := range tiles[1:] {
		out = algebra.And(out, ir.Apply(ir.OpLe, lo.cost(c, tiles[0], slots), lo.cost(c, other, slots)))
	}
	return out
}

// slotsAfter is the operations of the epilogue for each element. What belongs to a row is computed once
// for a vector.
func (lo warpgroupKernel) slotsAfter(c *ir.Contract) (slots int) {
	lane, counted := algebra.Innermost(c.N), map[*ir.Expr]bool{}
	for _, s := range lo.stores {
		slots += lo.laneSlots(s.Value, lane, counted)
	}
	return slots
}

// laneSlots is the operations of an expression that differ between neighbours along lane.
func (lo warpgroupKernel) laneSlots(e *ir.Expr, lane *ir.Range, counted map[*ir.Expr]bool) int {
	if counted[e] {
		return 0
	}
	counted[e] = true
	if !ir.DependsOn(e, lane) && !waits(e) {
		return form.CostOf(e).Slots / operandVector
	}
	slots := form.OwnSlots(e)
	for _, part := range e.Args {
		slots += lo.laneSlots(part, lane, counted)
	}
	return slots
}
