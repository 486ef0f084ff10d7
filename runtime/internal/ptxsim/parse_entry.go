package ptxsim

import (
	"strconv"
	"strings"
)

// A scope holds what a pair of braces declares: registers, variables and labels.
type scope struct {
	up       *scope
	regs     map[string]declared
	labels   map[string]int
	names    map[string]string // of variables that have another in the entry
	jumps    []jump            // to labels not seen yet
	function bool              // it is the body of an expanded function
}

type declared struct {
	reg   int
	class string
}

type jump struct {
	at    int // instruction
	label string
	line  int
}

// entryParser reads one entry.
type entryParser struct {
	*parser
	e     *Entry
	scope *scope
	pool  map[uint64]int // constants by their bits
	known map[string]int // special registers by name
	depth int            // of functions being expanded

	statements []placed // but those of control flow
}

func (p *parser) entry() {
	e := &Entry{Name: p.next(), module: p.m}
	p.params(e)
	for strings.HasPrefix(p.peek(), ".") { // .maxntid, .minnctapersm, .reqntid, .explicitcluster
		p.skipLine()
	}
	if e.shared = append(e.shared, p.shared...); p.peek() != "{" {
		p.fail("entry %s has no body", e.Name)
	}
	b := &entryParser{parser: p, e: e, pool: map[uint64]int{}, known: map[string]int{}}
	p.expect("{")
	b.block()
	b.watchProducts()
	e.code = append(e.code, instr{guard: -1, branch: -1, exit: true, line: p.line()})
	p.m.Entries[e.Name] = e
	b.layOut()
}

func (p *parser) params(e *Entry) {
	if !p.accept("(") {
		return
	}
	at := 0
	for !p.accept(")") {
		v := p.param()
		at = roundUp(at, v.align)
		e.Params = append(e.Params, Param{v.name, at, v.size})
		at += v.size
		p.accept(",")
	}
}

// param reads ".param .align 64 .b8 name[128]".
func (p *parser) param() variable {
	p.expect(".param")
	v := variable{align: 1}
	if p.accept(".align") {
		v.align = p.count()
	}
	v.size = typeSize(p.next())
	v.align = max(v.align, v.size)
	for strings.HasPrefix(p.peek(), ".") { // .ptr .global .align 16
		if p.next() == ".align" {
			p.count()
		}
	}
	v.name = p.next()
	if p.accept("[") {
		v.size *= p.count()
		p.expect("]")
	}
	return v
}

func roundUp(n, align int) int { return (n + align - 1) / align * align }

// block reads to the closing brace.
func (b *entryParser) block() { b.blockOf(&scope{up: b.scope, names: map[string]string{}}) }

// blockOf reads to the closing brace what belongs to a scope.
func (b *entryParser) blockOf(s *scope) {
	s.regs, s.labels = map[string]declared{}, map[string]int{}
	b.scope = s
	for !b.accept("}") {
		b.item()
	}
	if s.function {
		s.labels[returns] = len(b.e.code)
	}
	closed := b.scope
	b.scope = closed.up
	for _, j := range closed.jumps {
		switch to, ok := closed.labels[j.label]; {
		case ok:
			b.e.code[j.at].branch = to
		case b.scope != nil:
			b.scope.jumps = append(b.scope.jumps, j)
		default:
			b.fail("label %s (line %d) is nowhere", j.label, j.line)
		}
	}
}

func (b *entryParser) item() {
	switch t := b.peek(); {
	case t == "{":
		b.next()
		b.block()
	case t == ";":
		b.next()
	case t == ".reg" || strings.HasPrefix(t, ".reg."):
		b.registers()
	case t == ".shared":
		b.e.shared = append(b.e.shared, b.variable())
	case t == ".local":
		b.e.local = append(b.e.local, b.variable())
	case t == ".param":
		b.argument()
	case strings.HasPrefix(t, "."): // .pragma, .loc
		b.skipLine()
	case b.at+1 < len(b.tokens) && b.tokens[b.at+1].text == ":":
		b.scope.labels[b.next()] = len(b.e.code)
		b.next()
	default:
		b.statement()
	}
}

// registers reads ".reg .b32 %r<12>, t;", also written ".reg.b32".
func (b *entryParser) registers() {
	class := strings.TrimPrefix(b.next(), ".reg")
	if class == "" {
		class = b.next()
	}
	class = strings.TrimPrefix(class, ".")
	for !b.accept(";") {
		name := b.next()
		if b.accept("<") {
			for i := range b.count() {
				b.scope.regs[name+strconv.Itoa(i)] = declared{b.newReg(), class}
			}
			b.expect(">")
		} else {
			b.scope.regs[name] = declared{b.newReg(), class}
		}
		b.accept(",")
	}
}

func (b *entryParser) newReg() int {
	b.e.regs++
	return b.e.regs - 1
}

// constant is a register that always holds the bits.
func (b *entryParser) constant(bits uint64) int {
	reg, ok := b.pool[bits]
	if !ok {
		reg = b.newReg()
		b.pool[bits] = reg
		b.e.consts = append(b.e.consts, preset{reg, bits})
	}
	return reg
}

func (b *entryParser) statement() {
	s := &statement{line: b.line()}
	if b.accept("@") {
		g := b.operand()
		if g.kind != regOperand || g.class != "pred" {
			b.fail("a guard is not a predicate")
		}
		s.guard = &g
	}
	parts := strings.Split(b.next(), ".")
	s.Op, s.Mods = parts[0], parts[1:]
	if s.Op == "call" {
		b.call(s)
		return
	}
	for !b.accept(";") {
		s.Args = append(s.Args, b.operand())
		b.accept(",")
	}
	b.add(s)
}

// operand reads one, with what may follow it: %r|%p, a+4.
func (b *entryParser) operand() operand {
	switch t := b.peek(); {
	case t == "!":
		b.next()
		o := b.operand()
		o.negate = !o.negate
		return o
	case t == "{":
		return operand{kind: vecOperand, elems: b.list("{", "}")}
	case t == "[":
		return b.address()
	case strings.IndexAny(t, "-0123456789") == 0:
		return b.immediate()
	}
	o := operand{kind: sinkOperand}
	if !b.accept("_") {
		o = b.named(b.next())
	}
	if b.accept("|") {
		pair := b.operand()
		o.pair = &pair
	}
	return o
}

func (b *entryParser) named(name string) operand {
	if name == "_" {
		return operand{kind: sinkOperand}
	}
	for s := b.scope; s != nil; s = s.up {
		if d, ok := s.regs[name]; ok {
			return operand{kind: regOperand, reg: d.reg, class: d.class, name: name}
		}
		if own, ok := s.names[name]; ok {
			return operand{kind: nameOperand, name: own}
		}
	}
	return operand{kind: nameOperand, name: name}
}

func (b *entryParser) list(open, end string) []operand {
	b.expect(open)
	var out []operand
	for !b.accept(end) {
		out = append(out, b.operand())
		b.accept(",")
	}
	return out
}

// address reads [base+4], [base-4], [base, {x, y}] and [12].
func (b *entryParser) address() operand {
	b.expect("[")
	base := b.operand()
	o := operand{kind: addrOperand, base: &base}
	switch {
	case b.accept("+"):
		o.bits = b.immediate().bits
	case b.peek() == "-":
		o.bits = b.immediate().bits
	case b.accept(","):
		o.elems = b.list("{", "}")
	}
	b.expect("]")
	return o
}
