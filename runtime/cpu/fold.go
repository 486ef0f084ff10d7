package cpu

import (
	"math"

	"github.com/fusec/fusec/ir"
)

// fold is a reduction of a kernel. Where lanes run along a column range it has
// one running value, in scalar registers and, for floats, in float64; where they
// run along a row range, one for each lane.
type fold struct {
	op       ir.Monoid
	index    int // among the folds of the variant
	class    class
	acc      operand // running value; of argmax and argmin, the best element
	best     operand // index of the best element, -1 before the first
	seen     operand // of a streamed fold: whether there was any term
	identF   float64
	identI   int64
	total    operand // of a sum of f32 in lanes: what was added before the current run of steps
	after    *fold
	old      operand // value of after that acc is scaled to
	factor   operand
	rescale  []instr // computes factor from old and after.acc
	finished operand // what other expressions read
	narrow   bool    // a scalar of f32 that is kept in 64 bits is rounded at the end, and not only where it leaves the range
}

// newFold declares a fold; its registers are its own.
func (g *gen) newFold(src *ir.Fold, index int) *fold {
	f := &fold{op: src.Op, index: index, class: classOf(src.Body.Type), narrow: g.strict}
	id := src.Op.Identity(src.Body.Type)
	f.identF, f.identI = id.Val, id.Int
	f.acc = g.newReg(f.class, g.vecRow, stageStep)
	f.finished = f.acc
	if src.Op.IsArg() {
		f.best = g.newReg(classInt, g.vecRow, stageStep)
		f.finished = g.newReg(classInt, g.vecRow, stageStep)
	}
	if g.vecRow && f.class == classF32 && src.Op == ir.Sum && src.Prefix == ir.WholeRow && src.After == nil && src.Running == nil {
		f.total = g.newReg(classF32, true, stageStep)
	}
	if src.Running != nil {
		g.moving[src.Running] = f.acc
	}
	if src.After != nil {
		f.after = g.folds[src.After.Result]
		f.old = g.newReg(f.after.class, g.vecRow, stageStep)
		f.seen = g.newReg(classInt, g.vecRow, stageStep)
		g.moving[src.Old] = f.old
	}
	g.pin(f.acc, f.best, f.finished, f.old, f.seen, f.total)
	return f
}

// compileRescale makes the factor a program of its own, that a merge can run too.
func (g *gen) compileRescale(f *fold, rescale *ir.Expr) {
	job, here, out := g.job, g.here, g.out
	g.job, g.here = map[node]operand{}, map[node]operand{}
	g.out = [...]*[]instr{nil, &f.rescale, &f.rescale, &f.rescale}
	f.factor = g.value(rescale)
	if g.vecRow {
		f.factor = g.splat(f.factor)
	}
	for _, in := range f.rescale {
		g.pin(in.dst)
	}
	g.job, g.here, g.out = job, here, out
}

// reset starts a pass.
func (f *fold) reset(w *worker) {
	f.set(w, f.acc, f.identF, f.identI)
	if f.total.vec {
		f.set(w, f.total, 0, 0)
	}
	if f.op.IsArg() {
		f.set(w, f.best, 0, -1)
		f.set(w, f.finished, 0, 0)
	}
	if f.after != nil {
		f.set(w, f.old, f.after.identF, f.after.identI)
		f.set(w, f.seen, 0, 0)
	}
}

// runSteps is how many terms a lane adds before their sum goes to its total. Sums of sums lose
// less precision than one long sum.
const runSteps = 256

// settle ends a run of steps, and with last the pass.
func (f *fold) settle(w *worker, last bool) {
	if !f.total.vec {
		return
	}
	total, acc := f32s(w, f.total.reg), f32s(w, f.acc.reg)
	opsF32.vv[ir.OpAdd](total, total, acc)
	if last {
		copy(acc, total)
	} else {
		fill(acc, 0)
	}
}

// finish ends a pass. What an f32 does not hold is infinite, although scalars are kept in 64 bits. Where the
// maximum of some terms is still -inf, the sum streamed beside it is NaN, as it is in two passes.
func (f *fold) finish(w *worker) {
	if f.class == classF32 && !f.acc.vec {
		if r := float64(float32(w.sf[f.acc.reg])); f.narrow || math.IsInf(r, 0) {
			w.sf[f.acc.reg] = r
		}
	}
	switch {
	case f.after == nil:
	case !f.acc.vec:
		if w.si[f.seen.reg] != 0 && w.sf[f.after.acc.reg] == f.after.identF {
			w.sf[f.acc.reg] = math.NaN()
		}
	default:
		for k, seen := range ints(w, f.seen.reg) {
			if seen != 0 && f.after.lane(w, f.after.acc, k) == f.after.identF {
				f.setLane(w, f.acc, k, math.NaN())
			}
		}
	}
}

