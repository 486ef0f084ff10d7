package passes

import (
	"slices"

	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// The weights of a softmax are exponentials divided by their sum. If a chain computes weights again, the logarithm
// of the sum goes into the exponent instead: exp(x - m) / l is exp(x - (m + log l)), and (a / l + b) exp(x - m) is
// (a + b l) exp(x - (m + log l)). Each row then needs one number fewer, and no weight needs a division.

// statistic is a number of each row computed from two others.
type statistic struct {
	op   ir.Op
	a, b *ir.Value
}

// logarithms writes the weights of a chain without divisions by sums of exponentials; other divisions stay.
func (c *chainRewrite) logarithms(s *form.Stream, weight *ir.Expr) *ir.Expr {
	p := &softmaxPull{c: c, s: s}
	out := p.pull(weight)
	if out == nil || p.sum == nil {
		return weight
	}
	found := 0
	out = ir.Rewrite(out, func(e *ir.Expr) *ir.Expr {
		if e.Op != ir.OpExp || !c.Reads(e) {
			return e
		}
		x := form.Stripped(e.Args[0])
		if x.Op != ir.OpSub || !p.about(x.Args[1]) {
			found = 2
			return e
		}
		found++
		return ir.Apply(ir.OpExp, ir.Apply(ir.OpSub, x.Args[0], c.statistic(s, ir.OpLog, form.Stripped(x.Args[1]), p.sum)))
	})
	if found != 1 {
		return weight
	}
	return out
}

// softmaxPull finds the sum of exponentials by which a weight is divided.
type softmaxPull struct {
	c   *chainRewrite
	s   *form.Stream
	sum *ir.Expr // the load of it
}

// pull returns e times the sum, written without the division; nil if e is not divided by such a
// sum.
func (p *softmaxPull) pull(e *ir.Expr) *ir.Expr {
	switch e.Op {
	case ir.OpCast:
		if x := p.pull(e.Args[0]); x != nil && e.Type.IsFloat() {
			return ir.Cast(x, ir.F32)
		}
	case ir.OpDiv:
		if l := form.Stripped(e.Args[1]); p.isSum(l) {
			p.sum = l
			return ir.Cast(e.Args[0], ir.F32)
		}
	case ir.OpMul:
		if x := p.pull(e.Args[0]); x != nil {
			return ir.Apply(ir.OpMul, x, ir.Cast(e.Args[1], ir.F32))
		}
		if x := p.pull(e.Args[1]); x != nil {
			return ir.Apply(ir.OpMul, ir.Cast(e.Args[0], ir.F32), x)
		}
	case ir.OpAdd:
		x, row := p.pull(e.Args[0]), form.Stripped(e.Args[1])
		if x != nil && p.beside(row) {
			return ir.Apply(ir.OpAdd, x, p.c.statistic(p.s, ir.OpMul, row, p.sum))
		}
	case ir.OpSelect:
		if x := p.pull(e.Args[1]); x != nil && e.Args[2].IsConst(0) {
			return ir.Where(e.Args[0], x, ir.Num(ir.F32, 0))
		}
		if x := p.pull(e.Args[2]); x != nil && e.Args[1].IsConst(0) {
			return ir.Where(e.Args[0], ir.Num(ir.F32, 0), x)
		}
	}
	return nil
}

// isSum reports whether a load reads a sum of exponentials about their maximum. Such a sum is at least 1,
// or NaN.
func (p *softmaxPull) isSum(l *ir.Expr) bool {
	if l.Op != ir.OpLoad || l.Fill != nil || l.From.Reduce == nil || l.From.Reduce.Op != ir.Sum || l.From.Reduce.Where != nil {
		return false
	}
	x := form.Stripped(p.c.Expand(l.From.Body))
	if x.Op != ir.OpExp || form.Stripped(x.Args[0]).Op != ir.OpSub {
		return false
	}
	m := form.Stripped(form.Stripped(x.Args[0]).Args[1])
	return m.Op == ir.OpLoad && m.From.Reduce != nil && m.From.Reduce.Op == ir.Max
}

// beside reports whether an expression loads a number that belongs to the same row as the sum.
func (p *softmaxPull) beside(l *ir.Expr) bool {
	return l.Op == ir.OpLoad && l.Fill == nil && slices.EqualFunc(l.Args, p.sum.Args, ir.Equal) && slices.EqualFunc(l.From.Shape(), p.sum.From.Shape(), ir.SameSize)
}

// about reports whether an expression loads the maximum of the sum's exponents.
func (p *softmaxPull) about(e *ir.Expr) bool {
	x := form.Stripped(form.Stripped(p.c.Expand(p.sum.From.Body)).Args[0])
	m := form.Stripped(e)
	return p.beside(m) && m.From == form.Stripped(x.Args[1]).From
}

// statistic loads a value with one number for each row: a times b, or a plus the logarithm of b.
func (c *chainRewrite) statistic(s *form.Stream, op ir.Op, a, b *ir.Expr) *ir.Expr {
	key := statistic{op, a.From, b.From}
	v := c.statistics[key]
	if v == nil {
		axes := c.graph.NewAxes(a.From.Shape())
		x, y := ir.Cast(ir.Load(a.From, ir.Indices(axes), nil), ir.F32), ir.Cast(ir.Load(b.From, ir.Indices(axes), nil), ir.F32)
		name, body := a.From.Name+"_scaled", ir.Apply(ir.OpMul, x, y)
		if op == ir.OpLog {
			name, body = b.From.Name+"_log", ir.Apply(ir.OpAdd, x, ir.Apply(ir.OpLog, y))
		}
		v = c.graph.Adopt(&ir.Value{Name: name, Type: ir.F32, Axes: axes, Body: body, Origin: b.From.Origin})
		c.statistics[key], c.before[s.Out] = v, append(c.before[s.Out], v)
	}
	return ir.Load(v, a.Args, nil)
}
