package cpu

import (
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/num"
)

// mover is the primitives that move elements of one class.
type mover[T element] struct {
	class   class
	at      bank[T]
	load    func(dst []T, t ir.DType, src []byte)
	gather  func(dst []T, t ir.DType, src []byte, offsets []int64, outside T)
	store   func(dst []byte, t ir.DType, src []T)
	scatter func(dst []byte, t ir.DType, src []T, offsets []int64)
	scalar  func(w *worker, reg int) T
	point   func(w *worker, reg int, src []byte, offset int64) bool // a register at memory
}

var moveF32 = mover[float32]{classF32, f32s, loadF32, gatherF32, storeF32, scatterF32,
	func(w *worker, reg int) float32 { return float32(w.sf[reg]) },
	func(w *worker, reg int, src []byte, offset int64) bool {
		v := viewF32(src, offset, w.n)
		w.f32[reg] = v
		return v != nil
	}}

var moveF64 = mover[float64]{classF64, f64s, loadF64, gatherF64, storeF64, scatterF64,
	func(w *worker, reg int) float64 { return w.sf[reg] },
	func(w *worker, reg int, src []byte, offset int64) bool {
		v := viewF64(src, offset, w.n)
		w.f64[reg] = v
		return v != nil
	}}

var moveInt = mover[int64]{classInt, ints, loadInt, gatherInt, storeInt, scatterInt,
	func(w *worker, reg int) int64 { return w.si[reg] }, nil}

// read compiles a read of a kernel argument.
func (g *gen) read(e *ir.Expr) operand {
	if !g.dep(e).vec {
		return g.readScalar(e, g.value(e.Args[0]))
	}
	if stride, ok := g.stride(e.Args[0]); ok && stride == 0 && e.Guard == nil {
		return g.readScalar(e, g.first(e.Args[0]))
	}
	if stride, ok := g.stride(e.Args[0]); ok && g.panels(e) && (stride != 1 || e.Arg.Type != ir.F32) {
		return g.readPanel(e, stride)
	}
	if e.Fill != nil && g.dep(e.Fill).vec {
		return g.readFilled(e)
	}
	switch classOf(e.Type) {
	case classF32:
		return readTile(g, e, &moveF32)
	case classF64:
		return readTile(g, e, &moveF64)
	}
	return readTile(g, e, &moveInt)
}

// readFilled reads zeros outside and selects the lanes of a fill that varies.
func (g *gen) readFilled(e *ir.Expr) operand {
	plain := g.read(ir.Read(e.Arg, e.Args[0], e.Guard, ir.Num(e.Type, 0)))
	fill := g.vector(e.Fill)
	if l, ok := g.lanes(e.Guard); ok {
		return g.selectLanes(l, plain, fill)
	}
	mask := g.vector(e.Guard)
	switch plain.class {
	case classF32:
		return g.emit(plain.class, true, 0, selectTile(f32s), mask, plain, fill)
	case classF64:
		return g.emit(plain.class, true, 0, selectTile(f64s), mask, plain, fill)
	}
	return g.emit(plain.class, true, 0, selectTile(ints), mask, plain, fill)
}

// guard is where a read takes place: everywhere, on an interval of lanes, or
// where a tile of conditions holds.
type guard struct {
	kind  guardKind
	lanes interval
	mask  operand
	stage stage
}

type guardKind uint8

const (
	always guardKind = iota
	onLanes
	onMask
)

func (g *gen) guard(cond *ir.Expr) guard {
	if cond == nil {
		return guard{}
	}
	if l, ok := g.lanes(cond); ok {
		return guard{kind: onLanes, lanes: l, stage: l.lo.stage}
	}
	m := g.vector(cond)
	g.pin(m)
	return guard{kind: onMask, mask: m, stage: m.stage}
}

// drop moves the offsets of lanes that the guard excludes outside any buffer.
func (u guard) drop(w *worker, offsets []int64) {
	switch u.kind {
	case onLanes:
		lo, hi := u.lanes.clamp(w)
		fill(offsets[:lo], -1)
		fill(offsets[hi:], -1)
	case onMask:
		for k, c := range ints(w, u.mask.reg) {
			if c == 0 {
				offsets[k] = -1
			}
		}
	}
}

