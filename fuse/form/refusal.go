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

// Shape lists the extents of ranges as a type does: [N, 64]. Messages name loops by their extents, because few
// loops have names in the program.
func Shape(ranges []*ir.Range) string {
	var extents []string
	for _, r := range ranges {
		extents = append(extents, r.Extent.String())
	}
	return "[" + strings.Join(extents, ", ") + "]"
}

// WrittenAnyway refuses to keep a value out of memory because it is written anyway: for reader, or, if reader is nil,
// as a result of the graph.
func WrittenAnyway(span diag.Span, v, reader *ir.Value) *Refusal {
	if reader == nil {
		return Refuse(ir.ReasonWritten, span, "%s is a result of the graph, so it is written in any case", v.Name)
	}
	return Refuse(ir.ReasonWritten, span, "%s reads %s too, so it is written in any case", reader.Name, v.Name)
}
