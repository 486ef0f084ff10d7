package fuse

import (
	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/ir"
)

// Multiples that sizes are assumed or required to be, by the names of symbols.

// promised is what holds for the sizes that a variant takes.
func (lo *lowering) promised(v *ir.Variant) ir.Facts {
	facts := algebra.Assuming(lo.facts(), v.Facts.Divisible)
	facts.Multiples = v.Facts.Multiples
	return facts
}

// positive is what holds where tiles are computed: no range is empty.
func (lo *lowering) positive() ir.Facts {
	f := lo.f.g.Facts()
	f.Positive = true
	return f
}
