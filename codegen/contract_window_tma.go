package codegen

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fusec/fusec/ir"
)

// Windowed contractions through warpgroups. The rows of a tile are a box of places. Stages are blocks of
// channels, of one tap after the other.

// rowsInTiles is the number of rows of one side. Where tiles are boxes it counts the rows of all boxes,
// whole.
func (e *contractWarpgroup) rowsInTiles(c *ir.Contract, o ir.Operand, own []*ir.Range, rows string) string {
	if o.WindowTiles == nil || o.WindowTiles.Tile == nil {
		return rows
	}
	return e.s.Bare(ir.Simplify(tiledRows(o, own), ir.Facts{}))
}

// tiledRows is the number of rows in all boxes of a side.
func tiledRows(o ir.Operand, own []*ir.Range) *ir.Expr {
	if o.WindowTiles == nil || o.WindowTiles.Tile == nil {
		return product(extents(own))
	}
	rows := ir.IntConst(1)
	for i, r := range own {
		n := int64(o.WindowTiles.Tile[i])
		rows = ir.Apply(ir.OpMul, rows, ir.Apply(ir.OpMul, ceilDiv(r.Extent, n), ir.IntConst(n)))
	}
	return rows
}

// stepsOf is the number of stages for all columns.
func (e *contractWarpgroup) stepsOf(c *ir.Contract) string {
	if len(c.Segments) > 0 {
		return strings.Join(e.stepsOfSegments(c), " + ")
	}
	if c.A.WindowTiles == nil {
		return fmt.Sprintf("(%s + TILE_K - 1) / TILE_K", e.size(e.contracted()))
	}
	last := len(e.k.Cols) - 1
	if x := coverOf(e.v); x != nil && x.Channels != nil {
		return fmt.Sprintf("blocks * (%s / %s)", e.size(e.k.Cols), e.s.Expr(x.Channels))
	}
	blocks := fmt.Sprintf("(%s + TILE_K - 1) / TILE_K", e.size(e.k.Cols[last:]))
	if last == 0 {
		return blocks
	}
	return fmt.Sprintf("%s * (%s)", e.size(e.k.Cols[:last]), blocks)
}

// stepsAt writes the order of tiles where it is not that of batches, and where taps are absent from some batches the
// function that counts the stages of a tile.
func (e *contractWarpgroup) stepsAt(c *ir.Contract) {
	if c.Phases > 0 {
		e.line("// Tiles of %d batches, whose results lie between each other, follow each other, so that lines fill up in the L2 cache.", c.Phases)
		e.open("auto in_turn = [&](int tile)")
		e.line("const int of_batch = tiles.shares_m * tiles.tiles_n, place = tile / %d;", c.Phases)
		e.line("return (place / of_batch * %[1]d + tile %% %[1]d) * of_batch + place %% of_batch;", c.Phases)
		e.closeWith(";")
	}
	if c.Taps == nil {
		return
	}
	e.line("// Batches of one place follow each other, so that lines which several of them write fill up in the L2 cache. A")
	e.line("// block whose tiles would all be of one batch goes from batch to batch: some have more stages than others.")
	e.open("auto in_turn = [&](int tile)")
	e.line("const int batches = %s, stride = Tiles::tile_stride(), round = stride %% batches == 0 ? tile / stride : 0;", e.size(c.Batch))
	e.line("return (tile %% batches + round) %% batches * (tiles.shares_m * tiles.tiles_n) + tile / batches;")
	e.closeWith(";")
	if c.Between != nil {
		e.open("auto steps_at = [&](int tile, int %s)", e.ranges[c.Between])
	} else {
		e.open("auto steps_at = [&](int tile)")
	}
	e.line("const INDEX batch = in_turn(tile) / (tiles.shares_m * tiles.tiles_n);")
	e.take(c.Batch, "batch", c.Taps...)
	last := len(e.k.Cols) - 1
	steps := fmt.Sprintf("(%s + TILE_K - 1) / TILE_K", e.size(e.k.Cols[last:]))
	for _, n := range c.Taps {
		steps = fmt.Sprintf("%s * (%s)", e.s.Expr(n), steps)
	}
	e.line("return (int)(%s);", steps)
	e.closeWith(";")
}

// stepsOfTile writes the number of stages of the present tile, where that is not the same for all.
func (e *contractWarpgroup) stepsOfTile(c *ir.Contract) {
	if c.Taps != nil && c.Between == nil { // otherwise each sum of the tile has its own
		e.line("const int steps = steps_at(tile);")
	}
}

