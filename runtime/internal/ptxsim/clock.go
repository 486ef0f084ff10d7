package ptxsim

import (
	"math/bits"
	"slices"
)

// A clock says how much of the work of each agent is known to have happened. Agents are
// the threads of a cluster and, after them, mbarriers, for the copies that they count, and
// warpgroups, for their products.
type clock []uint32

func (c clock) at(agent int) uint32 {
	if agent < len(c) {
		return c[agent]
	}
	return 0
}

// same reports whether clocks are one and the same.
func (c clock) same(o clock) bool { return len(c) == len(o) && (len(c) == 0 || &c[0] == &o[0]) }

// holds reports whether all that o says is known to c.
func (c clock) holds(o clock) bool {
	for agent, step := range o {
		if step > c.at(agent) {
			return false
		}
	}
	return true
}

// with is c and o together: one of them where it holds the other.
func (c clock) with(o clock) clock {
	switch {
	case c.same(o) || c.holds(o):
		return c
	case o.holds(c):
		return o
	}
	out := make(clock, max(len(c), len(o)))
	for agent := range out {
		out[agent] = max(c.at(agent), o.at(agent))
	}
	return out
}

// A view is what a thread knows: of others, which is never changed in place, and its own
// steps.
type view struct {
	known clock
	own   uint32
}

// A moment is the view of an agent at some time.
type moment struct {
	agent int
	view
}

// after reports whether a step of an agent happened before the moment.
func (m *moment) after(agent int, step uint32) bool {
	if agent == m.agent {
		return step <= m.own
	}
	return step <= m.known.at(agent)
}

// A handover is what threads give to those that a barrier lets go on.
type handover struct {
	given clock
	last  clock // joined last
	taken bool  // given may be in use: it must not change
}

// give adds what lanes know; what they do from now on is not part of it.
func (r *races) give(h *handover, w *warp, lanes uint32) {
	for m := lanes; m != 0; m &= m - 1 {
		thread := r.thread(w, bits.TrailingZeros32(m))
		v := &r.views[thread]
		if !h.last.same(v.known) {
			h.given, h.last, h.taken = h.given.with(v.known), v.known, true
		}
		h.set(thread, v.own)
		v.own++
	}
}

// released is what a lane gives with a value that it sends: the completion at the mbarrier
// has release semantics at cluster scope (PTX ISA, st.async), and the value is made of what
// the lane has read.
func (r *races) released(w *warp, lane int) clock {
	var h handover
	r.give(&h, w, 1<<lane)
	return h.given
}

// join adds a clock.
func (h *handover) join(c clock) { h.given, h.taken = h.given.with(c), true }

func (h *handover) set(agent int, step uint32) {
	if h.taken {
		h.given, h.taken = slices.Clone(h.given), false
	}
	for len(h.given) <= agent {
		h.given = append(h.given, 0)
	}
	h.given[agent] = max(h.given[agent], step)
}

// take lets lanes know what was given.
func (r *races) take(h *handover, w *warp, lanes uint32) {
	h.taken = true
	var before, after clock
	for m := lanes; m != 0; m &= m - 1 {
		v := &r.views[r.thread(w, bits.TrailingZeros32(m))]
		if after == nil || !v.known.same(before) {
			before, after = v.known, v.known.with(h.given)
		}
		v.known = after
	}
}

// warpSync is lanes that execute an instruction together.
func (r *races) warpSync(w *warp, lanes uint32) {
	var h handover
	r.give(&h, w, lanes)
	r.take(&h, w, lanes)
}
