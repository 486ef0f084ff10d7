package interp

import (
	"math"
	"math/rand/v2"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/num"
)

// chooser makes the choices of Sampled mode: it gives each float result one of the values
// that an engine may give it. The technique is Monte Carlo arithmetic (Parker, 1997): what
// differs between runs with different seeds shows how much of a result depends on rounding.
type chooser struct {
	rng    *rand.Rand
	strict bool // every operation rounds to its type
	tf32   bool // operands of products in f32 may be rounded to tf32
	policy int  // how intermediate values are rounded
	fused  int  // whether a product that overflows f64 is part of a multiply-add: always, by chance, or never
	skips  int  // whether terms with a weight of zero are left out: always, by chance, or never
	moves  int  // whether sums are multiplied by the common factors of their terms afterwards: never, by chance, or always
	folds  folding
	lean   float64 // all roundings of a value go up (1) or down (-1), as those of sums of equal terms do; 0 for either way
	// weights are the values made of exponentials, such as the weights of a softmax. An engine need not read what
	// has a weight of zero.
	weights map[*ir.Value]bool
}

// Policies for intermediate values: all are rounded as registers hold them, all as memory holds them, or none; all
// as in registers, but the last value of an expression as in memory; or each by chance, with the remaining numbers.
const (
	inRegisters = iota
	inMemory
	unrounded
	toMemory
	byChance
	policies = byChance + 2
)

// begin chooses how an engine might compute the next value of a graph. Like an engine, it makes most choices
// for all elements of the value alike, because some results, such as the order of a sort, depend on several
// elements.
func (c *chooser) begin() {
	if c == nil {
		return
	}
	c.policy, c.fused, c.skips, c.moves = c.rng.IntN(policies), c.rng.IntN(3), c.rng.IntN(3), c.rng.IntN(3)
	c.folds = c.folding()
	c.lean = []float64{0, 0, 0, 0, 1, -1}[c.rng.IntN(6)]
}

func newChooser(g *ir.Graph, opts Options) *chooser {
	if opts.Mode != Sampled {
		return nil
	}
	return &chooser{rng: rand.New(rand.NewPCG(opts.Seed, 0x5a3d)), strict: g.Numerics == ir.Strict, tf32: g.TF32,
		weights: weightsOf(g)}
}

// weightsOf finds the values that are computed from exponentials, element by element.
func weightsOf(g *ir.Graph) map[*ir.Value]bool {
	out := map[*ir.Value]bool{}
	for _, v := range g.Values {
		if v.IsInput() || v.Reduce != nil {
			continue
		}
		ir.Walk(v.Body, func(e *ir.Expr) bool {
			out[v] = out[v] || e.Op == ir.OpExp || e.Op == ir.OpExp2 || e.Op == ir.OpLoad && out[e.From]
			return true
		})
	}
	return out
}

// isWeight reports whether an expression is one of a graph's weights.
func (c *chooser) isWeight(e *ir.Expr) bool {
	for e.Op == ir.OpCast {
		e = e.Args[0]
	}
	return e.Op == ir.OpLoad && c.weights[e.From]
}

// weighted is a product with a weight. A weight of zero may hide a NaN or an infinity.
func (c *chooser) weighted(t ir.DType, a, b float64) float64 {
	if v := a * b; (a == 0 || b == 0) && v != v && !c.strict && (c.skips == 0 || c.skips == 1 && c.coin()) {
		return 0
	}
	return c.product(t, a, b)
}

// leftOut is the quotient or the difference v of a and b in the weights of a softmax. A key that is left out, whose score is
// -infinity and whose weight is zero, may have a weight of zero where NaN among the scores make NaN of all others.
func (c *chooser) leftOut(a, b, hidden, v float64) float64 {
	if a == hidden && b != b && c.skips != 2 && !c.strict && (c.skips == 0 || c.coin()) {
		return hidden
	}
	return v
}

// spread is a number between -1 and 1, of one sign where roundings lean to a side.
func (c *chooser) spread() float64 {
	v := 2*c.rng.Float64() - 1
	if c.lean != 0 {
		return c.lean * math.Abs(v)
	}
	return v
}

// coin is true half of the time.
func (c *chooser) coin() bool { return c.rng.Uint64()&1 == 0 }

