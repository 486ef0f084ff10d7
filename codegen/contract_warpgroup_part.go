package codegen

import (
	"fmt"

	"github.com/fusec/fusec/ir"
)

// Sums that accumulators hold for one stage only. Threads then add them to the sums of earlier stages.

// totalType is the C type of a sum of products of elements of a type.
func totalType(t ir.DType) string {
	if t.IsFloat() {
		return "float"
	}
	return "int"
}

// inParts reports whether threads add the sums of each stage to the total. They do for 8-bit floats, because tensor
// cores add these with fewer bits than f32 has, and for parts of f32, because tensor cores truncate sums instead of
// rounding them.
func inParts(c *ir.Contract) bool { return c.Type.IsFloat() && c.Type.Size() == 1 || c.InParts() }

// partSteps writes the loop over the stages for this. While a stage is multiplied, the one before is added to the total. Two stages
// are one round of the loop, as the registers of each have names of their own.
func (e *contractWarpgroup) partSteps(c *ir.Contract) {
	multiply := e.multiplyPart
	if coverOf(e.v) != nil {
		multiply = e.multiplyPartOfCover
		e.firstTapOfTile(c)
	}
	e.line("float part[2][BLOCKS_M][OWN_N / 2];")
	e.line("int stage[2];")
	if c.NoTaps {
		e.open("if (steps > 0)")
	}
	multiply(c, 0)
	e.line("int step = 1;")
	e.line(keptLoop)
	e.open("for (; step + 1 < steps; step += 2)")
	multiply(c, 1)
	e.line("wgmma_wait<1>();")
	e.addPart(0)
	multiply(c, 0)
	e.line("wgmma_wait<1>();")
	e.addPart(1)
	e.close()
	e.open("if (step < steps)")
	multiply(c, 1)
	e.line("wgmma_wait<1>();")
	e.addPart(0)
	e.line("wgmma_wait<0>();")
	e.addPart(1)
	e.orElse()
	e.line("wgmma_wait<0>();")
	e.addPart(0)
	e.close()
	if c.NoTaps {
		e.close()
	}
}

// multiplyPart writes the products of the next stage.
func (e *contractWarpgroup) multiplyPart(c *ir.Contract, part int) {
	e.line("barrier_wait(ring.full_at(place.stage), place.parity);")
	e.hold(fmt.Sprintf("part[%d]", part))
	e.line("wgmma_fence();")
	e.line("multiply_stage<%s>(part[%d], ring.operand_a(place.stage) + block_m * SLAB, ring.operand_b(place.stage), false);", stageLayout(c), part)
	e.line("wgmma_commit();")
	e.line("stage[%d] = place.stage;", part)
	e.line("place.advance();")
}

// addPart writes the addition of the sums of a stage, once multiplied, to those of the tile.
func (e *contractWarpgroup) addPart(part int) {
	e.hold(fmt.Sprintf("part[%d]", part))
	e.line("ring.release(stage[%d]);", part)
	if coverOf(e.v) != nil {
		e.line("if (left[%[1]d] >= 0) covers.release(left[%[1]d]);", part)
	}
	e.line("add_stage(sums, part[%d]);", part)
}

// firstTapOfTile writes the place of a tile's first tap, and passes over the boxes of a tile without taps.
func (e *contractWarpgroup) firstTapOfTile(c *ir.Contract) {
	cols := e.k.Cols
	for _, r := range cols {
		e.line("[[maybe_unused]] int %s = 0;", e.ranges[r])
	}
	if coverOf(e.v).Channels != nil {
		e.line("int box = 0;")
	}
	e.line("bool fresh = true; // whether the next tap is the first of a box")
	e.line("int left[2]; // the boxes whose last taps are multiplied, -1 for none")
	if c.NoTaps {
		e.open("if (steps == 0)")
		e.open("for (int block = 0; block < blocks; ++block, cover.advance())")
		e.line("barrier_wait(covers.full_at(cover.stage), cover.parity);")
		e.line("covers.release(cover.stage);")
		e.close()
		e.close()
	}
}

// multiplyPartOfCover writes the products of the next tap with the rows of the next stage.
func (e *contractWarpgroup) multiplyPartOfCover(c *ir.Contract, part int) {
	e.line("if (fresh) barrier_wait(covers.full_at(cover.stage), cover.parity);")
	e.line("barrier_wait(ring.full_at(place.stage), place.parity);")
	e.hold(fmt.Sprintf("part[%d]", part))
	e.line("wgmma_fence();")
	e.line("multiply_tap<Element, CoverRows>(part[%d], %s, covers.at(cover.stage) + (%s) * LINE, block_m, side, false);",
		part, coverStage(c), e.s.Bare(coverOf(e.v).Tap))
	e.line("wgmma_commit();")
	e.line("stage[%d] = place.stage;", part)
	e.line("place.advance();")
	e.nextTap(c)
	e.line("left[%d] = fresh ? cover.stage : -1;", part)
	e.line("if (fresh) cover.advance();")
}

// nextTap writes the step to the next tap, in the order in which eachTap has them, and then to the next block of channels.
func (e *contractWarpgroup) nextTap(c *ir.Contract) {
	cols, last := e.k.Cols, len(e.k.Cols)-1
	e.line("fresh = false;")
	opened := 0
	if x := coverOf(e.v); x.Channels != nil {
		e.open("if ((%[1]s += %[2]s) >= %[3]s)", e.ranges[cols[last]], e.s.Expr(x.Channels), e.s.Expr(cols[last].Extent))
		e.line("%s = box * TILE_K;", e.ranges[cols[last]])
		opened++
	}
	for d := last - 1; d >= 0; d-- {
		extent := cols[d].Extent
		if c.Taps != nil {
			extent = c.Taps[d]
		}
		e.open("if (++%s == %s)", e.ranges[cols[d]], e.s.Expr(extent))
		e.line("%s = 0;", e.ranges[cols[d]])
		opened++
	}
	e.line("fresh = true;")
	if coverOf(e.v).Channels != nil {
		e.line("%s = ++box * TILE_K;", e.ranges[cols[last]])
	}
	for range opened {
		e.close()
	}
}
