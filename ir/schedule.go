package ir

import "slices"

// Mapping says how a loop kernel's space is spread over threads.
type Mapping uint8

// The mappings.
const (
	// FlatMapping gives each thread Vector neighbouring points of the innermost
	// row range. Columns, if any, are dealt out to ColThreads threads, Unroll of
	// them at a time, which are neighbours where they are scanned; with ColThreads
	// 0 they are loops in the thread, unrolled where Unroll is set.
	FlatMapping Mapping = iota
	// RowMapping gives RowThreads threads to each row; columns are dealt out in
	// vectors, Items a thread when kept on chip.
	RowMapping
	// ContractMapping computes tiles of TileM x TileN rows at a time on tensor
	// cores; Variant.Contract says which rows are which. What follows the fold is
	// done with the tile still in registers.
	ContractMapping
	// TileMapping is FlatMapping for kernels that read across the innermost range:
	// a block takes TileM points of Variant.Across by TileN of the innermost range,
	// and Staged reads pass through shared memory, so that memory is walked along
	// its own order on both sides.
	TileMapping
	// AttendMapping streams keys past tiles of TileM queries, TileN keys at a time:
	// scores on tensor cores, weights in registers, weighted sums on tensor cores.
	// Variant.Attend says what is what.
	AttendMapping
	// AttendWarpgroupMapping is AttendMapping through the tensor copy engine and wgmma: one
	// warpgroup copies tiles, each of the others has 64 of the queries.
	AttendWarpgroupMapping
	// WarpgroupMapping is ContractMapping through the tensor copy engine and wgmma: one
	// warpgroup, or with SplitK one warp, copies tiles of the operands' TensorMaps to shared
	// memory; the others multiply them and compute the epilogue. Blocks are persistent and take
	// one tile after another; with SplitK each has one tile.
	WarpgroupMapping
	// SplitKMapping computes tiles of TileM x TileN rows of a product by Contract.Unit,
	// each warp (on tensor cores) or thread PartM x PartN of them. The columns of a
	// tile are cut into Cluster parts, one for each block of a cluster, whose sums
	// are added in the order of the slices; or into Contract.Slices parts, whose sums pass
	// through memory.
	SplitKMapping
	// GemvMapping is for products of few rows of M, at most TileM, or of N: each warp computes
	// all of them by TileN rows of the other side on tensor cores. It reads the fragments of
	// these from memory directly to registers. The warps of a block share the columns, and add
	// their sums in order.
	GemvMapping
	// RowProductMapping computes tiles of TileM x TileN rows of a product whose left operand
	// may need folds over the same columns. These folds are in the sections before that of the
	// product, over rows of M. A block folds the rows of its tile, one warp for each row, and
	// keeps the values of both operands in shared memory, all TileK columns. Each thread
	// multiplies PartM x PartN of the tile by its group's share of the columns; the groups'
	// sums are added in order.
	RowProductMapping
	// SortMapping gives each row to a block that holds it, Items columns a thread, and
	// sorts it.
	SortMapping
	// SelectMapping finds the first places of a row that a block holds, without sorting the
	// other columns. The number of places is a constant.
	SelectMapping
	// PieceMapping is SelectMapping for rows of any length: a block holds Threads*Items
	// columns at a time. With Blocks, several blocks share a row, so many for all rows.
	PieceMapping
	// MergeMapping sorts rows of any length: blocks sort chunks of Threads*Items columns, and merge
	// them in memory.
	MergeMapping
	// ScatterMapping folds into each row the columns whose key is its place in a range,
	// Variant.Scatter. A block has TileM places of that range: it reads all keys, puts
	// the columns of its places in order, and folds only those, neighbours of the other
	// rows by Vector.
	ScatterMapping
	// ScatterOnceMapping is ScatterMapping for few columns: a block reads all keys at once,
	// Items a thread, and marks where each column goes.
	ScatterOnceMapping
	// ScatterBinsMapping is ScatterMapping for many columns and many tiles of places. The
	// blocks share the reading of keys, and put each column in the bin of the tile that it goes
	// to. Then each block takes its own bin. If a bin is full, its block reads all keys.
	ScatterBinsMapping
	// HistogramMapping is a scatter whose places have few rows each. A block keeps the running
	// values of TileM rows in shared memory, reads all keys, and folds each column into them at
	// once.
	HistogramMapping
	// ChainMapping is AttendMapping without a running maximum: the weights are any function
	// of one or more products, such as the scores of a softmax whose statistics are known.
	ChainMapping
	// ChainWarpgroupMapping is ChainMapping through the tensor copy engine and wgmma.
	ChainWarpgroupMapping
	// FlattenedMapping is FlatMapping for pointwise kernels whose large tensors lie in the order of
	// the rows: each thread has Vector consecutive points of all rows together, which may begin in
	// one row of memory and end in a later one.
	FlattenedMapping
	// InterleavedMapping is FlatMapping for pointwise kernels that read tensors in which the elements of
	// Variant.Across lie next to each other, and behind them those of the next point of the innermost range: a
	// block copies the elements of TileN such points, TileM of each, to shared memory as one run.
	InterleavedMapping
	// InterleavingMapping is FlattenedMapping for pointwise kernels with a short innermost range, of TileM points, that
	// read along the range around it, Variant.Across: a block has TileN points of that, whose Staged reads pass
	// through shared memory.
	InterleavingMapping
)

