package codegen

import (
	_ "embed"
	"fmt"

	"github.com/fusec/fusec/ir"
)

//go:embed warpgroup.cuh
var warpgroupPrelude string

// warpgroupKernel writes a kernel in which one warpgroup brings tiles of operands to
// a ring in shared memory, and others multiply them, then do what follows with the
// sums. Blocks stay on their multiprocessor and take one tile after another.
func (e *emitter) warpgroupKernel() {
	c := e.v.Contract
	e.line("using Element = %s;", storageType(c.Type))
	e.line("const int extent_m = %s, extent_n = %s;", e.size(c.M), e.columnsOf(c))
	e.line("const int all_steps = (%s + TILE_K - 1) / TILE_K;", e.size(e.contracted()))
	e.slice()
	e.line("extern __shared__ __align__(1024) unsigned char shared[];")
	e.line("const Ring ring(shared);")
	e.line("Tiles tiles(extent_m, extent_n, %s);", e.size(c.Batch))
	e.line("ring.init();")
	e.line("const int warpgroup = uniform(threadIdx.x / 128);")
	e.open("if (warpgroup == COPIER / 128)")
	e.copier(c)
	e.orElse()
	e.multiplier(c)
	e.close()
	e.line("if (PEERS > 1) Ring::meet(); // a block stays while others may signal it")
}

// copier writes the loop that one thread runs: it fills stages as they get empty.
func (e *emitter) copier(c *ir.Contract) {
	e.moveRegisters("registers_give<COPIER_REGISTERS>();")
	e.open("if (threadIdx.x == COPIER)")
	e.cachePolicies()
	e.line("Place place;")
	e.open("for (int tile = Tiles::first_tile(); tile < tiles.count; tile += Tiles::tile_stride())")
	e.line("tiles.go_to(tile);")
	e.viewBatch(c)
	e.open("for (int step = 0; step < steps; ++step, place.advance())")
	e.line("const unsigned full = ring.full_at(place.stage);")
	e.line("barrier_wait(ring.empty_at(place.stage), place.parity ^ 1);")
	s := e.v.Schedule
	rowsA := s.TileM
	if c.A.KLast && e.slicedColumns() { // the others of few rows stay what they are: no result is of them
		rowsA = c.A.View.Box[1]
	}
	e.line("barrier_expect(full, %d * LINE + BYTES_B);", rowsA)
	e.operandBoxes(c.A, e.policy(), "ring.operand_a(place.stage)", "tiles.m", rowsA, 0, 1)
	each := s.TileN / len(c.B)
	for i, b := range c.B {
		e.operandBoxes(b, e.policy(), "ring.operand_b(place.stage)", "tiles.n", each, i*each, max(1, s.Cluster)/max(1, s.Slices))
	}
	e.close()
	e.close()
	e.close()
	e.line("__syncwarp();")
	if e.slicedColumns() {
		e.line("Ring::meet(); // as multipliers do when their sums are left")
	}
}

// moveRegisters writes one half of a move of registers between the roles, which two
// warpgroups can do without: each thread may have all it can address.
func (e *emitter) moveRegisters(text string) {
	if e.v.Schedule.Threads > 2*128 {
		e.line("%s", text)
	}
}

// viewBatch writes the coordinates of the batch that views are read at.
func (e *emitter) viewBatch(c *ir.Contract) {
	var uses []*ir.Expr
	for _, o := range append([]ir.Operand{c.A}, c.B...) {
		for _, r := range o.ViewBatch {
			uses = append(uses, r.At())
		}
	}
	e.take(c.Batch, "tiles.batch", uses...)
}

