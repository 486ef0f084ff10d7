package ptxsim

import (
	"fmt"
	"maps"
	"math"
	"slices"
)

// A builder compiles one instruction. It is the entry's parser under another name, for the
// tables of instructions.
type builder = entryParser

// A family compiles the instructions of one opcode, by their modifiers and arguments. It
// returns nil for a form it does not know.
type family func(b *builder, s *statement) exec

// families are all instructions but those of control flow, by their opcode.
func families() map[string]family {
	out := map[string]family{}
	for _, table := range []map[string]family{moveFamilies, memoryFamilies, barrierFamilies, matrixFamilies,
		arithmeticFamilies, logicFamilies, compareFamilies, convertFamilies, effectFamilies, atomicFamilies,
		shuffleFamilies, clusterFamilies, asyncFamilies, mbarrierFamilies} {
		maps.Copy(out, table)
	}
	return out
}

var known = families()

// add compiles a statement and appends it.
func (b *entryParser) add(s *statement) {
	in := instr{guard: -1, branch: -1, line: s.line}
	if s.guard != nil {
		in.guard, in.negate = s.guard.reg, s.guard.negate
	}
	switch {
	case s.Op == "bra":
		in.branch = 0
		b.scope.jumps = append(b.scope.jumps, jump{len(b.e.code), s.Args[0].name, s.line})
	case s.Op == "ret" && b.depth > 0:
		in.branch = 0
		b.scope.jumps = append(b.scope.jumps, jump{len(b.e.code), returns, s.line})
	case s.Op == "ret" || s.Op == "exit":
		in.exit = true
	default:
		f := known[s.Op]
		if f != nil {
			in.run = f(b, s)
		}
		if in.run == nil {
			b.refuse(s)
			return
		}
		in.sync = together(b, s)
		b.statements = append(b.statements, placed{s, len(b.e.code)})
	}
	b.e.code = append(b.e.code, in)
}

// refuse handles an instruction that no family knows: it is an error, or a line of a list.
func (b *entryParser) refuse(s *statement) {
	form := fmt.Sprintf("%s with %d operands", s.text(), len(s.Args))
	if b.unknown == nil {
		b.at--
		b.fail("the simulator does not know %s", form)
	}
	b.unknown[form] = true
}

// use is the register that holds an operand's value: its own, or one of a constant.
func (b *builder) use(o operand) int {
	switch o.kind {
	case regOperand:
		return o.reg
	case immOperand:
		return b.constant(o.bits)
	case nameOperand:
		return b.symbol(o.name)
	}
	b.fail("an operand is neither a register nor a number")
	return 0
}

// value is the register that holds an operand of a type: a float immediate is converted
// to it.
func (b *builder) value(o operand, typ string) int {
	if o.kind == immOperand && o.float {
		switch v := o.number(); typ {
		case "f64":
			return b.constant(math.Float64bits(v))
		case "f32":
			return b.constant(uint64(math.Float32bits(float32(v))))
		}
	}
	return b.use(o)
}

// number is the value of a float immediate.
func (o *operand) number() float64 {
	if o.double {
		return math.Float64frombits(o.bits)
	}
	return float64(math.Float32frombits(uint32(o.bits)))
}

// symbol is the register that holds a special register or the address of a variable, in
// its own state space.
func (b *builder) symbol(name string) int {
	if reg, ok := b.known[name]; ok {
		return reg
	}
	reg := b.newReg()
	b.known[name] = reg
	if at := slices.Index(specials, name); at >= 0 {
		b.e.special = append(b.e.special, preset{reg, uint64(at)})
	}
	return reg
}

// layOut gives every variable its address and fills the registers that hold them.
func (b *entryParser) layOut() {
	e := b.e
	slices.SortStableFunc(e.shared, func(x, y variable) int { return extern(x) - extern(y) })
	at := sharedStart
	for i := range e.shared {
		at = roundUp(at, e.shared[i].align)
		e.shared[i].addr = uint64(at)
		at += e.shared[i].size
	}
	e.static = at - sharedStart
	for i := range e.local {
		e.depot = roundUp(e.depot, e.local[i].align)
		if e.local[i].addr = uint64(e.depot); e.local[i].passed {
			e.local[i].addr |= localWindow
		}
		e.depot += e.local[i].size
	}
	addresses := map[string]uint64{}
	for _, v := range slices.Concat(e.shared, e.local) {
		addresses[v.name] = v.addr
	}
	global := uint64(moduleWindow)
	for _, v := range b.m.globals {
		global = uint64(roundUp(int(global), v.align))
		addresses[v.name] = global
		global += uint64(v.size)
	}
	for _, p := range e.Params {
		addresses[p.Name] = uint64(p.Offset)
	}
	for name, reg := range b.known {
		if slices.Contains(specials, name) {
			continue
		}
		addr, ok := addresses[name]
		if !ok {
			b.fail("%s is neither a variable nor a special register", name)
		}
		e.consts = append(e.consts, preset{reg, addr})
	}
}

func extern(v variable) int {
	if v.extern {
		return 1
	}
	return 0
}

// moduleData is the bytes of a module's global variables, as initialised.
func (m *Module) moduleData() []byte {
	var out []byte
	for _, v := range m.globals {
		out = append(out, make([]byte, roundUp(len(out), v.align)-len(out))...)
		out = append(out, v.init...)
		out = append(out, make([]byte, v.size-len(v.init))...)
	}
	return out
}

// Lookup finds an entry.
func (m *Module) Lookup(name string) (*Entry, error) {
	e, ok := m.Entries[name]
	if !ok {
		return nil, fmt.Errorf("the module has no entry %q", name)
	}
	return e, nil
}

// StaticShared is the bytes of shared memory that the entry itself declares.
func (e *Entry) StaticShared() int { return e.static }

// ParamBytes is the size of an entry's block of parameters.
func (e *Entry) ParamBytes() int {
	if len(e.Params) == 0 {
		return 0
	}
	last := e.Params[len(e.Params)-1]
	return last.Offset + last.Size
}
