package fuse

import (
	"slices"

	"github.com/fusec/fusec/ir"
)

// Multiples that sizes are assumed or required to be, by the names of symbols.

// multiplesIn makes every symbol in the expressions a multiple of n.
func multiplesIn(n int64, exprs ...*ir.Expr) map[string]int64 {
	out := map[string]int64{}
	for _, e := range exprs {
		ir.Walk(e, func(e *ir.Expr) bool {
			if e.Op == ir.OpSym {
				out[e.Name] = n
			}
			return true
		})
	}
	return out
}

// with returns the facts for sizes that are the given multiples too. The map of the facts
// given stays as it is.
func with(facts ir.Facts, multiples map[string]int64) ir.Facts {
	facts.Divisible = joinDivisible(facts.Divisible, multiples)
	return facts
}

// wholeProduct returns the facts with a range's extent a multiple of n: as a product where it
// is one, as of the height and the width of an image; ok is false where it is none.
func wholeProduct(facts ir.Facts, extent *ir.Expr, n int64) (_ ir.Facts, ok bool) {
	if len(multiplesIn(n, extent)) < 2 {
		return facts, false
	}
	if ir.Multiple(extent, n, facts) {
		return facts, true
	}
	facts.Multiples = append(slices.Clone(facts.Multiples), ir.MultipleOf{Size: extent, By: n})
	return facts, true
}

// promised is what holds for the sizes that a variant takes.
func (lo *lowering) promised(v *ir.Variant) ir.Facts {
	facts := with(lo.facts(), v.Facts.Divisible)
	facts.Multiples = v.Facts.Multiples
	return facts
}

// positive is what holds where tiles are computed: no range is empty.
func (lo *lowering) positive() ir.Facts {
	f := lo.f.g.Facts()
	f.Positive = true
	return f
}

func joinDivisible(a, b map[string]int64) map[string]int64 {
	out := map[string]int64{}
	for _, m := range []map[string]int64{a, b} {
		for name, n := range m {
			out[name] = lcm(out[name], n)
		}
	}
	return out
}

func lcm(a, b int64) int64 {
	if a <= 1 {
		return b
	}
	g := a
	for r := b; r != 0; {
		g, r = r, g%r
	}
	return a / g * b
}
