package ptxsim

import "math/bits"

// clusterFamilies are addresses of shared memory in the blocks of a cluster.
var clusterFamilies = map[string]family{
	"mapa":       mapFamily,
	"getctarank": rankFamily,
}

// A clusterBarrier is the one barrier of a cluster. Threads that have ended count as
// arrived.
type clusterBarrier struct {
	arrived, phase int
	meet           *handover // of this phase, where races are looked for
}

// complete opens the barrier when all threads of the cluster have arrived.
func (b *clusterBarrier) complete(c *cluster) bool {
	n := 0
	for _, t := range c.ctas {
		n += t.threads - t.exited
	}
	if b.arrived < n {
		return false
	}
	b.arrived, b.meet = 0, nil
	b.phase++
	return true
}

// A clusterPlace is the state of a warp's lanes at the cluster's barrier.
type clusterPlace struct {
	arrived uint32        // those that have arrived and have not waited yet
	phase   [warpSize]int // in which they arrived
	meet    *handover     // of the last phase that lanes have arrived in
}

// clusterBarrierFamily: barrier.cluster.arrive{.sem}{.aligned} and
// barrier.cluster.wait{.acquire}{.aligned}. An arrival that is relaxed orders no memory.
func clusterBarrierFamily(_ *builder, s *statement) exec {
	switch {
	case len(s.Args) > 0 || s.Op != "barrier":
		return nil
	case s.has("arrive"):
		gives := !s.has("relaxed")
		return func(w *warp, mask uint32) { arriveInCluster(w, mask, gives) }
	case s.has("wait"):
		return waitForCluster
	}
	return nil
}

func arriveInCluster(w *warp, mask uint32, gives bool) {
	if twice := mask & w.inCluster.arrived; twice != 0 {
		panic(w.fault(bits.TrailingZeros32(twice),
			"it has arrived at the cluster's barrier before, and has not waited"))
	}
	c := w.cta.cluster
	for m := mask; m != 0; m &= m - 1 {
		w.inCluster.phase[bits.TrailingZeros32(m)] = c.barrier.phase
	}
	w.inCluster.arrived |= mask
	c.barrier.arrived += bits.OnesCount32(mask)
	c.launch.events++
	if c.races == nil {
		return
	}
	if c.barrier.meet == nil {
		c.barrier.meet = &handover{}
	}
	if w.inCluster.meet = c.barrier.meet; gives {
		c.races.give(c.barrier.meet, w, mask)
	}
}

func waitForCluster(w *warp, mask uint32) {
	if not := mask &^ w.inCluster.arrived; not != 0 {
		panic(w.fault(bits.TrailingZeros32(not), "it waits at the cluster's barrier, and has not arrived"))
	}
	phase := 0
	for m := mask; m != 0; m &= m - 1 {
		phase = max(phase, w.inCluster.phase[bits.TrailingZeros32(m)])
	}
	w.inCluster.arrived &^= mask
	c := w.cta.cluster
	meet := w.inCluster.meet
	over := func() bool {
		if c.barrier.phase <= phase && !c.barrier.complete(c) {
			return false
		}
		if meet != nil {
			c.races.take(meet, w, mask)
		}
		return true
	}
	if !over() {
		w.wait = over
	}
}

// leave ends lanes. Those that have arrived at the cluster's barrier of this phase count
// as ended from now on. Copies that they have not waited for land now at the latest.
func (w *warp) leave(lanes uint32) {
	c := w.cta.cluster
	for m := lanes; m != 0; m &= m - 1 {
		q := &w.copies[bits.TrailingZeros32(m)]
		q.land(q.issued())
	}
	for m := lanes & w.inCluster.arrived; m != 0; m &= m - 1 {
		if w.inCluster.phase[bits.TrailingZeros32(m)] == c.barrier.phase {
			c.barrier.arrived--
		}
	}
	w.inCluster.arrived &^= lanes
	w.live &^= lanes
	w.cta.exited += bits.OnesCount32(lanes)
	c.launch.events++
}

// inBlock is an address of shared memory in the block of a rank.
func inBlock(addr uint64, rank uint32) uint64 {
	return addr&(1<<rankShift-1) | uint64(min(rank+1, 0xFF))<<rankShift
}

// mapFamily: mapa{.shared::cluster}.type d, a, b is the address in block b of the cluster
// of what has address a in this one. Without a state space addresses are generic.
func mapFamily(b *builder, s *statement) exec {
	if len(s.Args) != 3 || !s.only() {
		return nil
	}
	to, from, rank, in := b.use(s.Args[0]), b.use(s.Args[1]), b.use(s.Args[2]), spaceOf(s)
	return func(w *warp, mask uint32) {
		for m := mask; m != 0; m &= m - 1 {
			lane := bits.TrailingZeros32(m)
			addr := inBlock(w.sharedAddress(lane, in, w.regs[from][lane]), uint32(w.regs[rank][lane]))
			if in == generic {
				addr |= sharedWindow
			}
			w.regs[to][lane] = addr
		}
	}
}

// rankFamily: getctarank{.shared::cluster}.type d, a.
func rankFamily(b *builder, s *statement) exec {
	if len(s.Args) != 2 || !s.only() {
		return nil
	}
	to, from, in := b.use(s.Args[0]), b.use(s.Args[1]), spaceOf(s)
	return func(w *warp, mask uint32) {
		for m := mask; m != 0; m &= m - 1 {
			lane := bits.TrailingZeros32(m)
			t, _ := w.place(lane, w.sharedAddress(lane, in, w.regs[from][lane]))
			w.regs[to][lane] = uint64(t.rank)
		}
	}
}
