package interp

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/num"
)

// chooser makes the choices of Sampled mode: it gives each float result one of the values
// that an engine may give it. The technique is Monte Carlo arithmetic (Parker, 1997): what
// differs between runs with different seeds shows how much of a result depends on rounding.
type chooser struct {
	rng    *rand.Rand
	strict bool // every operation rounds to its type
	tf32   bool // operands of f32 products may be rounded to tf32
	policy int  // whether intermediate values are stored: all of a value, none, or by chance
}

// begin chooses for the next value of a graph whether its intermediate values are stored, as
// they are where a kernel ends, or not.
func (c *chooser) begin() {
	if c != nil {
		c.policy = c.rng.IntN(4)
	}
}

func newChooser(g *ir.Graph, opts Options) *chooser {
	if opts.Mode != Sampled {
		return nil
	}
	return &chooser{rng: rand.New(rand.NewPCG(opts.Seed, 0x5a3d)), strict: g.Numerics == ir.Strict, tf32: g.TF32}
}

// spread is a number between -1 and 1.
func (c *chooser) spread() float64 { return 2*c.rng.Float64() - 1 }

// coin is true half of the time.
func (c *chooser) coin() bool { return c.rng.Uint64()&1 == 0 }

// ulps is how far the result of an operation may be from the exact one, in units of the
// last place of the type it is computed in. Operations that are not listed select, negate
// or round to whole numbers: they have no error of their own.
var ulps = map[ir.Op]float64{
	ir.OpAdd: 1, ir.OpSub: 1, ir.OpMul: 1, ir.OpDiv: 4, ir.OpMod: 4, ir.OpSqrt: 4, ir.OpRsqrt: 4, ir.OpRecip: 4,
	ir.OpPow: 32, ir.OpExp: 8, ir.OpExp2: 8, ir.OpExpm1: 8, ir.OpLog: 8, ir.OpLog2: 8, ir.OpLog10: 8, ir.OpLog1p: 8,
	ir.OpErf: 8, ir.OpErfc: 16, ir.OpSin: 8, ir.OpCos: 8, ir.OpTan: 16, ir.OpAsin: 8, ir.OpAcos: 8, ir.OpAtan: 8,
	ir.OpAtan2: 8, ir.OpSinh: 8, ir.OpCosh: 8, ir.OpTanh: 8, ir.OpAsinh: 8, ir.OpAcosh: 8, ir.OpAtanh: 8,
}

// rounds reports the operations whose only error is one rounding, so that they are exact
// where their result is a number of the type.
func rounds(op ir.Op) bool { return op == ir.OpAdd || op == ir.OpSub || op == ir.OpMul }

// flushes reports the operations of fast mode that may take numbers below the normal ones
// of f32 for zero.
func flushes(op ir.Op) bool {
	switch op {
	case ir.OpDiv, ir.OpRecip, ir.OpSqrt, ir.OpRsqrt, ir.OpPow, ir.OpExp, ir.OpExp2:
		return true
	}
	return false
}

// result is a value that an engine may give for the exact result v of op, of type t.
func (c *chooser) result(op ir.Op, t ir.DType, v float64) float64 {
	compute := t.Info().Compute
	if v == 0 || v-v != 0 {
		return c.stored(t, compute, v) // types of 8 bits have no infinities
	}
	if c.strict {
		return num.Round(t, num.Round(compute, v*(1+c.error(op, compute, v))))
	}
	v *= 1 + c.error(op, compute, v)
	if compute == ir.F32 && flushes(op) && math.Abs(v) < 0x1p-125 && c.coin() {
		return math.Copysign(0, v)
	}
	return c.stored(t, compute, v)
}

// stored is v as it is, as its register holds it, or as memory does.
func (c *chooser) stored(t, compute ir.DType, v float64) float64 {
	policy := c.policy
	if policy > 1 {
		policy = c.rng.IntN(3)
	}
	switch policy {
	case 0:
		return num.Round(compute, v)
	case 1:
		return num.Round(t, v)
	}
	return v
}