// Sort is the work of a kernel that puts the columns of each row in order. Equal
// keys stand in order of index, NaN above every number.
type Sort struct {
	Key        *Expr // over Rows and Cols, in the type that Type is computed in
	Type       DType // what keys are rounded to before they are compared
	Descending bool
	Places     *Range   // of the results; past the last column a result is that of a reduction over nothing
	Value      *Local   // no Def: the key at a place, in the type that Type is computed in
	Index      *Local   // no Def: its column, an I64
	Stores     []*Store // over Rows and Places
}

// Scatter says which columns a row of a scatter's mapping takes: those whose Key is its
// place in To. Every fold's condition is that, and Rest. The kernel's rows are Batch, To,
// and then those that neither depends on.
type Scatter struct {
	Batch []*Range
	To    *Range
	Key   *Expr // an integer over Batch and the columns; a column whose key is not in To goes to no row
	Rest  *Expr // bool over the same; nil for true
}

// Lanes returns the rows other than Batch and To: all elements along them go where one key says.
func (s *Scatter) Lanes(rows []*Range) (out []*Range) {
	for _, r := range rows {
		if r != s.To && !slices.Contains(s.Batch, r) {
			out = append(out, r)
		}
	}
	return out
}

// Indexed reports whether a store needs to know where the keys were.
func (s *Sort) Indexed() bool {
	isIndex := func(e *Expr) bool { return e.Op == OpLocal && e.Local == s.Index }
	return slices.ContainsFunc(s.Stores, func(st *Store) bool {
		return Contains(st.Value, isIndex) || Contains(st.Offset, isIndex) || Contains(st.Guard, isIndex)
	})
}

// EntryBytes is what an element takes in the order: its key, and its column where a store needs to know that.
func (s *Sort) EntryBytes() int {
	bytes := max(s.Type.Size(), 4)
	if s.Indexed() {
		bytes *= 2
	}
	return bytes
}

// OneWord reports whether a key fits in 32 bits: with a column of 16 bits below it where
// a store needs to know that.
func (s *Sort) OneWord() bool {
	return s.Type.Size() <= 2 || s.Type.Size() <= 4 && !s.Indexed()
}

// Attend is how a kernel that sums values with the weights exp(Scale*(logit - m)), where m is the largest
// logit of a row, maps to two products over a stream of keys: queries[M, Depth] times keys[Depth, columns]
// are the scores of a tile, and their weights times values[columns, N] are added to the sums, which are
// rescaled where m grows (Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018; Dao et
// al., "FlashAttention", 2022). The variant's sections say the same without tiles: a pass with the folds Max,
// Sums and Acc, and stores.
//
// With ChainMapping and ChainWarpgroupMapping the weights are Weight, a function of the scores of one or more
// products, and there is no maximum. The kernel is a chain of products with a pointwise function between, and
// no intermediate element goes through memory.
type Attend struct {
	Batch, M, N []*Range // the rows: of queries and values, of queries alone, of values alone
	Depth       []*Range // summed in a score; neither rows nor columns
	Q, K, V     Operand
	Type        DType          // bf16, f16 or f32: what the operands are; sums are f32
	Parts       int            // of f32: the number of bf16 in the tiles whose sum is an element, 8 bits each; else 0
	Width       int            // columns of a tile of values: those of N, and padding
	Score       *Local         // full level; its Def is an OpReduce over Depth
	Others      []ScoreProduct // of chains: the further products that the weights are made of
	ValueIn     int            // of chains: 1 + the product whose keys are the values too, 0 for none
	Max         *Fold          // its body is the logit; nil in chains
	Sums        []*Fold
	Acc         *Fold // depends on N
	Scale       float64
	Also        *ChainSum // of chains: another sum over the same columns; nil for none
	Weight      *Expr     // factor of a term of Acc beside the exponential, independent of N; nil for 1. In chains the whole weight
	Skip        TileMask
	// Brought, of ChainWarpgroupMapping, are locals that belong to a key alone. They are copied to shared memory with
	// the tile of the key, so that threads that multiply do not wait for memory.
	Brought []*Local
	// Outer, of ChainWarpgroupMapping, are columns around the tiles: a tile is of one range, and for each point of
	// Outer all tiles of that range are taken. The query heads that share a key are such columns.
	Outer []*Range
	// Held, of ChainWarpgroupMapping, is the number of slabs, of 64 columns of the queries of its products in order,
	// that stay in registers as left operands. The others are read from shared memory for every tile of keys.
	Held int
	// OfQuery, of chains, are locals that belong to a query alone. A thread reads those of its queries once, before the
	// keys.
	OfQuery []*Local

	QTile, KTile, VTile *TMATile // of AttendWarpgroupMapping and ChainWarpgroupMapping; VTile is nil with ValueIn
}

