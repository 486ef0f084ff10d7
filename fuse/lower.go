package fuse

import (
	"fmt"
	"maps"
	"sort"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/num"
)

// lowering turns one region into a kernel: loads become reads at flat offsets or
// references to what the kernel computes itself, and every expression is in the
// type it is computed in.
type lowering struct {
	f       *fuser
	r       *region
	k       *ir.Kernel
	buffers map[*ir.Value]*ir.Buffer
	args    map[*ir.Value]*ir.Arg
	value   map[*ir.Value]*ir.Expr // what a member is at the current point
	folds   []*ir.Fold
	stores  []*storing
	partial []*ir.Partial
	score   *ir.Local // of a stream
	locals  int
	order   *ir.Sort           // of the sort template
	reverse bool               // the scans run from the last column to the first
	rows    []*ir.Range        // of the kernel, before any were joined
	parts   map[*ir.Range]bool // of the rows, those that a finish folds
	unit    bool               // one of a product's rows has one element: see without
	paired  bool               // with another kernel, in one launch: see finish
	few     []*ir.Local        // of bodies for few rows, whose tensors the L2 cache holds
}

// storing is a store and the level it happens at.
type storing struct {
	*ir.Store
	level ir.Level
}

// lower makes a region a kernel; with p it is one of two that may get one launch, the
// second of which is lowered after the first. done lists what is lowered.
func (f *fuser) lower(r *region, buffers map[*ir.Value]*ir.Buffer, p *finishing, done map[*region]*lowering) *ir.Kernel {
	lo := &lowering{f: f, r: r, paired: p != nil, buffers: buffers, args: map[*ir.Value]*ir.Arg{}, value: map[*ir.Value]*ir.Expr{}}
	done[r] = lo
	lo.k = &ir.Kernel{Name: kernelName(f, r), Template: templateOf(r), Members: r.members, Numerics: f.g.Numerics}
	lo.orderSpace()
	switch {
	case p != nil && p.first == r:
		lo.rows, lo.parts = lo.k.Rows, maps.Clone(p.parts)
	case p != nil:
		lo.follow(done[p.first], p)
	}
	for _, v := range r.members {
		lo.member(v)
	}
	lo.boundArgs()
	lo.k.Inside = r.inside
	if p == nil && r.stream == nil && len(r.walk) == 0 {
		lo.orderScatter()
	}
	if r.stream == nil && r.folded == nil && lo.order == nil {
		lo.joinRanges()
	}
	lo.k.Mantissa = lo.mantissa()
	for _, a := range lo.args {
		lo.k.Args = append(lo.k.Args, a)
	}
	sort.Slice(lo.k.Args, func(i, j int) bool { return lo.k.Args[i].Index < lo.k.Args[j].Index })
	f.cover(lo.k, lo.variants())
	for _, v := range lo.k.Variants {
		lo.markOnce(v)
	}
	return lo.k
}

// kernelName is the name of the last result the region stores, or else of its
// last member.
func kernelName(f *fuser, r *region) string {
	name := r.members[len(r.members)-1].Name
	for _, o := range f.g.Outputs {
		if r.has(o.Value) {
			name = o.Name
		}
	}
	return f.g.Name + "_" + name
}

