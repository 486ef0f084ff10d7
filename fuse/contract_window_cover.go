package fuse

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/forecast"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// Windows that overlap, through warpgroups. A tile's windows reach a box of places that is little larger than the tile, and
// tensor cores take each tap's operand from it: a tap further on is the same operand some lines further on. So a block of
// channels comes from the L2 cache once, and not once for each tap.

// A covering is how the windows of an operand lie in its tensor, as far as it says what a tile of them covers: in each dim of the
// tensor, the outermost first and without that of the channels, a window begins at a multiple of one range of rows, and has taps
// at constant distances.
type covering struct {
	ofA      bool // of the first operand, of whose rows an instruction has 64
	rows     []*ir.Range
	arg      *ir.Arg
	shape    []*ir.Expr // of all dims, that of the channels too
	first    []*ir.Expr // where a window begins; of the last dim, that of the channels, where a tap's channels begin
	along    []int      // index of the range of rows that each dim depends on; -1 for none
	stride   []int      // places between windows
	taps     []*ir.Expr // places from the first tap to a tap
	span     []int      // of the last tap
	channels *ir.Expr   // elements of a tap, where the innermost columns have several taps beside their channels; nil else
	line     int        // bytes of a place that are multiplied at a time
	count    float64    // taps
	blocks   *ir.Expr   // blocks of channels
	sums     int        // of a tile for each row and column
}

// coveringOf describes the windows of an operand, nil where they lie in another way, or no taps of neighbours are the same
// places. Its tensor is one that the copy engine takes as it is: it has few enough dims.
func (lo warpgroupKernel) coveringOf(o ir.Operand, own []*ir.Range, t ir.DType, sizes map[string]int64) *covering {
	read := storedRead(o.Value, t)
	load, shape := lo.placesIn(read)
	if load == nil || read.Guard != nil && !form.IsZero(form.WithoutCasts(read.Fill)) {
		return nil
	}
	load, shape = withoutUnits(load, shape)
	last := len(load) - 1
	if last < 1 || last >= largestRank {
		return nil
	}
	x := &covering{rows: own, arg: read.Arg, shape: shape, count: 1}
	if !x.addChannels(lo, load, shape[last], t) {
		return nil
	}
	for _, at := range load[:last] {
		if !x.add(lo, at, own) {
			return nil
		}
	}
	x.first = append(x.first, algebra.Innermost(lo.k.Cols).At())
	overlap := false
	for d, i := range x.along {
		overlap = overlap || i >= 0 && x.span[d] > 0
	}
	if !overlap || len(x.along)-count(x.along, -1) != len(own) {
		return nil
	}
	for _, r := range x.tapsOf(lo) {
		x.count *= max(1, algebra.Estimate(r, sizes))
	}
	return x
}

// tapsOf is the numbers of taps along all columns.
func (x *covering) tapsOf(lo warpgroupKernel) (out []*ir.Expr) {
	last := len(lo.k.Cols) - 1
	for _, r := range lo.k.Cols[:last] {
		out = append(out, r.Extent)
	}
	if x.channels != nil {
		out = append(out, ir.Apply(ir.OpFloorDiv, lo.k.Cols[last].Extent, x.channels))
	}
	return out
}

// addChannels describes the channels of a tap: the innermost columns, or where taps lie beside them so many of those.
func (x *covering) addChannels(lo warpgroupKernel, load []*ir.Expr, extent *ir.Expr, t ir.DType) bool {
	channel, last := algebra.Innermost(lo.k.Cols), len(load)-1
	x.line = warpgroupLine
	size := int64(t.Size())
	if extent.Op == ir.OpConst {
		if rest := extent.Int * size % warpgroupLine; rest > 0 && rest <= warpgroupLine/2 && extent.Int*size < 2*warpgroupLine {
			x.line /= 2
		}
	}
	x.blocks = algebra.CeilDiv(extent, int64(x.line)/size)
	if lo.isFlat(load[last-1:], extent, channel) {
		x.channels = extent
		return extent.Op == ir.OpConst && extent.Int*size%int64(x.line) == 0 // a block must not reach into the next tap
	}
	return load[last].Op == ir.OpRange && load[last].Range == channel && ir.SameSize(extent, channel.Extent)
}

