package ptxsim

import "math/bits"

// atomicFamilies are atomic operations on memory. Lanes perform them in order.
var atomicFamilies = map[string]family{
	"atom": atomFamily,
	"red":  redFamily,
}

// atomicOps are the operations that take one operand.
var atomicOps = []string{"add", "and", "or", "xor", "exch", "min", "max", "inc", "dec"}

// atomFamily: atom{.sem}{.scope}{.space}.op{.vec}.type d, [a], b{, policy}, and
// atom.cas.type d, [a], b, c: compares with b, stores c.
func atomFamily(b *builder, s *statement) exec {
	args := s.plain()
	if s.has("cas") {
		if !s.only("cas") || elementTypes[s.element()] < 2 || !kinds(args, "dabc") {
			return nil
		}
		return b.compareAndSwap(s, args)
	}
	if !kinds(args, "dab") {
		return nil
	}
	return b.atomic(s, args[1], args[2], args[0].vector())
}

// redFamily: red{.sem}{.scope}{.space}.op{.vec}.type [a], b{, policy}; red.async.
func redFamily(b *builder, s *statement) exec {
	if s.has("async") {
		return sendFamily(b, s)
	}
	args := s.plain()
	if s.has("exch") || !kinds(args, "ab") {
		return nil
	}
	return b.atomic(s, args[0], args[1], nil)
}

// atomic compiles an operation whose results go to the operands of to, if any.
func (b *builder) atomic(s *statement, addr, data operand, to []operand) exec {
	f := combineOf(s.which(atomicOps...), s.element())
	if f == nil || !s.only(append([]string{"noftz"}, atomicOps...)...) {
		return nil
	}
	a := b.access(s, addr, data)
	old := make([]int, len(a.regs))
	for i := range old {
		old[i] = -1
	}
	for i, o := range to {
		old[i] = b.into(o)
	}
	// Sums of f32 in global memory flush subnormals to zero, those in shared memory do not
	// (PTX ISA, atom: "Floating-point operations").
	inGlobal := f
	if s.element() == "f32" && s.has("add") {
		inGlobal = flushed(f)
	}
	return func(w *warp, mask uint32) {
		w.cta.cluster.launch.events++
		for m := mask; m != 0; m &= m - 1 {
			lane := bits.TrailingZeros32(m)
			at, f := a.at(w, lane), f
			a.update(w, lane)
			if a.in == global || a.in == generic && a.addr.at(w, lane)&windowMask != sharedWindow {
				f = inGlobal
			}
			for i, r := range a.regs {
				was := read(at[i*a.elem:], a.elem)
				write(at[i*a.elem:], a.elem, f(was, w.regs[r][lane]))
				if old[i] >= 0 {
					w.regs[old[i]][lane] = was
				}
			}
		}
	}
}

func (b *builder) compareAndSwap(s *statement, args []operand) exec {
	a := b.access(s, args[1], args[3])
	to, expected, unused := b.into(args[0]), b.use(args[2]), 64-8*a.elem
	return func(w *warp, mask uint32) {
		w.cta.cluster.launch.events++
		for m := mask; m != 0; m &= m - 1 {
			lane := bits.TrailingZeros32(m)
			at := a.at(w, lane)
			a.update(w, lane)
			was := read(at, a.elem)
			if was == w.regs[expected][lane]<<unused>>unused {
				write(at, a.elem, w.regs[a.regs[0]][lane])
			}
			if to >= 0 {
				w.regs[to][lane] = was
			}
		}
	}
}

// update reports an atomic operation to the race detector.
func (a *access) update(w *warp, lane int) {
	r, addr := w.cta.cluster.races, a.addr.at(w, lane)
	if r == nil || actual(a.in, addr) != shared {
		return
	}
	t, offset := w.place(lane, addr)
	r.update(w, lane, t, offset, a.elem*len(a.regs))
}
