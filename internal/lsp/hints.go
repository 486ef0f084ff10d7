package lsp

import (
	"fmt"
	"sort"
	"strings"

	"github.com/fusec/fusec/parser"
)

// inlayHints are the shapes of tensors behind their names, and at the ends of lines the
// kernels that compute them and the bytes that they write.
func (s *server) inlayHints(p placeParams) (any, error) {
	d, a, err := s.open(p)
	if err != nil {
		return nil, err
	}
	out := []inlayHint{}
	first, last := p.Range.Start.Line, p.Range.End.Line
	seen := map[*parser.Symbol]bool{}
	for _, u := range a.Details().Uses {
		sym := u.Symbol
		at := d.text.position(u.Span.End.Offset)
		if !u.Defines || !sym.Tensor || sym.Kind != parser.ValueSymbol || seen[sym] || at.Line < first || at.Line > last {
			continue
		}
		seen[sym] = true
		const kindType = 1
		out = append(out, inlayHint{Position: at, Label: ": " + strings.Join(sym.Types, " | "), Kind: kindType})
	}
	for _, decl := range a.Decls {
		if plan := s.planOf(d, decl); plan != nil {
			out = append(out, s.lineHints(d, decl, plan, first, last)...)
		}
	}
	return out, nil
}

func (s *server) lineHints(d *document, decl parser.Decl, plan *planned, first, last int) []inlayHint {
	var out []inlayHint
	for line, n := range plan.notes(decl, d.path) {
		if line-1 < first || line-1 > last {
			continue
		}
		var names []string
		for _, i := range n.kernels {
			names = append(names, fmt.Sprint(i+1))
		}
		label := "kernel " + strings.Join(names, ", ")
		if n.bytes > 0 {
			label += ", writes " + bytesText(n.bytes)
		}
		end := d.text.position(d.text.lines[line-1] + len(d.text.line(line-1)))
		out = append(out, inlayHint{Position: end, Label: label, Tooltip: noteText(plan, n), PaddingLeft: true})
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Position.Line < out[j].Position.Line })
	return out
}

// legend names what semantic tokens are.
var legend = map[string]any{
	"tokenTypes": []string{"keyword", "function", "variable", "parameter", "type", "number", "string", "operator", "comment",
		"macro", "property", "typeParameter"},
	"tokenModifiers": []string{"declaration", "defaultLibrary", "readonly"},
}

const (
	tokenKeyword = iota
	tokenFunction
	tokenVariable
	tokenParameter
	tokenType
	tokenNumber
	tokenString
	tokenOperator
	tokenComment
	tokenMacro
	tokenProperty
	tokenSize
	tokenNone = -1

	declares = 1
	standard = 2
	readonly = 4
)

// semanticTokens says what each word is.
func (s *server) semanticTokens(p placeParams) (any, error) {
	d, a, err := s.open(p)
	if err != nil {
		return nil, err
	}
	uses := map[int]parser.Use{}
	for _, u := range a.Details().Uses {
		uses[u.Span.Start.Offset] = u
	}
	data := []int{}
	var last position
	for i, t := range a.Details().Tokens {
		kind, modifiers := tokenNone, 0
		if u, ok := uses[t.Pos.Offset]; ok {
			kind, modifiers = useToken(u)
		} else {
			kind = wordToken(a.Details().Tokens, i)
		}
		if kind == tokenNone || t.Text == "" {
			continue
		}
		from, to := d.text.position(t.Pos.Offset), d.text.position(t.Pos.Offset+len(t.Text))
		column := from.Character
		if from.Line == last.Line {
			column -= last.Character
		}
		data = append(data, from.Line-last.Line, column, to.Character-from.Character, kind, modifiers)
		last = from
	}
	return map[string]any{"data": data}, nil
}

func useToken(u parser.Use) (kind, modifiers int) {
	if u.Defines {
		modifiers = declares
	}
	switch u.Symbol.Kind {
	case parser.FunctionSymbol, parser.GraphSymbol:
		return tokenFunction, modifiers
	case parser.BuiltinSymbol:
		if _, constant := constants[u.Symbol.Name]; constant {
			return tokenKeyword, 0
		}
		return tokenFunction, standard
	case parser.DTypeSymbol:
		return tokenType, modifiers
	case parser.SizeSymbol:
		return tokenSize, modifiers
	case parser.ConstSymbol:
		return tokenVariable, modifiers | readonly
	case parser.AnnotationSymbol:
		return tokenMacro, 0
	case parser.InputSymbol, parser.ParamSymbol, parser.IndexSymbol:
		return tokenParameter, modifiers
	}
	return tokenVariable, modifiers
}

// wordToken says what a word is that stands for no symbol.
func wordToken(tokens []parser.Token, i int) int {
	switch t := tokens[i]; t.Kind {
	case parser.KeywordToken:
		return tokenKeyword
	case parser.ReductionToken:
		return tokenFunction
	case parser.NumberToken:
		return tokenNumber
	case parser.TextToken:
		return tokenString
	case parser.OperatorToken:
		return tokenOperator
	case parser.CommentToken:
		return tokenComment
	case parser.IdentToken:
		if i > 0 && tokens[i-1].Text == ":" {
			return tokenType
		}
		if t.Text == "where" || t.Text == "at" || t.Text == "in" {
			return tokenKeyword
		}
	}
	return tokenNone
}
