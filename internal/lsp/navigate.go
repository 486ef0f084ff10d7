package lsp

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"go.lsp.dev/jsonrpc2"

	"github.com/fusec/fusec/ir/diag"
	"github.com/fusec/fusec/parser"
)

func (s *server) definition(p placeParams) (any, error) {
	d, a, err := s.open(p)
	if err != nil {
		return nil, err
	}
	offset := d.text.offset(p.Position)
	for _, i := range a.Imports {
		if i.Span.Start.Offset <= offset && offset <= i.Span.End.Offset {
			if at := s.file(filepath.Clean(i.Name), d.path); at != nil {
				return []location{{uriOf(at.path), textRange{}}}, nil
			}
		}
	}
	u := symbolAt(a, offset)
	if u != nil && u.Symbol.Kind == parser.BuiltinSymbol {
		return s.inLibrary(u.Symbol.Name), nil
	}
	if u == nil || u.Symbol.Span.IsZero() {
		return []location{}, nil
	}
	at := s.file(u.Symbol.Span.Start.Filename, d.path)
	if at == nil {
		return []location{}, nil
	}
	return []location{{uriOf(at.path), at.text.span(u.Symbol.Span)}}, nil
}

// inLibrary is where a function of the library is defined.
func (s *server) inLibrary(name string) []location {
	out := []location{}
	for _, f := range builtins()[name] {
		src, ok := parser.Source(f.File)
		at := strings.Index("\n"+src, "\nfn "+name+"(")
		if !ok || at < 0 || s.opts.Library == nil {
			continue
		}
		if path, err := s.opts.Library(f.File, src); err == nil {
			t := newText(src, s.wide)
			start := at + len("fn ")
			out = append(out, location{uriOf(path), textRange{t.position(start), t.position(start + len(name))}})
		}
	}
	return out
}

// occurrence is a use in some file.
type occurrence struct {
	d *document
	u parser.Use
}

// occurrences lists all uses of a symbol: in this file, and of functions and constants
// in the programs of the folders that are open.
func (s *server) occurrences(d *document, a *parser.Analysis, sym *parser.Symbol) []occurrence {
	var out []occurrence
	collect := func(d *document, a *parser.Analysis) {
		for _, u := range a.Details().Uses {
			same := u.Symbol.Span == sym.Span && u.Symbol.Name == sym.Name && u.Symbol.Kind == sym.Kind
			if same {
				out = append(out, occurrence{d, u})
			}
		}
	}
	collect(d, a)
	global := sym.Kind == parser.FunctionSymbol || sym.Kind == parser.ConstSymbol
	if !global || sym.Span.IsZero() {
		return out
	}
	for _, path := range s.programs() {
		other := s.docs[path]
		if path == d.path {
			continue
		}
		if other == nil {
			if other = s.file(path, filepath.Dir(path)); other == nil {
				continue
			}
		}
		if strings.Contains(other.text.src, sym.Name) {
			collect(other, s.analysis(other))
		}
	}
	return out
}

