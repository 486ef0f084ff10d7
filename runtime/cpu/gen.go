package cpu

import (
	"fmt"
	"slices"

	"github.com/fusec/fusec/ir"
)

// gen turns the expressions of one kernel, at known sizes, into instructions.
type gen struct {
	*code
	symbols map[string]int64
	strict  bool
	slot    map[*ir.Range]int
	extent  map[*ir.Range]int64
	isCol   map[*ir.Range]bool
	vec     *ir.Range // the range that lanes run along; vecRow says which kind it is

	scatter *ir.Scatter // whose lists of columns the rows fold; nil where they fold all

	shared *ir.Range // the row range along which jobs share panels; nil for none

	job  map[node]operand // computed by the job's instructions, for all sections
	here map[node]operand // computed in this section
	deps map[*ir.Expr]dep
	out  [stageStep + 1]*[]instr

	folds  map[*ir.Local]*fold   // by result
	moving map[*ir.Local]operand // running and old values
	keep   map[*ir.Local]int     // locals that stay on chip, by position in code.kept
	saved  map[*ir.Local]bool    // those that an earlier section computed
}

// node is an expression as a value, or at the first lane of the tile.
type node struct {
	e     *ir.Expr
	first bool
}

// dep says what an expression depends on.
type dep struct {
	vec   bool
	stage stage
}

func (a dep) join(b dep) dep { return dep{a.vec || b.vec, max(a.stage, b.stage)} }

// dep analyses e; shared nodes once.
func (g *gen) dep(e *ir.Expr) dep {
	if e == nil {
		return dep{}
	}
	if d, ok := g.deps[e]; ok {
		return d
	}
	d := g.leafDep(e)
	for _, part := range e.Args {
		d = d.join(g.dep(part))
	}
	d = d.join(g.dep(e.Guard)).join(g.dep(e.Fill))
	g.deps[e] = d
	return d
}

func (g *gen) leafDep(e *ir.Expr) dep {
	switch {
	case e.Op == ir.OpRange:
		s := stageJob
		if g.isCol[e.Range] {
			s = stageStep
		}
		return dep{e.Range == g.vec, s}
	case e.Op == ir.OpRead:
		return dep{false, stageJob}
	case e.Op == ir.OpLocal:
		return g.localDep(e.Local)
	}
	return dep{}
}

func (g *gen) localDep(l *ir.Local) dep {
	if _, ok := g.moving[l]; ok {
		return dep{g.vecRow, stageStep}
	}
	if g.isScan(l) {
		return dep{true, stageStep}
	}
	if l.Def == nil {
		return dep{g.vecRow, stageSection}
	}
	return g.dep(l.Def)
}

// beginSection forgets what earlier sections computed.
func (g *gen) beginSection(s *section) {
	g.here, g.deps = map[node]operand{}, map[*ir.Expr]dep{}
	g.out = [...]*[]instr{nil, &g.code.job, &s.prologue, &s.body}
}

func (g *gen) newReg(c class, vec bool, s stage) operand {
	o := operand{class: c, vec: vec, stage: s}
	switch {
	case vec:
		o.reg = g.regs[c]
		g.regs[c]++
	case c == classInt:
		o.reg = len(g.constI)
		g.constI = append(g.constI, 0)
	default:
		o.reg = len(g.constF)
		g.constF = append(g.constF, 0)
	}
	return o
}

// emit adds an instruction at the stage its sources allow and returns its result.
func (g *gen) emit(c class, vec bool, at stage, run func(*worker, *instr), src ...operand) operand {
	in := instr{run: run}
	for i := range in.src {
		in.src[i].reg = -1
	}
	for i, s := range src {
		in.src[i], at = s, max(at, s.stage)
	}
	at = max(at, stageJob)
	in.dst = g.newReg(c, vec, at)
	*g.out[at] = append(*g.out[at], in)
	return in.dst
}

func (g *gen) known(n node) (operand, bool) {
	if o, ok := g.job[n]; ok {
		return o, true
	}
	o, ok := g.here[n]
	return o, ok
}

func (g *gen) learn(n node, o operand) operand {
	if o.stage <= stageJob {
		g.job[n] = o
	} else {
		g.here[n] = o
	}
	return o
}

// value compiles e: a scalar where it is the same for all lanes, else a tile.
func (g *gen) value(e *ir.Expr) operand {
	n := node{e: e}
	if o, ok := g.known(n); ok {
		return o
	}
	return g.learn(n, g.build(e))
}

// first compiles an integer expression at the first lane of the tile.
func (g *gen) first(e *ir.Expr) operand {
	if !g.dep(e).vec {
		return g.value(e)
	}
	n := node{e, true}
	if o, ok := g.known(n); ok {
		return o
	}
	return g.learn(n, g.buildFirst(e))
}

