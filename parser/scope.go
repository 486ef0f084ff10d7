package parser

import (
	"fmt"
	"math"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/diag"
	"github.com/fusec/fusec/ir/grad"
)

// scope maps names to what they mean; inner scopes hold the ranges of a
// reduction or an index statement.
type scope struct {
	parent *scope
	names  map[string]*binding
}

type binding struct {
	val     val
	span    diag.Span
	dynamic bool        // bound in a static loop or branch: may be bound again there
	rng     *rangeInfo  // of an index name
	leading []*ir.Range // of ... in index notation
	used    bool        // looked up
}

// rangeInfo is an index name whose extent may still be unknown.
type rangeInfo struct {
	rng  *ir.Range
	span diag.Span // of the name's declaration
	from diag.Span // of what gave the extent
	why  string    // what gave the extent, in words
	// fixed extents are written by the user; other uses need not agree with them.
	fixed bool
	// lost ranges index a value that has a mistake; their extents are not asked for.
	lost bool
	// guarded ranges are bound by a reduction with a predicate, which may keep what
	// they index inside.
	guarded bool
}

func newScope(parent *scope) *scope { return &scope{parent: parent, names: map[string]*binding{}} }

func (s *scope) find(name string) *binding {
	for ; s != nil; s = s.parent {
		if b := s.names[name]; b != nil {
			return b
		}
	}
	return nil
}

// frame is one activation: of a graph, of a function, or of a file's constants.
type frame struct {
	parent  *frame
	fn      *fnNode
	mod     *module
	scope   *scope
	call    diag.Span // of the call in the parent
	args    []argument
	path    string // library functions around it: "layer_norm/mean"
	dtypes  map[string]dtypeBinding
	dynamic int // static loops and branches around the statement
	results []val
	done    bool                 // a return, or an error that ends the body, was executed
	failed  bool                 // the body was ended by an error
	body    *blockNode           // what is being executed; nil for a short function
	binding bool                 // arguments are being bound: mistakes are the caller's
	outputs map[string]*declared // of a graph
	states  map[string]*state    // of a graph, by the names of inputs
}

// dtypeBinding is what a dtype variable of a function stands for.
type dtypeBinding struct {
	dtype ir.DType
	span  diag.Span
	what  string // the argument that bound it
}

// declared is a graph's result as its header gives it.
type declared struct {
	name  string
	dtype ir.DType
	shape []*ir.Expr
	span  diag.Span
	bad   bool
}

// builder turns one graph (or a file's constants) into ir.
type builder struct {
	*frame
	limits     Limits
	g          *ir.Graph
	errs       *diag.List
	warnings   *diag.List // nil where what is built is no graph as written
	known      ir.Facts   // of the first conditions of the graph, as many as counted: see facts
	counted    int
	steps      int
	operands   int              // evaluated so far
	called     map[*fnNode]bool // the functions that were called; may be nil
	trace      *trace           // nil but for editors
	muted      int              // inside an expression whose value is not needed
	tooLarge   bool             // a tensor too large to count has been reported
	rules      grad.Rules       // of a graph to be differentiated: the derivatives that functions declare
	deriving   map[*fnNode]bool // functions whose declared derivatives are being expanded
	unknown    map[string]bool  // names of sizes that were reported
	hint       string           // the name the value being computed will get
	statements []namedBinding   // what the statements of the graph bind
}

// namedBinding is a binding with its name.
type namedBinding struct {
	name string
	*binding
}

// blamed is the frame whose text is at fault: while arguments are bound, the caller's.
func (b *builder) blamed() *frame {
	if b.frame.binding {
		return b.frame.parent
	}
	return b.frame
}

// shown returns the place to show a user for span: inside library functions,
// the call in the user's program.
func (b *builder) shown(span diag.Span) diag.Span {
	for f := b.blamed(); f != nil && f.mod.library; f = f.parent {
		if !f.call.IsZero() {
			span = f.call
		}
	}
	return span
}

// errorf reports a mistake at span. Inside functions it adds notes that say
// how it was reached.
func (b *builder) errorf(span diag.Span, format string, args ...any) *diag.Error {
	e := diag.Errorf(b.shown(span), format, args...)
	if b.muted > 0 || b.full() {
		return e
	}
	for f := b.blamed(); f != nil && f.fn != nil; f = f.parent {
		if f.mod.library {
			if f == b.frame {
				e.Note(span, "inside %s", f.fn.Name.Text)
			}
		} else {
			e.Note(b.shownIn(f.parent, f.call), "%s was called here", f.fn.Name.Text)
		}
	}
	*b.errs = append(*b.errs, e)
	return e
}

func (b *builder) shownIn(f *frame, span diag.Span) diag.Span {
	at := &builder{frame: f}
	return at.shown(span)
}

// fail reports a mistake and returns the poisoned value.
func (b *builder) fail(span diag.Span, format string, args ...any) val {
	b.errorf(span, format, args...)
	return val{span: span}
}

// full reports whether enough has been reported to stop.
func (b *builder) full() bool { return len(*b.errs) >= b.limits.Errors }

// step counts work; it reports false once the budget is spent. Statements have up to
// limits.Terms operands each, so those count as well: it is they that take memory.
func (b *builder) step(span diag.Span) bool {
	b.steps++
	if b.steps == b.limits.Steps+1 {
		b.errorf(span, "graph takes more than %d steps to expand: unroll less in static loops", b.limits.Steps)
	}
	return !b.spent() && !b.full()
}

// count counts an operand that is evaluated.
func (b *builder) count(span diag.Span) {
	b.operands++
	if b.operands == b.limits.Operands+1 {
		b.errorf(span, "graph takes more than %d operands to expand: unroll less in static loops", b.limits.Operands)
	}
}

