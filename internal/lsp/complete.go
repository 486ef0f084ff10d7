package lsp

import (
	"maps"
	"slices"
	"strings"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/parser"
)

// spot is a place in the words of a source.
type spot struct {
	tokens []parser.Token // those before it, without comments and the word that is being typed
	call   string         // the function whose arguments are being typed, or ""
	given  []string       // the names of its arguments so far
	index  int            // of the argument
	name   string         // of the argument, where it is given by name
}

// spotAt looks at the words before an offset.
func spotAt(a *parser.Analysis, offset int) spot {
	var s spot
	for _, t := range a.Details().Tokens {
		end := t.Pos.Offset + len(t.Text)
		typing := end >= offset && (t.Kind == parser.IdentToken || t.Kind == parser.KeywordToken || t.Kind == parser.ReductionToken)
		if end > offset || typing {
			break
		}
		if t.Kind != parser.CommentToken {
			s.tokens = append(s.tokens, t)
		}
	}
	s.findCall()
	return s
}

// findCall looks for the open parenthesis of a call around the place.
func (s *spot) findCall() {
	depth := 0
	for i := len(s.tokens) - 1; i >= 0; i-- {
		switch t := s.tokens[i]; t.Text {
		case ")", "]":
			depth++
		case "[":
			depth--
		case "(":
			if depth--; depth >= 0 {
				continue
			}
			if i == 0 || s.tokens[i-1].Kind != parser.IdentToken || declaring(s.tokens, i) {
				depth = 0 // parentheses around an expression, or of a header
				s.index, s.given, s.name = 0, nil, ""
				if i > 0 && declaring(s.tokens, i) {
					return
				}
				continue
			}
			s.call = s.tokens[i-1].Text
			return
		case ",":
			if depth == 0 {
				s.index++
			}
		case "=":
			if depth == 0 && i > 0 && s.tokens[i-1].Kind == parser.IdentToken {
				if s.index == 0 {
					s.name = s.tokens[i-1].Text
				}
				s.given = append(s.given, s.tokens[i-1].Text)
			}
		case "{", "}":
			return
		}
		if s.tokens[i].Kind == parser.LineEndToken {
			return
		}
	}
}

// declaring reports whether the parenthesis at i is that of a header.
func declaring(tokens []parser.Token, i int) bool {
	return i > 1 && (tokens[i-2].Text == "fn" || tokens[i-2].Text == "graph") || i > 0 && tokens[i-1].Text == "->"
}

// before is the word n places before the spot; "" where there is none.
func (s *spot) before(n int) string {
	if len(s.tokens) < n {
		return ""
	}
	return s.tokens[len(s.tokens)-n].Text
}

func (s *server) completion(p placeParams) (any, error) {
	d, a, err := s.open(p)
	if err != nil {
		return nil, err
	}
	offset := d.text.offset(p.Position)
	at := spotAt(a, offset)
	decl := declAt(a, offset)
	if decl == nil {
		decl = unclosed(a, at.tokens)
	}
	c := &completer{seen: map[string]bool{}, items: []completionItem{}}
	annotating := at.before(1) == "@" && (len(at.tokens) < 2 || at.tokens[len(at.tokens)-2].Pos.Line < at.tokens[len(at.tokens)-1].Pos.Line)
	switch {
	case annotating:
		for _, name := range slices.Sorted(maps.Keys(annotations)) {
			c.add(completionItem{Label: name, Kind: completeKeyword, Documentation: doc(annotations[name])})
		}
	case at.before(1) == ":" && typed(at.tokens):
		c.types(a, decl)
	case !defining(at.tokens) && (decl == nil || decl.Body.IsZero() && !declWithin(decl, offset)):
		for _, word := range []string{"graph", "fn", "const", "import"} {
			c.add(completionItem{Label: word, Kind: completeKeyword})
		}
	default:
		if at.call != "" {
			c.arguments(a, at)
		}
		c.names(a, offset)
		c.functions(a)
		c.types(a, decl)
		c.words(at)
	}
	return map[string]any{"isIncomplete": false, "items": c.items}, nil
}

