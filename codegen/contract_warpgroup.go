package codegen

import (
	"fmt"

	"github.com/fusec/fusec/codegen/skeleton"
	"github.com/fusec/fusec/codegen/spell"
	"github.com/fusec/fusec/ir"
)

// contractWarpgroup writes kernels of tiles of a product through warpgroups (wgmma).
type contractWarpgroup struct {
	contractEmitter
	split bool // whether the columns of a tile are split over the blocks of a cluster
}

// stagePart is the part of a pipeline stage that holds rows of one operand.
type stagePart struct {
	o           ir.Operand
	to, origin  string // where the operand's rows begin in the stage, and which row of the tensor is the first
	rows, first int    // rows of this part, and the row of the stage at which they begin
	cluster     int    // blocks that copy a share each, and send it to all
}

func newContractWarpgroup(e *emitter, split bool) *contractWarpgroup {
	return &contractWarpgroup{contractEmitter: newContract(e), split: split}
}

// kernel writes a kernel in which one warpgroup copies tiles of operands to pipeline stages in shared
// memory, and others multiply them and then do the epilogue. It is a persistent kernel: blocks take one
// tile after another.
func (e *contractWarpgroup) kernel() {
	c := e.v.Contract
	e.line("using Element = %s;", spell.StorageType(c.Type))
	e.line("const int extent_m = %s, extent_n = %s;", e.rowsInTiles(c, c.A, c.M, e.size(c.M)), e.rowsInTiles(c, c.B[0], c.N, e.columnsOf(c)))
	e.coverBlocks()
	if c.Taps == nil { // otherwise the number differs between tiles
		e.line("const int all_steps = %s;", e.stepsOf(c))
		e.splitK()
	}
	e.line("extern __shared__ __align__(1024) unsigned char shared[];")
	e.rings()
	e.line("Tiles tiles(extent_m, extent_n, %s);", e.size(c.Batch))
	e.stepsAt(c)
	if coverOf(e.v) != nil {
		e.line("covers.init();")
	}
	e.line("ring.init();")
	e.line("const int warpgroup = uniform(threadIdx.x / 128);")
	e.open("if (warpgroup == COPIER / 128)")
	e.copier(c)
	e.orElse()
	e.multiplier(c)
	e.close()
	e.line("if (PEERS > 1) Ring::meet(); // a block stays while others may signal it")
}

func warpgroupPreludes(_ *ir.Kernel, v *ir.Variant) string {
	text := skeleton.Text("hopper") + "\n" + productOf(v) + skeleton.Text("warpgroup") + foldPrelude(v)
	if coverOf(v) != nil {
		text += skeleton.Text("cover")
	}
	if interleaves(v) {
		text += skeleton.Text("interleave")
	}
	if v.Contract.Between != nil {
		text += skeleton.Text("between")
	}
	return text
}

// warpgroupLane is the range along which vectors of results run.
func warpgroupLane(_ *ir.Kernel, v *ir.Variant) *ir.Range {
	stored := v.Contract.Stored()
	return stored[len(stored)-1]
}

// copier writes the loop of the one thread that copies: it fills stages as they become empty.
func (e *contractWarpgroup) copier(c *ir.Contract) {
	e.moveRegisters("registers_give<COPIER_REGISTERS>();")
	e.open("if (threadIdx.x == COPIER)")
	e.cachePolicies()
	e.places()
	e.open("for (int tile = Tiles::first_tile(); tile < tiles.count; tile += Tiles::tile_stride())")
	e.goTo(c)
	e.stepsOfTile(c)
	if c.A.WindowTiles != nil {
		e.windowCopier(c)
		return
	}
	e.viewBatch(c)
	e.open("for (int step = 0; step < steps; ++step, place.advance())")
	e.line("const unsigned full = ring.full_at(place.stage);")
	e.line("barrier_wait(ring.empty_at(place.stage), place.parity ^ 1);")
	s := e.v.Schedule
	rowsA := s.TileM
	if e.split { // a product of few rows does not fill all rows of a stage; no result depends on the others
		rowsA = c.A.View.TileBytes() / stageLine
	}
	e.line("barrier_expect(full, %d * LINE + BYTES_B);", rowsA)
	e.copies(stagePart{c.A, "ring.operand_a(place.stage)", "tiles.m", rowsA, 0, 1})
	each := s.TileN / len(c.B)
	for i, b := range c.B {
		e.copies(stagePart{b, "ring.operand_b(place.stage)", "tiles.n", each, i * each, sharingBlocks(s)})
	}
	e.endCopier()
}

