package codegen

import "github.com/fusec/fusec/ir"

// The parts of a warpgroup kernel that differ if the columns of a tile are cut into slices, whose sums pass through
// memory (skeleton/warpgroup_slices.cuh).

// tilesOfAll writes the tiles, or the slices of tiles.
func (e *contractWarpgroup) tilesOfAll(c *ir.Contract) {
	if c.Slices == nil {
		e.line("Tiles tiles(extent_m, extent_n, %s);", e.size(c.Batch))
		return
	}
	e.line("SlicedTiles tiles(extent_m, extent_n, %s, %s, all_steps);", e.size(c.Batch), e.s.Bare(c.Slices))
}

// addSlices writes the sum of a tile over its slices. The warpgroup that comes last has it, and the others go on.
func (e *contractWarpgroup) addSlices(c *ir.Contract) {
	if c.Slices != nil {
		e.line("if (!add_tile_slices(sums, %s, %s, tiles)) continue;", e.workspace, e.counters)
	}
}

// warpgroupOwn is the workspace of slices: the sums of all, and a counter for each tile.
func warpgroupOwn(_ *ir.Kernel, v *ir.Variant) workspace {
	c, s := v.Contract, v.Schedule
	if c.Slices == nil {
		return workspace{}
	}
	sums := ir.Apply(ir.OpMul, c.Slices, ir.IntConst(int64(s.TileM*s.TileN*4)))
	return workspace{counters: tilesOf(v), bytes: ir.Apply(ir.OpMul, tilesOf(v), sums)}
}
