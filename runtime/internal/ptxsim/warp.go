package ptxsim

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"
)

// A warp is 32 lanes. Lanes at one instruction form a group. The group with the lowest program
// counter runs first, so that lanes meet again where branches end.
type warp struct {
	cta       *cta
	index     int
	regs      [][warpSize]uint64
	live      uint32
	groups    []group
	local     [warpSize][]byte
	copies    [warpSize]copyQueue // cp.async
	bulk      [warpSize]bulkQueue // cp.async.bulk
	flight    flight              // wgmma
	inCluster clusterPlace

	carry   uint32 // CC.CF, a bit per lane
	scratch lanes  // what an operation on whole registers computes, see target

	at      *instr      // under way, for errors
	wait    func() bool // set by an instruction whose lanes wait until it returns true
	yielded bool        // set by an instruction that did not find what it waits for
}

// A group is lanes with one program counter.
type group struct {
	pc    int
	mask  uint32
	wait  func() bool // nil: it can run
	meet  bool        // it waits for other lanes at pc
	idled bool        // in this turn it has not found what it waits for
}

func newWarp(t *cta, index, lanes int) *warp {
	e := t.cluster.launch.Entry
	mask := uint32(1<<lanes - 1)
	w := &warp{cta: t, index: index, regs: t.cluster.launch.registers(), live: mask}
	for _, c := range e.consts {
		for lane := range warpSize {
			w.regs[c.reg][lane] = c.bits
		}
	}
	if e.products {
		w.flight.group = make([]int, e.regs)
	}
	if e.depot > 0 {
		for lane := range lanes {
			w.local[lane] = make([]byte, e.depot)
		}
	}
	w.groups = []group{{mask: mask}}
	return w
}

func (w *warp) fillSpecials() {
	for _, s := range w.cta.cluster.launch.Entry.special {
		for lane := range warpSize {
			w.regs[s.reg][lane] = w.special(int(s.bits), lane)
		}
	}
}

// run executes up to n instructions. It reports whether it executed all of them, which means
// that the warp has more to do.
func (w *warp) run(n int) bool {
	for i := range w.groups {
		w.groups[i].idled = false
	}
	for range n {
		g := w.pick()
		if g < 0 {
			return false
		}
		w.step(g)
	}
	return true
}

// pick merges groups that have met and returns the one to run next; -1: none can.
func (w *warp) pick() int {
	best := -1
	for i := 0; i < len(w.groups); i++ {
		g := &w.groups[i]
		if g.wait != nil {
			if !g.wait() {
				continue
			}
			g.wait = nil
		}
		for j := len(w.groups) - 1; j > i; j-- {
			if o := &w.groups[j]; o.pc == g.pc && o.wait == nil {
				g.mask |= o.mask
				g.meet, g.idled = false, g.idled && o.idled
				w.groups = slices.Delete(w.groups, j, j+1)
			}
		}
		if !g.meet && !g.idled && (best < 0 || g.pc < w.groups[best].pc) {
			best = i
		}
	}
	return best
}

// step executes one instruction of a group.
func (w *warp) step(i int) {
	g := &w.groups[i]
	in := &w.cta.cluster.launch.Entry.code[g.pc]
	w.count(in)
	active := g.mask
	if in.guard >= 0 {
		active = 0
		reg := &w.regs[in.guard]
		for m := g.mask; m != 0; m &= m - 1 {
			lane := bits.TrailingZeros32(m)
			active |= uint32(reg[lane]&1) << lane
		}
		if in.negate {
			active = g.mask &^ active
		}
	}
	if in.sync != nil && active != 0 {
		if need := in.sync(w, active); need&w.live&^active != 0 {
			g.meet = true
			return
		}
		if r := w.cta.cluster.races; r != nil {
			r.warpSync(w, active)
		}
	}
	switch {
	case active == 0:
		g.pc++
	case in.branch >= 0:
		w.split(i, active, group{pc: in.branch})
	case in.exit:
		w.leave(active)
		w.drop(i, active)
	default:
		in.run(w, active)
		w.after(i, active)
	}
}

// after advances a group whose active lanes have executed an instruction, and makes lanes wait
// if the instruction asked for it.
func (w *warp) after(i int, active uint32) {
	g := &w.groups[i]
	if w.wait == nil && !w.yielded {
		g.pc++
		return
	}
	to := group{pc: g.pc + 1, wait: w.wait, idled: w.yielded}
	w.wait, w.yielded = nil, false
	w.split(i, active, to)
}

// split sends the active lanes of a group elsewhere; the others go on.
func (w *warp) split(i int, active uint32, to group) {
	g := &w.groups[i]
	to.mask = active
	if rest := g.mask &^ active; rest != 0 {
		g.mask = rest
		g.pc++
		w.groups = append(w.groups, to)
		return
	}
	*g = to
}

// drop takes lanes out of a group.
func (w *warp) drop(i int, active uint32) {
	g := &w.groups[i]
	if g.mask &^= active; g.mask != 0 {
		g.pc++
	} else {
		w.groups = slices.Delete(w.groups, i, i+1)
	}
	for i := range w.groups {
		w.groups[i].meet = false // the group may have waited for these lanes
	}
}

// count records the instruction for errors, and stops a launch that does not end.
func (w *warp) count(in *instr) {
	w.at = in
	l := w.cta.cluster.launch
	if l.steps++; l.steps > l.Limit {
		panic(w.fault(0, "it has not ended after %d instructions", l.Limit))
	}
}

// A fault is a mistake of a kernel.
type fault struct{ text string }

func (f *fault) Error() string { return f.text }

// fault describes an error of a lane.
func (w *warp) fault(lane int, format string, args ...any) *fault {
	return &fault{fmt.Sprintf("ptx line %d, block %v, thread %d: %s", w.at.line, w.cta.id,
		w.index*warpSize+lane, fmt.Sprintf(format, args...))}
}

// deadlock describes where all lanes wait.
func (c *cluster) deadlock() *fault {
	var b strings.Builder
	b.WriteString("deadlock: no lane can go on")
	for _, t := range c.ctas {
		for _, w := range t.warps {
			for _, g := range w.groups {
				line := c.launch.Entry.code[g.pc].line
				fmt.Fprintf(&b, "\n  block %v, warp %d, lanes %08x: before ptx line %d", t.id, w.index, g.mask, line)
			}
		}
		t.describeBarriers(&b)
	}
	return &fault{b.String()}
}