func (g *gen) buildFirst(e *ir.Expr) operand {
	if e.Type != ir.Index && e.Type != ir.I64 { // narrow ones wrap, and floats are none
		return g.firstLane(g.value(e))
	}
	switch {
	case e.Op == ir.OpRange:
		return g.index(e.Range)
	case e.Op == ir.OpLocal && e.Local.Def != nil:
		return g.first(e.Local.Def)
	case e.Op == ir.OpCast && (e.Args[0].Type == ir.Index || e.Args[0].Type == ir.I64):
		return g.first(e.Args[0])
	case ir.Needs128(e, g.bits):
		return g.clamped128(e, g.first)
	case e.Op == ir.OpAdd: // a place under the condition that it is inside, or a side of a comparison, which do not overflow
		return g.addTerms(e)
	case e.Op.Info().Int == nil || e.Args[0].Type != e.Type: // a read, a choice, a cast
		return g.firstLane(g.value(e))
	}
	args := make([]operand, len(e.Args))
	for i, a := range e.Args {
		args[i] = g.first(a)
	}
	return g.scalarInt(e, args)
}

// firstLane takes the first element of a tile of integers.
func (g *gen) firstLane(o operand) operand {
	return g.emit(classInt, false, o.stage, func(w *worker, i *instr) {
		w.si[i.dst.reg] = w.i64[i.src[0].reg][0]
	}, o)
}

// addTerms adds the terms of a sum of 64-bit integers, those that change least often first, so
// that a step adds as few as possible.
func (g *gen) addTerms(e *ir.Expr) operand {
	var terms []operand
	var visit func(e *ir.Expr)
	visit = func(e *ir.Expr) {
		if e.Op == ir.OpAdd {
			visit(e.Args[0])
			visit(e.Args[1])
			return
		}
		terms = append(terms, g.first(e))
	}
	visit(e)
	slices.SortStableFunc(terms, func(a, b operand) int { return int(a.stage) - int(b.stage) })
	total := terms[0]
	for _, t := range terms[1:] {
		total = g.scalarInt(plusOp(ir.OpAdd), []operand{total, t})
	}
	return total
}

// vector compiles e as a tile.
func (g *gen) vector(e *ir.Expr) operand { return g.splat(g.value(e)) }

// splat spreads a scalar over a tile.
func (g *gen) splat(o operand) operand {
	if o.vec {
		return o
	}
	switch o.class {
	case classF32:
		return g.emit(o.class, true, o.stage, func(w *worker, i *instr) {
			fill(w.f32[i.dst.reg], float32(w.sf[i.src[0].reg]))
		}, o)
	case classF64:
		return g.emit(o.class, true, o.stage, func(w *worker, i *instr) {
			fill(w.f64[i.dst.reg], w.sf[i.src[0].reg])
		}, o)
	}
	return g.emit(o.class, true, o.stage, func(w *worker, i *instr) {
		fill(w.i64[i.dst.reg], w.si[i.src[0].reg])
	}, o)
}

// index is the current index of a range; of the vector range, the first lane's.
func (g *gen) index(r *ir.Range) operand {
	slot, s := g.slot[r], stageJob
	if g.isCol[r] {
		s = stageStep
	}
	return g.emit(classInt, false, s, func(w *worker, i *instr) { w.si[i.dst.reg] = w.at[slot] })
}

func (g *gen) build(e *ir.Expr) operand {
	if v, ok := g.number(e); ok && e.Type == ir.Index {
		return g.intConst(v)
	}
	if ir.Needs128(e, g.bits) {
		return g.clamped128(e, g.value)
	}
	switch e.Op {
	case ir.OpAdd:
		if e.Type == ir.Index && !g.dep(e).vec && !g.saturates(e) {
			return g.addTerms(e)
		}
	case ir.OpConst:
		return g.constant(e)
	case ir.OpSym:
		return g.intConst(g.symbols[e.Name])
	case ir.OpRange:
		return g.rangeValue(e)
	case ir.OpLocal:
		return g.local(e.Local)
	case ir.OpRead:
		return g.read(e)
	case ir.OpCast:
		return g.cast(e.Args[0].Type, e.Type, g.value(e.Args[0]))
	case ir.OpSelect:
		return g.choose(e)
	}
	return g.round(e.Type, g.apply(e))
}

func (g *gen) rangeValue(e *ir.Expr) operand {
	start := g.index(e.Range)
	if e.Range != g.vec {
		return start
	}
	return g.emit(classInt, true, start.stage, func(w *worker, i *instr) {
		iota64(ints(w, i.dst.reg), w.si[i.src[0].reg], 1)
	}, start)
}

