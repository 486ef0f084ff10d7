package fuse

import (
	"maps"
	"math"
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/forecast"
	"github.com/fusec/fusec/ir"
)

// Windowed contractions through warpgroups: the tensor copy engine copies a box of the input for each tap
// and block of channels. Tiles are boxes of places in the image; where images are small they span several.

// fewChannels is a tile for weights of few channels: as few rows as one instruction multiplies. Its step
// is bound by reading operands from the L2 cache.
var fewChannels = warpgroupTile{m: 64, n: 256, turns: 2, cluster: 1, step: 690, around: 1500}

// fewChannelsInParts is that tile for parts of f32: registers hold the sums of two stages beside those of the tile.
var fewChannelsInParts = warpgroupTile{m: 64, n: 128, turns: 2, cluster: 1, step: 400, around: 1500}

// fewChannelsBeside is a tile for them of which each warpgroup has half of the columns, from what they cover: what a warpgroup does
// beside its products, to add up the sums of a stage above all, then overlaps with the products of the other one.
var fewChannelsBeside = warpgroupTile{m: 64, n: 256, turns: 1, cluster: 1, step: 690, around: 2000}

// windowContract is a windowed contraction with the tilings of its operands and what those need.
type windowContract struct {
	ir.Contract
	a, b  *windowTiling
	needs *algebra.Needs

	cover *covering // of the operand whose windows overlap; nil if none's do, or both
}

// windowContract describes how the copy engine brings both operands of a windowed contraction; nil where it cannot.
func (lo warpgroupKernel) windowContract(c ir.Contract) *windowContract {
	needs := algebra.NewNeeds(lo.positive(), true)
	a, b := lo.windowTiling(c.A, c.M, c.Type, needs), lo.windowTiling(c.B[0], c.N, c.Type, needs)
	if a == nil || b == nil {
		return nil
	}
	a.name, b.name = "map_a", "map_b"
	c.Taps, c.NoTaps = lo.tapsOf(), !lo.hasTaps()
	c.A.KLast, c.B = true, slices.Clone(c.B)
	c.B[0].KLast = true
	w := &windowContract{Contract: c, a: a, b: b, needs: needs}
	lo.coverOf(w)
	return w
}

// coverOf sets which operand's windows overlap. Types of 8 bits are multiplied tap by tap.
func (lo warpgroupKernel) coverOf(w *windowContract) {
	if w.Type.Size() == 1 {
		return
	}
	a, b := lo.coveringOf(w.A, w.M, w.Type, lo.sizes), lo.coveringOf(w.B[0], w.N, w.Type, lo.sizes)
	switch {
	case a != nil && b == nil:
		a.ofA, w.cover = true, a
	case a == nil:
		w.cover = b
	}
	if w.cover != nil {
		w.cover.sums = w.SumsEach()
	}
}

// windowWarpgroups makes the variants of a windowed contraction whose operands have their channels last.
// cost is the cycles that few tiles of the smallest shape take.
func (lo warpgroupKernel) windowWarpgroups(of ir.Contract) (out []*ir.Variant, cost *ir.Expr) {
	lo.storeTogether(&of)
	w := lo.windowContract(of)
	if w == nil {
		return nil, nil
	}
	c := w.Contract
	tiles := append(tilesFor(&c, false), fewChannels)
	switch {
	case c.Between != nil:
		tiles = betweenTiles
	case c.InParts(): // the last takes 64-bit offsets, which leave no registers for all the sums of a tile
		tiles = append([]warpgroupTile{fewChannelsBeside, fewChannelsInParts}, tilesFor(&c, false)...)
	}
	boxes := slices.DeleteFunc(lo.allBoxes(w, tiles), func(x windowBoxes) bool { return x.tile.sides() > 1 && x.stages == 0 })
	tiles = make([]warpgroupTile, len(boxes))
	for i, x := range boxes {
		tiles[i] = x.counted(&c)
	}
	for vector := widestStore(c); ; vector /= 2 {
		always := false
		for i := range tiles {
			v, ok := lo.windowWarpgroup(w, boxes[i], vector)
			if !ok {
				continue
			}
			always = ir.Decide(algebra.OrTrue(v.When), w.needs.With(ir.Facts{})) == ir.True
			v.When = algebra.And(lo.worthPlaces(&c), algebra.And(lo.cheapest(&c, tiles[i:]), v.When))
			if ir.Decide(algebra.OrTrue(v.When), ir.Facts{}) != ir.False {
				out = append(out, v)
			}
		}
		if vector == 1 || always {
			break
		}
	}
	if len(out) == 0 {
		return nil, nil
	}
	return out, ir.Apply(ir.OpAdd, lo.cost(&c, smallestTile(tiles), lo.slotsAfter(&c)), ir.IntConst(warpgroupStart))
}

// widestStore is the widest vector of what a thread writes.
func widestStore(c ir.Contract) int {
	return int(wholeVector(algebra.Innermost(c.Stored()), int64(widestVector(c.Type))))
}

