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

// partSteps writes the loop over the stages for this. It takes two stages at a time: one is added to the
// total while the other is multiplied.
func (e *contractWarpgroup) partSteps(c *ir.Contract) {
	e.line("float part[2][BLOCKS_M][TILE_N / 2];")
	e.line(keptLoop)
	e.open("for (int step = 0; step < steps; step += 2)")
	e.line("const bool both = step + 1 < steps;")
	e.line("const int stage = place.stage;")
	e.multiplyPart(c, 0)
	e.open("if (both)")
	e.multiplyPart(c, 1)
	e.line("wgmma_wait<1>();")
	e.orElse()
	e.line("wgmma_wait<0>();")
	e.close()
	e.addPart(0, "stage")
	e.open("if (both)")
	e.line("wgmma_wait<0>();")
	e.addPart(1, "last")
	e.close()
	e.close()
}

// multiplyPart writes the products of the next stage.
func (e *contractWarpgroup) multiplyPart(c *ir.Contract, part int) {
	e.line("barrier_wait(ring.full_at(place.stage), place.parity);")
	e.hold(fmt.Sprintf("part[%d]", part))
	e.line("wgmma_fence();")
	e.line("multiply_stage<%s>(part[%d], ring.operand_a(place.stage) + block_m * SLAB, ring.operand_b(place.stage), false);", stageLayout(c), part)
	e.line("wgmma_commit();")
	e.line("last = place.stage;")
	e.line("place.advance();")
}

// addPart writes the addition of the sums of a stage, once multiplied, to those of the tile.
func (e *contractWarpgroup) addPart(part int, stage string) {
	e.hold(fmt.Sprintf("part[%d]", part))
	e.line("ring.release(%s);", stage)
	e.line("add_stage(sums, part[%d]);", part)
}
