package ir

import (
	"slices"

	"github.com/fusec/fusec/ir/diag"
)

// Plan is a graph cut into kernels: every decision is in it. It reads as a
// sequence of kernels over buffers.
type Plan struct {
	Graph   *Graph
	Buffers []*Buffer // inputs, then outputs, then results of checks, then temporaries
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
	CheckBuffer // one of the two results of a graph's Check: the engine's, which reads it when a run is done
)

// Buffer is a tensor in device memory, contiguous and row-major.
type Buffer struct {
	Index int
	Name  string
	Type  DType
	Shape []*Expr // over symbols
	Kind  BufferKind
	Slot  int   // temporaries with one slot share memory; their lives do not overlap
	When  *Expr // of temporaries: that of the kernels that use it, nil for always
	Value *Value
	// Parts are the values that kernels store next to each other along an axis, and that together are Value; none
	// where one kernel stores all of it.
	Parts []*Value
	// Updates, of an output, is the input whose next value it is. With InPlace its memory may be
	// that input's; else Apart says why not.
	Updates *Buffer
	InPlace bool
	Apart   string
	// Over, of a temporary, is the temporary whose memory it may have though one kernel needs both: it reads that one for
	// the last time, each element before it is stored to. Both are of one type and size.
	Over *Buffer
}

// Elements is the number of a buffer's elements.
func (b *Buffer) Elements() *Expr {
	n := IntConst(1)
	for _, e := range b.Shape {
		n = Apply(OpMul, n, e)
	}
	return Simplify(n, Facts{})
}

// PartsIn lists the buffer's parts that a kernel computes.
func (b *Buffer) PartsIn(k *Kernel) (out []*Value) {
	for _, p := range b.Parts {
		if slices.Contains(k.Members, p) {
			out = append(out, p)
		}
	}
	return out
}

// Param is an input or output as programs list it, without its shape.
func (b *Buffer) Param() Param {
	p := Param{Name: b.Name, DType: b.Type, Output: b.Kind == OutputBuffer, InPlace: b.InPlace, Apart: b.Apart}
	if b.Updates != nil {
		p.State = b.Updates.Name
	}
	if b.Value != nil && !b.Value.Origin.Span.IsZero() {
		p.Where = b.Value.Origin.Span.String()
	}
	return p
}

// Template is the shape of a kernel.
type Template uint8

// The templates.
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
	Shared bool // its memory may be that of another Arg: see Buffer.InPlace and Buffer.Over
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
	// Wide marks a read, a cast of one, or random bits, whose offset has stride 1 along the
	// innermost range and begins at a multiple of Schedule.Vector: one access, or one block of
	// bits, serves all lanes. With FlattenedMapping the offset has stride 1 over all rows
	// together.
	Wide bool
	// EvictFirst and EvictLast are cache hints, set for wide reads of elements that are read once: the condition
	// on the sizes under which they are the first, or the last, that the L2 cache replaces.
	EvictFirst, EvictLast *Expr
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
// of the columns up to it in the order in which its section passes over them. A scan is
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

// Words is the words of 32 bits of a fold's state, at least one.
func (f *Fold) Words() int {
	n := max(1, f.Result.Type.Size()/4)
	if f.Op.IsArg() {
		n += max(1, f.Body.Type.Size()/4)
	}
	return n
}

// Store writes Value to Arg at a flat element offset where Guard holds.
type Store struct {
	Arg    *Arg
	Offset *Expr
	Guard  *Expr // nil: always
	Value  *Expr // of the type Arg's is computed in; the store rounds
	Wide   bool  // as for Local
	Staged bool  // goes through shared memory, as Variant.Staged of rows that share warps
	// Between, of WarpgroupMapping, is the number of neighbouring rows of M whose results alternate in memory. The
	// threads of these rows exchange results, so that each stores a whole vector. 0 if the results of a row are
	// neighbours.
	Between int
	Span    diag.Span
}

// Partial is a fold over Kernel.Accumulated, the rows of a chunk: a result for each column, and for each
// point of the other rows. The threads that go through the rows of a chunk keep it, and store it to Arg at
// Offset when the chunk ends.
type Partial struct {
	Op     Monoid
	Body   *Expr // at full level, in the accumulator's type
	Arg    *Arg  // of the accumulator's type
	Offset *Expr // over the rows before those of a chunk, and Cols
	Wide   bool  // as for Local
	Span   diag.Span
}

