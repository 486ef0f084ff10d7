package main

import (
	"fmt"
	"math"
	"strconv"

	"github.com/fusec/fusec/ir"
)

// errorText says how far off the element nearest to its limit is, and how far off unfused operations are.
func (c *comparison) errorText(t ir.DType) string {
	if !t.IsFloat() {
		return ", exactly"
	}
	text := fmt.Sprintf(": at worst %s off (%.1e of its size)", units(c.worst), c.relative)
	if c.known {
		text += fmt.Sprintf(", unfused with @strict %s", units(c.strict))
	}
	return text
}

// offText says how far off the first bad element is.
func (c *comparison) offText(t ir.DType) string {
	if !t.IsFloat() {
		return "they must be equal"
	}
	if math.IsInf(c.off, 1) {
		return "one of them is no finite number"
	}
	return fmt.Sprintf("%s apart, %s allowed", units(c.off), units(c.allowed))
}

// illText says of how many elements the check tells little.
func (c *comparison) illText() string {
	are, their := "are", "their"
	if c.illConditioned == 1 {
		are, their = "is", "its"
	}
	return fmt.Sprintf("%s %s too ill-conditioned to check: rounding operations moves results so far that more than %.0f %% of %s size is allowed",
		countOf(c.illConditioned, "element"), are, 100*illConditioned, their)
}

// toleranceText says how much the element nearest to its limit may be off, and where that comes from.
func (c *comparison) toleranceText(t ir.DType, length float64) string {
	if !t.IsFloat() {
		return ""
	}
	sums := ""
	if length > 1 {
		sums = fmt.Sprintf(" and sums of %s terms", thousands(int(min(length, math.MaxInt32))))
	}
	text := fmt.Sprintf("allowed: %.1e of its size: %s for roundings of %s%s", c.tolerance, units(c.roundings), t, sums)
	if c.known {
		what := "rounding each operation"
		if c.tf32 {
			what += ", and the factors of products to tf32,"
		}
		to := "nine in ten elements"
		if c.own {
			to = "this element"
		}
		times := roundingGap
		if c.plain {
			times *= drawnGap
		}
		text += fmt.Sprintf(" + %s, %d times what %s does to %s", units(c.drift), times, what, to)
	}
	if c.undecided > 0 {
		text += fmt.Sprintf("; %s depend on rounding alone", countOf(c.undecided, "element"))
	}
	return text
}

// units writes a number of units in the last place.
func units(n float64) string {
	switch {
	case n < 10:
		return fmt.Sprintf("%.2g ulp", n)
	case n < 1e6:
		return fmt.Sprintf("%.0f ulp", n)
	}
	return fmt.Sprintf("%.1e ulp", n)
}

// thousands writes a number with a comma between groups of three digits.
func thousands(n int) string {
	text := strconv.Itoa(n)
	for at := len(text) - 3; at > 0 && text[at-1] != '-'; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}

// countOf is count with the number in groups of three digits.
func countOf(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return thousands(n) + " " + plural(thing)
}
