package interp

import (
	"fmt"
	"math"

	"github.com/fusec/fusec/ir"
)

// kernel is one launch under way.
type kernel struct {
	*compiler
	repeats []*ir.Arg // the arguments of a kernel that is like another; nil for others
	memory  *memory
	frame   *frame
	rows    box // before those of a chunk
	cols    box
	keep    map[*ir.Local]bool
	row     int64 // the current row and column, by linear position
	col     int64
	folds   map[*ir.Fold]*streamed
	results map[*ir.Local]*Scalar // folds' results, running and old values
	locals  map[*ir.Local]code
}

// streamed is a fold of the kernel with its rescale.
type streamed struct {
	*fold
	index   func(*frame) int64 // of argmax and argmin; nil for the others
	result  *Scalar            // the finished value
	running *Scalar            // the value so far
	after   *streamed
	old     *Scalar
	rescale code
	prefix  ir.Prefix
}

// keptLocal is a full-level local that stays on chip: computed at its first use
// in a row, column by column.
type keptLocal struct {
	values []Scalar
	row    []int64 // the row that each value belongs to, plus one
}

// section is a compiled step of the variant.
type section struct {
	level    ir.Level
	reverse  bool
	folds    []*streamed // scans first
	stores   []func(*frame)
	partials []*partial
	ahead    []readAhead // read when the section ends
}

// readAhead is a value that is read at the end of a section; later ones have it from there.
type readAhead struct {
	def   code
	value *Scalar
}

func runKernel(k *ir.Kernel, m *memory, symbols map[string]int64, opts PlanOptions) error {
	v, err := chooseVariant(k, symbols, opts.Force)
	if err != nil {
		return err
	}
	k = v.Of(k)
	x := &kernel{compiler: newCompiler(opts.Mode, symbols), memory: m, keep: map[*ir.Local]bool{},
		folds: map[*ir.Fold]*streamed{}, results: map[*ir.Local]*Scalar{}, locals: map[*ir.Local]code{}}
	if k.Like != nil {
		x.repeats = k.Args
	}
	x.leaf = x.read
	if err := x.prepare(k, v); err != nil {
		return err
	}
	sections := make([]*section, len(v.Sections))
	for i, s := range v.Sections {
		sections[i] = x.section(s)
		for _, a := range v.Ahead {
			if a.Section == i {
				sections[i].ahead = append(sections[i].ahead, x.ahead(a.Local))
			}
		}
	}
	chunk, err := x.chunk(k, sections)
	if err != nil {
		return err
	}
	var sorted *sorting
	if v.Sort != nil {
		if sorted, err = x.sorting(v.Sort); err != nil {
			return err
		}
	}
	x.frame = x.compiler.frame()
	x.rows.each(x.frame, func(n int64) {
		chunk.begin()
		chunk.steps.each(x.frame, func(m int64) {
			x.row = n*chunk.steps.len() + m
			if !chunk.inside(x.frame) {
				return
			}
			for _, s := range sections {
				x.run(s)
			}
			if sorted != nil {
				sorted.run(x)
			}
		})
		chunk.end()
	})
	return x.frame.err
}

// bufferOf is the buffer of an argument, which the body may share with another kernel.
func (x *kernel) bufferOf(a *ir.Arg) *ir.Buffer {
	if x.repeats != nil {
		a = x.repeats[a.Index]
	}
	return a.Buffer
}

func (x *kernel) prepare(k *ir.Kernel, v *ir.Variant) (err error) {
	if x.rows, err = x.box(k.Rows[:len(k.Rows)-len(k.Accumulated)]); err != nil {
		return err
	}
	if x.cols, err = x.box(k.Cols); err != nil {
		return err
	}
	for _, l := range v.Keep {
		x.keep[l] = true
	}
	for _, a := range k.Args {
		if a.Write {
			x.memory.take(a.Buffer)
		}
	}
	for _, s := range v.Sections {
		for _, f := range s.Folds {
			x.results[f.Result] = &Scalar{}
			for _, l := range []*ir.Local{f.Running, f.Old} {
				if l != nil {
					x.results[l] = &Scalar{}
				}
			}
		}
	}
	return nil
}

func (x *kernel) section(s *ir.Section) *section {
	out := &section{level: s.Level, reverse: s.Reverse}
	for _, f := range s.Folds {
		out.folds = append(out.folds, x.streamed(f))
	}
	for _, s := range s.Stores {
		out.stores = append(out.stores, x.store(s))
	}
	for _, p := range s.Partials {
		out.partials = append(out.partials, x.partial(p))
	}
	return out
}

func (x *kernel) streamed(f *ir.Fold) *streamed {
	out := &streamed{fold: x.newFold(f.Op, f.Where, f.Body), result: x.results[f.Result], running: &Scalar{}, prefix: f.Prefix}
	if f.Index != nil {
		out.index = x.root(f.Index).int
	}
	if f.Running != nil {
		out.running = x.results[f.Running]
	}
	if f.After != nil {
		out.after, out.old, out.rescale = x.folds[f.After], x.results[f.Old], x.root(f.Rescale)
	}
	x.folds[f] = out
	return out
}

// run executes one section of the current row.
func (x *kernel) run(s *section) {
	f := x.frame
	for _, r := range s.folds {
		r.reset()
	}
	step := func(n int64) {
		x.col = n
		for _, r := range s.folds {
			r.advance(f, n)
			f.now++ // what was computed from the old running value is stale
		}
		for _, store := range s.stores {
			store(f)
		}
		for _, p := range s.partials {
			p.step(f, n)
		}
	}
	if s.reverse {
		x.cols.eachReverse(f, step)
	} else if s.level == ir.FullLevel {
		x.cols.each(f, step)
	} else {
		f.now++
		step(0)
	}
	for _, a := range s.ahead {
		f.now++
		*a.value = a.def.eval(f)
	}
	for _, r := range s.folds {
		r.finish()
	}
}

