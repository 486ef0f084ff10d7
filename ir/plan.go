package ir

import (
	"slices"

	"github.com/fusec/fusec/ir/diag"
)

// Plan is a graph cut into kernels: every decision is in it. It reads as a
// sequence of kernels over buffers.
type Plan struct {
	Graph   *Graph
	Buffers []*Buffer // inputs, then outputs, then temporaries
	Kernels []*Kernel // in launch order; see Launched
	Refused []Refusal // merges that were considered and not taken
}

// BufferKind says who owns a buffer.
type BufferKind uint8

// The kinds of buffer.
const (
	InputBuffer BufferKind = iota
	OutputBuffer
	TempBuffer
)

// Buffer is a tensor in device memory, contiguous and row-major.
type Buffer struct {
	Index int
	Name  string
	Type  DType
	Shape []*Expr // over symbols
	Kind  BufferKind
	Slot  int // temporaries with one slot share memory; their lives do not overlap
	Value *Value
}

// Template is the shape of a kernel.
type Template uint8

// The templates; see design section 4.
const (
	LoopTemplate Template = iota
	ContractTemplate
	AttendTemplate
	ScanTemplate
	SortTemplate
)

// String returns the template's name.
func (t Template) String() string {
	return [...]string{"loop", "contract", "attend", "scan", "sort"}[t]
}

// Level is how often a kernel-local value is computed.
type Level uint8

// The levels of the loop template, fewest evaluations first.
const (
	RowLevel  Level = iota // once a point of Rows
	FullLevel              // once a point of Rows and Cols
)

// Arg is a buffer as one kernel sees it. A buffer that a kernel both reads and
// writes would be two Args; the planner makes none such.
type Arg struct {
	Index  int // position in the kernel's parameter list
	Name   string
	Type   DType
	Buffer *Buffer
	Write  bool
}

// Local is a value that lives inside a kernel. Its definition holds OpLocal,
// OpRead, OpRange, OpSym, OpConst and computing operations: no OpLoad.
type Local struct {
	ID    int
	Name  string
	Type  DType
	Level Level
	Def   *Expr  // nil where a Fold computes it
	Value *Value // where it comes from; nil for helpers
	Span  diag.Span
	// Wide marks a read, a cast of one, or random bits, whose offset runs with the
	// innermost range from a multiple of Schedule.Vector: one access, or one block
	// of bits, serves all lanes.
	Wide bool
}

// Prefix says which columns a fold takes at each column of a row.
type Prefix uint8

// The kinds of prefix.
const (
	WholeRow  Prefix = iota // all of them: one result a row
	Inclusive               // those up to the column: a scan
	Exclusive               // those before the column
)

// String returns the name that plans print.
func (p Prefix) String() string { return [...]string{"fold", "scan", "exclusive scan"}[p] }

// Fold is a reduction over Cols of one row.
//
// With Prefix it is a scan: Result, at full level, holds at each column the fold
// of the columns up to it in the order in which its section sweeps. A scan is
// listed in every section that reads it, which folds it again.
//
// With After it is streamed beside another fold of its section that its body
// depends on: a running maximum. Body reads After.Running, the maximum of what
// has been seen so far, this point included. Whenever that goes from one value
// to a larger one, this fold's running sum is first multiplied by Rescale, an
// expression over Old (the value before) and After.Running (the value now).
// While the running maximum is -inf, terms and sums count as zero; when it is
// still -inf at the end of a row with at least one term, the result is NaN, as
// exp(-inf - -inf) is in two passes. Two partial states merge the same way:
// both are rescaled to the larger maximum, then added.
type Fold struct {
	Result  *Local // the finished value, at row level, in the accumulator's type
	Op      Monoid
	Prefix  Prefix
	Where   *Expr  // bool at full level, or nil
	Body    *Expr  // at full level, in the accumulator's type; for ArgMax and ArgMin the compared value
	Index   *Expr  // ArgMax and ArgMin: the index that is folded with Body, of type Index
	Running *Local // full level, no Def: the value so far; nil where no fold streams beside this one
	After   *Fold
	Old     *Local // full level, no Def
	Rescale *Expr
}

