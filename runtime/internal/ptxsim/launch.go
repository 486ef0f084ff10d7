package ptxsim

import (
	"errors"
	"fmt"
	"slices"
)

const warpSize = 32

// A Memory is the global memory that kernels see.
type Memory interface {
	// Bytes is the memory at an address, as long as n; nil where any of it is not
	// allocated.
	Bytes(addr uint64, n int) []byte
}

// A Launch is a kernel with its grid and arguments.
type Launch struct {
	Entry   *Entry
	Grid    [3]uint32
	Block   [3]uint32
	Cluster [3]uint32 // zero: no clusters
	Shared  int       // bytes of dynamic shared memory
	Params  []byte    // the block of parameters, see Entry.Params
	Memory  Memory

	// Early completes asynchronous operations when they are issued; otherwise they complete one
	// by one, when all warps wait. Backwards runs the last warp first, and completes the newest
	// operation first. A kernel that synchronises correctly gives the same results in all four
	// cases.
	Early, Backwards bool
	// Races makes conflicting accesses to shared memory that nothing orders an error. It takes
	// several times as long. Global memory is not checked.
	Races bool
	// Limit is the most instructions of warps that a launch may take; 0: 2^32.
	Limit uint64

	data   []byte // of the module's global variables
	steps  uint64
	events uint64               // changes that another warp may wait for
	tiles  *tiles               // of the matrix instruction under way
	spare  [][][warpSize]uint64 // registers of warps that have ended, for reuse, because allocating them is slow
}

// quantum is how many instructions a warp runs before others have their turn.
const quantum = 4096

// sharedStart is where shared memory begins: the first KiB belongs to the system, as on
// sm_90.
const sharedStart = 1024

// Run executes all blocks. The error names the instruction, the block and the thread.
// What was written before it stays written. Not safe for concurrent use.
func (l *Launch) Run() (err error) {
	if err := l.check(); err != nil {
		return fmt.Errorf("%s: %w", l.Entry.Name, err)
	}
	defer func() {
		if r := recover(); r != nil {
			f, ok := r.(*fault)
			if !ok {
				panic(r)
			}
			err = fmt.Errorf("%s: %w", l.Entry.Name, f)
		}
	}()
	l.data, l.steps, l.events, l.spare = l.Entry.module.moduleData(), 0, 0, nil
	var first [3]uint32
	for first[2] = 0; first[2] < l.Grid[2]; first[2] += l.Cluster[2] {
		for first[1] = 0; first[1] < l.Grid[1]; first[1] += l.Cluster[1] {
			for first[0] = 0; first[0] < l.Grid[0]; first[0] += l.Cluster[0] {
				c := newCluster(l, first)
				c.run()
				l.reuse(c)
			}
		}
	}
	return nil
}

// reuse keeps the registers of a cluster that has ended for the next one.
func (l *Launch) reuse(c *cluster) {
	for _, t := range c.ctas {
		for _, w := range t.warps {
			l.spare = append(l.spare, w.regs)
		}
	}
}

// registers are those of a new warp, all zero.
func (l *Launch) registers() [][warpSize]uint64 {
	last := len(l.spare) - 1
	if last < 0 {
		return make([][warpSize]uint64, l.Entry.regs)
	}
	regs := l.spare[last]
	l.spare = l.spare[:last]
	clear(regs)
	return regs
}

func (l *Launch) check() error {
	if l.Cluster == [3]uint32{} {
		l.Cluster = [3]uint32{1, 1, 1}
	}
	if l.Limit == 0 {
		l.Limit = 1 << 32
	}
	for i := range 3 {
		if l.Grid[i] == 0 || l.Block[i] == 0 || l.Cluster[i] == 0 || l.Grid[i]%l.Cluster[i] != 0 {
			return fmt.Errorf("grid %v, block %v and cluster %v do not fit", l.Grid, l.Block, l.Cluster)
		}
	}
	if n := l.Block[0] * l.Block[1] * l.Block[2]; n > 1024 {
		return fmt.Errorf("%d threads in a block, 1024 at most", n)
	}
	if n := l.Entry.static + l.Shared; n > 232448 {
		return fmt.Errorf("%d bytes of shared memory in a block, 232448 at most", n)
	}
	if len(l.Params) < l.Entry.ParamBytes() {
		return errors.New("too few bytes of parameters")
	}
	return nil
}

