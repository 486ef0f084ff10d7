package parser

// walkUnary calls f on every operand inside e, outer ones first. hidden is what the
// reductions around the operand bind.
func walkUnary(e *exprNode, hidden []*bindNode, f func(u *unaryNode, hidden []*bindNode)) {
	if e == nil {
		return
	}
	visitUnary(e.First, hidden, f)
	for _, op := range e.Rest {
		visitUnary(op.Right, hidden, f)
	}
}

func visitUnary(u *unaryNode, hidden []*bindNode, f func(u *unaryNode, hidden []*bindNode)) {
	if u == nil {
		return
	}
	f(u, hidden)
	visitPrimary(u.Base, hidden, f)
	for _, ix := range u.Index {
		for _, item := range ix.Items {
			walkUnary(item.Start, hidden, f)
			for _, s := range []*sliceNode{item.All, item.Slice} {
				if s != nil {
					walkUnary(s.Stop, hidden, f)
				}
			}
		}
		visitUnary(ix.Else, hidden, f)
	}
}

func visitPrimary(p *primaryNode, hidden []*bindNode, f func(u *unaryNode, hidden []*bindNode)) {
	switch {
	case p.Reduce != nil:
		for _, n := range p.Reduce.Binds {
			walkUnary(n.Extent, hidden, f)
		}
		inner := concat(hidden, p.Reduce.Binds)
		walkUnary(p.Reduce.Where, inner, f)
		walkUnary(p.Reduce.Rank, hidden, f)
		walkUnary(p.Reduce.Body, inner, f)
	case p.Name != nil && p.Name.Call != nil:
		args := p.Name.Call.Args
		if p.Name.Name.Text == gradName {
			_, _, args = gradSyntax(p.Name.Call)
		}
		for _, a := range args {
			if a.Named == nil {
				walkUnary(a.Value, hidden, f)
			}
			walkUnary(a.Named, hidden, f)
		}
	}
	for _, e := range p.Tuple {
		walkUnary(e, hidden, f)
	}
}

// eachUnary calls f on every operand inside the expressions.
func eachUnary(in []*exprNode, f func(u *unaryNode)) {
	for _, e := range in {
		walkUnary(e, nil, func(u *unaryNode, _ []*bindNode) { f(u) })
	}
}

// eachName calls f for the names used as values in e.
func eachName(e *exprNode, f func(*identNode)) {
	eachUnary([]*exprNode{e}, func(u *unaryNode) {
		if n := u.Base.Name; n != nil && n.Call == nil {
			f(n.Name)
		}
	})
}
