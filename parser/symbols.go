package parser

import (
	"github.com/fusec/fusec/ir/diag"
)

// SymbolKind says what a name of a program stands for.
type SymbolKind uint8

// The kinds of symbol.
const (
	GraphSymbol SymbolKind = iota
	FunctionSymbol
	ConstSymbol
	InputSymbol  // a parameter of a graph
	ResultSymbol // of a graph
	ParamSymbol  // of a function
	SizeSymbol
	DTypeSymbol // a dtype, or a variable for one
	ValueSymbol
	IndexSymbol
	LoopSymbol
	BuiltinSymbol // an operation, a reduction, a function of the library
	AnnotationSymbol
)

// Symbol is a name of a program and what it stands for.
type Symbol struct {
	Name      string
	Kind      SymbolKind
	Span      diag.Span // of the name where it is declared; zero for what is built in
	Scope     diag.Span // where it can be used: a declaration, a statement; zero for a whole file
	Signature string    // of a function or graph, as written
	Doc       string    // the comment above it
	Types     []string  // as far as they are known: a function's names may have several
	Tensor    bool      // Types are those of tensors
}

// Use is a place where a symbol stands.
type Use struct {
	Span    diag.Span
	Symbol  *Symbol
	Defines bool
	Call    bool
}

// resolver finds what each name of a file stands for, by the text alone: it works in
// functions that nothing calls, and in programs with mistakes.
type resolver struct {
	file    string
	src     string
	mod     *module
	symbols []*Symbol
	uses    []Use
	global  map[string]*Symbol // functions and constants of the file and of its imports
	builtin map[string]*Symbol
	params  map[*Symbol]map[string]*Symbol // of functions, for arguments by name
	names   *names
}

// names are those of a declaration or, inside it, of a statement or a reduction.
type names struct {
	outer *names
	known map[string]*Symbol
	span  diag.Span
}

func (n *names) find(name string) *Symbol {
	for ; n != nil; n = n.outer {
		if s := n.known[name]; s != nil {
			return s
		}
	}
	return nil
}

// resolve lists the symbols and uses of a file.
func resolve(src string, m *module) *resolver {
	r := &resolver{file: m.name, src: src, mod: m, global: map[string]*Symbol{}, builtin: map[string]*Symbol{},
		params: map[*Symbol]map[string]*Symbol{}}
	for _, d := range m.tree.Decls {
		r.declare(d)
	}
	for name, f := range m.fns {
		if f.mod != m {
			r.global[name] = &Symbol{Name: name, Kind: FunctionSymbol, Span: f.fn.Name.span()}
		}
	}
	for name, c := range m.consts {
		if r.global[name] == nil && c != nil {
			r.global[name] = &Symbol{Name: name, Kind: ConstSymbol, Span: c.span, Types: []string{c.val.describe()}}
		}
	}
	for _, d := range m.tree.Decls {
		r.decl(d)
	}
	return r
}

// declare makes the functions and constants known, whose order does not matter.
func (r *resolver) declare(d *declNode) {
	add := func(id *identNode, kind SymbolKind, n node) *Symbol {
		s := &Symbol{Name: id.Text, Kind: kind, Span: id.span(), Doc: commentAbove(r.src, d.Pos.Offset)}
		if kind != ConstSymbol {
			s.Signature = signatureText(r.src[id.Pos.Offset:min(n.EndPos.Offset, len(r.src))])
		}
		r.symbols = append(r.symbols, s)
		return s
	}
	switch {
	case d.Fn != nil:
		s := add(d.Fn.Name, FunctionSymbol, d.node)
		if r.global[s.Name] == nil {
			r.global[s.Name] = s
		}
		r.params[s] = map[string]*Symbol{}
		for _, p := range d.Fn.Params {
			r.params[s][p.Name.Text] = r.fresh(p.Name, ParamSymbol, d.span())
		}
	case d.Const != nil:
		s := add(d.Const.Name, ConstSymbol, d.node)
		if c := r.mod.consts[s.Name]; c != nil {
			s.Types = []string{c.val.describe()}
		}
		if r.global[s.Name] == nil {
			r.global[s.Name] = s
		}
	case d.Graph != nil:
		s := add(d.Graph.Name, GraphSymbol, d.node)
		r.use(d.Graph.Name.span(), s, true)
	}
}

// commentAbove is the text of the comment lines that end before an offset.
func commentAbove(src string, at int) string {
	start := at
	for start > 0 {
		from := start - 1
		for from > 0 && src[from-1] != '\n' {
			from--
		}
		if src[from] != '#' {
			break
		}
		start = from
	}
	return docAbove(src[start:at])
}

func (r *resolver) fresh(id *identNode, kind SymbolKind, scope diag.Span) *Symbol {
	s := &Symbol{Name: id.Text, Kind: kind, Span: id.span(), Scope: scope}
	r.symbols = append(r.symbols, s)
	return s
}

func (r *resolver) use(span diag.Span, s *Symbol, defines bool) {
	r.uses = append(r.uses, Use{Span: span, Symbol: s, Defines: defines})
}

// bind makes a name known in the innermost names, or finds the one that is known there.
func (r *resolver) bind(id *identNode, kind SymbolKind) *Symbol {
	s := r.names.known[id.Text]
	if s == nil {
		s = r.fresh(id, kind, r.names.span)
		r.names.known[id.Text] = s
	}
	r.use(id.span(), s, true)
	return s
}

func (r *resolver) enter(span diag.Span) func() {
	outer := r.names
	r.names = &names{outer: outer, known: map[string]*Symbol{}, span: span}
	return func() { r.names = outer }
}

