package parser

import (
	"slices"
	"sort"

	"github.com/alecthomas/participle/v2/lexer"

	"github.com/fusec/fusec/ir/diag"
)

// reader builds the syntax tree of a file from its tokens, by recursive descent:
// one method for each production of the grammar that the tags of the nodes hold.
// One token decides every choice.
//
// Where a statement or a declaration is wrong, the reader reports it, skips to the
// end of it and goes on, so that one run finds all mistakes of syntax.
type reader struct {
	raw    []lexer.Token
	tokens []lexer.Token // of raw, without blanks and comments; the last one is EOF
	most   int           // mistakes to report
	at     int
	end    lexer.Position // of the last token that was read
	errs   diag.List
}

// wrong is the value with which the reader panics to leave a statement or a declaration that has a
// mistake.
type wrong struct{}

// parseTokens builds the syntax tree of one file. The tree holds what could be
// understood; a declaration with mistakes is in it, marked as broken.
func parseTokens(tokens []lexer.Token, limits Limits) (*fileNode, diag.List) {
	r := &reader{raw: tokens, tokens: make([]lexer.Token, 0, len(tokens)*3/4), most: limits.Errors}
	r.keep(tokens)
	f := r.file()
	return f, r.errs
}

// keep adds the tokens that are no blanks.
func (r *reader) keep(tokens []lexer.Token) {
	for _, t := range tokens {
		if t.Type != tokWhitespace && t.Type != tokComment {
			r.tokens = append(r.tokens, t)
		}
	}
}

// afresh takes the line that begins at the next token for the begin of a statement,
// whatever brackets are open: line ends behind it are seen anew.
func (r *reader) afresh() {
	from := sort.Search(len(r.raw), func(i int) bool { return r.raw[i].Pos.Offset >= r.peek().Pos.Offset })
	rest := r.raw[from:]
	for i := range rest {
		if rest[i].Value == "\n" {
			rest[i].Type = tokEOL
		}
	}
	markLines(rest)
	r.tokens = r.tokens[:r.at]
	r.keep(rest)
}

func (r *reader) peek() *lexer.Token { return &r.tokens[r.at] }

// is reports whether the next token is the given keyword or symbol.
func (r *reader) is(text string) bool { return r.tokens[r.at].Value == text }

// next reads a token; it stays at the last one.
func (r *reader) next() *lexer.Token {
	t := &r.tokens[r.at]
	if r.at < len(r.tokens)-1 {
		r.at++
		r.end = t.Pos
		r.end.Advance(t.Value)
	}
	return t
}

// accept reads the given keyword or symbol where it comes next.
func (r *reader) accept(text string) bool {
	if r.is(text) && r.peek().Type != tokEOF {
		r.next()
		return true
	}
	return false
}

func (r *reader) expect(text string) {
	if !r.accept(text) {
		r.unexpected(`"` + text + `"`)
	}
}

// word reads a token of the given type.
func (r *reader) word(kind lexer.TokenType, what string) string {
	if r.peek().Type != kind {
		r.unexpected(what)
	}
	return r.next().Value
}

// aName is what is expected where something is named.
const aName = "a name"

// unexpected reports the next token and gives the statement up.
func (r *reader) unexpected(want string) {
	t := *r.peek()
	if len(r.errs) >= r.most {
		panic(wrong{})
	}
	text := unexpected(t, want)
	if want == aName && t.Type == tokKeyword {
		text += ": choose another name"
	} else if hint := foreignSyntax(t, r.raw); hint != "" {
		text += ": " + hint
	}
	r.errs.Add(tokenSpan(t), "%s", text)
	panic(wrong{})
}

// attempt calls read and reports whether it came to its end.
func (r *reader) attempt(read func()) (ok bool) {
	defer func() {
		if v := recover(); v != nil {
			if _, mine := v.(wrong); !mine {
				panic(v)
			}
			ok = false
		}
	}()
	read()
	return true
}

func (r *reader) start() node { return node{Pos: diag.Pos(r.peek().Pos)} }

func (r *reader) close(n *node) { n.EndPos = diag.Pos(r.end) }

// list reads item (',' item)* up to the closing symbol, which may come at once
// where empty is set.
func (r *reader) list(closing string, empty bool, item func()) {
	if empty && r.accept(closing) {
		return
	}
	item()
	for r.accept(",") {
		item()
	}
	r.expect(closing)
}

func (r *reader) file() *fileNode {
	f := &fileNode{node: r.start()}
	for {
		for r.peek().Type == tokEOL {
			r.next()
		}
		if r.peek().Type == tokEOF || len(r.errs) >= r.most {
			break
		}
		d := &declNode{node: r.start()}
		first := r.at
		ok := r.attempt(func() {
			r.decl(d)
			if k := r.peek().Type; k != tokEOL && k != tokEOF {
				r.unexpected("")
			}
		})
		if !ok {
			r.skipDecl(first)
			d.broken = true
		}
		r.close(&d.node)
		if d.Import != nil || d.Const != nil || d.Fn != nil || d.Graph != nil {
			f.Decls = append(f.Decls, d)
		}
	}
	r.close(&f.node)
	return f
}

