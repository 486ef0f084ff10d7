package ir

import (
	"math"
	"math/bits"
)

// Index arithmetic is exact, and an index that 64 bits do not hold becomes the nearest that they do: it
// is then outside of every tensor, as the exact index would be. Parts of a sum or product may need more
// bits (Int128). This can only happen to indices made of data, because those of ranges and sizes are
// bounded by the sizes of tensors.

// OfData reports whether an index is made of elements of tensors, and not of ranges and sizes alone.
func OfData(e *Expr) bool {
	switch {
	case e.Type != Index:
		return false
	case e.Op == OpCast, e.Op == OpLocal:
		return true // an element, or a local that holds one
	case e.Op == OpSelect:
		return OfData(e.Args[1]) || OfData(e.Args[2])
	}
	for _, a := range e.Args {
		if OfData(a) {
			return true
		}
	}
	return false
}

// Saturating returns the function of an operation on indices that saturates, or nil for one that
// stays within 64 bits. An operation of one argument ignores the second.
func Saturating(op Op) func(a, b int64) int64 {
	switch op {
	case OpAdd:
		return addSaturating
	case OpSub:
		return subSaturating
	case OpMul:
		return mulSaturating
	case OpNeg:
		return func(a, _ int64) int64 { return subSaturating(0, a) }
	}
	return nil
}

// end is the end of 64 bits on one side.
func end(negative bool) int64 {
	if negative {
		return math.MinInt64
	}
	return math.MaxInt64
}

func addSaturating(a, b int64) int64 {
	if s := a + b; (a^s)&(b^s) >= 0 {
		return s
	}
	return end(a < 0)
}

func subSaturating(a, b int64) int64 {
	if d := a - b; (a^b)&(a^d) >= 0 {
		return d
	}
	return end(a < 0)
}

func mulSaturating(a, b int64) int64 {
	high, low := bits.Mul64(uint64(a), uint64(b))
	if a < 0 {
		high -= uint64(b)
	}
	if b < 0 {
		high -= uint64(a)
	}
	if int64(high) == int64(low)>>63 {
		return int64(low)
	}
	return end((a < 0) != (b < 0))
}

// IndexBits bounds the magnitude of an index, and of everything that it is computed from, by a
// power of two. Below 64 bits nothing saturates. leaf returns the bits of the expressions that
// it knows.
func IndexBits(e *Expr, leaf func(*Expr) (bits int, known bool)) int {
	if n, known := leaf(e); known {
		return n
	}
	switch e.Op {
	case OpConst:
		return bits.Len64(uint64(max(e.Int, subSaturating(0, e.Int))))
	case OpCast:
		if from := e.Args[0].Type; from.IsFloat() || from.Size() == 8 {
			return 64
		}
		return 8 * e.Args[0].Type.Size()
	case OpLocal:
		if e.Local.Def == nil {
			return 64
		}
		return IndexBits(e.Local.Def, leaf)
	}
	most, sum := 0, 0
	args := e.Args
	if e.Op == OpSelect {
		args = args[1:]
	}
	for _, a := range args {
		n := IndexBits(a, leaf)
		most, sum = max(most, n), sum+n
	}
	switch {
	case len(args) == 0:
		return 64
	case most >= 64:
		return 64
	case e.Op == OpAdd || e.Op == OpSub:
		return most + 1
	case e.Op == OpMul:
		return min(sum, 64)
	}
	return most // quotients, remainders and choices are no larger
}

// SizeBits bounds indices made of ranges and sizes by 62 bits, which is far above the elements of any
// memory: a leaf of IndexBits.
func SizeBits(e *Expr) (bits int, known bool) { return 62, !OfData(e) && e.Op != OpConst }
