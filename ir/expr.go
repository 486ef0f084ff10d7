package ir

import (
	"fmt"
	"math"

	"github.com/fusec/fusec/ir/diag"
)

// Range is a named index that runs from 0 to Extent-1. Ranges are compared by
// identity; ID orders them and is unique in a Graph.
type Range struct {
	ID     int
	Name   string
	Extent *Expr // of type Index, over symbols only
	Span   diag.Span
}

// Expr is an immutable scalar expression: a function from the ranges in scope
// to one scalar. Expressions are DAGs; build them with the functions below,
// never by hand, and never change one.
//
// Index expressions (type Index) are exact integers: OpAdd, OpSub, OpMul,
// OpFloorDiv, OpMod, OpMin, OpMax, OpNeg, OpSelect over OpConst, OpRange, OpSym
// and casts of integer values (gather).
type Expr struct {
	Op   Op
	Type DType
	Args []*Expr

	Val   float64 // OpConst of a float type
	Int   int64   // OpConst of any other type
	Range *Range  // OpRange
	Name  string  // OpSym
	From  *Value  // OpLoad
	Fill  *Expr   // OpLoad, OpRead: what a read outside gives; nil means it is never outside
	// NoElse marks an OpLoad for which the program does not say what is read outside: its
	// indices that depend on data are meant to be inside (see Checked). Like Span it does not
	// count for equality.
	NoElse bool
	Reduce *Reduction // OpReduce
	Local  *Local     // OpLocal
	Arg    *Arg       // OpRead
	Guard  *Expr      // OpRead: where the read is inside; nil means always

	Span diag.Span
	hash uint64
}

// Reduction says how a body is folded over ranges.
type Reduction struct {
	Op     Monoid
	Ranges []*Range
	Where  *Expr // bool, or nil: indices where it is false do not take part
	// Rank, an Index, makes Max, Min, ArgMax and ArgMin pick another element than the first in
	// descending, or ascending, order: the one after Rank others. Equal elements are in order
	// of index, and NaN is above every number. Past the last element the result is that of a
	// reduction over nothing. Such a reduction has one range and no Where. Rank is nil for a
	// plain reduction.
	Rank *Expr
	// Inverse, of ArgMax and ArgMin with a Rank, gives the place in the order of the element at Rank, in place of the element
	// at that place.
	Inverse bool
}

func (e *Expr) seal() *Expr {
	h := hashInit.word(uint64(e.Op)).word(uint64(e.Type)).word(math.Float64bits(e.Val)).word(uint64(e.Int)).text(e.Name)
	if e.Range != nil {
		h = h.word(uint64(e.Range.ID))
	}
	if e.From != nil {
		h = h.word(uint64(e.From.ID))
	}
	if e.Local != nil {
		h = h.word(uint64(e.Local.ID))
	}
	if e.Arg != nil {
		h = h.word(uint64(e.Arg.Index))
	}
	for _, a := range e.Args {
		h = h.word(a.hash)
	}
	for _, a := range []*Expr{e.Fill, e.Guard} {
		if a != nil {
			h = h.word(a.hash)
		}
	}
	e.hash = uint64(h)
	return e
}

// hash64 is FNV-1a over words. Unequal expressions nearly always have different hashes; Equal
// decides.
type hash64 uint64

const hashInit hash64 = 14695981039346656037

func (h hash64) word(w uint64) hash64 {
	const prime = 1099511628211
	h = (h ^ hash64(w)) * prime
	return h ^ h>>29
}

func (h hash64) text(s string) hash64 {
	for i := range len(s) {
		h = h.word(uint64(s[i]))
	}
	return h
}

// Hash returns a structural hash: equal expressions have equal hashes.
func (e *Expr) Hash() uint64 { return e.hash }

// At returns e with the span set, for error messages and generated comments.
func (e *Expr) At(span diag.Span) *Expr {
	if e.Span == span {
		return e
	}
	c := *e
	c.Span = span
	return &c
}

// IntConst is the index constant v.
func IntConst(v int64) *Expr { return (&Expr{Op: OpConst, Type: Index, Int: v}).seal() }

// Num is the constant v of dtype t; for integers and bools v is truncated.
func Num(t DType, v float64) *Expr {
	e := &Expr{Op: OpConst, Type: t}
	if t.IsFloat() {
		e.Val = v
	} else {
		e.Int = int64(v)
	}
	return e.seal()
}

