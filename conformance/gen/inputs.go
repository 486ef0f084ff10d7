package gen

import (
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/interp"
)

// Inputs draws values for a graph's inputs, in order. Ordinary floats are normal or small
// whole numbers, and integers small; hostile ones are NaN, infinities, signed zeros and the
// ends of a type among them.
func Inputs(g *ir.Graph, sizes map[string]int64, seed uint64, hostile bool) ([]*interp.Tensor, error) {
	out := make([]*interp.Tensor, len(g.Inputs))
	for i, v := range g.Inputs {
		shape := make([]int, len(v.Axes))
		for d, e := range v.Shape() {
			n, ok := ir.EvalSize(e, sizes)
			if !ok || n < 0 {
				return nil, fmt.Errorf("input %s has no shape at %v", v.Name, sizes)
			}
			shape[d] = int(n)
		}
		rng := rand.New(rand.NewPCG(seed, nameHash(v.Name))) // its own: other inputs may come and go
		x := interp.New(v.Type, shape...)
		fill(x, rng, hostile)
		out[i] = interp.FromBytes(v.Type, shape, x.Bytes()) // as its type holds it
	}
	return out, nil
}

func nameHash(name string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(name))
	return h.Sum64()
}

func fill(x *interp.Tensor, rng *rand.Rand, hostile bool) {
	whole := rng.IntN(3) == 0
	for n := range x.F {
		switch {
		case hostile && rng.IntN(8) == 0:
			x.F[n] = one(rng, []float64{math.NaN(), math.Inf(1), math.Inf(-1), 0, math.Copysign(0, -1), 1, -1,
				x.Type.Info().Max, -x.Type.Info().Max})
		case whole:
			x.F[n] = float64(rng.IntN(7) - 3)
		default:
			x.F[n] = rng.NormFloat64()
		}
	}
	for n := range x.I {
		x.I[n] = integer(x.Type, rng, hostile)
	}
}

func integer(t ir.DType, rng *rand.Rand, hostile bool) int64 {
	most := int64(t.Info().Max)
	if t == ir.I64 {
		most = math.MaxInt64
	}
	if t == ir.Bool {
		return rng.Int64N(2)
	}
	least := int64(0)
	if t.Info().Signed {
		least = -most - 1
	}
	if hostile && rng.IntN(6) == 0 {
		return one(rng, []int64{most, most - 1, least, least + 1, most / 2, 0})
	}
	if least < 0 {
		return rng.Int64N(10) - 2
	}
	return rng.Int64N(8)
}