func (g *gen) fillOf(e *ir.Expr) operand {
	switch {
	case e.Fill != nil:
		return g.value(e.Fill)
	case e.Type.IsFloat():
		return g.floatConst(classOf(e.Type), 0)
	}
	return g.intConst(0)
}

// readTile compiles a read that differs from lane to lane.
func readTile[T element](g *gen, e *ir.Expr, m *mover[T]) operand {
	arg, t, u, outside := e.Arg.Index, e.Arg.Type, g.guard(e.Guard), g.fillOf(e)
	stride, affine := g.stride(e.Args[0])
	if affine && stride == 1 && u.kind != onMask {
		return readRun(g, e, m, u, outside)
	}
	offsets := g.offsets(e.Args[0], stride, affine)
	scratch := g.newReg(classInt, true, stageStep)
	g.pin(scratch)
	return g.emit(m.class, true, max(u.stage, outside.stage), func(w *worker, i *instr) {
		at := ints(w, i.src[0].reg)
		if u.kind != always {
			copied := ints(w, scratch.reg)
			copy(copied, at)
			u.drop(w, copied)
			at = copied
		}
		m.gather(m.at(w, i.dst.reg), t, w.bufs[arg], at, m.scalar(w, outside.reg))
	}, offsets)
}

// offsets is the tile of offsets of an access.
func (g *gen) offsets(e *ir.Expr, stride int64, affine bool) operand {
	if !affine {
		return g.vector(e)
	}
	return g.emit(classInt, true, 0, func(w *worker, i *instr) {
		iota64(ints(w, i.dst.reg), w.si[i.src[0].reg], stride)
	}, g.first(e))
}

// readRun compiles a read of consecutive elements. If it has no guard and has the type in which
// it is computed, the register is a view of the buffer.
func readRun[T element](g *gen, e *ir.Expr, m *mover[T], u guard, outside operand) operand {
	arg, t := e.Arg.Index, e.Arg.Type
	first := g.first(e.Args[0])
	if u.kind == always && m.point != nil && (t == ir.F32 || t == ir.F64) {
		return g.emitView(m.class, max(stageJob, first.stage), func(w *worker, i *instr) {
			if !m.point(w, i.dst.reg, w.bufs[arg], w.si[i.src[0].reg]) {
				w.replace(i.dst)
				runOf(m, m.at(w, i.dst.reg), w.bufs[arg], t, w.si[i.src[0].reg], 0)
			}
		}, first)
	}
	return g.emit(m.class, true, max(u.stage, outside.stage), func(w *worker, i *instr) {
		dst, offset, blank := m.at(w, i.dst.reg), w.si[i.src[0].reg], m.scalar(w, outside.reg)
		lo, hi := 0, w.n
		if u.kind == onLanes {
			lo, hi = u.lanes.clamp(w)
			fill(dst[:lo], blank)
			fill(dst[hi:], blank)
		}
		runOf(m, dst[lo:hi], w.bufs[arg], t, offset+int64(lo), blank)
	}, first)
}

// runOf reads consecutive elements, those outside the buffer as blank.
func runOf[T element](m *mover[T], dst []T, src []byte, t ir.DType, offset int64, blank T) {
	size := t.Size()
	if p := slice(src, offset, len(dst), size); p != nil {
		m.load(dst, t, p)
		return
	}
	for k := range dst {
		dst[k] = blank
		if p := slice(src, offset+int64(k), 1, size); p != nil {
			m.load(dst[k:k+1], t, p)
		}
	}
}

// emitView adds an instruction that sets its register instead of filling it.
func (g *gen) emitView(c class, at stage, run func(*worker, *instr), src operand) operand {
	o := g.emit(c, true, at, run, src)
	list := *g.out[o.stage]
	list[len(list)-1].view = true
	return o
}

// replace gives memory of its own to a register that cannot be a view of a buffer.
func (w *worker) replace(o operand) {
	if o.class == classF32 {
		w.f32[o.reg] = make([]float32, w.n)
	} else {
		w.f64[o.reg] = make([]float64, w.n)
	}
}

