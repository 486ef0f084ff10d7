// Package cpu runs an ir.Plan on the processor, with no compiler and no device:
// the embedded engine. A kernel becomes a register program over tiles of about a
// thousand elements that stay in the first-level cache; each instruction is a
// loop over one tile, and jobs (rows, or tiles of rows) are dealt out to all
// cores.
//
// Narrow floats are computed in f32, integers in 64 bits and wrapped; kernels
// marked strict round each operation. Results depend on the sizes only, not on
// the number of cores.
//
// The package must not know the language, the planner, tensors or devices: it
// sees plans, sizes and bytes.
package cpu

import (
	"context"
	"fmt"
	goruntime "runtime"
	"runtime/pprof"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fusec/fusec/ir"
)

// Program is a plan ready to run. It is safe for concurrent use.
type Program struct {
	plan    *ir.Plan
	names   []string
	threads int
	checks  []ir.IndexCheck
	labels  labels

	bounds boundCache
	temps  sync.Pool // of *[]byte: the temporaries of one run
}

// Options says how a program runs.
type Options struct {
	Threads int // goroutines of one run; 0 for one a core
}

// New returns a program that runs plan.
func New(plan *ir.Plan, opts Options) *Program {
	p := &Program{plan: plan, threads: opts.Threads, labels: labelsOf(plan)}
	if p.threads <= 0 {
		p.threads = goruntime.GOMAXPROCS(0)
	}
	position := map[string]int{}
	for i, s := range plan.Graph.Symbols {
		p.names, position[s.Name] = append(p.names, s.Name), i
	}
	p.checks = ir.IndexChecks(plan.Graph, position)
	return p
}

// Run executes the plan for the given sizes. buffers holds the memory of the
// plan's buffers that are not temporaries, in the plan's order: inputs, which are
// only read, then outputs. The memory must not overlap and must not be changed
// before Run returns. It returns ctx's error where ctx ends first, outputs are
// then incomplete, an *ir.IndexError where a check of the plan found one, and an
// *ir.MemoryError where what the run needs between kernels does not fit in memory.
func (p *Program) Run(ctx context.Context, symbols map[string]int64, buffers [][]byte) error {
	return p.RunTimed(ctx, symbols, buffers, nil)
}