func (f *fold) set(w *worker, o operand, v float64, i int64) {
	switch {
	case !o.vec && o.class == classInt:
		w.si[o.reg] = i
	case !o.vec:
		w.sf[o.reg] = v
	case o.class == classF32:
		fill(f32s(w, o.reg), float32(v))
	case o.class == classF64:
		fill(f64s(w, o.reg), v)
	default:
		fill(ints(w, o.reg), i)
	}
}

// fold compiles one step of a reduction.
func (g *gen) fold(f *fold, src *ir.Fold) {
	if f.after != nil {
		g.compileRescale(f, src.Rescale)
		g.effect(f.scale)
	}
	uniform := src.Where != nil && !g.dep(src.Where).vec
	in := intake{f: f, u: guard{}, when: g.intConst(1)}
	switch {
	case uniform:
		in.when = g.value(src.Where)
	case src.Where != nil:
		in.u = g.guard(src.Where)
		g.pin(in.u.mask)
	}
	switch {
	case g.foldProduct(in, src):
	case f.class == classF32:
		takeIn(g, in, src, f32s, &opsF32)
	case f.class == classF64:
		takeIn(g, in, src, f64s, &opsF64)
	default:
		takeIn(g, in, src, ints, &opsI64)
	}
}

// intake is the inputs of a fold's step besides its body.
type intake struct {
	f    *fold
	u    guard   // lanes that take part
	when operand // whether any do
}

// notice records which lanes have had a term.
func (in intake) notice(w *worker, lo, hi int) {
	seen := in.f.seen
	if !seen.vec {
		w.si[seen.reg] |= truth(lo < hi && (in.u.kind != onMask || largest(ints(w, in.u.mask.reg), 0) != 0))
		return
	}
	if tile := ints(w, seen.reg); in.u.kind == onMask {
		orVV(tile, tile, ints(w, in.u.mask.reg))
	} else {
		fill(tile[lo:hi], 1)
	}
}

// takeIn compiles the fold of a body's tile.
func takeIn[T element](g *gen, in intake, src *ir.Fold, at bank[T], table *opTable[T]) {
	body := []operand{g.vector(src.Body)}
	f := in.f
	if f.op.IsArg() {
		body = append(body, g.vector(src.Index))
	}
	scratch := g.newReg(f.class, true, stageStep)
	g.pin(scratch)
	ident := identity[T](f)
	combine, whole := tileFold(table, f.op)
	g.effect(func(w *worker, i *instr) {
		if w.si[in.when.reg] == 0 {
			return
		}
		tile := at(w, i.src[0].reg)
		lo, hi := 0, w.n
		switch in.u.kind {
		case onLanes:
			lo, hi = in.u.lanes.clamp(w)
		case onMask:
			tile = masked(at(w, scratch.reg), tile, ints(w, in.u.mask.reg), ident)
		}
		if f.after != nil {
			in.notice(w, lo, hi)
		}
		if f.acc.vec && f.after != nil {
			tile = beforeFirst(f.after, w, at(w, scratch.reg), tile)
		}
		switch {
		case f.after != nil && !f.acc.vec && w.sf[f.after.acc.reg] == f.after.identF:
		case f.op.IsArg():
			takeBest(f, w, in, at, table, tile, ints(w, i.src[1].reg), lo, hi)
		case f.acc.vec:
			acc := at(w, f.acc.reg)[lo:hi]
			combine(acc, acc, tile[lo:hi])
		case f.class == classInt:
			w.si[f.acc.reg] = f.op.Info().Combine.Info().Int(w.si[f.acc.reg], int64(whole(tile[lo:hi], ident)), 0)
		default:
			w.sf[f.acc.reg] = f.op.Info().Combine.Info().Float(w.sf[f.acc.reg], float64(whole(tile[lo:hi], ident)), 0)
		}
	}, body...)
}

func identity[T element](f *fold) T {
	if f.class == classInt {
		return T(f.identI)
	}
	return T(f.identF)
}

// tileFold returns the lane-wise and the whole-tile form of a reduction.
func tileFold[T element](t *opTable[T], op ir.Monoid) (func(dst, a, b []T), func(a []T, identity T) T) {
	switch op {
	case ir.Sum:
		return t.vv[ir.OpAdd], func(a []T, _ T) T { return t.sum(a) }
	case ir.Prod:
		return t.vv[ir.OpMul], func(a []T, _ T) T { return product(a) }
	case ir.Max, ir.Any:
		return t.vv[ir.OpMax], t.largest
	case ir.Min, ir.All:
		return t.vv[ir.OpMin], t.smallest
	}
	return nil, nil
}

