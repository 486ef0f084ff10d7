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
}

// A clusterBarrier is the one barrier of a cluster.
type clusterBarrier struct{ arrived, phase int }

// barrierFamilies are the barriers of a block.
var barrierFamilies = map[string]family{
	"bar":     barFamily,
	"barrier": barFamily,
}

// together is which lanes an instruction needs at once: those of its member mask, or all
// of the warp where it is aligned; nil where each lane comes on its own.
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
		return uint32(w.regs[reg][bits.TrailingZeros32(mask)])
	}
}

// barFamily: bar.sync a{, b}, bar.arrive a, b and bar.warp.sync mask; also as barrier.cta.
// Threads arrive one by one.
func barFamily(b *builder, s *statement) exec {
	if s.has("warp") {
		return func(*warp, uint32) {}
	}
	if s.has("cluster") || s.has("red") || !s.has("sync") && !s.has("arrive") {
		return nil
	}
	id, threads, waits := b.use(s.Args[0]), -1, s.has("sync")
	if len(s.Args) > 1 {
		threads = b.use(s.Args[1])
	}
	return func(w *warp, mask uint32) {
		lane := bits.TrailingZeros32(mask)
		n := 0
		if threads >= 0 {
			n = int(uint32(w.regs[threads][lane]))
		}
		at := uint32(w.regs[id][lane])
		if at >= uint32(len(w.cta.bars)) {
			panic(w.fault(lane, "there is no barrier %d", at))
		}
		w.arrive(&w.cta.bars[at], n, mask, waits)
	}
}

// arrive counts lanes at a barrier of n threads and, where asked, lets them wait.
func (w *warp) arrive(b *barrier, n int, mask uint32, waits bool) {
	w.cta.cluster.launch.events++
	if b.arrived > 0 && b.expected != n {
		panic(w.fault(bits.TrailingZeros32(mask), "a barrier of %d threads, and of %d for those there", n, b.expected))
	}
	b.expected = n
	b.arrived += bits.OnesCount32(mask)
	phase := b.phase
	if b.complete(w.cta) || !waits {
		return
	}
	t := w.cta
	w.wait = func() bool { return b.phase != phase || b.complete(t) }
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
	b.arrived = 0
	b.phase++
	return true
}
