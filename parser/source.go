package parser

import (
	"errors"
	"io/fs"
	"path"
	"strings"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/diag"
)

// module is one file with what its imports make visible.
type module struct {
	name    string
	tree    *fileNode
	text    string // of an import
	fns     map[string]fnEntry
	consts  map[string]*binding
	graphs  map[string]string // the graphs of the file and of its imports, and which file holds each; for messages
	std     *module           // the library; nil inside it
	rows    map[string]*builtin
	library bool
	lazy    map[string]*stdFn // of the library: functions not parsed yet
	order   []string          // their names, as in the files
}

type fnEntry struct {
	fn  *fnNode
	mod *module
}

// function finds a function visible in m: its own, an imported one, or the library's.
func (m *module) function(name string) (*fnNode, *module) {
	if e, ok := m.fns[name]; ok {
		return e.fn, e.mod
	}
	if f, ok := m.lazy[name]; ok {
		return f.parse(), m
	}
	if m.std != nil {
		return m.std.function(name)
	}
	return nil, nil
}

func (m *module) constant(name string) *binding {
	if c := m.consts[name]; c != nil {
		return c
	}
	return nil
}

func newModule(name string, tree *fileNode) *module {
	return &module{name: name, tree: tree, rows: builtins,
		fns: map[string]fnEntry{}, consts: map[string]*binding{}, graphs: map[string]string{}}
}

// loader reads a file and, depth first, what it imports. Each file is read once.
type loader struct {
	opts     Options
	std      *module
	errs     diag.List
	warnings diag.List
	done     map[string]*module
	loading  []string
	called   map[*fnNode]bool
	trace    *trace // nil but for editors
	delta    bool   // gradients are taken without solving the equations of indices
}

// load returns the module of a file; nil after a mistake that leaves no tree.
func (l *loader) load(name string, src []byte) *module {
	tree, err := parseSource(name, src, l.opts.Limits)
	if err != nil {
		l.errs = append(l.errs, diag.All(err)...)
		return nil
	}
	m := newModule(name, tree)
	m.std, m.text = l.std, string(src)
	l.loading = append(l.loading, name)
	l.declare(m)
	l.loading = l.loading[:len(l.loading)-1]
	l.done[name] = m
	return m
}

// parseSource reads the syntax of one file: nil and its mistakes where it has any, those behind the first included.
func parseSource(name string, src []byte, limits Limits) (*fileNode, error) {
	tokens, errs := tokenizeAll(name, src, limits)
	if tokens == nil {
		return nil, errs.Err()
	}
	tree, more := parseTokens(tokens, limits)
	errs = append(errs, notBehind(more, errs)...)
	if err := errs.Err(); err != nil {
		return nil, err
	}
	return tree, nil
}

// declare collects m's functions and constants, in order.
func (l *loader) declare(m *module) {
	for _, d := range m.tree.Decls {
		switch {
		case d.Import != nil:
			l.importFile(m, d.Import)
		case d.Const != nil:
			l.constant(m, d.Const)
		case d.Fn != nil:
			l.function(m, d.Fn)
		case d.Graph != nil:
			m.graphs[d.Graph.Name.Text] = m.name
		}
	}
}

func (l *loader) function(m *module, fn *fnNode) {
	name := fn.Name.Text
	if old, ok := m.fns[name]; ok {
		l.errs.Add(fn.Name.span(), "function %s is declared twice", name).
			Note(old.fn.Name.span(), "%s is declared here first", name)
		return
	}
	if reserved(name) {
		l.errs.Add(fn.Name.span(), "%s is built in: choose another name", name)
		return
	}
	l.checkParams(fn)
	m.fns[name] = fnEntry{fn, m}
}

func reserved(name string) bool {
	if _, ok := builtins[name]; ok {
		return true
	}
	if _, ok := elementwiseNamed(name); ok {
		return true
	}
	if _, ok := ir.MonoidNamed(name); ok {
		return true
	}
	_, ok := ir.DTypeNamed(name)
	return ok
}

func (l *loader) checkParams(fn *fnNode) {
	for i, p := range fn.Params {
		l.noState(p)
		if old := paramNamed(fn.Params[:i], p.Name.Text); old != nil {
			l.errs.Add(p.Name.span(), "parameter %s is declared twice", p.Name.Text).
				Note(old.span(), "%s is declared here first", p.Name.Text)
		}
		for k, d := range paramDims(p) {
			if d.Leading && k > 0 {
				l.errs.Add(d.span(), "... may stand only before the other sizes")
			}
		}
	}
}

func (l *loader) constant(m *module, n *constNode) {
	name := n.Name.Text
	if old := m.consts[name]; old != nil {
		l.errs.Add(n.Name.span(), "constant %s is declared twice", name).
			Note(old.span, "%s is declared here first", name)
		return
	}
	b := &builder{limits: l.opts.Limits, g: ir.NewGraph(""), errs: &l.errs}
	b.frame = &frame{mod: m, scope: newScope(nil)}
	v := b.expr(n.Value)
	if v.ok() && !v.isStatic() {
		v = b.fail(n.Value.span(), "constant %s must be known at compile time, not %s", name, v.describe())
	}
	v.bound = n.Name.span()
	m.consts[name] = &binding{val: v, span: n.Name.span()}
}

// importFile makes the declarations of another file visible in m.
func (l *loader) importFile(m *module, n *importNode) {
	span := n.span()
	name := path.Join(path.Dir(m.name), strings.Trim(n.Path, `"`))
	for i, open := range l.loading {
		if open == name {
			cycle := append(append([]string(nil), l.loading[i:]...), name)
			l.errs.Add(span, "files must not import each other: %s", strings.Join(cycle, " -> "))
			return
		}
	}
	from := l.done[name]
	if from == nil {
		if from = l.read(name, span); from == nil {
			return
		}
	}
	l.merge(m, from, span)
}

const maxImportDepth = 100

func (l *loader) read(name string, span diag.Span) *module {
	if l.opts.ReadFile == nil {
		l.errs.Add(span, "cannot import %s: no files are at hand here", name)
		return nil
	}
	if len(l.loading) > maxImportDepth {
		l.errs.Add(span, "files import each other more than %d deep", maxImportDepth)
		return nil
	}
	src, err := l.opts.ReadFile(name)
	if err == nil {
		return l.load(name, src)
	}
	why := err.Error()
	if errors.Is(err, fs.ErrNotExist) {
		why = "there is no such file"
		if _, err := l.opts.ReadFile(name + ".fuse"); err == nil {
			why += ": did you mean " + path.Base(name) + ".fuse?"
		}
	}
	l.errs.Add(span, "cannot import %s: %s", name, why)
	return nil
}

func (l *loader) merge(m, from *module, span diag.Span) {
	for _, d := range from.tree.Decls {
		switch {
		case d.Fn != nil:
			name := d.Fn.Name.Text
			if old, ok := m.fns[name]; ok && old.fn != d.Fn {
				l.errs.Add(span, "function %s of %s is declared already", name, from.name).
					Note(old.fn.Name.span(), "%s is declared here first", name)
				continue
			}
			if e, ok := from.fns[name]; ok {
				m.fns[name] = e
			}
		case d.Const != nil:
			name := d.Const.Name.Text
			c := from.consts[name]
			if old := m.consts[name]; old != nil && old != c {
				l.errs.Add(span, "constant %s of %s is declared already", name, from.name).
					Note(old.span, "%s is declared here first", name)
				continue
			}
			m.consts[name] = c
		case d.Graph != nil && m.graphs[d.Graph.Name.Text] == "":
			m.graphs[d.Graph.Name.Text] = from.name
		}
	}
}
