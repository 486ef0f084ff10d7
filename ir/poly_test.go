package ir

import (
	"fmt"
	"strings"
)

// world names the ranges and symbols of a test.
type world struct {
	ranges map[string]*Range
	facts  Facts
}

// newWorld makes ranges from "i:N j:4 k:N*M": extents are products, sums with a
// constant, or quotients, in the notation of parseIndex.
func newWorld(decl string) *world {
	w := &world{ranges: map[string]*Range{}}
	for n, d := range strings.Fields(decl) {
		name, extent, _ := strings.Cut(d, ":")
		w.ranges[name] = &Range{ID: n + 1, Name: name, Extent: w.parse(extent)}
	}
	return w
}

// parse reads an index expression or condition: the usual operators with the
// usual precedence, min(a, b), max(a, b), where(c, a, b); lower-case names are
// ranges and others symbols.
func (w *world) parse(text string) *Expr {
	p := &indexParser{w: w, text: strings.ReplaceAll(text, " ", "")}
	e := p.binary(0)
	if p.text != "" {
		panic("cannot parse at " + p.text)
	}
	return e
}

type indexParser struct {
	w    *world
	text string
}

var levels = [][]Op{
	{OpOr}, {OpAnd}, {OpLe, OpGe, OpEq, OpNe, OpLt, OpGt}, {OpAdd, OpSub}, {OpMul, OpFloorDiv, OpMod},
}

func (p *indexParser) take(s string) bool {
	rest, ok := strings.CutPrefix(p.text, s)
	if ok {
		p.text = rest
	}
	return ok
}

func (p *indexParser) binary(level int) *Expr {
	if level == len(levels) {
		return p.unary()
	}
	e := p.binary(level + 1)
	for {
		op, ok := p.operator(level)
		if !ok {
			return e
		}
		e = Apply(op, e, p.binary(level+1))
	}
}

func (p *indexParser) operator(level int) (Op, bool) {
	for _, op := range levels[level] {
		if p.take(op.Info().Infix) {
			return op, true
		}
	}
	return 0, false
}

func (p *indexParser) unary() *Expr {
	switch {
	case p.take("-"):
		return Apply(OpNeg, p.unary())
	case p.take("!"):
		return Apply(OpNot, p.unary())
	case p.take("("):
		e := p.binary(0)
		p.take(")")
		return e
	case p.text[0] >= '0' && p.text[0] <= '9':
		return p.number()
	}
	return p.name()
}

func (p *indexParser) number() *Expr {
	var v int64
	for len(p.text) > 0 && p.text[0] >= '0' && p.text[0] <= '9' {
		v, p.text = v*10+int64(p.text[0]-'0'), p.text[1:]
	}
	return IntConst(v)
}

func (p *indexParser) name() *Expr {
	n := 0
	for n < len(p.text) && (p.text[n] >= 'a' && p.text[n] <= 'z' || p.text[n] >= 'A' && p.text[n] <= 'Z') {
		n++
	}
	name := p.text[:n]
	p.text = p.text[n:]
	if !p.take("(") {
		if r := p.w.ranges[name]; r != nil {
			return r.At()
		}
		return Sym(name)
	}
	var args []*Expr
	for !p.take(")") {
		args = append(args, p.binary(0))
		p.take(",")
	}
	if name == "where" {
		return Where(args[0], args[1], args[2])
	}
	op, _ := OpNamed(name)
	return Apply(op, args...)
}

// show writes an index expression or condition with few parentheses.
func show(e *Expr) string { return showAt(e, 0) }

func showAt(e *Expr, level int) string {
	switch e.Op {
	case OpConst:
		return fmt.Sprint(e.Int)
	case OpRange:
		return e.Range.Name
	case OpSym:
		return e.Name
	case OpNeg, OpNot:
		return e.Op.Info().Infix + showAt(e.Args[0], len(levels))
	case OpCast:
		return fmt.Sprintf("%v(%s)", e.Type, show(e.Args[0]))
	}
	for l, ops := range levels {
		for _, op := range ops {
			if e.Op == op {
				s := showAt(e.Args[0], l) + " " + op.Info().Infix + " " + showAt(e.Args[1], l+1)
				if l < level {
					return "(" + s + ")"
				}
				return s
			}
		}
	}
	var args []string
	for _, arg := range e.Args {
		args = append(args, show(arg))
	}
	return e.Op.String() + "(" + strings.Join(args, ", ") + ")"
}

// point binds ranges and symbols to numbers.
type point struct {
	ranges map[*Range]int64
	syms   map[string]int64
}

// eval is the meaning of an index expression or condition.
func (at point) eval(e *Expr) int64 {
	switch e.Op {
	case OpConst:
		return e.Int
	case OpRange:
		return at.ranges[e.Range]
	case OpSym:
		return at.syms[e.Name]
	case OpCast:
		return at.eval(e.Args[0])
	case OpSelect:
		if at.eval(e.Args[0]) != 0 {
			return at.eval(e.Args[1])
		}
		return at.eval(e.Args[2])
	}
	var v [3]int64
	for i, arg := range e.Args {
		v[i] = at.eval(arg)
	}
	return e.Op.Info().Int(v[0], v[1], v[2])
}
