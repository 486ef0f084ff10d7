package codegen

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fusec/fusec/codegen/skeleton"
	"github.com/fusec/fusec/codegen/spell"
	"github.com/fusec/fusec/ir"
)

// traits are what the common part of a kernel's text depends on of its strategy.
type traits struct {
	lane           func(k *ir.Kernel, v *ir.Variant) *ir.Range // that vectors run along; nil for the last of the rows
	hostDivides    bool                                        // threads come to few positions: the host makes products of divisions
	moves          bool                                        // what is read to be stored may stay in storage type
	inWords        bool                                        // reads of narrow elements that may be outside are chosen in words
	inOrder        bool                                        // a thread meets columns in their order
	linear         bool                                        // places among several ranges of columns are written over their position
	lanesInVectors bool                                        // elements of bf16 are converted by their vector and their lane
	policyOnce     bool                                        // cache policies are made without a branch
}

// emitter writes the function of one variant.
type emitter struct {
	writer
	k        *ir.Kernel
	v        *ir.Variant
	of       spelled
	names    spell.Namer
	args     map[*ir.Arg]string
	views    map[*ir.View]string
	ranges   map[*ir.Range]string
	place    map[*ir.Local]string // how a local is written here
	rawName  map[*ir.Local]string // registers that hold what a local reads
	vectorIn map[*ir.Local]string // the vector of those in hand
	heldName map[*ir.Local]string // registers of the chunks that a thread holds of it
	done     map[*ir.Local]bool   // row-level locals written
	kept     map[*ir.Local]bool
	hoisted  map[*ir.Local]bool   // those of them that are read once for all rows of a walk
	awaited  bool                 // the cluster's start has been waited for
	staged   map[*ir.Local]string // where in shared memory a read of the row ahead is
	inRows   map[*ir.Local]string // what is read of a row in shared memory, and
	outRows  map[*ir.Store]string // where what is stored goes there
	stored   map[*ir.Local]string // what is read of a row, not converted yet
	issued   []string             // of those, what nothing waits for yet
	divisor  map[*ir.Range]string // sizes with the factor that divides by them
	factors  []divisor            // sizes whose factors are arguments
	refilled bool                 // the row after this one, or the next of a ring, is on its way
	base     string               // of a streaming sweep: the column where the piece in hand begins
	whole    bool                 // the piece in hand is inside the row
	single   bool                 // one column at a time is in hand, of those that several are read of
	assumed  []*ir.Expr           // conditions that hold for the piece in hand
	lane     *ir.Range            // the range vectors run along, or nil
	allLanes bool                 // the vector in hand is inside
	column   *ir.Range            // the linear position of a column, see linear.go
	linear   map[*ir.Expr]*ir.Expr
	walked   map[*ir.Partial]string // running values of folds over the walk
	symbols  []string
	s        *spell.Speller

	block      string              // the block's number, or its group's
	fresh      map[*ir.Arg]bool    // other blocks of the launch have written them
	replaced   map[*ir.Expr]string // policies of reads whose lines the L2 cache does not replace in turn
	finishArgs []string            // arguments of the function that finishes
	tickets    string
	bins       string // of ScatterBinsMapping
}

func newEmitter(k *ir.Kernel, v *ir.Variant) *emitter {
	e := &emitter{
		k: k, v: v, of: strategies[v.Strategy], block: "blockIdx.x", names: spell.Namer{},
		args: map[*ir.Arg]string{}, views: map[*ir.View]string{}, ranges: map[*ir.Range]string{}, divisor: map[*ir.Range]string{},
		place: map[*ir.Local]string{}, rawName: map[*ir.Local]string{}, vectorIn: map[*ir.Local]string{}, heldName: map[*ir.Local]string{}, staged: map[*ir.Local]string{}, stored: map[*ir.Local]string{},
		inRows: map[*ir.Local]string{}, outRows: map[*ir.Store]string{},
		done: map[*ir.Local]bool{}, kept: map[*ir.Local]bool{}, hoisted: map[*ir.Local]bool{},
		fresh: map[*ir.Arg]bool{}, replaced: map[*ir.Expr]string{}, linear: map[*ir.Expr]*ir.Expr{}, walked: map[*ir.Partial]string{},
	}
	e.s = &spell.Speller{Numerics: k.Numerics, Mantissa: k.Mantissa, Facts: inside(k, v), Local: e.localName, Range: e.rangeName, Read: e.read}
	for _, l := range v.Keep {
		e.kept[l] = true
	}
	e.symbols = symbolsOf(k, v)
	for _, name := range e.symbols { // before all others: they keep their names
		e.names.Fresh(name)
	}
	for _, a := range k.Args {
		e.args[a] = e.names.Fresh(a.Name)
	}
	for _, w := range v.Views {
		e.views[w] = e.names.Fresh(w.Name)
	}
	for _, r := range append(append([]*ir.Range(nil), k.Rows...), k.Cols...) {
		e.ranges[r] = e.names.Fresh(r.Name)
	}
	for _, l := range v.Locals {
		for _, r := range innerRanges(l) {
			e.ranges[r] = e.names.Fresh(r.Name)
		}
	}
	if v.Sort != nil {
		e.ranges[v.Sort.Places] = e.names.Fresh(v.Sort.Places.Name)
	}
	switch {
	case e.of.lane != nil:
		e.lane = e.of.lane(k, v)
	case len(k.Rows) > 0:
		e.lane = k.Rows[len(k.Rows)-1]
	}
	return e
}

