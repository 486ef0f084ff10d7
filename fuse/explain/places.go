package explain

import (
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/diag"
)

// parts are where values come from, by name.
func (x *explainer) parts(values []*ir.Value) map[string]Part {
	out := map[string]Part{}
	for _, v := range values {
		part := Part{Span: x.places[v]}
		if v.Reduce != nil && v.Origin.Call != "" {
			part.Is = v.Reduce.Op.String()
		}
		out[v.Name] = part
	}
	return out
}

// placesOf is where values come from. An operand that is a value of its own may come from the same place as what reads it, as
// f(x) of f(x) @ w: it is then where the last of its own operations stands.
func placesOf(values []*ir.Value) map[*ir.Value]diag.Span {
	out, users := map[*ir.Value]diag.Span{}, map[diag.Span]int{}
	for _, v := range values {
		users[v.Origin.Span]++
	}
	for _, v := range values {
		at := v.Origin.Span
		if users[at] > 1 && v.Reduce == nil && !v.IsInput() {
			for _, e := range computing(v.Body, map[uint64]bool{}) { // the outermost first
				if s := e.Span; within(s, at) {
					at = s
					break
				}
			}
		}
		out[v] = at
	}
	return out
}

// within reports whether a place is a part of another.
func within(part, whole diag.Span) bool {
	return !part.IsZero() && part != whole && part.Start.Filename == whole.Start.Filename &&
		part.Start.Offset >= whole.Start.Offset && part.End.Offset <= whole.End.Offset
}
