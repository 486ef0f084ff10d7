package parser

import (
	"github.com/fusec/fusec/ir"
)

// checkUnused looks up the names in the functions of a file that no graph of it
// calls: their types are known only at a call, their names always.
func (l *loader) checkUnused(m *module) {
	for _, d := range m.tree.Decls {
		if d.Fn == nil || l.called[d.Fn] || len(l.errs) >= l.opts.Limits.Errors {
			continue
		}
		l.checkNames(m, d.Fn)
	}
}

// checkNames looks up the names in one function.
func (l *loader) checkNames(m *module, fn *fnNode) {
	b := &builder{limits: l.opts.Limits, g: ir.NewGraph(""), errs: &l.errs}
	b.frame = &frame{mod: m, scope: newScope(nil), dtypes: map[string]dtypeBinding{}}
	c := &nameCheck{b}
	c.fn(fn)
}

// nameCheck resolves the names of one function without evaluating it. It takes
// every name that is bound anywhere in the function for known.
type nameCheck struct{ *builder }

func (c *nameCheck) fn(fn *fnNode) {
	for _, p := range fn.Params {
		c.know(p.Name.Text)
		if !isStaticParam(p) {
			c.dtypes[p.Type.Name] = dtypeBinding{}
		}
		for _, d := range paramDims(p) {
			c.know(d.Name)
			if d.Size != nil {
				eachName(d.Size, func(id *identNode) { c.know(id.Text) })
			}
		}
	}
	if fn.Short != nil {
		c.expr(fn.Short)
		return
	}
	eachStmt(fn.Body, c.bindTargets)
	eachStmt(fn.Body, c.stmt)
}

func (c *nameCheck) know(name string) { c.scope.names[name] = &binding{} }

func (c *nameCheck) bindTargets(s *stmtNode) {
	switch {
	case s.For != nil:
		c.know(s.For.Var.Text)
	case s.Assign != nil:
		for _, t := range s.Assign.Targets {
			if !t.Name.discards() {
				c.know(t.Name.Text)
			}
		}
	}
}

func (c *nameCheck) stmt(s *stmtNode) {
	switch {
	case s.For != nil:
		c.expr(s.For.From)
		c.expr(s.For.To)
	case s.If != nil:
		for n := s.If; n != nil; n = n.Elif {
			c.expr(n.Cond)
		}
	case s.Return != nil:
		for _, e := range s.Return.Values {
			c.expr(e)
		}
	case s.Require != nil:
		c.expr(s.Require.Cond)
	case s.Assign != nil:
		c.scope = newScope(c.scope)
		for _, t := range s.Assign.Targets {
			if t.Binds != nil {
				c.binds(t.Binds.Binds)
			}
		}
		c.expr(s.Assign.Value)
		c.scope = c.scope.parent
	}
}

func (c *nameCheck) binds(binds []*bindNode) {
	for _, n := range binds {
		if n.Extent != nil {
			c.expr(n.Extent)
		}
		if n.Name != nil {
			c.know(n.Name.Text)
		}
	}
}

func (c *nameCheck) expr(e *exprNode) {
	walkUnary(e, nil, func(u *unaryNode, hidden []*bindNode) {
		if u.Base.Name != nil {
			c.name(u.Base.Name, hidden)
		}
	})
}

func (c *nameCheck) name(n *nameNode, hidden []*bindNode) {
	if n.Call != nil {
		if !c.isFunction(n.Name.Text) {
			c.undefined(n.Name.span(), n.Name.Text, true)
		}
		if f, _, _ := gradSyntax(n.Call); n.Name.Text == gradName && bareName(f) != "" && !c.isFunction(bareName(f)) {
			c.undefined(f.span(), bareName(f), true)
		}
		return
	}
	for _, bind := range hidden {
		if bind.Name != nil && bind.Name.Text == n.Name.Text {
			return
		}
	}
	if _, _, ok := c.lookup(n.Name.Text); !ok {
		c.undefined(n.span(), n.Name.Text, false)
	}
}

// eachStmt calls f on the statements of a block and of the blocks inside it.
func eachStmt(block *blockNode, f func(*stmtNode)) {
	if block == nil {
		return
	}
	for _, s := range block.Stmts {
		f(s)
		if s.For != nil {
			eachStmt(s.For.Body, f)
		}
		for n := s.If; n != nil; n = n.Elif {
			eachStmt(n.Then, f)
			eachStmt(n.Else, f)
		}
	}
}