// add adds a dim that is read at a place; false where that is no sum of a multiple of one range of rows, of constant
// multiples of taps, and of what all of them share.
func (x *covering) add(lo warpgroupKernel, at *ir.Expr, own []*ir.Range) bool {
	along, ok := lo.rowsAt(at, own)
	if !ok {
		return false
	}
	stride, facts := 1, lo.positive()
	if along >= 0 {
		s, ok := ir.Stride(at, own[along], facts)
		if !ok || s.Op != ir.OpConst || s.Int < 1 || s.Int > largestStep {
			return false
		}
		stride = int(s.Int)
	}
	first, taps, span := ir.Simplify(ir.AtZero(at, lo.columns()...), facts), ir.IntConst(0), int64(0)
	for _, r := range lo.columns() {
		if !ir.DependsOn(at, r) {
			continue
		}
		tap, extent := r.At(), r.Extent
		step, ok := ir.Stride(at, r, facts)
		if x.channels != nil && r == algebra.Innermost(lo.k.Cols) { // r counts channels too, which isFlat has seen
			tap, extent = ir.Apply(ir.OpFloorDiv, tap, x.channels), ir.Simplify(ir.Apply(ir.OpFloorDiv, extent, x.channels), facts)
			step, ok = ir.IntConst(1), true
		}
		if !ok || step.Op != ir.OpConst || extent.Op != ir.OpConst {
			return false
		}
		reach := step.Int * (extent.Int - 1)
		taps = ir.Apply(ir.OpAdd, taps, ir.Apply(ir.OpMul, tap, step))
		if reach < 0 { // later taps are before the first
			first, taps, reach = ir.Apply(ir.OpAdd, first, ir.IntConst(reach)), ir.Apply(ir.OpAdd, taps, ir.IntConst(-reach)), -reach
		}
		span += reach
	}
	if span >= mostTMATile {
		return false
	}
	x.first, x.along, x.stride = append(x.first, ir.Simplify(first, facts)), append(x.along, along), append(x.stride, stride)
	x.taps, x.span = append(x.taps, ir.Simplify(taps, facts)), append(x.span, int(span))
	return true
}

// Figures of covers.
const (
	coverSlots  = 2    // boxes that shared memory holds at a time, at least
	coverStages = 4    // least stages of the other operand
	coverRows   = 64   // least rows of an instruction
	groupLines  = 8    // rows of a group, which lie one after the other
	mostColumns = 256  // most columns of an instruction
	coverMost   = 3    // most boxes that shared memory holds
	coverGain   = 0.97 // of the time without a cover, which it must be below
)

// of is what a tile of windows covers, whose rows are divided so among the ranges; nil where tensor cores do not find the tile's
// rows there, or the copy engine does not bring it. Of several warpgroups side by side, each has an equal part of the tile.
func (x *covering) of(tile []int, sides int) *ir.Cover {
	c := &ir.Cover{Lines: 1, Apart: make([]int, len(tile)), Tap: ir.IntConst(0), Taps: int(x.count), Channels: x.channels}
	for d := len(x.along) - 1; d >= 0; d-- {
		if i := x.along[d]; i >= 0 {
			c.Apart[i] = c.Lines * x.stride[d]
		}
		reach := x.reach(d, tile)
		if reach > mostTMATile {
			return nil
		}
		c.Tap = ir.Apply(ir.OpAdd, ir.Apply(ir.OpMul, x.taps[d], ir.IntConst(int64(c.Lines))), c.Tap)
		c.Lines *= reach
	}
	c.Tap = ir.Simplify(c.Tap, ir.Facts{})
	part := slices.Clone(tile)
	if sides > 1 {
		outermost := slices.IndexFunc(part, func(n int) bool { return n > 1 })
		if outermost < 0 || part[outermost]%sides != 0 {
			return nil
		}
		part[outermost] /= sides
	}
	if !groupRows(c, part, !x.ofA) {
		return nil
	}
	return c
}

// reach is how many places a tile's windows cover along a dim.
func (x *covering) reach(d int, tile []int) int {
	if i := x.along[d]; i >= 0 {
		return x.span[d] + 1 + (tile[i]-1)*x.stride[d]
	}
	return x.span[d] + 1
}

// groupRows finds which rows of a tile an instruction multiplies: their groups of eight are equally far apart. They are neighbours,
// or of columns those along any range. It is false where a group is not eight lines that follow each other, or an instruction
// would have too few rows.
func groupRows(c *ir.Cover, tile []int, columns bool) bool {
	last, most := len(tile)-1, coverRows
	if columns {
		most = mostColumns
	}
	if tile[last]%groupLines != 0 || c.Apart[last] != 1 {
		return false
	}
	take := func(rows, group, every int) {
		if rows = min(rows, most); rows > c.Rows {
			c.Rows, c.Group, c.Every = rows, group, every
		}
	}
	take(tile[last], groupLines, 1)
	if tile[last] == groupLines && last > 0 {
		rows, d := groupLines, last-1
		for ; d > 0 && tile[d] == 1; d-- {
		}
		take(rows*tile[d], c.Apart[d], 1)
	}
	every := tile[last] / groupLines
	for d := last - 1; columns && d >= 0; d-- {
		take(groupLines*tile[d], c.Apart[d], every)
		every *= tile[d]
	}
	return c.Rows >= coverRows
}

