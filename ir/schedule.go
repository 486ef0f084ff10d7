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

// Multiplier is the unit that multiplies in a contraction.
type Multiplier uint8

// The multipliers.
const (
	FMAUnit     Multiplier = iota // each thread, in the type of the sum
	HalfUnit                      // tensor cores on 16-bit floats, sums in f32
	TF32Unit                      // tensor cores on f32 rounded to tf32, sums in f32
	DoubleUnit                    // tensor cores on f64
	IntegerUnit                   // each thread, in the type of the product; sums in theirs
)

// String returns the multiplier's name.
func (u Multiplier) String() string {
	return [...]string{"fma", "half", "tf32", "double", "integer"}[u]
}

// TensorCores reports whether warps multiply together, not each thread by itself.
func (u Multiplier) TensorCores() bool { return u == HalfUnit || u == TF32Unit || u == DoubleUnit }

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

// Lanes returns the rows behind To.
func (s *Scatter) Lanes(rows []*Range) []*Range { return rows[len(s.Batch)+1:] }

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

// Contract is how a kernel whose folds sum products maps to matrix products: for each point of
// Batch, A[M, K] times B[K, N], where K is the columns. Several folds share A; each has its own
// B, all with the same shape and order. SplitKMapping, GemvMapping and RowProductMapping have
// one fold.
type Contract struct {
	Batch, M, N []*Range // the rows of the kernel, divided
	A           Operand
	B           []Operand // of each fold
	// Type is what the tiles hold: bf16, f16, f32 for tf32 or 8-bit floats, whose sums are
	// f32, i8 with sums in i32, or what the unit multiplies.
	Type DType
	Unit Multiplier // of SplitKMapping, GemvMapping and RowProductMapping
	FewN bool       // of GemvMapping: the few rows are those of N
	// Slices, of SplitKMapping without Cluster, is the number of parts that the columns of a
	// tile are cut into, over sizes: a block for each leaves its sums in memory, and the blocks
	// that come last add them in the order of the slices. nil where a block has all columns.
	Slices *Expr

	// Symmetric, of SplitKMapping with square tiles and without Cluster, says that both sides are the same tensor read in the same
	// way, so that sums at (m, n) and (n, m) are equal. There are blocks for the tiles on and above the diagonal alone, which store
	// what follows the sums at both places.
	Symmetric bool

	// Taps, of windows of SplitKMapping and WarpgroupMapping, is the number of points of each column range but the
	// innermost, over the batch; the other points are absent. nil if none are. With NoTaps, all may be.
	Taps   []*Expr
	NoTaps bool

	// Phases, of windows of WarpgroupMapping, is the number of points of the last ranges of the batch whose results lie
	// between each other, as those of a transposed convolution's phases do: their tiles follow each other, so that memory
	// gets whole sectors. 0 for one.
	Phases int

	// Between, of windows of WarpgroupMapping, is a range of two points, none of the batch, whose results lie between each
	// other along the innermost range of N. A block sums the two one after the other for the same tile, and stores them
	// together: row-level locals and stores have Lane, which counts both ranges in the order of memory, in place of these.
	// nil for none.
	Between, Lane *Range

	// If a tile's sums are folded instead of stored, K is Depth, and N ends with the columns,
	// over which the folds run. Product, a full-level local that sums over Depth, is the
	// element that is folded. A tile holds whole rows of columns.
	Depth   []*Range
	Product *Local
	Width   *Expr // number of points of N that exist, if that is less than its ranges have
}

// SumsEach is how many sums a tile has for each of its rows and columns.
func (c *Contract) SumsEach() int {
	if c.Between == nil {
		return 1
	}
	return int(c.Between.Extent.Int)
}

// Stored is N as stores count it.
func (c *Contract) Stored() []*Range {
	if c.Between == nil {
		return c.N
	}
	return append(slices.Clone(c.N[:len(c.N)-1]), c.Lane)
}

// InParts reports whether the operands hold parts of numbers of f32, so that the sums of their products keep the
// precision of f32.
func (c *Contract) InParts() bool {
	parts := false
	Walk(c.A.Value, func(e *Expr) bool {
		parts = parts || e.Op == OpRead && e.Arg.Buffer.Value.Parts
		return !parts
	})
	return parts
}

// Few is the operand with few rows, of GemvMapping.
func (c *Contract) Few() *Operand {
	if c.FewN {
		return &c.B[0]
	}
	return &c.A
}

// Many is the other operand of GemvMapping.
func (c *Contract) Many() *Operand {
	if c.FewN {
		return &c.A
	}
	return &c.B[0]
}