// goTo writes the place of the present tile.
func (e *contractWarpgroup) goTo(c *ir.Contract) {
	if c.Taps == nil && c.Phases == 0 {
		e.line("tiles.go_to(tile);")
		return
	}
	e.line("tiles.go_to(in_turn(tile));")
}

// stagesAt is the number of stages of a tile.
func stagesAt(c *ir.Contract, tile string) string {
	switch {
	case c.Taps == nil && c.Between == nil:
		return "steps"
	case c.Taps == nil:
		return fmt.Sprintf("%d * steps", c.SumsEach())
	case c.Between == nil:
		return fmt.Sprintf("steps_at(%s)", tile)
	}
	all := make([]string, c.SumsEach())
	for i := range all {
		all[i] = fmt.Sprintf("steps_at(%s, %d)", tile, i)
	}
	return strings.Join(all, " + ")
}

// tileBases writes the first places of the tiles that are boxes.
func (e *contractWarpgroup) tileBases(c *ir.Contract) {
	if c.A.WindowTiles == nil {
		return
	}
	for _, s := range windowSides(c) {
		e.tileBase(s)
	}
}

// windowSide is one side of a windowed contraction.
type windowSide struct {
	name, size  string
	own         []*ir.Range
	windowTiles *ir.WindowTiles
}

func windowSides(c *ir.Contract) []windowSide {
	return []windowSide{{"m", "TILE_M", c.M, c.A.WindowTiles}, {"n", "TILE_N", c.N, c.B[0].WindowTiles}}
}

// origin is the first row or column of the present tile, as results are stored.
func (s windowSide) origin(c *ir.Contract) string {
	if s.name == "n" {
		return timesSums(c, "tiles.n")
	}
	return "tiles." + s.name
}

// tileBase writes the first place of a side's tile where that is a box.
func (e *contractWarpgroup) tileBase(s windowSide) {
	if s.windowTiles.Tile == nil {
		return
	}
	left := fmt.Sprintf("tiles.%s / %s", s.name, s.size)
	for i := len(s.own) - 1; i >= 0; i-- {
		n := int64(s.windowTiles.Tile[i])
		base := e.tileFirst(s.own[i])
		if i == 0 {
			e.line("const int %s = (%s) * %d;", base, left, n)
			break
		}
		count := e.s.Bare(ir.Simplify(ceilDiv(s.own[i].Extent, n), ir.Facts{}))
		e.line("const int %s = (%s) %% (%s) * %d, %s_left = (%s) / (%s);", base, left, count, n, base, left, count)
		left = base + "_left"
	}
}

// tileFirst is the name of the first place of a tile along a range.
func (e *contractWarpgroup) tileFirst(r *ir.Range) string { return e.ranges[r] + "_base" }

// windowCopier writes the loop over the stages of a tile: the channels of a tap, block by block, then
// those of the next tap.
func (e *contractWarpgroup) windowCopier(c *ir.Contract) {
	var uses []*ir.Expr
	for _, s := range windowSides(c) {
		uses = append(uses, s.windowTiles.At...)
	}
	uses = append(uses, c.Taps...)
	e.take(c.Batch, tileBatch(c.Batch), uses...)
	e.tileBases(c)
	e.eachSum(c, "#pragma unroll 1")
	for _, s := range windowSides(c) {
		for _, r := range s.own {
			base := e.tileFirst(r)
			if s.windowTiles.Tile == nil {
				base = "tiles." + s.name
			}
			e.line("[[maybe_unused]] const int %s = %s;", e.ranges[r], base)
		}
	}
	if coverOf(e.v) != nil {
		e.coverCopier(c)
		e.endCopier()
		return
	}
	cols := e.k.Cols
	e.firstColumns(cols)
	e.open("for (int step = 0; step < steps; ++step, place.advance())")
	e.line("const unsigned full = ring.full_at(place.stage);")
	e.line("barrier_wait(ring.empty_at(place.stage), place.parity ^ 1);")
	e.line("barrier_expect(full, BYTES_A + BYTES_B);")
	sides := windowSides(c)
	e.loadWindowTile(sides[0], "ring.operand_a(place.stage)", e.v.Schedule.TileM, 1)
	e.loadWindowTile(sides[1], "ring.operand_b(place.stage)", e.v.Schedule.TileN, sharingBlocks(e.v.Schedule))
	last := len(cols) - 1
	e.line("%s += TILE_K;", e.ranges[cols[last]])
	for d := last; d > 0; d-- {
		extent := cols[d].Extent
		if d < last && c.Taps != nil {
			extent = c.Taps[d]
		}
		e.line("if (%s >= %s) %s = 0, ++%s;", e.ranges[cols[d]], e.s.Expr(extent), e.ranges[cols[d]], e.ranges[cols[d-1]])
	}
	e.endCopier()
}

