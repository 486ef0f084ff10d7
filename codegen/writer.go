package codegen

import (
	"fmt"
	"strings"

	"github.com/fusec/fusec/ir/diag"
)

// writer builds indented text.
type writer struct {
	b      strings.Builder
	indent int
}

func (w *writer) line(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if text != "" && text[0] != '#' {
		w.b.WriteString(strings.Repeat("    ", w.indent))
	}
	w.b.WriteString(text)
	w.b.WriteByte('\n')
}

// noted writes a line with the place in the program that it comes from.
func (w *writer) noted(span diag.Span, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if !span.IsZero() {
		text += fmt.Sprintf(" // %s", span)
	}
	w.line("%s", text)
}

func (w *writer) open(format string, args ...any) {
	w.line("%s", strings.TrimLeft(fmt.Sprintf(format, args...)+" {", " "))
	w.indent++
}

// aside returns what body writes, indented by one step, instead of writing it.
func (w *writer) aside(body func()) string {
	before := w.b.String()
	w.b.Reset()
	w.indent++
	body()
	w.indent--
	text := w.b.String()
	w.b.Reset()
	w.b.WriteString(before)
	return text
}

func (w *writer) close() { w.closeWith("") }

// closeWith is close with text after the brace.
func (w *writer) closeWith(text string) {
	w.indent--
	w.line("}%s", text)
}

// orElse ends the current branch and opens the other.
func (w *writer) orElse() {
	w.indent--
	w.open("} else")
}

// unrolled writes an unrolled loop of a variable from 0 to below count around body.
func (w *writer) unrolled(variable, count string, body func()) {
	w.line("#pragma unroll")
	w.open("for (int %[1]s = 0; %[1]s < %[2]s; ++%[1]s)", variable, count)
	body()
	w.close()
}
