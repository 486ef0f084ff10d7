package ptxsim

import (
	"math/bits"
	"slices"
)

// note is the accesses of a load or a store.
func (r *races) note(w *warp, mask uint32, a *access, stores bool) {
	n := a.elem * len(a.regs)
	for m := mask; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m)
		addr := a.addr.at(w, lane)
		if actual(a.in, addr) != shared {
			continue
		}
		at := w.bytes(lane, a.in, addr, n, n) // an access outside memory is another error
		t, offset := w.place(lane, addr)
		if !stores {
			r.read(r.actor(w, lane, a.strong), t, offset, n)
			continue
		}
		data := make([]byte, n)
		for i, reg := range a.regs {
			write(data[i*a.elem:], a.elem, w.regs[reg][lane])
		}
		r.write(r.actor(w, lane, a.strong), t, offset, data)
		copy(at, data) // for the lanes that follow
	}
}

// smallCopy is the note of a copy by cp.async that is issued now.
func (r *races) smallCopy(w *warp, lane int, addr uint64) func(to, from []byte) {
	issued := r.actor(w, lane, false)
	t, offset := w.place(lane, addr)
	return func(to, from []byte) {
		data := make([]byte, len(to))
		copy(data, from)
		r.write(r.landed(issued), t, offset, data)
	}
}

// bulkRead is a read of shared memory by an operation that is issued now, and noted.
func (r *races) bulkRead(w *warp, lane int, from uint64, n int, read func()) func() {
	issued := r.actor(w, lane, false)
	t, offset := w.place(lane, from)
	return func() {
		r.read(r.landed(issued), t, offset, n)
		read()
	}
}

// noteCopy returns, for an operation issued now, the function that notes its read or write of
// data at an address, counted at an mbarrier; nil if races are not detected.
func (w *warp) noteCopy(lane int) func(bar, at uint64, data []byte, writes bool) {
	r := w.cta.cluster.races
	if r == nil {
		return nil
	}
	issued := r.actor(w, lane, false)
	return func(bar, at uint64, data []byte, writes bool) {
		counts, counter := w.place(lane, bar)
		t, offset := w.place(lane, at)
		a := r.counted(issued, spot{counts, counter})
		if writes {
			r.write(a, t, offset, data)
		} else {
			r.read(a, t, offset, len(data))
		}
	}
}

// outcome is the contents of bytes after an operation.
func outcome(to, data []byte, apply func(to, from []byte)) []byte {
	out := slices.Clone(to)
	apply(out, data)
	return out
}

// group is the agent of a warp's warpgroup: its steps are the groups of products by wgmma.
func (r *races) group(w *warp) int {
	key := [2]int{w.cta.rank, w.index / 4}
	agent, ok := r.groups[key]
	if !ok {
		agent = r.agents
		r.agents++
		r.groups[key] = agent
	}
	return agent
}

// product is the actor of a product that is issued now: threads that wait for its group are
// ordered after it.
func (r *races) product(w *warp) actor {
	a := r.actor(w, 0, false)
	a.agent, a.step = r.group(w), uint32(w.flight.committed+1)
	return a
}

// products tells lanes that the groups of products up to the given one are done.
func (r *races) products(w *warp, lanes uint32, done int) {
	var h handover
	h.set(r.group(w), uint32(done))
	r.take(&h, w, lanes)
}

// readRows is what ldmatrix reads, each row by the lane that has its address.
func (r *races) readRows(w *warp, x *matrixMove) {
	for lane := range 8 * len(x.regs) {
		t, offset := w.place(lane, w.regs[x.base][lane]+x.offset)
		r.read(r.actor(w, lane, false), t, offset, 16)
	}
}

// writeRows is what stmatrix writes: to be called before it does, and what it returns after.
func (r *races) writeRows(w *warp, x *matrixMove, rows [warpSize][]byte) func() {
	var before [warpSize][]byte
	for lane := range 8 * len(x.regs) {
		before[lane] = slices.Clone(rows[lane])
	}
	return func() {
		for lane := range 8 * len(x.regs) {
			after := slices.Clone(rows[lane])
			copy(rows[lane], before[lane])
			t, offset := w.place(lane, w.regs[x.base][lane]+x.offset)
			r.write(r.actor(w, lane, false), t, offset, after)
			copy(rows[lane], after)
		}
	}
}
