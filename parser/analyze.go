package parser

import (
	"slices"
	"sort"
	"strings"

	"github.com/alecthomas/participle/v2/lexer"

	"github.com/fusec/fusec/ir/diag"
)

// Analysis is what an editor needs to know about a source, whether it has mistakes or not.
type Analysis struct {
	Name     string
	Text     string
	Errors   diag.List // all of them, in order
	Warnings diag.List // what may not be meant: names that nothing reads
	Decls    []Decl
	Imports  []Import

	raw     []lexer.Token
	mod     *module // nil where the source could not be cut into tokens
	marks   []mark
	details *Details
}

// Details is what an analysis knows of the names in a source.
type Details struct {
	Tokens  []Token
	Symbols []*Symbol
	Uses    []Use // in the order of the text
	Calls   []Call
	Needs   []Need
	Visible []*Symbol // functions and constants that can be used, those of imports included
}

// Details looks at names, at the first call: mistakes are known without.
func (out *Analysis) Details() *Details {
	if out.details == nil {
		out.details = &Details{Tokens: exported(out.raw)}
		if out.mod != nil {
			out.describe(out.details)
		}
	}
	return out.details
}

// Decl is a declaration of a source.
type Decl struct {
	Kind   SymbolKind // GraphSymbol, FunctionSymbol or ConstSymbol
	Name   string
	Span   diag.Span // from its annotations to its end
	At     diag.Span // of the name
	Body   diag.Span // of the block; zero where there is none
	Broken bool      // parts of it could not be read
}

// Call says what a call gives.
type Call struct {
	Span diag.Span // of the function's name
	Type string
}

// Need is a condition on sizes that a graph relies on at a place and does not state.
type Need struct {
	Span  diag.Span
	Graph string
	Cond  string // N % 8 == 0
	Why   string
}

// Import is an import of a source.
type Import struct {
	Span diag.Span
	Name string // of the file, as ReadFile gets it
}

// Analyzer analyses the versions of one source one after the other, and keeps what
// did not change between them. It must not be used by several goroutines at once.
type Analyzer struct {
	name string
	opts Options
	old  map[string][]*section // declarations of the last version by their text
}

// NewAnalyzer returns an analyzer of the file of the given name. The Limits hold for
// each graph.
func NewAnalyzer(name string, opts Options) *Analyzer {
	opts.Limits = opts.Limits.withDefaults()
	return &Analyzer{name: name, opts: opts}
}

// section is a declaration through the versions of a source: where it stands now, and
// what was found in it as long as its text is the same.
type section struct {
	node *declNode
	pos  diag.Pos // of its begin in this version
	text string
	done *checked // of a graph
}

// checked is what the expansion of a graph found.
type checked struct {
	env    string            // what it depends on beside functions
	called map[*section]bool // functions of the file that it expands
	errs   []movable
	marks  []movableMark
}

// Analyze analyses a version of the source.
func (a *Analyzer) Analyze(src []byte) (*Analysis, error) {
	std, err := library()
	if err != nil {
		return nil, err
	}
	out := &Analysis{Name: a.name, Text: string(src)}
	raw, errs := tokenizeAll(a.name, src, a.opts.Limits)
	out.raw, out.Errors = raw, errs
	if raw == nil {
		return out, nil
	}
	tree, errs := parseTokens(raw, a.opts.Limits)
	out.Errors = append(out.Errors, notBehind(errs, out.Errors)...)
	l := &loader{opts: a.opts, std: std, done: map[string]*module{}, called: map[*fnNode]bool{}}
	m := newModule(a.name, tree)
	m.std = std
	l.loading = []string{a.name}
	l.declare(m)
	parts := a.match(tree, out.Text)
	out.mod, out.marks = m, a.graphs(l, m, parts)
	l.checkUnused(m)
	out.Errors = once(append(out.Errors, l.errs...))
	out.Warnings = l.warnings
	out.sortErrors()
	for _, d := range tree.Decls {
		out.decl(d)
	}
	return out, nil
}

// notBehind are the mistakes of syntax that do not stand behind one of the tokens on its line:
// what is no token is left out there, and the rest of its statement makes no sense without it.
func notBehind(errs, tokens diag.List) (out diag.List) {
	for _, e := range errs {
		if !slices.ContainsFunc(tokens, func(t *diag.Error) bool {
			return t.Span.Start.Line == e.Span.Start.Line && t.Span.Start.Offset < e.Span.Start.Offset
		}) {
			out = append(out, e)
		}
	}
	return out
}

