package codegen

import (
	"fmt"

	"github.com/fusec/fusec/codegen/spell"
	"github.com/fusec/fusec/ir"
)

// sortEmitter writes kernels that sort rows.
type sortEmitter struct{ *emitter }

// kernel writes a kernel that sorts each row: how a key is read, the algorithm of the prelude, and what
// is stored at a place.
func (e *sortEmitter) kernel(of func(*ir.Variant) (string, int)) {
	e.line("[[maybe_unused]] const INDEX row = (INDEX)blockIdx.x;")
	e.take(e.k.Rows, "row", e.every()...)
	e.block(of(e.v))
	e.access()
	e.line("block.places(%s, %s, get, put);", e.cols(), e.wanted())
}

// pieces writes a kernel that selects from rows in pieces, one block or several for each row.
func (e *sortEmitter) pieces() {
	if e.v.Schedule.Blocks == 0 {
		e.kernel(pieceSelector)
		return
	}
	e.line("const unsigned slices = (unsigned)%s;", e.s.Expr(selectSlices(e.k, e.v)))
	e.line("[[maybe_unused]] const INDEX row = (INDEX)(blockIdx.x / slices);")
	e.take(e.k.Rows, "row", e.every()...)
	e.block(pieceSelector(e.v))
	e.access()
	e.line("select_shared<Key, THREADS * ITEMS>(block, %s, %s, (unsigned)row, blockIdx.x %% slices, slices, %s, %s, get, put);",
		e.cols(), e.wanted(), e.counters, e.workspace)
}

// merge writes a kernel whose blocks share rows: for each task of a block, what kernel writes for its row.
func (e *sortEmitter) merge() {
	e.block(mergeSorter(e.v))
	e.line("MergeTasks<THREADS * ITEMS> tasks = {%s, (unsigned)%s, (unsigned)%s, %s, %s};", e.counters, e.s.Expr(product(extents(e.k.Rows))),
		e.s.Expr(mergedTogether(e.k)), e.cols(), e.wanted())
	e.line("tasks.count_tasks();")
	e.open("while (tasks.next_task())")
	e.line("[[maybe_unused]] const INDEX row = (INDEX)tasks.row;")
	e.take(e.k.Rows, "row", e.every()...)
	e.access()
	e.line("block.do_task(tasks, %s, get, put);", e.workspace)
	e.line("tasks.end_task();")
	e.close()
	e.line("tasks.leave_tasks();")
}

// cols and wanted are the columns of a row, and the places.
func (e *sortEmitter) cols() string {
	return "(unsigned)" + e.s.Expr(product(extents(e.k.Cols)))
}

func (e *sortEmitter) wanted() string { return "(unsigned)" + e.s.Expr(e.v.Sort.Places.Extent) }

// block writes the object in shared memory that does the work.
func (e *sortEmitter) block(class string, bytes int) {
	e.line("typedef SortKey<%s%s> Key;", spell.StorageType(e.v.Sort.Type), map[bool]string{true: ", true"}[e.wordsAlone()])
	e.line("typedef %s Block;", class)
	e.line("static_assert(sizeof(Block) <= %d, \"the block's shared memory\");", bytes)
	e.line("extern __shared__ __align__(16) unsigned char shared[];")
	e.line("Block &block = *reinterpret_cast<Block *>(shared);")
}

// access writes how the keys of a row are read, and what is stored at its places.
func (e *sortEmitter) access() {
	s := e.v.Sort
	e.open("const auto key = [&](unsigned c)")
	e.take(e.k.Cols, "c", s.Key)
	e.noted(s.Value.Span, "return %s;", e.s.Bare(s.Key))
	e.closeWith(";")
	e.line("const auto get = [&](unsigned c) { return sort_word<Key, %t>(key(c)); };", s.Descending)
	e.open("const auto put = [&](unsigned c, bool real, Key::Word word, unsigned column)")
	e.line("[[maybe_unused]] const INDEX %s = (INDEX)c;", e.ranges[s.Places])
	e.placed(s)
	for _, st := range s.Stores {
		e.scalarStore(st)
	}
	e.closeWith(";")
}

