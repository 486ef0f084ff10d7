package ir

import (
	"math"
	"strconv"
	"strings"
)

// String formats e as .fuse text. Ranges print by name, so that two ranges of
// one name look alike; Print tells them apart.
func (e *Expr) String() string {
	p := &printer{}
	p.expr(e, looseLevel)
	return p.String()
}

// The binding strengths of .fuse operators, loosest first.
const (
	looseLevel = iota
	orLevel
	andLevel
	compareLevel
	bitOrLevel
	bitXorLevel
	bitAndLevel
	shiftLevel
	addLevel
	mulLevel
	unaryLevel
	powLevel
	postfixLevel
)

var infixLevels = map[string]int{
	"||": orLevel, "&&": andLevel, "<": compareLevel, "<=": compareLevel, ">": compareLevel, ">=": compareLevel,
	"==": compareLevel, "!=": compareLevel, "|": bitOrLevel, "^": bitXorLevel, "&": bitAndLevel,
	"<<": shiftLevel, ">>": shiftLevel, "+": addLevel, "-": addLevel, "*": mulLevel, "/": mulLevel, "%": mulLevel,
	"**": powLevel,
}

// printer writes .fuse text. The maps rename what would be ambiguous; a nil map
// renames nothing.
type printer struct {
	graph *Graph // that is printed as a whole; nil for a part
	strings.Builder
	values map[*Value]string
	ranges map[*Range]string
	locals map[*Local]string
}

func (p *printer) value(v *Value) string {
	if name, ok := p.values[v]; ok {
		return name
	}
	return v.Name
}

func (p *printer) localName(l *Local) string {
	if name, ok := p.locals[l]; ok {
		return name
	}
	return l.Name
}

func (p *printer) rangeName(r *Range) string {
	if name, ok := p.ranges[r]; ok {
		return name
	}
	return r.Name
}

// expr writes e, in parentheses where it binds looser than level.
func (p *printer) expr(e *Expr, level int) {
	info := e.Op.Info()
	switch {
	case e.Op == OpConst:
		p.constant(e, level)
	case e.Op == OpRange:
		p.WriteString(p.rangeName(e.Range))
	case e.Op == OpSym:
		p.WriteString(e.Name)
	case e.Op == OpLoad:
		p.load(e, level)
	case e.Op == OpReduce:
		p.parens(level > looseLevel, func() { p.reduction(e.Reduce, e.Args[0]) })
	case e.Op == OpLocal:
		p.WriteString(p.localName(e.Local))
	case e.Op == OpRead:
		p.read(e)
	case e.Op == OpCast:
		p.call(e.Type.String(), e.Args)
	case e.Op == OpRandom:
		p.call("random_at", e.Args)
	case e.Op == OpRandom16:
		p.call("random_at16", e.Args)
	case info.Infix != "" && info.Arity == 2:
		p.infix(e, level)
	case info.Infix != "":
		p.parens(level > unaryLevel, func() {
			p.WriteString(info.Infix)
			p.operand(e.Args[0], e, unaryLevel)
		})
	default:
		p.call(info.Name, e.Args)
	}
}

func (p *printer) parens(need bool, f func()) {
	if need {
		p.WriteByte('(')
	}
	f()
	if need {
		p.WriteByte(')')
	}
}

func (p *printer) infix(e *Expr, level int) {
	op := e.Op.Info().Infix
	own := infixLevels[op]
	left, right := own, own+1
	switch own {
	case compareLevel: // comparisons do not chain
		left = own + 1
	case powLevel: // to the right
		left, right = postfixLevel, unaryLevel
	}
	p.parens(level > own, func() {
		p.operand(e.Args[0], e, left)
		p.WriteString(" " + op + " ")
		p.operand(e.Args[1], e, right)
	})
}

// operand writes an argument of e. A constant takes its dtype from another argument that is not
// a constant; without such an argument it is cast.
func (p *printer) operand(a, e *Expr, level int) {
	if a.Op == OpConst && !typedBeside(a, e) {
		p.call(a.Type.String(), []*Expr{a})
		return
	}
	p.expr(a, level)
}

func typedBeside(a, e *Expr) bool {
	if a.Type == Index {
		return true
	}
	for i, other := range e.Args {
		chooses := e.Op == OpSelect && i == 0
		if other.Op != OpConst && other.Type == a.Type && !chooses {
			return true
		}
	}
	return false
}