// part is the span of n bytes that begin behind an offset from pos on one line.
func part(pos diag.Pos, skip, n int) diag.Span {
	start := pos
	start.Offset, start.Column = pos.Offset+skip, pos.Column+skip
	end := start
	end.Offset, end.Column = start.Offset+n, start.Column+n
	return diag.Span{Start: start, End: end}
}

func (r *resolver) decl(d *declNode) {
	leave := r.enter(d.span())
	defer leave()
	switch {
	case d.Const != nil:
		r.use(d.Const.Name.span(), r.global[d.Const.Name.Text], true)
		r.expr(d.Const.Value)
	case d.Fn != nil:
		r.function(d.Fn)
	case d.Graph != nil:
		r.graph(d.Graph)
	}
}

func (r *resolver) function(n *fnNode) {
	s := r.global[n.Name.Text]
	r.use(n.Name.span(), s, true)
	own := r.params[s]
	for _, p := range n.Params {
		if known := own[p.Name.Text]; known != nil {
			r.names.known[p.Name.Text] = known
		}
	}
	for _, p := range n.Params {
		r.dtypeVariable(p)
		r.dims(paramDims(p))
	}
	for _, p := range n.Params {
		r.bind(p.Name, ParamSymbol)
		r.typeName(p.Type)
		r.sizes(paramDims(p))
		r.expr(p.Default)
	}
	for _, t := range n.Results {
		r.typeName(t)
		if t.Dims != nil {
			r.sizes(t.Dims.Dims)
		}
	}
	if n.Grad != nil {
		if by := r.global[n.Grad.By.Text]; by != nil {
			r.use(n.Grad.By.span(), by, false)
		}
	}
	if n.Short != nil {
		r.expr(n.Short)
	}
	r.body(n.Body)
}

// dtypeVariable makes the T of a parameter x: T[...] known.
func (r *resolver) dtypeVariable(p *paramNode) {
	name := p.Type.Name
	if isStaticParam(p) || reserved(name) || r.names.known[name] != nil {
		return
	}
	id := &identNode{node{p.Type.Pos, part(p.Type.Pos, 0, len(name)).End}, name}
	r.names.known[name] = r.fresh(id, DTypeSymbol, r.names.span)
}

// dims makes the sizes that the dims of a parameter name known.
func (r *resolver) dims(dims []*dimNode) {
	for _, d := range dims {
		if d.Name != "" && r.names.known[d.Name] == nil {
			span := part(d.EndPos, -len(d.Name), len(d.Name))
			r.names.known[d.Name] = r.fresh(&identNode{node{span.Start, span.End}, d.Name}, SizeSymbol, r.names.span)
		}
		if d.Size != nil {
			eachName(d.Size, func(id *identNode) {
				if r.find(id.Text) == nil {
					r.names.known[id.Text] = r.fresh(id, SizeSymbol, r.names.span)
				}
			})
		}
	}
}

// sizes are uses of names in dims.
func (r *resolver) sizes(dims []*dimNode) {
	for _, d := range dims {
		if s := r.names.known[d.Name]; s != nil {
			span := part(d.EndPos, -len(d.Name), len(d.Name))
			r.use(span, s, span == s.Span)
		}
		r.expr(d.Size)
	}
}

func (r *resolver) typeName(t *typeNode) {
	if s := r.names.find(t.Name); s != nil {
		span := part(t.Pos, 0, len(t.Name))
		r.use(span, s, span == s.Span)
	}
}

func (r *resolver) graph(n *graphNode) {
	for _, p := range n.Params {
		r.dims(paramDims(p))
	}
	for _, a := range n.Notes {
		r.use(part(a.Pos, 1, len(a.Name)), &Symbol{Name: a.Name, Kind: AnnotationSymbol}, false)
		for _, arg := range a.Args {
			r.expr(arg.Value)
			r.expr(arg.Named)
		}
	}
	for _, list := range []struct {
		params []*paramNode
		kind   SymbolKind
	}{{n.Params, InputSymbol}, {n.Results, ResultSymbol}} {
		for _, p := range list.params {
			r.bind(p.Name, list.kind)
			r.typeName(p.Type)
			r.sizes(paramDims(p))
			r.expr(p.Default)
		}
	}
	r.body(n.Body)
}

// body binds the names of all statements first: that a name is used before is another's to report.
func (r *resolver) body(n *blockNode) {
	if n == nil {
		return
	}
	for _, s := range n.Stmts {
		r.stmt(s)
	}
}

func (r *resolver) stmt(s *stmtNode) {
	switch {
	case s.For != nil:
		r.expr(s.For.From)
		r.expr(s.For.To)
		r.bind(s.For.Var, LoopSymbol)
		r.body(s.For.Body)
	case s.If != nil:
		for n := s.If; n != nil; n = n.Elif {
			r.expr(n.Cond)
			r.body(n.Then)
			r.body(n.Else)
		}
	case s.Return != nil:
		for _, e := range s.Return.Values {
			r.expr(e)
		}
	case s.Require != nil:
		r.expr(s.Require.Cond)
	case s.Assign != nil:
		leave := r.enter(s.span())
		for _, t := range s.Assign.Targets {
			if t.Binds != nil {
				r.binds(t.Binds.Binds)
			}
		}
		r.expr(s.Assign.Value)
		leave()
		for _, t := range s.Assign.Targets {
			if !t.Name.discards() {
				r.bind(t.Name, ValueSymbol)
			}
		}
	}
}

func (r *resolver) binds(binds []*bindNode) {
	for _, n := range binds {
		r.expr(n.Extent)
	}
	for _, n := range binds {
		if n.Name != nil {
			r.bind(n.Name, IndexSymbol)
		}
	}
}
