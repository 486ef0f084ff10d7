package ir

// Program is what a runtime needs to run a graph on a GPU: source text and
// launches. It refers to no other stage's types, so that it can be written to
// disk (all fields are exported and plain) and run without parsing again.
type Program struct {
	Name        string
	Symbols     []string // Size expressions name them by position
	Defaults    []int64  // of Symbols, to try the program with; 0 if the source names none
	Params      []Param  // inputs, then outputs
	Temps       []Temp
	Counters    []Size   // see ArgCounters
	Divisors    []Size   // see ArgFactor
	Sources     []string // CUDA C, shared by units that differ in constants only
	Units       []Unit
	Launches    []Launch
	TensorMaps  []TensorMap
	Constraints []SizeCheck
	Checks      []IndexCheck // read when a run is done: see ArgCheck
}

// Param is an input or output tensor.
type Param struct {
	Name   string
	DType  DType
	Shape  []Size
	Output bool
	State  string // of an output: the input whose next value it is; "" for a plain one
	// InPlace: the output may have the memory of the input State. If not, Apart says why.
	InPlace bool
	Apart   string
	Where   string // file:line:col of its declaration
}

// Temp is device memory that lives from the first launch that names it to the last
// one. Temps whose lives do not overlap may share memory: the runtime places them,
// which knows the sizes.
type Temp struct{ Bytes Size }

// Unit is one kernel to compile: a source and the constants it is compiled with.
type Unit struct {
	Entry   string // name of the __global__ function
	Source  int    // in Program.Sources
	Defines string // "#define" lines to put before the source
	Strict  bool   // compile without contracting a*b+c
	// LineInfo: the code records the lines of the source that it comes from, for profilers and
	// debuggers.
	LineInfo bool
	Shared   int // bytes of dynamic shared memory
	Block    [3]int
	Cluster  int // blocks of a cluster along x; 0 for none
	// Resident: any number of blocks, or clusters, share the work among themselves; more than
	// the device holds at once are of no use.
	Resident bool
	// Waits: every thread waits for earlier kernels (griddepcontrol.wait) before it touches
	// device memory, on chips that have the instruction (sm_90 on). Such a kernel may be
	// launched while the one before it still runs.
	Waits bool
}

// Launch is one kernel of the plan, which runs where When is not zero: the first variant whose own When is not
// zero.
type Launch struct {
	Kernel   string
	When     Size // empty: always
	Reads    Size // bytes read from device memory at least
	Writes   Size // bytes written
	Variants []LaunchVariant
}

// Runs reports whether the kernel runs at the given symbol values.
func (l *Launch) Runs(symbols []int64) bool {
	if len(l.When) == 0 {
		return true
	}
	holds, ok := l.When.Eval(symbols)
	return ok && holds != 0
}

// Choose returns the variant for the given symbol values; nil if the kernel does not run. There
// always is one, because the last variant has no condition.
func (l *Launch) Choose(symbols []int64) *LaunchVariant {
	if !l.Runs(symbols) {
		return nil
	}
	for i := range l.Variants {
		v := &l.Variants[i]
		if len(v.When) == 0 {
			return v
		}
		if holds, ok := v.When.Eval(symbols); ok && holds != 0 {
			return v
		}
	}
	return nil
}

// LaunchVariant is a unit and how to launch it.
type LaunchVariant struct {
	When Size // empty: always
	Unit int
	Grid [3]Size
	Args []LaunchArg
}

// ArgKind says what a LaunchArg passes.
type ArgKind uint8

// The kinds of launch argument.
const (
	ArgParam     ArgKind = iota // pointer of Params[Index]
	ArgTemp                     // pointer of Temps[Index]
	ArgSize                     // the 64-bit value of Symbols[Index]
	ArgTensorMap                // TensorMaps[Index], encoded: 128 bytes at a multiple of 64
	// ArgCounters is a pointer to Counters[Index] 32-bit counters, at a multiple of 8 bytes. They
	// are zero when a kernel starts, and the kernel leaves them zero. Each launch of a run has
	// its own counters, and so has each of several runs that may overlap.
	ArgCounters
	// ArgCheck is a pointer to an i64: for even Index the place that Checks[Index / 2] finds,
	// for odd Index the index there. They are next to each other in memory.
	ArgCheck
	// ArgFactor is the Factor of Divisors[Index], with which a kernel divides by that size.
	ArgFactor
)

