package parser

import (
	"github.com/fusec/fusec/ir"
)

// precedence orders the binary operators, loosest first.
var precedence = map[string]int{
	"||": 1, "&&": 2,
	"<": 3, "<=": 3, ">": 3, ">=": 3, "==": 3, "!=": 3,
	"|": 4, "^": 5, "&": 6, "<<": 7, ">>": 7,
	"+": 8, "-": 8, "*": 9, "/": 9, "%": 9, "@": 9, "**": 11,
}

const (
	comparePrecedence = 3
	powerPrecedence   = 11
)

// climber applies precedence to a flat chain of operands.
type climber struct {
	*builder
	next *unaryNode // the operand to read
	rest []*opNode
}

func (b *builder) expr(e *exprNode) val {
	if len(e.Rest) == 0 {
		return b.unary(e.First, nil)
	}
	c := &climber{builder: b, next: e.First, rest: e.Rest}
	return c.climb(0)
}

// named evaluates an expression whose value will be called name.
func (b *builder) named(name string, e *exprNode) val {
	old := b.hint
	b.hint = name
	if len(e.Rest) > 0 || len(e.First.Prefix) > 0 || len(e.First.Index) > 0 {
		b.hint = "" // the name belongs to the whole, not to a part
	}
	v := b.expr(e)
	b.hint = old
	return v
}

func (c *climber) climb(loosest int) val {
	left := c.operand()
	compared := false
	for len(c.rest) > 0 && precedence[c.rest[0].Op] >= loosest {
		op := c.rest[0]
		p := precedence[op.Op]
		if p == comparePrecedence && compared {
			c.errorf(op.span(), "comparisons do not chain: write a %s b && b %s c", op.Op, op.Op)
			left = val{span: left.span}
		}
		compared = p == comparePrecedence
		left = c.apply(left, op, p)
	}
	return left
}

// apply reads the right operand of op and combines.
func (c *climber) apply(left val, op *opNode, p int) val {
	c.next, c.rest = op.Right, c.rest[1:]
	decided := left.kind == boolVal && (op.Op == "&&" && left.int == 0 || op.Op == "||" && left.int == 1)
	if decided {
		c.muted++
	}
	tighter := p + 1
	if p == powerPrecedence {
		tighter = p
	}
	right := c.climb(tighter)
	span := left.span.Join(right.span)
	if decided {
		c.muted--
		return left.at(span)
	}
	return c.binary(op.Op, left, right, span)
}

// operand reads one operand; its prefixes bind looser than **.
func (c *climber) operand() val {
	n := c.next
	if len(n.Prefix) == 0 || len(c.rest) == 0 || c.rest[0].Op != "**" {
		return c.unary(n, nil)
	}
	base := c.postfix(n)
	op := c.rest[0]
	v := c.apply(base, op, powerPrecedence)
	return c.unary(n, &v)
}

// unary evaluates prefix operators over v, or over the operand where v is nil.
func (b *builder) unary(n *unaryNode, v *val) val {
	if v == nil {
		o := b.postfix(n)
		v = &o
	}
	out := *v
	for i := len(n.Prefix) - 1; i >= 0; i-- {
		out = b.prefix(n.Prefix[i], out)
		out.span = n.span().Join(v.span)
	}
	return out
}

func (b *builder) prefix(op string, v val) val {
	code := ir.OpNeg
	if op == "!" {
		code = ir.OpNot
	}
	if v.kind == intVal && op == "-" {
		return b.foldInt("-", intv(0), v, v.span)
	}
	return b.elementwise(code, []val{v}, v.span)
}

func (b *builder) postfix(n *unaryNode) val {
	b.count(n.span())
	v := b.primary(n.Base)
	for i, ix := range n.Index {
		var meant *meaning
		if i == 0 {
			meant = b.warnOfItem(n.Base, v, ix)
		}
		v = b.index(v, ix)
		v.meant = meant
	}
	return v
}

func (b *builder) primary(p *primaryNode) val {
	var v val
	switch {
	case p.Reduce != nil:
		v = b.reduction(p.Reduce)
	case p.Number != nil:
		v = b.number(*p.Number, p.span())
	case p.String != nil:
		v = b.text(*p.String, p.span())
	case p.Name != nil:
		return b.name(p.Name)
	case len(p.Tuple) == 1:
		v = b.expr(p.Tuple[0])
	default:
		v = val{kind: listVal}
		for _, e := range p.Tuple {
			item := b.expr(e)
			if !item.ok() {
				return val{span: p.span()}
			}
			v.list = append(v.list, item)
		}
	}
	name, bound := v.name, v.bound
	v = v.at(p.span())
	v.name, v.bound = name, bound
	return v
}

func (b *builder) name(n *nameNode) val {
	if n.Call != nil {
		results := b.call(n)
		if len(results) != 1 {
			return b.fail(n.span(), "%s gives %s: write %s = %s(...)", n.Name.Text,
				plural(len(results), "result"), exampleNames(len(results)), n.Name.Text)
		}
		return results[0].at(n.span())
	}
	v, found, ok := b.lookup(n.Name.Text)
	if !ok && b.isFunction(n.Name.Text) {
		return b.fail(n.span(), "%s is a function: call it with %s(...)", n.Name.Text, n.Name.Text)
	}
	if !ok {
		return b.undefined(n.span(), n.Name.Text, false)
	}
	if s := b.states[n.Name.Text]; s != nil && found == s.old {
		b.readsState(s, n.span())
	}
	if found != nil && found.rng != nil {
		return b.rangeVal(found.rng).at(n.span())
	}
	bound := v.bound
	v = v.at(n.span())
	v.name, v.bound = n.Name.Text, bound
	if v.kind == arrayVal {
		v.arr = v.arr.spanned(b.shown(n.span()))
	}
	return v
}

func exampleNames(n int) string {
	names := "a"
	for i := 1; i < min(n, 4); i++ {
		names += ", " + string(rune('a'+i))
	}
	return names
}

// rangeVal is the current index of a range.
func (b *builder) rangeVal(r *rangeInfo) val {
	e := r.rng.At()
	a := constant(e)
	a.ranged = true
	return arrv(a)
}
