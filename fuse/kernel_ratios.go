package fuse

import (
	"slices"

	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// Where 16-bit precision is enough, exp(x - m) is computed as 2^(x*log2(e) - m*log2(e)). The product with m is rounded,
// so all exponentials of a row are off by the same factor, which is further from 1 the larger m is. In a quotient of
// them, as in softmax, the factor cancels. It does not in the exponentials themselves, in their sum, or in its
// logarithm.

// ratios reports whether all that a kernel writes is free of the factor that exponentials of a row have in common.
func (lo *kernel) ratios() bool {
	p := powers{of: map[*ir.Value]int{}}
	for _, v := range lo.r.members {
		if v.IsInput() {
			continue
		}
		n := p.expr(v.Body)
		if r := v.Reduce; r != nil {
			n = p.reduced(r, n)
		}
		p.of[v] = n
		if p.mixed || n != 0 && lo.buffers[v] != nil {
			return false
		}
	}
	return true
}

// powers finds the power of the common factor by which each value is multiplied.
type powers struct {
	of    map[*ir.Value]int
	top   *ir.Value // the maximum that exponents are relative to
	mixed bool      // some value is off by more than a power of one such factor
}

func (p *powers) expr(e *ir.Expr) int {
	if e.Op == ir.OpLoad {
		return p.of[e.From]
	}
	if e.Op == ir.OpExp && e.Args[0].Op == ir.OpSub {
		return p.exponential(e.Args[0].Args[1])
	}
	args := make([]int, len(e.Args))
	for i, a := range e.Args {
		args[i] = p.expr(a)
	}
	switch e.Op {
	case ir.OpMul:
		return args[0] + args[1]
	case ir.OpDiv:
		return args[0] - args[1]
	case ir.OpRecip:
		return -args[0]
	case ir.OpNeg, ir.OpCast:
		if !e.Type.IsFloat() {
			break
		}
		return args[0]
	case ir.OpAdd, ir.OpSub, ir.OpMax, ir.OpMin:
		return p.same(e.Args, args)
	case ir.OpSelect:
		if args[0] == 0 {
			return p.same(e.Args[1:], args[1:])
		}
	}
	p.mixed = p.mixed || slices.ContainsFunc(args, func(n int) bool { return n != 0 })
	return 0
}

// exponential is the power for exp(x - m): one, if all exponentials are relative to the same m.
func (p *powers) exponential(m *ir.Expr) int {
	m = form.Stripped(m)
	if m.Op != ir.OpLoad || p.top != nil && p.top != m.From {
		p.mixed = true
		return 0
	}
	p.top = m.From
	return 1
}

// same is the power that all operands have. An operand that is zero has every power.
func (p *powers) same(operands []*ir.Expr, powers []int) (n int) {
	first := true
	for i, e := range operands {
		switch {
		case e.IsConst(0):
		case first:
			n, first = powers[i], false
		default:
			p.mixed = p.mixed || powers[i] != n
		}
	}
	return n
}

// reduced is the power of a reduction whose terms have the power n.
func (p *powers) reduced(r *ir.Reduction, n int) int {
	for _, e := range []*ir.Expr{r.Where, r.Rank} {
		p.mixed = p.mixed || e != nil && p.expr(e) != 0
	}
	switch {
	case r.Op == ir.Sum || r.Op == ir.Max || r.Op == ir.Min:
		return n
	case !r.Op.IsArg():
		p.mixed = p.mixed || n != 0
	}
	return 0
}
