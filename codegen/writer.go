package codegen

import (
	"fmt"
	"strings"

	"github.com/fusec/fusec/ir"
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

// noted is a line with the place in the program it comes from.
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

func (w *writer) close() {
	w.indent--
	w.line("}")
}

// reserved are names a variable must not take: keywords and what the prelude and
// the kernels' own skeleton define.
var reserved = map[string]bool{}

func init() {
	for _, word := range strings.Fields(`auto bool break case char class const constexpr continue default delete do
		double else enum explicit extern false float for friend goto if inline int long mutable namespace new operator
		private protected public register return short signed sizeof static struct switch template this throw true try
		typedef typename union unsigned using virtual void volatile while asm and or not xor bf16 f16 f8e4m3 f8e5m2
		INDEX THREADS VECTOR ROW_THREADS ITEMS DEVICE Vec Sum Prod Max Min Any All At ArgMax ArgMin load store pack
		row col lane group live t u v n base cols rows step first exp log sin cos tan min max abs floor ceil round pow
		infinity index char half main near far small signbit y0 y1 j0 j1 jn yn gamma erf`) {
		reserved[word] = true
	}
}

// identifier makes a C name of a name of the program.
func identifier(name string) string {
	var b strings.Builder
	for i, c := range name {
		switch {
		case c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || i > 0 && c >= '0' && c <= '9':
			b.WriteRune(c)
		default:
			b.WriteByte('_')
		}
	}
	if text := b.String(); !reserved[text] {
		return text
	}
	return b.String() + "_"
}

// namer hands out unique names.
type namer map[string]int

func (n namer) fresh(name string) string {
	name = identifier(name)
	for {
		n[name]++
		if n[name] == 1 {
			return name
		}
		name = fmt.Sprintf("%s_%d", name, n[name])
	}
}

// readOf returns the read that a definition is, or is a cast of.
func readOf(e *ir.Expr) *ir.Expr {
	if e != nil && e.Op == ir.OpCast {
		e = e.Args[0]
	}
	if e != nil && e.Op == ir.OpRead {
		return e
	}
	return nil
}
