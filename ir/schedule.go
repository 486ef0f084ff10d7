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
	// AttendWarpgroupMapping is AttendMapping through the tensor copy engine and wgmma:
	// one warpgroup brings tiles, each of the others has 64 of the queries.
	AttendWarpgroupMapping
	// WarpgroupMapping is ContractMapping through the tensor copy engine and wgmma: one
	// warpgroup, or with SplitK one warp, brings tiles of the operands' TensorMaps to shared
	// memory, the others multiply them and do what follows. Blocks stay and take one tile
	// after another; with SplitK each has one.
	WarpgroupMapping
	// SplitKMapping computes tiles of TileM x TileN rows of a product by Contract.Unit,
	// each warp (on tensor cores) or thread PartM x PartN of them. The columns of a
	// tile are cut into Cluster parts, one for each block of a cluster, whose sums
	// are added in the order of the slices; or into Contract.Slices parts, whose sums pass
	// through memory.
	SplitKMapping
	// GemvMapping is for products of few rows of M, at most TileM, or of N: each
	// warp computes all of them by TileN rows of the other side on tensor cores, whose
	// fragments it reads from memory as they are. The warps of a block share the
	// columns, and add their sums in order.
	GemvMapping
	// RowProductMapping computes tiles of TileM x TileN rows of a product whose left
	// operand may wait for folds over the same columns: those of the sections before
	// that of the product, over rows of M. A block folds the rows of its tile, a warp
	// each, and holds the operand's values and those of the right operand in shared
	// memory, all TileK columns. Each thread multiplies PartM x PartN of the tile by
	// its group's share of the columns; the groups' sums are added in order.
	RowProductMapping
	// SortMapping gives each row to a block that holds it, Items columns a thread, and
	// sorts it.
	SortMapping
	// SelectMapping finds the first places of a row that a block holds without sorting
	// the rest. The number of places is a constant.
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
	// ScatterBinsMapping is ScatterMapping for many columns and tiles of places: the blocks
	// share the keys, and put each column in the bin of the tile that it goes to; then each
	// block takes its own. Where a bin is full the block reads all keys.
	ScatterBinsMapping
	// HistogramMapping is a scatter whose places have few rows each: a block holds the
	// running values of TileM rows in shared memory, reads all keys, and folds each column
	// into them as it comes.
	HistogramMapping
	// ChainMapping is AttendMapping without a running maximum: the weights are any function
	// of one or more products, such as the scores of a softmax whose statistics are known.
	ChainMapping
	// ChainWarpgroupMapping is ChainMapping as AttendWarpgroupMapping is AttendMapping.
	ChainWarpgroupMapping
	// FlattenedMapping is FlatMapping for pointwise kernels whose large tensors lie in the order of
	// the rows: each thread has Vector consecutive points of all rows together, which may begin in
	// one row of memory and end in a later one.
	FlattenedMapping
)

// Multiplier is what multiplies in a contraction.
type Multiplier uint8

// The multipliers.
const (
	FMAUnit  Multiplier = iota // each thread, in the type of the sum
	HalfUnit                   // tensor cores on 16-bit floats, sums in f32
	TF32Unit                   // tensor cores on f32 rounded to tf32, sums in f32
)

// String returns the multiplier's name.
func (u Multiplier) String() string { return [...]string{"fma", "half", "tf32"}[u] }

