package codegen

import (
	"fmt"

	"github.com/fusec/fusec/ir"
)

// The parts of a warpgroup kernel that differ if its operands lie in several tensors, one after the other along the columns.

// sideA is the left operand, that of the first segment where there are several.
func sideA(c *ir.Contract) ir.Operand {
	if len(c.Segments) > 0 {
		return c.Segments[0].A
	}
	return c.A
}

// stepsOfSegments is the number of stages of each segment: those of one do not reach into the next.
func (e *contractWarpgroup) stepsOfSegments(c *ir.Contract) (steps []string) {
	for _, s := range c.Segments {
		steps = append(steps, fmt.Sprintf("(%s + TILE_K - 1) / TILE_K", e.s.Bare(s.Depth)))
	}
	return steps
}

// copiesOfSegments writes the copies of a stage from the tensors of the segment that it is in.
func (e *contractWarpgroup) copiesOfSegments(c *ir.Contract, rowsA int) {
	e.line("int segment_step = %s;", e.step())
	steps, last := e.stepsOfSegments(c), len(c.Segments)-1
	for i, s := range c.Segments {
		if i < last {
			e.open("if (segment_step < %s)", steps[i])
		}
		e.copiesOfStage(s.A, s.B, rowsA, "segment_step * TILE_K")
		if i < last {
			e.orElse()
			e.line("segment_step -= %s;", steps[i])
		}
	}
	for range last {
		e.close()
	}
}
