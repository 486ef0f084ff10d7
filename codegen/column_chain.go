package codegen

import (
	"fmt"

	"github.com/fusec/fusec/codegen/skeleton"
	"github.com/fusec/fusec/codegen/spell"
	"github.com/fusec/fusec/ir"
)

// Chains of blocks (ir.Schedule.Chain). Here neighbours in memory are rows, and there are so few rows that most of the
// device would be idle if each block had all columns of its rows. So the columns are cut into parts, in the order of
// memory, and a block reads one part in a single round. It adds the total that its predecessor in the chain has posted
// to its own, and posts the sum for its successor. A successor starts at about the time when its predecessor ends, so
// it rarely waits. There is one partial result in memory for each chain, and no second kernel: the blocks of the last
// part fold the ends of the chains, and compute the results.
//
// With P parts, S blocks of a part and C chains of a strip of rows, block b has part b / S of strip b % S; its
// successor in the chain is block b + C * S.

// columnChain writes kernels whose blocks form chains.
type columnChain struct{ *columnEmitter }

// posting is a pass over the block's part of the columns: its states and reads, what other blocks have
// posted, and where in shared memory the block's totals are.
type posting struct {
	sec               *ir.Section
	states            map[*ir.Fold]string
	full, reads, rest []*ir.Local
	found, slots      []string
}

func newColumnChain(e *emitter) *columnChain { return &columnChain{newColumnGroup(e)} }

func (e *columnChain) kernel() {
	e.groupShape()
	e.line("const INDEX t = %s * LANES + threadIdx.x %% LANES;", e.chainPosition())
	e.flatPoint("return", true)
	e.sections(func(number int, sec *ir.Section) {
		e.line("constexpr int COLUMNS = LANES * VECTOR;")
		p := e.postedHead(number, sec)
		e.chainPeek(sec, p.found)
		e.postedRound(p, true)
		e.postedMerge(p, func() {
			e.chainPlace("chain", "block_again()")
			for i, f := range sec.Folds {
				e.chainHand(f, chainWord(sec, i), p.slots[i], p.found[i])
			}
		}, func() {})
	})
}

// chainRing is the number of blocks between a block and its successor in the chain.
func chainRing(v *ir.Variant, strips *ir.Expr) *ir.Expr {
	one := ir.IntConst(1)
	chains := ir.Apply(ir.OpFloorDiv, ir.IntConst(int64(v.Schedule.Chain)), ir.Apply(ir.OpMax, strips, one))
	return ir.Apply(ir.OpMul, strips, ir.Apply(ir.OpMax, chains, one))
}

// chainParts is the number of parts. There is always a last part, whose blocks compute the results, even if there are
// no columns.
func chainParts(k *ir.Kernel, s ir.Schedule) *ir.Expr {
	return ir.Apply(ir.OpMax, ceilDiv(product(extents(k.Cols)), int64(s.ColThreads*s.Unroll)), ir.IntConst(1))
}

// postedWords is the number of 32-bit counters that the posted totals of a block take: two for each word.
func postedWords(v *ir.Variant) *ir.Expr {
	words := 0
	for _, sec := range v.Sections {
		for _, f := range sec.Folds {
			words += f.Words()
		}
	}
	s := v.Schedule
	return ir.IntConst(int64(2 * words * (s.Threads / s.ColThreads * s.Vector)))
}

func chainOwn(k *ir.Kernel, v *ir.Variant) workspace {
	several := ir.Apply(ir.OpMin, ir.Apply(ir.OpSub, chainParts(k, v.Schedule), ir.IntConst(1)), ir.IntConst(1)) // a single part posts nothing
	return workspace{counters: ir.Apply(ir.OpMul, ir.Apply(ir.OpMul, chainRing(v, groupBlocks(k, v)), several), postedWords(v))}
}

func chainPreludes(k *ir.Kernel, v *ir.Variant) string {
	return skeleton.Text("chain") + scanPreludes(k, v)
}

func chainDefines(v *ir.Variant) string {
	return groupDefines(v) + fmt.Sprintf("#define CHAIN %d\n", v.Schedule.Chain)
}

