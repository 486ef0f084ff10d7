package parser

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fusec/fusec/ir"
)

// equalWhere says under which condition two sizes are the same that may differ, or how to do
// without: "" where nothing is known.
func equalWhere(x, y *ir.Expr) string {
	facts := ir.Facts{Divisible: map[string]int64{}}
	var conditions []string
	var quotient *ir.Expr // of sizes that no condition can say of that they divide
	for _, e := range []*ir.Expr{x, y} {
		ir.Walk(e, func(e *ir.Expr) bool {
			if e.Op != ir.OpFloorDiv || e.Args[0].Op != ir.OpSym {
				return true
			}
			name, by := e.Args[0].Name, e.Args[1]
			switch {
			case by.Op != ir.OpConst:
				quotient = e
			case facts.Divisible[name] == 0 && by.Int > 1:
				facts.Divisible[name] = by.Int
				conditions = append(conditions, fmt.Sprintf(`require(%s %% %d == 0, "...")`, name, by.Int))
			}
			return true
		})
	}
	if len(conditions) > 0 && ir.SameIndex(x, y, facts) {
		return ": " + strings.Join(conditions, " and ") + " says that they do not"
	}
	if quotient != nil {
		return fmt.Sprintf(": index it instead, as in y[i] = a[i] + b[i / (%s)]", sizeText(quotient))
	}
	return ""
}

// lackedAxis says how to give one of two operands the axis that the other has more, as where it
// was reduced; "" where that would not make them fit.
func lackedAxis(arrays []*array) string {
	if len(arrays) != 2 {
		return ""
	}
	long, short := arrays[0].shape, arrays[1].shape
	if len(long) < len(short) {
		long, short = short, long
	}
	if len(long) != len(short)+1 {
		return ""
	}
	for d := range long {
		rest := slices.Delete(slices.Clone(long), d, d+1)
		if slices.EqualFunc(rest, short, func(x, y *ir.Expr) bool { return ir.SameIndex(x, y, ir.Facts{}) }) {
			return fmt.Sprintf(": keep=true leaves an axis of 1 where one is reduced, and unsqueeze(..., %d) adds one", d)
		}
	}
	return ""
}

// splitAxis says how to give one of two operands the shape of the other, where it has as many elements behind the axes that
// both have: as heads of which it has one axis and the other two. "" where that would not make them fit.
func splitAxis(arrays []*array) string {
	if len(arrays) != 2 {
		return ""
	}
	long, short := arrays[0].shape, arrays[1].shape
	if len(long) < len(short) {
		long, short = short, long
	}
	if len(long) == len(short) || len(short) == 0 {
		return ""
	}
	whole, ok := product(long)
	parts, too := product(short)
	if !ok || !too || !ir.SameIndex(whole, parts, ir.Facts{}) {
		return ""
	}
	sizes := make([]string, len(long))
	for i, s := range long {
		sizes[i] = sizeText(s)
	}
	return fmt.Sprintf(": reshape(..., %s) gives the other that shape", strings.Join(sizes, ", "))
}

// otherName says how to declare the sizes that name a symbol so that they determine it. naming
// are the sizes that name each symbol.
func otherName(symbol string, naming map[string][]*ir.Expr) string {
	for _, s := range naming[symbol] {
		switch {
		case s.Op == ir.OpFloorDiv && s.Args[0].Op == ir.OpSym && s.Args[0].Name == symbol:
			return fmt.Sprintf(": call this axis %s, and write %s * %s for what is %s now", symbol, sizeText(s.Args[1]), symbol, symbol)
		case s.Op == ir.OpFloorDiv && s.Args[1].Op == ir.OpSym && s.Args[1].Name == symbol && s.Args[0].Op == ir.OpSym &&
			determined(s.Args[0].Name, naming[s.Args[0].Name]):
			return fmt.Sprintf(": give this axis a name of its own, as W, and write %s / W for %s", s.Args[0].Name, symbol)
		case s.Op == ir.OpMul:
			rest := factorBeside(s, symbol)
			if rest == "" || !determined(rest, naming[rest]) {
				continue
			}
			return fmt.Sprintf(": give this axis a name of its own, as W, and write W / %s for %s", rest, symbol)
		}
	}
	return fmt.Sprintf(": expected an input axis of size %s, or of a*%s + b", symbol, symbol)
}

// factorBeside is the other factor of a product of a symbol; "" where the size is none.
func factorBeside(product *ir.Expr, symbol string) string {
	for i, a := range product.Args {
		if other := product.Args[1-i]; a.Op == ir.OpSym && a.Name == symbol && other.Op == ir.OpSym {
			return other.Name
		}
	}
	return ""
}

// unknownSize words a name that can only be a size: names of sizes are in capitals.
func (b *builder) unknownSize(name string) string {
	if name == "" || name[0] < 'A' || name[0] > 'Z' || len(b.g.Symbols) == 0 {
		return ""
	}
	var names []string
	for _, s := range b.g.Symbols {
		names = append(names, s.Name)
	}
	return fmt.Sprintf("as a size, nothing determines it: no axis of an input has it, the sizes are %s: for a number, write const %s = 8 above the graph",
		strings.Join(names, ", "), name)
}
