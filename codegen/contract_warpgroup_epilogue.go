package codegen

import (
	"fmt"
	"slices"

	"github.com/fusec/fusec/codegen/spell"
	"github.com/fusec/fusec/ir"
)

// warpgroupEpilogue writes the epilogue. Each warp stages 16 rows of 64 sums at a time in shared memory,
// so that a thread gets VECTOR neighbours of a row. Meanwhile the thread issues its other reads. Then it
// computes and stores. All that the threads do for one such part is there once, in a loop over the parts: copies for
// each would run one after the other too, as parts share the staging area, and take long to compile.
func (e *contractWarpgroup) warpgroupEpilogue(c *ir.Contract) {
	row := e.v.Sections[1]
	unroll := keptLoop
	if manySums(e.v) { // sums that are staged make room in registers, if it is known which these are
		unroll = "#pragma unroll"
	}
	e.tileChunks(fmt.Sprintf("STAGED / %d", len(c.B)), unroll)
	convertShared := e.prefetchReads(c)
	e.line("__syncwarp();")
	if c.Between != nil {
		e.line("stage_between<CHUNK>(staging, sums, block, chunk);")
	} else {
		e.line("stage_chunk<CHUNK>(staging, sums, block, chunk);")
	}
	e.line("__syncwarp();")
	convertShared()
	uses := append(definitions(e.rowLocalsOf(row)), sectionRoots(row)...)
	if e.isSteady(c, uses) {
		e.passes(steadyUnits)
		e.steadyPosition(c, uses)
		defer func() { e.storeIf = "" }()
	} else {
		e.passes(plainUnits)
		e.epiloguePosition(c, "warp_m + block * 64", uses)
	}
	for i, f := range e.v.Sections[0].Folds {
		name := e.names.Fresh(f.Result.Name)
		e.line("%s %s[VECTOR];", totalType(c.Type), name)
		e.noted(f.Result.Span, "stage_get(%s, staging, at_row, at_column + %d * CHUNK);", name, i)
		e.place[f.Result] = name + "[v]"
		if !c.Type.IsFloat() {
			e.place[f.Result] = fmt.Sprintf("(%s)%s[v]", spell.ComputeType(f.Result.Type), name)
		}
	}
	e.rowValues(sectionRoots(row))
	e.flatStores(row, nil, nil)
	e.close()
	e.close()
	e.close()
}

// rowLocalsOf lists the row-level locals that a section needs.
func (e *contractWarpgroup) rowLocalsOf(sec *ir.Section) []*ir.Local {
	return e.wants(ir.RowLevel, func(*ir.Local) bool { return false }, sectionRoots(sec)...)
}

// plainUnits is how many passes of short vectors are unrolled together.
const plainUnits = 2

// passes opens the loop over the vectors of a chunk that a thread takes, so many of them unrolled together where there are many.
func (e *contractWarpgroup) passes(units int) {
	if manySums(e.v) { // keep nothing in registers between passes
		e.line("#pragma unroll 1")
	} else {
		e.line("#pragma unroll (PASSES <= 8 ? PASSES : VECTOR == 1 ? 8 : %d)", units)
	}
	e.open("for (int pass = 0; pass < PASSES; ++pass)")
}

// vectorOfPass writes which vector of the chunk the thread takes in this pass.
func (e *contractWarpgroup) vectorOfPass() {
	e.line("const int item = pass * 32 + threadIdx.x %% 32, at_row = item / VECTORS, at_column = item %% VECTORS * VECTOR;")
}

// tileChunks opens the loops over what a warp stages at a time: 16 rows of columns columns of the tile. unroll says whether
// the compiler unrolls them.
func (e *contractWarpgroup) tileChunks(columns, unroll string) {
	e.line("const INDEX warp_m = tiles.m + block_m * 64 + threadIdx.x / 32 %% 4 * 16;")
	e.line("constexpr int CHUNK = %s, VECTORS = CHUNK / VECTOR, PASSES = VECTORS / 2;", columns)
	e.line("%s", unroll)
	e.open("for (int block = 0; block < BLOCKS_M; ++block)")
	e.line("%s", unroll)
	c := e.v.Contract
	e.open("for (int chunk = 0; chunk < %s / CHUNK; ++chunk)", timesSums(c, "OWN_N_EACH"))
	e.line("const INDEX chunk_n = %s + side * OWN_N_EACH + chunk * CHUNK;", timesSums(c, "tiles.n"))
	e.line("if (chunk_n >= %s) continue;", timesSums(c, "extent_n"))
}

