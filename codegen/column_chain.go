package codegen

import (
	"fmt"

	"github.com/fusec/fusec/codegen/skeleton"
	"github.com/fusec/fusec/codegen/spell"
	"github.com/fusec/fusec/ir"
)

// Chains of blocks (ir.Schedule.Chain). Rows lie across memory and are so few that blocks which
// fold all of their columns would be too few, so that the columns are cut into parts, of which a
// block reads one in a single round and is done. Parts are read in the order of memory. To its
// total a block adds what the block before it in its chain has posted, and posts the sum for the
// next one, which begins once about as many blocks as are there at once have ended: there is
// nothing to wait for. So there are no partial results in memory but one for each chain, and no
// second kernel. The last part's blocks fold the ends of the chains, and have the results.
//
// With P parts, S blocks of a part and C chains of a strip of rows, block b has part b / S of
// strip b % S; the next one of its chain is C * S blocks behind it.

// columnChain writes kernels whose blocks hand totals on in chains.
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

// chainRing is the number of blocks from one to the next of its chain.
func chainRing(v *ir.Variant, strips *ir.Expr) *ir.Expr {
	one := ir.IntConst(1)
	chains := ir.Apply(ir.OpFloorDiv, ir.IntConst(int64(v.Schedule.Chain)), ir.Apply(ir.OpMax, strips, one))
	return ir.Apply(ir.OpMul, strips, ir.Apply(ir.OpMax, chains, one))
}

// chainParts is the number of parts: a last one, that has the results, also of no columns.
func chainParts(k *ir.Kernel, s ir.Schedule) *ir.Expr {
	return ir.Apply(ir.OpMax, ceilDiv(product(extents(k.Cols)), int64(s.ColThreads*s.Unroll)), ir.IntConst(1))
}

// postedWords is the number of counters that what a block posts takes, two a word.
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
	several := ir.Apply(ir.OpMin, ir.Apply(ir.OpSub, chainParts(k, v.Schedule), ir.IntConst(1)), ir.IntConst(1)) // one alone hands nothing on
	return workspace{counters: ir.Apply(ir.OpMul, ir.Apply(ir.OpMul, chainRing(v, groupBlocks(k, v)), several), postedWords(v))}
}

func chainPreludes(k *ir.Kernel, v *ir.Variant) string {
	return skeleton.Text("chain") + scanPreludes(k, v)
}

func chainDefines(v *ir.Variant) string {
	return groupDefines(v) + fmt.Sprintf("#define CHAIN %d\n", v.Schedule.Chain)
}

// chainBlocks is the number of blocks: those of every part.
func chainBlocks(k *ir.Kernel, v *ir.Variant) *ir.Expr {
	return ir.Apply(ir.OpMul, groupBlocks(k, v), chainParts(k, v.Schedule))
}

// chainPosition writes the block's part of the columns, and returns the number of its strip.
func (e *columnChain) chainPosition() string {
	strips, _ := e.chainDivisors()
	e.line("const INDEX part = (INDEX)%s / %s;", e.block, strips)
	return fmt.Sprintf("((INDEX)%s %% %s)", e.block, strips)
}

// chainDivisors are the blocks of a part, and of a link of the chains.
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

// chainPlace writes the block's place in its chain, of a block number.
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

// chainHead writes what stands ahead of the pass, as groupHead does, but for sums of floats, which
// begin with -0: what is added to it stays what it is, so that the compiler leaves the sum out.
// The last block makes a result of -0 the 0 that it is (chainHand).
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

// asIs is the total of a fold that began with -0.
func asIs(f *ir.Fold, total string) string {
	if floatSum(f) {
		return total + " + " + foldStart(f)
	}
	return total
}

func floatSum(f *ir.Fold) bool {
	t := f.Result.Type
	return f.Op == ir.Sum && (t == ir.F32 || t == ir.F64)
}

// chainPeek looks for what the block ahead has posted: ahead of the block's own reads, since the
// compiler moves what comes of these to where it would stand behind them.
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

// chainWord is the first word of a fold among those of all.
func chainWord(sec *ir.Section, i int) int {
	at := 0
	for _, f := range sec.Folds[:i] {
		at += f.Words()
	}
	return at
}

// postedRound writes the one round of the columns: without checks where there are all. With ends it says
// whether the block has the last part.
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
	if len(conds) > 0 { // the part may be a whole one, whose columns do not meet them
		end = "end"
		e.line("const INDEX end = done + min(%s - done, (INDEX)(ITEMS * COL_THREADS));", cols)
	}
	e.line("#pragma unroll %d", max(1, min(4, e.v.Schedule.Unroll/2))) // few registers where there are few
	e.open("for (INDEX at = base; at < %s; at += COL_THREADS)", end)
	e.line("const INDEX base = at;")
	e.single, e.whole = true, true
	body()
	e.single, e.whole = false, false
	e.close()
	e.close()
	e.close()
}

// postedMerge merges the states of the block's threads, each element of the rows by one thread, has
// them handed on, and leaves the results to the blocks that have them.
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

// chainHand folds what the chain has so far and the block's own, and posts that, or leaves it
// with the block where it is the last of its strip.
func (e *columnChain) chainHand(f *ir.Fold, word int, slots, found string) {
	e.open("")
	class := foldClass(f.Op)
	e.line("const %[1]s own = fold_rows<%[2]s>(%[3]s, threadIdx.x), total = chain.after_predecessor<%[2]s>(%[4]s, own, %[5]d);", foldType(f), class, slots, found, word)
	e.line("if (ends) %s[0][threadIdx.x] = %s;", slots, asIs(f, fmt.Sprintf("chain.end<%s>(total, %d)", class, word)))
	e.line("else chain.post_total(total, %d);", word)
	e.close()
}
