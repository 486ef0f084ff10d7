package ptxsim

import (
	"fmt"
)

// races finds conflicting accesses to shared memory that nothing orders, with vector clocks of
// all threads (after Flanagan and Freund, "FastTrack: Efficient and Precise Dynamic Race
// Detection", 2009). Order comes from barriers of every kind, from instructions that the lanes
// of a warp execute together, from atomics on the same word, and from waiting for copies. Two
// writes of the same value are no conflict.
type races struct {
	threads int      // of a block
	views   []view   // by thread of the cluster
	cells   [][]cell // by block, by word of shared memory
	agents  int      // in use
	counts  map[spot]*copyCount
	words   map[spot]*handover // the handovers of atomics, by word
	groups  map[[2]int]int     // agents of warpgroups, by block and number: their products
}

// A spot is in shared memory of a block.
type spot struct {
	cta    *cta
	offset uint64
}

// A copyCount is the state of an mbarrier: the knowledge that arrivals of this phase and of
// earlier ones have passed on, and the copies that it counts, one step each.
type copyCount struct {
	now, over *handover
	agent     int
	steps     uint32
}

// A cell is the accesses to 4 bytes: the writes of the value there, and reads since.
type cell struct{ writes, reads []mark }

// A mark is one access.
type mark struct {
	agent  int
	step   uint32
	line   int
	bytes  uint8 // of the word, a bit each
	strong bool  // atomic, or with an ordering: not in conflict with others of the kind
}

func newRaces(c *cluster) *races {
	r := &races{threads: c.ctas[0].threads, counts: map[spot]*copyCount{}, words: map[spot]*handover{},
		groups: map[[2]int]int{}}
	r.agents = len(c.ctas) * r.threads
	r.views = make([]view, r.agents)
	for i := range r.views {
		r.views[i].own = 1
	}
	for _, t := range c.ctas {
		r.cells = append(r.cells, make([]cell, len(t.shared)/4+1))
	}
	return r
}

func (r *races) thread(w *warp, lane int) int { return w.cta.rank*r.threads + w.index*warpSize + lane }

// An actor is the agent of an access. The access is recorded with the mark. All conflicting
// accesses must have happened before a moment, which for copies is when they were issued.
type actor struct {
	w    *warp
	lane int
	from moment
	mark
}

// actor is a lane at the current time.
func (r *races) actor(w *warp, lane int, strong bool) actor {
	thread := r.thread(w, lane)
	v := r.views[thread]
	return actor{w, lane, moment{thread, v}, mark{agent: thread, step: v.own, line: w.at.line, strong: strong}}
}

// landed is the actor of a copy that was issued earlier and takes place now.
func (r *races) landed(issued actor) actor {
	issued.step = r.views[issued.agent].own
	return issued
}

// counted is the actor of a copy that an mbarrier counts: threads that wait for the mbarrier
// are ordered after it.
func (r *races) counted(issued actor, bar spot) actor {
	c := r.count(bar)
	c.steps++
	issued.agent, issued.step = c.agent, c.steps
	return issued
}

func (r *races) count(bar spot) *copyCount {
	c := r.counts[bar]
	if c == nil {
		c = &copyCount{now: &handover{}, over: &handover{}, agent: r.agents}
		r.agents++
		r.counts[bar] = c
	}
	return c
}

// turn ends a phase of an mbarrier.
func (c *copyCount) turn() {
	c.now.given = c.now.given.with(c.over.given)
	c.over, c.now = c.now, &handover{}
}

// read notes that n bytes are read.
func (r *races) read(a actor, t *cta, offset uint64, n int) {
	r.words4(t, offset, n, func(c *cell, _ int, bytes uint8) { c.read(a, t, bytes) })
}

// write notes that bytes are written, before they are.
func (r *races) write(a actor, t *cta, offset uint64, data []byte) {
	r.words4(t, offset, len(data), func(c *cell, first int, bytes uint8) {
		changed := uint8(0)
		for i := range 4 {
			if at := first + i; bytes>>i&1 != 0 && data[at] != t.shared[int(offset)+at] {
				changed |= 1 << i
			}
		}
		c.write(a, t, bytes, changed)
	})
}

// update notes an atomic operation, which orders the lane after earlier atomics on the word.
func (r *races) update(w *warp, lane int, t *cta, offset uint64, n int) {
	a := r.actor(w, lane, true)
	r.words4(t, offset, n, func(c *cell, _ int, bytes uint8) { c.write(a, t, bytes, bytes) })
	at := spot{t, offset / 4}
	if r.words[at] == nil {
		r.words[at] = &handover{}
	}
	r.take(r.words[at], w, 1<<lane)
	r.give(r.words[at], w, 1<<lane)
}

// words4 calls f for each word of n bytes: with the index of its first byte among them,
// which may be less than 0, and the bytes of the word that belong to them.
func (r *races) words4(t *cta, offset uint64, n int, f func(c *cell, first int, bytes uint8)) {
	for word := int(offset) / 4; word*4 < int(offset)+n; word++ {
		first, bytes := word*4-int(offset), uint8(0xF)
		if first < 0 {
			bytes &= 0xF << -first
		}
		if over := first + 4 - n; over > 0 {
			bytes &= 0xF >> over
		}
		f(&r.cells[t.rank][word], first, bytes)
	}
}

// read checks that the actor comes after one of the writes of the value there.
func (c *cell) read(a actor, t *cta, bytes uint8) {
	known := uint8(0)
	for _, m := range c.writes {
		if a.from.after(m.agent, m.step) || a.strong && m.strong {
			known |= m.bytes
		}
	}
	for _, m := range c.writes {
		if m.bytes&bytes&^known != 0 {
			panic(a.race("reads", "writes", t, m))
		}
	}
	a.bytes = bytes
	c.reads = append(a.forget(c.reads, bytes), a.mark)
}

// write checks that the actor comes after all accesses to the bytes that it changes.
func (c *cell) write(a actor, t *cta, bytes, changed uint8) {
	for what, marks := range [...][]mark{c.writes, c.reads} {
		for _, m := range marks {
			if m.bytes&changed != 0 && !a.from.after(m.agent, m.step) && !(a.strong && m.strong) {
				panic(a.race("writes", [...]string{"writes", "reads"}[what], t, m))
			}
		}
	}
	c.writes, c.reads = without(c.writes, changed), without(c.reads, changed)
	a.bytes = bytes
	c.writes = append(a.forget(c.writes, bytes), a.mark)
}

// forget drops earlier accesses to the same bytes that are ordered before the actor's, because
// accesses after it are also after them.
func (a *actor) forget(marks []mark, bytes uint8) []mark {
	kept := marks[:0]
	for _, m := range marks {
		if m.bytes&^bytes != 0 || m.strong != a.strong || !a.from.after(m.agent, m.step) {
			kept = append(kept, m)
		}
	}
	return kept
}

// without is the marks of other bytes.
func without(marks []mark, bytes uint8) []mark {
	kept := marks[:0]
	for _, m := range marks {
		if m.bytes &^= bytes; m.bytes != 0 {
			kept = append(kept, m)
		}
	}
	return kept
}

// race describes a conflict.
func (a *actor) race(does, did string, t *cta, m mark) *fault {
	who := "an asynchronous operation"
	if r := a.w.cta.cluster.races; m.agent < len(r.views) {
		who = fmt.Sprintf("thread %d of block %v", m.agent%r.threads, a.w.cta.cluster.ctas[m.agent/r.threads].id)
	}
	return a.w.fault(a.lane, "a race: it %s shared memory of block %v that %s at ptx line %d %s, "+
		"and nothing orders the two", does, t.id, who, m.line, did)
}
