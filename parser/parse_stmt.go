package parser

import "github.com/alecthomas/participle/v2/lexer"

// block reads { statements } into body, at once, so that what was read of a block that
// is not closed is there. A statement with a mistake is left out, and marks the
// declaration d as broken.
func (r *reader) block(d *declNode, body **blockNode) {
	n := &blockNode{node: r.start()}
	r.expect("{")
	*body = n
	for {
		for r.peek().Type == tokEOL {
			r.next()
		}
		if r.is("}") || r.peek().Type == tokEOF || r.declares() || len(r.errs) >= r.most {
			break
		}
		first := r.at
		s := &stmtNode{node: r.start()}
		ok := r.attempt(func() {
			r.stmt(d, s)
			if k := r.peek().Type; k != tokEOL && !r.is("}") {
				r.unexpected(stmtEnd)
			}
		})
		if !ok {
			d.broken, s.broken = true, true
			r.skipStmt(first)
			r.close(&s.node)
		}
		if ok || s.Assign != nil || s.Return != nil {
			n.Stmts = append(n.Stmts, s)
		}
	}
	r.close(&n.node)
	if !r.is("}") {
		r.unexpected(stmtEnd)
	}
	r.next()
	r.close(&n.node)
}

const stmtEnd = "the end of the line, ; or }"

// declares reports whether a declaration begins here although a block is open: the
// block was not closed.
func (r *reader) declares() bool {
	t := r.peek()
	return t.Pos.Column == 1 && (t.Value == "fn" || t.Value == "graph" || t.Value == "@")
}

// skipStmt goes on to the end of the statement that began at the given token. What
// follows an error inside brackets is on one line with it for the lexer; such a
// statement ends where a line begins that is indented no more than it.
func (r *reader) skipStmt(first int) {
	begin := r.tokens[first].Pos
	depth := 0
	for i := first; i < r.at; i++ {
		depth += blockDepth(&r.tokens[i])
	}
	for r.peek().Type != tokEOF {
		t := r.peek()
		fresh := t.Pos.Line > begin.Line && r.at > first && r.tokens[r.at-1].Pos.Line < t.Pos.Line
		switch {
		case depth <= 0 && (t.Type == tokEOL || t.Value == "}") && r.at > first:
			return
		case fresh && t.Pos.Column <= begin.Column && t.Value != "}" && t.Value != ")" && t.Value != "]":
			r.afresh()
			return
		}
		depth += blockDepth(t)
		r.next()
	}
}

func blockDepth(t *lexer.Token) int {
	switch t.Value {
	case "{":
		return 1
	case "}":
		return -1
	}
	return 0
}

// stmt reads a statement into n, which keeps what was read of it before a mistake.
func (r *reader) stmt(d *declNode, n *stmtNode) {
	switch t := r.peek(); {
	case t.Type != tokKeyword && t.Type != tokIdent:
		r.unexpected(stmtEnd)
	case t.Type == tokIdent:
		r.assign(n)
	case t.Value == "for":
		n.For = r.forLoop(d)
	case t.Value == "if":
		n.If = r.ifElse(d)
	case t.Value == "return":
		n.Return = &returnNode{node: r.start()}
		r.next()
		n.Return.Values = append(n.Return.Values, r.expr())
		for r.accept(",") {
			n.Return.Values = append(n.Return.Values, r.expr())
		}
		r.close(&n.Return.node)
	case t.Value == "error":
		n.Error = &errorNode{node: r.start()}
		r.next()
		r.expect("(")
		n.Error.Text = r.word(tokString, "a text in quotes")
		r.expect(")")
		r.close(&n.Error.node)
	case t.Value == "require":
		n.Require = &requireNode{node: r.start()}
		r.next()
		r.expect("(")
		n.Require.Cond = r.expr()
		r.expect(",")
		n.Require.Why = r.word(tokString, "a text in quotes")
		r.expect(")")
		r.close(&n.Require.node)
	default:
		r.unexpected(stmtEnd)
	}
	r.close(&n.node)
}

func (r *reader) forLoop(d *declNode) *forNode {
	n := &forNode{node: r.start()}
	r.next()
	n.Var = r.ident()
	r.expect("in")
	n.From = r.expr()
	r.expect("..")
	n.To = r.expr()
	r.block(d, &n.Body)
	r.close(&n.node)
	return n
}

func (r *reader) ifElse(d *declNode) *ifNode {
	n := &ifNode{node: r.start()}
	r.next()
	n.Cond = r.expr()
	r.block(d, &n.Then)
	if r.accept("else") {
		if r.is("if") {
			n.Elif = r.ifElse(d)
		} else {
			r.block(d, &n.Else)
		}
	}
	r.close(&n.node)
	return n
}

func (r *reader) assign(s *stmtNode) {
	n := &assignNode{node: r.start()}
	s.Assign = n
	n.Targets = append(n.Targets, r.target())
	for r.accept(",") {
		n.Targets = append(n.Targets, r.target())
	}
	r.expect("=")
	n.Value = r.expr()
	r.close(&n.node)
}

func (r *reader) target() *targetNode {
	n := &targetNode{node: r.start()}
	n.Name = r.ident()
	if r.is("[") {
		binds := &bindsNode{node: r.start()}
		r.next()
		r.list("]", true, func() { binds.Binds = append(binds.Binds, r.bind()) })
		r.close(&binds.node)
		n.Binds = binds
	}
	r.close(&n.node)
	return n
}

func (r *reader) bind() *bindNode {
	n := &bindNode{node: r.start()}
	if r.accept("...") {
		n.Leading = true
	} else {
		n.Name = r.ident()
		if r.accept(":") {
			n.Extent = r.expr()
		}
	}
	r.close(&n.node)
	return n
}