// advance folds the current point, after rescaling the running value to the new value of the
// maximum that it follows. While that is -inf, terms are zero.
func (r *streamed) advance(f *frame, n int64) {
	switch r.prefix {
	case ir.Inclusive:
		r.step(f, n)
		*r.result = r.acc
		return
	case ir.Exclusive:
		before := r.acc
		r.step(f, n)
		*r.result = before
		return
	}
	if r.index != nil {
		n = r.index(f)
	}
	if r.after == nil {
		r.step(f, n)
		*r.running = r.acc
		return
	}
	now := *r.after.running
	if *r.old != now {
		r.scale(r.rescale.eval(f).F)
		*r.old = now
	}
	if now != r.after.identity {
		r.step(f, n)
	} else if r.takesPart(f) {
		r.seen = true
	}
	*r.running = r.acc
}

// reset starts a row; the old value of After is its identity.
func (r *streamed) reset() {
	r.fold.reset()
	*r.running = r.identity
	if r.after != nil {
		*r.old = r.after.identity
	}
}

// finish sets the result: NaN if there were terms and their maximum is -inf.
func (r *streamed) finish() {
	if r.prefix != ir.WholeRow {
		return
	}
	*r.result = r.fold.result()
	if r.after != nil && r.seen && *r.after.running == r.after.identity {
		r.result.F = math.NaN()
	}
}

// read compiles the leaves of kernel expressions.
func (x *kernel) read(e *ir.Expr) code {
	if e.Op == ir.OpRead {
		return x.readArg(e)
	}
	l := e.Local
	if v, ok := x.results[l]; ok {
		return variable(l.Type, v)
	}
	if l.Def == nil {
		panic("BUG: interp: local " + l.Name + " has no definition and no fold in this variant")
	}
	if _, ok := x.locals[l]; !ok {
		x.locals[l] = x.local(l)
	}
	return x.locals[l]
}

// ahead compiles a local that is read at the end of a section.
func (x *kernel) ahead(l *ir.Local) readAhead {
	out := readAhead{x.round(ir.OpLoad, l.Type, x.root(l.Def)), &Scalar{}}
	x.locals[l] = variable(l.Type, out.value)
	return out
}

// local compiles a defined local: computed once for a point, or for a row's
// column where it stays on chip.
func (x *kernel) local(l *ir.Local) code {
	def := x.round(ir.OpLoad, l.Type, x.root(l.Def))
	if x.keep[l] && l.Level == ir.FullLevel {
		return x.onChip(l, def)
	}
	return x.memoise(def)
}

func variable(t ir.DType, v *Scalar) code {
	if t.IsFloat() {
		return code{float: func(*frame) float64 { return v.F }}
	}
	return code{int: func(*frame) int64 { return v.I }}
}

// onChip compiles a local that is computed once for each point of the space.
func (x *kernel) onChip(l *ir.Local, def code) code {
	n := x.cols.len()
	at := &keptLocal{make([]Scalar, n), make([]int64, n)}
	get := func(f *frame) Scalar {
		if at.row[x.col] != x.row+1 {
			at.values[x.col], at.row[x.col] = def.eval(f), x.row+1
		}
		return at.values[x.col]
	}
	if l.Type.IsFloat() {
		return code{float: func(f *frame) float64 { return get(f).F }}
	}
	return code{int: func(f *frame) int64 { return get(f).I }}
}

// readArg compiles a read; where its guard does not hold, the fill is the result.
func (x *kernel) readArg(e *ir.Expr) code {
	offset, inside := x.compile(e.Args[0]).int, func(*frame) int64 { return 1 }
	if e.Guard != nil {
		inside = x.compile(e.Guard).int
	}
	from := x.memory.buffers[x.bufferOf(e.Arg)]
	flat := func(f *frame) int64 {
		if inside(f) == 0 {
			return -1
		}
		return x.checked(f, e.Arg, offset(f), int64(from.Len()))
	}
	return x.guarded(e, flat, func(f *frame, n int64) Scalar {
		if f.err == nil && from.written != nil && !from.written[n] {
			f.err = fmt.Errorf("%sread of %s[%d], which holds nothing yet", at(e.Span), e.Arg.Name, n)
		}
		return from.at(n)
	})
}

// checked reports an offset outside an argument. It returns the offset, or -1
// in its place.
func (x *kernel) checked(f *frame, a *ir.Arg, n, size int64) int64 {
	if n >= 0 && n < size {
		return n
	}
	if f.err == nil {
		f.err = fmt.Errorf("access to %s at offset %d, it has %d elements", a.Name, n, size)
	}
	return -1
}

func (x *kernel) store(s *ir.Store) func(*frame) {
	value, offset := x.storeValue(s), x.root(s.Offset).int
	inside := func(*frame) int64 { return 1 }
	if s.Guard != nil {
		inside = x.root(s.Guard).int
	}
	to := x.memory.buffers[x.bufferOf(s.Arg)]
	return func(f *frame) {
		if inside(f) == 0 {
			return
		}
		v, n := value.eval(f), x.checked(f, s.Arg, offset(f), int64(to.Len()))
		if f.err == nil {
			to.store(n, v)
		}
	}
}

// storeValue converts what is stored to the argument's type.
func (x *kernel) storeValue(s *ir.Store) code {
	in := x.root(s.Value)
	if s.Value.Type == s.Arg.Type {
		return in
	}
	return x.cast(s.Value.Type, s.Arg.Type, in)
}