// worthPlaces is the condition that there are places enough for tiles, and rows of weights: enough, or so few that they
// would not fill even a small tile of mma.sync, which has to gather its windows.
func (lo warpgroupKernel) worthPlaces(c *ir.Contract) *ir.Expr {
	worth := func(ranges []*ir.Range, o ir.Operand) *ir.Expr {
		rows := algebra.Product(ranges)
		enough := algebra.AtLeastSize(rows, splitRows)
		if read := storedRead(o.Value, c.Type); read == nil || lo.readsWindow(read, ranges) {
			return enough
		}
		few := algebra.OrTrue(algebra.And(algebra.AtLeastSize(rows, 2), algebra.AtMostSize(rows, loopedChannels)))
		return ir.Simplify(ir.Apply(ir.OpOr, enough, few), ir.Facts{})
	}
	return algebra.And(worth(c.M, c.A), worth(c.N, c.B[0]))
}

// allBoxes is the boxes of tiles of some shapes: those for the default sizes, and others for a single image if these are of several.
func (lo warpgroupKernel) allBoxes(w *windowContract, tiles []warpgroupTile) (out []windowBoxes) {
	for _, tile := range tiles {
		out = append(out, lo.windowBoxes(w, tile, lo.sizes))
	}
	one := lo.oneImage(&w.Contract)
	if one == nil {
		return out
	}
	for i, tile := range tiles {
		if x := lo.windowBoxes(w, tile, one); !x.sameTiles(out[i]) {
			out = append(out, x)
		}
	}
	return out
}

// oneImage is the default sizes with 1 for the symbols of the outermost range of places; nil if there are none.
func (lo warpgroupKernel) oneImage(c *ir.Contract) map[string]int64 {
	sizes, smaller := maps.Clone(lo.sizes), false
	for _, side := range []struct {
		o    ir.Operand
		rows []*ir.Range
	}{{c.A, c.M}, {c.B[0], c.N}} {
		if read := storedRead(side.o.Value, c.Type); len(side.rows) < 2 || !lo.readsWindow(read, side.rows) {
			continue
		}
		ir.Walk(side.rows[0].Extent, func(e *ir.Expr) bool {
			if e.Op == ir.OpSym && sizes[e.Name] > 1 {
				sizes[e.Name], smaller = 1, true
			}
			return true
		})
	}
	if !smaller {
		return nil
	}
	return sizes
}

// sameTiles reports whether two have tiles of the same boxes.
func (x windowBoxes) sameTiles(y windowBoxes) bool {
	same := func(a, b *ir.WindowTiles) bool {
		return (a == nil) == (b == nil) && (a == nil || (a.Cover == nil) == (b.Cover == nil) && slices.Equal(a.Tile, b.Tile))
	}
	return same(x.a, y.a) && same(x.b, y.b)
}

// windowBoxes is how the operands of a windowed contraction come in tiles of one shape.
type windowBoxes struct {
	tile   warpgroupTile // its cycles are those with these boxes
	a, b   *ir.WindowTiles
	phases int
	line   int // bytes of a row in a stage
	stages int // where windows are multiplied from what they cover; else as many as fit
}

// counted is the tile with the number of its boxes.
func (x windowBoxes) counted(c *ir.Contract) warpgroupTile {
	t := x.tile
	if x.a == nil || x.b == nil {
		return t
	}
	a, b := c.A, c.B[0]
	a.WindowTiles, b.WindowTiles = x.a, x.b
	t.shares = ir.Apply(ir.OpMul, algebra.CeilDiv(tilesOfSide(a, c.M, t.m), int64(t.cluster)), tilesOfSide(b, c.N, t.n))
	return t
}

// windowBoxes chooses the boxes for the given sizes: those of each tap, or what a tile covers where that is faster.
func (lo warpgroupKernel) windowBoxes(w *windowContract, tile warpgroupTile, sizes map[string]int64) windowBoxes {
	c := &w.Contract
	out := windowBoxes{tile: tile, line: warpgroupLine}
	if c.Taps == nil { // otherwise all batches follow each other
		out.phases = lo.phases(c)
	}
	b := lo.placeBoxes(c, tile, sizes, forecast.BytesL2)
	out.a = lo.windowTiles(w.a, c.Type, b.ofM(tile), sizes)
	out.b = lo.windowTiles(w.b, c.Type, b.ofN(tile, c.M, sizes), sizes)
	if w.cover != nil && out.a != nil && out.b != nil {
		lo.coverBoxes(w, &out, sizes)
	}
	return out
}

