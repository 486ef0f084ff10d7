package shrink

import (
	"cmp"
	"slices"
	"strings"

	"github.com/fusec/fusec/parser"
)

// source is a text cut into tokens and statements.
type source struct {
	text       string
	graph      string
	analysis   *parser.Analysis
	tokens     []parser.Token // without comments
	statements []statement    // of all bodies, the outer ones first
	graphs     []header
}

// statement is one of a body. Those inside its blocks are statements of their own.
type statement struct {
	tokens []parser.Token
	target string // the one name that it binds, or ""
	top    bool   // not inside a block
	decl   string // the function or graph that it is of
	value  int    // the token behind =, or 0
	blocks [][2]int
	symbol *parser.Symbol // of the target, where it is known
}

// header is that of a graph: places of its lists of inputs and results.
type header struct {
	name            string
	inputs, results list
}

// list is what stands between parentheses: offsets of the items.
type list struct {
	open, close int // just behind (, and of )
	items       [][2]int
}

// edit puts a text in place of a part of the source.
type edit struct {
	from, to int
	text     string
}

func endOf(t parser.Token) int { return t.Pos.Offset + len(t.Text) }

// newSource cuts the text of a right program.
func newSource(p *Program) *source {
	s := &source{text: p.Text, graph: p.Graph}
	a, err := parser.NewAnalyzer(p.Name, parser.Options{ReadFile: p.ReadFile}).Analyze([]byte(p.Text))
	if err != nil {
		return s
	}
	s.analysis = a
	for _, t := range a.Details().Tokens {
		if t.Kind != parser.CommentToken {
			s.tokens = append(s.tokens, t)
		}
	}
	for _, d := range a.Decls {
		within := between(s.tokens, d.Span.Start.Offset, d.Span.End.Offset)
		if d.Kind == parser.GraphSymbol && !d.Body.IsZero() {
			s.graphs = append(s.graphs, headerOf(d.Name, within))
		}
		if !d.Body.IsZero() {
			s.cut(between(s.tokens, d.Body.Start.Offset+1, d.Body.End.Offset-1), d.Name, true)
		}
	}
	s.bind()
	return s
}

// between are the tokens that begin in a part of the text.
func between(tokens []parser.Token, from, to int) []parser.Token {
	at := func(offset int) int {
		i, _ := slices.BinarySearchFunc(tokens, offset, func(t parser.Token, o int) int { return cmp.Compare(t.Pos.Offset, o) })
		return i
	}
	return tokens[at(from):at(to)]
}

// depthOf is what a token adds to the number of open brackets.
func depthOf(t parser.Token) int {
	switch t.Text {
	case "(", "[", "{":
		return 1
	case ")", "]", "}":
		return -1
	}
	return 0
}

// cut lists the statements of a block.
func (s *source) cut(tokens []parser.Token, decl string, top bool) {
	var one []parser.Token
	depth := 0
	end := func() {
		if len(one) > 0 {
			s.add(one, decl, top)
		}
		one = nil
	}
	for _, t := range tokens {
		if t.Kind == parser.LineEndToken && depth == 0 {
			end()
			continue
		}
		depth += depthOf(t)
		one = append(one, t)
	}
	end()
}

// add keeps a statement and cuts its blocks.
func (s *source) add(tokens []parser.Token, decl string, top bool) {
	st := statement{tokens: tokens, decl: decl, top: top}
	targets, depth, open := 0, 0, 0
	for i, t := range tokens {
		switch {
		case t.Text == "{" && depth == 0:
			open = i
		case t.Text == "}" && depth == 1:
			st.blocks = append(st.blocks, [2]int{open, i})
		case t.Text == "," && depth == 0 && st.value == 0:
			targets++
		case (t.Text == "=" || t.Text == "return") && depth == 0 && st.value == 0 && i+1 < len(tokens):
			st.value = i + 1
		}
		depth += depthOf(t)
	}
	if st.value > 0 && targets == 0 && tokens[0].Kind == parser.IdentToken {
		st.target = tokens[0].Text
	}
	s.statements = append(s.statements, st)
	for _, b := range st.blocks {
		s.cut(tokens[b[0]+1:b[1]], decl, false)
	}
}

