package codegen

import (
	"slices"

	"github.com/fusec/fusec/ir"
)

// A division by a size takes a tenth of a microsecond, and before their first read threads have nothing
// to hide it behind. If the size depends only on symbols, the host computes a factor with which the
// kernel multiplies instead. Each such size is one more argument of the kernel.

// divisor is a size that the text divides by.
type divisor struct {
	name, factor string   // name of the size with its factor, and of the argument
	text         string   // text of the size, with the schedule's macros
	size         *ir.Expr // the size for this schedule
}

// divisorOf is the text of a divisor of positions, which are not negative: a size, with its factor if that
// is an argument. Each size has its own name.
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

// takesFactors reports whether the threads of the kernel compute few positions each, in its own text.
func (e *emitter) takesFactors() bool {
	return e.hostDivides && e.k.LastBlock == nil && e.block == "blockIdx.x"
}