// innerRanges are those that a local sums over where it stands.
func innerRanges(l *ir.Local) []*ir.Range {
	if l.Def == nil || l.Def.Op != ir.OpReduce {
		return nil
	}
	return l.Def.Reduce.Ranges
}

// inside is what holds wherever the kernel computes: its rows are not none. Its
// columns may be; an expression over them holds their ranges itself.
func inside(k *ir.Kernel, v *ir.Variant) ir.Facts {
	f := v.Facts
	f.Within = k.Rows
	return f
}

// symbolsOf lists the symbols the kernel's text mentions, sorted.
func symbolsOf(k *ir.Kernel, v *ir.Variant) []string {
	roots := append(rootsOf(v), k.Inside)
	for _, r := range slices.Concat(k.Rows, k.Cols) {
		roots = append(roots, r.Extent)
	}
	for _, l := range v.Locals {
		roots = append(roots, l.Leaves, l.Stays)
		for _, r := range innerRanges(l) {
			roots = append(roots, r.Extent)
		}
	}
	for _, s := range v.Sections {
		for _, f := range s.Folds {
			roots = append(roots, f.Rescale)
		}
	}
	if v.Sort != nil {
		roots = append(roots, v.Sort.Places.Extent)
	}
	found := map[string]bool{}
	for _, e := range roots {
		ir.Walk(e, func(e *ir.Expr) bool {
			if e.Op == ir.OpSym {
				found[e.Name] = true
			}
			return true
		})
	}
	return slices.Sorted(maps.Keys(found))
}

func (e *emitter) localName(l *ir.Local) string {
	text, ok := e.place[l]
	if !ok {
		panic(fmt.Sprintf("BUG: %s is used before it is computed", l.Name))
	}
	return text
}

func (e *emitter) rangeName(r *ir.Range) string { return e.ranges[r] }

// read writes a scalar read, guarded where it may be outside.
func (e *emitter) read(r *ir.Expr) string {
	guard, offset := e.access(r, e.given(r.Guard), r.Args[0])
	text := fmt.Sprintf("%s[%s]", e.args[r.Arg], spell.Unwrapped(offset))
	if e.fresh[r.Arg] {
		text = fmt.Sprintf("fresh(%s + %s)", e.args[r.Arg], offset)
	}
	if guard == "" {
		return text
	}
	return fmt.Sprintf("(%s ? %s : %s)", guard, text, spell.Literal(r.Fill))
}

// access writes the place of a read and the condition under which it is inside, "" where it always
// is. given are the parts of the condition that are not known to hold already.
func (e *emitter) access(r, given, place *ir.Expr) (guard, offset string) {
	if given != nil {
		guard = e.s.Expr(given)
	}
	return guard, e.s.Place(r.Guard, place)
}

// wide writes a read of all lanes at once.
func (e *emitter) wide(r *ir.Expr) string {
	load, last := "load", "n"
	if e.fresh[r.Arg] {
		load = "load_fresh"
	} else if policy := e.under(r); policy != "" {
		load, last = "load_under", "n"+policy
	}
	guard, offset := e.access(r, e.given(r.Guard), e.wideOffset(r.Args[0]))
	text := fmt.Sprintf("%s<VECTOR>(%s + %s, %s)", load, e.args[r.Arg], offset, last)
	if guard == "" {
		return text
	}
	return fmt.Sprintf("%s ? %s : splat<VECTOR>(%s)", guard, text, spell.Literal(r.Fill))
}

// lanesOf writes what a wide local holds for all lanes at once.
func (e *emitter) lanesOf(l *ir.Local) string {
	if call := map[ir.Op]string{ir.OpRandom: "random_lanes", ir.OpRandom16: "random_lanes16"}[l.Def.Op]; call != "" {
		return fmt.Sprintf("%s<VECTOR>(%s, %s)", call, e.s.Bare(l.Def.Args[0]), e.s.Bare(l.Def.Args[1]))
	}
	return e.wide(readOf(l.Def))
}

// wideStore writes a store of all lanes at once.
func (e *emitter) wideStore(st *ir.Store, values string) {
	text := fmt.Sprintf("store<VECTOR>(%s + %s, %s, n);", e.args[st.Arg], e.s.Expr(e.wideOffset(st.Offset)), values)
	if rows, ok := e.outRows[st]; ok {
		text = fmt.Sprintf("store<VECTOR>(&%s, %s, n);", rows, values)
	}
	if guard := e.given(st.Guard); guard != nil {
		text = fmt.Sprintf("if (%s) %s", e.s.Bare(guard), text)
	}
	e.line("%s", text)
}