// ChainSum is a second sum of a chain, over the same columns but with another weight. Its values are as wide as
// those of the first, and are the keys of one of the products.
type ChainSum struct {
	Acc           *Fold
	Value         *Expr
	ValueIn       int   // 1 + the product whose keys are the values
	Weight, Clear *Expr // the weight in general, and where TileMask.All is true
}

// ScoreProduct is a product of queries and keys over a depth of its own.
type ScoreProduct struct {
	Depth []*Range
	Q, K  Operand
	Score *Local

	QTile, KTile *TMATile
}

// Products are all products that the weights are made of.
func (a *Attend) Products() []ScoreProduct {
	return append([]ScoreProduct{{a.Depth, a.Q, a.K, a.Score, a.QTile, a.KTile}}, a.Others...)
}

// Keys are the columns of a kernel that are in its tiles of keys.
func (a *Attend) Keys(k *Kernel) []*Range {
	return slices.DeleteFunc(slices.Clone(k.Cols), func(r *Range) bool { return slices.Contains(a.Outer, r) })
}

// InPlace reports whether the scores of a chain through wgmma become weights in the same registers: beside two sums
// of wide values there are not enough registers for both the next scores and the weights.
func (a *Attend) InPlace() bool { return a.Also != nil && a.Width > 64 }

// Numbers are the locals, beside scores, from which the weights of a chain are computed.
func (a *Attend) Numbers() []*Local { return append(slices.Clone(a.Brought), a.OfQuery...) }

// TMATile is how tiles of an operand are copied by the tensor copy engine: View has its columns
// and its rows as dims 0 and 1, and At is the position in the other dims, over Batch. Line is where
// the rows begin in dim 1, over Batch too; nil for 0.
type TMATile struct {
	View *TMAView
	At   []*Expr
	Line *Expr
}

// TileMask says, for a tile of queries and one of keys, what a mask leaves of it.
// Its conditions are over Batch ranges and the symbols Query and Key, which stand
// for the first query (a position in M) and the first key of the tile.
type TileMask struct {
	Query, Key string
	Any        *Expr // false: the whole tile is masked; nil if that is not known
	All        *Expr // true: nothing is masked, and Clear is the logit; nil likewise
	Clear      *Expr // over locals, as the body of Max
	FirstMost  bool  // the first queries have the most keys, so their tiles start first; otherwise the last ones do
	// With Table the conditions read memory at other places for each tile, and a block
	// evaluates them once, beforehand. Kept, over locals, is then the condition at a point that
	// All decides for a tile: where it is false the logit is -inf, else Clear. Where Settled is
	// true, Placed, which reads no memory, is equal to Kept; both are nil if there is no such
	// condition.
	Table                 bool
	Kept, Settled, Placed *Expr
}

// String returns the mapping's name.
func (m Mapping) String() string {
	return [...]string{
		"flat", "row", "contract", "tile", "attend", "attend warpgroup", "warpgroup", "split-k", "gemv", "row product",
		"sort", "select", "select pieces", "merge",
		"scatter", "scatter once", "scatter bins", "histogram", "chain", "chain warpgroup", "flattened", "interleaved", "interleaving",
	}[m]
}