// Section is one step of a kernel. A FullLevel section passes over Cols for each row,
// folding and storing; a RowLevel one runs once a row.
type Section struct {
	Level    Level
	Reverse  bool // from the last column to the first, as its scans run
	Folds    []*Fold
	Stores   []*Store
	Partials []*Partial // of a FullLevel section in a kernel that accumulates over rows
}

// Exchanges reports whether the section ends with an exchange among the threads that share a row, where some do: each gets
// the results of folds of the whole row.
func (s *Section) Exchanges() bool {
	return s.Level == FullLevel && slices.ContainsFunc(s.Folds, func(f *Fold) bool { return f.Prefix == WholeRow })
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

// Kernel is one launch: a region of the graph that one template accepts. Its
// iteration space is Rows x Cols.
type Kernel struct {
	Name string
	// Like is the earlier kernel that this one repeats over other buffers, as one layer
	// repeats another; nil where there is none. The two share all but Name, Args and
	// Members: what the body says about an Arg of Like holds for the one of the same Index
	// here. One compiled kernel serves both.
	Like *Kernel
	// When is a condition on the sizes under which the kernel runs; nil for always. Kernels that have one
	// come from plans of the same graph for different sizes: see Plan.At.
	When     *Expr
	Template Template
	Rows     []*Range // outermost first
	// Accumulated is the last of Rows where some of the kernel's results are folds over
	// them (Partial): those rows are worked on one after the other, by the same
	// threads. Rows for which Inside does not hold are left out; nil leaves out none.
	Accumulated []*Range
	Inside      *Expr
	Cols        []*Range // empty for a pointwise kernel
	Args        []*Arg
	Members     []*Value // the values computed inside
	Variants    []*Variant
	Numerics    Numerics
	LastBlock   *LastBlock // nil where no other kernel is run by this one's blocks
	// Mantissa is the fraction bits of the most precise float the kernel stores:
	// under fast, instructions good to that many bits will do.
	Mantissa int
}

// LastBlock says that the last blocks of a kernel run another one, which folds its results: a
// fold over many blocks in one launch. Blocks with the same rows except for Parts are a group.
// Each counts itself when its results are written, and the block that is the last of its group
// runs Kernel for the group's rows. It does not matter which block that is, because the order
// of the fold is Kernel's ("threadFence reduction", CUDA C++ Programming Guide, memory fence
// functions). Two separate launches would give the same results.
type LastBlock struct {
	Kernel *Kernel  // the next of the plan; it has no launch of its own
	Parts  []*Range // of the rows of the kernel whose last blocks run Kernel: Kernel's columns
}

// Rest returns the rows of a kernel that the kernel run by its last blocks also has.
func (f *LastBlock) Rest(rows []*Range) []*Range {
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
		if k.LastBlock != nil {
			run[k.LastBlock.Kernel] = true
		}
		if !run[k] {
			out = append(out, k)
		}
	}
	return out
}

// At returns the plan of the kernels that run at the given sizes, which is p itself if the same kernels
// run at all sizes. Sizes that are not given have their defaults.
func (p *Plan) At(sizes map[string]int64) *Plan {
	if !slices.ContainsFunc(p.Kernels, func(k *Kernel) bool { return k.When != nil }) {
		return p
	}
	var usual *Expr
	runs := func(when *Expr) bool {
		if when == nil {
			return true
		}
		if usual == nil {
			usual = when
		}
		if knows(sizes, when) {
			holds, known := EvalSize(when, sizes)
			return known && holds != 0
		}
		return Equal(when, usual)
	}
	out := &Plan{Graph: p.Graph, Refused: p.Refused}
	for _, k := range p.Kernels {
		if runs(k.When) {
			out.Kernels = append(out.Kernels, k)
		}
	}
	for _, b := range p.Buffers {
		if runs(b.When) {
			out.Buffers = append(out.Buffers, b)
		}
	}
	return out
}

// knows reports whether sizes are given for all symbols of an expression.
func knows(sizes map[string]int64, e *Expr) bool {
	known := true
	Walk(e, func(e *Expr) bool {
		if e.Op == OpSym {
			_, given := sizes[e.Name]
			known = known && given
		}
		return known
	})
	return known
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
	ReasonWritten                // the producer is written for another reason
)

// String returns the reason's code, as in explain --json.
func (r Reason) String() string {
	return [...]string{"none", "different-ranges", "index-mismatch", "recompute", "cycle", "resources", "no-gain", "written"}[r]
}