// defining reports whether the last of the words are a function or a constant up to its value, which is an expression.
func defining(tokens []parser.Token) bool {
	depth := 0
	for i := len(tokens) - 1; i >= 0 && tokens[i].Kind != parser.LineEndToken; i-- {
		switch t := tokens[i]; {
		case t.Text == ")":
			depth++
		case t.Text == "(":
			depth--
		case t.Text == "=" && depth == 0:
			first := i
			for first > 0 && tokens[first-1].Kind != parser.LineEndToken {
				first--
			}
			return tokens[first].Text == "fn" || tokens[first].Text == "const"
		}
	}
	return false
}

// unclosed is the declaration whose body the last of the words is in, where no brace closes it yet: what is known of it ends
// at its first mistake.
func unclosed(a *parser.Analysis, tokens []parser.Token) *parser.Decl {
	depth := 0
	for i := len(tokens) - 1; i >= 0 && depth <= 0; i-- {
		switch tokens[i].Text {
		case "{":
			depth++
		case "}":
			depth--
		}
		if depth > 0 {
			for d := range slices.Backward(a.Decls) {
				if a.Decls[d].Span.Start.Offset < tokens[i].Pos.Offset {
					return &a.Decls[d]
				}
			}
		}
	}
	return nil
}

// declWithin reports whether an offset is behind the name of a declaration.
func declWithin(d *parser.Decl, offset int) bool { return offset > d.At.End.Offset }

// typed reports whether the colon that ends the words is that of a parameter: behind a
// name, inside the parentheses of a header.
func typed(tokens []parser.Token) bool {
	depth := 0
	for i := len(tokens) - 1; i >= 0; i-- {
		switch tokens[i].Text {
		case ")", "]":
			depth++
		case "[":
			if depth--; depth < 0 {
				return false
			}
		case "(":
			if depth--; depth < 0 {
				return declaring(tokens, i)
			}
		case "{", "}":
			return false
		}
	}
	return false
}

type completer struct {
	items []completionItem
	seen  map[string]bool
}

func (c *completer) add(item completionItem) {
	if !c.seen[item.Label] {
		c.seen[item.Label] = true
		c.items = append(c.items, item)
	}
}

// arguments offers the names of the parameters of the call that were not given yet.
func (c *completer) arguments(a *parser.Analysis, at spot) {
	for _, sig := range signaturesOf(a, at.call) {
		for _, p := range paramsOf(sig.Label) {
			name, _, _ := strings.Cut(strings.TrimSuffix(strings.TrimSpace(p), "..."), ":")
			name = strings.TrimSpace(strings.SplitN(name, "=", 2)[0])
			if strings.Contains(p, "=") && !slices.Contains(at.given, name) {
				c.add(completionItem{Label: name + "=", Kind: completeProperty, Detail: strings.TrimSpace(p), SortText: "0" + name})
			}
		}
	}
}

// names offers what is bound before the place.
func (c *completer) names(a *parser.Analysis, offset int) {
	for _, s := range a.Details().Symbols {
		visible := s.Scope.IsZero() || s.Scope.Start.Offset <= offset && offset <= s.Scope.End.Offset+1
		value := s.Kind == parser.InputSymbol || s.Kind == parser.ParamSymbol || s.Kind == parser.SizeSymbol ||
			s.Kind == parser.ValueSymbol || s.Kind == parser.IndexSymbol || s.Kind == parser.LoopSymbol || s.Kind == parser.ResultSymbol
		if value && visible && s.Span.Start.Filename == a.Name && s.Span.End.Offset < offset {
			c.add(completionItem{Label: s.Name, Kind: completeVariable, Detail: strings.Join(s.Types, " | "), SortText: "1" + s.Name})
		}
	}
	for _, s := range a.Details().Visible {
		if s.Kind == parser.ConstSymbol {
			c.add(completionItem{Label: s.Name, Kind: completeConstant, Detail: strings.Join(s.Types, " | "), SortText: "2" + s.Name})
		}
	}
}

