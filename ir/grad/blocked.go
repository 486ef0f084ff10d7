package grad

import (
	"fmt"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/diag"
)

// Blocked is the error for an input on which no result depends in a way that has a derivative.
type Blocked struct {
	Input string
	Type  ir.DType  // of the input
	At    *ir.Value // the value through which the results depend on the input, but with a derivative of 0; nil if they do not depend on it
	Span  diag.Span // of the operation in it that has no derivative, or of the value
}

func (b *Blocked) Error() string {
	switch {
	case !b.Type.IsFloat():
		return fmt.Sprintf("there is no derivative by %s, which is %s: only floats have one", b.Input, b.Type)
	case b.At == nil:
		return fmt.Sprintf("no result depends on %s", b.Input)
	}
	return fmt.Sprintf("no result depends on %s by operations that have a derivative: its derivative would be 0 everywhere", b.Input)
}

// blocked makes the error for an input.
func (p *pass) blocked(w *ir.Value, values []*ir.Value) error {
	at, span := blocker(w, values, p.activeBy(values, []*ir.Value{w}))
	return &Blocked{Input: w.Name, Type: w.Type, At: at, Span: span}
}

// blocker finds the last value that depends on the input but has no derivative: it is not
// active, but reads a value that is.
func blocker(input *ir.Value, values []*ir.Value, active map[*ir.Value]bool) (at *ir.Value, span diag.Span) {
	depends := map[*ir.Value]bool{input: true}
	for _, v := range values {
		for _, l := range v.Loads() {
			if depends[l.From] {
				depends[v] = true
				if !active[v] && at == nil {
					at, span = v, blocking(v, l)
				}
			}
		}
	}
	return at, span
}

// blocking is the place of the innermost operation on a read that has no derivative.
func blocking(v *ir.Value, load *ir.Expr) (span diag.Span) {
	span = v.Origin.Span
	ir.Walk(v.Body, func(e *ir.Expr) bool {
		r := rules[e.Op]
		none := r == constant || e.Op == ir.OpCast && !e.Type.IsFloat()
		if none && !e.Span.IsZero() && ir.Contains(e, func(part *ir.Expr) bool { return part == load }) {
			span = e.Span
		}
		return true
	})
	return span
}