// withinRange is a number, or what a conversion to a float type makes of it where it is too large for that.
func withinRange(t DType, v float64) float64 {
	most := t.Info().Max
	if !(math.Abs(v) > most) {
		return v
	}
	_, exponent := math.Frexp(most)
	if half := math.Ldexp(t.Info().Epsilon, exponent-2); t.Size() == 1 || math.Abs(v) < most+half {
		return math.Copysign(most, v)
	}
	return math.Inf(int(math.Copysign(1, v)))
}

// IntNum is the constant v of the integer or bool dtype t.
func IntNum(t DType, v int64) *Expr {
	if t.IsFloat() {
		return Num(t, float64(v))
	}
	return (&Expr{Op: OpConst, Type: t, Int: v}).seal()
}

// Sym is the size bound to a symbol.
func Sym(name string) *Expr { return (&Expr{Op: OpSym, Type: Index, Name: name}).seal() }

// At is the current index of a range.
func (r *Range) At() *Expr { return (&Expr{Op: OpRange, Type: Index, Range: r, Span: r.Span}).seal() }

// Load reads v at the given indices, one Index expression an axis. fill, a
// constant of v's type, is the result of a read outside; nil promises that the
// read is always inside. A constant that is too large for the type is what a conversion makes of it, as elements are.
func Load(v *Value, at []*Expr, fill *Expr) *Expr {
	if len(at) != len(v.Axes) {
		panic(fmt.Sprintf("BUG: load of %s has %d indices, want %d", v.Name, len(at), len(v.Axes)))
	}
	if fill != nil && fill.Op == OpConst && fill.Type.IsFloat() {
		if val := withinRange(v.Type, fill.Val); val != fill.Val {
			fill = Num(fill.Type, val).At(fill.Span)
		}
	}
	return (&Expr{Op: OpLoad, Type: v.Type, Args: at, From: v, Fill: fill}).seal()
}

// Bare returns a load marked NoElse.
func (e *Expr) Bare() *Expr {
	c := *e
	c.NoElse = true
	return &c
}

// Reduce folds body over ranges: a nested reduction, which Graph.Define turns
// into a value of its own.
func Reduce(r *Reduction, body *Expr) *Expr {
	return (&Expr{Op: OpReduce, Type: r.Op.Result(body.Type), Args: []*Expr{body}, Reduce: r}).seal()
}

// Random is the u32 random_bits(seed, index); index has type Index.
func Random(seed, index *Expr) *Expr {
	return (&Expr{Op: OpRandom, Type: U32, Args: []*Expr{seed, index}}).seal()
}

// Random16 is the u32 random_bits16(seed, index), below 65536; index has type Index.
func Random16(seed, index *Expr) *Expr {
	return (&Expr{Op: OpRandom16, Type: U32, Args: []*Expr{seed, index}}).seal()
}

// Random reports whether op is a source of random bits.
func (op Op) Random() bool { return op == OpRandom || op == OpRandom16 }

// LocalRef reads a value computed earlier in the same kernel.
func LocalRef(l *Local) *Expr {
	return (&Expr{Op: OpLocal, Type: l.Type, Local: l, Span: l.Span}).seal()
}

// Read loads the kernel argument a at a flat element offset. guard and fill are
// both nil, or say where the read is inside and what it gives elsewhere.
func Read(a *Arg, offset, guard, fill *Expr) *Expr {
	return (&Expr{Op: OpRead, Type: a.Type, Arg: a, Args: []*Expr{offset}, Guard: guard, Fill: fill}).seal()
}

// Cast converts e to t; e itself where it has that type already.
func Cast(e *Expr, t DType) *Expr {
	if e.Type == t {
		return e
	}
	if e.Op == OpConst {
		return castConst(e, t).At(e.Span)
	}
	return (&Expr{Op: OpCast, Type: t, Args: []*Expr{e}, Span: e.Span}).seal()
}

func castConst(e *Expr, t DType) *Expr {
	switch {
	case e.Type.IsFloat() && t.IsFloat():
		return Num(t, e.Val)
	case e.Type.IsFloat():
		return castFloatConst(e.Val, t)
	case t == Bool:
		return IntNum(t, truthInt(e.Int != 0))
	default:
		return IntNum(t, wrapped(t, e.Int))
	}
}

