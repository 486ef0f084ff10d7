package explain

import (
	"slices"

	"github.com/fusec/fusec/ir"
)

// Kernels that compute nothing of the program: they copy values, mostly to a layout in which something else reads them better, or
// split f32 into terms of bf16, which tensor cores multiply.

// copyNote describes what members without operations copy.
func (x *explainer) copyNote(members []*ir.Value) *CopyNote {
	out := &CopyNote{Of: []string{}}
	for _, v := range members {
		for _, load := range v.Loads() {
			if !slices.Contains(members, load.From) && !slices.Contains(out.Of, load.From.Name) {
				out.Of = append(out.Of, load.From.Name)
				out.Layout = layoutText(v, load)
			}
		}
		out.Span = Place{x.places[v]}
		if reader := x.readers[v]; reader != nil && !x.places[reader].IsZero() {
			out.Span, out.Inserted = Place{x.places[reader]}, true
		}
	}
	if len(out.Of) > 1 {
		out.Layout = ""
	}
	return out
}

// TermsOperation is the name of splitting f32 into terms of bf16.
const TermsOperation = "bf16 terms"

// splitsIntoTerms reports whether a value holds the terms of numbers of f32, and is no copy of such terms.
func splitsIntoTerms(v *ir.Value) bool { return v.Parts && v.Body.Op != ir.OpLoad }

// readsTerm reports whether an operation only widens a term, which is multiplied as it is.
func readsTerm(e *ir.Expr) bool {
	return e.Op == ir.OpCast && e.Args[0].Op == ir.OpLoad && e.Args[0].From.Parts
}

// termsOf are the numbers that members split into terms: the tensors, or "" for numbers that are computed. It is nil where
// members split none.
func termsOf(members []*ir.Value) (of []string) {
	for _, v := range members {
		if !splitsIntoTerms(v) {
			continue
		}
		name := ""
		if plain := !slices.ContainsFunc(computing(v.Body, map[uint64]bool{}), func(e *ir.Expr) bool { return !e.Span.IsZero() }); plain {
			name = v.Loads()[0].From.Name
		}
		if !slices.Contains(of, name) {
			of = append(of, name)
		}
	}
	return of
}

// readersOf are the first readers of the values of a plan that are not in the program.
func readersOf(g *ir.Graph, values []*ir.Value) map[*ir.Value]*ir.Value {
	written := map[string]bool{}
	for _, v := range g.Values {
		written[v.Name] = true
	}
	out := map[*ir.Value]*ir.Value{}
	for _, v := range values {
		for _, load := range v.Loads() {
			if from := load.From; !written[from.Name] && out[from] == nil {
				out[from] = v
			}
		}
	}
	return out
}

// layoutText says in which order a value has the elements of what it loads: "channels last" where axis 1 is the last,
// "transposed" for other orders, "" where the order stays or more than the order differs.
func layoutText(v *ir.Value, load *ir.Expr) string {
	var order []int // the axis of the copy for each axis of what is loaded
	for _, at := range load.Args {
		if at.Op != ir.OpRange {
			return ""
		}
		order = append(order, slices.Index(v.Axes, at.Range))
	}
	switch {
	case slices.Contains(order, -1) || slices.IsSorted(order):
		return ""
	case len(order) > 2 && order[0] == 0 && order[1] == len(order)-1 && slices.IsSorted(order[2:]):
		return "channels last"
	}
	return "transposed"
}