// call writes name(args).
func (p *printer) call(name string, args []*Expr) {
	p.WriteString(name + "(")
	for i, a := range args {
		if i > 0 {
			p.WriteString(", ")
		}
		if a.Op == OpConst && len(args) > 1 {
			p.operand(a, &Expr{Op: selectOrOther(name), Args: args}, looseLevel)
		} else if a.Op == OpConst && name != a.Type.String() {
			p.call(a.Type.String(), []*Expr{a})
		} else {
			p.expr(a, looseLevel)
		}
	}
	p.WriteByte(')')
}

func selectOrOther(name string) Op {
	if name == OpSelect.Info().Name {
		return OpSelect
	}
	return OpInvalid
}

func (p *printer) constant(e *Expr, level int) {
	text := constText(e)
	p.parens(level > unaryLevel && text[0] == '-', func() { p.WriteString(text) })
}

func constText(e *Expr) string {
	switch {
	case e.Type == Bool:
		return strconv.FormatBool(e.Int != 0)
	case !e.Type.IsFloat() && e.Int == math.MinInt64:
		return "(-9223372036854775807 - 1)"
	case !e.Type.IsFloat():
		return strconv.FormatInt(e.Int, 10)
	case math.IsInf(e.Val, 1):
		return "inf"
	case math.IsInf(e.Val, -1):
		return "-inf"
	case e.Val != e.Val:
		return "nan"
	}
	s := strconv.FormatFloat(e.Val, 'g', -1, 64)
	if !strings.ContainsAny(s, ".e") {
		s += ".0"
	}
	return s
}

func (p *printer) load(e *Expr, level int) {
	if e.alwaysOutside() { // a negative number would count from the end, and one too large is refused
		p.call(e.Type.String(), []*Expr{e.Fill})
		return
	}
	hasFill := e.Fill != nil && (!e.Fill.IsConst(0) || p.graph != nil && p.graph.meansOutside(e))
	p.parens(hasFill && level > looseLevel, func() {
		p.WriteString(p.value(e.From))
		if len(e.Args) > 0 {
			p.WriteByte('[')
			for i, a := range e.Args {
				if i > 0 {
					p.WriteString(", ")
				}
				if a.Op == OpCast && a.Args[0].Op != OpConst {
					a = a.Args[0] // an index position casts by itself
				}
				p.expr(a, looseLevel)
			}
			p.WriteByte(']')
		}
		if hasFill {
			p.WriteString(" else ")
			p.expr(e.Fill, unaryLevel)
		}
	})
}

// alwaysOutside reports whether an index of a load is a number outside of its axis at every size, so that the load is
// its fill.
func (e *Expr) alwaysOutside() bool {
	if e.Fill == nil || e.NoElse {
		return false
	}
	for d, index := range e.Args {
		if at, extent := Simplify(index, Facts{}), e.From.Axes[d].Extent; at.Op == OpConst {
			if at.Int < 0 || extent.Op == OpConst && at.Int >= extent.Int {
				return true
			}
		}
	}
	return false
}

func (p *printer) read(e *Expr) {
	p.WriteString(e.Arg.Name + "[")
	p.expr(e.Args[0], looseLevel)
	p.WriteByte(']')
	if e.Guard != nil {
		p.WriteString(" where ")
		p.expr(e.Guard, postfixLevel)
	}
	if e.Fill != nil {
		p.WriteString(" else ")
		p.expr(e.Fill, unaryLevel)
	}
}

// reduction writes op[ranges where predicate] body, or op[range at rank] body.
func (p *printer) reduction(r *Reduction, body *Expr) {
	if len(r.Ranges) == 0 && r.Where == nil {
		p.call(r.Op.String(), []*Expr{body})
		return
	}
	p.WriteString(r.Op.String() + "[")
	for i, x := range r.Ranges {
		if i > 0 {
			p.WriteString(", ")
		}
		p.WriteString(p.rangeName(x) + ": ")
		p.expr(x.Extent, looseLevel)
	}
	if r.Where != nil {
		p.WriteString(" where ")
		p.expr(r.Where, looseLevel)
	}
	if r.Inverse {
		p.WriteString(" place of ")
		p.expr(r.Rank, looseLevel)
	} else if r.Rank != nil {
		p.WriteString(" at ")
		p.expr(r.Rank, looseLevel)
	}
	p.WriteString("] ")
	p.top(body)
}

// top writes an expression that gets no dtype from other operands.
func (p *printer) top(e *Expr) {
	if e.Op == OpConst && e.Type != Bool {
		p.call(e.Type.String(), []*Expr{e})
		return
	}
	p.expr(e, looseLevel)
}