// orderSpace sorts rows and columns the way memory is laid out: by the largest
// tensor the region touches, outermost axis first.
func (lo *lowering) orderSpace() {
	rank := map[*ir.Range]int{}
	best := -1.0
	m := &matcher{facts: lo.facts()}
	consider := func(u, v *ir.Value, at []*ir.Expr) {
		size := lo.f.bytes(v)
		found := map[*ir.Range]int{}
		for _, e := range at {
			for _, r := range m.digits(lo.r.index(u, e, m.facts)) {
				found[r] = len(found)
			}
		}
		if len(found) > len(rank) || len(found) == len(rank) && size > best {
			best, rank = size, found
		}
	}
	for _, v := range lo.r.members {
		if v.Reduce == nil || form.ScanOf(v) != nil {
			consider(v, v, algebra.UnitIndices(v.Axes))
		}
		for _, l := range lo.f.loads[v] {
			consider(v, l.From, l.Args)
		}
	}
	for _, s := range lo.r.space {
		if lo.r.cols[s] {
			lo.k.Cols = append(lo.k.Cols, s)
		} else {
			lo.k.Rows = append(lo.k.Rows, s)
		}
	}
	for _, list := range [][]*ir.Range{lo.k.Rows, lo.k.Cols} {
		sort.SliceStable(list, func(i, j int) bool {
			if walked := lo.r.walk[list[j]]; walked != lo.r.walk[list[i]] {
				return walked
			}
			ri, iok := rank[list[i]]
			rj, jok := rank[list[j]]
			return iok && jok && ri < rj
		})
	}
}

// member lowers one value.
func (lo *lowering) member(v *ir.Value) {
	at := lo.r.at[v]
	if v.Reduce != nil && lo.r.walks(v) {
		lo.foldWalk(v, lo.expr(ir.Substitute(v.Body, at)))
		return
	}
	switch s := form.SortOf(v); {
	case s != nil:
		lo.value[v] = lo.lowerSort(v, s)
	case v.Reduce == nil:
		lo.value[v] = lo.expr(ir.Substitute(v.Body, at))
	case lo.r.stream != nil && v == lo.r.stream.Score.From, lo.r.folded != nil && v == lo.r.folded.product:
		lo.value[v] = lo.scores(v, lo.expr(ir.Substitute(v.Body, at)))
	default:
		lo.value[v] = lo.fold(v, at, lo.expr(ir.Substitute(v.Body, at)))
	}
	if lo.buffers[v] != nil {
		lo.store(v)
	}
}

func (lo *lowering) fold(v *ir.Value, at map[*ir.Range]*ir.Expr, body *ir.Expr) *ir.Expr {
	lo.foldsColumns(v, at)
	op := v.Reduce.Op
	acc := op.Accumulator(v.Body.Type)
	resultType := acc
	if op.IsArg() {
		resultType = ir.I64
	}
	f := &ir.Fold{Op: op, Body: ir.Cast(body, acc)}
	where, level := v.Reduce.Where, ir.RowLevel
	if s := form.ScanOf(v); s != nil {
		f.Prefix, where, level = s.Prefix, s.Where, ir.FullLevel
		lo.reverse = s.Reverse
	}
	f.Result = lo.local(v.Name, resultType, level)
	f.Result.Value, f.Result.Span = v, v.Origin.Span
	if op.IsArg() {
		f.Index = lo.argIndex(v.Reduce.Ranges, at)
	}
	if where != nil {
		f.Where = lo.expr(ir.Substitute(where, at))
	}
	lo.folds = append(lo.folds, f)
	return lo.rounded(ir.LocalRef(f.Result), v.Type)
}

// foldsColumns panics where a reduction does not run over the kernel's columns, all of
// them: a fold takes its body once at each column, whether or not it depends on it.
func (lo *lowering) foldsColumns(v *ir.Value, at map[*ir.Range]*ir.Expr) {
	over := map[*ir.Range]bool{}
	for _, own := range algebra.Widened(v.Reduce.Ranges) {
		for r := range ir.FreeRanges(at[own]) {
			over[r] = true
		}
	}
	if !algebra.SameRanges(lo.k.Cols, over) {
		panic(fmt.Sprintf("BUG: %s reduces over %s in a kernel with the columns %s", v.Name, form.Names(v.Reduce.Ranges), form.Names(lo.k.Cols)))
	}
}