// error is a relative error that op may have.
func (c *chooser) error(op ir.Op, compute ir.DType, v float64) float64 {
	units := ulps[op]
	if units == 0 || rounds(op) && isExact(compute, v) {
		return 0
	}
	if op == ir.OpMul && c.tf32 && compute == ir.F32 {
		return c.spread() * 0x1p-10
	}
	if c.strict {
		if rounds(op) {
			return 0 // rounded by the caller, and nothing else
		}
		units = min(units, 4)
	}
	return c.spread() * units * compute.Info().Epsilon
}

// isExact reports whether v is a number of the type; for f64, in which it is held, whether it
// is a whole number that leaves room for no rounding.
func isExact(t ir.DType, v float64) bool {
	if t == ir.F64 {
		return v == math.Trunc(v) && math.Abs(v) < 1<<52
	}
	return num.Round(t, v) == v
}

// total is a sum that an engine may have: adding nothing to negative zeros may make them positive.
func (c *chooser) total(op ir.Op, v float64) float64 {
	if op == ir.OpAdd && v == 0 && c.coin() {
		return -v
	}
	return v
}

// sum is a running value that an engine may have where v is the exact one and term was
// combined with old: engines add in other orders, so the error is in units of both, and what
// overflows in one order may not in another.
func (c *chooser) sum(op ir.Op, t ir.DType, v, old, term float64) float64 {
	switch {
	case ulps[op] == 0:
		return v
	case old-old == 0 && term-term == 0 && math.Abs(v) > t.Info().Max/4:
		return c.overflowed(t, v)
	case v-v != 0 || isExact(t, v) && isExact(t, term):
		return v
	}
	return v + c.spread()*t.Info().Epsilon*(math.Abs(v)+math.Abs(term))
}

// reorder puts terms into an order that an engine might fold them in. Besides their own order
// and any other there are two that show whether a result depends on it: the large ones first,
// as they overflow before small ones bring them back, or last.
func (c *chooser) reorder(terms []Scalar) {
	size := func(v Scalar) float64 { return math.Abs(v.F) }
	switch c.rng.Uint64() & 3 {
	case 0:
		slices.SortFunc(terms, func(a, b Scalar) int { return cmp.Compare(size(b), size(a)) })
	case 1:
		slices.SortFunc(terms, func(a, b Scalar) int { return cmp.Compare(size(a), size(b)) })
	case 2:
		c.rng.Shuffle(len(terms), func(i, j int) { terms[i], terms[j] = terms[j], terms[i] })
	}
}

// product is a product that an engine may have. One that overflows does not where the engine
// adds to it in the same instruction.
func (c *chooser) product(a, b float64) float64 {
	const largest = 0x1.ffep127 // what rounds to no number of tf32
	if c.tf32 && (math.Abs(a) >= largest || math.Abs(b) >= largest) && c.coin() {
		a, b = one(math.Abs(a) >= largest, a*math.Inf(1), a), one(math.Abs(b) >= largest, b*math.Inf(1), b)
	}
	v := a * b
	if math.IsInf(v, 0) && !math.IsInf(a, 0) && !math.IsInf(b, 0) && !c.strict && c.coin() {
		return math.Copysign(math.MaxFloat64, v)
	}
	return v
}

// loaded is a value that was computed, as a reader may have it: engines compute cheap values
// again in each reader, and not in the same instructions.
func (c *chooser) loaded(t ir.DType, v float64) float64 {
	if v-v != 0 || v == math.Trunc(v) || c.strict || c.coin() {
		return v
	}
	return v * (1 + c.spread()*t.Info().Compute.Info().Epsilon)
}

// overflowed is what becomes of a sum that leaves the range of its type in some order: in
// another it stays inside, and where parts of it are subtracted from each other it is NaN.
func (c *chooser) overflowed(t ir.DType, v float64) float64 {
	switch c.rng.IntN(3) {
	case 0:
		return math.Copysign(t.Info().Max/2, v)
	case 1:
		return math.NaN()
	}
	return math.Copysign(math.Inf(1), v)
}

func one(first bool, a, b float64) float64 {
	if first {
		return a
	}
	return b
}