// wordsAlone reports whether the block sorts words without their columns. The elements are then computed
// from the words, so zeros of either sign need different words.
func (e *sortEmitter) wordsAlone() bool {
	s := e.v.Sort
	return s.Type.IsFloat() && !s.Indexed() && (e.v.Strategy == ir.SortBlock && s.OneWord() || e.v.Strategy == ir.SortMerge)
}

// Figures of the sort preludes, in words of 4 bytes unless said otherwise.
const (
	wordBytes     = 4
	digitBits     = 16      // bits of a longer key that are sorted at once; bits of a column beside them
	cutterBins    = 2048    // bins of a Cutter, which has sums and three results beside them
	leastKept     = 256     // least keys that a Selector has room for; it has room for more if more places are wanted:
	keptTimes     = 4       // at least so many times the places
	mergedColumns = 8 << 20 // columns whose runs are in memory at one time, where rows are shorter
	countedPlaces = 64      // most places for which a key is placed by counting the keys before it
)

// The classes that do the work of sort kernels. The dynamic shared memory of a block is one object of such
// a class; each function returns the class with its bytes.

// blockSorter sorts a row.
func blockSorter(v *ir.Variant) (class string, bytes int) {
	if v.Sort.OneWord() {
		return fmt.Sprintf("WordSorter<Key, THREADS, ITEMS, %t>", v.Sort.Indexed()), networkBytes(v)
	}
	return "OrderSorter<Key, THREADS, ITEMS>", roundUp(orderBytes(v))
}

// mergeSorter sorts chunks of rows, and merges them.
func mergeSorter(v *ir.Variant) (class string, bytes int) {
	chunk, bytes := blockSorter(v)
	entry := "WordAlone<Key>"
	if v.Sort.Indexed() {
		entry = "Ranked<Key, false>"
	}
	size := v.Schedule.Threads * v.Schedule.Items
	return fmt.Sprintf("MergeSorter<Key, %s, %s, THREADS, ITEMS>", entry, chunk), roundUp(max(bytes, (size+size/32)*v.Sort.EntryBytes())) + 16
}

// mergedTogether is the number of rows whose runs are in memory at one time.
func mergedTogether(k *ir.Kernel) *ir.Expr {
	fit := ir.Apply(ir.OpFloorDiv, ir.IntConst(mergedColumns), ir.Apply(ir.OpMax, product(extents(k.Cols)), ir.IntConst(1)))
	return ir.Apply(ir.OpMax, ir.Apply(ir.OpMin, fit, product(extents(k.Rows))), ir.IntConst(1))
}

// mergeOwn is the workspace of a launch: three counters, and two buffers of entries.
func mergeOwn(k *ir.Kernel, v *ir.Variant) workspace {
	entries := ir.Apply(ir.OpMul, mergedTogether(k), product(extents(k.Cols)))
	return workspace{counters: ir.IntConst(3), bytes: ir.Apply(ir.OpMul, entries, ir.IntConst(int64(2*v.Sort.EntryBytes())))}
}

// mergeGrid is a block for each chunk.
func mergeGrid(k *ir.Kernel, v *ir.Variant) *ir.Expr {
	chunks := ceilDiv(product(extents(k.Cols)), int64(v.Schedule.Threads*v.Schedule.Items))
	return ir.Apply(ir.OpMul, product(extents(k.Rows)), ir.Apply(ir.OpMax, chunks, ir.IntConst(1)))
}

func networkBytes(v *ir.Variant) int {
	size := v.Schedule.Threads * v.Schedule.Items
	return wordBytes * (size + size/32)
}

func orderBytes(v *ir.Variant) int {
	return v.Schedule.Threads*v.Schedule.Items*(keyBytes(v)+digitBits/8) + networkBytes(v)
}

func cutterBytes(v *ir.Variant) int { return wordBytes * (cutterBins + v.Schedule.Threads/32 + 1 + 3) }

func keyBytes(v *ir.Variant) int { return max(v.Sort.Type.Size(), wordBytes) }

