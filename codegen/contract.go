package codegen

import (
	"fmt"
	"slices"

	"github.com/fusec/fusec/ir"
)

// contractEmitter writes kernels of products. Vectors of the epilogue run along the results.
type contractEmitter struct{ laneEmitter }

func newContract(e *emitter) contractEmitter { return contractEmitter{laneEmitter{emitter: e}} }

// rightName is the name in the text of the right operand of fold i.
func rightName(i int) string {
	if i == 0 {
		return "b"
	}
	return fmt.Sprintf("b%d", i+1)
}

// tilePosition writes which tile a block computes, given its number. Groups of eight rows of tiles go
// along N together, so that the operands of blocks that run at a time fit the L2 cache.
func (e *contractEmitter) tilePosition(c *ir.Contract, block string) {
	e.line("const INDEX tiles_m = (extent_m + TILE_M - 1) / TILE_M, tiles_n = (extent_n + TILE_N - 1) / TILE_N;")
	tiles := "(tiles_m * tiles_n)"
	if c.Symmetric {
		tiles = "(tiles_m * (tiles_m + 1) / 2)"
	}
	e.line("const INDEX tile = %s %% %s;", block, tiles)
	if len(c.Batch) > 0 {
		e.line("const INDEX batch = %s / %s;", block, tiles)
		e.take(c.Batch, "batch", append(e.every(), c.Taps...)...)
	}
	if c.Symmetric { // row by row, each of which begins on the diagonal
		e.line("INDEX tile_m = 0, tile_n = tile;")
		e.line("for (; tile_n >= tiles_n; ++tile_m) tile_n -= tiles_n - tile_m - 1;")
		e.line("const INDEX origin_m = tile_m * TILE_M, origin_n = tile_n * TILE_N;")
		return
	}
	e.line("constexpr int GROUP = 8;")
	e.line("const INDEX group_top = tile / (GROUP * tiles_n) * GROUP, group_rows = min(tiles_m - group_top, (INDEX)GROUP);")
	e.line("const INDEX origin_m = (group_top + tile %% (GROUP * tiles_n) %% group_rows) * TILE_M;")
	e.line("const INDEX origin_n = tile %% (GROUP * tiles_n) / group_rows * TILE_N;")
}

// contractGrid is the number of blocks: tiles, in every batch.
func contractGrid(_ *ir.Kernel, v *ir.Variant) *ir.Expr {
	c, s := v.Contract, v.Schedule
	if c.Symmetric {
		return ir.Apply(ir.OpMul, ir.Triangle(ceilDiv(product(extents(c.M)), int64(s.TileM))), product(extents(c.Batch)))
	}
	tiles := ir.Apply(ir.OpMul, ceilDiv(product(extents(c.M)), int64(s.TileM)), ceilDiv(product(extents(c.N)), int64(s.TileN)))
	return ir.Apply(ir.OpMul, tiles, product(extents(c.Batch)))
}

// productFold is the fold of the product, in the last section before the stores.
func productFold(v *ir.Variant) *ir.Fold { return v.Sections[len(v.Sections)-2].Folds[0] }

// epilogueLane chooses the range along which vectors of results run: the innermost range of rows, unless
// that is one of the batch.
func (e *contractEmitter) epilogueLane(c *ir.Contract) {
	if slices.Contains(c.Batch, e.lane) {
		e.lane = nil
	}
}

// sumStores writes the stores of the elements whose sums are in total, at at_m and at_n.
func (e *contractEmitter) sumStores(c *ir.Contract, f *ir.Fold, row *ir.Section) {
	e.sumPlace(c.M, "at_m", row)
	e.sumPlace(c.N, "at_n", row)
	e.storeSums(f, row)
}

// sumPlace writes the indices of rows on which the epilogue depends, computed from the position
// linear.
func (e *contractEmitter) sumPlace(rows []*ir.Range, linear string, row *ir.Section) {
	uses := append(definitions(e.wants(ir.RowLevel, func(*ir.Local) bool { return false }, sectionRoots(row)...)), sectionRoots(row)...)
	if e.lane == nil || !slices.Contains(rows, e.lane) {
		e.take(rows, linear, uses...)
		return
	}
	outer := rows[:len(rows)-1]
	if len(outer) == 0 {
		e.line("[[maybe_unused]] const INDEX first = %s;", linear)
	} else {
		extent := e.extentDivisor(e.lane)
		e.line("[[maybe_unused]] const INDEX first = %s %% %s;", linear, extent)
		if e.dependsOn(outer, uses) {
			e.line("const INDEX lane_outer = %s / %s;", linear, extent)
			e.take(outer, "lane_outer", uses...)
		}
	}
	e.laneCount()
}

// laneCount writes how many of the lanes from first on exist.
func (e *contractEmitter) laneCount() {
	lanes := "VECTOR"
	if !e.wholeLanes() {
		lanes = fmt.Sprintf("(int)min(%s - first, (INDEX)VECTOR)", e.s.Expr(e.lane.Extent))
	}
	e.line("[[maybe_unused]] const int n = %s;", lanes)
}

// storeSums writes the stores themselves.
func (e *contractEmitter) storeSums(f *ir.Fold, row *ir.Section) {
	e.place[f.Result] = "total[v]"
	if e.lane == nil {
		e.place[f.Result] = "total[0]"
	}
	e.done = map[*ir.Local]bool{} // because an operand may have computed the same locals elsewhere
	e.rowValues(sectionRoots(row))
	e.flatStores(row, nil, nil)
}

// contracted is the ranges that the kernel's products sum over.
func (e *contractEmitter) contracted() []*ir.Range {
	if d := e.v.Contract.Depth; d != nil {
		return d
	}
	return e.k.Cols
}

// columnsOf is the number of points of N.
func (e *contractEmitter) columnsOf(c *ir.Contract) string {
	if c.Width != nil {
		return e.s.Bare(c.Width)
	}
	return e.size(c.N)
}
