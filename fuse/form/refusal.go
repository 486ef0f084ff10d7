package form

import (
	"fmt"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/diag"
)

// Refusal is why two regions are not merged.
type Refusal struct {
	Reason ir.Reason
	Detail string
	Span   diag.Span
}

// Refuse makes a refusal, with the reason in the user's words.
func Refuse(reason ir.Reason, span diag.Span, format string, args ...any) *Refusal {
	return &Refusal{reason, fmt.Sprintf(format, args...), span}
}

// Names lists ranges with their extents, for messages.
func Names(ranges []*ir.Range) string {
	s := ""
	for i, r := range ranges {
		if i > 0 {
			s += ", "
		}
		s += fmt.Sprintf("%s: %s", r.Name, r.Extent)
	}
	return s
}
