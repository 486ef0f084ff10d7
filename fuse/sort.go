package fuse

import (
	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/forecast"
	"github.com/fusec/fusec/ir"
)

// A reduction at a rank picks an element of a sorted order. If the rank is an axis of the value, the
// value is every row sorted, cut off at the axis's extent. Several values that pick from one order (the
// elements and where they were) share its kernel. What is computed from them at the same place is an
// epilogue of the kernel.

// Figures of the sort kernels; measured on an H200, see docs/performance.md.
const (
	selectPlaces  = 256                 // most places wanted for which the first are selected and the row is not sorted
	selectTimes   = 8                   // least columns for each wanted place; shorter rows are sorted
	wordBits      = 32                  // bits of a key that takes one register
	sortThreads   = 1024                // threads of a sort that the registers of a multiprocessor should be enough for
	selectThreads = 896                 // the same for a selection
	selectBlocks  = forecast.FullDevice // blocks that share few rows, all together
	orderThreads  = 512                 // the same where each key takes more than a word
	mergeThreads  = 256                 // the same for merges of keys beside their columns
	wideEntry     = 8                   // bytes of an entry of a run beyond which threads have registers for fewer
	mergeBlocks   = 2                   // blocks that merge which shared memory should be enough for
)

// sortCandidate is a block that holds a whole row: its threads and the columns of each.
type sortCandidate struct{ threads, items int }

// selecting is the blocks that select the first places: candidates that hold a row, and one that goes
// through longer rows in pieces.
type selecting struct {
	candidates []sortCandidate
	piece      sortCandidate
}

// Blocks that sort, and blocks that select by keys of one register or of two.
var (
	sortCandidates = []sortCandidate{{32, 8}, {32, 32}, {64, 32}, {128, 32}, {256, 32}, {512, 32}, {1024, 32}}
	mergeWords     = []sortCandidate{{32, 8}, {64, 16}, {128, 16}, {256, 16}} // entries of up to wideEntry bytes
	mergePairs     = []sortCandidate{{32, 8}, {128, 8}, {256, 8}}
	selectWords    = selecting{[]sortCandidate{{32, 8}, {32, 32}, {128, 32}}, sortCandidate{256, 32}}
	selectPairs    = selecting{[]sortCandidate{{32, 8}, {128, 16}}, sortCandidate{256, 16}}
)

// sortKernel makes the variants of a kernel that sorts rows.
type sortKernel struct{ *kernel }

// sortVariants makes a variant for each candidate that holds a row, then one for rows of any length.
func (lo sortKernel) sortVariants() []*ir.Variant {
	if n := lo.order.Places.Extent; n.Op == ir.OpConst && n.Int <= selectPlaces {
		return lo.selectVariants(n.Int)
	}
	var out []*ir.Variant
	for _, r := range sortCandidates {
		if lo.sortFits(r) {
			out = append(out, lo.sortVariant(ir.SortMapping, r))
		}
	}
	return append(out, lo.sortVariant(ir.MergeMapping, lo.mergeCandidate()))
}

// mergeCandidate is the largest block for which there is shared memory. Runs to be merged take a word of padding for
// every 32 entries.
func (lo sortKernel) mergeCandidate() sortCandidate {
	entry, candidates := lo.order.EntryBytes(), mergeWords
	if entry > wideEntry {
		candidates = mergePairs
	}
	best := candidates[0]
	for _, r := range candidates {
		size := r.threads * r.items
		if mergeBlocks*max(lo.sortBytes(r), entry*(size+size/32)) <= lo.device.SharedBlock {
			best = r
		}
	}
	return best
}

// selectVariants is sortVariants for few wanted places.
func (lo sortKernel) selectVariants(places int64) []*ir.Variant {
	blocks := selectWords
	if 8*lo.order.Type.Size() > wordBits {
		blocks = selectPairs
	}
	var out []*ir.Variant
	for _, r := range blocks.candidates {
		m := ir.SortMapping
		if selectTimes*places <= int64(r.threads*r.items) {
			m = ir.SelectMapping
		}
		out = append(out, lo.sortVariant(m, r))
	}
	return append(out, lo.sharedPieces(blocks.piece), lo.sortVariant(ir.PieceMapping, blocks.piece))
}

// sharedPieces is the variant for rows so few that several blocks share each.
func (lo sortKernel) sharedPieces(r sortCandidate) *ir.Variant {
	const least = 2 // blocks that share a row, and pieces of it
	v := lo.sortVariant(ir.PieceMapping, r)
	v.Schedule.Blocks = selectBlocks
	v.When = algebra.And(algebra.AtMostSize(algebra.Product(lo.k.Rows), selectBlocks/least),
		algebra.AtLeastSize(algebra.Product(lo.k.Cols), int64(least*r.threads*r.items)))
	return v
}

// sortVariant is the body for rows that a block holds, or the last body, for all other rows.
func (lo sortKernel) sortVariant(m ir.Mapping, r sortCandidate) *ir.Variant {
	threads := sortThreads
	switch {
	case m == ir.SelectMapping:
		threads = selectThreads
	case m == ir.MergeMapping && lo.order.Indexed():
		threads = mergeThreads
	case m == ir.PieceMapping || !lo.order.OneWord():
		threads = orderThreads
	}
	var when *ir.Expr
	if m == ir.SortMapping || m == ir.SelectMapping {
		when = ir.Apply(ir.OpLe, algebra.Product(lo.k.Cols), ir.IntConst(int64(r.threads*r.items)))
	}
	return &ir.Variant{When: algebra.And(when, nil), Sort: lo.order, Schedule: ir.Schedule{Mapping: m, Threads: r.threads,
		RowThreads: r.threads, Vector: 1, Items: r.items, MinBlocks: min(threads/r.threads, lo.device.Blocks())}}
}

// sortFits reports whether a block has the registers and the shared memory for a candidate.
func (lo sortKernel) sortFits(r sortCandidate) bool {
	return (lo.order.OneWord() || r.threads <= orderThreads) && lo.sortBytes(r) <= lo.device.SharedBlock
}

// sortBytes is the shared memory of a block that sorts. Exchanging keys takes a word of padding for every 32 words; keys
// of more than a word take themselves and their order.
func (lo sortKernel) sortBytes(r sortCandidate) int {
	const word, place = wordBits / 8, 2
	size := r.threads * r.items
	bytes := word * (size + size/32)
	if !lo.order.OneWord() {
		bytes += size * (max(word, lo.order.Type.Size()) + place)
	}
	return bytes
}
