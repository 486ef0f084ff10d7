package ir

import "math"

// Monoid is the operation of a reduction.
type Monoid uint8

// The reductions.
const (
	Sum Monoid = iota
	Prod
	Max
	Min
	Any
	All
	ArgMax
	ArgMin
	numMonoids
)

// MonoidInfo is one row of the reduction table.
type MonoidInfo struct {
	Name     string
	Combine  Op      // folds two values; for ArgMax and ArgMin, compares values
	Identity float64 // value of an empty reduction; infinities mean the type's extreme
	On       Kinds
	Doc      string
}

var monoids = [numMonoids]MonoidInfo{
	Sum:    {"sum", OpAdd, 0, OnAny, "sum; 0 over nothing; of integers and bools an i64"},
	Prod:   {"prod", OpMul, 1, OnAny, "product; 1 over nothing; of integers and bools an i64"},
	Max:    {"max", OpMax, math.Inf(-1), OnAny, "largest, NaN if any is; the type's lowest value over nothing"},
	Min:    {"min", OpMin, math.Inf(1), OnAny, "smallest, NaN if any is; the type's highest value over nothing"},
	Any:    {"any", OpOr, 0, OnBool, "whether one holds"},
	All:    {"all", OpAnd, 1, OnBool, "whether all hold"},
	ArgMax: {"argmax", OpGt, math.Inf(-1), OnAny, "index of the first largest, or of the first NaN; 0 over nothing"},
	ArgMin: {"argmin", OpLt, math.Inf(1), OnAny, "index of the first smallest, or of the first NaN; 0 over nothing"},
}

// Info returns the reduction's row.
func (m Monoid) Info() MonoidInfo { return monoids[m] }

// String returns the name used in .fuse programs.
func (m Monoid) String() string { return monoids[m].Name }

// IsArg reports whether the result is an index instead of a value.
func (m Monoid) IsArg() bool { return m == ArgMax || m == ArgMin }

// Extreme is the reduction that gives the value whose index m gives; m itself where it gives no index.
func (m Monoid) Extreme() Monoid {
	switch m {
	case ArgMax:
		return Max
	case ArgMin:
		return Min
	}
	return m
}

// Ordered reports whether m picks an element by its place in an order, so that it may take a
// Rank.
func (m Monoid) Ordered() bool { return m == Max || m == Min || m.IsArg() }

// Descending reports whether the first place of m's order is the largest element.
func (m Monoid) Descending() bool { return m == Max || m == ArgMax }

// Monoids returns every reduction.
func Monoids() []Monoid {
	var out []Monoid
	for m := range numMonoids {
		out = append(out, m)
	}
	return out
}

// MonoidNamed returns the reduction with the given name.
func MonoidNamed(name string) (Monoid, bool) {
	for m := range numMonoids {
		if monoids[m].Name == name {
			return m, true
		}
	}
	return 0, false
}

// Result returns the type of a reduction over values of type t.
func (m Monoid) Result(t DType) DType {
	switch {
	case m.IsArg():
		return I64
	case (m == Sum || m == Prod) && !t.IsFloat():
		return I64
	}
	return t
}

// Identity returns the neutral constant for values of type t, in the type the
// reduction accumulates in.
func (m Monoid) Identity(t DType) *Expr {
	id := monoids[m].Identity
	acc := m.Accumulator(t)
	if acc.IsFloat() || !math.IsInf(id, 0) {
		return Num(acc, id)
	}
	return IntNum(acc, extreme(acc, id > 0))
}

// Accumulator returns the type in which values of type t are folded: f32 for
// the narrow floats, i64 for sums of integers.
func (m Monoid) Accumulator(t DType) DType {
	if t.IsFloat() {
		return t.Info().Compute
	}
	if m == Sum || m == Prod {
		return I64
	}
	return t
}

func extreme(t DType, high bool) int64 {
	info := t.Info()
	switch {
	case t == I64 || t == Index:
		if high {
			return math.MaxInt64
		}
		return math.MinInt64
	case high:
		return int64(info.Max)
	case info.Signed:
		return -int64(info.Max) - 1
	}
	return 0
}
