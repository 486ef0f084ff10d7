// Package gen writes Go code that calls the graphs of a program: a method for each
// graph, with a typed parameter for each tensor and a field for each size. It must not
// know how graphs are compiled.
package gen

import (
	"fmt"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"sync"
	"text/template"
	"unicode"

	"golang.org/x/tools/imports"

	"github.com/fusec/fusec/ir"
)

// Options say what to write.
type Options struct {
	File    string // name of the generated file, for messages
	Command string // that made it, for its first line
	Package string
	Type    string // name of the type that holds the graphs

	// The graphs come from a source embedded as text ...
	Source  string // name of the source
	Text    []byte
	Imports map[string][]byte // that it reads, by the names they are read by
	// ... or, where Bundle is set, from a bundle.
	Bundle string // path for go:embed
	Key    string // the public key, as sign.FormatPublic spells it
}

// Go returns the formatted code for graphs. Names that make no Go names, or the same
// one twice, are errors.
func Go(graphs []*ir.Graph, o Options) ([]byte, error) {
	file := &file{Options: o}
	taken := map[string]string{o.Type: "the type", "Load" + o.Type: "the function that loads",
		o.Type + ".Close": "Close"}
	for _, g := range graphs {
		described, err := describe(g)
		if err != nil {
			return nil, err
		}
		described.Doc = commentAbove(o.Text, g.Span.Start.Line)
		for _, name := range described.names(o.Type) {
			if other, ok := taken[name]; ok {
				return nil, fmt.Errorf("graph %s: its Go name %s is taken by %s: rename one", g.Name, name, other)
			}
			taken[name] = "graph " + g.Name
		}
		file.Graphs = append(file.Graphs, described)
	}
	var b strings.Builder
	if err := page().Execute(&b, file); err != nil {
		return nil, fmt.Errorf("BUG: generating %s: %w", o.File, err)
	}
	out, err := imports.Process(o.File, []byte(b.String()), nil)
	if err != nil {
		return nil, fmt.Errorf("BUG: generating %s: %w", o.File, err)
	}
	return out, nil
}

type file struct {
	Options
	Graphs []graph
}

// graph is what the template knows of a graph.
type graph struct {
	Name  string   // in the program
	Doc   []string // lines of the comment above it
	Go    string   // exported
	Field string   // unexported
	Sizes []size
	Args  []arg
}

type size struct{ Name, Go string }

// arg is an input or output.
type arg struct {
	Name   string // in the program
	Go     string // of the field
	Type   string // bf16[N, M]
	Elem   string // Go type of its elements
	Output bool
}

// names are the package-level names and methods that a graph takes.
func (g graph) names(of string) []string {
	return []string{g.Go + "Sizes", g.Go + "Args", g.Go + "Buffers", of + "." + g.Go, of + "." + g.Go + "Buffers",
		of + ".Queue" + g.Go}
}

func describe(g *ir.Graph) (graph, error) {
	out := graph{Name: g.Name, Go: exported(g.Name), Field: "graph" + exported(g.Name)}
	if !token.IsIdentifier(out.Go) {
		return out, fmt.Errorf("graph %s makes no Go name", g.Name)
	}
	var fields []string
	for _, s := range g.Symbols {
		name := exported(s.Name)
		if !token.IsIdentifier(name) || slices.Contains(fields, name) {
			return out, fmt.Errorf("graph %s: size %s makes no Go name of its own: rename it", g.Name, s.Name)
		}
		fields = append(fields, name)
		out.Sizes = append(out.Sizes, size{s.Name, name})
	}
	var used []string
	add := func(name string, v *ir.Value, output bool) error {
		a := arg{Name: name, Go: exported(name), Type: spell(v), Elem: element(v.Type), Output: output}
		if !token.IsIdentifier(a.Go) || slices.Contains(used, a.Go) {
			return fmt.Errorf("graph %s: tensor %s makes no Go name of its own: rename it", g.Name, name)
		}
		used = append(used, a.Go)
		out.Args = append(out.Args, a)
		return nil
	}
	for _, v := range g.Inputs {
		if err := add(v.Name, v, false); err != nil {
			return out, err
		}
	}
	for _, o := range g.Outputs {
		if err := add(o.Name, o.Value, true); err != nil {
			return out, err
		}
	}
	return out, nil
}

// element is the Go type whose memory is that of a dtype.
func element(t ir.DType) string {
	switch t {
	case ir.BF16, ir.F16, ir.F8E4M3, ir.F8E5M2:
		return "tensor." + strings.ToUpper(t.String())
	case ir.F32:
		return "float32"
	case ir.F64:
		return "float64"
	case ir.U8:
		return "uint8"
	case ir.U32:
		return "uint32"
	case ir.Bool:
		return "bool"
	}
	return strings.Replace(t.String(), "i", "int", 1)
}

// commentAbove are the lines of the comment above a line of a program, annotations between
// them left out.
func commentAbove(text []byte, line int) []string {
	lines := strings.Split(string(text), "\n")
	var out []string
	for at := min(line-1, len(lines)) - 1; at >= 0; at-- {
		l := strings.TrimSpace(lines[at])
		if strings.HasPrefix(l, "@") {
			continue
		}
		comment, ok := strings.CutPrefix(l, "#")
		if !ok {
			break
		}
		out = append([]string{strings.TrimSpace(comment)}, out...)
	}
	return out
}

// spell writes a tensor's type as the language does.
func spell(v *ir.Value) string {
	var dims []string
	for _, e := range v.Shape() {
		dims = append(dims, e.String())
	}
	return fmt.Sprintf("%s[%s]", v.Type, strings.Join(dims, ", "))
}

// exported makes layer_norm LayerNorm.
func exported(name string) string {
	var b strings.Builder
	up := true
	for _, r := range name {
		switch {
		case r == '_':
			up = true
		case up:
			b.WriteRune(unicode.ToUpper(r))
			up = false
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// quote writes a text as a Go string: raw where that can be, so that it is readable.
func quote(text any) string {
	s := fmt.Sprintf("%s", text)
	if strconv.CanBackquote(strings.NewReplacer("\n", "", "\t", "").Replace(s)) {
		return "`" + s + "`"
	}
	return strconv.Quote(s)
}

// page is parsed when a file is generated, not at every start of the program.
var page = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("page").Funcs(template.FuncMap{"quote": quote}).Parse(pageText))
})