// epiloguePosition writes the place of the thread's vector of this pass: in the chunk, and in the kernel's
// rows from first on. If the vector is outside, the thread goes on to the next.
func (e *contractWarpgroup) epiloguePosition(c *ir.Contract, first string, uses []*ir.Expr) {
	e.vectorOfPass()
	e.line("const INDEX at_m = %s + at_row, at_n = chunk_n + at_column;", first)
	if interleaves(e.v) {
		e.line("[[maybe_unused]] const unsigned present = __ballot_sync(~0u, at_m < extent_m && at_n < extent_n);")
	}
	e.line("if (at_m >= extent_m || at_n >= %s) continue;", timesSums(c, "extent_n"))
	if c.A.WindowTiles != nil {
		e.windowPosition(c, uses...)
	} else {
		e.take(c.M, "at_m", uses...)
		e.firstOfLanes(c.N, uses...)
	}
	e.vectorLength()
}

// interleaves reports whether results of neighbouring rows alternate in memory. Either all or none of these rows exist.
func interleaves(v *ir.Variant) bool {
	return slices.ContainsFunc(v.Sections[1].Stores, func(st *ir.Store) bool { return st.Between > 0 })
}

// tileReads lists the epilogue's wide reads whose places do not depend on other reads.
func (e *contractWarpgroup) tileReads() []*ir.Local {
	var out []*ir.Local
	for _, l := range e.rowLocalsOf(e.v.Sections[1]) {
		if l.Wide && readOf(l.Def) != nil && e.perLane(l) && !ir.Has(l.Def, ir.OpLocal) {
			out = append(out, l)
		}
	}
	return out
}

// prefetches writes the tile's place in the batch, and prefetches to the L2 cache what the epilogue will
// read there, while the products are computed.
func (e *contractWarpgroup) prefetches(c *ir.Contract) {
	row := e.v.Sections[1]
	if len(c.Batch) > 0 {
		e.line("const INDEX batch = tiles.batch;")
		e.take(c.Batch, "batch", append(definitions(e.rowLocalsOf(row)), sectionRoots(row)...)...)
	}
	for _, l := range e.tileReads() {
		r := readOf(l.Def)
		if c.A.WindowTiles != nil || r.Guard != nil || !e.dependsOn(c.M, []*ir.Expr{l.Def}) { // reads that all rows share will be in the cache anyway
			continue
		}
		const line = 128 // bytes of a line
		e.open("for (int item = threadIdx.x %% 128; item < BLOCKS_M * 64 * ((TILE_N_EACH * %d + %d) / %d); item += 128)", r.Type.Size(), line-1, line)
		e.line("constexpr int LINES = (TILE_N_EACH * %d + %d) / %d;", r.Type.Size(), line-1, line)
		e.line("const INDEX at_m = tiles.m + block_m * 64 + item / LINES, at_n = tiles.n + item %% LINES * %d;",
			line/r.Type.Size())
		e.line("if (at_m >= extent_m || at_n >= extent_n) continue;")
		e.take(c.M, "at_m", l.Def)
		e.firstOfLanes(c.N, l.Def)
		at := ""
		e.atFirst(func() { at = fmt.Sprintf("prefetch_line(%s + %s);", e.args[r.Arg], e.s.Expr(r.Args[0])) })
		e.line("%s", at)
		e.close()
	}
}