// spent reports whether the graph takes more work than it may.
func (b *builder) spent() bool { return b.steps > b.limits.Steps || b.operands > b.limits.Operands }

// bind gives name a value in the current frame.
func (b *builder) bind(id *identNode, v val) {
	name := id.Text
	if s := b.states[name]; s != nil && b.scope.names[name] == s.old {
		b.setState(s, id, v)
		return
	}
	if _, ok := ir.MonoidNamed(name); ok {
		b.errorf(id.span(), "%s is a reduction: choose another name", name)
		v = val{}
	}
	if _, ok := ir.DTypeNamed(name); ok {
		b.errorf(id.span(), "%s is a dtype: choose another name", name)
		v = val{}
	}
	if old := b.scope.names[name]; old != nil && b.dynamic == 0 {
		if !old.val.ok() {
			return // what was wrong with it has been told
		}
		b.errorf(id.span(), "%s is bound twice: values do not change; choose another name", name).
			Note(b.shown(old.span), "%s is bound here first", name)
		return
	}
	v.bound = id.span()
	b.trace.bound(id.span(), v)
	b.scope.names[name] = &binding{val: v, span: id.span(), dynamic: b.dynamic > 0}
	if b.outputs != nil { // of a graph
		b.statements = append(b.statements, namedBinding{name, b.scope.names[name]})
	}
}

var predefined = map[string]val{
	"true": boolv(true), "false": boolv(false), "none": {kind: noneVal},
	"inf": floatv(math.Inf(1)), "nan": floatv(math.NaN()), "pi": floatv(math.Pi),
}

// lookup returns what a name used as a value means.
func (b *builder) lookup(name string) (val, *binding, bool) {
	if found := b.scope.find(name); found != nil {
		found.used = true
		return found.val, found, true
	}
	if c := b.mod.constant(name); c != nil {
		return c.val, nil, true
	}
	if v, ok := predefined[name]; ok {
		return v, nil, true
	}
	if t, ok := b.dtype(name); ok {
		return val{kind: dtypeVal, dtype: t}, nil, true
	}
	return val{}, nil, false
}

// dtype resolves a dtype's name or a dtype variable of the function.
func (b *builder) dtype(name string) (ir.DType, bool) {
	if t, ok := b.dtypes[name]; ok {
		return t.dtype, true
	}
	return ir.DTypeNamed(name)
}

// undefined reports an unknown name with the nearest known one.
func (b *builder) undefined(span diag.Span, name string, call bool) val {
	what, known := "name", b.valueNames()
	if call {
		what, known = "function", b.functionNames()
	}
	if name == "_" && !call {
		return b.fail(span, "_ on the left discards a value: give it a name to read it")
	}
	if later := definedIn(b.body, name); later != nil && !call {
		v := b.fail(span, "%s is used before it is defined: values are defined in order", name)
		if b.muted == 0 && !b.full() {
			(*b.errs)[len(*b.errs)-1].Note(b.shown(later.span()), "%s is defined here", name)
		}
		return v
	}
	if hint := foreignType(name); hint != "" {
		return b.fail(span, "unknown %s %s%s", what, name, hint)
	}
	if here := foreignFunctions[name]; call && here != "" {
		return b.fail(span, "unknown function %s: write %s", name, here)
	}
	if b.mod.graphs[name] != "" && call {
		return b.fail(span, "unknown function %s: it is a graph, and only functions are called: write fn %s(...) and call it here and in the graph", name, name)
	}
	if near := diag.Nearest(name, known); near != "" {
		return b.fail(span, "unknown %s %s: did you mean %s?", what, name, near)
	}
	if call {
		return b.fail(span, "unknown %s %s", what, name)
	}
	if hint := b.unknownSize(name); hint != "" {
		if b.unknown[name] { // it is said once
			return val{span: span}
		}
		if b.unknown == nil {
			b.unknown = map[string]bool{}
		}
		b.unknown[name] = true
		return b.fail(span, "unknown name %s: %s", name, hint)
	}
	return b.fail(span, "unknown name %s", name)
}

// definedIn returns where a statement of the block defines name, or nil.
func definedIn(block *blockNode, name string) (at *identNode) {
	eachStmt(block, func(s *stmtNode) {
		if s.Assign == nil || at != nil {
			return
		}
		for _, t := range s.Assign.Targets {
			if t.Name.Text == name {
				at = t.Name
			}
		}
	})
	return at
}

func (b *builder) valueNames() []string {
	var out []string
	for s := b.scope; s != nil; s = s.parent {
		for n := range s.names {
			out = append(out, n)
		}
	}
	for n := range b.mod.consts {
		out = append(out, n)
	}
	for n := range predefined {
		out = append(out, n)
	}
	return out
}

func (b *builder) functionNames() []string {
	var out []string
	for n := range b.mod.fns {
		out = append(out, n)
	}
	for n := range b.mod.lazy {
		out = append(out, n)
	}
	if lib := b.mod.std; lib != nil {
		for n := range lib.lazy {
			out = append(out, n)
		}
	}
	for n := range b.mod.rows {
		out = append(out, n)
	}
	for _, op := range ir.Ops() {
		out = append(out, op.String())
	}
	for _, m := range ir.Monoids() {
		out = append(out, m.String())
	}
	for _, t := range ir.DTypes() {
		out = append(out, t.String())
	}
	return out
}

func plural(n int, what string) string {
	if n != 1 && what == "axis" {
		return fmt.Sprintf("%d axes", n)
	}
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