// operandBoxes writes the copies of one operand's rows of a stage, from row `first` of the
// stage on. Blocks of a cluster bring a share each and send it to all.
func (e *emitter) operandBoxes(o ir.Operand, policy, to, origin string, rows, first, cluster int) {
	const line = 128 // bytes of a row of TILE_K columns, or of a column of as many rows
	share := rows / cluster
	at, from := fmt.Sprintf("%s + %d", to, first*line), origin
	if cluster > 1 {
		at += fmt.Sprintf(" + cluster_rank() * %d", share*line)
		from += fmt.Sprintf(" + cluster_rank() * %d", share)
	}
	call := "box_load("
	switch {
	case policy != "":
		call = fmt.Sprintf("box_cached(%s, ", policy)
	case cluster > 1:
		call = fmt.Sprintf("box_share(%d, ", 1<<cluster-1)
	}
	slab := o.View.Box[0]
	if o.KLast {
		slab = o.View.Box[1]
	}
	if brought := cluster * share / slab * o.View.BoxBytes(); brought != rows*line {
		panic(fmt.Sprintf("BUG: boxes of %s bring %d bytes of the %d that the barrier is told", o.View.Name, brought, rows*line))
	}
	for row := 0; row < share; row += slab {
		k, r := e.columnOfStep(), plus(from, row)
		if !o.KLast {
			k, r = r, k
		}
		coordinates := k + ", " + r
		for _, b := range o.ViewBatch {
			coordinates += ", " + e.ranges[b]
		}
		e.line("%s%s, %s, full, %s);", call, plus(at, row*line), e.views[o.View], coordinates)
	}
}

func plus(text string, n int) string {
	if n == 0 {
		return text
	}
	return fmt.Sprintf("%s + %d", text, n)
}

// transposed is what the instruction calls an operand by whether it lies along the sum.
var transposed = map[bool]int{false: 1, true: 0}

// multiplier writes what the other warpgroups do: sums over the stages, one batch of
// products always queued behind the one that runs, then the epilogue.
func (e *emitter) multiplier(c *ir.Contract) {
	e.moveRegisters("registers_take<MULTIPLIER_REGISTERS>();")
	e.line("const int role = warpgroup - MULTIPLIER / 128, turn = TURNS > 1 ? role : 0, block_m = TURNS > 1 ? 0 : role * BLOCKS_M;")
	if !e.slicedColumns() {
		e.line("const unsigned staging = ring.staging_of(uniform(threadIdx.x / 32) - MULTIPLIER / 32);")
	}
	e.line("Place place;")
	// A stage's parity tells two fillings apart, not more: a warpgroup takes its turn
	// when the other has seen all of its own stages full.
	e.line("if (turn > 0) place.skip(steps);")
	e.line("[[maybe_unused]] unsigned turn_parity = turn ^ 1;")
	e.open("for (int tile = Tiles::first_tile() + turn * Tiles::tile_stride(); tile < tiles.count; tile += TURNS * Tiles::tile_stride())")
	e.line("tiles.go_to(tile);")
	if c.Product == nil {
		e.prefetches(c)
	} else {
		e.warpgroupRows(c)
	}
	e.line("%s sums[BLOCKS_M][TILE_N / 2] = {};", totalType(c.Type))
	e.line("[[maybe_unused]] int last = 0;")
	e.open("if constexpr (TURNS > 1)")
	e.line("barrier_wait(ring.turn_at(turn), turn_parity);")
	e.line("turn_parity ^= 1;")
	e.close()
	if inParts(c.Type) {
		e.partSteps()
	} else {
		e.open("for (int step = 0; step < steps; ++step, place.advance())")
		e.line("barrier_wait(ring.full_at(place.stage), place.parity);")
		e.multiplyStep(fmt.Sprintf("multiply_stage<%d, %d, Element>(sums, ring.operand_a(place.stage) + block_m * SLAB, ", transposed[c.A.KLast], transposed[c.B[0].KLast]))
		e.close()
	}
	e.line("if constexpr (TURNS > 1) barrier_arrive(ring.turn_at(turn ^ 1));")
	if !inParts(c.Type) {
		e.line("wgmma_wait<0>();")
		e.line("#pragma unroll")
		e.line("for (int block = 0; block < BLOCKS_M; ++block) wgmma_hold(sums[block]);")
		e.line("ring.release(last);")
	}
	e.line("if (TURNS > 1) place.skip(steps);")
	switch {
	case c.Product != nil:
		e.foldTiles(c, "sums")
	case e.slicedColumns():
		e.slicedEpilogue(c)
	default:
		e.warpgroupEpilogue(c)
	}
	e.close()
}

// totalType is the C type of sums of products of a type.
func totalType(t ir.DType) string {
	if t.IsFloat() {
		return "float"
	}
	return "int"
}

// inParts reports whether sums of a stage are added to the others by the threads.
func inParts(t ir.DType) bool { return t.IsFloat() && t.Size() == 1 }

