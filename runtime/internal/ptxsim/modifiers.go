package ptxsim

import "strings"

// elementTypes are the bytes of the types that instructions of memory and of communication
// work on. 128-bit types are not among them: registers hold 64 bits.
var elementTypes = map[string]int{
	"b8": 1, "u8": 1, "s8": 1, "b16": 2, "u16": 2, "s16": 2, "f16": 2, "bf16": 2,
	"b32": 4, "u32": 4, "s32": 4, "f32": 4, "f16x2": 4, "bf16x2": 4, "b64": 8, "u64": 8, "s64": 8, "f64": 8,
}

// orderings are modifiers without effect here: how an access is ordered among those of
// other threads, and how it is cached. Warps take turns, and there is one copy of memory.
var orderings = map[string]bool{
	"weak": true, "volatile": true, "relaxed": true, "acquire": true, "release": true, "acq_rel": true,
	"mmio": true, "cta": true, "cluster": true, "gpu": true, "sys": true, "unified": true,
	"nc": true, "ca": true, "cg": true, "cs": true, "lu": true, "cv": true, "wb": true, "wt": true,
}

// spaces are the state spaces by their modifier.
var spaces = map[string]space{
	"global": global, "const": global, "shared": shared, "shared::cta": shared, "shared::cluster": shared,
	"local": local, "param": param, "param::entry": param, "param::func": param,
}

// vectors are how many elements a vector modifier stands for.
var vectors = map[string]int{"v2": 2, "v4": 4, "v8": 8}

// only reports whether an opcode has no modifiers but types, state spaces, vectors,
// orderings, hints to caches, and those listed.
func (s *statement) only(more ...string) bool {
	for _, m := range s.Mods {
		_, space := spaces[m]
		if elementTypes[m] == 0 && vectors[m] == 0 && !space && !orderings[m] &&
			!strings.HasPrefix(m, "L1::") && !strings.HasPrefix(m, "L2::") && !oneOf(m, more) {
			return false
		}
	}
	return true
}

func oneOf(s string, set []string) bool {
	for _, t := range set {
		if s == t {
			return true
		}
	}
	return false
}

// element is the last type among the modifiers; "" where there is none.
func (s *statement) element() string {
	for i := len(s.Mods) - 1; i >= 0; i-- {
		if elementTypes[s.Mods[i]] > 0 {
			return s.Mods[i]
		}
	}
	return ""
}

// which is the one of the words that is a modifier; "" where there is none.
func (s *statement) which(words ...string) string {
	for _, w := range words {
		if s.has(w) {
			return w
		}
	}
	return ""
}

// plain is the operands without that of a cache policy, which has no effect.
func (s *statement) plain() []operand {
	if s.has("L2::cache_hint") && len(s.Args) > 0 {
		return s.Args[:len(s.Args)-1]
	}
	return s.Args
}

// kinds reports whether operands are so many, addresses where the text has an a and none
// where it has another character.
func kinds(args []operand, text string) bool {
	if len(args) != len(text) {
		return false
	}
	for i, a := range args {
		if (a.kind == addrOperand) != (text[i] == 'a') {
			return false
		}
	}
	return true
}

// into is the register that takes a result; -1: the result is dropped.
func (b *builder) into(o operand) int {
	if o.kind == sinkOperand {
		return -1
	}
	return b.use(o)
}

// elems are the operands of a vector, or the operand itself.
func (o operand) vector() []operand {
	if o.kind == vecOperand {
		return o.elems
	}
	return []operand{o}
}

// A pointer is an address operand.
type pointer struct {
	reg    int
	offset uint64
}

func (b *builder) pointer(o operand) pointer { return pointer{b.use(*o.base), o.bits} }

func (p pointer) at(w *warp, lane int) uint64 { return w.regs[p.reg][lane] + p.offset }

// A condition is a predicate operand, which may be negated.
type condition struct {
	reg  int
	flip uint64
}

func (b *builder) condition(o operand) condition {
	s := condition{reg: b.use(o)}
	if o.negate {
		s.flip = 1
	}
	return s
}

// lanes is the lanes of a mask for which the predicate holds.
func (s condition) lanes(w *warp, mask uint32) uint32 {
	out := uint32(0)
	for lane := range uint32(warpSize) {
		out |= uint32((w.regs[s.reg][lane]^s.flip)&1) << lane
	}
	return out & mask
}
