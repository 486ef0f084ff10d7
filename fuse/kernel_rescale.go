package fuse

import (
	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/ir"
)

// The rescale rule. A sum whose terms depend on a maximum m of the same pass
// through exp(c*(x - m)) alone can run beside the maximum: when m grows to m',
// every term so far changes by the same factor exp(c*(m - m')).

// tryStream moves fold f into the pass of the maximum it depends on, when the
// rescale rule applies. Strict graphs keep their passes: the rule rounds
// differently.
func (lo *kernel) tryStream(st *stages, f *ir.Fold) {
	if lo.k.Numerics == ir.Strict || f.Op != ir.Sum || f.Prefix != ir.WholeRow || f.Where != nil {
		return
	}
	waits := st.waitsFor(f.Body)
	if len(waits) != 1 || waits[0].Op != ir.Max || waits[0].After != nil || waits[0].Where != nil {
		return
	}
	m := waits[0]
	scale, ok := rescale(f.Body, m)
	if !ok {
		return
	}
	if m.Running == nil {
		m.Running = lo.local(m.Result.Name+"_now", m.Result.Type, ir.FullLevel)
	}
	f.After = m
	f.Old = lo.local(m.Result.Name+"_old", m.Result.Type, ir.FullLevel)
	now := ir.LocalRef(m.Running)
	f.Body = replaceLocal(f.Body, m.Result, now)
	gap := ir.Apply(ir.OpSub, ir.LocalRef(f.Old), now)
	if !scale.IsConst(1) {
		gap = ir.Apply(ir.OpMul, scale, gap)
	}
	f.Rescale = ir.Apply(ir.OpExp, gap)
	st.fold[f] = st.fold[m]
}

func replaceLocal(e *ir.Expr, l *ir.Local, with *ir.Expr) *ir.Expr {
	return ir.Rewrite(e, func(e *ir.Expr) *ir.Expr {
		if e.Op == ir.OpLocal && e.Local == l {
			return with
		}
		return e
	})
}

// rescale factors a term with respect to the maximum m. It returns c > 0 where
// the term is exp(c*(x - m)) * rest, x is what m is the maximum of, and rest is
// free of m.
func rescale(e *ir.Expr, m *ir.Fold) (c *ir.Expr, ok bool) {
	arg, ok := exponent(e, m.Result)
	if !ok || arg == nil {
		return nil, false
	}
	rest, slope, ok := linear(arg, m.Result)
	if !ok || slope >= 0 || rest == nil {
		return nil, false
	}
	c = ir.Num(arg.Type, -slope)
	x := m.Body
	if slope == -1 && ir.Equal(rest, x) {
		return c, true
	}
	return c, scaledBy(rest, x, -slope)
}

// scaledBy reports whether e is the constant c times x.
func scaledBy(e, x *ir.Expr, c float64) bool {
	if e.Op != ir.OpMul {
		return false
	}
	a, b := e.Args[0], e.Args[1]
	return a.IsConst(c) && ir.Equal(b, x) || b.IsConst(c) && ir.Equal(a, x)
}

// exponent finds the one exp(...) through which a product depends on l. It returns nil and true
// if the product does not depend on l. A choice is refused: in a row of -inf, where(c,
// exp(x - m), 0) is NaN only where c holds, and rescaling cannot reproduce that.
func exponent(e *ir.Expr, l *ir.Local) (arg *ir.Expr, ok bool) {
	if !algebra.ReadsLocal(e, l) {
		return nil, true
	}
	switch e.Op {
	case ir.OpExp:
		return e.Args[0], true
	case ir.OpMul:
		a, okA := exponent(e.Args[0], l)
		b, okB := exponent(e.Args[1], l)
		if !okA || !okB || a != nil && b != nil {
			return nil, false
		}
		if a == nil {
			a = b
		}
		return a, true
	case ir.OpDiv:
		if algebra.ReadsLocal(e.Args[1], l) {
			return nil, false
		}
		return exponent(e.Args[0], l)
	case ir.OpCast:
		if e.Type == e.Args[0].Type || e.Type.IsFloat() && e.Args[0].Type.IsFloat() {
			return exponent(e.Args[0], l)
		}
	}
	return nil, false
}

// linear writes e as rest + slope*l; rest is nil where it is zero.
func linear(e *ir.Expr, l *ir.Local) (rest *ir.Expr, slope float64, ok bool) {
	switch {
	case e.Op == ir.OpLocal && e.Local == l:
		return nil, 1, true
	case !algebra.ReadsLocal(e, l):
		return e, 0, true
	}
	switch e.Op {
	case ir.OpAdd, ir.OpSub:
		return linearSum(e, l)
	case ir.OpNeg:
		rest, slope, ok = linear(e.Args[0], l)
		if rest != nil {
			rest = ir.Apply(ir.OpNeg, rest)
		}
		return rest, -slope, ok
	case ir.OpMul:
		for i, a := range e.Args {
			if a.Op == ir.OpConst {
				return linearScaled(a, e.Args[1-i], l)
			}
		}
	}
	return nil, 0, false
}

func linearSum(e *ir.Expr, l *ir.Local) (*ir.Expr, float64, bool) {
	ra, sa, okA := linear(e.Args[0], l)
	rb, sb, okB := linear(e.Args[1], l)
	if !okA || !okB {
		return nil, 0, false
	}
	if e.Op == ir.OpSub {
		sb = -sb
		if rb != nil && ra == nil {
			return ir.Apply(ir.OpNeg, rb), sa + sb, true
		}
	}
	return ir.Join(e.Op, ra, rb), sa + sb, true
}

func linearScaled(c, e *ir.Expr, l *ir.Local) (*ir.Expr, float64, bool) {
	rest, slope, ok := linear(e, l)
	if !ok {
		return nil, 0, false
	}
	if rest != nil {
		rest = ir.Apply(ir.OpMul, c, rest)
	}
	return rest, slope * c.Val, true
}