func (g *gen) constant(e *ir.Expr) operand {
	if !e.Type.IsFloat() {
		return g.intConst(e.Int)
	}
	o := g.newReg(classOf(e.Type), false, stageConst)
	g.constF[o.reg] = e.Val
	if g.strict {
		g.constF[o.reg] = roundFloat(e.Type, e.Val)
	}
	return o
}

func (g *gen) intConst(v int64) operand {
	o := g.newReg(classInt, false, stageConst)
	g.constI[o.reg] = v
	return o
}

func (g *gen) floatConst(c class, v float64) operand {
	o := g.newReg(c, false, stageConst)
	g.constF[o.reg] = v
	return o
}

// local compiles a reference: a fold's result, a value kept on chip, or the
// local's definition.
func (g *gen) local(l *ir.Local) operand {
	if o, ok := g.moving[l]; ok {
		return o
	}
	if f := g.folds[l]; f != nil && g.isScan(l) {
		return f.finished
	}
	if f := g.folds[l]; f != nil {
		o := f.finished
		o.stage = stageSection
		return o
	}
	if k, ok := g.keep[l]; ok && g.saved[l] {
		return g.restore(k, classOf(l.Type))
	}
	if l.Def == nil {
		panic("BUG: cpu: local " + l.Name + " has no definition and no fold in its variant")
	}
	o := g.value(l.Def)
	if c := classOf(l.Type); c != o.class {
		panic(fmt.Sprintf("BUG: cpu: local %s of type %s has a definition of type %s", l.Name, l.Type, l.Def.Type))
	}
	if k, ok := g.keep[l]; ok && o.vec && o.stage == stageStep {
		g.save(k, o)
		g.nowKept = append(g.nowKept, l)
	}
	return o
}

// choose compiles a select.
func (g *gen) choose(e *ir.Expr) operand {
	cond, a, b := e.Args[0], g.value(e.Args[1]), g.value(e.Args[2])
	if g.dep(cond).vec {
		if lanes, ok := g.lanes(cond); ok {
			return g.selectLanes(lanes, g.splat(a), g.splat(b))
		}
	}
	c := g.value(cond)
	if !c.vec && !a.vec && !b.vec {
		return g.selectScalar(c, a, b)
	}
	if !c.vec {
		return g.selectUniform(c, g.splat(a), g.splat(b))
	}
	a, b = g.splat(a), g.splat(b)
	switch a.class {
	case classF32:
		return g.emit(a.class, true, 0, func(w *worker, i *instr) {
			selectF32(f32s(w, i.dst.reg), ints(w, i.src[0].reg), f32s(w, i.src[1].reg), f32s(w, i.src[2].reg))
		}, c, a, b)
	case classF64:
		return g.emit(a.class, true, 0, selectTile(f64s), c, a, b)
	}
	return g.emit(a.class, true, 0, selectTile(ints), c, a, b)
}

func selectTile[T element](at bank[T]) func(*worker, *instr) {
	return func(w *worker, i *instr) {
		selectAny(at(w, i.dst.reg), ints(w, i.src[0].reg), at(w, i.src[1].reg), at(w, i.src[2].reg))
	}
}

func (g *gen) selectScalar(c, a, b operand) operand {
	if a.class == classInt {
		return g.emit(a.class, false, 0, func(w *worker, i *instr) {
			w.si[i.dst.reg] = w.si[i.src[2].reg]
			if w.si[i.src[0].reg] != 0 {
				w.si[i.dst.reg] = w.si[i.src[1].reg]
			}
		}, c, a, b)
	}
	return g.emit(a.class, false, 0, func(w *worker, i *instr) {
		w.sf[i.dst.reg] = w.sf[i.src[2].reg]
		if w.si[i.src[0].reg] != 0 {
			w.sf[i.dst.reg] = w.sf[i.src[1].reg]
		}
	}, c, a, b)
}

// selectUniform takes one whole tile or the other.
func (g *gen) selectUniform(c, a, b operand) operand {
	switch a.class {
	case classF32:
		return g.emit(a.class, true, 0, takeTile(f32s), c, a, b)
	case classF64:
		return g.emit(a.class, true, 0, takeTile(f64s), c, a, b)
	}
	return g.emit(a.class, true, 0, takeTile(ints), c, a, b)
}

func takeTile[T element](at bank[T]) func(*worker, *instr) {
	return func(w *worker, i *instr) {
		from := i.src[2].reg
		if w.si[i.src[0].reg] != 0 {
			from = i.src[1].reg
		}
		copy(at(w, i.dst.reg), at(w, from))
	}
}