// bind finds the symbol of each target.
func (s *source) bind() {
	at := map[int]*parser.Symbol{}
	for _, u := range s.analysis.Details().Uses {
		at[u.Span.Start.Offset] = u.Symbol
	}
	for i := range s.statements {
		s.statements[i].symbol = at[s.statements[i].from()]
	}
}

func (s statement) from() int { return s.tokens[0].Pos.Offset }
func (s statement) to() int   { return endOf(s.tokens[len(s.tokens)-1]) }

// tensorType is the type of the one tensor that the statement binds, or "".
func (s statement) tensorType() string {
	if s.target == "" || s.symbol == nil || !s.symbol.Tensor || len(s.symbol.Types) != 1 {
		return ""
	}
	return s.symbol.Types[0]
}

// headerOf finds the lists of a graph's header.
func headerOf(name string, tokens []parser.Token) header {
	h := header{name: name}
	for i, t := range tokens {
		if t.Text != "graph" {
			continue
		}
		h.inputs, i = listAt(tokens, i+2)
		h.results, _ = listAt(tokens, i+2) // behind ) and ->
		break
	}
	return h
}

// listAt reads a list from its (, and returns the token of its ).
func listAt(tokens []parser.Token, open int) (list, int) {
	l := list{open: endOf(tokens[open])}
	depth, from := 0, -1
	for i := open; i < len(tokens); i++ {
		t := tokens[i]
		depth += depthOf(t)
		if depth == 0 || depth == 1 && t.Text == "," {
			if from >= 0 {
				l.items = append(l.items, [2]int{from, endOf(tokens[i-1])})
			}
			from = -1
			if depth == 0 {
				l.close = t.Pos.Offset
				return l, i
			}
		} else if from < 0 && i > open && t.Kind != parser.LineEndToken {
			from = t.Pos.Offset
		}
	}
	return l, len(tokens)
}

// without is an edit of a list that leaves an item out, and adds text behind the others.
func (s *source) without(l list, item int, more ...string) edit {
	var items []string
	for i, at := range l.items {
		if i != item {
			items = append(items, s.text[at[0]:at[1]])
		}
	}
	return edit{l.open, l.close, strings.Join(append(items, more...), ", ")}
}

// with is the text with edits, which must not overlap.
func (s *source) with(edits ...edit) string {
	slices.SortFunc(edits, func(a, b edit) int { return cmp.Compare(b.from, a.from) })
	text := s.text
	for _, e := range edits {
		text = text[:e.from] + e.text + text[e.to:]
	}
	return text
}

// removal takes a part of the text away, with its line where nothing else is on it.
func (s *source) removal(from, to int) edit {
	begin := strings.LastIndexByte(s.text[:from], '\n') + 1
	end := len(s.text)
	if i := strings.IndexByte(s.text[to:], '\n'); i >= 0 {
		end = to + i + 1
	}
	if strings.TrimSpace(s.text[begin:from]) == "" && strings.TrimSpace(s.text[to:end]) == "" {
		return edit{begin, end, ""}
	}
	return edit{from, to, ""}
}

// values are the places of right sides: of statements, what they return included, and of functions that are one expression.
func (s *source) values() (out [][2]int) {
	for _, st := range s.statements {
		if st.value > 0 && len(st.blocks) == 0 {
			out = append(out, [2]int{st.tokens[st.value].Pos.Offset, st.to()})
		}
	}
	for _, d := range s.analysis.Decls {
		if d.Kind != parser.FunctionSymbol || !d.Body.IsZero() {
			continue
		}
		depth, from := 0, -1
		for _, t := range between(s.tokens, d.Span.Start.Offset, d.Span.End.Offset) {
			depth += depthOf(t)
			if t.Text == "=" && depth == 0 && from < 0 {
				from = endOf(t)
			}
		}
		if from >= 0 {
			out = append(out, [2]int{from, d.Span.End.Offset})
		}
	}
	return out
}
