package ptxsim

import "fmt"

// A function is a .func of the module. Calls of it are expanded in place: compilers leave
// few (of f64 pow, sin), none of which recurses.
type function struct {
	params []variable // the results first
	result int        // how many of them
	body   int        // the token after its brace
}

// returns is the label that an expanded function's ret goes to.
const returns = "ret"

// functions finds all functions: entries may come before those they call.
func (p *parser) functions() {
	p.funcs = map[string]*function{}
	for at, t := range p.tokens {
		if t.text != ".func" {
			continue
		}
		p.at = at
		if name, f := p.function(); f != nil {
			p.funcs[name] = f
		}
	}
	p.at = 0
}

// function reads a .func and its body; nil for a mere declaration.
func (p *parser) function() (name string, f *function) {
	p.expect(".func")
	f = &function{}
	if p.peek() == "(" {
		f.params = p.paramList()
		f.result = len(f.params)
	}
	name = p.next()
	f.params = append(f.params, p.paramList()...)
	for p.peek() != "{" && p.peek() != ";" { // .noreturn
		p.next()
	}
	if p.next() == ";" {
		return name, nil
	}
	f.body = p.at
	for depth := 1; depth > 0; {
		switch p.next() {
		case "{":
			depth++
		case "}":
			depth--
		}
	}
	return name, f
}

// paramList reads "(.param .b64 a, .param .b32 b)"; none where there is no parenthesis.
func (p *parser) paramList() []variable {
	var out []variable
	if !p.accept("(") {
		return nil
	}
	for !p.accept(")") {
		out = append(out, p.param())
		p.accept(",")
	}
	return out
}

// argument declares ".param .b64 param0;", with which a call passes a value: a variable
// of local memory under a name of its own.
func (b *entryParser) argument() {
	v := b.param()
	b.expect(";")
	own := fmt.Sprintf("%s#%d", v.name, len(b.e.local))
	b.scope.names[v.name] = own
	v.name, v.passed = own, true
	b.e.local = append(b.e.local, v)
}

// call reads "call{.uni} (results), name, (arguments);" after the opcode and expands it.
func (b *entryParser) call(s *statement) {
	passed := b.names()
	b.accept(",")
	name := b.next()
	if b.accept(",") {
		passed = append(passed, b.names()...)
	}
	b.expect(";")
	f := b.funcs[name]
	switch {
	case f == nil:
		b.fail("there is no function %s to call", name)
	case len(passed) != len(f.params):
		b.fail("%s called with %d operands; it has %d", name, len(passed), len(f.params))
	case b.depth > 16:
		b.fail("calls of %s are nested too deeply", name)
	}
	skip := -1
	if s.guard != nil {
		skip = len(b.e.code)
		over := instr{guard: s.guard.reg, negate: !s.guard.negate, line: s.line}
		b.e.code = append(b.e.code, over)
	}
	b.expand(f, passed)
	if skip >= 0 {
		b.e.code[skip].branch = len(b.e.code)
	}
}

// names reads the parameters that a call passes, in parentheses.
func (b *entryParser) names() []string {
	if !b.accept("(") {
		return nil
	}
	var out []string
	for !b.accept(")") {
		o := b.named(b.next())
		if o.kind != nameOperand {
			b.fail("a call passes %s, which is not a variable of .param", o.name)
		}
		out = append(out, o.name)
		b.accept(",")
	}
	return out
}

// expand compiles a function's body, whose parameters are the variables passed.
func (b *entryParser) expand(f *function, passed []string) {
	caller, at := b.scope, b.at
	names := map[string]string{}
	for i, v := range f.params {
		names[v.name] = passed[i]
	}
	b.scope, b.at = nil, f.body
	b.depth++
	b.blockOf(&scope{names: names, function: true})
	b.depth--
	b.scope, b.at = caller, at
}
