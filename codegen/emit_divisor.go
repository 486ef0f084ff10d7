package codegen

import (
	"slices"

	"github.com/fusec/fusec/ir"
)

// A division by a size takes a tenth of a microsecond, of which few threads have nothing to hide
// behind ahead of their first read. Where the size depends on nothing but symbols, the host
// computes what makes a product of it: an argument of the kernel for each.

// divisor is a size that the text divides by.
type divisor struct {
	name, factor string   // of the size with its factor, and of the argument
	text         string   // the size as the text has it, with the schedule's macros
	size         *ir.Expr // and for this schedule
}

// divisorOf is what positions, which are not negative, are divided by: a size, written as text,
// with its factor where that is an argument; the name is to tell it by.
func (e *emitter) divisorOf(name, text string, size *ir.Expr) string {
	if size.Op == ir.OpConst || !e.takesFactors() {
		return "(" + text + ")"
	}
	at := slices.IndexFunc(e.factors, func(d divisor) bool { return d.text == text })
	if at < 0 {
		at = len(e.factors)
		d := divisor{text: text, size: size}
		d.name, d.factor = e.names.Fresh(name+"_extent"), e.names.Fresh(name+"_factor")
		e.factors = append(e.factors, d)
	}
	return e.factors[at].name
}

// takesFactors reports whether the kernel is one whose threads come to few positions each, which
// are in its own text.
func (e *emitter) takesFactors() bool {
	return e.hostDivides && e.k.LastBlock == nil && e.block == "blockIdx.x"
}
