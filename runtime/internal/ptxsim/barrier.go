package ptxsim

import (
	"math/bits"
	"slices"
)

// A barrier is one of a block's sixteen.
type barrier struct {
	arrived  int
	expected int // threads; 0: all of the block that have not ended
	phase    int
	votes    *votes    // of this phase; nil if no lane has voted
	meet     *handover // of this phase, if races are detected
}

// votes are the predicates that threads bring to a barrier.
type votes struct{ yes, all int }

// barrierFamilies are the barriers of a block.
var barrierFamilies = map[string]family{
	"bar":     barFamily,
	"barrier": barFamily,
}

// together is the lanes that must execute an instruction together: those of its member mask, or
// all of the warp if it is aligned; nil if each lane executes it separately.
func together(b *builder, s *statement) func(w *warp, mask uint32) uint32 {
	switch {
	case s.Op == "bar" && slices.Contains(s.Mods, "warp"):
		return members(b.use(s.Args[0]))
	case s.Op == "bar" || s.Op == "barrier" || s.Op == "fence" || s.Op == "cp":
		return nil
	case s.has("sync") && !s.has("aligned"):
		return members(b.use(s.Args[len(s.Args)-1]))
	case s.has("aligned"):
		return func(*warp, uint32) uint32 { return 1<<warpSize - 1 }
	}
	return nil
}

func members(reg int) func(w *warp, mask uint32) uint32 {
	return func(w *warp, mask uint32) uint32 {
		need := uint32(0)
		for m := mask; m != 0; m &= m - 1 {
			need |= uint32(w.regs[reg][bits.TrailingZeros32(m)])
		}
		return need
	}
}

// barFamily: bar.sync a{, b}, bar.arrive a, b, bar.red.op d, a{, b}, {!}c and bar.warp.sync
// mask; also as barrier.cta. Threads arrive one by one.
func barFamily(b *builder, s *statement) exec {
	args := s.Args
	switch {
	case s.has("warp"):
		members := b.use(args[0])
		return func(w *warp, mask uint32) { w.memberOf(members, mask) }
	case s.has("cluster"):
		return clusterBarrierFamily(b, s)
	case s.has("red"):
		return barRedFamily(b, s)
	case !s.has("sync") && !s.has("arrive") || len(args) < 1 || len(args) > 2:
		return nil
	}
	at, waits := b.meeting(args), s.has("sync")
	return func(w *warp, mask uint32) {
		bar, n := at.of(w, bits.TrailingZeros32(mask))
		w.arrive(bar, n, mask)
		pass := w.passing(bar, mask)
		if !waits {
			bar.complete(w.cta)
		} else if !pass() {
			w.wait = pass
		}
	}
}

// A meeting is the operands of a barrier: its number, and its number of threads.
type meeting struct{ id, threads int }

func (b *builder) meeting(args []operand) meeting {
	m := meeting{b.use(args[0]), -1}
	if len(args) > 1 {
		m.threads = b.use(args[1])
	}
	return m
}

// of is the barrier and the number of threads it is for; 0: all of the block.
func (m meeting) of(w *warp, lane int) (*barrier, int) {
	n, at := 0, uint32(w.regs[m.id][lane])
	if m.threads >= 0 {
		n = int(uint32(w.regs[m.threads][lane]))
		if n == 0 || n%warpSize != 0 {
			panic(w.fault(lane, "a barrier of %d threads, which is no multiple of a warp", n))
		}
	}
	if at >= uint32(len(w.cta.bars)) {
		panic(w.fault(lane, "there is no barrier %d", at))
	}
	return &w.cta.bars[at], n
}

// barRedFamily: bar.red.popc.u32 d, a{, b}, {!}c; bar.red.op.pred p, a{, b}, {!}c with op
// and, or.
func barRedFamily(b *builder, s *statement) exec {
	op, n := s.which("popc", "and", "or"), len(s.Args)
	if op == "" || n != 3 && n != 4 {
		return nil
	}
	to, at, of := b.into(s.Args[0]), b.meeting(s.Args[1:n-1]), b.condition(s.Args[n-1])
	result := func(v *votes) uint64 {
		switch op {
		case "and":
			return truth(v.yes == v.all)
		case "or":
			return truth(v.yes > 0)
		}
		return uint64(v.yes)
	}
	return func(w *warp, mask uint32) {
		bar, n := at.of(w, bits.TrailingZeros32(mask))
		w.arrive(bar, n, mask)
		if bar.votes == nil {
			bar.votes = &votes{}
		}
		cast := bar.votes
		cast.all += bits.OnesCount32(mask)
		cast.yes += bits.OnesCount32(of.lanes(w, mask))
		pass := w.passing(bar, mask)
		finish := func() bool {
			if !pass() {
				return false
			}
			w.set(to, mask, result(cast))
			return true
		}
		if !finish() {
			w.wait = finish
		}
	}
}

// arrive counts lanes at a barrier of n threads.
func (w *warp) arrive(b *barrier, n int, mask uint32) {
	w.cta.cluster.launch.events++
	if b.arrived > 0 && b.expected != n {
		panic(w.fault(bits.TrailingZeros32(mask), "a barrier of %d threads, and of %d for those there",
			n, b.expected))
	}
	b.expected = n
	b.arrived += bits.OnesCount32(mask)
	if n > 0 && b.arrived > n {
		panic(w.fault(bits.TrailingZeros32(mask), "%d threads at a barrier of %d", b.arrived, n))
	}
	if r := w.cta.cluster.races; r != nil {
		if b.meet == nil {
			b.meet = &handover{}
		}
		r.give(b.meet, w, mask)
	}
}

// passing returns a test whether the current phase of a barrier, for which lanes wait, is over.
func (w *warp) passing(b *barrier, mask uint32) func() bool {
	t, phase, meet := w.cta, b.phase, b.meet
	return func() bool {
		if b.phase == phase && !b.complete(t) {
			return false
		}
		if meet != nil {
			t.cluster.races.take(meet, w, mask)
		}
		return true
	}
}

// complete opens a barrier that all have reached.
func (b *barrier) complete(t *cta) bool {
	n := b.expected
	if n == 0 {
		n = t.threads - t.exited
	}
	if b.arrived < n {
		return false
	}
	b.arrived, b.votes, b.meet = 0, nil, nil
	b.phase++
	return true
}