// Store writes Value to Arg at a flat element offset where Guard holds.
type Store struct {
	Arg    *Arg
	Offset *Expr
	Guard  *Expr // nil: always
	Value  *Expr // of the type Arg's is computed in; the store rounds
	Wide   bool  // as for Local
	Span   diag.Span
}

// Partial is a fold over Kernel.Walk: a result for each column and for each point
// of the rows before the walk. It is kept by the threads that walk, and stored to
// Arg at Offset when the walk ends.
type Partial struct {
	Op     Monoid
	Body   *Expr // at full level, in the accumulator's type
	Arg    *Arg  // of the accumulator's type
	Offset *Expr // over the rows before the walk, and Cols
	Wide   bool  // as for Local
	Span   diag.Span
}

// Section is one step of a kernel. A FullLevel section sweeps Cols for each row,
// folding and storing; a RowLevel one runs once a row.
type Section struct {
	Level    Level
	Reverse  bool // from the last column to the first, as its scans run
	Folds    []*Fold
	Stores   []*Store
	Partials []*Partial // of a FullLevel section in a kernel that walks
}

// Scans returns the section's folds that are scans, in dependence order.
func (s *Section) Scans() []*Fold {
	var out []*Fold
	for _, f := range s.Folds {
		if f.Prefix != WholeRow {
			out = append(out, f)
		}
	}
	return out
}

// Whole returns the section without its scans.
func (s *Section) Whole() *Section {
	out := *s
	out.Folds = nil
	for _, f := range s.Folds {
		if f.Prefix == WholeRow {
			out.Folds = append(out.Folds, f)
		}
	}
	return &out
}

// Variant is a kernel's body for one class of sizes.
type Variant struct {
	When     *Expr    // bool over symbols; nil for the last, which takes everything
	Facts    Facts    // what When promises about the symbols
	Locals   []*Local // with a Def, in dependence order
	Sections []*Section
	// Keep holds full-level locals that stay on chip from the first section
	// that needs them; every other full-level local is computed again in each
	// section that reads it.
	Keep     []*Local
	Contract *Contract // of the mappings of products
	Sort     *Sort     // of the sort template, which has no sections
	Views    []*View   // of arguments, for the tensor copy engine; parameters behind the arguments
	Attend   *Attend   // of AttendMapping
	Across   *Range    // of TileMapping: the row range along which Staged reads are contiguous
	// Staged reads pass through shared memory. Of TileMapping; Wide where vectors along
	// Across are aligned. Of RowMapping with Stages: whole rows, contiguous and aligned.
	Staged   []*Local
	Schedule Schedule
	// Finish is the body of Kernel.Finish in blocks of this variant: it has their
	// threads, and works on their rows. Nil where the kernel has no Finish.
	Finish *Variant
}

// Kernel is one launch: a region of the graph that one template accepts. Its
// iteration space is Rows x Cols.
type Kernel struct {
	Name string
	// Like is the earlier kernel that this one repeats over other buffers, as one layer
	// repeats another; nil where there is none. The two share all but Name, Args and
	// Members: what the body says about an Arg of Like holds for the one of the same Index
	// here. One compiled kernel serves both.
	Like     *Kernel
	Template Template
	Rows     []*Range // outermost first
	// Walk is the last of Rows where some of the kernel's results are folds over
	// them (Partial): those rows are worked on one after the other, by the same
	// threads. Rows for which Inside does not hold are left out; nil leaves out none.
	Walk     []*Range
	Inside   *Expr
	Cols     []*Range // empty for a pointwise kernel
	Args     []*Arg
	Members  []*Value // the values computed inside
	Variants []*Variant
	Numerics Numerics
	Finish   *Finish // nil where no other kernel is run by this one's blocks
	// Mantissa is the fraction bits of the most precise float the kernel stores:
	// under fast, instructions good to that many bits will do.
	Mantissa int
}

