package parser

import (
	"cmp"
	"fmt"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/diag"
)

// Options say how a source is read. The zero value is right for a source
// without imports.
type Options struct {
	// ReadFile returns the text of an imported file. The name is the import's path
	// joined to the folder of the importing file; it may lead anywhere ("../../x"), so
	// ReadFile decides what may be read. With nil, imports are errors.
	ReadFile func(name string) ([]byte, error)
	Limits   Limits // zero fields mean those of DefaultLimits
}

// File is a parsed source.
type File struct {
	Name     string
	Graphs   []*ir.Graph // in the order of the source
	Warnings diag.List   // what may not be meant: names that nothing reads

	opts   Options
	module *module
}

// Parse reads a .fuse source and expands its graphs. filename appears in
// positions and resolves imports. Mistakes come back as a diag.List: one syntax
// error, or all that is wrong with the meaning of the program.
func Parse(filename string, src []byte, opts Options) (*File, error) {
	opts.Limits = opts.Limits.withDefaults()
	std, err := library()
	if err != nil {
		return nil, err
	}
	l := &loader{opts: opts, std: std, done: map[string]*module{}, called: map[*fnNode]bool{}}
	m := l.load(filename, src)
	if m == nil {
		return nil, l.errs.Err()
	}
	f := &File{Name: filename, Graphs: l.graphs(m), opts: opts, module: m}
	if err := l.errs.Err(); err != nil {
		return nil, err
	}
	f.Warnings = l.warnings
	return f, nil
}

// graphs expands every graph of a module.
func (l *loader) graphs(m *module) []*ir.Graph {
	var out []*ir.Graph
	first := map[string]diag.Span{}
	for _, d := range m.tree.Decls {
		if d.Graph == nil || len(l.errs) >= l.opts.Limits.Errors {
			continue
		}
		name := d.Graph.Name
		if old, ok := first[name.Text]; ok {
			l.errs.Add(name.span(), "graph %s is declared twice", name.Text).
				Note(old, "%s is declared here first", name.Text)
			continue
		}
		first[name.Text] = name.span()
		out = append(out, l.build(d.Graph, m))
	}
	l.checkUnused(m)
	l.errs = once(l.errs)
	return out
}

// once drops the errors that stand in a list already: a graph that is differentiated is
// expanded for itself, too.
func once(errs diag.List) diag.List {
	var out diag.List
	seen := map[string]bool{}
	for _, e := range errs {
		if text := e.Error(); !seen[text] {
			seen[text] = true
			out = append(out, e)
		}
	}
	return out
}

// WarningsOf are the warnings of one graph; of all for "".
func (f *File) WarningsOf(graph string) diag.List {
	if graph == "" {
		return f.Warnings
	}
	var out diag.List
	for _, d := range f.module.tree.Decls {
		if d.Graph == nil || d.Graph.Name.Text != graph {
			continue
		}
		whole := d.Graph.span()
		for _, w := range f.Warnings {
			at := w.Span.Start
			if at.Filename == whole.Start.Filename && whole.Start.Offset <= at.Offset && at.Offset < whole.End.Offset {
				out = append(out, w)
			}
		}
	}
	return out
}

// Graph returns the graph of the given name. An empty name means the only one.
func (f *File) Graph(name string) (*ir.Graph, error) {
	var names []string
	for _, g := range f.Graphs {
		if g.Name == name {
			return g, nil
		}
		names = append(names, g.Name)
	}
	switch {
	case len(names) == 0:
		return nil, fmt.Errorf("%s holds no graph", cmp.Or(f.Name, "the program"))
	case name != "":
		return nil, fmt.Errorf("%s has no graph %s%s", f.Name, name, diag.Choices(name, names))
	case len(names) > 1:
		return nil, fmt.Errorf("%s holds %s: name one of %s", f.Name, plural(len(names), "graph"), diag.Names(names))
	}
	return f.Graphs[0], nil
}

func (l Limits) withDefaults() Limits {
	for _, f := range []struct{ have, def *int }{
		{&l.Bytes, &DefaultLimits.Bytes}, {&l.Tokens, &DefaultLimits.Tokens}, {&l.Depth, &DefaultLimits.Depth},
		{&l.Terms, &DefaultLimits.Terms}, {&l.Steps, &DefaultLimits.Steps},
		{&l.Operands, &DefaultLimits.Operands}, {&l.Errors, &DefaultLimits.Errors},
	} {
		if *f.have == 0 {
			*f.have = *f.def
		}
	}
	return l
}