// Sort is the work of a kernel that puts the columns of each row in order. Equal
// keys stand in order of index, NaN above every number.
type Sort struct {
	Key        *Expr // over Rows and Cols, in the type that Type is computed in
	Type       DType // what keys are rounded to before they are compared
	Descending bool
	Places     *Range   // of the results; past the last column they are those of no elements
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
	Key   *Expr // an integer over Batch and the columns; one that is not in To is no row's
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

// Contract is how a kernel whose folds sum products maps to matrix products: for
// each point of Batch, A[M, K] times B[K, N] with K the columns. Several folds share
// A; each has a B of its own, all alike in shape and order. SplitKMapping, GemvMapping
// and RowProductMapping have one fold.
type Contract struct {
	Batch, M, N []*Range // the rows, split
	A           Operand
	B           []Operand // of each fold
	// Type is what the tiles hold: bf16, f16, f32 for tf32 or 8-bit floats, whose sums are
	// f32, i8 with sums in i32, or what FMAUnit multiplies.
	Type DType
	Unit Multiplier // of SplitKMapping, GemvMapping and RowProductMapping
	FewN bool       // of GemvMapping: the few rows are those of N
	// Slices, of SplitKMapping without Cluster, is the number of parts that the columns of a
	// tile are cut into, over sizes: a block for each leaves its sums in memory, and the blocks
	// that come last add them in the order of the slices. nil where a block has all columns.
	Slices *Expr

	// Taps, of windows of SplitKMapping and WarpgroupMapping, is how many of each of the columns but the innermost
	// there are, over the batch: the rest are absent there. nil where none is.
	Taps []*Expr

	// Where a tile's sums are folded instead of stored, K is Depth, and N ends with
	// the columns, over which the folds are: Product, a full-level local that sums
	// over Depth, is the element that they see. A tile holds whole rows of columns.
	Depth   []*Range
	Product *Local
	Width   *Expr // points of N that exist, where they are fewer than its ranges have
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
	// Window, of SplitKMapping and of operands that are Wide or Async, divides the place that is
	// read among rows and columns; nil where each element's is computed by itself.
	Window *Window
	// GemvMapping: factors of the operand that are the same for the neighbours along K that
	// the four threads of a row multiply at a time, 4*Pieces.Length of them. They are no part
	// of Value, and multiply the sums of those neighbours. nil for none.
	Scale *Piece
	// RowProductMapping: all that Value reads are inputs of the graph, complete before
	// its first kernel, so that copies may start before the kernels ahead have ended.
	Early bool
}

// Piece is an operand's value over Length neighbours in memory: reads that serve
// several of them (packed integers, a scale for a group) are one access each.
type Piece struct {
	Length      int
	Inner       *Range   // the range that neighbours walk: Outer*Length + Lane
	Outer, Lane *Range   // Lane from 0 to Length-1
	Reads       []Packed // what is read for all of a piece
	Locals      []*Local // over Outer and Lane, in dependence order
	Value       *Expr    // over Outer, Lane, Locals and the locals of Reads
	Fields      *Fields  // how the elements lie in the largest read; nil where they are not such
}

// Fields says that the elements of a piece are small numbers in bit fields of its one
// read of several elements: that element Order[s] is Step*(f^Flip) + Base + Offset, where
// f is the field of slot s. In the 16-bit type of the product's tiles a power of two takes in
// a field as its last bits, which makes the number of a pair of fields by a shift, a mask and
// a multiply-add; Twice says that the power of two is taken off by an addition of
// its own. Nothing is rounded but the result, and that only where Offset is no whole number.
//
// A word of 32 bits has two slots, 16 bits apart, for each pair; pairs run from the lower
// end of the first word on, slots in the order of pairs.
type Fields struct {
	Read       int   // of Piece.Reads
	Bits       int   // of a slot: 2, 4, 8 or 16
	First      int   // bit of a slot at which its field starts
	Width      int   // bits of a field
	Flip       int64 // of the bits of a field
	Step, Base float64
	Offset     *Expr // over Outer and the locals of Reads; nil for none
	Twice      bool  // two steps: the power of two is taken off before the rest
	Order      []int // the lane of each slot
}

// Wide reports whether fields have one bit more than t has of fraction. That bit then goes
// into the last of the exponent of another power of two, and the difference of the two is
// the field's value less half of how many it has: one step.
func (f *Fields) Wide(t DType) bool { return t == BF16 && f.Width == t.Info().Mantissa+1 }

// Added is what the last step adds to Step times what was made of a field, beside Offset.
func (f *Fields) Added(t DType) float64 {
	switch {
	case f.Wide(t):
		return f.Base + f.Step*FieldBias(t)
	case f.Twice:
		return f.Base
	}
	return f.Base - f.Step*FieldBias(t)
}

// FieldBias is the power of two that a field of bits is added to in t, bf16 or f16, where
// the last bit of its fraction is worth 1: the bits of the sum are those of the power, and the
// field's.
func FieldBias(t DType) float64 { return float64(int64(1) << t.Info().Mantissa) }

// Packed is a read that serves a piece: Width elements from Base on.
type Packed struct {
	Local *Local // the element that belongs to Lane, in storage type
	Arg   *Arg
	Base  *Expr // flat offset, the same for all of the piece
	Width int   // a power of two; Base is a multiple of what one access takes of it
	At    *Expr // over Lane: which of the Width elements Local is
}

// Attend is how a kernel that sums values under the weights exp(Scale*(logit - m)),
// m the largest logit of a row, maps to two products with a stream of keys
// between: queries[M, Depth] times keys[Depth, columns] are the scores of a tile,
// and their weights times values[columns, N] are added to the sums, which are
// rescaled where m grows (Milakov and Gimelshein, "Online normalizer calculation
// for softmax", 2018; Dao et al., "FlashAttention", 2022). The variant's sections
// say the same without tiles: a pass with the folds Max, Sums and Acc, and stores.
//
// With ChainMapping and ChainWarpgroupMapping the weights are Weight, a function of the scores of one or more
// products, and there is no maximum: the kernel is a chain of products with a pointwise
// function between, of which no element goes through memory.
type Attend struct {
	Batch, M, N []*Range // the rows: of queries and values, of queries alone, of values alone
	Depth       []*Range // summed in a score; neither rows nor columns
	Q, K, V     Operand
	Type        DType          // bf16, f16 or f32: what the operands are; sums are f32
	Parts       int            // of f32: how many bf16 the tiles hold for an element, whose sum it is, to 8 bits each; else 0
	Width       int            // columns of a tile of values: those of N, and padding
	Score       *Local         // full level; its Def is an OpReduce over Depth
	Others      []ScoreProduct // of chains: what else the weights are made of
	ValueIn     int            // of chains: 1 + the product whose keys are the values too, 0 for none
	Max         *Fold          // its body is the logit; nil in chains
	Sums        []*Fold
	Acc         *Fold // depends on N
	Scale       float64
	Also        *ChainSum // of chains: another sum over the same columns; nil for none
	Weight      *Expr     // of a term of Acc beside the exponential, free of N; nil for 1. In chains all of the weight
	Skip        TileMask
	// Brought are locals that belong to a key alone, of ChainWarpgroupMapping: they come with its tile through shared
	// memory, so that no thread that multiplies waits for memory.
	Brought []*Local
	// Outer are columns of a ChainWarpgroupMapping for each of which all tiles of the others come, as those of the heads
	// that share a key do: a tile is of one range.
	Outer []*Range
	// Held is how many slabs of 64 columns of the queries of a ChainWarpgroupMapping, of its products in order, are left
	// operands in registers: the rest is read from shared memory for every tile of keys.
	Held int
	// OfQuery are locals that belong to a query alone, of chains: a thread reads those of its queries once, before the keys.
	OfQuery []*Local

	QTile, KTile, VTile *TMATile // of AttendWarpgroupMapping and ChainWarpgroupMapping; VTile is nil with ValueIn
}

// ChainSum is a second sum of a chain: over the same columns, of as many values, which are the keys of one of its
// products, under another weight.
type ChainSum struct {
	Acc           *Fold
	Value         *Expr
	ValueIn       int   // 1 + the product whose keys are the values
	Weight, Clear *Expr // as the chain's own, and where TileMask.All is true
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

// Keys are the columns of a kernel that lie in its tiles of keys.
func (a *Attend) Keys(k *Kernel) []*Range {
	return slices.DeleteFunc(slices.Clone(k.Cols), func(r *Range) bool { return slices.Contains(a.Outer, r) })
}

// InPlace reports whether the scores of a chain through wgmma become weights in place: beside two sums of wide values
// registers do not hold the next scores and weights.
func (a *Attend) InPlace() bool { return a.Also != nil && a.Width > 64 }

// Numbers are the locals that the weights of a chain are given beside scores.
func (a *Attend) Numbers() []*Local { return append(slices.Clone(a.Brought), a.OfQuery...) }

// TMATile is how tiles of an operand come through the tensor copy engine: View has its
// columns and its rows as dims 0 and 1, and At is where the others stand, over Batch.
type TMATile struct {
	View *TMAView
	At   []*Expr
}

// TileMask says, for a tile of queries and one of keys, what a mask leaves of it.
// Its conditions are over Batch ranges and the symbols Query and Key, which stand
// for the first query (a position in M) and the first key of the tile.
type TileMask struct {
	Query, Key string
	Any        *Expr // false: the whole tile is masked; nil where that cannot be told
	All        *Expr // true: nothing is masked, and Clear is the logit; nil likewise
	Clear      *Expr // over locals, as the body of Max
	FirstMost  bool  // the first queries see the most keys, so their tiles start first; else the last ones do
	// With Table the conditions read memory at other places for each tile: a block
	// evaluates them ahead, once. Kept, over locals, then is what All decides of a point:
	// where it is false the logit is -inf, else Clear. Where Settled is true, Placed, which
	// reads no memory, is as good; nil where there is no such part.
	Table                 bool
	Kept, Settled, Placed *Expr
}

// String returns the mapping's name.
func (m Mapping) String() string {
	return [...]string{
		"flat", "row", "contract", "tile", "attend", "attend warpgroup", "warpgroup", "split-k", "gemv", "row product",
		"sort", "select", "select pieces", "merge",
		"scatter", "scatter once", "scatter bins", "histogram", "chain", "chain warpgroup", "flattened",
	}[m]
}

// LooksBack reports whether blocks post their totals for others, in chains or by slabs.
func (s Schedule) LooksBack() bool { return s.Chain > 0 || s.LookBack > 0 }

// Schedule is how a kernel runs: numbers only, comparable, printed in plans.
type Schedule struct {
	Mapping    Mapping
	Threads    int // a block
	RowThreads int // RowMapping, RowProductMapping: threads of a block on one row; divides Threads
	// Cluster is the blocks of a cluster: of RowMapping and SplitKMapping those that share a row
	// or tile, of WarpgroupMapping those that share tiles of B; 0 or 1 for one.
	Cluster    int
	ColThreads int // FlatMapping with columns: threads that share the columns; divides Threads
	// Chain, of FlatMapping with ColThreads, has a block read one part of the columns, Unroll for
	// each of these threads, and add its totals to those that the block ahead of it in its chain
	// has posted. The next one of the chain is about so many blocks behind it; 0 for none. With
	// LookBack, parts are in turns over slabs of the rows, of all ranges but the innermost, and
	// results of a slab are folded by blocks that many behind it: there is no chain then.
	Chain, LookBack int
	Vector          int // elements of one access along the innermost range
	Items           int // RowMapping and RowProductMapping with Keep: vectors each thread holds of a row; keys of a scatter
	MinBlocks       int // blocks that registers should let a multiprocessor hold; 0 leaves it to the compiler
	Unroll          int // vectors, pieces or columns in flight in a pass of a looped reduction; vectors of a chunk, or a scatter's place
	// TileM is, in mappings of products, rows of M of one tile; in TileMapping points of Across;
	// in FlatMapping a thread's neighbours of Stencil.Down;
	// in mappings of scatters places of a block, in HistogramMapping rows.
	TileM int
	TileN int // and of N; points of the innermost range
	TileK int // columns of one stage in shared memory; RowProductMapping: all, a multiple of 4
	PartM int // SplitKMapping, RowProductMapping: rows of M of one thread or warp
	PartN int // and of N
	Turns int // WarpgroupMapping: 2 where two warpgroups take tiles in turns: one stores, the other multiplies
	// SplitK, of WarpgroupMapping, is the parts of the columns, one for each block of a cluster
	// (then Cluster is the same); 0 or 1 for none.
	SplitK int
	Blocks int // WarpgroupMapping, and PieceMapping where blocks share rows: blocks of the grid at most
	// Stages is the tiles in shared memory, of which one is multiplied while the others are on
	// their way; of RowMapping the rows ahead at most; of FlatMapping the groups of Unroll
	// columns of a scan that are on their way to a thread.
	Stages int
	// RegisterChunks, of RowMapping with Stages and Unroll, is the chunks of a row, of Unroll vectors of
	// each thread, that stay in registers; Stages are the chunks of a warp in shared memory.
	RegisterChunks int
	// Run, of SplitKMapping, is the columns after which sums are added to totals in shared
	// memory, a multiple of TileK; 0 for none.
	Run int
	// Shared, of RowMapping with Stages, is the bytes of shared memory for the rows ahead, of
	// which there are as many as it holds.
	Shared int
	// Dynamic, of RowMapping with Stages, has blocks, or clusters, ask a counter in memory for their rows
	// but the first two; else each has rows of its own.
	Dynamic bool
	Index64 bool // offsets need 64 bits
}