// Finish says that the last blocks of a kernel run another one, which folds its
// results: a fold over many blocks in one launch. Blocks that share rows but for
// Parts are a group. Each counts itself when its results are written, and the one
// that finds itself the last of its group runs Kernel for the group's rows: which
// block that is does not matter, since the order of the fold is Kernel's ("threadFence
// reduction", CUDA C++ Programming Guide, memory fence functions). Run one after the
// other, the two kernels do the same.
type Finish struct {
	Kernel *Kernel  // the next of the plan; it has no launch of its own
	Parts  []*Range // of the rows of the kernel that is finished: Kernel's columns
}

// Rest returns the rows of a kernel that its finish has too.
func (f *Finish) Rest(rows []*Range) []*Range {
	var out []*Range
	for _, r := range rows {
		if !slices.Contains(f.Parts, r) {
			out = append(out, r)
		}
	}
	return out
}

// Launched returns the kernels that have a launch of their own, in order.
func (p *Plan) Launched() []*Kernel {
	var out []*Kernel
	run := map[*Kernel]bool{}
	for _, k := range p.Kernels {
		if k.Finish != nil {
			run[k.Finish.Kernel] = true
		}
		if !run[k] {
			out = append(out, k)
		}
	}
	return out
}

// Mapping says how a loop kernel's space is spread over threads.
type Mapping uint8