// masked is the tile with the identity in lanes that do not take part.
func masked[T element](dst, tile []T, mask []int64, ident T) []T {
	for k, c := range mask {
		dst[k] = ident
		if c != 0 {
			dst[k] = tile[k]
		}
	}
	return dst
}

// beforeFirst is the tile with zeros in lanes where the fold that this one is
// streamed beside is still at its identity.
func beforeFirst[T element](after *fold, w *worker, dst, tile []T) []T {
	for k := range dst {
		dst[k] = tile[k]
		if after.lane(w, after.acc, k) == after.identF {
			dst[k] = 0
		}
	}
	return dst
}

// lane reads one lane of a float tile.
func (f *fold) lane(w *worker, o operand, k int) float64 {
	if o.class == classF32 {
		return float64(w.f32[o.reg][k])
	}
	return w.f64[o.reg][k]
}

func (f *fold) setLane(w *worker, o operand, k int, v float64) {
	if o.class == classF32 {
		w.f32[o.reg][k] = float32(v)
	} else {
		w.f64[o.reg][k] = v
	}
}

// scale brings the running value to the new value of the fold beside it.
func (f *fold) scale(w *worker, _ *instr) {
	if !f.acc.vec {
		if now := w.sf[f.after.acc.reg]; !sameFloat(w.sf[f.old.reg], now) {
			w.exec(f.rescale)
			w.sf[f.acc.reg] *= w.sf[f.factor.reg]
			w.sf[f.old.reg] = now
		}
		return
	}
	changed := false
	for k := range w.n {
		changed = changed || f.lane(w, f.old, k) != f.after.lane(w, f.after.acc, k)
	}
	if !changed {
		return
	}
	w.exec(f.rescale)
	for k := range w.n {
		if now := f.after.lane(w, f.after.acc, k); !sameFloat(f.lane(w, f.old, k), now) {
			f.setLane(w, f.acc, k, f.lane(w, f.acc, k)*f.lane(w, f.factor, k))
			f.setLane(w, f.old, k, now)
		}
	}
}

func product[T element](a []T) T {
	p := T(1)
	for _, v := range a {
		p *= v
	}
	return p
}

// behind looks through casts that change nothing here, which are all among floats of one class but those to types narrower
// than f32, and through locals that are not held anywhere.
func (g *gen) behind(e *ir.Expr) *ir.Expr {
	for {
		switch {
		case e.Op == ir.OpCast && classOf(e.Args[0].Type) == classOf(e.Type) && (e.Type.Size() >= 4 || e.Type == e.Args[0].Type):
			e = e.Args[0]
		case e.Op == ir.OpLocal && e.Local.Def != nil && !g.isKept(e.Local):
			e = e.Local.Def
		default:
			return e
		}
	}
}

func (g *gen) isKept(l *ir.Local) bool {
	_, ok := g.keep[l]
	return ok
}

// foldProduct compiles sums of products of floats without a tile for the product.
func (g *gen) foldProduct(in intake, src *ir.Fold) bool {
	body := g.behind(src.Body)
	if g.strict || src.Op != ir.Sum || body.Op != ir.OpMul || in.u.kind != always || in.f.after != nil {
		return false
	}
	switch in.f.class {
	case classF32:
		return productTile(g, in, body, f32s, &opsF32)
	case classF64:
		return productTile(g, in, body, f64s, &opsF64)
	}
	return false
}

func productTile[T float](g *gen, in intake, body *ir.Expr, at bank[T], t *opTable[T]) bool {
	a, b, f := g.value(body.Args[0]), g.value(body.Args[1]), in.f
	if !a.vec {
		a, b = b, a
	}
	if !a.vec {
		a = g.splat(a)
	}
	switch {
	case f.acc.vec && !b.vec:
		g.effect(func(w *worker, i *instr) {
			if w.si[in.when.reg] != 0 {
				t.axpy(at(w, f.acc.reg), at(w, i.src[0].reg), T(w.sf[i.src[1].reg]))
			}
		}, a, b)
	case f.acc.vec:
		g.effect(func(w *worker, i *instr) {
			if w.si[in.when.reg] != 0 {
				t.mulAdd(at(w, f.acc.reg), at(w, i.src[0].reg), at(w, i.src[1].reg))
			}
		}, a, b)
	default:
		g.effect(func(w *worker, i *instr) {
			if w.si[in.when.reg] != 0 {
				w.sf[f.acc.reg] += float64(t.dot(at(w, i.src[0].reg), at(w, i.src[1].reg)))
			}
		}, a, g.splat(b))
	}
	return true
}
