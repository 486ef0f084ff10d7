package parser

func (r *reader) expr() *exprNode {
	n := &exprNode{node: r.start()}
	n.First = r.unary()
	for r.peek().Type == tokOp {
		op := &opNode{node: r.start()}
		op.Op = r.next().Value
		op.Right = r.unary()
		r.close(&op.node)
		n.Rest = append(n.Rest, op)
	}
	r.close(&n.node)
	return n
}

func (r *reader) unary() *unaryNode {
	n := &unaryNode{node: r.start()}
	for r.is("-") || r.is("!") {
		n.Prefix = append(n.Prefix, r.next().Value)
	}
	n.Base = r.primary()
	for r.is("[") {
		n.Index = append(n.Index, r.index())
	}
	r.close(&n.node)
	return n
}

func (r *reader) primary() *primaryNode {
	n := &primaryNode{node: r.start()}
	switch t := r.peek(); {
	case t.Type == tokReduce:
		n.Reduce = r.reduce()
	case t.Type == tokNumber:
		text := r.next().Value
		n.Number = &text
	case t.Type == tokString:
		text := r.next().Value
		n.String = &text
	case t.Type == tokIdent:
		n.Name = r.name()
	case t.Value == "(":
		r.next()
		r.list(")", false, func() { n.Tuple = append(n.Tuple, r.expr()) })
	default:
		r.unexpected("a value")
	}
	r.close(&n.node)
	return n
}

func (r *reader) name() *nameNode {
	n := &nameNode{node: r.start()}
	n.Name = r.ident()
	if r.is("(") {
		call := &callNode{node: r.start()}
		r.next()
		r.list(")", true, func() { call.Args = append(call.Args, r.arg()) })
		r.close(&call.node)
		n.Call = call
	}
	r.close(&n.node)
	return n
}

func (r *reader) arg() *argNode {
	n := &argNode{node: r.start()}
	n.Value = r.expr()
	if r.accept("=") {
		n.Named = r.expr()
	}
	r.close(&n.node)
	return n
}

func (r *reader) reduce() *reduceNode {
	n := &reduceNode{node: r.start()}
	n.Op = r.next().Value
	r.expect("[")
	n.Binds = append(n.Binds, r.bind())
	for r.accept(",") {
		n.Binds = append(n.Binds, r.bind())
	}
	if r.accept("where") {
		n.Where = r.expr()
	} else if r.accept("at") {
		n.Rank = r.expr()
	}
	r.expect("]")
	n.Body = r.expr()
	r.close(&n.node)
	return n
}

func (r *reader) index() *indexNode {
	n := &indexNode{node: r.start()}
	r.next()
	r.list("]", true, func() { n.Items = append(n.Items, r.item()) })
	if r.accept("else") {
		n.Else = r.unary()
	}
	r.close(&n.node)
	return n
}

func (r *reader) item() *itemNode {
	n := &itemNode{node: r.start()}
	switch {
	case r.accept("..."):
		n.Leading = true
	case r.is(":"):
		n.All = r.slice()
	default:
		n.Start = r.expr()
		if r.is(":") {
			n.Slice = r.slice()
		}
	}
	r.close(&n.node)
	return n
}

func (r *reader) slice() *sliceNode {
	n := &sliceNode{node: r.start()}
	r.next()
	if r.startsExpr() {
		n.Stop = r.expr()
	}
	if r.is(":") {
		step := &stepNode{node: r.start()}
		r.next()
		if r.startsExpr() {
			step.Value = r.expr()
		}
		r.close(&step.node)
		n.Step = step
	}
	r.close(&n.node)
	return n
}

// startsExpr reports whether the next token can begin an expression.
func (r *reader) startsExpr() bool {
	switch t := r.peek(); t.Type {
	case tokReduce, tokNumber, tokString, tokIdent:
		return true
	default:
		return t.Value == "-" || t.Value == "!" || t.Value == "("
	}
}
