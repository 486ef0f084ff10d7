package codegen

import (
	"fmt"
	"strings"

	"github.com/fusec/fusec/codegen/spell"
	"github.com/fusec/fusec/ir"
)

// Windowed contractions whose windows are multiplied from what they cover; see ir.Cover. The copier brings a box for each block
// of channels, and for each tap of it a stage with the other operand's rows.

// coverOf is what windows of a variant cover; nil where each tap's tile is copied.
func coverOf(v *ir.Variant) *ir.Cover {
	if v.Contract == nil {
		return nil
	}
	c, _ := v.Contract.Cover()
	return c
}

// productOf is the instruction that multiplies.
func productOf(v *ir.Variant) string {
	n, t := v.Schedule.TileN/v.Schedule.Sides(), v.Contract.Type
	if c, ofA := v.Contract.Cover(); c != nil && !ofA {
		return spell.WGMMASpread(c.Rows, n, c.Every, t)
	} else if c != nil {
		return spell.WGMMASpread(n, n, 1, t)
	}
	return spell.WGMMA(n, t, false)
}

// rings writes where stages, and boxes that windows cover, are in shared memory.
func (e *contractWarpgroup) rings() {
	if coverOf(e.v) == nil {
		e.line("const Ring ring(shared);")
		return
	}
	e.line("const Covers covers(shared);")
	e.line("const Ring ring(Covers::ring_in(shared));")
}

// places writes the positions in the rings.
func (e *contractWarpgroup) places() {
	e.line("Place place;")
	if coverOf(e.v) != nil {
		e.line("CoverPlace cover;")
	}
}

// coverDefines are the figures of covers.
func coverDefines(v *ir.Variant) string {
	c, ofA := v.Contract.Cover()
	if c == nil {
		return ""
	}
	return fmt.Sprintf("#define COVERS %d\n#define COVER_LINES %d\n#define COVER_ROWS %d\n#define COVER_GROUP %d\n#define COVER_EVERY %d\n#define COVER_OF_A %t\n",
		c.Slots, c.Lines, c.Rows, c.Group, c.Every, ofA)
}

// coverShared is the shared memory of boxes and of their barriers.
func coverShared(v *ir.Variant) int {
	c := coverOf(v)
	if c == nil {
		return 0
	}
	const barriers = 2 * 8
	return c.Slots * (c.Bytes(lineBytes(v)) + barriers)
}

// coverBlocks writes the number of blocks of channels.
func (e *contractWarpgroup) coverBlocks() {
	if coverOf(e.v) == nil {
		return
	}
	e.line("const int blocks = (%s + TILE_K - 1) / TILE_K;", e.s.Expr(e.channelsOf(coverOf(e.v))))
}

// channelsOf is the channels of a tap.
func (e *contractWarpgroup) channelsOf(x *ir.Cover) *ir.Expr {
	if x.Channels != nil {
		return x.Channels
	}
	return e.k.Cols[len(e.k.Cols)-1].Extent
}

// eachTap opens the loops over the taps of a block of channels, which begins at a column, and returns how many there are.
func (e *contractWarpgroup) eachTap(c *ir.Contract) (loops int) {
	cols := e.k.Cols
	last := len(cols) - 1
	for d, r := range cols[:last] {
		extent := r.Extent
		if c.Taps != nil {
			extent = c.Taps[d]
		}
		e.line("#pragma unroll 1")
		e.open("for (int %[1]s = 0; %[1]s < %[2]s; ++%[1]s)", e.ranges[r], e.s.Expr(extent))
	}
	name := e.ranges[cols[last]]
	if x := coverOf(e.v); x.Channels != nil {
		e.line("#pragma unroll 1")
		e.open("for (int %[1]s = block * TILE_K; %[1]s < %[2]s; %[1]s += %[3]s)", name, e.s.Expr(cols[last].Extent), e.s.Expr(x.Channels))
		return last + 1
	}
	return last
}

// coverSides are the side of a contraction that is multiplied from a cover, and the other one, of which stages hold rows.
func coverSides(c *ir.Contract) (covered, other windowSide) {
	sides := windowSides(c)
	if _, ofA := c.Cover(); ofA {
		return sides[0], sides[1]
	}
	return sides[1], sides[0]
}

// coverStage is where the rows of the other operand are in the present stage.
func coverStage(c *ir.Contract) string {
	if _, ofA := c.Cover(); ofA {
		return "ring.operand_b(place.stage)"
	}
	return "ring.operand_a(place.stage)"
}

// firstTap writes the columns of a block's first tap.
func (e *contractWarpgroup) firstTap() {
	cols := e.k.Cols
	last := len(cols) - 1
	for _, r := range cols[:last] {
		e.line("[[maybe_unused]] const int %s = 0;", e.ranges[r])
	}
	e.line("const int %s = block * TILE_K;", e.ranges[cols[last]])
}