// ulps is how far the result of an operation may be from the exact one, in units of the
// last place of the type it is computed in. Operations that are not listed select, negate
// or round to whole numbers: they have no error of their own.
var ulps = [math.MaxUint8 + 1]float64{
	ir.OpAdd: 1, ir.OpSub: 1, ir.OpMul: 1, ir.OpDiv: 4, ir.OpMod: 4, ir.OpSqrt: 4, ir.OpRsqrt: 4, ir.OpRecip: 4,
	ir.OpPow: 32, ir.OpExp: 8, ir.OpExp2: 8, ir.OpExpm1: 8, ir.OpLog: 8, ir.OpLog2: 8, ir.OpLog10: 8, ir.OpLog1p: 8,
	ir.OpErf: 8, ir.OpErfc: 16, ir.OpSin: 8, ir.OpCos: 8, ir.OpTan: 16, ir.OpAsin: 8, ir.OpAcos: 8, ir.OpAtan: 8,
	ir.OpAtan2: 8, ir.OpSinh: 8, ir.OpCosh: 8, ir.OpTanh: 8, ir.OpAsinh: 8, ir.OpAcosh: 8, ir.OpAtanh: 8,
}

// rounds reports the operations whose only error is one rounding, so that they are exact
// where their result is a number of the type.
func rounds(op ir.Op) bool { return op == ir.OpAdd || op == ir.OpSub || op == ir.OpMul }

// flushes reports the operations of fast mode that may treat subnormal numbers of f32 as zero.
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
	if moved := v * (1 + c.error(op, compute, v)); !math.IsInf(moved, 0) { // v is a number of f64, and so is what an engine gives
		v = moved
	}
	if compute == ir.F32 && flushes(op) && math.Abs(v) < 0x1p-125 && c.coin() {
		return math.Copysign(0, v)
	}
	return c.stored(t, compute, v)
}

// stored is v unrounded, as its register holds it, or as memory does.
func (c *chooser) stored(t, compute ir.DType, v float64) float64 {
	policy := c.policy
	if policy >= byChance {
		policy = c.rng.IntN(unrounded + 1)
	}
	switch policy {
	case inRegisters, toMemory:
		return num.Round(compute, v)
	case inMemory:
		return num.Round(t, v)
	}
	return v
}

// ended is the value v of a whole expression.
func (c *chooser) ended(t ir.DType, v float64) float64 {
	if c.policy == toMemory {
		return num.Round(t, v)
	}
	return v
}

// error is a relative error that op may have.
func (c *chooser) error(op ir.Op, compute ir.DType, v float64) float64 {
	if op == ir.OpMul && c.tf32 && compute == ir.F32 && !isTF32(v) { // both factors may be rounded, even if one is 1
		return c.spread() * 0x1p-10
	}
	units := ulps[op]
	if units == 0 || rounds(op) && isExact(compute, v) {
		return 0
	}
	if c.strict {
		if rounds(op) {
			return 0 // the caller rounds the result; there is no other error
		}
		units = min(units, 4)
	}
	return c.spread() * units * compute.Info().Epsilon
}

// isExact reports whether the type holds v exactly. For f64, the type of v itself, it reports
// whether v is a whole number that is surely not rounded.
func isExact(t ir.DType, v float64) bool {
	if t == ir.F64 {
		return v == math.Trunc(v) && math.Abs(v) < 1<<52
	}
	return num.Round(t, v) == v
}

// isTF32 reports whether v is a number of tf32, which has 10 fraction bits.
func isTF32(v float64) bool {
	fraction, _ := math.Frexp(v)
	return fraction*(1<<11) == math.Trunc(fraction*(1<<11))
}

// product is a product as an engine may compute it. A product that overflows may not do so in
// an engine that adds to it in the same instruction.
func (c *chooser) product(t ir.DType, a, b float64) float64 {
	const largest = 0x1.ffep127 // larger numbers do not round to a finite tf32
	if c.tf32 && t.Info().Compute == ir.F32 && (math.Abs(a) >= largest || math.Abs(b) >= largest) && c.coin() {
		a, b = one(math.Abs(a) >= largest, a*math.Inf(1), a), one(math.Abs(b) >= largest, b*math.Inf(1), b)
	}
	v := a * b
	if math.IsInf(v, 0) && !math.IsInf(a, 0) && !math.IsInf(b, 0) && !c.strict && (c.fused == 0 || c.fused == 1 && c.coin()) {
		return math.Copysign(math.MaxFloat64, v)
	}
	return v
}

// extremum is v, the larger or the smaller of a and b, as an engine may compute it: of two zeros it may take
// either.
func (c *chooser) extremum(v, a, b float64) float64 {
	if a == 0 && b == 0 {
		return one(c.coin(), a, b)
	}
	return v
}

// loaded is a computed value as a reader may see it. One reader reads it from memory, rounded; another computes
// it again, perhaps with other instructions.
func (c *chooser) loaded(t ir.DType, v float64) float64 {
	if v-v != 0 || c.strict {
		return v
	}
	switch c.rng.IntN(4) {
	case 0:
		return num.Round(t, v)
	case 1, 2:
		if v != math.Trunc(v) {
			return v * (1 + c.spread()*t.Info().Compute.Info().Epsilon)
		}
	}
	return v
}

func one(first bool, a, b float64) float64 {
	if first {
		return a
	}
	return b
}