// readScalar compiles a read that is the same for all lanes.
func (g *gen) readScalar(e *ir.Expr, offset operand) operand {
	arg, t, size := e.Arg.Index, e.Arg.Type, e.Arg.Type.Size()
	inside, outside := g.intConst(1), g.fillOf(e)
	if e.Guard != nil {
		inside = g.value(e.Guard)
	}
	find := func(w *worker, i *instr) []byte {
		if w.si[i.src[1].reg] == 0 {
			return nil
		}
		return slice(w.bufs[arg], w.si[i.src[0].reg], 1, size)
	}
	if classOf(t) == classInt {
		return g.emit(classInt, false, stageJob, func(w *worker, i *instr) {
			w.si[i.dst.reg] = w.si[i.src[2].reg]
			if p := find(w, i); p != nil {
				w.si[i.dst.reg] = num.LoadInt(t, p)
			}
		}, offset, inside, outside)
	}
	return g.emit(classOf(t), false, stageJob, func(w *worker, i *instr) {
		w.sf[i.dst.reg] = w.sf[i.src[2].reg]
		if p := find(w, i); p != nil {
			w.sf[i.dst.reg] = num.Load(t, p)
		}
	}, offset, inside, outside)
}

// store compiles a store; it runs with the section's steps.
func (g *gen) store(s *ir.Store) {
	o := g.cast(s.Value.Type, s.Arg.Type, g.value(s.Value))
	if !g.passes && !g.vecRow {
		g.storeScalar(s, o)
		return
	}
	switch o = g.splat(o); o.class {
	case classF32:
		storeTile(g, s, o, &moveF32)
	case classF64:
		storeTile(g, s, o, &moveF64)
	default:
		storeTile(g, s, o, &moveInt)
	}
}

func storeTile[T element](g *gen, s *ir.Store, o operand, m *mover[T]) {
	arg, t, size, u := s.Arg.Index, s.Arg.Type, s.Arg.Type.Size(), g.guard(s.Guard)
	stride, affine := g.stride(s.Offset)
	if affine && stride == 1 && u.kind != onMask {
		g.effect(func(w *worker, i *instr) {
			lo, hi := 0, w.n
			if u.kind == onLanes {
				lo, hi = u.lanes.clamp(w)
			}
			if p := slice(w.bufs[arg], w.si[i.src[1].reg]+int64(lo), hi-lo, size); p != nil {
				m.store(p, t, m.at(w, i.src[0].reg)[lo:hi])
			}
		}, o, g.first(s.Offset))
		return
	}
	offsets := g.offsets(s.Offset, stride, affine)
	scratch := g.newReg(classInt, true, stageStep)
	g.pin(scratch)
	g.effect(func(w *worker, i *instr) {
		at := ints(w, scratch.reg)
		copy(at, ints(w, i.src[1].reg))
		u.drop(w, at)
		m.scatter(w.bufs[arg], t, m.at(w, i.src[0].reg), at)
	}, o, offsets)
}

func (g *gen) storeScalar(s *ir.Store, o operand) {
	arg, t, size, inside := s.Arg.Index, s.Arg.Type, s.Arg.Type.Size(), g.intConst(1)
	if s.Guard != nil {
		inside = g.value(s.Guard)
	}
	g.effect(func(w *worker, i *instr) {
		p := slice(w.bufs[arg], w.si[i.src[1].reg], 1, size)
		switch {
		case p == nil || w.si[i.src[2].reg] == 0:
		case o.class == classInt:
			num.StoreInt(t, p, w.si[i.src[0].reg])
		default:
			num.Store(t, p, w.sf[i.src[0].reg])
		}
	}, o, g.value(s.Offset), inside)
}

// effect adds an instruction without a result to the section's steps.
func (g *gen) effect(run func(*worker, *instr), src ...operand) {
	in := instr{run: run, dst: operand{reg: -1}}
	for i := range in.src {
		in.src[i].reg = -1
	}
	copy(in.src[:], src)
	*g.out[stageStep] = append(*g.out[stageStep], in)
}