// LaunchArg is one kernel parameter: 8 bytes, or those of a tensor map.
type LaunchArg struct {
	Kind  ArgKind
	Index int
	Write bool // the kernel writes the tensor; else it only reads it
}

// Size is an integer expression over symbols in postfix form, quick to evaluate
// and plain to store.
type Size []SizeStep

// SizeStep is one instruction of a Size: a constant, a symbol or an operation.
type SizeStep struct {
	Op  Op    // OpConst, OpSym or an integer operation
	Val int64 // OpConst: the value; OpSym: the position in Symbols
}

// SizeOf compiles an expression over symbols; position gives each symbol's
// place. It panics on anything else in e: plans hold sizes over symbols only.
func SizeOf(e *Expr, position map[string]int) Size {
	var out Size
	var emit func(e *Expr)
	emit = func(e *Expr) {
		switch e.Op {
		case OpConst:
			out = append(out, SizeStep{OpConst, e.Int})
		case OpSym:
			at, ok := position[e.Name]
			if !ok {
				panic("BUG: size names the unknown symbol " + e.Name)
			}
			out = append(out, SizeStep{OpSym, int64(at)})
		case OpCast:
			emit(e.Args[0])
		default:
			if e.Op.Info().Int == nil {
				panic("BUG: size with operation " + e.Op.String())
			}
			for _, a := range e.Args {
				emit(a)
			}
			out = append(out, SizeStep{e.Op, 0})
		}
	}
	emit(e)
	return out
}

// Text writes the size with the names of the symbols.
func (s Size) Text(symbols []string) string {
	var stack []*Expr
	for _, step := range s {
		switch step.Op {
		case OpConst:
			stack = append(stack, IntConst(step.Val))
		case OpSym:
			stack = append(stack, Sym(symbols[step.Val]))
		default:
			n := len(stack) - step.Op.Info().Arity
			args := append([]*Expr(nil), stack[n:]...) // a copy, because the expression keeps it
			stack = append(stack[:n], Apply(step.Op, args...))
		}
	}
	if len(stack) == 0 {
		return ""
	}
	return stack[len(stack)-1].String()
}

// Eval computes the size for the given symbol values; ok is false where an
// intermediate result does not fit in 64 bits.
func (s Size) Eval(symbols []int64) (v int64, ok bool) {
	var buf [32]int64
	stack := buf[:0]
	ok = true
	for _, step := range s {
		switch step.Op {
		case OpConst:
			stack = append(stack, step.Val)
		case OpSym:
			stack = append(stack, symbols[step.Val])
		default:
			n := step.Op.Info().Arity
			var a [3]int64
			copy(a[:], stack[len(stack)-n:])
			stack = stack[:len(stack)-n]
			switch {
			case step.Op == OpMul && !mulFits(a[0], a[1]),
				step.Op == OpAdd && (a[0]+a[1] < a[0]) != (a[1] < 0),
				step.Op == OpSub && (a[0]-a[1] > a[0]) != (a[1] < 0):
				ok = false
			}
			stack = append(stack, step.Op.Info().Int(a[0], a[1], a[2]))
		}
	}
	if len(stack) == 0 {
		return 0, ok
	}
	return stack[len(stack)-1], ok
}

func mulFits(a, b int64) bool {
	if a == 0 || b == 0 {
		return true
	}
	p := a * b
	return p/b == a && !(a == -1<<63 && b == -1) && !(b == -1<<63 && a == -1)
}

// EvalSize is SizeOf and Eval in one, for symbols by name.
func EvalSize(e *Expr, symbols map[string]int64) (v int64, ok bool) {
	switch e.Op {
	case OpConst:
		return e.Int, true
	case OpSym:
		v, ok = symbols[e.Name]
		if !ok {
			panic("BUG: size names the unknown symbol " + e.Name)
		}
		return v, true
	case OpCast:
		return EvalSize(e.Args[0], symbols)
	}
	info := e.Op.Info()
	if info.Int == nil {
		panic("BUG: size with operation " + e.Op.String())
	}
	ok = true
	var args [3]int64
	for i, a := range e.Args {
		var fits bool
		args[i], fits = EvalSize(a, symbols)
		ok = ok && fits
	}
	if e.Op == OpMul && !mulFits(args[0], args[1]) {
		ok = false
	}
	return info.Int(args[0], args[1], args[2]), ok
}
