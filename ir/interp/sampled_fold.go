package interp

import (
	"cmp"
	"math"
	"slices"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/num"
)

// reach says what happens to a sum or a product whose partial results leave the range of its
// type.
type reach uint8

const (
	wide   reach = iota // no partial result leaves the range: in some order large and small terms meet early
	narrow              // partial results become infinite or vanish
	loose               // near the end of the range: the exact result, infinite, or NaN
	numReaches
)

// folding is how an engine might fold terms.
type folding struct {
	any     bool // each element is folded in its own way
	reach   reach
	order   int  // of the terms
	parts   int  // that are folded separately first, as by threads
	strided bool // whether each part has every parts-th term, or a run of terms
}

// folding draws a random way to fold. Orders are random ones half of the time: a rounding that only one pair of terms has
// shows where this pair meets first.
func (c *chooser) folding() folding {
	return folding{any: c.rng.IntN(3) == 0, reach: reach(c.rng.IntN(int(numReaches))), order: []int{0, 1, 2, 2, 2, 3}[c.rng.IntN(6)],
		parts: []int{1, 1, 2, 4, 32}[c.rng.IntN(5)], strided: c.coin()}
}

// fold is a sum, product, maximum or minimum of terms in type t, as an engine may compute it;
// start is the result for no terms.
func (c *chooser) fold(op ir.Op, t ir.DType, start float64, terms []float64) float64 {
	how := c.folds
	if how.any {
		how = c.folding()
	}
	c.reorder(how.order, terms)
	if how.reach == wide {
		return c.signed(op, c.cancelled(op, t, c.wide(op, t, start, terms), terms))
	}
	acc, parts := start, min(how.parts, max(len(terms), 1))
	for p := range parts {
		sum := start
		for i := range len(terms) {
			if how.strided && i%parts == p || !how.strided && i*parts/len(terms) == p {
				sum = c.step(op, t, how.reach, sum, terms[i])
			}
		}
		if p == 0 {
			acc = sum
		} else {
			acc = c.step(op, t, how.reach, acc, sum)
		}
	}
	return c.signed(op, c.cancelled(op, t, acc, terms))
}

// cancelled is v, the sum of terms, or zero if v is smaller than a rounding of one of the terms: in some
// order the terms may cancel exactly.
func (c *chooser) cancelled(op ir.Op, t ir.DType, v float64, terms []float64) float64 {
	if op != ir.OpAdd || v == 0 || v-v != 0 {
		return v
	}
	rounding := 0.0
	for _, term := range terms {
		rounding += math.Abs(term) * t.Info().Epsilon
	}
	if math.Abs(v) < rounding && c.coin() {
		return 0
	}
	return v
}

// signed is a sum as an engine may compute it: a sum of negative zeros may be positive, because it
// may begin with 0.
func (c *chooser) signed(op ir.Op, v float64) float64 {
	if op == ir.OpAdd && v == 0 && c.coin() {
		return -v
	}
	return v
}

// reorder puts terms into an order in which an engine might fold them: their own order, a
// random one, or one of two orders that show whether the result depends on it. These have the
// large terms first, where they overflow before smaller terms of the other sign are added, or
// last.
func (c *chooser) reorder(order int, terms []float64) {
	switch order {
	case 0:
		slices.SortFunc(terms, func(a, b float64) int { return cmp.Compare(math.Abs(b), math.Abs(a)) })
	case 1:
		slices.SortFunc(terms, func(a, b float64) int { return cmp.Compare(math.Abs(a), math.Abs(b)) })
	case 2:
		c.rng.Shuffle(len(terms), func(i, j int) { terms[i], terms[j] = terms[j], terms[i] })
	}
}

// step combines a running value with a term.
func (c *chooser) step(op ir.Op, t ir.DType, how reach, old, term float64) float64 {
	v := op.Info().Float(old, term, 0)
	if ulps[op] == 0 {
		return c.extremum(v, old, term)
	}
	if how == loose && old-old == 0 && term-term == 0 && math.Abs(v) > t.Info().Max/4 {
		return c.overflowed(t, v)
	}
	if v = c.rounded(op, t, v, term); how == narrow {
		return num.Round(t, v)
	}
	return v
}

// rounded is v, the exact result of combining a running value with term, with an error that
// another order may cause. The error of a sum is in units of the last place of v and of term.
func (c *chooser) rounded(op ir.Op, t ir.DType, v, term float64) float64 {
	if v-v != 0 || isExact(t, v) && isExact(t, term) {
		return v
	}
	if op == ir.OpMul {
		return v * (1 + 2*c.spread()*t.Info().Epsilon)
	}
	return v + c.spread()*t.Info().Epsilon*(math.Abs(v)+math.Abs(term))
}

// wide folds terms with room beyond the range of all types.
func (c *chooser) wide(op ir.Op, t ir.DType, start float64, terms []float64) float64 {
	switch op {
	case ir.OpAdd:
		return c.wideSum(t, start, terms)
	case ir.OpMul:
		return c.wideProduct(t, start, terms)
	}
	for _, term := range terms {
		start = c.step(op, t, wide, start, term)
	}
	return start
}

// wideSum adds terms; where they are near the end of the range of float64, parts of them.
func (c *chooser) wideSum(t ir.DType, start float64, terms []float64) float64 {
	scale := 1.0
	for _, term := range terms {
		if math.Abs(term) > 0x1p960 {
			scale = 0x1p-64
		}
	}
	sum := start * scale
	for _, term := range terms {
		sum = c.rounded(ir.OpAdd, t, sum+term*scale, term*scale)
	}
	return sum / scale
}

// wideProduct multiplies terms, with an exponent of its own.
func (c *chooser) wideProduct(t ir.DType, start float64, terms []float64) float64 {
	fraction, exponent := math.Frexp(start)
	for _, term := range terms {
		f, e := math.Frexp(fraction * term) // one of the two factors is less than 1
		exponent += e
		if v := math.Ldexp(f, exponent); isExact(t, v) && isExact(t, term) {
			fraction = f
			continue
		}
		fraction = c.rounded(ir.OpMul, t, f, term)
	}
	return math.Ldexp(fraction, exponent)
}

// overflowed is a possible result of a sum that leaves the range of its type in some order. In
// another order it stays inside, and if infinite partial sums are subtracted it is NaN.
func (c *chooser) overflowed(t ir.DType, v float64) float64 {
	switch c.rng.IntN(3) {
	case 0:
		return math.Copysign(t.Info().Max/2, v)
	case 1:
		return math.NaN()
	}
	return math.Copysign(math.Inf(1), v)
}
