package ir

import "slices"

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

	// Segments, of WarpgroupMapping, is the parts of the columns whose operands lie in tensors of their own, one after the other. nil
	// for one part, whose operands are A and B.
	Segments []Segment

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

// A Segment is a part of the columns of a product, with operands of its own: reads, over columns that begin at 0. All segments of a
// product have their operands in the same order.
type Segment struct {
	Depth *Expr // number of columns
	A     Operand
	B     []Operand // of each fold
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
	Band   *Band  // a tile is copied as it lies in memory; nil where it is laid out anew
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

// A Band says how a tile of an operand lies in memory: its lines follow each other, along the sum or along the rows, and
// are no whole number of accesses long. The tile is one run of memory from its first element on, and is copied in whole
// accesses. Pitch is the elements from one line to the next, and Skip those between the first access and the first element.
type Band struct{ Pitch, Skip int }

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

// Triangle is the number of tiles on and above the diagonal of n times n.
func Triangle(n *Expr) *Expr {
	return Apply(OpFloorDiv, Apply(OpMul, n, Apply(OpAdd, n, IntConst(1))), IntConst(2))
}
