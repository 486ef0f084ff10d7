package main

import (
	"fmt"
	"strings"

	"github.com/fusec/fusec/fuse/explain"
)

// Kernels that are not of the program: they prepare operands of products, as copies in another order or as terms of bf16.

// prepared says what such kernels are for.
func (p *page) prepared() {
	var terms, copies []string
	for _, i := range p.running() {
		switch k := p.x.Kernels[i]; {
		case len(k.Terms) > 0:
			terms = append(terms, p.label(i))
		case k.Copies != nil && k.Copies.Inserted:
			copies = append(copies, p.label(i))
		}
	}
	var said []string
	if len(terms) > 0 {
		said = append(said, byNumber(terms, "writes", "write")+" f32 as terms of bf16: tensor cores multiply the terms, and the sum of their products is as exact as a product of f32.")
	}
	if len(copies) > 0 && p.x.Fused.Kernels > p.x.Unfused.Kernels {
		said = append(said, byNumber(copies, "copies", "copy")+" operands to an order in which the product reads them faster.")
	}
	if len(said) > 0 {
		p.ui.printf("%s\n\n", strings.Join(wrap(strings.Join(said, " "), p.ui.width()), "\n"))
	}
}

// byNumber names kernels by their numbers, with what one or several of them do.
func byNumber(numbers []string, one, several string) string {
	last := len(numbers) - 1
	if last == 0 {
		return "Kernel " + numbers[0] + " " + one
	}
	return "Kernels " + strings.Join(numbers[:last], ", ") + " and " + numbers[last] + " " + several
}

// termsText names what a kernel splits into terms of bf16.
func termsText(k explain.KernelNote, name func(string) string) string {
	text := "bf16 terms"
	for i, of := range k.Terms {
		if of = name(of); of == "" {
			of = "an operand"
		}
		text += []string{" of ", ", "}[min(i, 1)] + of
	}
	return text
}

// copies says what a kernel without operations copies, the line of the program, and what that calls the copy or reads it for.
func (p *page) copies(c *explain.CopyNote) (lines, text string) {
	text = copyText(c, p.words)
	if c.Span.IsZero() {
		return "", text
	}
	lines = fmt.Sprint(c.Span.Start.Line)
	if c.Inserted {
		return lines, text + ", for " + p.spanText(c.Span.Span)
	}
	return lines, p.spanText(c.Span.Span) + ": " + text
}

// copyText names what is copied, in names of the program or in those of the plan.
func copyText(c *explain.CopyNote, name func(string) string) string {
	if len(c.Of) == 0 {
		return "constants"
	}
	text := "a copy"
	for i, of := range c.Of {
		text += []string{" of ", ", "}[min(i, 1)] + name(of)
	}
	if c.Layout != "" {
		text += ", " + c.Layout
	}
	return text
}