// endCopier closes the loops of the thread that copies.
func (e *contractWarpgroup) endCopier() {
	e.endSums(e.v.Contract)
	e.close()
	e.close()
	e.close()
	e.line("__syncwarp();")
	if e.split {
		e.line("Ring::meet(); // as multipliers do when their sums are left")
	}
}

// moveRegisters writes one half of a move of registers from one role to the other. A block of two
// warpgroups needs no such move, because each thread can have the largest number of registers.
func (e *contractWarpgroup) moveRegisters(text string) {
	if e.v.Schedule.Threads > 2*128 {
		e.line("%s", text)
	}
}

// viewBatch writes the coordinates of the batch at which views are read.
func (e *contractWarpgroup) viewBatch(c *ir.Contract) {
	var uses []*ir.Expr
	for _, o := range append([]ir.Operand{c.A}, c.B...) {
		for _, r := range o.ViewBatch {
			uses = append(uses, r.At())
		}
	}
	e.take(c.Batch, tileBatch(c.Batch), uses...)
}

// stageDefines are the lines of each operand in a stage, and their bytes.
func stageDefines(v *ir.Variant) string {
	m, n := stageRows(v)
	return fmt.Sprintf("#define STAGE_M %d\n#define STAGE_N %d\n#define LINE %d\n", m, n, lineBytes(v))
}

// stageRows is the rows of each operand that a stage holds.
func stageRows(v *ir.Variant) (m, n int) {
	return v.Contract.A.StageLines(v.Schedule.TileM), v.Contract.B[0].StageLines(v.Schedule.TileN)
}

// lineBytes is the bytes of a row in a stage.
func lineBytes(v *ir.Variant) int { return v.Schedule.TileK * v.Contract.Type.Size() }

// stageLine is the bytes of a line of a stage: a row of TILE_K columns, or a column of as many rows.
const stageLine = 128

