package form

import (
	"fmt"
	"strings"

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

// Shape lists the extents of ranges as a type has them: [N, 64]. In messages loops go by their extents, because
// the program names few of them.
func Shape(ranges []*ir.Range) string {
	var extents []string
	for _, r := range ranges {
		extents = append(extents, r.Extent.String())
	}
	return "[" + strings.Join(extents, ", ") + "]"
}

// WrittenAnyway refuses to keep a value out of memory that goes there for another reason: reader, or the graph, whose
// result it is where reader is nil.
func WrittenAnyway(span diag.Span, v, reader *ir.Value) *Refusal {
	if reader == nil {
		return Refuse(ir.ReasonWritten, span, "%s is a result of the graph, so it is written in any case", v.Name)
	}
	return Refuse(ir.ReasonWritten, span, "%s reads %s too, so it is written in any case", reader.Name, v.Name)
}