// Operand is one side of a contraction.
type Operand struct {
	Value *Expr // over locals at full level; rounded to the tile's type where it is computed
	KLast bool  // neighbours in memory are neighbours along K; else along the operand's rows
	// Wide, of ContractMapping and SplitKMapping: Value is one read, and neighbours that fill
	// 16 bytes are one aligned access.
	Wide bool

	// WarpgroupMapping: Value is a read, and View shows it with dims K and the
	// operand's rows, the contiguous one first, then ViewBatch.
	View        *TMAView
	ViewBatch   []*Range     // the batch ranges it depends on
	WindowTiles *WindowTiles // in place of View and ViewBatch, of both operands of a windowed contraction

	// SplitKMapping, GemvMapping and RowProductMapping.
	Async  bool   // Value is one read, each element of which is copied by itself
	Pieces *Piece // how neighbours are computed together; nil where each is by itself
	// Window, of SplitKMapping and of operands that are Wide or Async, splits the place of a
	// read into a part of the row and a part of the column; nil if the place of each element is
	// computed by itself.
	Window *Window
	// Scale, of GemvMapping, is the factors of the operand that are the same for the
	// 4*Pieces.Length neighbours along K that the four threads of a row multiply at a time.
	// They are not part of Value, and multiply the sums of those neighbours. nil for none.
	Scale *Piece
	// Early, of RowProductMapping: Value reads only inputs of the graph, which are complete
	// before its first kernel, so copies may start before earlier kernels have ended.
	Early bool
}

// Piece is an operand's value over Length neighbours in memory: reads that serve
// several of them (packed integers, a scale for a group) are one access each.
type Piece struct {
	Length      int
	Inner       *Range   // the range of the neighbours, as Outer*Length + Lane
	Outer, Lane *Range   // Lane from 0 to Length-1
	Reads       []Packed // what is read for all of a piece
	Locals      []*Local // over Outer and Lane, in dependence order
	Value       *Expr    // over Outer, Lane, Locals and the locals of Reads
	Fields      *Fields  // the elements as bit fields of the largest read; nil if they are not
}

// Fields says that the elements of a piece are small numbers in bit fields of its one read of
// several elements: element Order[s] is Step*(f^Flip) + Base + Offset, where f is the field of
// slot s. In the 16-bit type of the product's tiles, a field is put into the last bits of a
// power of two. So two numbers are made of a pair of fields by a shift, a mask and a
// multiply-add, which also subtracts the power of two. Twice says that a separate addition
// subtracts it. Only the result is rounded, and only if Offset is not a whole number.
//
// A word of 32 bits has two slots, 16 bits apart, for each pair. Pairs are counted from the
// lower end of the first word, and slots in the order of pairs.
type Fields struct {
	Read       int   // of Piece.Reads
	Bits       int   // of a slot: 2, 4, 8 or 16
	First      int   // bit of a slot at which its field starts
	Width      int   // bits of a field
	Flip       int64 // of the bits of a field
	Step, Base float64
	Offset     *Expr // over Outer and the locals of Reads; nil for none
	Twice      bool  // two steps: the power of two is subtracted first
	Order      []int // the lane of each slot
}

// Wide reports whether fields have one bit more than the fraction of t. The highest bit then
// goes into the last bit of the exponent of the power of two, which is chosen so that one step
// is still enough.
func (f *Fields) Wide(t DType) bool { return t == BF16 && f.Width == t.Info().Mantissa+1 }

// Added is the constant that the last step adds, beside Offset, to Step times the number made
// of a field.
func (f *Fields) Added(t DType) float64 {
	switch {
	case f.Wide(t):
		return f.Base + f.Step*FieldBias(t)
	case f.Twice:
		return f.Base
	}
	return f.Base - f.Step*FieldBias(t)
}

// FieldBias is the power of two, in bf16 or f16, whose last fraction bit is worth 1. Putting a
// field into its last bits adds the field's value to it.
func FieldBias(t DType) float64 { return float64(int64(1) << t.Info().Mantissa) }

// Packed is a read that serves a piece: Width elements from Base on.
type Packed struct {
	Local *Local // the element that belongs to Lane, in storage type
	Arg   *Arg
	Base  *Expr // flat offset, the same for all of the piece
	Width int   // a power of two; Base is a multiple of the elements of one access
	At    *Expr // over Lane: which of the Width elements Local is
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

// Triangle is the number of tiles on and above the diagonal of n times n.
func Triangle(n *Expr) *Expr {
	return Apply(OpFloorDiv, Apply(OpMul, n, Apply(OpAdd, n, IntConst(1))), IntConst(2))
}
