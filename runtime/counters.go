package runtime

import (
	"expvar"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"time"
)

// Counters is an Observer that counts. The zero value is ready; it is safe for
// concurrent use.
type Counters struct {
	runs, failures, kernels, bytes, runTime atomic.Int64
	compiles, hits, compileTime             atomic.Int64

	mu    sync.Mutex
	timed map[string]KernelTotal
}

// Totals is what Counters counted up to a moment.
type Totals struct {
	Runs, Failures int64 // runs in all, and those that failed
	Kernels        int64 // launched
	Bytes          int64 // bytes that kernels had to move, as far as plans know
	RunTime        time.Duration
	Compiles, Hits int64 // kernels compiled, and taken from the cache
	CompileTime    time.Duration
	Timed          map[string]KernelTotal // by "graph/kernel": see Observer.Timed
}

// String says the totals in words; the measured kernels are left to Timed.
func (t Totals) String() string {
	return fmt.Sprintf("%d runs (%d failed) in %v, %d kernels that moved %d bytes; %d kernels compiled in %v, %d from the cache",
		t.Runs, t.Failures, t.RunTime.Round(time.Microsecond), t.Kernels, t.Bytes, t.Compiles, t.CompileTime.Round(time.Millisecond), t.Hits)
}

// A KernelTotal adds up the measured runs of a kernel.
type KernelTotal struct {
	Count int64
	Took  time.Duration // on the device's clock
	Bytes int64
}

// Ran counts a run.
func (c *Counters) Ran(e RunEvent) {
	c.runs.Add(1)
	c.runTime.Add(int64(e.Took))
	if e.Err != nil {
		c.failures.Add(1)
		return
	}
	c.kernels.Add(int64(e.Kernels))
	c.bytes.Add(e.Bytes)
}

// Loaded counts a compile or a hit.
func (c *Counters) Loaded(e LoadEvent) {
	if e.Outcome.IsHit() {
		c.hits.Add(1)
		return
	}
	c.compiles.Add(1)
	c.compileTime.Add(int64(e.Took))
}

// Timed adds up a kernel's time.
func (c *Counters) Timed(e KernelEvent) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.timed == nil {
		c.timed = map[string]KernelTotal{}
	}
	name := e.Graph + "/" + e.Kernel
	total := c.timed[name]
	c.timed[name] = KernelTotal{Count: total.Count + 1, Took: total.Took + e.Took, Bytes: total.Bytes + e.Bytes}
}

// Totals returns what was counted so far.
func (c *Counters) Totals() Totals {
	c.mu.Lock()
	timed := maps.Clone(c.timed)
	c.mu.Unlock()
	return Totals{Runs: c.runs.Load(), Failures: c.failures.Load(), Kernels: c.kernels.Load(), Bytes: c.bytes.Load(),
		RunTime: time.Duration(c.runTime.Load()), Compiles: c.compiles.Load(), Hits: c.hits.Load(),
		CompileTime: time.Duration(c.compileTime.Load()), Timed: timed}
}

// Publish makes the totals a variable of package expvar: durations are nanoseconds.
// Such variables stay for the life of the process; a name can be taken once.
func (c *Counters) Publish(name string) error {
	if expvar.Get(name) != nil { // Publish would panic
		return fmt.Errorf("the expvar name %q is taken: choose another", name)
	}
	expvar.Publish(name, expvar.Func(func() any { return c.Totals() }))
	return nil
}