// LooksBack reports whether blocks post their totals for others, in chains or by slabs.
func (s Schedule) LooksBack() bool { return s.Chain > 0 || s.LookBack > 0 }

// Sides is the warpgroups that lie side by side along the columns of a tile of WarpgroupMapping: two where it has rows for one.
func (s Schedule) Sides() int {
	const rows = 64 // of an instruction
	if s.TileM == rows && s.Turns == 1 && s.SplitK <= 1 {
		return 2
	}
	return 1
}

// Schedule is how a kernel runs: numbers only, comparable, printed in plans.
type Schedule struct {
	Mapping    Mapping
	Threads    int // a block
	RowThreads int // RowMapping, RowProductMapping: threads of a block on one row; divides Threads
	// Cluster is the blocks of a cluster: of RowMapping, FlatMapping with ColThreads and SplitKMapping those that share a row
	// or tile, of WarpgroupMapping those that share tiles of B; 0 or 1 for one.
	Cluster    int
	ColThreads int // FlatMapping with columns: threads that share the columns; divides Threads
	// Chain, of FlatMapping with ColThreads, makes a block read one part of the columns, Unroll
	// for each of these threads, and add its totals to those that its predecessor in a chain of
	// blocks has posted. The successor in the chain is about Chain blocks later; 0 for no chain.
	// With LookBack there is no chain. A slab is all columns for one point of the rows but the
	// innermost; blocks go from slab to slab, and the results of a slab are folded by blocks that
	// come LookBack blocks later.
	Chain, LookBack int
	Vector          int // elements of one access along the innermost range
	Items           int // RowMapping and RowProductMapping with Keep: vectors each thread holds of a row; keys of a scatter
	MinBlocks       int // blocks that registers should let a multiprocessor hold; 0 leaves it to the compiler
	Unroll          int // vectors, pieces or columns in flight in a pass of a looped reduction; vectors of a chunk, or of a place of a scatter
	// TileM is, in mappings of products, rows of M of one tile; in TileMapping and InterleavedMapping points of Across, in InterleavingMapping of the innermost range;
	// in FlatMapping a thread's neighbours of Stencil.Down;
	// in mappings of scatters places of a block, in HistogramMapping rows.
	TileM int
	TileN int // rows of N of one tile; points of the innermost range, in InterleavingMapping of Across
	TileK int // columns of one stage in shared memory; RowProductMapping: all, a multiple of 4
	PartM int // SplitKMapping, RowProductMapping: rows of M of one thread or warp
	PartN int // rows of N of one thread or warp
	Turns int // WarpgroupMapping: 2 if two warpgroups take tiles in turns: one stores while the other multiplies
	// SplitK, of WarpgroupMapping, is the number of parts of the columns, one for each block of
	// a cluster (Cluster is then the same number); 0 or 1 for none.
	SplitK int
	Blocks int // WarpgroupMapping, and PieceMapping where blocks share rows: blocks of the grid at most
	// Stages is the number of tiles in shared memory, of which one is multiplied while the
	// others are being copied; of RowMapping, the most rows that are prefetched; of
	// FlatMapping, the groups of Unroll columns of a scan that are being copied for a thread.
	Stages int
	// RegisterChunks, of RowMapping with Stages and Unroll, is the number of chunks of a row that stay
	// in registers; a chunk is Unroll vectors of each thread. Stages is then the number of a warp's
	// chunks in shared memory.
	RegisterChunks int
	// Run, of SplitKMapping, is the number of columns after which sums are added to totals in
	// shared memory, a multiple of TileK; 0 for no totals.
	Run int
	// Shared, of RowMapping with Stages, is the bytes of shared memory for prefetched rows; as
	// many rows are prefetched as fit.
	Shared int
	// Dynamic, of RowMapping with Stages, makes blocks, or clusters, get all rows but their first two
	// from a counter in memory; otherwise the rows of each are fixed.
	Dynamic bool
	Index64 bool // offsets need 64 bits
}

// mmaFragment is the queries, and the keys, that a warp multiplies at a time through mma.sync.
const mmaFragment = 16

// AttendWarps is, with AttendMapping and ChainMapping, the number of warps along the queries of a tile, a fragment each,
// and of those that have the same queries and share the keys.
func (s Schedule) AttendWarps() (queries, keys int) {
	queries = max(1, s.TileM/mmaFragment)
	return queries, max(1, s.Threads/32/queries)
}
