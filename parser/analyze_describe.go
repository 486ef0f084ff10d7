package parser

import (
	"path"
	"slices"
	"sort"
	"strings"

	"github.com/fusec/fusec/ir/diag"
)

// describe fills in what the tree says, and what expanding the graphs found.
func (out *Analysis) describe(m *module, marks []mark) {
	r := resolve(out.Text, m)
	out.Symbols, out.Uses = r.symbols, r.uses
	sort.SliceStable(out.Uses, func(i, j int) bool { return out.Uses[i].Span.Start.Offset < out.Uses[j].Span.Start.Offset })
	for _, s := range r.global {
		out.Visible = append(out.Visible, s)
	}
	sort.Slice(out.Visible, func(i, j int) bool { return out.Visible[i].Name < out.Visible[j].Name })
	at := map[int]*Symbol{}
	for _, u := range out.Uses {
		if u.Defines {
			at[u.Span.Start.Offset] = u.Symbol
		}
	}
	for _, k := range marks {
		switch k.kind {
		case typeMark:
			if s := at[k.span.Start.Offset]; s != nil && s.Kind != ConstSymbol {
				s.learn(k)
			}
		case callMark:
			out.Calls = append(out.Calls, Call{k.span, k.text})
		case needsMark:
			out.need(k)
		}
	}
	sort.SliceStable(out.Calls, func(i, j int) bool { return out.Calls[i].Span.Start.Offset < out.Calls[j].Span.Start.Offset })
	for _, d := range m.tree.Decls {
		out.decl(m, d)
	}
}

// learn adds a type to those of a name.
func (s *Symbol) learn(k mark) {
	const most = 4 // of a function's names, in a line
	if !slices.Contains(s.Types, k.text) && len(s.Types) < most {
		s.Types = append(s.Types, k.text)
	}
	s.Tensor = s.Tensor || k.tensor
}

// need keeps a condition that the program does not state itself.
func (out *Analysis) need(k mark) {
	from, to := k.span.Start.Offset, k.span.End.Offset
	if to > len(out.Text) || from > to || strings.HasPrefix(out.Text[from:to], "require") {
		return
	}
	out.Needs = append(out.Needs, Need{Span: k.span, Cond: k.text, Why: k.why})
}

func (out *Analysis) decl(m *module, d *declNode) {
	x := Decl{Span: d.span(), Broken: d.broken}
	var body *blockNode
	switch {
	case d.Import != nil:
		out.Imports = append(out.Imports, Import{d.Import.span(), path.Join(path.Dir(m.name), strings.Trim(d.Import.Path, `"`))})
		return
	case d.Const != nil:
		x.Kind, x.Name, x.At = ConstSymbol, d.Const.Name.Text, d.Const.Name.span()
	case d.Fn != nil:
		x.Kind, x.Name, x.At, body = FunctionSymbol, d.Fn.Name.Text, d.Fn.Name.span(), d.Fn.Body
	default:
		x.Kind, x.Name, x.At, body = GraphSymbol, d.Graph.Name.Text, d.Graph.Name.span(), d.Graph.Body
	}
	if body != nil {
		x.Body = body.span()
	}
	out.Decls = append(out.Decls, x)
	for i := range out.Needs {
		if n := &out.Needs[i]; covers(x.Span, n.Span) {
			n.Graph = x.Name
		}
	}
}

func covers(outer, inner diag.Span) bool {
	return outer.Start.Offset <= inner.Start.Offset && inner.End.Offset <= outer.End.Offset
}
