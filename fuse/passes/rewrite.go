package passes

import (
	"math"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/ir"
)

// pattern matches an expression. A pattern with the zero Op is a variable: it matches any expression, but
// the same one wherever it occurs.
type pattern struct {
	op    ir.Op
	args  []*pattern
	value float64 // of a constant to match, where exact is set
	exact bool
	name  string // of a variable
	only  func(*ir.Expr) bool
}

// match is the expressions that the variables of a pattern stand for.
type match map[string]*ir.Expr

func v(name string) *pattern { return &pattern{name: name} }

// c is a variable that matches constants only.
func c(name string) *pattern {
	return &pattern{name: name, only: func(e *ir.Expr) bool { return e.Op == ir.OpConst }}
}

func lit(value float64) *pattern { return &pattern{op: ir.OpConst, value: value, exact: true} }

func op(o ir.Op, args ...*pattern) *pattern { return &pattern{op: o, args: args} }

// rule replaces what from matches by what to makes of it; to may return nil to
// decline. The name is the algebra, and what explain prints.
type rule struct {
	name string
	from *pattern
	to   func(match) *ir.Expr
}

// ruleTable lists rules by the operation they rewrite.
type ruleTable map[ir.Op][]rule

func tableOf(lists ...[]rule) ruleTable {
	out := ruleTable{}
	for _, rules := range lists {
		for _, r := range rules {
			out[r.from.op] = append(out[r.from.op], r)
		}
	}
	return out
}

// apply tries the rules at one node until none fires. A replacement keeps the
// span of what it replaces.
func apply(rules ruleTable, e *ir.Expr) *ir.Expr {
	const most = 20 // a chain of rules at one node is short; a cycle would be a bug in the table
	for range most {
		next := applyOnce(rules[e.Op], e)
		if next == nil {
			return e
		}
		e = next.At(e.Span)
	}
	return e
}

func applyOnce(rules []rule, e *ir.Expr) *ir.Expr {
	for i := range rules {
		m := match{}
		if rules[i].from.matches(e, m) {
			if out := rules[i].to(m); out != nil {
				return out
			}
		}
	}
	return nil
}

func (p *pattern) matches(e *ir.Expr, m match) bool {
	if p.op == ir.OpInvalid {
		return p.bind(e, m)
	}
	if e.Op != p.op {
		return false
	}
	if p.exact {
		sameSign := !e.Type.IsFloat() || math.Signbit(e.Val) == math.Signbit(p.value) // because 0 and -0 differ
		return e.IsConst(p.value) && sameSign
	}
	if matchAll(p.args, e.Args, m) {
		return true
	}
	return p.op.Info().Commutative && len(p.args) == 2 && matchAll([]*pattern{p.args[1], p.args[0]}, e.Args, m)
}

func (p *pattern) bind(e *ir.Expr, m match) bool {
	if p.only != nil && !p.only(e) {
		return false
	}
	if known, ok := m[p.name]; ok {
		return ir.Equal(known, e)
	}
	m[p.name] = e
	return true
}

// matchAll matches argument lists; on failure m is as it was.
func matchAll(ps []*pattern, args []*ir.Expr, m match) bool {
	saved := make(match, len(m))
	for k, e := range m {
		saved[k] = e
	}
	for i, p := range ps {
		if !p.matches(args[i], m) {
			clear(m)
			for k, e := range saved {
				m[k] = e
			}
			return false
		}
	}
	return true
}

// simplify applies the index algebra, folds constants, and applies the rules:
// those that keep every bit, and under fast those that do not.
func simplify(g *ir.Graph) {
	rules := tableOf(exactRules)
	if g.Numerics == ir.Fast {
		rules = tableOf(exactRules, fastRules)
	}
	facts := g.Facts()
	for _, v := range g.Values {
		simplifyValue(v, rules, facts)
		for endRanges(g, v, facts) { // one bound of each range at a time
			dropUnits(v)
			simplifyValue(v, rules, facts)
		}
	}
}

func simplifyValue(v *ir.Value, rules ruleTable, facts ir.Facts) {
	facts.Within = algebra.AllRanges(v) // an expression is evaluated only where its ranges have points
	v.MapExprs(func(e *ir.Expr) *ir.Expr {
		e = ir.Simplify(ir.Rewrite(e, func(e *ir.Expr) *ir.Expr { return apply(rules, foldConstants(withoutRoundTrip(e))) }), facts)
		if !ir.Contains(e, isCastConstant) {
			return e
		}
		return ir.Rewrite(e, func(e *ir.Expr) *ir.Expr { // the algebra may have turned a float, such as a count, into an index
			if isCastConstant(e) {
				return ir.Cast(e.Args[0], e.Type).At(e.Span)
			}
			return apply(rules, foldConstants(withoutRoundTrip(e)))
		})
	})
}

func isCastConstant(e *ir.Expr) bool { return e.Op == ir.OpCast && e.Args[0].Op == ir.OpConst }

// foldConstants evaluates an operation on constants, rounded as the operation
// itself would round. Narrow floats are left for the kernel.
func foldConstants(e *ir.Expr) *ir.Expr {
	info := e.Op.Info()
	if len(e.Args) == 0 || e.Op == ir.OpCast || e.Op.Random() || e.Type == ir.Index {
		return e
	}
	var f [3]float64
	var n [3]int64
	for i, a := range e.Args {
		if a.Op != ir.OpConst || i >= len(f) {
			return e
		}
		f[i], n[i] = a.Val, a.Int
		if a.Type == ir.F32 {
			f[i] = float64(float32(a.Val)) // a constant may be written with more digits than its type holds
		}
	}
	last := e.Args[len(e.Args)-1].Type
	switch {
	case e.Op == ir.OpSelect:
		return e.Args[2-n[0]]
	case last == ir.F64 && info.Float != nil:
		return ir.Num(e.Type, info.Float(f[0], f[1], f[2]))
	case last == ir.F32 && info.Float != nil:
		return ir.Num(e.Type, float64(float32(info.Float(f[0], f[1], f[2]))))
	case (last == ir.I64 || last == ir.Bool) && info.Int != nil:
		return ir.IntNum(e.Type, info.Int(n[0], n[1], n[2]))
	}
	return e
}