// functions offers those of the program and of its imports, then what is built in.
func (c *completer) functions(a *parser.Analysis) {
	for _, s := range a.Details().Visible {
		if s.Kind == parser.FunctionSymbol {
			c.add(completionItem{Label: s.Name, Kind: completeFunction, Detail: s.Signature, Documentation: doc(s.Doc), SortText: "2" + s.Name})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(builtins())) {
		f := builtins()[name][0]
		c.add(completionItem{Label: name, Kind: completeFunction, Detail: f.Signature, Documentation: doc(f.Doc), SortText: "3" + name})
	}
	for _, name := range slices.Sorted(maps.Keys(constants)) {
		c.add(completionItem{Label: name, Kind: completeConstant, Detail: constants[name], SortText: "3" + name})
	}
}

func (c *completer) types(a *parser.Analysis, decl *parser.Decl) {
	for _, s := range a.Details().Symbols {
		if decl != nil && s.Kind == parser.DTypeSymbol && s.Scope == decl.Span {
			c.add(completionItem{Label: s.Name, Kind: completeType, SortText: "2" + s.Name})
		}
	}
	for _, t := range ir.DTypes() {
		c.add(completionItem{Label: t.String(), Kind: completeType, SortText: "4" + t.String()})
	}
	if decl != nil && decl.Kind == parser.FunctionSymbol {
		for _, name := range []string{"int", "float", "bool", "string", "ints"} {
			c.add(completionItem{Label: name, Kind: completeType, Detail: "an attribute", SortText: "4" + name})
		}
	}
}

// words offers the keywords of statements.
func (c *completer) words(at spot) {
	for _, word := range parser.Keywords() {
		if !slices.Contains([]string{"import", "const", "fn", "graph"}, word) {
			c.add(completionItem{Label: word, Kind: completeKeyword, SortText: "5" + word})
		}
	}
}

func doc(text string) *markup {
	if text == "" {
		return nil
	}
	return &markup{"markdown", text}
}

func (s *server) signatureHelp(p placeParams) (any, error) {
	d, a, err := s.open(p)
	if err != nil {
		return nil, err
	}
	at := spotAt(a, d.text.offset(p.Position))
	if at.call == "" {
		return nil, nil
	}
	help := signatureHelp{Signatures: signaturesOf(a, at.call)}
	if len(help.Signatures) == 0 {
		return nil, nil
	}
	help.ActiveParameter = at.index
	for n, sig := range help.Signatures {
		params := paramsOf(sig.Label)
		for i, text := range params {
			if at.name != "" && strings.HasPrefix(strings.TrimSpace(text), at.name) {
				help.ActiveSignature, help.ActiveParameter = n, i
			}
		}
		if at.name == "" && at.index < len(params) && help.ActiveSignature == 0 && at.index >= len(help.Signatures[0].Parameters) {
			help.ActiveSignature = n
		}
	}
	return help, nil
}

// signaturesOf lists the signatures of the functions of a name, the program's own first.
func signaturesOf(a *parser.Analysis, name string) []signature {
	var out []signature
	add := func(text, about string) {
		out = append(out, signature{Label: text, Documentation: doc(about), Parameters: parameters(text)})
	}
	for _, s := range a.Details().Visible {
		if s.Name == name && s.Kind == parser.FunctionSymbol && s.Signature != "" {
			add(s.Signature, s.Doc)
			return out
		}
	}
	for _, f := range builtins()[name] {
		add(f.Signature, f.Doc)
	}
	return out
}

// paramsOf cuts the parameters of a signature apart.
func paramsOf(label string) []string {
	var out []string
	for _, p := range parameters(label) {
		out = append(out, label[p.Label[0]:p.Label[1]])
	}
	return out
}

func parameters(label string) []parameter {
	out := []parameter{}
	depth, start := 0, 0
	for i, c := range label {
		switch {
		case c == '(' || c == '[':
			if depth++; depth == 1 {
				start = i + 1
			}
		case c == ',' && depth == 1:
			out = append(out, trimmed(label, start, i))
			start = i + 1
		case c == ')' || c == ']':
			if depth--; depth == 0 {
				if strings.TrimSpace(label[start:i]) != "" {
					out = append(out, trimmed(label, start, i))
				}
				return out
			}
		}
	}
	return out
}

func trimmed(label string, from, to int) parameter {
	for from < to && label[from] == ' ' {
		from++
	}
	return parameter{[2]int{from, to}}
}