// firstOfLanes writes the coordinate of the innermost of the columns' ranges at at_n, and the coordinates of the outer
// ones.
func (e *contractWarpgroup) firstOfLanes(columns []*ir.Range, uses ...*ir.Expr) {
	lane, outer := columns[len(columns)-1], columns[:len(columns)-1]
	if len(outer) == 0 {
		e.line("[[maybe_unused]] const INDEX first = at_n;")
		return
	}
	extent := e.extentDivisor(lane)
	e.line("[[maybe_unused]] const INDEX first = at_n %% %s;", extent)
	e.line("const INDEX outer_n = at_n / %s;", extent)
	e.take(outer, "outer_n", uses...)
}

// prefetchReads writes the wide reads of the epilogue, which are in flight while the sums are staged. A
// thread has the same columns in every pass, so it reads one vector of a tensor that all rows share. Of
// other tensors it reads the vectors of all passes together. convertShared writes the conversion of the
// shared vectors, for when they have arrived.
func (e *contractWarpgroup) prefetchReads(c *ir.Contract) (convertShared func()) {
	var shared, each []*ir.Local
	for _, l := range e.tileReads() {
		if e.sharedByRows(c, l) {
			shared = append(shared, l)
		} else {
			each = append(each, l)
		}
	}
	convertShared = e.sharedPrefetch(shared)
	if len(each) == 0 || manySums(e.v) || e.v.Schedule.Vector == 2 { // these are read when they are needed: registers have no room for all passes
		return convertShared
	}
	for _, l := range each {
		e.rawName[l] = e.names.Fresh(l.Name)
		e.line("Vec<%s, VECTOR> %s[PASSES];", spell.StorageType(readOf(l.Def).Type), e.rawName[l])
	}
	e.passes(plainUnits)
	e.epiloguePosition(c, "warp_m + block * 64", definitions(each))
	for _, l := range each {
		e.atFirst(func() { e.noted(l.Span, "%s[pass] = %s;", e.rawName[l], e.wide(readOf(l.Def))) })
		e.place[l] = converted(l, e.rawName[l]+"[pass].v[v]")
		e.done[l] = true
	}
	e.close()
	return convertShared
}

// sharedByRows reports whether a read depends on the columns of a tile alone.
func (e *contractWarpgroup) sharedByRows(c *ir.Contract, l *ir.Local) bool {
	return len(c.N) == 1 && c.Between == nil && readOf(l.Def).Guard == nil && !e.dependsOn(append(slices.Clone(c.M), c.Batch...), []*ir.Expr{l.Def})
}

// sharedPrefetch writes the reads that all rows of a tile share.
func (e *contractWarpgroup) sharedPrefetch(reads []*ir.Local) (convert func()) {
	if len(reads) == 0 {
		return func() {}
	}
	for _, l := range reads {
		e.rawName[l] = e.names.Fresh(l.Name)
		e.line("Vec<%s, VECTOR> %s = {};", spell.StorageType(readOf(l.Def).Type), e.rawName[l])
	}
	e.line("static_assert(32 %% VECTORS == 0, \"a thread's columns are the same in every pass\");")
	e.open("if (const INDEX first = chunk_n + threadIdx.x %% VECTORS * VECTOR; first < extent_n)")
	e.vectorLength()
	for _, l := range reads {
		e.atFirst(func() { e.noted(l.Span, "%s = %s;", e.rawName[l], e.wide(readOf(l.Def))) })
	}
	e.close()
	return func() {
		for _, l := range reads {
			name := e.names.Fresh(l.Name)
			e.line("%s %s[VECTOR];", spell.ComputeType(l.Type), name)
			e.line("#pragma unroll")
			e.line("for (int v = 0; v < VECTOR; ++v) %s[v] = %s;", name, converted(l, e.rawName[l]+".v[v]"))
			e.place[l] = name + "[v]"
			e.done[l] = true
		}
	}
}

// vectorLength writes how many elements of the vector at first are inside.
func (e *contractWarpgroup) vectorLength() {
	n := "VECTOR"
	if !e.wholeLanes() {
		n = fmt.Sprintf("(int)min(%s - first, (INDEX)VECTOR)", e.s.Expr(e.lane.Extent))
	}
	e.line("[[maybe_unused]] const int n = %s;", n)
}