// programs lists the files that may use a symbol: those that are open, and those found.
func (s *server) programs() []string {
	seen := map[string]bool{}
	for path := range s.docs {
		seen[path] = true
	}
	if s.opts.Find != nil {
		for _, path := range s.opts.Find(s.roots) {
			seen[path] = true
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

func (s *server) references(p placeParams) (any, error) {
	d, a, err := s.open(p)
	if err != nil {
		return nil, err
	}
	out := []location{}
	if u := symbolAt(a, d.text.offset(p.Position)); u != nil {
		for _, o := range s.occurrences(d, a, u.Symbol) {
			if p.Context.IncludeDeclaration || o.u.Span != u.Symbol.Span {
				out = append(out, location{uriOf(o.d.path), o.d.text.span(o.u.Span)})
			}
		}
	}
	return out, nil
}

func (s *server) highlight(p placeParams) (any, error) {
	d, a, err := s.open(p)
	if err != nil {
		return nil, err
	}
	const read, write = 2, 3
	out := []map[string]any{}
	u := symbolAt(a, d.text.offset(p.Position))
	if u == nil {
		return out, nil
	}
	for _, other := range a.Details().Uses {
		if other.Symbol == u.Symbol {
			kind := read
			if other.Defines {
				kind = write
			}
			out = append(out, map[string]any{"range": d.text.span(other.Span), "kind": kind})
		}
	}
	return out, nil
}

// renamable returns the use at a place if its name is the program's to change.
func (s *server) renamable(p placeParams) (*document, *parser.Analysis, *parser.Use, error) {
	d, a, err := s.open(p)
	if err != nil {
		return nil, nil, nil, err
	}
	u := symbolAt(a, d.text.offset(p.Position))
	if u == nil || u.Symbol.Span.IsZero() {
		return nil, nil, nil, jsonrpc2.NewError(jsonrpc2.InvalidParams, "there is no name of the program here")
	}
	return d, a, u, nil
}

func (s *server) prepareRename(p placeParams) (any, error) {
	d, _, u, err := s.renamable(p)
	if err != nil {
		return nil, err
	}
	return map[string]any{"range": d.text.span(u.Span), "placeholder": u.Symbol.Name}, nil
}

func (s *server) rename(p placeParams) (any, error) {
	d, a, u, err := s.renamable(p)
	if err != nil {
		return nil, err
	}
	words := parser.Tokens("", []byte(p.NewName))
	if len(words) != 1 || words[0].Kind != parser.IdentToken || words[0].Text != p.NewName || len(builtins()[p.NewName]) > 0 {
		return nil, jsonrpc2.NewError(jsonrpc2.InvalidParams, p.NewName+" cannot be a name")
	}
	if taken := clash(a, u.Symbol, p.NewName); taken != nil {
		return nil, jsonrpc2.NewError(jsonrpc2.InvalidParams, p.NewName+" stands for something else here: "+taken.Span.String())
	}
	edit := workspaceEdit{Changes: map[string][]textEdit{}}
	seen := map[diag.Span]bool{}
	for _, o := range s.occurrences(d, a, u.Symbol) {
		if !seen[o.u.Span] {
			seen[o.u.Span] = true
			uri := uriOf(o.d.path)
			edit.Changes[uri] = append(edit.Changes[uri], textEdit{o.d.text.span(o.u.Span), p.NewName})
		}
	}
	return edit, nil
}

// clash returns a symbol of the given name whose scope meets that of sym.
func clash(a *parser.Analysis, sym *parser.Symbol, name string) *parser.Symbol {
	for _, other := range a.Details().Symbols {
		apart := !sym.Scope.IsZero() && !other.Scope.IsZero() &&
			(other.Scope.End.Offset <= sym.Scope.Start.Offset || sym.Scope.End.Offset <= other.Scope.Start.Offset)
		calls := func(s *parser.Symbol) bool { return s.Kind == parser.FunctionSymbol || s.Kind == parser.GraphSymbol }
		if other != sym && other.Name == name && !apart && calls(other) == calls(sym) {
			return other
		}
	}
	return nil
}

func (s *server) documentSymbols(p placeParams) (any, error) {
	d, a, err := s.open(p)
	if err != nil {
		return nil, err
	}
	out := []documentSymbol{}
	kinds := map[parser.SymbolKind]int{parser.GraphSymbol: symbolModule, parser.FunctionSymbol: symbolFunction,
		parser.ConstSymbol: symbolConstant}
	for _, decl := range a.Decls {
		item := documentSymbol{Name: decl.Name, Kind: kinds[decl.Kind], Range: d.text.span(decl.Span),
			SelectionRange: d.text.span(decl.At)}
		for _, sym := range a.Details().Symbols {
			inside := decl.Body.Start.Offset < sym.Span.Start.Offset && sym.Span.End.Offset <= decl.Body.End.Offset
			if sym.Kind == parser.ValueSymbol && inside && sym.Span.Start.Filename == d.path {
				at := d.text.span(sym.Span)
				item.Children = append(item.Children, documentSymbol{Name: sym.Name, Detail: strings.Join(sym.Types, " | "),
					Kind: symbolVariable, Range: at, SelectionRange: at})
			}
			if sym.Span == decl.At {
				item.Detail = sym.Signature
			}
		}
		out = append(out, item)
	}
	return out, nil
}

func (s *server) foldingRanges(p placeParams) (any, error) {
	d, a, err := s.open(p)
	if err != nil {
		return nil, err
	}
	out := []map[string]any{}
	for _, decl := range a.Decls {
		from, to := d.text.span(decl.Body).Start.Line, d.text.span(decl.Body).End.Line
		if to > from+1 {
			out = append(out, map[string]any{"startLine": from, "endLine": to - 1})
		}
	}
	return out, nil
}
