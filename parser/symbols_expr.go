package parser

import (
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/diag"
)

// find returns the symbol of a name that is used as a value; nil for an unknown name.
func (r *resolver) find(name string) *Symbol {
	if s := r.names.find(name); s != nil {
		return s
	}
	if s := r.global[name]; s != nil && s.Kind == ConstSymbol {
		return s
	}
	if _, ok := predefined[name]; ok {
		return r.built(name, BuiltinSymbol)
	}
	if _, ok := ir.DTypeNamed(name); ok {
		return r.built(name, DTypeSymbol)
	}
	return nil
}

// built returns the symbol of something built in.
func (r *resolver) built(name string, kind SymbolKind) *Symbol {
	if r.builtin[name] == nil {
		r.builtin[name] = &Symbol{Name: name, Kind: kind}
	}
	return r.builtin[name]
}

// callee returns the symbol of the name of a call; nil for an unknown name.
func (r *resolver) callee(name string) *Symbol {
	if s := r.global[name]; s != nil && s.Kind == FunctionSymbol {
		return s
	}
	if s := r.names.find(name); s != nil && s.Kind == DTypeSymbol {
		return s
	}
	if _, ok := ir.DTypeNamed(name); ok {
		return r.built(name, DTypeSymbol)
	}
	if r.mod.std != nil && r.mod.std.lazy[name] != nil || reserved(name) {
		return r.built(name, BuiltinSymbol)
	}
	return nil
}

func (r *resolver) expr(e *exprNode) {
	if e == nil {
		return
	}
	r.unary(e.First)
	for _, op := range e.Rest {
		r.unary(op.Right)
	}
}

func (r *resolver) unary(u *unaryNode) {
	if u == nil {
		return
	}
	r.primary(u.Base)
	for _, ix := range u.Index {
		for _, item := range ix.Items {
			r.expr(item.Start)
			for _, s := range []*sliceNode{item.All, item.Slice} {
				if s == nil {
					continue
				}
				r.expr(s.Stop)
				if s.Step != nil {
					r.expr(s.Step.Value)
				}
			}
		}
		r.unary(ix.Else)
	}
}

func (r *resolver) primary(p *primaryNode) {
	switch {
	case p.Reduce != nil:
		r.reduction(p.Reduce)
	case p.Name != nil:
		r.name(p.Name)
	}
	for _, e := range p.Tuple {
		r.expr(e)
	}
}

func (r *resolver) reduction(n *reduceNode) {
	r.use(part(n.Pos, 0, len(n.Op)), r.built(n.Op, BuiltinSymbol), false)
	r.expr(n.Rank)
	leave := r.enter(n.span())
	r.binds(n.Binds)
	r.expr(n.Where)
	r.expr(n.Body)
	leave()
}

func (r *resolver) name(n *nameNode) {
	if n.Call == nil {
		if s := r.find(n.Name.Text); s != nil {
			r.use(n.Name.span(), s, n.Name.span() == s.Span)
		}
		return
	}
	s := r.callee(n.Name.Text)
	if s != nil {
		r.uses = append(r.uses, Use{Span: n.Name.span(), Symbol: s, Call: true})
	}
	args := n.Call.Args
	if n.Name.Text == gradName {
		s, args = r.gradient(n.Call)
	}
	for _, a := range args {
		if a.Named == nil {
			r.expr(a.Value)
			continue
		}
		r.argument(s, a.Value)
		r.expr(a.Named)
	}
}

// gradient resolves the names of a function and of its parameters in a call of grad. It returns
// the function and the other arguments.
func (r *resolver) gradient(n *callNode) (fn *Symbol, args []*argNode) {
	f, wrt, rest := gradSyntax(n)
	if name := bareName(f); name != "" {
		if fn = r.callee(name); fn != nil {
			r.use(f.span(), fn, false)
		}
	}
	if wrt != nil {
		for _, e := range wrtNames(wrt) {
			r.argument(fn, e)
		}
	}
	return fn, rest
}

// argument is the name of an argument given by name.
func (r *resolver) argument(fn *Symbol, name *exprNode) {
	bare := bareName(name)
	if bare == "" {
		r.expr(name)
		return
	}
	span := diag.Span{Start: name.Pos, End: name.EndPos}
	if own := r.params[fn][bare]; own != nil {
		r.use(span, own, false)
		return
	}
	r.use(span, &Symbol{Name: bare, Kind: ParamSymbol}, false)
}
