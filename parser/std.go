package parser

import (
	"embed"
	"fmt"
	"strings"
	"sync"

	"github.com/alecthomas/participle/v2/lexer"

	"github.com/fusec/fusec/ir"
)

//go:embed std/*.fuse
var stdFiles embed.FS

// library is the embedded standard library: one module whose files see each
// other. It is parsed at the first use and never changed.
var library = sync.OnceValues(loadLibrary)

func loadLibrary() (*module, error) {
	entries, err := stdFiles.ReadDir("std")
	if err != nil {
		return nil, fmt.Errorf("reading the standard library: %w", err)
	}
	lib := newModule("std", &fileNode{})
	lib.library = true
	l := &loader{opts: Options{Limits: DefaultLimits}}
	for _, e := range entries {
		name := "std/" + e.Name()
		src, err := stdFiles.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("reading the standard library: %w", err)
		}
		tree, err := parseSource(name, src, DefaultLimits)
		if err != nil {
			return nil, err
		}
		part := &module{name: name, tree: tree, fns: lib.fns, consts: lib.consts, rows: builtins, library: true}
		l.declare(part)
		lib.tree.Decls = append(lib.tree.Decls, tree.Decls...)
	}
	return lib, l.errs.Err()
}

// Source returns the text of a library file as positions name it: std/norm.fuse.
func Source(name string) (text string, ok bool) {
	src, err := stdFiles.ReadFile(name)
	return string(src), err == nil
}

// FuncDoc describes a function for users.
type FuncDoc struct {
	Name      string
	Signature string // "softmax(x: T[...], axis: int = -1) -> T[...]"
	Doc       string // one or more lines
	File      string // of a library function: std/nn.fuse
}

// Library describes the standard library, file by file.
func Library() ([]FuncDoc, error) {
	lib, err := library()
	if err != nil {
		return nil, err
	}
	var out []FuncDoc
	for _, d := range lib.tree.Decls {
		if d.Fn != nil {
			out = append(out, FuncDoc{d.Fn.Name.Text, d.Fn.sig, d.Fn.doc, d.Fn.Pos.Filename})
		}
	}
	return out, nil
}

// Builtins describes what is built in: the operations and reductions of ir, and
// the functions of this package.
func Builtins() []FuncDoc {
	var out []FuncDoc
	for _, op := range ir.Ops() {
		if op != ir.OpCast {
			out = append(out, FuncDoc{Name: op.String(), Signature: opSignature(op), Doc: op.Info().Doc})
		}
	}
	for _, m := range ir.Monoids() {
		row := reductionRow(m)
		out = append(out, FuncDoc{Name: row.name, Signature: row.signature(), Doc: row.doc})
	}
	for _, name := range builtinOrder {
		row := builtins[name]
		out = append(out, FuncDoc{Name: row.name, Signature: row.signature(), Doc: row.doc})
	}
	return out
}

func opSignature(op ir.Op) string {
	args := []string{"a", "b", "c"}[:op.Info().Arity]
	if len(args) == 1 {
		args = []string{"x"}
	}
	text := op.String() + "(" + strings.Join(args, ", ") + ")"
	if infix := op.Info().Infix; infix != "" {
		text += ", " + strings.TrimSpace(strings.Join(args, " "+infix+" "))
		if len(args) == 1 {
			text = op.String() + "(x), " + infix + "x"
		}
	}
	return text
}

// attachDocs gives each function its signature and the comment lines right above it.
func attachDocs(tree *fileNode, tokens []lexer.Token) {
	at := map[int]int{} // offset to token
	for i, t := range tokens {
		at[t.Pos.Offset] = i
	}
	for _, d := range tree.Decls {
		if d.Fn != nil {
			first := at[d.Fn.Pos.Offset]
			d.Fn.doc, d.Fn.sig = docAbove(tokens[:first]), signatureText(tokens[first+1:])
		}
	}
}

func docAbove(tokens []lexer.Token) string {
	var lines []string
	newlines := 0
	for i := len(tokens) - 1; i >= 0 && newlines <= 1; i-- {
		switch t := tokens[i]; {
		case t.Type == tokComment:
			lines = append([]string{strings.TrimSpace(strings.TrimLeft(t.Value, "#"))}, lines...)
			newlines = 0
		case t.Value == "\n":
			newlines++
		case t.Type != tokWhitespace:
			return strings.Join(lines, "\n")
		}
	}
	return strings.Join(lines, "\n")
}

// signatureText is a function's header as written, up to its body.
func signatureText(tokens []lexer.Token) string {
	var b strings.Builder
	depth := 0
	for _, t := range tokens {
		switch {
		case t.Value == "(" || t.Value == "[":
			depth++
		case t.Value == ")" || t.Value == "]":
			depth--
		case t.Value == "{" || t.Value == "=" && depth == 0:
			return strings.Join(strings.Fields(b.String()), " ")
		}
		if t.Type != tokComment {
			b.WriteString(t.Value)
		}
	}
	return strings.Join(strings.Fields(b.String()), " ")
}
