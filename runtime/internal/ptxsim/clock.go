package ptxsim

import (
	"math/bits"
	"slices"
)

// A clock says how many steps of each agent are known to have happened. Agents are the threads
// of a cluster and, after them, mbarriers, whose steps are the copies that they count, and
// warpgroups, whose steps are their products.
type clock []uint32

func (c clock) at(agent int) uint32 {
	if agent < len(c) {
		return c[agent]
	}
	return 0
}

// same reports whether clocks are one and the same.
func (c clock) same(o clock) bool { return len(c) == len(o) && (len(c) == 0 || &c[0] == &o[0]) }

// holds reports whether c knows everything that o knows.
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

// A view is what a thread knows of other agents, a clock that is never changed in place, and
// its own steps.
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

// A handover is the knowledge that threads pass to those that continue after a barrier.
type handover struct {
	given clock
	last  clock // the clock that was joined last
	taken bool  // given may be in use: it must not change
}

// give adds what lanes know now; their later steps are not part of it.
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

// released is the clock that a lane passes on with a value that it sends. The completion at the
// mbarrier has release semantics at cluster scope (PTX ISA, st.async), and the value depends on
// what the lane has read.
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

// take adds the given knowledge to lanes.
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

// warpSync orders lanes that execute an instruction together.
func (r *races) warpSync(w *warp, lanes uint32) {
	var h handover
	r.give(&h, w, lanes)
	r.take(&h, w, lanes)
}