// copies writes the copies of a part of a stage.
func (e *contractWarpgroup) copies(p stagePart) {
	const line = stageLine
	o, policy, to, origin, rows, first, cluster := p.o, e.policy(), p.to, p.origin, p.rows, p.first, p.cluster
	share := rows / cluster
	at, from := fmt.Sprintf("%s + %d", to, first*line), origin
	if cluster > 1 {
		at += fmt.Sprintf(" + cluster_rank() * %d", share*line)
		from += fmt.Sprintf(" + cluster_rank() * %d", share)
	}
	call := "tma_load("
	switch {
	case policy != "":
		call = fmt.Sprintf("tma_load_hint(%s, ", policy)
	case cluster > 1:
		call = fmt.Sprintf("tma_load_multicast(%d, ", 1<<cluster-1)
	}
	slab, column := o.View.Box[0], e.columnOfStep()
	if o.KLast {
		slab = o.View.Box[1]
	} else if part := o.View.Box[1]; part < slab { // each block copies a share of the columns of all rows
		share = rows
		at, from = fmt.Sprintf("%s + %d + cluster_rank() * %d", to, first*line, part*line), origin
		column += fmt.Sprintf(" + cluster_rank() * %d", part)
	}
	if brought := cluster * share / slab * o.View.TileBytes(); brought != rows*line {
		panic(fmt.Sprintf("BUG: TMA tiles of %s bring %d bytes of the %d that the barrier is told", o.View.Name, brought, rows*line))
	}
	for row := 0; row < share; row += slab {
		k, r := column, plus(from, row)
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

// transposed is the argument of the instruction that says whether an operand is contiguous along
// the sum.
var transposed = map[bool]int{false: 1, true: 0}

// multiplier writes what the other warpgroups do: they sum over the stages, with one batch of products
// queued after the one that runs, and then compute the epilogue.
func (e *contractWarpgroup) multiplier(c *ir.Contract) {
	e.moveRegisters("registers_take<MULTIPLIER_REGISTERS>();")
	e.line("const int role = warpgroup - MULTIPLIER / 128, turn = TURNS > 1 ? role : 0;")
	e.line("[[maybe_unused]] const int side = SIDES > 1 ? role : 0;")
	e.line("const int block_m = TURNS > 1 || SIDES > 1 ? 0 : role * BLOCKS_M;")
	if !e.split {
		e.line("const unsigned staging = ring.staging_of(uniform(threadIdx.x / 32) - MULTIPLIER / 32);")
	}
	e.places()
	// The parity of a stage only distinguishes two successive fillings. So a warpgroup takes its turn when
	// the other one has seen all of its own stages full.
	e.skip(c, "turn > 0", "Tiles::first_tile()")
	e.line("[[maybe_unused]] unsigned turn_parity = turn ^ 1;")
	e.open("for (int tile = Tiles::first_tile() + turn * Tiles::tile_stride(); tile < tiles.count; tile += TURNS * Tiles::tile_stride())")
	e.goTo(c)
	e.stepsOfTile(c)
	e.tileBases(c)
	e.laneBase(c)
	if c.Product == nil {
		e.prefetches(c)
	} else {
		e.warpgroupRows(c)
	}
	e.line("%s %s[BLOCKS_M][OWN_N / 2] = {};", totalType(c.Type), e.allSums(c))
	e.line("[[maybe_unused]] int last = 0;")
	e.open("if constexpr (TURNS > 1)")
	e.line("barrier_wait(ring.turn_at(turn), turn_parity);")
	e.line("turn_parity ^= 1;")
	e.close()
	e.sumStages(c)
	e.skip(c, "TURNS > 1", "tile + Tiles::tile_stride()")
	switch {
	case c.Product != nil:
		e.foldTiles(c, "sums")
	case e.split:
		e.splitEpilogue(c)
	case e.staysInRegisters(c):
		e.halvesEpilogue(c)
	default:
		e.warpgroupEpilogue(c)
	}
	e.close()
}

// stageLayout is the arguments that describe the layout of 16-bit operands in a stage.
func stageLayout(c *ir.Contract) string {
	layout := fmt.Sprintf("%d, %d, Element", transposed[c.A.KLast], transposed[c.B[0].KLast])
	if c.A.View != nil && c.A.View.Swizzle < stageLine { // a few rows side by side
		layout += ", true"
	}
	return layout
}

// keptLoop keeps the compiler from unrolling a loop over stages whose number it knows. Each copy of a stage writes all
// sums, and the assembler takes up to five seconds to find that they stay in the same registers.
const keptLoop = "#pragma unroll 1"

// othersTurn lets the other warpgroup multiply.
const othersTurn = "if constexpr (TURNS > 1) barrier_arrive(ring.turn_at(turn ^ 1));"

// sumStages writes the sums over the stages: it queues the products of one stage, and frees the stage
// before. When all products are queued, it is the other warpgroup's turn.
func (e *contractWarpgroup) sumStages(c *ir.Contract) {
	if coverOf(e.v) != nil {
		e.sumCovers(c)
		return
	}
	if inParts(c) {
		e.partSteps(c)
		e.line(othersTurn)
		return
	}
	sums, multiplied := e.presentSums(c), "step > 0" // whether a stage was multiplied before
	if c.Between != nil {
		multiplied = "last >= 0"
		e.line("last = -1;")
	}
	e.eachSum(c, "#pragma unroll")
	e.someStages(c)
	e.line(keptLoop)
	e.open("for (int step = 0; step < steps; ++step, place.advance())")
	e.line("barrier_wait(ring.full_at(place.stage), place.parity);")
	e.hold(sums)
	e.line("wgmma_fence();")
	e.line("multiply_stage<%s>(%s, ring.operand_a(place.stage) + block_m * SLAB, ring.operand_b(place.stage), step > 0);", stageLayout(c), sums)
	e.line("wgmma_commit();")
	e.line("wgmma_wait<1>();")
	e.line("if (%s) ring.release(last);", multiplied)
	e.line("last = place.stage;")
	e.close()
	e.endSums(c)
	e.line(othersTurn)
	e.line("wgmma_wait<0>();")
	e.holdAll(c)
	if c.NoTaps {
		e.line("if (steps > 0) ring.release(last);")
		return
	}
	e.line("ring.release(last);")
}

// hold keeps the compiler from moving reads of sums across the instructions that write them.
func (e *contractWarpgroup) hold(sums string) {
	e.line("#pragma unroll")
	e.line("for (int block = 0; block < BLOCKS_M; ++block) wgmma_hold(%s[block]);", sums)
}

// warpgroupRows writes where the rows of a tile with a reduction epilogue are, and reads what belongs to
// them.
func (e *contractWarpgroup) warpgroupRows(c *ir.Contract) {
	if len(c.Batch) > 0 {
		e.line("const INDEX batch = tiles.batch;")
		e.take(c.Batch, "batch", e.every()...)
	}
	e.line("const FoldRows rows(tiles.m, tiles.n, block_m);")
	e.foldPrefetch(c)
}

// warpgroupGrid is the number of blocks: as many as there are tiles, up to as many as the device runs at a
// time.
func warpgroupGrid(_ *ir.Kernel, v *ir.Variant) *ir.Expr {
	cluster := int64(max(1, v.Schedule.Cluster))
	return ir.Apply(ir.OpMin, ir.Apply(ir.OpMul, warpgroupShares(v, cluster), ir.IntConst(cluster)), ir.IntConst(int64(v.Schedule.Blocks)))
}

// warpgroupShares is the number of tiles of all batches, as many along M taken together as a cluster has blocks.
func warpgroupShares(v *ir.Variant, cluster int64) *ir.Expr {
	c, s := v.Contract, v.Schedule
	tiles := ir.Apply(ir.OpMul, ceilDiv(tiledRows(c.A, c.M), int64(s.TileM)*cluster), ceilDiv(tiledRows(c.B[0], c.N), int64(s.TileN/len(c.B))))
	return ir.Apply(ir.OpMul, tiles, product(extents(c.Batch)))
}

// Registers of a thread in either role. Together, one warpgroup that copies and two that multiply have
// all registers of a multiprocessor, which runs one block.
const (
	copierRegisters     = 40
	multiplierRegisters = 232
	partRegisters       = 8 // further registers of a multiplying thread if it adds up stages or holds many sums; it has so many fewer if offsets of windows are wide
	tileGroup           = 8 // shares of clusters along M that move along N together
)

// manySums reports whether the sums of a thread leave few registers for the epilogue.
func manySums(v *ir.Variant) bool {
	s, groups := v.Schedule, 2
	if s.Turns > 1 || s.SplitK > 1 {
		groups = 1
	}
	return s.TileM*s.TileN*v.Contract.SumsEach()/(128*groups) > 128
}

// sharingBlocks is the blocks of a cluster that copy a share of each tile of B for all of them; those that split the columns
// of a tile share nothing.
func sharingBlocks(s ir.Schedule) int { return max(1, s.Cluster) / max(1, s.SplitK) }

func warpgroupDefines(v *ir.Variant) string {
	s, copier, multiplier := v.Schedule, copierRegisters, multiplierRegisters
	if inParts(v.Contract) || manySums(v) { // registers for the sums of two stages beside those of the tile, or for the sums of a large tile
		copier, multiplier = copier-2*partRegisters, multiplier+partRegisters
	}
	if s.Index64 && v.Contract.A.WindowTiles != nil { // registers for places of copies, of which windows have more
		copier, multiplier = copier+2*partRegisters, multiplier-partRegisters
	}
	return foldDefine(v) + fmt.Sprintf("#define TILE_M %d\n#define TILE_N %d\n#define TILE_K %d\n#define TILE_N_EACH %d\n"+
		"#define STAGES %d\n#define CLUSTER %d\n#define SPLIT_K %d\n#define TURNS %d\n#define SIDES %d\n"+
		"#define GROUP %d\n#define COPIER_REGISTERS %d\n#define MULTIPLIER_REGISTERS %d\n",
		s.TileM, s.TileN, s.TileK, s.TileN/len(v.Contract.B), s.Stages, sharingBlocks(s), max(1, s.SplitK), s.Turns, s.Sides(),
		tileGroup, copier, multiplier) + stageDefines(v) + coverDefines(v)
}

// warpgroupShared is the dynamic shared memory of a block: alignment, stages, barriers, and the staging of
// each warp that multiplies.
func warpgroupShared(v *ir.Variant) int {
	const staging = 16 * 64 * 4
	return coverShared(v) + splitShared(v) + (v.Schedule.Threads-128)/32*staging
}

// tileBatch is the number of a tile's batch. If an extent of the batch is a symbol, the number is divided by it, and
// must have the type of offsets, which has 64 bits in some classes.
func tileBatch(batch []*ir.Range) string {
	for _, r := range batch[min(1, len(batch)):] {
		if r.Extent.Op != ir.OpConst {
			return "(INDEX)tiles.batch"
		}
	}
	return "tiles.batch"
}