// RunTimed is Run that says of each kernel, by its position in the plan, how long it took.
func (p *Program) RunTimed(
	ctx context.Context, symbols map[string]int64, buffers [][]byte, took func(kernel int, d time.Duration),
) error {
	b, err := p.bind(symbols)
	if err != nil {
		return err
	}
	found := make([]byte, len(p.checks)*ir.CheckBytes)
	temps, err := p.temporaries(b)
	if err != nil {
		return err
	}
	defer p.temps.Put(temps)
	memory, err := p.memory(b, buffers, *temps, found)
	if err != nil {
		return err
	}
	var call call
	defer context.AfterFunc(ctx, func() { call.stop.Store(true) })()
	defer pprof.SetGoroutineLabels(ctx)
	for i, k := range b.kernels {
		if k == (nothing{}) {
			continue
		}
		call.labels = p.labels.set(ctx, i)
		start := time.Now()
		k.run(memory, p.threads, &call)
		if took != nil {
			took(i, time.Since(start))
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return ir.FirstOutside(p.plan.Graph.Name, p.checks, b.symbols, found)
}

// Traffic is the bytes of the tensors that a kernel reads, and of those that it writes.
type Traffic struct {
	Reads, Writes int64
	Idle          bool // it does not run at these sizes: it moves nothing, and RunTimed does not time it
}

// Traffic is that of each kernel of the plan, for the given sizes.
func (p *Program) Traffic(symbols map[string]int64) ([]Traffic, error) {
	b, err := p.bind(symbols)
	if err != nil {
		return nil, err
	}
	bytes := map[*ir.Buffer]int64{}
	for i, buf := range p.plan.Buffers {
		bytes[buf] = b.bytes[i]
	}
	out := make([]Traffic, len(p.plan.Kernels))
	for i, k := range p.plan.Kernels {
		if out[i].Idle = b.kernels[i] == (nothing{}); out[i].Idle {
			continue
		}
		for _, a := range k.Args {
			if a.Write {
				out[i].Writes += bytes[a.Buffer]
			} else {
				out[i].Reads += bytes[a.Buffer]
			}
		}
	}
	return out, nil
}

// step is a compiled kernel.
type step interface {
	// run executes the kernel on the plan's buffers, on as many goroutines as given.
	run(memory [][]byte, threads int, call *call)
	// scratch is about how many bytes run allocates with so many goroutines: of what
	// grows with the sizes, all.
	scratch(threads int) int64
}

// nothing is the step of a kernel that does not run at some sizes.
type nothing struct{}

func (nothing) run([][]byte, int, *call) {}
func (nothing) scratch(int) int64        { return 0 }

func (p *Program) step(k *ir.Kernel, symbols map[string]int64) (step, error) {
	if idle(k, symbols) {
		return nothing{}, nil
	}
	v, err := variant(k, symbols)
	if err != nil {
		return nil, fmt.Errorf("kernel %s: %w", k.Name, err)
	}
	if len(v.Units) > 0 {
		return lowerVariant(v.Of(k), v, symbols, nil)
	}
	if v.Sort != nil {
		return lowerSort(k, v.Sort, symbols, len(p.plan.Buffers))
	}
	if v := scattered(k, symbols); v != nil {
		return lowerScatter(k, v, symbols, len(p.plan.Buffers))
	}
	if s, err := lowerProduct(k, v, symbols); s != nil || err != nil {
		return s, err
	}
	return lowerVariant(k, v, symbols, nil)
}

// idle reports whether a kernel does not run: its condition does not hold, or what it writes has no elements, of whose rows
// there may be many.
func idle(k *ir.Kernel, symbols map[string]int64) bool {
	if k.When != nil {
		if runs, ok := ir.EvalSize(k.When, symbols); ok && runs == 0 {
			return true
		}
	}
	return writesNothing(k, symbols)
}

// writesNothing reports whether all that a kernel writes has no elements.
func writesNothing(k *ir.Kernel, symbols map[string]int64) bool {
	empty := func(n *ir.Expr) bool {
		size, ok := ir.EvalSize(n, symbols)
		return ok && size == 0
	}
	return !slices.ContainsFunc(k.Args, func(a *ir.Arg) bool { return a.Write && !slices.ContainsFunc(a.Buffer.Shape, empty) })
}

// scratch is what workers keep of a row, and the parts of split passes.
func (c *code) scratch(threads int) int64 {
	const element, part = 8, 64 // bytes, at most; of a part of a fold, about
	bytes := times(int64(threads), int64(len(c.kept)), c.steps, c.tile, element)
	if c.chunk < c.steps {
		bytes = plus(bytes, times(c.items, (c.steps+c.chunk-1)/c.chunk, int64(len(c.folds)), part))
	}
	return bytes
}

func (c *code) run(memory [][]byte, threads int, call *call) {
	c.launch(memory, threads, call).run()
}

var launches atomic.Int64

// launch is a run of the kernel on the buffers of its plan.
func (c *code) launch(memory [][]byte, threads int, call *call) *launch {
	l := &launch{code: c, bufs: make([][]byte, len(c.bufs)), threads: threads, call: call, number: launches.Add(1)}
	for i, at := range c.bufs {
		l.bufs[i] = memory[at]
	}
	return l
}

// memory checks the caller's buffers and adds those of temporaries and of what checks
// find.
func (p *Program) memory(b *bound, buffers [][]byte, temps, found []byte) ([][]byte, error) {
	out := make([][]byte, len(p.plan.Buffers))
	given := 0
	for i, buf := range p.plan.Buffers {
		if at := b.at[i]; at >= 0 {
			out[i] = temps[at:][:b.bytes[i]:b.bytes[i]]
			continue
		}
		if buf.Kind == ir.CheckBuffer {
			out[i], found = found[:b.bytes[i]], found[b.bytes[i]:]
			continue
		}
		if given == len(buffers) {
			return nil, fmt.Errorf("expected memory for %s and those after it, found %d buffers", buf.Name, given)
		}
		if out[i] = buffers[given]; int64(len(out[i])) != b.bytes[i] {
			return nil, fmt.Errorf("tensor %s needs %d bytes, found %d", buf.Name, b.bytes[i], len(out[i]))
		}
		given++
	}
	if given != len(buffers) {
		return nil, fmt.Errorf("expected %d buffers, found %d", given, len(buffers))
	}
	return out, nil
}

// temporaries returns the memory for the temporaries of a run, that of an earlier run
// where it is large enough. There is room for what the kernels allocate beside it, too.
func (p *Program) temporaries(b *bound) (*[]byte, error) {
	kept, ok := p.temps.Get().(*[]byte)
	if ok && int64(cap(*kept)) >= b.memory {
		*kept = (*kept)[:b.memory]
		return kept, p.admit(b, b.scratch)
	}
	kept = nil // so that it can be collected if its room is needed
	if err := p.admit(b, plus(b.memory, b.scratch)); err != nil {
		return nil, err
	}
	fresh := make([]byte, b.memory)
	return &fresh, nil
}