// chainBlocks is the number of blocks of all parts.
func chainBlocks(k *ir.Kernel, v *ir.Variant) *ir.Expr {
	return ir.Apply(ir.OpMul, groupBlocks(k, v), chainParts(k, v.Schedule))
}

// chainPosition writes the block's part of the columns, and returns the number of its strip.
func (e *columnChain) chainPosition() string {
	strips, _ := e.chainDivisors()
	e.line("const INDEX part = (INDEX)%s / %s;", e.block, strips)
	return fmt.Sprintf("((INDEX)%s %% %s)", e.block, strips)
}

// chainDivisors are the numbers of blocks in a part, and between a block and its successor, as
// divisors.
func (e *columnChain) chainDivisors() (strips, ring string) {
	rows := e.rows()
	text := fmt.Sprintf("up_by<VECTOR * THREADS / COL_THREADS>(%s)", e.s.Expr(e.lane.Extent))
	if outer := rows[:len(rows)-1]; len(outer) > 0 {
		text = fmt.Sprintf("up_by<THREADS / COL_THREADS>(%s * up_by<VECTOR>(%s))", e.s.Expr(product(extents(outer))), e.s.Expr(e.lane.Extent))
	}
	size := groupBlocks(e.k, e.v)
	strips = e.divisorOf("strips", text, size)
	return strips, e.divisorOf("ring", fmt.Sprintf("%s * max((INDEX)CHAIN / %s, (INDEX)1)", text, strips), chainRing(e.v, size))
}

// chainPlace writes the place of a block in its chain, given the block's number.
func (e *columnChain) chainPlace(name, block string) {
	strips, ring := e.chainDivisors()
	e.line("const INDEX %s_block = %s;", name, block)
	e.line("const ChainPlace<COLUMNS> %s = {reinterpret_cast<unsigned long long *>(%s), size_of(%s), size_of(%s), %s_block, %s_block / %s};",
		name, e.counters, strips, ring, name, name, ring)
}

func (e *columnEmitter) postedHead(number int, sec *ir.Section) posting {
	p := posting{sec: sec, found: make([]string, len(sec.Folds)), slots: make([]string, len(sec.Folds))}
	p.states, p.full = e.chainHead(number, sec)
	for i, f := range sec.Folds {
		p.found[i] = e.names.Fresh(f.Result.Name + "_posted")
		e.line("Posted<%s> %s = {};", foldType(f), p.found[i])
	}
	p.reads, p.rest = e.splitReads(p.full)
	return p
}

// chainHead writes the text before the pass, as groupHead does, but sums of floats begin with -0:
// x + -0 is x for every x, so the compiler drops the addition. The blocks that compute results
// then add 0, which turns a total of -0 into 0 (fromMinusZero).
func (e *columnEmitter) chainHead(number int, sec *ir.Section) (states map[*ir.Fold]string, full []*ir.Local) {
	states, full = e.groupHead(number, sec)
	for _, f := range sec.Folds {
		if floatSum(f) {
			e.line("#pragma unroll")
			e.line("for (int v = 0; v < VECTOR; ++v) %s = -%s;", states[f], foldStart(f))
		}
	}
	return states, full
}

// fromMinusZero adds the usual initial value, 0, to the total of a fold that began with -0.
func fromMinusZero(f *ir.Fold, total string) string {
	if floatSum(f) {
		return total + " + " + foldStart(f)
	}
	return total
}

func floatSum(f *ir.Fold) bool {
	t := f.Result.Type
	return f.Op == ir.Sum && (t == ir.F32 || t == ir.F64)
}

// chainPeek reads what the predecessor has posted so far. It stands before the block's own reads, because after
// them the compiler would make it wait for them.
func (e *columnChain) chainPeek(sec *ir.Section, found []string) {
	e.open("if (threadIdx.x < COLUMNS)")
	e.chainPlace("predecessor", "(INDEX)"+e.block)
	e.open("if (predecessor.link > 0)")
	for i, f := range sec.Folds {
		e.line("%s = predecessor.peek_predecessor<%s>(%d);", found[i], foldType(f), chainWord(sec, i))
	}
	e.close()
	e.close()
}