// room sets how many boxes shared memory holds beside stages of so many bytes, and returns how many stages there are; false
// where there is not room enough.
func (lo warpgroupKernel) room(c *ir.Cover, line, stage int) (stages int, ok bool) {
	left := lo.device.SharedBlock - 2*warpgroupStaging - warpgroupReserve
	box := c.Bytes(line)
	c.Slots = coverSlots
	if left-coverMost*box >= 2*coverStages*stage {
		c.Slots = coverMost
	}
	stages = min(warpgroupStages, (left-c.Slots*box)/stage)
	return stages, stages >= coverStages
}

// view is the tensor map that brings the box of a tile.
func (x *covering) view(name string, tile []int, t ir.DType, facts ir.Facts) *ir.TMAView {
	w := &ir.TMAView{Name: name, Arg: x.arg, Swizzle: x.line, TF32: t == ir.F32}
	stride, last := ir.IntConst(1), len(x.shape)-1
	for d := last; d >= 0; d-- {
		box := x.line / t.Size()
		if d < last {
			box = x.reach(d, tile)
			w.Strides = append(w.Strides, stride)
		}
		w.Dims, w.Box = append(w.Dims, x.shape[d]), append(w.Box, box)
		stride = ir.Simplify(ir.Apply(ir.OpMul, stride, x.shape[d]), facts)
	}
	return w
}

// Figures of a multiprocessor: the bytes that shared memory brings in a cycle, and the rows of one side times those of the
// other, times the bytes of a line of both, that tensor cores multiply in one, as measured.
const (
	sharedCycle = 128
	coresCycle  = 128 * 256 * warpgroupLine / 1060
	stageCycles = 400 // from a stage that is full to the end of its products, which few instructions do not fill
	bytesTile   = 60  // bytes of operands that a multiprocessor gets in a cycle where the cycles of shapes of tiles were measured
)

// multiply is the cycles in which a tile is multiplied from a cover: those of tensor cores, of shared memory, whose operands each
// instruction reads anew, or of the L2 cache, which brings so many rows of the other operand and the cover, so many bytes in a
// cycle.
func (x *covering) multiply(c *ir.Cover, tile warpgroupTile, others int, sizes map[string]int64, bytesL2 float64) float64 {
	steps := float64(x.sums) * x.count * max(1, algebra.Estimate(x.blocks, sizes))
	columns := float64(tile.n) // of an instruction
	if !x.ofA {
		columns = float64(c.Rows)
	}
	results := float64(tile.m * tile.n)
	brought := float64(others) + float64(c.Lines)/x.count
	read := results/columns + results/coverRows // rows that instructions read
	return steps * max(stageCycles, float64(x.line)*max(results/coresCycle, (read+brought)/sharedCycle, brought/bytesL2))
}

// Figures of tensors that stay in the L2 cache beside what is stored: their bytes at most, and the bytes of operands that a
// multiprocessor then gets in a cycle, measured from 41 to 55.
const (
	keptL2    = 32 << 20
	bytesKept = 45
)

// bytesL2 is the bytes of operands that a multiprocessor gets from the L2 cache in a cycle.
func (x *covering) bytesL2(sizes map[string]int64) float64 {
	bytes := float64(x.arg.Type.Size())
	for _, extent := range x.shape {
		bytes *= algebra.Estimate(extent, sizes)
	}
	if bytes <= keptL2 {
		return bytesKept
	}
	return forecast.BytesL2
}

// covered is the choice of a tile whose windows are multiplied from a cover.
type covered struct {
	tiles  *ir.WindowTiles
	stages int
	cycles float64 // of a tile's products, where operands come as they do to most products
	time   float64 // of all tiles, as that of boxes
}

// coverWindows chooses the boxes of a tile whose windows are multiplied from what they cover, if the L2 cache brings so many bytes
// in a cycle; nil where there are none.
func (lo warpgroupKernel) coverWindows(w *windowContract, tile warpgroupTile, b placeBoxes, sizes map[string]int64, bytesL2 float64) *covered {
	x, name, others := w.cover, w.b.name, tile.m
	stage := tile.m // rows of the other operand in a stage, of which blocks of a cluster bring a share each
	if x.ofA {
		name, others, stage = w.a.name, tile.n/tile.cluster, tile.n
	}
	best, time := b.divide(x.rows, sizes, func(rows []int) (cycles float64, ok bool) {
		c := x.of(rows, tile.sides())
		if c == nil {
			return 0, false
		}
		_, ok = lo.room(c, x.line, stage*x.line)
		return x.multiply(c, tile, others, sizes, bytesL2), ok
	})
	if best == nil {
		return nil
	}
	c := x.of(best, tile.sides())
	stages, _ := lo.room(c, x.line, stage*x.line)
	at := slices.Clone(x.first)
	slices.Reverse(at)
	tiles := &ir.WindowTiles{View: x.view(name, best, w.Type, lo.facts), At: at, Tile: best, Cover: c}
	return &covered{tiles: tiles, stages: stages, cycles: x.multiply(c, tile, others, sizes, bytesTile), time: time}
}
