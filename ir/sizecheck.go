package ir

import (
	"fmt"
	"strings"
)

// SizeCheck is a condition on the symbols that is checked before a run.
type SizeCheck struct {
	Cond  Size
	Why   string // what the program needs
	Where string // file:line:column of what needs it; "" where nothing is known
}

// SizeCheckOf compiles a constraint; position is that of the symbols in the list of
// the program's symbols.
func SizeCheckOf(c Constraint, position map[string]int) SizeCheck {
	check := SizeCheck{Cond: SizeOf(c.Cond, position), Why: c.Why}
	if !c.Span.IsZero() {
		check.Where = c.Span.String()
	}
	return check
}

// Check returns an error where the condition does not hold for the symbol values
// that Bind found. It names the dimensions that gave the symbols their values.
func (c *SizeCheck) Check(symbols []string, declared []Declared, values []int64) error {
	if v, ok := c.Cond.Eval(values); ok && v != 0 {
		return nil
	}
	place := ""
	if c.Where != "" {
		place = " at " + c.Where
	}
	return fmt.Errorf("sizes do not fit%s: %s; found %s", place, c.Why, c.found(symbols, declared, values))
}

// found spells the symbols of the condition, each with the dimension it was read from.
func (c *SizeCheck) found(symbols []string, declared []Declared, values []int64) string {
	b := rebind(symbols, declared, values)
	seen := map[int64]bool{}
	var parts []string
	for _, step := range c.Cond {
		if step.Op != OpSym || seen[step.Val] {
			continue
		}
		seen[step.Val] = true
		part := fmt.Sprintf("%s=%d", symbols[step.Val], values[step.Val])
		if b.source[step.Val] != "" {
			part += " in " + b.source[step.Val]
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, ", ")
}

// rebind finds again from which dimensions Bind read the symbols.
func rebind(symbols []string, declared []Declared, values []int64) *binder {
	b := newBinder(symbols)
	for _, d := range declared {
		for axis, size := range d.Shape {
			if found, ok := size.Eval(values); ok {
				b.dims = append(b.dims, boundDim{d.Name, axis, size, found})
			}
		}
	}
	_, _ = b.bind() // these values were bound before, so there is no error; only their sources are needed
	return b
}