// coverBoxes makes windows come as what they cover where that is faster than the boxes of each tap.
func (lo warpgroupKernel) coverBoxes(w *windowContract, out *windowBoxes, sizes map[string]int64) {
	c, tile, rate := &w.Contract, out.tile, w.cover.bytesL2(sizes)
	sideOf := func(tile warpgroupTile) placeBoxes {
		b := lo.placeBoxes(c, tile, sizes, rate)
		if w.cover.ofA {
			return b.ofM(tile)
		}
		return b.ofN(tile, c.M, sizes)
	}
	apart, places := sideOf(tile), out.a.Tile
	if !w.cover.ofA {
		places = out.b.Tile
		tile.cluster = 1 // blocks of a cluster share tiles of the second operand, and each has a cover of its own
	}
	if places == nil {
		places = []int{apart.rows}
	}
	if found := lo.coverWindows(w, tile, sideOf(tile), sizes, rate); found != nil && found.time < coverGain*apart.timeOf(w.cover.rows, places, sizes) {
		lo.takeCover(w, out, tile, found, sizes)
	}
}

// takeCover makes windows come as what they cover, and the other operand in lines of as many channels.
func (lo warpgroupKernel) takeCover(w *windowContract, out *windowBoxes, tile warpgroupTile, found *covered, sizes map[string]int64) {
	c := &w.Contract
	boxes := lo.placeBoxes(c, tile, sizes, forecast.BytesL2)
	boxes.line = w.cover.line
	a, b := found.tiles, found.tiles
	if w.cover.ofA {
		b = lo.windowTiles(w.b, c.Type, boxes.ofN(tile, c.M, sizes), sizes)
	} else {
		a = lo.windowTiles(w.a, c.Type, boxes.ofM(tile), sizes)
	}
	if a == nil || b == nil {
		return
	}
	tile.step = int64(math.Ceil(found.cycles / math.Max(1, algebra.Estimate(lo.stepsOf(c), sizes))))
	out.tile, out.a, out.b, out.line, out.stages = tile, a, b, w.cover.line, found.stages
}

// windowWarpgroup builds one variant; ok is false where nothing is written in vectors of that width, or a tile's rows cannot be
// a box.
func (lo warpgroupKernel) windowWarpgroup(w *windowContract, x windowBoxes, vector int) (*ir.Variant, bool) {
	if x.a == nil || x.b == nil {
		return nil, false
	}
	c := w.Contract
	lo = lo.byLane(&c)
	v := lo.contractBody(&c)
	v.Schedule = lo.warpgroupSchedule(x.tile, c.Type, vector)
	v.Schedule.TileK = x.line / c.Type.Size()
	if x.stages > 0 {
		v.Schedule.Stages = x.stages
	}
	c.B = slices.Clone(c.B)
	v.Contract = &c
	c.Phases, c.A.WindowTiles, c.B[0].WindowTiles = x.phases, x.a, x.b
	v.TensorMaps = []*ir.TMAView{c.A.WindowTiles.View, c.B[0].WindowTiles.View}
	v.When, v.Facts = w.needs.Condition(), w.needs.With(lo.facts)
	if vector == 1 {
		return v, true
	}
	lane := algebra.Innermost(c.Stored())
	if t := c.B[0].WindowTiles.Tile; t != nil && t[len(t)-1]*c.SumsEach()%vector != 0 {
		return nil, false
	}
	aligned, wide := lo.widen(v, lane, vector)
	if wide == 0 || len(c.N) > 1 && !ir.Multiple(lane.Extent, int64(vector), v.Facts) {
		return nil, false
	}
	if aligned != nil {
		v.Facts = w.needs.With(v.Facts)
		v.When = algebra.Divisible(v.Facts)
	}
	return v, true
}

// windowTiles is how tiles of an operand of type t come: blocks of a cluster bring an equal share of each. It is nil where there
// are no such tiles.
func (lo warpgroupKernel) windowTiles(x *windowTiling, t ir.DType, boxes placeBoxes, sizes map[string]int64) *ir.WindowTiles {
	w := &ir.TMAView{Name: x.name, Arg: x.arg, Swizzle: boxes.line, TF32: t == ir.F32}
	out := &ir.WindowTiles{View: w}
	tile := boxes.choose(x, sizes)
	if tile == nil {
		return nil
	}
	if len(x.rows) > 1 {
		out.Tile = tile
	}
	cluster := boxes.cluster
	for tile[out.Share] == 1 && out.Share < len(tile)-1 {
		out.Share++
	}
	stride := ir.IntConst(1)
	for d := len(x.shape) - 1; d >= 0; d-- {
		box := 1
		switch i := x.along[d]; {
		case d == len(x.shape)-1:
			box = boxes.line / t.Size()
		case i >= 0:
			if box = tile[i]; i == out.Share {
				box /= cluster
			}
		}
		if box *= x.steps[d]; box > mostTMATile {
			return nil
		}
		w.Dims, w.Box = append(w.Dims, x.shape[d]), append(w.Box, box)
		out.At = append(out.At, x.at[d])
		if d < len(x.shape)-1 {
			w.Strides = append(w.Strides, stride)
		}
		stride = x.strideBefore(d, stride, lo.facts)
	}
	if slices.Max(x.steps) > 1 {
		w.Steps = slices.Clone(x.steps)
		slices.Reverse(w.Steps)
	}
	return out
}