func (out *Analysis) sortErrors() {
	if err := out.Errors.Err(); err != nil {
		out.Errors = diag.All(err)
	}
}

// match finds the declarations of this version among those of the last.
func (a *Analyzer) match(tree *fileNode, text string) []*section {
	found := map[string][]*section{}
	var parts []*section
	for _, d := range tree.Decls {
		body := text[min(d.Pos.Offset, len(text)):min(d.EndPos.Offset, len(text))]
		var p *section
		if left := a.old[body]; len(left) > 0 && !d.broken {
			p, a.old[body] = left[0], left[1:]
		} else {
			p = &section{text: body}
		}
		p.node, p.pos = d, d.Pos
		found[body] = append(found[body], p)
		parts = append(parts, p)
	}
	a.old = found
	return parts
}

// graphs checks the graphs that changed, or whose functions did, and reports the
// mistakes of all.
func (a *Analyzer) graphs(l *loader, m *module, parts []*section) (marks []mark) {
	env := environment(m, parts, l)
	of := map[*fnNode]*section{}
	alive := map[*section]bool{}
	for _, p := range parts {
		alive[p] = true
		if p.node.Fn != nil {
			of[p.node.Fn] = p
		}
	}
	first := map[string]diag.Span{}
	for _, p := range parts {
		g := p.node.Graph
		if g == nil {
			continue
		}
		if old, ok := first[g.Name.Text]; ok {
			l.errs.Add(g.Name.span(), "graph %s is declared twice", g.Name.Text).
				Note(old, "%s is declared here first", g.Name.Text)
			continue
		}
		first[g.Name.Text] = g.Name.span()
		if !p.valid(env, alive) {
			a.check(p, m, parts, of)
			p.done.env = env
		}
		for f := range p.done.called {
			l.called[f.node.Fn] = true
		}
		for _, e := range p.done.errs {
			if e.err.Warning {
				l.warnings = append(l.warnings, e.back())
			} else {
				l.errs = append(l.errs, e.back())
			}
		}
		for _, k := range p.done.marks {
			k.mark.span = k.at.back()
			marks = append(marks, k.mark)
		}
	}
	return marks
}

// valid reports whether what was found about a graph still holds.
func (p *section) valid(env string, alive map[*section]bool) bool {
	if p.done == nil || p.done.env != env || p.node.Graph.Grad != nil { // which depends on another graph
		return false
	}
	for f := range p.done.called {
		if !alive[f] {
			return false
		}
	}
	return true
}

// environment is what all graphs depend on: constants, imports, and which functions there are.
func environment(m *module, parts []*section, l *loader) string {
	var b strings.Builder
	var names []string
	for name, f := range m.fns {
		if f.mod != m {
			name = f.mod.name + ":" + name
		}
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		b.WriteString(name + " ")
	}
	for _, p := range parts {
		if p.node.Const != nil || p.node.Import != nil {
			b.WriteString(p.text + "\n")
		}
	}
	names = names[:0]
	for name := range l.done {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		b.WriteString(name + "\n" + l.done[name].text)
	}
	return b.String()
}

// check expands a graph.
func (a *Analyzer) check(p *section, m *module, parts []*section, of map[*fnNode]*section) {
	t := &trace{file: a.name}
	called := map[*fnNode]bool{}
	l := &loader{opts: a.opts, std: m.std, called: called, trace: t}
	l.build(p.node.Graph, m)
	p.done = &checked{called: map[*section]bool{}}
	for fn := range called {
		if f := of[fn]; f != nil {
			p.done.called[f] = true
		}
	}
	anchor := &anchors{file: a.name, parts: parts}
	found := l.errs
	if !p.node.broken { // what could not be read may read a name
		found = append(found, l.warnings...)
	}
	for _, e := range found {
		p.done.errs = append(p.done.errs, anchor.movable(e))
	}
	seen := map[mark]bool{}
	for _, k := range t.marks {
		if !seen[k] {
			seen[k] = true
			p.done.marks = append(p.done.marks, movableMark{k, anchor.span(k.span)})
		}
	}
}
