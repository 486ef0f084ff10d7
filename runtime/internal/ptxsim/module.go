package ptxsim

// A Module is parsed PTX. It is immutable and safe for concurrent use.
type Module struct {
	Target  string // sm_90a
	Entries map[string]*Entry
	globals []variable
}

// An Entry is a kernel, ready to be launched.
type Entry struct {
	Name   string
	Params []Param

	module  *Module
	shared  []variable // static, in order; the extern one last
	local   []variable
	regs    int      // registers of a thread, including constants and special registers
	consts  []preset // registers that hold the same in all threads
	special []preset // registers that the launch fills: bits is the index in specials
	code    []instr
	static  int // bytes of static shared memory
	depot   int // bytes of local memory

	products bool // wgmma.mma_async occurs
}

// A Param is one parameter of an entry: its place in the block of parameters.
type Param struct {
	Name         string
	Offset, Size int
}

// A variable is a named piece of a state space.
type variable struct {
	name        string
	align, size int
	init        []byte
	extern      bool // size is given at launch
	passed      bool // it is in local memory and holds an argument of a call
	addr        uint64
}

// A preset is a register whose value is known before a thread starts.
type preset struct {
	reg  int
	bits uint64
}

// An exec performs an instruction for the lanes of a mask.
type exec func(w *warp, mask uint32)

// An instr is a compiled instruction.
type instr struct {
	run    exec
	guard  int // predicate register, -1: none
	negate bool
	branch int                               // target, -1: no branch
	exit   bool                              // ends the lanes
	sync   func(w *warp, mask uint32) uint32 // lanes that must execute it together; nil: any
	line   int
}

// A statement is an instruction as written.
type statement struct {
	Op    string   // "ld"
	Mods  []string // "global", "nc", "v4", "u32"
	Args  []operand
	guard *operand
	line  int
}

// text gives the statement's opcode as written.
func (s *statement) text() string {
	out := s.Op
	for _, m := range s.Mods {
		out += "." + m
	}
	return out
}

// has reports whether the opcode has a modifier.
func (s *statement) has(mod string) bool {
	for _, m := range s.Mods {
		if m == mod {
			return true
		}
	}
	return false
}

// last is the last modifier: most often the type.
func (s *statement) last() string {
	if len(s.Mods) == 0 {
		return ""
	}
	return s.Mods[len(s.Mods)-1]
}

type operandKind int

const (
	regOperand  operandKind = iota
	immOperand              // bits
	nameOperand             // symbol, label or special register
	vecOperand              // {a, b}: elems
	addrOperand             // [base+bits] and, of tensors, [base, {elems}]
	sinkOperand             // _
)

// An operand is one as written, with registers resolved to their index.
type operand struct {
	kind   operandKind
	reg    int
	class  string // of a register: "pred", "b32", "f64"
	bits   uint64 // immediate; offset of an address
	float  bool   // the immediate was written 0f, 0d or 1.0
	double bool   // its bits are those of an f64
	name   string
	elems  []operand
	base   *operand
	pair   *operand // after |
	negate bool     // after !
}