// foldWalk folds a member over the rows that are walked; the predicate of its last
// chunk is that of the rows.
func (lo *lowering) foldWalk(v *ir.Value, body *ir.Expr) {
	at := make([]*ir.Expr, len(v.Axes))
	for d, r := range v.Axes {
		at[d] = ir.IntConst(0)
		if e := lo.r.at[v][r]; e != nil {
			at[d] = e
		}
	}
	arg := lo.arg(v)
	arg.Write = true
	lo.partial = append(lo.partial, &ir.Partial{Op: v.Reduce.Op, Body: ir.Cast(body, v.Type), Arg: arg,
		Offset: ir.Simplify(ir.FlatOffset(v.Shape(), at), lo.facts()), Span: v.Origin.Span})
}

// argIndex is the position argmax reports: row-major over the reduced ranges as
// the program lists them.
func (lo *lowering) argIndex(ranges []*ir.Range, at map[*ir.Range]*ir.Expr) *ir.Expr {
	var shape, index []*ir.Expr
	for _, r := range ranges {
		shape, index = append(shape, r.Extent), append(index, at[r])
	}
	return ir.Simplify(ir.FlatOffset(shape, index), lo.facts())
}

func (lo *lowering) local(name string, t ir.DType, level ir.Level) *ir.Local {
	lo.locals++
	return &ir.Local{ID: lo.locals, Name: name, Type: t, Level: level}
}

func (lo *lowering) store(v *ir.Value) {
	at := make([]*ir.Expr, len(v.Axes))
	level := ir.RowLevel
	for d, r := range v.Axes {
		at[d] = ir.IntConst(0)
		if e := lo.r.at[v][r]; e != nil {
			at[d] = e
			if algebra.DependsOnAny(e, lo.r.cols) {
				level = ir.FullLevel
			}
		}
	}
	arg := lo.arg(v)
	arg.Write = true
	offset := ir.Simplify(ir.FlatOffset(v.Shape(), at), lo.facts())
	var guard *ir.Expr
	for _, r := range lo.r.beyond(v) { // computed again at each of its points
		guard = algebra.And(guard, ir.Apply(ir.OpEq, r.At(), ir.IntConst(0)))
	}
	lo.stores = append(lo.stores, &storing{&ir.Store{Arg: arg, Offset: offset, Guard: guard, Value: lo.value[v], Span: v.Origin.Span}, level})
}

// arg returns the kernel's parameter for a value's buffer.
func (lo *lowering) arg(v *ir.Value) *ir.Arg {
	a := lo.args[v]
	if a == nil {
		b := lo.buffers[v]
		a = &ir.Arg{Index: len(lo.args), Name: b.Name, Type: b.Type, Buffer: b}
		lo.args[v] = a
	}
	return a
}

// expr lowers an expression over the region's space.
func (lo *lowering) expr(e *ir.Expr) *ir.Expr {
	return ir.Rewrite(e, lo.node)
}

// node lowers one node whose parts are lowered. Narrow floats become f32: under
// fast the rounding between operations is dropped, under strict it is written
// out after each of them.
func (lo *lowering) node(e *ir.Expr) *ir.Expr {
	t := e.Type.Info().Compute
	switch e.Op {
	case ir.OpLoad:
		return lo.load(e)
	case ir.OpConst:
		return lo.constant(e)
	case ir.OpCast:
		from := e.Args[0]
		if from.Op == ir.OpCast && from.Type == ir.F32 && t == ir.F32 && !e.Type.IsFloat() {
			return ir.Cast(from, t).At(e.Span)
		}
		if t != e.Type && !from.Type.IsFloat() && lo.k.Numerics == ir.Strict {
			return ir.Cast(ir.Cast(from, e.Type), t).At(e.Span) // rounded once, straight from the integer
		}
		return lo.rounded(ir.Cast(from, t), e.Type).At(e.Span)
	case ir.OpRange, ir.OpSym, ir.OpLocal, ir.OpRead, ir.OpRandom, ir.OpRandom16:
		return e
	}
	return lo.rounded(inPositions(e), e.Type).At(e.Span)
}

