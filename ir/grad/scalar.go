package grad

import "github.com/fusec/fusec/ir"

// A term is a part of the adjoint of a node: expr where cond holds (nil: always), else 0. The
// condition is kept apart from the expression until the end. So an adjoint that is not needed,
// which may be infinite, is never multiplied by 0.
type term struct {
	cond, expr *ir.Expr
	singular   bool // expr may be infinite or NaN where the primal is finite
	guarded    bool // expr is itself 0 where cond fails
}

// value is the term as one expression, with its condition.
func (t term) value() *ir.Expr {
	if t.cond == nil || t.guarded {
		return t.expr
	}
	return whereOr0(t.cond, t.expr)
}

// A leaf is a read with its adjoint.
type leaf struct {
	load *ir.Expr
	term
}

// walker differentiates one expression.
type walker struct {
	active func(load *ir.Expr) bool // whether a read is differentiated
	known  map[*ir.Expr]bool        // for nodes: whether they depend on such reads
	terms  map[*ir.Expr][]term
}

// newWalker differentiates with respect to the reads of active values.
func newWalker(active map[*ir.Value]bool) *walker {
	return &walker{active: func(l *ir.Expr) bool { return active[l.From] }, known: map[*ir.Expr]bool{}}
}

// leaves returns the reads of body with their adjoints, given the adjoints of body. stored
// reads the value of body, or is nil.
func (p *pass) leaves(body, stored *ir.Expr, seeds ...term) []leaf {
	w := newWalker(p.active)
	w.terms = map[*ir.Expr][]term{body: seeds}
	var out []leaf
	for _, e := range ir.ParentsFirst(body, w.depends) {
		t := merged(w.terms[e])
		if t.expr == nil {
			continue
		}
		if e.Op == ir.OpLoad {
			out = together(out, leaf{e, t})
			continue
		}
		y := stored
		if e != body {
			y = nil
		}
		w.down(e, y, t)
	}
	return out
}

// together adds a leaf to a list, or its term to the leaf of an equal read.
func together(all []leaf, l leaf) []leaf {
	for i := range all {
		if ir.Equal(all[i].load, l.load) {
			all[i].term = merged([]term{all[i].term, l.term})
			return all
		}
	}
	return append(all, l)
}

// depends reports whether a differentiable path leads from e to a read.
func (w *walker) depends(e *ir.Expr) bool {
	on, ok := w.known[e]
	if !ok {
		on = w.dependsNow(e)
		w.known[e] = on
	}
	return on
}

func (w *walker) dependsNow(e *ir.Expr) bool {
	if !e.Type.IsFloat() {
		return false
	}
	switch e.Op {
	case ir.OpLoad:
		return w.active(e)
	case ir.OpSelect:
		return w.depends(e.Args[1]) || w.depends(e.Args[2])
	case ir.OpCast:
		return w.depends(e.Args[0])
	}
	if r := rules[e.Op]; r == nil || r.by == nil {
		return false
	}
	for _, a := range e.Args {
		if w.depends(a) {
			return true
		}
	}
	return false
}

// down adds the terms of a node's arguments.
func (w *walker) down(e, stored *ir.Expr, t term) {
	switch e.Op {
	case ir.OpSelect:
		c := e.Args[0]
		w.give(e.Args[1], term{cond: ir.Both(t.cond, c), expr: t.expr, singular: t.singular})
		w.give(e.Args[2], term{cond: ir.Both(t.cond, ir.Apply(ir.OpNot, c)), expr: t.expr, singular: t.singular})
		return
	case ir.OpCast:
		t.expr = ir.Cast(t.expr, computed(e.Args[0].Type))
		w.give(e.Args[0], t)
		return
	}
	r := rules[e.Op]
	x, y := operands(e, stored)
	for i, part := range r.by(t.expr, y, x) {
		if part.expr != nil {
			w.give(e.Args[i], term{cond: ir.Both(t.cond, part.cond), expr: part.expr, singular: t.singular || r.singular,
				guarded: t.guarded && part.cond == nil && !r.singular})
		}
	}
}

// operands are the arguments and the result of an operation in the type in which it is
// computed. stored reads the result, or is nil.
func operands(e, stored *ir.Expr) (x []*ir.Expr, y *ir.Expr) {
	x = make([]*ir.Expr, len(e.Args))
	for i, a := range e.Args {
		x[i] = wide(a)
	}
	if stored != nil {
		return x, stored
	}
	return x, ir.Apply(e.Op, x...)
}

func (w *walker) give(e *ir.Expr, t term) {
	if w.depends(e) {
		w.terms[e] = append(w.terms[e], t)
	}
}

// merged is the sum of terms as one; its expr is nil for none.
func merged(terms []term) term {
	if len(terms) == 0 {
		return term{}
	}
	out, same := terms[0], true
	for _, t := range terms[1:] {
		same = same && ir.Equal(t.cond, out.cond) && !t.guarded && !out.guarded
	}
	if !same {
		out.expr = out.value()
	}
	for _, t := range terms[1:] {
		e := t.expr
		if !same {
			e = t.value()
		}
		out.expr, out.cond, out.singular = add(out.expr, e), either(out.cond, t.cond), out.singular || t.singular
		out.guarded = !same
	}
	return out
}

// chosen combines terms of which at most one is not 0 at each point. It is a choice instead of a sum, so a reader
// that rounds the result may round each term instead.
func chosen(terms []term) term {
	out := term{expr: num(terms[0].expr, 0), guarded: true}
	for i := len(terms) - 1; i >= 0; i-- {
		t := terms[i]
		out.expr, out.singular = ir.Where(t.cond, t.expr, out.expr), out.singular || t.singular
	}
	out.cond = terms[0].cond
	for _, t := range terms[1:] {
		out.cond = either(out.cond, t.cond)
	}
	return out
}

// computed is the type in which values of a float type are computed, and adjoints summed.
func computed(t ir.DType) ir.DType { return t.Info().Compute }

// wide is e in the type in which it is computed.
func wide(e *ir.Expr) *ir.Expr { return ir.Cast(e, computed(e.Type)) }

// whereOr0 is e where cond holds, else 0; a nil cond always holds.
func whereOr0(cond, e *ir.Expr) *ir.Expr {
	if cond == nil {
		return e
	}
	return ir.Where(cond, e, num(e, 0))
}

// either is a || b, where nil always holds.
func either(a, b *ir.Expr) *ir.Expr {
	switch {
	case a == nil || b == nil:
		return nil
	case ir.Equal(a, b):
		return a
	}
	return ir.Apply(ir.OpOr, a, b)
}
