package codegen

import (
	"fmt"

	"github.com/fusec/fusec/ir"
)

// Slabs (ir.Schedule.LookBack). In memory, the columns may lie between the outer ranges of the rows and
// the innermost one. All columns for one point of the outer ranges are then one piece of memory, a slab.
// Blocks that read one round each are fastest if they go through memory slab by slab; chains of blocks,
// which go part by part, would jump. So blocks post their totals (column_chain.go). A block of the last
// part of a later slab, LookBack blocks behind, folds the totals of a slab and computes its results,
// because by then it rarely has to wait. After the last slab there are blocks that only do this. The
// memory of posted totals is used again after a few slabs.
//
// With S blocks of a part, P parts and Z slabs, block b < Z * P * S has part b / S % P of strip b % S of
// slab b / (P * S). Each further block has a strip of a slab that does not exist.

// columnSlab writes kernels whose blocks go from slab to slab.
type columnSlab struct{ *columnEmitter }

func newColumnSlab(e *emitter) *columnSlab { return &columnSlab{newColumnGroup(e)} }

func (e *columnSlab) kernel() {
	e.groupShape()
	e.slabPosition()
	e.sections(func(number int, sec *ir.Section) {
		p := e.postedHead(number, sec)
		e.slabPeek(sec, p.found)
		e.postedRound(p, false)
		e.postedMerge(p, func() { e.slabHand(sec, p.slots, p.found) }, e.slabRows)
	})
	e.close() // the rows that are folded have this condition
}

// slabStrips is the number of blocks of a part of a slab.
func slabStrips(k *ir.Kernel, v *ir.Variant) *ir.Expr {
	s := v.Schedule
	return ceilDiv(k.Rows[len(k.Rows)-1].Extent, int64(s.Vector*s.Threads/s.ColThreads))
}

// slabSize is the number of blocks of a slab.
func slabSize(k *ir.Kernel, v *ir.Variant) *ir.Expr {
	return ir.Apply(ir.OpMul, slabStrips(k, v), chainParts(k, v.Schedule))
}

// slabLag is the number of slabs between a slab and the one whose blocks compute its results.
func slabLag(k *ir.Kernel, v *ir.Variant) *ir.Expr {
	size := ir.Apply(ir.OpMax, slabSize(k, v), ir.IntConst(1))
	return ir.Apply(ir.OpFloorDiv, ir.Apply(ir.OpAdd, size, ir.IntConst(int64(v.Schedule.LookBack-1))), size)
}

// slabRing is the number of slabs that have memory for posted totals.
func slabRing(k *ir.Kernel, v *ir.Variant) *ir.Expr {
	return ir.Apply(ir.OpAdd, ir.Apply(ir.OpMul, slabLag(k, v), ir.IntConst(2)), ir.IntConst(1))
}

// slabBlocks is the number of all blocks.
func slabBlocks(k *ir.Kernel, v *ir.Variant) *ir.Expr {
	slabs := product(extents(k.Rows[:len(k.Rows)-1]))
	some := ir.Apply(ir.OpMin, slabs, ir.IntConst(1)) // no blocks if there are no slabs
	return ir.Apply(ir.OpAdd, ir.Apply(ir.OpMul, slabs, slabSize(k, v)),
		ir.Apply(ir.OpMul, some, ir.Apply(ir.OpMul, slabLag(k, v), slabStrips(k, v))))
}

func slabOwn(k *ir.Kernel, v *ir.Variant) workspace {
	return workspace{counters: ir.Apply(ir.OpMul, ir.Apply(ir.OpMul, slabRing(k, v), slabSize(k, v)), postedWords(v))}
}

func slabDefines(v *ir.Variant) string {
	return groupDefines(v) + fmt.Sprintf("#define LOOK_BACK %d\n", v.Schedule.LookBack)
}

// slabPosition writes the block's place and the thread's row.
func (e *columnSlab) slabPosition() {
	strips := fmt.Sprintf("up_by<VECTOR * THREADS / COL_THREADS>(%s)", e.s.Expr(e.lane.Extent))
	size := fmt.Sprintf("%s * max(up_by<ITEMS * COL_THREADS>(%s), (INDEX)1)", strips, e.s.Expr(product(extents(e.k.Cols))))
	byStrips := e.divisorOf("strips", strips, slabStrips(e.k, e.v))
	bySize := e.divisorOf("slab", size, slabSize(e.k, e.v))
	lag := fmt.Sprintf("(((INDEX)(LOOK_BACK - 1) + %s) / %s)", size, bySize)
	byRing := e.divisorOf("ring", "2 * "+lag+" + 1", slabRing(e.k, e.v))
	e.line("constexpr int COLUMNS = LANES * VECTOR;")
	e.line("const SlabPlace<COLUMNS> place((INDEX)%s, %s, %s, %s, %s, %s, reinterpret_cast<unsigned long long *>(%s));",
		e.block, byStrips, bySize, byRing, lag, e.s.Expr(product(extents(e.rows()[:len(e.rows())-1]))), e.counters)
	e.line("const INDEX part = place.part;")
	e.line("const bool ends = place.ends();")
	e.slabPoint("min(place.slab, place.slabs - 1)", " && place.slab < place.slabs")
}

// slabPoint writes the coordinates of the thread's row of a slab, and n, the lanes that are inside
// if a further condition holds.
func (e *columnSlab) slabPoint(slab, inside string) {
	extent, rows := e.s.Expr(e.lane.Extent), e.rows()
	e.line("[[maybe_unused]] const INDEX first = (place.strip * LANES + threadIdx.x %% LANES) * VECTOR;")
	e.line("[[maybe_unused]] const INDEX outer = %s;", slab)
	e.take(rows[:len(rows)-1], "outer", e.every()...)
	lanes := "VECTOR"
	if !e.wholeLanes() {
		lanes = fmt.Sprintf("(int)min(%s - first, (INDEX)VECTOR)", extent)
	}
	e.line("[[maybe_unused]] const int n = first < %s%s ? %s : 0;", extent, inside, lanes)
}

// slabPeek writes the check, before the block's own reads, that the memory for its totals is
// free.
func (e *columnSlab) slabPeek(sec *ir.Section, found []string) {
	e.open("if (threadIdx.x < COLUMNS && place.slab < place.slabs)")
	for i, f := range sec.Folds {
		e.line("%s = place.peek_own<%s>(%d);", found[i], foldType(f), chainWord(sec, i))
	}
	e.close()
}

// slabHand posts the block's totals, and folds those of the slab whose results the block
// computes.
func (e *columnSlab) slabHand(sec *ir.Section, slots, found []string) {
	e.open("if (place.slab < place.slabs)")
	for i, f := range sec.Folds {
		e.line("place.post_own(%s, fold_rows<%s>(%s, threadIdx.x), %d);", found[i], foldClass(f.Op), slots[i], chainWord(sec, i))
	}
	e.close()
	e.open("if (place.ends())")
	for i, f := range sec.Folds {
		e.line("%s[0][threadIdx.x] = %s;", slots[i], fromMinusZero(f, fmt.Sprintf("place.look_back<%s, %s>(%d)", foldClass(f.Op), foldType(f), chainWord(sec, i))))
	}
	e.close()
}

// slabRows opens the block of text for the rows that have been folded.
func (e *columnSlab) slabRows() {
	e.open("")
	e.done = map[*ir.Local]bool{}
	e.slabPoint("place.slab - place.lag", "")
}