// inPositions is an operation on integers made of positions as one on positions where that
// is the same: their comparisons, with each other and with constants, and differences of
// ranges, which do not leave the type that positions have.
func inPositions(e *ir.Expr) *ir.Expr {
	compares := e.Op.Info().Result == ir.ToBool
	if !compares && e.Op != ir.OpSub {
		return ir.Apply(e.Op, e.Args...)
	}
	args, positions := make([]*ir.Expr, len(e.Args)), false
	for i, a := range e.Args {
		switch {
		case a.Op == ir.OpCast && a.Type == ir.I64 && a.Args[0].Type == ir.Index && (compares || a.Args[0].Op == ir.OpRange):
			args[i], positions = a.Args[0], true
		case compares && a.Op == ir.OpConst && a.Type == ir.I64 && int64(int32(a.Int)) == a.Int:
			args[i] = ir.IntConst(a.Int)
		default:
			return ir.Apply(e.Op, e.Args...)
		}
	}
	if !positions {
		return ir.Apply(e.Op, e.Args...)
	}
	return ir.Cast(ir.Apply(e.Op, args...), e.Type)
}

// constant is a constant in the type it is computed with: under strict the value
// that its own type holds.
func (lo *lowering) constant(e *ir.Expr) *ir.Expr {
	t := e.Type.Info().Compute
	if t == e.Type || lo.k.Numerics == ir.Fast {
		return ir.Cast(e, t)
	}
	return ir.Num(t, num.Round(e.Type, num.Round(t, e.Val))).At(e.Span)
}

// rounded rounds a value to the type the program gives it where that matters.
func (lo *lowering) rounded(e *ir.Expr, t ir.DType) *ir.Expr {
	c := t.Info().Compute
	if c == t || !t.IsFloat() {
		return ir.Cast(e, t)
	}
	if lo.k.Numerics == ir.Fast {
		return ir.Cast(e, c)
	}
	return ir.Cast(ir.Cast(e, t), c)
}

func (lo *lowering) load(e *ir.Expr) *ir.Expr {
	v := e.From
	shape := v.Shape()
	var guard *ir.Expr
	if e.Fill != nil {
		guard = ir.Inside(shape, e.Args, lo.facts())
	}
	if lo.r.has(v) {
		if guard == nil {
			return lo.value[v]
		}
		return ir.Where(guard, lo.value[v], ir.Cast(e.Fill, lo.value[v].Type)) // a data-dependent index of an axis of extent 1
	}
	offset := ir.Simplify(ir.FlatOffset(shape, e.Args), lo.facts())
	if guard != nil && lo.r.inside != nil && ir.Implies(lo.r.inside, guard, lo.facts()) {
		guard = nil
	}
	fill := e.Fill
	if guard == nil {
		fill = nil
	} else if fill.Type != v.Type {
		fill = ir.Cast(fill, v.Type) // lowered like any constant; storage keeps its own type
	}
	return ir.Cast(ir.Read(lo.arg(v), offset, guard, fill).At(e.Span), v.Type.Info().Compute).At(e.Span)
}

// mantissa is the precision of the most precise float the kernel stores.
func (lo *lowering) mantissa() int {
	most := 0
	for _, s := range lo.stores {
		most = max(most, s.Arg.Type.Info().Mantissa)
	}
	return most
}

// facts is what holds whatever the sizes: the graph's constraints.
func (lo *lowering) facts() ir.Facts { return lo.f.g.Facts() }

// inside is what holds wherever an expression of the given level is evaluated: the
// loops around it run. At row level the columns may be none.
func (lo *lowering) inside(level ir.Level) ir.Facts {
	f := lo.facts()
	f.Within = lo.k.Rows
	if level == ir.FullLevel {
		f.Within = append(append([]*ir.Range(nil), lo.k.Rows...), lo.k.Cols...)
	}
	return f
}