// partSteps writes the loop over the stages where each is added by itself, two at a time:
// one is added while the other is multiplied.
func (e *emitter) partSteps() {
	e.line("float part[2][BLOCKS_M][TILE_N / 2];")
	e.open("for (int step = 0; step < steps; step += 2)")
	e.line("const bool both = step + 1 < steps;")
	e.line("const int stage = place.stage;")
	e.multiplyPart(0)
	e.open("if (both)")
	e.multiplyPart(1)
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
func (e *emitter) multiplyPart(part int) {
	e.line("barrier_wait(ring.full_at(place.stage), place.parity);")
	e.line("#pragma unroll")
	e.line("for (int block = 0; block < BLOCKS_M; ++block) wgmma_hold(part[%d][block]);", part)
	e.line("wgmma_fence();")
	e.line("multiply_stage<0, 0, Element>(part[%d], ring.operand_a(place.stage) + block_m * SLAB, ring.operand_b(place.stage), false);", part)
	e.line("wgmma_commit();")
	e.line("last = place.stage;")
	e.line("place.advance();")
}

// addPart writes the sums of a stage that is multiplied to those of the tile.
func (e *emitter) addPart(part int, stage string) {
	e.line("#pragma unroll")
	e.line("for (int block = 0; block < BLOCKS_M; ++block) wgmma_hold(part[%d][block]);", part)
	e.line("ring.release(%s);", stage)
	e.line("add_stage(sums, part[%d]);", part)
}

// multiplyStep writes the products of a stage, given the call up to where B is: they are
// queued, and the stage of those before them is given back.
func (e *emitter) multiplyStep(call string) {
	e.line("#pragma unroll")
	e.line("for (int block = 0; block < BLOCKS_M; ++block) wgmma_hold(sums[block]);")
	e.line("wgmma_fence();")
	e.line("%sring.operand_b(place.stage), step > 0);", call)
	e.line("wgmma_commit();")
	e.line("wgmma_wait<1>();")
	e.line("if (step > 0) ring.release(last);")
	e.line("last = place.stage;")
}

// warpgroupRows writes where the rows of a tile are that is folded, and reads what
// belongs to them.
func (e *emitter) warpgroupRows(c *ir.Contract) {
	if len(c.Batch) > 0 {
		e.line("const INDEX batch = tiles.batch;")
		e.take(c.Batch, "batch", e.every()...)
	}
	e.line("const FoldRows rows(tiles.m, tiles.n, block_m);")
	e.foldReadsAhead(c)
}

// warpgroupEpilogue writes what follows the sums: each warp stages 16 rows of 64 at a
// time, so that threads get VECTOR neighbours of a row, reads what else it needs while
// it does so, computes and stores.
func (e *emitter) warpgroupEpilogue(c *ir.Contract) {
	row := e.v.Sections[1]
	e.line("const INDEX warp_m = tiles.m + block_m * 64 + threadIdx.x / 32 %% 4 * 16;")
	e.line("constexpr int CHUNK = STAGED / %d, VECTORS = CHUNK / VECTOR, PASSES = VECTORS / 2;", len(c.B))
	e.line("#pragma unroll")
	e.open("for (int block = 0; block < BLOCKS_M; ++block)")
	e.line("#pragma unroll")
	e.open("for (int chunk = 0; chunk < TILE_N_EACH / CHUNK; ++chunk)")
	e.line("const INDEX chunk_n = tiles.n + chunk * CHUNK;")
	e.line("if (chunk_n >= extent_n) continue;")
	e.readsAhead(c)
	e.line("__syncwarp();")
	e.line("#pragma unroll")
	e.open("for (int fragment = 0; fragment < STAGED / 8; ++fragment)")
	e.line("stage_put(staging, fragment, &sums[block][(fragment / (CHUNK / 8) * (TILE_N_EACH / 8) + chunk * (CHUNK / 8) + fragment %% (CHUNK / 8)) * 4]);")
	e.close()
	e.line("__syncwarp();")
	e.passes()
	e.epiloguePosition(c, "warp_m + block * 64", append(definitions(e.rowLocalsOf(row)), sectionRoots(row)...))
	for i, f := range e.v.Sections[0].Folds {
		name := e.names.fresh(f.Result.Name)
		e.line("%s %s[VECTOR];", totalType(c.Type), name)
		e.noted(f.Result.Span, "stage_get(%s, staging, at_row, at_column + %d * CHUNK);", name, i)
		e.place[f.Result] = name + "[v]"
		if !c.Type.IsFloat() {
			e.place[f.Result] = fmt.Sprintf("(%s)%s[v]", computeType(f.Result.Type), name)
		}
	}
	e.rowValues(sectionRoots(row))
	e.flatStores(row, nil, nil)
	e.close()
	e.close()
	e.close()
}

// rowLocalsOf lists the row-level locals that a section needs.
func (e *emitter) rowLocalsOf(sec *ir.Section) []*ir.Local {
	return e.wants(ir.RowLevel, func(*ir.Local) bool { return false }, sectionRoots(sec)...)
}

// passes opens the loop over the vectors of a chunk that a thread takes.
func (e *emitter) passes() {
	e.line("#pragma unroll (PASSES <= 8 ? PASSES : 2)")
	e.open("for (int pass = 0; pass < PASSES; ++pass)")
}

// epiloguePosition writes where in the chunk, and in the kernel's rows from `first` on,
// the thread's vector of this pass is; it goes on with the next where that is outside.
func (e *emitter) epiloguePosition(c *ir.Contract, first string, uses []*ir.Expr) {
	e.line("const int item = pass * 32 + threadIdx.x %% 32, at_row = item / VECTORS, at_column = item %% VECTORS * VECTOR;")
	e.line("const INDEX at_m = %s + at_row, at_n = chunk_n + at_column;", first)
	e.line("if (at_m >= extent_m || at_n >= extent_n) continue;")
	e.take(c.M, "at_m", uses...)
	e.firstOfLanes(c, uses...)
	n := "VECTOR"
	if !e.wholeLanes() {
		n = fmt.Sprintf("(int)min(%s - first, (INDEX)VECTOR)", e.s.expr(e.lane.Extent))
	}
	e.line("[[maybe_unused]] const int n = %s;", n)
}

// tileReads lists the epilogue's wide reads at places that are known before anything
// is read.
func (e *emitter) tileReads() []*ir.Local {
	var out []*ir.Local
	for _, l := range e.rowLocalsOf(e.v.Sections[1]) {
		if l.Wide && readOf(l.Def) != nil && e.perLane(l) && !ir.Has(l.Def, ir.OpLocal) {
			out = append(out, l)
		}
	}
	return out
}

// prefetches writes the tile's place in the batch, and brings what the epilogue will
// read of it to the L2 cache while the products are under way.
func (e *emitter) prefetches(c *ir.Contract) {
	row := e.v.Sections[1]
	if len(c.Batch) > 0 {
		e.line("const INDEX batch = tiles.batch;")
		e.take(c.Batch, "batch", append(definitions(e.rowLocalsOf(row)), sectionRoots(row)...)...)
	}
	for _, l := range e.tileReads() {
		r := readOf(l.Def)
		if r.Guard != nil || !e.walks(c.M, []*ir.Expr{l.Def}) { // what all rows share is there soon
			continue
		}
		const line = 128 // bytes
		e.open("for (int item = threadIdx.x %% 128; item < BLOCKS_M * 64 * ((TILE_N_EACH * %d + %d) / %d); item += 128)", r.Type.Size(), line-1, line)
		e.line("constexpr int LINES = (TILE_N_EACH * %d + %d) / %d;", r.Type.Size(), line-1, line)
		e.line("const INDEX at_m = tiles.m + block_m * 64 + item / LINES, at_n = tiles.n + item %% LINES * %d;", line/r.Type.Size())
		e.line("if (at_m >= extent_m || at_n >= extent_n) continue;")
		e.take(c.M, "at_m", l.Def)
		e.firstOfLanes(c, l.Def)
		at := ""
		e.atFirst(func() { at = fmt.Sprintf("prefetch_line(%s + %s);", e.args[r.Arg], e.s.expr(r.Args[0])) })
		e.line("%s", at)
		e.close()
	}
}

// firstOfLanes writes the coordinate of the innermost range at at_n, and those of
// the ranges around it on N's side.
func (e *emitter) firstOfLanes(c *ir.Contract, uses ...*ir.Expr) {
	lane, outer := c.N[len(c.N)-1], c.N[:len(c.N)-1]
	if len(outer) == 0 {
		e.line("[[maybe_unused]] const INDEX first = at_n;")
		return
	}
	e.line("[[maybe_unused]] const INDEX first = at_n %% %s;", e.s.expr(lane.Extent))
	e.line("const INDEX outer_n = at_n / %s;", e.s.expr(lane.Extent))
	e.take(outer, "outer_n", uses...)
}

// readsAhead writes the wide reads of the epilogue, those of all passes together: they
// are on their way while the sums are staged.
func (e *emitter) readsAhead(c *ir.Contract) {
	reads := e.tileReads()
	for _, l := range reads {
		e.rawName[l] = e.names.fresh(l.Name)
		e.line("Vec<%s, VECTOR> %s[PASSES];", storageType(readOf(l.Def).Type), e.rawName[l])
	}
	if len(reads) == 0 {
		return
	}
	e.passes()
	e.epiloguePosition(c, "warp_m + block * 64", definitions(reads))
	for _, l := range reads {
		e.atFirst(func() { e.noted(l.Span, "%s[pass] = %s;", e.rawName[l], e.wide(readOf(l.Def))) })
		e.place[l] = converted(l, e.rawName[l]+"[pass].v[v]")
		e.done[l] = true
	}
	e.close()
}

// warpgroupGrid is the number of blocks: as many as there are tiles, up to what the
// device holds at a time; or one for each slice of each tile.
func warpgroupGrid(v *ir.Variant) *ir.Expr {
	c, s := v.Contract, v.Schedule
	if s.Slices > 1 {
		tiles := ir.Apply(ir.OpMul, ceilDiv(product(extents(c.M)), int64(s.TileM)), ceilDiv(product(extents(c.N)), int64(s.TileN)))
		return ir.Apply(ir.OpMul, ir.Apply(ir.OpMul, tiles, product(extents(c.Batch))), ir.IntConst(int64(s.Slices)))
	}
	cluster := int64(max(1, s.Cluster))
	tiles := ir.Apply(ir.OpMul, ceilDiv(product(extents(c.M)), int64(s.TileM)*cluster), ceilDiv(product(extents(c.N)), int64(s.TileN/len(c.B))))
	shares := ir.Apply(ir.OpMul, tiles, product(extents(c.Batch)))
	return ir.Apply(ir.OpMin, ir.Apply(ir.OpMul, shares, ir.IntConst(cluster)), ir.IntConst(int64(s.Blocks)))
}

// Registers of a thread of either role; together they are those of three warpgroups
// of a block that has a multiprocessor to itself.
const (
	copierRegisters     = 40
	multiplierRegisters = 232
	partRegisters       = 8 // that each that multiplies has more where it adds stages
	tileGroup           = 8 // shares of a cluster along M that walk along N together
)

func warpgroupDefines(v *ir.Variant) string {
	s, copier, multiplier := v.Schedule, copierRegisters, multiplierRegisters
	if inParts(v.Contract.Type) { // the sums of two stages beside those of the tile
		copier, multiplier = copier-2*partRegisters, multiplier+partRegisters
	}
	return foldDefine(v) + fmt.Sprintf("#define TILE_M %d\n#define TILE_N %d\n#define TILE_K %d\n#define TILE_N_EACH %d\n#define STAGES %d\n#define CLUSTER %d\n#define SLICES %d\n#define TURNS %d\n"+
		"#define GROUP %d\n#define COPIER_REGISTERS %d\n#define MULTIPLIER_REGISTERS %d\n",
		s.TileM, s.TileN, s.TileK, s.TileN/len(v.Contract.B), s.Stages, max(1, s.Cluster)/max(1, s.Slices), max(1, s.Slices), s.Turns, tileGroup, copier, multiplier)
}

// warpgroupShared is the dynamic shared memory of a block: alignment, stages, barriers,
// and staging of each warp that multiplies, unless it may use the stages for that.
func warpgroupShared(v *ir.Variant) int {
	s := v.Schedule
	const alignment, line, staging, barriers = 1024, 128, 16 * 64 * 4, 2 * 8
	size := alignment + 8*s.Turns + s.Stages*((s.TileM+s.TileN)*line+barriers)
	if s.Slices > 1 {
		return size
	}
	return size + (s.Threads-128)/32*staging
}
