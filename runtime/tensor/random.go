package tensor

import (
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/num"
)

// block is how many elements are converted at a time: small enough for the L1.
const block = 1024

// stripe is how many elements one random source makes. Stripes are made side by
// side, and do not depend on how many at a time.
const stripe = 64 * block

// Random returns a new tensor that depends on type, seed and shape alone: standard
// normal for floats, -8 to 7 for signed integers, 0 to 15 for unsigned, fair coins
// for bool.
func Random(t ir.DType, seed uint64, shape ...int) (*Tensor, error) {
	switch {
	case t.IsFloat():
		return generate(t, seed, shape, num.FromFloat64s, (*rand.Rand).NormFloat64)
	case t == ir.Bool:
		return RandomInts(t, seed, 0, 2, shape...)
	case t.Info().Signed:
		return RandomInts(t, seed, -8, 8, shape...)
	}
	return RandomInts(t, seed, 0, 16, shape...)
}

// Spread is the distribution of random floats: normal, around 0, with deviation Scale (0 means
// 1). With Positive it is their absolute values.
type Spread struct {
	Scale    float64
	Positive bool
}

// RandomFloats returns a new tensor of a float type, as Random does, with numbers that lie
// as s says.
func RandomFloats(t ir.DType, seed uint64, s Spread, shape ...int) (*Tensor, error) {
	scale := s.Scale
	if scale == 0 {
		scale = 1
	}
	return generate(t, seed, shape, num.FromFloat64s, func(r *rand.Rand) float64 {
		v := scale * r.NormFloat64()
		if s.Positive {
			v = math.Abs(v)
		}
		return v
	})
}

// RandomInts returns a new tensor of integers from lo up to hi, exclusive, as
// Random does: what indices into a table need.
func RandomInts(t ir.DType, seed uint64, lo, hi int64, shape ...int) (*Tensor, error) {
	span := max(hi-lo, 1)
	return generate(t, seed, shape, num.FromInt64s, func(r *rand.Rand) int64 { return lo + r.Int64N(span) })
}

// source is the generator of one stripe.
func source(seed, stripe uint64) *rand.Rand {
	return rand.New(rand.NewPCG(seed, 0x9e3779b97f4a7c15+stripe))
}

func generate[T any](
	t ir.DType, seed uint64, shape []int, store func([]byte, ir.DType, []T), next func(*rand.Rand) T,
) (*Tensor, error) {
	x, err := New(t, shape...)
	if err != nil {
		return nil, err
	}
	size := stripe * t.Size()
	stripes := int64(len(x.Data)+size-1) / int64(size)
	var begun atomic.Int64
	var group sync.WaitGroup
	for range min(stripes, int64(runtime.GOMAXPROCS(0))) {
		group.Go(func() {
			for i := begun.Add(1) - 1; i < stripes; i = begun.Add(1) - 1 {
				from := int(i) * size
				part := x.Data[from:min(from+size, len(x.Data))]
				fillStripe(part, t, source(seed, uint64(i)), store, next)
			}
		})
	}
	group.Wait()
	return x, nil
}

// fillStripe fills memory from one source.
func fillStripe[T any](
	rest []byte, t ir.DType, r *rand.Rand, store func([]byte, ir.DType, []T), next func(*rand.Rand) T,
) {
	var buf [block]T
	for len(rest) > 0 {
		n := min(block, len(rest)/t.Size())
		for i := range n {
			buf[i] = next(r)
		}
		store(rest[:n*t.Size()], t, buf[:n])
		rest = rest[n*t.Size():]
	}
}