// rowSelector finds the first places of a row; pieceSelector does so for rows that are read in pieces.
func rowSelector(v *ir.Variant) (class string, bytes int) { return selector(v, false) }

func pieceSelector(v *ir.Variant) (class string, bytes int) { return selector(v, true) }

// selectSlices is the number of blocks that share a row, each of which has a piece at least.
func selectSlices(k *ir.Kernel, v *ir.Variant) *ir.Expr {
	s := v.Schedule
	if s.Blocks == 0 {
		return ir.IntConst(1)
	}
	each := ir.Apply(ir.OpFloorDiv, ir.IntConst(int64(s.Blocks)), ir.Apply(ir.OpMax, product(extents(k.Rows)), ir.IntConst(1)))
	pieces := ceilDiv(product(extents(k.Cols)), int64(s.Threads*s.Items))
	return ir.Apply(ir.OpMax, ir.Apply(ir.OpMin, pieces, each), ir.IntConst(1))
}

func selectGrid(k *ir.Kernel, v *ir.Variant) *ir.Expr {
	return ir.Apply(ir.OpMul, product(extents(k.Rows)), selectSlices(k, v))
}

// selectOwn is the workspace of blocks that share rows: a counter for each row, and what each block finds.
func selectOwn(k *ir.Kernel, v *ir.Variant) workspace {
	if v.Schedule.Blocks == 0 {
		return workspace{}
	}
	entry := ir.IntConst(int64(2 * keyBytes(v)))
	return workspace{counters: product(extents(k.Rows)), bytes: ir.Apply(ir.OpMul, ir.Apply(ir.OpMul, selectGrid(k, v), v.Sort.Places.Extent), entry)}
}

func selector(v *ir.Variant, many bool) (class string, bytes int) {
	s, t, places := v.Schedule, v.Sort.Type, int(v.Sort.Places.Extent.Int)
	packed := 8*t.Size() <= digitBits && !many
	entry := 2 * keyBytes(v)
	if packed {
		entry = wordBytes
	}
	kept, net := leastKept, 0
	for kept < keptTimes*places {
		kept *= 2
	}
	bytes = roundUp(cutterBytes(v)) + s.Threads/32*keyBytes(v) + wordBytes + kept*entry
	if !many && sortsKept(v) {
		net = kept / s.Threads
		bytes += kept / 32 * entry
	}
	class = fmt.Sprintf("Selector<Key, THREADS, ITEMS, %d, %d, %d, %t, %t>", places, kept, net, packed, many)
	return class, roundUp(bytes)
}

// sortsKept reports whether a Selector sorts the keys that it keeps, which are words with their columns.
// If few are kept it counts instead. So it does for rows that are read in pieces, which take so long
// that the difference would not be noticed.
func sortsKept(v *ir.Variant) bool {
	return v.Sort.Places.Extent.Int > countedPlaces && v.Sort.Type.Size() <= wordBytes
}

// roundUp rounds bytes up to the alignment of shared memory.
func roundUp(bytes int) int { return (bytes + 15) / 16 * 16 }

// placed writes what a place holds: past the last column it is the result of an order of no elements.
func (e *sortEmitter) placed(s *ir.Sort) {
	op := ir.Min
	if s.Descending {
		op = ir.Max
	}
	value, index := e.names.Fresh(s.Value.Name), e.names.Fresh(s.Index.Name)
	t := spell.ComputeType(s.Type)
	none := ir.Cast(op.Identity(s.Type), s.Type.Info().Compute)
	e.noted(s.Value.Span, "[[maybe_unused]] %s %s = real ? (%s)sort_value<Key, %t>(word) : (%s)%s;", t, value, t, s.Descending, t, spell.Literal(none))
	if s.Type.IsFloat() && !e.wordsAlone() { // because zeros of either sign share a word
		e.line("if (real && %s == 0) %s = copysign(%s, (%s)key(column));", value, value, value, t)
	}
	e.line("[[maybe_unused]] const long long %s = real ? (long long)column : 0LL;", index)
	e.place[s.Value], e.place[s.Index] = value, index
}
