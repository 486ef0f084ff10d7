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
// other. Its functions are parsed when they are first called, since all of them
// would take longer than most programs.
var library = sync.OnceValues(loadLibrary)

// stdFn is a library function that is parsed at its first use.
type stdFn struct {
	file  string
	src   string // of the whole file
	start int    // offset of "fn" in src
	end   int    // offset of the next function, or of the end
	parse func() *fnNode
}

func loadLibrary() (*module, error) {
	entries, err := stdFiles.ReadDir("std")
	if err != nil {
		return nil, fmt.Errorf("reading the standard library: %w", err)
	}
	lib := newModule("std", &fileNode{})
	lib.library, lib.lazy = true, map[string]*stdFn{}
	for _, e := range entries {
		name := "std/" + e.Name()
		src, err := stdFiles.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("reading the standard library: %w", err)
		}
		lib.addFile(name, string(src))
	}
	return lib, nil
}

// addFile finds the functions of a library file: in the canonical layout, each
// starts a line and nothing else does.
func (m *module) addFile(name, src string) {
	const mark = "\nfn "
	next := strings.Index("\n"+src, mark)
	for next >= 0 {
		f := &stdFn{file: name, src: src, start: next, end: len(src)}
		f.parse = sync.OnceValue(f.parseNow)
		if next = strings.Index(src[f.start:], mark); next >= 0 {
			next += f.start + 1
			f.end = next
		}
		id := src[f.start+len("fn "):]
		id = id[:strings.IndexByte(id, '(')]
		m.lazy[id] = f
		m.order = append(m.order, id)
	}
}

func (f *stdFn) parseNow() *fnNode {
	line := 1 + strings.Count(f.src[:f.start], "\n")
	pos := lexer.Position{Filename: f.file, Offset: f.start, Line: line, Column: 1}
	tokens, err := tokenizeAt(pos, f.src[f.start:f.end], DefaultLimits)
	if err == nil {
		tree, errs := parseTokens(tokens, DefaultLimits)
		if err = errs.Err(); err == nil {
			return tree.Decls[0].Fn
		}
	}
	panic("BUG: the standard library does not parse: " + err.Error())
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
	for _, name := range lib.order {
		f := lib.lazy[name]
		if strings.Contains(f.src, "@grad("+name+")") { // a derivative: part of its function
			continue
		}
		signature := signatureText(f.src[f.start+len("fn "):])
		out = append(out, FuncDoc{name, signature, docAbove(f.src[:f.start]), f.file})
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

// docAbove is the text of the comment lines at the end of src.
func docAbove(src string) string {
	lines := strings.Split(strings.TrimSuffix(src, "\n"), "\n")
	first := len(lines)
	for first > 0 && strings.HasPrefix(lines[first-1], "#") {
		first--
	}
	for i, l := range lines[first:] {
		lines[first+i] = strings.TrimSpace(strings.TrimLeft(l, "#"))
	}
	return strings.Join(lines[first:], "\n")
}

// signatureText is a function's header as written, up to its body.
func signatureText(src string) string { return strings.Join(strings.Fields(src[:headerEnd(src)]), " ") }

// headerEnd finds the { or the = outside brackets that starts a function's body.
func headerEnd(src string) int {
	depth := 0
	for i, c := range src {
		switch {
		case c == '(' || c == '[':
			depth++
		case c == ')' || c == ']':
			depth--
		case c == '{' || (c == '=' || c == '@') && depth == 0:
			return i
		}
	}
	return len(src)
}
