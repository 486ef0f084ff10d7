package codegen

import "github.com/fusec/fusec/ir"

// The parts of a warpgroup kernel that differ if its columns are split over the blocks of a cluster
// (split-K).

// splitK writes how many stages a block multiplies, and which is its first.
func (e *contractWarpgroup) splitK() {
	if !e.split {
		e.line("const int steps = all_steps;")
		return
	}
	e.line("const int first_step = all_steps * cluster_rank() / SPLIT_K, steps = all_steps * (cluster_rank() + 1) / SPLIT_K - first_step;")
}

// step is the number of a stage of the whole sum.
func (e *contractWarpgroup) step() string {
	if e.split {
		return "(first_step + step)"
	}
	return "step"
}

// cachePolicies writes the cache hint for operands of split-K: tiles that read the same elements do so at
// the same time, so the L2 cache may evict all of them first. Windows are read again for each of their taps.
func (e *contractWarpgroup) cachePolicies() {
	if e.split && e.v.Contract.A.WindowTiles == nil {
		e.line("const unsigned long long policy = evict_first();")
	}
}

// policy is the name of that hint; empty where the tensor copy engine gets none.
func (e *contractWarpgroup) policy() string {
	if e.split {
		return "policy"
	}
	return ""
}

// splitEpilogue writes the epilogue. Blocks leave their sums in shared memory, then the warps of all
// blocks divide the tile among themselves by vectors: each adds the sums of all splits, computes and
// stores. A block has one tile, so its stages are not filled again.
func (e *contractWarpgroup) splitEpilogue(c *ir.Contract) {
	row := e.v.Sections[1]
	e.line("leave_parts(ring, sums, block_m, extent_m - tiles.m);")
	e.line("Ring::meet();")
	e.line("constexpr int VECTORS = STAGED / VECTOR, PASSES = VECTORS / 2;")
	e.open("for (int share = cluster_rank() + uniform(threadIdx.x / 32) * SPLIT_K; share < TILE_M / 16 * PARTS_N * PASSES; share += SPLIT_K * 4 * MULTIPLIERS)")
	e.line("const int pass = share %% PASSES, part = share / PASSES;")
	e.line("const INDEX part_m = tiles.m + part / PARTS_N * 16, chunk_n = tiles.n + part %% PARTS_N * STAGED;")
	e.epiloguePosition(c, "part_m", append(definitions(e.rowLocalsOf(row)), sectionRoots(row)...))
	for _, l := range e.tileReads() { // they are in flight while sums are read
		e.rawName[l] = e.names.Fresh(l.Name)
		e.atFirst(func() { e.noted(l.Span, "const auto %s = %s;", e.rawName[l], e.wide(readOf(l.Def))) })
		e.place[l] = converted(l, e.rawName[l]+".v[v]")
		e.done[l] = true
	}
	sum := e.v.Sections[0].Folds[0].Result
	name := e.names.Fresh(sum.Name)
	e.line("float %s[VECTOR];", name)
	e.noted(sum.Span, "add_parts(%s, ring, part, at_row, at_column);", name)
	e.place[sum] = name + "[v]"
	e.rowValues(sectionRoots(row))
	e.flatStores(row, nil, nil)
	e.close()
}

// splitGrid is the number of blocks: one for each split of each tile.
func splitGrid(_ *ir.Kernel, v *ir.Variant) *ir.Expr {
	return ir.Apply(ir.OpMul, warpgroupShares(v, 1), ir.IntConst(int64(v.Schedule.SplitK)))
}

// splitShared is the dynamic shared memory of a block: alignment, stages and barriers. At the end the
// sums use the memory of the stages.
func splitShared(v *ir.Variant) int {
	s := v.Schedule
	const alignment, barriers = 1024, 2 * 8
	m, n := stageRows(v)
	return alignment + 8*s.Turns + s.Stages*((m+n)*lineBytes(v)+barriers)
}