// chainWord is the position of a fold's first word among the words of all folds.
func chainWord(sec *ir.Section, i int) int {
	at := 0
	for _, f := range sec.Folds[:i] {
		at += f.Words()
	}
	return at
}

// postedRound writes the single round of reads, without checks where all columns of the part exist. With ends it
// also writes whether the block has the last part.
func (e *columnEmitter) postedRound(p posting, ends bool) {
	body := func() {
		e.groupLoads(p.reads)
		e.columns(append(definitions(p.rest), sectionRoots(p.sec)...), func() { e.groupCompute(p.sec, p.rest, p.states) })
	}
	cols := e.s.Expr(product(extents(e.k.Cols)))
	e.line("const INDEX done = part * (ITEMS * COL_THREADS), base = done + group;")
	if ends {
		e.line("const bool ends = %s - done <= ITEMS * COL_THREADS;", cols)
	}
	e.open("if (n > 0)")
	if e.wholeLanes() {
		e.line("[[maybe_unused]] constexpr int n = VECTOR;")
	}
	conds, limit := e.prefix(p.sec, p.full, cols)
	e.inside(conds, func() {
		e.open("if (%s - done >= ITEMS * COL_THREADS)", limit)
		body()
	})
	e.orElse()
	end := cols
	if len(conds) > 0 { // a whole part may have columns that do not meet the conditions
		end = "end"
		e.line("const INDEX end = done + min(%s - done, (INDEX)(ITEMS * COL_THREADS));", cols)
	}
	e.line("#pragma unroll %d", max(1, min(4, e.v.Schedule.Unroll/2))) // unroll less where registers are few
	e.open("for (INDEX at = base; at < %s; at += COL_THREADS)", end)
	e.line("const INDEX base = at;")
	e.single, e.whole = true, true
	body()
	e.single, e.whole = false, false
	e.close()
	e.close()
	e.close()
}

// postedMerge merges the states of the block's threads, one thread for each element of the rows, posts the totals, and
// has the blocks of the last part compute the results.
func (e *columnEmitter) postedMerge(p posting, hand, rows func()) {
	for i, f := range p.sec.Folds {
		p.slots[i] = e.names.Fresh(f.Result.Name + "_slots")
		state := p.states[f][:len(p.states[f])-len("[v]")]
		e.line("__shared__ alignas(16) %s %s[MERGED][COLUMNS];", foldType(f), p.slots[i])
		e.line("keep_folded<%s, LANES>(%s, %s[threadIdx.x / (THREADS / MERGED)]);", foldClass(f.Op), state, p.slots[i])
	}
	e.line("__syncthreads();")
	e.open("if (threadIdx.x < COLUMNS)")
	hand()
	e.close()
	e.line("if (!ends) return;")
	e.line("__syncthreads();")
	rows()
	for i, f := range p.sec.Folds {
		name := e.names.Fresh(f.Result.Name)
		e.line("%s %s[VECTOR];", spell.ComputeType(f.Result.Type), name)
		e.line("#pragma unroll")
		e.noted(f.Result.Span, "for (int v = 0; v < VECTOR; ++v) %s[v] = %s[0][threadIdx.x %% LANES * VECTOR + v];", name, p.slots[i])
		e.place[f.Result] = name + "[v]"
	}
}

// chainHand folds the predecessor's total and the block's own. It posts the result, or keeps it if the block is the
// last of its strip.
func (e *columnChain) chainHand(f *ir.Fold, word int, slots, found string) {
	e.open("")
	class := foldClass(f.Op)
	e.line("const %[1]s own = fold_rows<%[2]s>(%[3]s, threadIdx.x), total = chain.after_predecessor<%[2]s>(%[4]s, own, %[5]d);", foldType(f), class, slots, found, word)
	e.line("if (ends) %s[0][threadIdx.x] = %s;", slots, fromMinusZero(f, fmt.Sprintf("chain.end<%s>(total, %d)", class, word)))
	e.line("else chain.post_total(total, %d);", word)
	e.close()
}