// firstColumns writes the place of a block's first stage: the first tap and its first channels, or where the
// block's part of the columns begins.
func (e *contractWarpgroup) firstColumns(cols []*ir.Range) {
	last := len(cols) - 1
	if !e.split {
		for _, r := range cols {
			e.line("int %s = 0;", e.ranges[r])
		}
		return
	}
	left := "first_step"
	for d := last; d >= 0; d-- {
		name, extent, scale := e.ranges[cols[d]], e.s.Expr(cols[d].Extent), ""
		if d == last {
			extent, scale = fmt.Sprintf("(%s + TILE_K - 1) / TILE_K", extent), " * TILE_K"
		}
		if d == 0 {
			e.line("int %s = (%s)%s;", name, left, scale)
			return
		}
		e.line("int %s = (%s) %% (%s)%s;", name, left, extent, scale)
		left = fmt.Sprintf("%s / (%s)", left, extent)
	}
}

// loadWindowTile writes the copy of one side's rows of a stage, or of the block's share of them, which it
// sends to all blocks of the cluster.
func (e *contractWarpgroup) loadWindowTile(s windowSide, to string, rows, cluster int) {
	w := s.windowTiles.View
	if cluster*w.TileBytes() != rows*lineBytes(e.v) {
		panic(fmt.Sprintf("BUG: TMA tiles of %s bring %d bytes of the %d that the barrier is told", w.Name, cluster*w.TileBytes(), rows*lineBytes(e.v)))
	}
	call := "tma_load("
	share := s.own[s.windowTiles.Share]
	at := make([]string, len(s.windowTiles.At))
	for i, x := range s.windowTiles.At {
		at[i] = e.s.Bare(x)
		if cluster > 1 && ir.DependsOn(x, share) {
			at[i] += fmt.Sprintf(" + cluster_rank() * %d", e.tileOf(s, share, rows)/cluster*w.Step(len(at)-1-i))
		}
	}
	if cluster > 1 {
		call = fmt.Sprintf("tma_load_multicast(%d, ", 1<<cluster-1)
		to += fmt.Sprintf(" + cluster_rank() * %d", rows/cluster*lineBytes(e.v))
	}
	e.line("%s%s, %s, full, %s);", call, to, e.views[w], strings.Join(at, ", "))
}

// tileOf is the number of a tile's places along one of its ranges of rows.
func (e *contractWarpgroup) tileOf(s windowSide, r *ir.Range, rows int) int {
	if s.windowTiles.Tile == nil {
		return rows
	}
	return s.windowTiles.Tile[slices.Index(s.own, r)]
}

// windowPosition writes the places of the row at_m and of the column at_n of a tile, the latter as first
// of its vector. It goes on with the next vector where they are outside.
func (e *contractWarpgroup) windowPosition(c *ir.Contract, uses ...*ir.Expr) {
	for _, s := range storedSides(c) {
		if s.windowTiles.Tile == nil {
			if s.name == "n" {
				e.firstOfLanes(s.own, uses...)
			} else {
				e.take(s.own, "at_"+s.name, uses...)
			}
			continue
		}
		e.line("const int inside_%s = at_%s - %s;", s.name, s.name, s.origin(c))
		inner := 1
		var inside []string
		for i := len(s.own) - 1; i >= 0; i-- {
			r, n := s.own[i], s.windowTiles.Tile[i]
			name := e.ranges[r]
			if r == e.lane {
				name = "first"
			}
			e.line("[[maybe_unused]] const INDEX %s = %s;", name, e.placeInTile(s, i, inner))
			inside = append(inside, fmt.Sprintf("%s >= %s", name, e.s.Expr(r.Extent)))
			inner *= n
		}
		e.line("if (%s) continue;", strings.Join(inside, " || "))
	}
}
