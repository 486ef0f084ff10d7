package parser

import (
	"path"
	"slices"
	"sort"
	"strings"

	"github.com/fusec/fusec/ir/diag"
)

// describe fills in what the tree says, and what expanding the graphs found.
func (out *Analysis) describe(x *Details) {
	r := resolve(out.Text, out.mod)
	x.Symbols, x.Uses = r.symbols, r.uses
	sort.SliceStable(x.Uses, func(i, j int) bool { return x.Uses[i].Span.Start.Offset < x.Uses[j].Span.Start.Offset })
	for _, s := range r.global {
		x.Visible = append(x.Visible, s)
	}
	sort.Slice(x.Visible, func(i, j int) bool { return x.Visible[i].Name < x.Visible[j].Name })
	at := map[int]*Symbol{}
	for _, u := range x.Uses {
		if u.Defines {
			at[u.Span.Start.Offset] = u.Symbol
		}
	}
	for _, k := range out.marks {
		switch k.kind {
		case typeMark:
			if s := at[k.span.Start.Offset]; s != nil && s.Kind != ConstSymbol {
				s.learn(k)
			}
		case callMark:
			x.Calls = append(x.Calls, Call{k.span, k.text})
		case needsMark:
			out.need(x, k)
		}
	}
	sort.SliceStable(x.Calls, func(i, j int) bool { return x.Calls[i].Span.Start.Offset < x.Calls[j].Span.Start.Offset })
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
func (out *Analysis) need(x *Details, k mark) {
	from, to := k.span.Start.Offset, k.span.End.Offset
	if to > len(out.Text) || from > to || strings.HasPrefix(out.Text[from:to], "require") {
		return
	}
	n := Need{Span: k.span, Cond: k.text, Why: k.why}
	for _, d := range out.Decls {
		if covers(d.Span, n.Span) {
			n.Graph = d.Name
		}
	}
	x.Needs = append(x.Needs, n)
}

func (out *Analysis) decl(d *declNode) {
	x := Decl{Span: d.span(), Broken: d.broken}
	var body *blockNode
	switch {
	case d.Import != nil:
		out.Imports = append(out.Imports, Import{d.Import.span(), path.Join(path.Dir(out.Name), strings.Trim(d.Import.Path, `"`))})
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
}

func covers(outer, inner diag.Span) bool {
	return outer.Start.Offset <= inner.Start.Offset && inner.End.Offset <= outer.End.Offset
}
