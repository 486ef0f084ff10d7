package ptxsim

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Parse reads a module and compiles its entries. Errors name the line, and the
// instruction where the simulator does not know it.
func Parse(src string) (*Module, error) { return parse(src, nil) }

// Unknown lists the forms of instructions in a module that the simulator does not know,
// each once. The error is about what is no instruction.
func Unknown(src string) ([]string, error) {
	unknown := map[string]bool{}
	_, err := parse(src, unknown)
	return slices.Sorted(maps.Keys(unknown)), err
}

// parse collects forms that it does not know; where there is nothing to collect them in
// they are errors.
func parse(src string, unknown map[string]bool) (m *Module, err error) {
	tokens, err := lex(src)
	if err != nil {
		return nil, err
	}
	p := &parser{tokens: tokens, m: &Module{Entries: map[string]*Entry{}}, unknown: unknown}
	defer func() {
		if r := recover(); r != nil {
			wrong, ok := r.(parseError)
			if !ok {
				panic(r)
			}
			m, err = nil, wrong.err
		}
	}()
	p.functions()
	p.module()
	return p.m, nil
}

type parseError struct{ err error }

type parser struct {
	tokens  []token
	at      int
	m       *Module
	shared  []variable // of the module: every entry has them
	funcs   map[string]*function
	unknown map[string]bool // forms met that no family knows; nil: they are errors
}

func (p *parser) fail(format string, args ...any) {
	panic(parseError{fmt.Errorf("ptx line %d: %s", p.line(), fmt.Sprintf(format, args...))})
}

func (p *parser) line() int { return p.tokens[min(p.at, len(p.tokens)-1)].line }

func (p *parser) peek() string {
	if p.at >= len(p.tokens) {
		return ""
	}
	return p.tokens[p.at].text
}

func (p *parser) next() string {
	t := p.peek()
	if t == "" {
		p.fail("it ends too early")
	}
	p.at++
	return t
}

func (p *parser) accept(t string) bool {
	if p.peek() != t {
		return false
	}
	p.at++
	return true
}

func (p *parser) expect(t string) {
	if got := p.next(); got != t {
		p.at--
		p.fail("%q where %q was expected", got, t)
	}
}

// skipLine leaves out a directive that has no effect here.
func (p *parser) skipLine() {
	for line := p.line(); p.at < len(p.tokens) && p.tokens[p.at].line == line; {
		p.at++
	}
}

func (p *parser) module() {
	for p.at < len(p.tokens) {
		switch t := p.peek(); t {
		case ".version", ".address_size", ".file":
			p.skipLine()
		case ".target":
			p.next()
			p.m.Target = p.next()
			for p.accept(",") { // options
				p.next()
			}
		case ".visible", ".weak", ".extern":
			p.next()
			if p.peek() == ".shared" {
				p.shared = append(p.shared, p.variable())
			}
		case ".global", ".const":
			p.m.globals = append(p.m.globals, p.variable())
		case ".shared":
			p.shared = append(p.shared, p.variable())
		case ".entry":
			p.next()
			p.entry()
		case ".func":
			p.function()
		default:
			p.fail("%q is not known at the level of a module", t)
		}
	}
}

// variable reads a declaration from its state space to the semicolon.
func (p *parser) variable() variable {
	p.next() // space
	v := variable{align: 1}
	if p.accept(".align") {
		v.align = p.count()
	}
	size := typeSize(p.next())
	v.align = max(v.align, size)
	v.name = p.next()
	elems := 1
	for p.accept("[") {
		if p.accept("]") {
			v.extern, elems = true, 0
			continue
		}
		elems *= p.count()
		p.expect("]")
	}
	v.size = elems * size
	if p.accept("=") {
		v.init = p.initial(size, v.size)
	}
	p.expect(";")
	return v
}

// initial reads the value of a variable as its bytes.
func (p *parser) initial(elem, size int) []byte {
	out := make([]byte, size)
	one := func(at int) {
		bits := p.immediate().bits
		for i := range elem {
			out[at+i] = byte(bits >> (8 * i))
		}
	}
	if !p.accept("{") {
		one(0)
		return out
	}
	for at := 0; !p.accept("}"); at += elem {
		one(at)
		p.accept(",")
	}
	return out
}

func (p *parser) count() int {
	n, err := strconv.Atoi(p.next())
	if err != nil {
		p.at--
		p.fail("%q is not a number", p.peek())
	}
	return n
}

// typeSize is the bytes of a fundamental type as .u32; 1 for predicates.
func typeSize(t string) int {
	bits, err := strconv.Atoi(strings.TrimLeft(t, ".abcdefghijklmnopqrstuvwxyz"))
	if err != nil {
		return 1
	}
	return bits / 8
}

// immediate reads a number: 12, -12, 0x1F, 0f3F800000, 0d3FF0000000000000, 1.0.
func (p *parser) immediate() operand {
	negative := p.accept("-")
	t := p.next()
	o := operand{kind: immOperand}
	var err error
	switch {
	case strings.HasPrefix(t, "0f"), strings.HasPrefix(t, "0F"), strings.HasPrefix(t, "0d"), strings.HasPrefix(t, "0D"):
		o.float, o.double = true, t[1]|0x20 == 'd'
		o.bits, err = strconv.ParseUint(t[2:], 16, 64)
		if negative {
			o.bits ^= 1 << (4*len(t[2:]) - 1)
		}
		negative = false
	case strings.Contains(t, "."): // section 4.5.2: a decimal literal is an f64
		var v float64
		v, err = strconv.ParseFloat(t, 64)
		o.float, o.double, o.bits = true, true, math.Float64bits(v)
		if negative {
			o.bits ^= 1 << 63
		}
		negative = false
	default:
		o.bits, err = strconv.ParseUint(strings.TrimSuffix(t, "U"), 0, 64)
	}
	if err != nil {
		p.at--
		p.fail("%q is not a number", t)
	}
	if negative {
		o.bits = -o.bits
	}
	return o
}
