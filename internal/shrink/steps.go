package shrink

import (
	"iter"
	"slices"
	"strings"

	"github.com/fusec/fusec/parser"
)

// fewerDeclarations takes away the other graphs, then each declaration and import.
func (s *source) fewerDeclarations() iter.Seq[string] {
	return func(yield func(string) bool) {
		var others []edit
		for _, d := range s.analysis.Decls {
			if d.Kind == parser.GraphSymbol && d.Name != s.graph {
				others = append(others, s.removal(d.Span.Start.Offset, d.Span.End.Offset))
			}
		}
		if s.graph != "" && len(others) > 0 && !yield(s.with(others...)) {
			return
		}
		for _, d := range s.analysis.Decls {
			if !yield(s.with(s.removal(d.Span.Start.Offset, d.Span.End.Offset))) {
				return
			}
		}
		for _, d := range s.analysis.Imports {
			if !yield(s.with(s.removal(d.Span.Start.Offset, d.Span.End.Offset))) {
				return
			}
		}
	}
}

func (s *source) fewerOutputs() iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, h := range s.graphs {
			if len(h.results.items) < 2 {
				continue
			}
			for i := range h.results.items {
				if !yield(s.with(s.without(h.results, i))) {
					return
				}
			}
		}
	}
}

// headerFor is the header of the graph that a statement is of, nil where it is of a function.
func (s *source) headerFor(st statement) *header {
	for i, h := range s.graphs {
		if h.name == st.decl {
			return &s.graphs[i]
		}
	}
	return nil
}

// inputsForStatements makes inputs of what statements bind, the last ones first: all before
// them may then be unread.
func (s *source) inputsForStatements() iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, st := range slices.Backward(s.statements) {
			h, typ := s.headerFor(st), st.tensorType()
			if h == nil || typ == "" || !st.top || st.symbol.Kind != parser.ValueSymbol {
				continue
			}
			if !yield(s.with(s.removal(st.from(), st.to()), s.without(h.inputs, -1, st.target+": "+typ))) {
				return
			}
		}
	}
}

// otherOutputs returns, in place of a graph's only output, what a statement binds.
func (s *source) otherOutputs() iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, st := range slices.Backward(s.statements) {
			h, typ := s.headerFor(st), st.tensorType()
			if h == nil || typ == "" || !st.top || st.symbol.Kind != parser.ValueSymbol || len(h.results.items) != 1 {
				continue
			}
			if !yield(s.with(edit{h.results.open, h.results.close, st.target + ": " + typ})) {
				return
			}
		}
	}
}

// fewerStatements takes statements away, and puts a block in place of the statement it is of.
func (s *source) fewerStatements() iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, st := range s.statements {
			if !yield(s.with(s.removal(st.from(), st.to()))) {
				return
			}
			for _, b := range st.blocks {
				inside := strings.TrimSpace(s.text[endOf(st.tokens[b[0]]):st.tokens[b[1]].Pos.Offset])
				if !yield(s.with(edit{st.from(), st.to(), inside})) {
					return
				}
			}
		}
	}
}

// plainer takes away comments, and each annotation.
func (s *source) plainer() iter.Seq[string] {
	return func(yield func(string) bool) {
		var comments []edit
		for _, t := range s.analysis.Details().Tokens {
			if t.Kind == parser.CommentToken {
				comments = append(comments, s.removal(t.Pos.Offset, endOf(t)))
			}
		}
		if len(comments) > 0 && !yield(s.with(comments...)) {
			return
		}
		for i, t := range s.tokens {
			if t.Text != "@" || i+2 >= len(s.tokens) {
				continue
			}
			end := endOf(s.tokens[i+1])
			if s.tokens[i+2].Text == "(" {
				l, _ := listAt(s.tokens, i+2)
				end = l.close + 1
			}
			if !yield(s.with(s.removal(t.Pos.Offset, end))) {
				return
			}
		}
	}
}

// withoutUnread takes away what nothing reads: statements, inputs, functions and constants.
func (s *source) withoutUnread() iter.Seq[string] {
	return func(yield func(string) bool) {
		read := map[*parser.Symbol]bool{}
		for _, u := range s.analysis.Details().Uses {
			read[u.Symbol] = read[u.Symbol] || !u.Defines
		}
		for _, st := range slices.Backward(s.statements) {
			unread := st.target != "" && st.symbol != nil && st.symbol.Kind == parser.ValueSymbol && !read[st.symbol]
			if unread && !yield(s.with(s.removal(st.from(), st.to()))) {
				return
			}
		}
		for _, u := range s.analysis.Details().Uses {
			if !u.Defines || read[u.Symbol] {
				continue
			}
			at := u.Span.Start.Offset
			switch u.Symbol.Kind {
			case parser.InputSymbol:
				if text, ok := s.withoutInput(at); ok && !yield(text) {
					return
				}
			case parser.FunctionSymbol, parser.ConstSymbol:
				for _, d := range s.analysis.Decls {
					if d.At.Start.Offset == at && !yield(s.with(s.removal(d.Span.Start.Offset, d.Span.End.Offset))) {
						return
					}
				}
			}
		}
	}
}

// withoutInput leaves out the input whose declaration holds a place of the text.
func (s *source) withoutInput(at int) (string, bool) {
	for _, h := range s.graphs {
		for i, item := range h.inputs.items {
			if item[0] <= at && at < item[1] {
				return s.with(s.without(h.inputs, i)), true
			}
		}
	}
	return "", false
}