// The mappings.
const (
	// FlatMapping gives each thread Vector neighbouring points of the innermost
	// row range. Columns, if any, are dealt out to ColThreads threads, Unroll of
	// them at a time; with ColThreads 0 they are loops in the thread, unrolled
	// where Unroll is set.
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
	// warpgroup brings tiles of the operands' Views to shared memory, the others
	// multiply them and do what follows. Blocks stay and take one tile after another.
	WarpgroupMapping
	// SliceMapping computes tiles of TileM x TileN rows of a product by Contract.Unit,
	// each warp (on tensor cores) or thread PartM x PartN of them. The columns of a
	// tile are cut into Cluster slices, one for each block of a cluster, whose sums
	// are added in the order of the slices.
	SliceMapping
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
	// SelectMapping finds the first places of a row that a block holds, no more than
	// it has threads, without sorting the rest.
	SelectMapping
	// WindowMapping sorts rows of any length, Threads*Items places at a time, and reads
	// them again for each.
	WindowMapping
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

// Indexed reports whether a store needs to know where the keys were.
func (s *Sort) Indexed() bool {
	found := false
	for _, st := range s.Stores {
		for _, e := range []*Expr{st.Value, st.Offset, st.Guard} {
			Walk(e, func(e *Expr) bool {
				found = found || e.Op == OpLocal && e.Local == s.Index
				return !found
			})
		}
	}
	return found
}

// Contract is how a kernel whose folds sum products maps to matrix products: for
// each point of Batch, A[M, K] times B[K, N] with K the columns. Several folds share
// A; each has a B of its own, all alike in shape and order. SliceMapping, GemvMapping
// and RowProductMapping have one fold.
type Contract struct {
	Batch, M, N []*Range // the rows, split
	A           Operand
	B           []Operand  // of each fold
	Type        DType      // what the tiles hold; bf16 or f16 for tensor cores, whose sums are f32, or f32 for tf32
	Unit        Multiplier // of SliceMapping and GemvMapping
	FewN        bool       // of GemvMapping: the few rows are those of N

	// Where a tile's sums are folded instead of stored, K is Depth, and N ends with
	// the columns, over which the folds are: Product, a full-level local that sums
	// over Depth, is the element that they see. A tile holds whole rows of columns.
	Depth   []*Range
	Product *Local
	Width   *Expr // points of N that exist, where they are fewer than its ranges have
}

// Operand is one side of a contraction.
type Operand struct {
	Value *Expr // over locals at full level; rounded to the tile's type where it is computed
	KLast bool  // neighbours in memory are neighbours along K; else along the operand's rows
	Wide  bool  // ContractMapping, SliceMapping: Value is one read, and neighbours that fill 16 bytes are one aligned access

	// WarpgroupMapping: Value is a read, and View shows it with dims K and the
	// operand's rows, the contiguous one first, then ViewBatch.
	View      *View
	ViewBatch []*Range // the batch ranges it depends on

	// SliceMapping, GemvMapping and RowProductMapping.
	Async  bool   // Value is one read, each element of which is copied by itself
	Pieces *Piece // how neighbours are computed together; nil where each is by itself
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
}

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
// say the same without tiles: a sweep with the folds Max, Sums and Acc, and stores.
type Attend struct {
	Batch, M, N []*Range // the rows: of queries and values, of queries alone, of values alone
	Depth       []*Range // summed in a score; neither rows nor columns
	Q, K, V     Operand
	Type        DType  // bf16 or f16: what the tiles hold; sums are f32
	Width       int    // columns of a tile of values: those of N, and padding
	Score       *Local // full level; its Def is an OpReduce over Depth
	Max         *Fold  // its body is the logit
	Sums        []*Fold
	Acc         *Fold // depends on N
	Scale       float64
	Weight      *Expr // of a term of Acc beside the exponential, free of N; nil for 1
	Skip        TileMask

	QBox, KBox, VBox *Box // of AttendWarpgroupMapping
}

// Box is how tiles of an operand come through the tensor copy engine: View has its
// columns and its rows as dims 0 and 1, and At is where the others stand, over Batch.
type Box struct {
	View *View
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
}

// String returns the mapping's name.
func (m Mapping) String() string {
	return [...]string{
		"flat", "row", "contract", "tile", "attend", "attend warpgroup", "warpgroup", "slice", "gemv", "row product",
		"sort", "select", "window",
	}[m]
}

// Schedule is how a kernel runs: numbers only, comparable, printed in plans.
type Schedule struct {
	Mapping    Mapping
	Threads    int  // a block
	RowThreads int  // RowMapping, RowProductMapping: threads of a block on one row; divides Threads
	Cluster    int  // RowMapping, SliceMapping: blocks of a cluster that share a row or tile; WarpgroupMapping: that share tiles of B; 0 or 1 for one
	ColThreads int  // FlatMapping with columns: threads that share the columns; divides Threads
	Vector     int  // elements of one access along the innermost range
	Items      int  // RowMapping and RowProductMapping with Keep: vectors each thread holds of a row
	MinBlocks  int  // blocks that registers should let a multiprocessor hold; 0 leaves it to the compiler
	Unroll     int  // vectors, pieces or columns in flight in a streaming sweep
	TileM      int  // mappings of products: rows of M of one tile; TileMapping: points of Across
	TileN      int  // and of N; points of the innermost range
	TileK      int  // columns of one stage in shared memory; RowProductMapping: all, a multiple of 4
	PartM      int  // SliceMapping, RowProductMapping: rows of M of one thread or warp
	PartN      int  // and of N
	Turns      int  // WarpgroupMapping: 2 where two warpgroups take tiles in turns, one storing while the other multiplies
	Slices     int  // WarpgroupMapping: of the columns, one for each block of a cluster (then Cluster is the same); 0 or 1 for none
	Blocks     int  // WarpgroupMapping: blocks of the grid at most
	Stages     int  // tiles in shared memory: one is multiplied while the others are on their way; RowMapping: rows ahead
	Index64    bool // offsets need 64 bits
}

// Refusal records a merge that was not taken.
type Refusal struct {
	Producer, Consumer string    // value names
	Span               diag.Span // of the edge, in the consumer
	Template           Template
	Reason             Reason
	Detail             string // one sentence in the user's terms
	Bytes              *Expr  // that the merge would have saved, over symbols
}

// Reason is the kind of a refusal.
type Reason uint8

// The reasons a template gives.
const (
	ReasonNone            Reason = iota
	ReasonDifferentRanges        // reductions over different ranges, one needing the other complete
	ReasonIndexMismatch          // the producer is read at other points than the kernel visits
	ReasonRecompute              // substituting the producer would repeat too much work
	ReasonCycle                  // a path through a third kernel
	ReasonResources              // registers, shared memory or parameters
	ReasonNoGain                 // the model sees no saving
)

// String returns the reason's code, as in explain --json.
func (r Reason) String() string {
	return [...]string{"none", "different-ranges", "index-mismatch", "recompute", "cycle", "resources", "no-gain"}[r]
}