var declWords = []string{"import", "const", "fn", "graph"}

// skipDecl goes on to the next line that begins a declaration.
func (r *reader) skipDecl(first int) {
	for r.peek().Type != tokEOF {
		t := r.peek()
		begins := slices.Contains(declWords, t.Value) || t.Value == "@"
		if r.at > first && t.Pos.Column == 1 && begins {
			r.afresh()
			return
		}
		if r.at > first && slices.Contains(declWords, t.Value) && r.tokens[r.at-1].Type == tokEOL {
			return
		}
		r.next()
	}
}

func (r *reader) decl(d *declNode) {
	switch {
	case r.is("import"):
		n := &importNode{node: r.start()}
		r.next()
		n.Path = r.word(tokString, "a text in quotes")
		r.close(&n.node)
		d.Import = n
	case r.is("const"):
		n := &constNode{node: r.start()}
		r.next()
		n.Name = r.ident()
		r.expect("=")
		n.Value = r.expr()
		r.close(&n.node)
		d.Const = n
	case r.is("fn"):
		r.fn(d)
	case r.is("graph") || r.is("@"):
		r.graph(d)
	default:
		r.unexpected("")
	}
}

func (r *reader) fn(d *declNode) {
	n := &fnNode{node: r.start()}
	r.next()
	n.Name = r.ident()
	r.expect("(")
	r.list(")", true, func() { n.Params = append(n.Params, r.param()) })
	if r.accept("->") {
		if r.accept("(") {
			r.list(")", false, func() { n.Results = append(n.Results, r.typ()) })
		} else {
			n.Results = append(n.Results, r.typ())
		}
	}
	if r.is("@") {
		n.Grad = r.declared()
	}
	if r.accept("=") {
		n.Short = r.expr()
		d.Fn = n
	} else {
		if r.is("{") {
			d.Fn = n
		}
		r.block(d, &n.Body)
	}
	r.close(&n.node)
}

func (r *reader) graph(d *declNode) {
	n := &graphNode{node: r.start()}
	for r.is("@") {
		a := &annotationNode{node: r.start()}
		r.next()
		a.Name = r.word(tokIdent, aName)
		if r.accept("(") {
			r.list(")", true, func() { a.Args = append(a.Args, r.arg()) })
		}
		r.close(&a.node)
		n.Notes = append(n.Notes, a)
		for r.peek().Type == tokEOL {
			r.next()
		}
	}
	r.expect("graph")
	n.Name = r.ident()
	if r.accept("=") {
		n.Grad = r.gradient()
		d.Graph = n
		r.close(&n.node)
		return
	}
	r.expect("(")
	r.list(")", true, func() { n.Params = append(n.Params, r.param()) })
	r.expect("->")
	r.expect("(")
	r.list(")", true, func() { n.Results = append(n.Results, r.param()) })
	if r.is("{") {
		d.Graph = n
	}
	r.block(d, &n.Body)
	r.close(&n.node)
}

func (r *reader) gradient() *gradNode {
	n := &gradNode{node: r.start()}
	n.Call = r.ident()
	r.expect("(")
	n.Of = r.ident()
	for r.accept(",") {
		a := &gradArgNode{node: r.start()}
		a.Name = r.ident()
		r.expect("=")
		if r.accept("[") {
			r.list("]", false, func() { a.List = append(a.List, r.ident()) })
		} else {
			a.Value = r.ident()
		}
		r.close(&a.node)
		n.Args = append(n.Args, a)
	}
	r.expect(")")
	r.close(&n.node)
	return n
}

func (r *reader) declared() *declaredNode {
	n := &declaredNode{node: r.start()}
	r.next()
	n.Name = r.ident()
	r.expect("(")
	n.By = r.ident()
	r.expect(")")
	r.close(&n.node)
	return n
}

func (r *reader) ident() *identNode {
	n := &identNode{node: r.start()}
	n.Text = r.word(tokIdent, aName)
	r.close(&n.node)
	return n
}

func (r *reader) param() *paramNode {
	n := &paramNode{node: r.start()}
	n.Name = r.ident()
	if n.Name.Text == stateWord && r.peek().Type == tokIdent {
		n.State, n.Name = true, r.ident()
	}
	r.expect(":")
	n.Type = r.typ()
	if r.accept("=") {
		n.Default = r.expr()
	}
	r.close(&n.node)
	return n
}

func (r *reader) typ() *typeNode {
	n := &typeNode{node: r.start()}
	n.Name = r.word(tokIdent, "a type")
	if r.is("[") {
		dims := &dimsNode{node: r.start()}
		r.next()
		r.list("]", true, func() { dims.Dims = append(dims.Dims, r.dim()) })
		r.close(&dims.node)
		n.Dims = dims
	}
	r.close(&n.node)
	return n
}

func (r *reader) dim() *dimNode {
	n := &dimNode{node: r.start()}
	if r.accept("...") {
		n.Leading = true
		if r.peek().Type == tokIdent {
			n.Name = r.next().Value
		}
	} else {
		n.Size = r.expr()
	}
	r.close(&n.node)
	return n
}
