package lsp

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/fusec/fusec/parser"
)

// builtins are the functions of the library and of the language, by name; some names
// have several.
var builtins = sync.OnceValue(func() map[string][]parser.FuncDoc {
	out := map[string][]parser.FuncDoc{}
	library, err := parser.Library()
	if err != nil {
		panic("BUG: " + err.Error())
	}
	for _, d := range append(parser.Builtins(), library...) {
		out[d.Name] = append(out[d.Name], d)
	}
	return out
})

// annotations are those of graphs, with what they mean.
var annotations = map[string]string{
	"onekernel": "what cannot be fused into one kernel is an error, with the reason",
	"fast":      "the default numerics: roundings inside a kernel may be others",
	"strict":    "every operation rounds to its dtype, as written, and an index that is outside is an error",
	"tf32":      "products of f32 may use the tensor cores' tf32",
	"bench":     "sizes for `fusec run` where none are given, and for estimates: `@bench(N=8192)`",
}

var constants = map[string]string{"true": "bool", "false": "bool", "none": "an argument that is not given, or a new axis",
	"inf": "infinity", "nan": "not a number", "pi": "3.14159..."}

var kindNames = map[parser.SymbolKind]string{
	parser.GraphSymbol: "graph", parser.FunctionSymbol: "fn", parser.ConstSymbol: "const", parser.InputSymbol: "input",
	parser.ResultSymbol: "result", parser.ParamSymbol: "parameter", parser.SizeSymbol: "size", parser.DTypeSymbol: "dtype",
	parser.ValueSymbol: "value", parser.IndexSymbol: "index", parser.LoopSymbol: "loop variable",
}

func (s *server) hover(p placeParams) (any, error) {
	d, a, err := s.open(p)
	if err != nil {
		return nil, err
	}
	u := symbolAt(a, d.text.offset(p.Position))
	if u == nil {
		return nil, nil
	}
	body := s.describe(d, a, u)
	if body == "" {
		return nil, nil
	}
	return hover{markup{"markdown", body}, d.text.span(u.Span)}, nil
}

func (s *server) describe(d *document, a *parser.Analysis, u *parser.Use) string {
	sym := s.declared(d, u.Symbol)
	var b strings.Builder
	switch sym.Kind {
	case parser.BuiltinSymbol:
		builtinText(&b, sym.Name)
	case parser.AnnotationSymbol:
		fmt.Fprintf(&b, "`@%s`: %s", sym.Name, annotations[sym.Name])
	case parser.FunctionSymbol, parser.GraphSymbol:
		code(&b, kindNames[sym.Kind]+" "+sym.Signature)
		paragraph(&b, sym.Doc)
	default:
		text := sym.Name
		if len(sym.Types) > 0 {
			text += ": " + strings.Join(sym.Types, "\n"+strings.Repeat(" ", len(sym.Name))+"| ")
		}
		code(&b, text)
		paragraph(&b, kindNames[sym.Kind])
		paragraph(&b, sym.Doc)
	}
	for _, c := range a.Details().Calls {
		if u.Call && c.Span == u.Span {
			paragraph(&b, "gives `"+c.Type+"` here")
			break
		}
	}
	s.costText(&b, d, a, u)
	return b.String()
}

// declared is the symbol as the file that declares it knows it: with its signature and comment.
func (s *server) declared(d *document, sym *parser.Symbol) *parser.Symbol {
	if sym.Span.IsZero() || sym.Span.Start.Filename == d.path {
		return sym
	}
	other := s.file(sym.Span.Start.Filename, d.path)
	if other == nil {
		return sym
	}
	for _, found := range s.analysis(other).Details().Symbols {
		if found.Span == sym.Span {
			return found
		}
	}
	return sym
}

func builtinText(b *strings.Builder, name string) {
	for _, doc := range builtins()[name] {
		code(b, doc.Signature)
		paragraph(b, doc.Doc)
		if doc.File != "" {
			paragraph(b, "defined in "+doc.File)
		}
	}
	if text := constants[name]; text != "" {
		paragraph(b, "`"+name+"`: "+text)
	}
}

// costText adds what the plan says: of a graph's name the whole, else the kernels of the line.
func (s *server) costText(b *strings.Builder, d *document, a *parser.Analysis, u *parser.Use) {
	decl := declAt(a, u.Span.Start.Offset)
	if decl == nil {
		return
	}
	p := s.planOf(d, *decl)
	switch {
	case p == nil:
	case u.Span == decl.At && p.failed != "":
		paragraph(b, p.failed)
	case u.Span == decl.At:
		paragraph(b, totals(p))
	case slices.Contains([]parser.SymbolKind{parser.ValueSymbol, parser.ResultSymbol}, u.Symbol.Kind) || u.Call:
		if n := p.notes(*decl, d.path)[u.Span.Start.Line]; n != nil {
			paragraph(b, noteText(p, n))
		}
	}
}

// totals is a graph's plan in words.
func totals(p *planned) string {
	x := p.x
	text := fmt.Sprintf("%s instead of %d", plural(x.Fused.Kernels, "kernel"), x.Unfused.Kernels)
	if x.Fused.Read.Bytes != nil && x.Fused.Written.Bytes != nil {
		text += fmt.Sprintf("; reads %s, writes %s", bytesText(*x.Fused.Read.Bytes), bytesText(*x.Fused.Written.Bytes))
	}
	if x.Fused.Seconds != nil {
		text += fmt.Sprintf("; about %s on %s", timeText(*x.Fused.Seconds), x.Device)
	}
	if len(x.Refused) > 0 {
		text += fmt.Sprintf("; %s refused", plural(len(x.Refused), "merge"))
	}
	return text
}

// noteText says which kernels a line is part of.
func noteText(p *planned, n *lineNote) string {
	var parts []string
	for _, i := range n.kernels {
		k := p.x.Kernels[i]
		text := fmt.Sprintf("kernel %d, %s (%s)", i+1, k.Name, k.Template)
		if k.Read.Bytes != nil && k.Written.Bytes != nil {
			text += fmt.Sprintf(": reads %s, writes %s", bytesText(*k.Read.Bytes), bytesText(*k.Written.Bytes))
		}
		if k.Seconds != nil {
			text += ", about " + timeText(*k.Seconds)
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, "  \n")
}

func code(b *strings.Builder, text string) {
	if b.Len() > 0 {
		b.WriteString("\n\n")
	}
	b.WriteString("```fuse\n" + text + "\n```")
}

func paragraph(b *strings.Builder, text string) {
	if text == "" {
		return
	}
	if b.Len() > 0 {
		b.WriteString("\n\n")
	}
	b.WriteString(text)
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func bytesText(n int64) string {
	v := float64(n)
	for _, unit := range []string{"B", "KiB", "MiB", "GiB", "TiB"} {
		if v < 1024 || unit == "TiB" {
			if unit == "B" {
				return fmt.Sprintf("%d B", n)
			}
			return fmt.Sprintf("%.1f %s", v, unit)
		}
		v /= 1024
	}
	return ""
}

func timeText(seconds float64) string { return fmt.Sprintf("%.3g ms", seconds*1e3) }
