package tensor

import (
	"math/rand/v2"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/num"
)

// block is how many elements are converted at a time: small enough for the L1.
const block = 1024

// Random returns a new tensor that depends on type, seed and shape alone: standard
// normal for floats, -8 to 7 for signed integers, 0 to 15 for unsigned, fair coins
// for bool.
func Random(t ir.DType, seed uint64, shape ...int) (*Tensor, error) {
	switch {
	case t.IsFloat():
		r := source(seed)
		return generate(t, shape, num.FromFloat64s, r.NormFloat64)
	case t == ir.Bool:
		return RandomInts(t, seed, 0, 2, shape...)
	case t.Info().Signed:
		return RandomInts(t, seed, -8, 8, shape...)
	}
	return RandomInts(t, seed, 0, 16, shape...)
}

// RandomInts returns a new tensor of integers from lo up to hi, exclusive, as
// Random does: what indices into a table need.
func RandomInts(t ir.DType, seed uint64, lo, hi int64, shape ...int) (*Tensor, error) {
	r, span := source(seed), max(hi-lo, 1)
	return generate(t, shape, num.FromInt64s, func() int64 { return lo + r.Int64N(span) })
}

func source(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0x9e3779b97f4a7c15)) }

func generate[T any](
	t ir.DType, shape []int, store func([]byte, ir.DType, []T), next func() T,
) (*Tensor, error) {
	x, err := New(t, shape...)
	if err != nil {
		return nil, err
	}
	var buf [block]T
	for rest := x.Data; len(rest) > 0; {
		n := min(block, len(rest)/t.Size())
		for i := range n {
			buf[i] = next()
		}
		store(rest[:n*t.Size()], t, buf[:n])
		rest = rest[n*t.Size():]
	}
	return x, nil
}