// name gives a local its C name, the first time it is met.
func (e *emitter) name(l *ir.Local) string {
	if text, ok := e.place[l]; ok {
		return strings.SplitN(text, "[", 2)[0]
	}
	return e.names.Fresh(l.Name)
}

// kernel writes the whole text.
func (e *emitter) kernel() (string, error) {
	e.header()
	if e.v.Finish != nil {
		e.finishingKernel()
		return e.b.String(), nil
	}
	parameters := e.parameters()
	body := e.aside(e.body)
	for _, d := range e.factors { // which the body asked for
		parameters = append(parameters, "Factor "+d.factor)
	}
	e.open("%s", e.signature(parameters))
	if !e.of.waits {
		e.line("wait_for_kernels_ahead();")
	}
	e.sizes(e.symbols)
	for _, d := range e.factors {
		e.line("const Divisor<INDEX> %s(%s, %s);", d.name, d.text, d.factor)
	}
	e.b.WriteString(body)
	e.close()
	return e.b.String(), nil
}

// signature is the head of the kernel.
func (e *emitter) signature(parameters []string) string {
	bounds := "THREADS"
	if e.v.Schedule.MinBlocks > 0 {
		bounds = "THREADS, MIN_BLOCKS"
	}
	return fmt.Sprintf("extern \"C\" __global__ void __launch_bounds__(%s) %s(%s)", bounds, spell.Identifier(e.k.Name),
		strings.Join(parameters, ", "))
}

// sizes writes symbols in the type of indices.
func (e *emitter) sizes(symbols []string) {
	for _, name := range symbols {
		e.line("[[maybe_unused]] const INDEX %s = (INDEX)%s_size;", spell.Identifier(name), spell.Identifier(name))
	}
}

// policies writes how long the L2 cache keeps what is read, for reads that say so.
func (e *emitter) policies() {
	for _, l := range e.v.Locals {
		e.readPolicy(l, l.Leaves, "leave_first")
		e.readPolicy(l, l.Stays, "leave_last")
	}
}

// readPolicy writes a policy for what a local reads where the condition holds.
func (e *emitter) readPolicy(l *ir.Local, when *ir.Expr, policy string) {
	if when == nil {
		return
	}
	r := readOf(l.Def)
	e.replaced[r] = e.names.Fresh(r.Arg.Name + "_policy")
	if e.of.policyOnce {
		e.line("const unsigned long long %s = policy_if(%s, %s());", e.replaced[r], e.s.Bare(when), policy)
		return
	}
	e.line("const unsigned long long %s = %s ? %s() : leave_in_turn();", e.replaced[r], e.s.Expr(when), policy)
}

// under is the last argument of a read that has a policy; none for others.
func (e *emitter) under(r *ir.Expr) string {
	if policy, ok := e.replaced[r]; ok {
		return ", " + policy
	}
	return ""
}

// body writes what the threads of a block do.
func (e *emitter) body() {
	e.policies()
	e.of.body(e)
}

// header says what the kernel is, in the plan's words.
func (e *emitter) header() {
	e.line("// %s: %s template, %s mapping, rows (%s), columns (%s)", e.k.Name, e.k.Template, e.v.Schedule.Mapping, e.loops(e.k.Rows), e.loops(e.k.Cols))
	for _, m := range e.k.Members {
		e.noted(m.Origin.Span, "//   %s%s", m.Name, origin(m))
	}
	e.b.WriteString(skeleton.Text("prelude"))
	if findsPlaces(e.k) {
		e.b.WriteString(skeleton.Text("keys", "arg"))
	}
	if e.of.preludes != nil {
		e.b.WriteString(e.of.preludes(e.k, e.v))
	}
	if e.v.Finish != nil {
		e.b.WriteString(skeleton.Text("fresh", "finish"))
	}
	e.line("")
}

func origin(m *ir.Value) string {
	if m.Origin.Call == "" {
		return ""
	}
	return " of " + m.Origin.Call
}

func (e *emitter) loops(ranges []*ir.Range) string {
	parts := make([]string, len(ranges))
	for i, r := range ranges {
		parts[i] = fmt.Sprintf("%s: %s", r.Name, r.Extent)
	}
	return strings.Join(parts, ", ")
}

func (e *emitter) parameters() []string {
	var parts []string
	for _, a := range e.k.Args {
		parts = append(parts, pointer(a)+"__restrict__ "+e.args[a])
	}
	for _, w := range e.v.Views {
		parts = append(parts, "const __grid_constant__ TensorMap "+e.views[w])
	}
	if own := ownOf(e.k, e.v); own.counters != nil {
		qualifier := "__restrict__ "
		if own.bytes != nil {
			qualifier = ""
		}
		e.tickets = e.names.Fresh("tickets")
		parts = append(parts, "unsigned *"+qualifier+e.tickets)
		if own.bytes != nil {
			e.bins = e.names.Fresh("bins")
			parts = append(parts, "unsigned long long *"+e.bins)
		}
	}
	for _, name := range e.symbols {
		parts = append(parts, fmt.Sprintf("long long %s_size", spell.Identifier(name)))
	}
	return parts
}
