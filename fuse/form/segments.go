package form

import "github.com/fusec/fusec/ir"

// Segments takes an expression apart that is one of several along a range, as an element of a concatenation is: parts[i] from ends[i-1] up to
// ends[i], where the first begins at 0 and the last has no end. An expression that is the same along all of the range is one part.
func Segments(e *ir.Expr, along *ir.Range) (parts, ends []*ir.Expr) {
	for {
		end := endOfFirst(e, along)
		if end == nil {
			return append(parts, e), ends
		}
		parts, ends, e = append(parts, e.Args[1]), append(ends, end), e.Args[2]
	}
}

// endOfFirst is the index along a range at which the first of two cases of an expression ends; nil where its condition is another.
func endOfFirst(e *ir.Expr, along *ir.Range) *ir.Expr {
	if e.Op != ir.OpSelect {
		return nil
	}
	cond := e.Args[0]
	if cond.Op != ir.OpLt || cond.Args[0].Op != ir.OpRange || cond.Args[0].Range != along || len(ir.FreeRanges(cond.Args[1])) > 0 || ir.Has(cond.Args[1], ir.OpLoad) {
		return nil
	}
	return cond.Args[1]
}