// A cluster is blocks that run together and see each other's shared memory.
type cluster struct {
	launch  *Launch
	ctas    []*cta
	barrier clusterBarrier
	async   []func() // operations under way, oldest first
	races   *races   // nil: not looked for
}

// A cta is a block.
type cta struct {
	cluster *cluster
	id      [3]uint32
	rank    int
	shared  []byte // from address sharedStart
	warps   []*warp
	bars    [16]barrier
	exited  int // threads
	threads int

	mbarriers map[uint64]uint64 // the last value of each mbarrier's 8 bytes, by offset
}

func newCluster(l *Launch, first [3]uint32) *cluster {
	c := &cluster{launch: l}
	var in [3]uint32
	for in[2] = 0; in[2] < l.Cluster[2]; in[2]++ {
		for in[1] = 0; in[1] < l.Cluster[1]; in[1]++ {
			for in[0] = 0; in[0] < l.Cluster[0]; in[0]++ {
				id := [3]uint32{first[0] + in[0], first[1] + in[1], first[2] + in[2]}
				c.ctas = append(c.ctas, newCTA(c, id, len(c.ctas)))
			}
		}
	}
	if l.Races {
		c.races = newRaces(c)
	}
	for _, t := range c.ctas {
		for _, w := range t.warps {
			w.fillSpecials()
		}
	}
	return c
}

func newCTA(c *cluster, id [3]uint32, rank int) *cta {
	l := c.launch
	dynamic := roundUp(l.Entry.static, 16) + l.Shared
	t := &cta{cluster: c, id: id, rank: rank, shared: make([]byte, dynamic),
		threads: int(l.Block[0] * l.Block[1] * l.Block[2]), mbarriers: map[uint64]uint64{}}
	for i := range t.shared {
		t.shared[i] = 0xFF // memory that is read before it is written is NaN
	}
	for i := 0; i < t.threads; i += warpSize {
		t.warps = append(t.warps, newWarp(t, i/warpSize, min(warpSize, t.threads-i)))
	}
	return t
}

// patience is how many turns without any change count as a deadlock. It is more than one,
// because lanes that do not find what they wait for may do something else.
const patience = 256

// run takes turns between the warps until all have ended.
func (c *cluster) run() {
	for idle := 0; ; {
		ended, busy, before := true, false, c.launch.events
		for _, w := range c.turn() {
			if w.live != 0 {
				ended = false
				busy = w.run(quantum) || busy
			}
		}
		if ended {
			c.finish()
			return
		}
		if busy || c.launch.events != before || c.land() {
			idle = 0
		} else if idle++; idle > patience {
			panic(c.deadlock())
		}
	}
}

// turn is the warps in the order they run in.
func (c *cluster) turn() []*warp {
	var out []*warp
	for _, t := range c.ctas {
		out = append(out, t.warps...)
	}
	if c.launch.Backwards {
		for i, j := 0, len(out)-1; i < j; i, j = i+1, j-1 {
			out[i], out[j] = out[j], out[i]
		}
	}
	return out
}

// later queues an asynchronous operation.
func (c *cluster) later(operation func()) {
	if c.launch.Early {
		operation()
		c.launch.events++
		return
	}
	c.async = append(c.async, operation)
}

// land completes one operation under way; false where there is none. They may complete in any
// order: launches that run backwards take the newest first.
func (c *cluster) land() bool {
	n := len(c.async)
	if n == 0 {
		return false
	}
	at := 0
	if c.launch.Backwards {
		at = n - 1
	}
	operation := c.async[at]
	c.async = slices.Delete(c.async, at, at+1)
	operation()
	c.launch.events++
	return true
}

// finish completes the operations under way when all threads have ended, and reports what the
// threads have left undone.
func (c *cluster) finish() {
	for c.land() {
	}
	for _, t := range c.ctas {
		for _, w := range t.warps {
			w.finishBulk()
		}
		t.checkBarriers()
	}
}