// coverCopier writes the loop over the blocks of channels of a tile, and their taps.
func (e *contractWarpgroup) coverCopier(c *ir.Contract) {
	covered, other := coverSides(c)
	rows, cluster := e.v.Schedule.TileM, 1
	if _, ofA := c.Cover(); ofA {
		rows, cluster = e.v.Schedule.TileN, sharingBlocks(e.v.Schedule)
	}
	e.open("for (int block = 0; block < blocks; ++block, cover.advance())")
	e.firstTap()
	e.line("barrier_wait(covers.empty_at(cover.stage), cover.parity ^ 1);")
	e.line("barrier_expect(covers.full_at(cover.stage), COVER_LINES * LINE);")
	e.loadCover(covered)
	loops := e.eachTap(c)
	e.line("const unsigned full = ring.full_at(place.stage);")
	e.line("barrier_wait(ring.empty_at(place.stage), place.parity ^ 1);")
	e.line("barrier_expect(full, BYTES_A + BYTES_B);")
	e.loadWindowTile(other, coverStage(c), rows, cluster)
	e.line("place.advance();")
	for range loops {
		e.close()
	}
}

// loadCover writes the copy of what a tile covers, for a block of channels.
func (e *contractWarpgroup) loadCover(s windowSide) {
	w, x := s.windowTiles.View, s.windowTiles.Cover
	if w.TileBytes() != x.Lines*lineBytes(e.v) {
		panic(fmt.Sprintf("BUG: the box of %s has %d bytes, and its cover %d lines", w.Name, w.TileBytes(), x.Lines))
	}
	at := make([]string, len(s.windowTiles.At))
	for i, place := range s.windowTiles.At {
		at[i] = e.s.Bare(place)
	}
	e.line("tma_load(covers.at(cover.stage), %s, covers.full_at(cover.stage), %s);", e.views[w], strings.Join(at, ", "))
}

// coverRows writes the class that says at which line of a box a row of a tile is.
func (e *contractWarpgroup) coverRows(c *ir.Contract) {
	covered, _ := coverSides(c)
	tile, apart := covered.windowTiles.Tile, covered.windowTiles.Cover.Apart
	var terms []string
	inner := 1
	for i := len(tile) - 1; i >= 0; i-- {
		if tile[i] > 1 {
			terms = append(terms, fmt.Sprintf("row / %d %% %d * %d", inner, tile[i], apart[i]))
		}
		inner *= tile[i]
	}
	e.open("struct CoverRows")
	e.line("static DEVICE constexpr int at(int row) { return %s; }", strings.Join(terms, " + "))
	e.closeWith(";")
}

// sumCovers writes the sums over the blocks of channels and their taps. A stage, and a box, are free when the products of the
// next tap are queued and theirs are done.
func (e *contractWarpgroup) sumCovers(c *ir.Contract) {
	e.coverRows(c)
	if inParts(c) {
		e.partSteps(c)
		e.line(othersTurn)
		return
	}
	e.line("last = -1;")
	e.line("int left = -1;")
	sums, begun := e.presentSums(c), "last >= 0"
	e.eachSum(c, "#pragma unroll")
	if c.Between != nil {
		begun = "begun"
		e.line("bool begun = false;")
		e.someStages(c)
	}
	e.line(keptLoop)
	e.open("for (int block = 0; block < blocks; ++block, cover.advance())")
	e.line("barrier_wait(covers.full_at(cover.stage), cover.parity);")
	loops := e.eachTap(c)
	e.line("barrier_wait(ring.full_at(place.stage), place.parity);")
	e.hold(sums)
	e.line("wgmma_fence();")
	e.line("multiply_tap<Element, CoverRows>(%s, %s, covers.at(cover.stage) + (%s) * LINE, block_m, side, %s);", sums, coverStage(c), e.s.Bare(coverOf(e.v).Tap), begun)
	e.line("wgmma_commit();")
	e.line("wgmma_wait<1>();")
	e.line("if (last >= 0) ring.release(last);")
	e.line("if (left >= 0) covers.release(left), left = -1;")
	e.line("last = place.stage;")
	if c.Between != nil {
		e.line("begun = true;")
	}
	e.line("place.advance();")
	for range loops {
		e.close()
	}
	if c.NoTaps { // no tap has left the box before
		e.line("if (left >= 0) covers.release(left);")
	}
	e.line("left = cover.stage;")
	e.close()
	e.endSums(c)
	e.line(othersTurn)
	e.line("wgmma_wait<0>();")
	e.holdAll(c)
	if c.NoTaps {
		e.line("if (last >= 0) ring.release(last);")
	} else {
		e.line("ring.release(last);")
	}
	e.line("covers.release(left);")
}

// skip writes that a warpgroup passes over the stages of a tile that the other one multiplies, under a condition.
func (e *contractWarpgroup) skip(c *ir.Contract, when, tile string) {
	if coverOf(e.v) == nil {
		e.line("if (%s) place.skip(%s);", when, stagesAt(c, tile))
		return
	}
	e.line("if (%s) place.skip(%s), cover.skip(%s);", when, stagesAt(c, tile), timesSums(c, "blocks"))
}