// wrapped is an integer as a type of fewer bits holds it; floats take it as it is.
func wrapped(t DType, v int64) int64 {
	if !t.IsInt() || t.Size() == 8 {
		return v
	}
	unused := 64 - 8*t.Size()
	if t.Info().Signed {
		return v << unused >> unused
	}
	return int64(uint64(v) << unused >> unused)
}

func castFloatConst(v float64, t DType) *Expr {
	switch {
	case t == Bool:
		return IntNum(t, truthInt(v != 0))
	case v != v:
		return IntNum(t, 0)
	case v >= t.Info().Max:
		return IntNum(t, extreme(t, true))
	case v <= float64(extreme(t, false)):
		return IntNum(t, extreme(t, false))
	}
	return IntNum(t, int64(v))
}

// Where is a where(c, a, b): a and b have one type.
func Where(c, a, b *Expr) *Expr {
	return (&Expr{Op: OpSelect, Type: a.Type, Args: []*Expr{c, a, b}}).seal()
}

// Apply applies a computing operation to arguments of the types it takes. It
// panics on wrong types: callers check with ResultType first.
func Apply(op Op, args ...*Expr) *Expr {
	types := make([]DType, len(args))
	for i, a := range args {
		types[i] = a.Type
	}
	t, err := ResultType(op, types...)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return (&Expr{Op: op, Type: t, Args: args}).seal()
}

// Join is Apply of a binary operation to two operands. If one of them is nil, it is the other.
func Join(op Op, a, b *Expr) *Expr {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return Apply(op, a, b)
}

// ResultType returns the type of op applied to arguments of the given types.
// Arguments must agree in type: conversions are explicit.
func ResultType(op Op, types ...DType) (DType, error) {
	info := op.Info()
	if len(types) != info.Arity {
		return Invalid, fmt.Errorf("%s takes %d arguments, not %d", info.Name, info.Arity, len(types))
	}
	if op == OpSelect {
		if types[0] != Bool || types[1] != types[2] {
			return Invalid, fmt.Errorf("where takes a bool and two values of one type, not %v", types)
		}
		return types[1], nil
	}
	for _, t := range types {
		if t != types[0] {
			return Invalid, fmt.Errorf("%s takes arguments of one type, not %v", info.Name, types)
		}
		if !info.On.Has(t.Info().Kind) {
			return Invalid, fmt.Errorf("%s does not take %s", info.Name, t)
		}
	}
	switch info.Result {
	case SameType:
		return types[0], nil
	case ToBool:
		return Bool, nil
	}
	return Invalid, fmt.Errorf("%s needs its own constructor", info.Name)
}

// IsConst reports whether e is the constant v.
func (e *Expr) IsConst(v float64) bool {
	if e.Op != OpConst {
		return false
	}
	if e.Type.IsFloat() {
		return e.Val == v
	}
	return float64(e.Int) == v
}

// Equal reports whether a and b are the same expression. It does not simplify.
func Equal(a, b *Expr) bool {
	if a == b {
		return true
	}
	if a == nil || b == nil || a.hash != b.hash {
		return false
	}
	var c comparison
	return c.equal(a, b)
}

// comparison compares expressions that share nodes. Written out as trees these may be of any size, so
// that what was found equal is remembered; most comparisons end before that is worth its while.
type comparison struct {
	nodes int
	same  map[[2]*Expr]bool
}

const fewNodes = 64

func (c *comparison) equal(a, b *Expr) bool {
	if a == b {
		return true
	}
	if a == nil || b == nil || a.hash != b.hash || a.Op != b.Op || a.Type != b.Type || len(a.Args) != len(b.Args) || !sameLeaf(a, b) {
		return false
	}
	c.nodes++
	if c.nodes > fewNodes && c.same[[2]*Expr{a, b}] {
		return true
	}
	if !c.equal(a.Fill, b.Fill) || !c.equal(a.Guard, b.Guard) {
		return false
	}
	for i := range a.Args {
		if !c.equal(a.Args[i], b.Args[i]) {
			return false
		}
	}
	if c.nodes > fewNodes {
		put(&c.same, [2]*Expr{a, b}, true)
	}
	return true
}

func sameLeaf(a, b *Expr) bool {
	return math.Float64bits(a.Val) == math.Float64bits(b.Val) && a.Int == b.Int && a.Name == b.Name &&
		a.Range == b.Range && a.From == b.From && a.Local == b.Local && a.Arg == b.Arg && a.Reduce == b.Reduce
}
