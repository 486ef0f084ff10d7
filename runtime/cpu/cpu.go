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
	"strings"
	"sync"
	"sync/atomic"

	"github.com/fusec/fusec/ir"
)

// Program is a plan ready to run. It is safe for concurrent use.
type Program struct {
	plan    *ir.Plan
	names   []string
	threads int
	checks  []ir.IndexCheck

	mu    sync.Mutex
	bound map[string]*bound // by sizes
	temps sync.Pool         // of []byte
}

// bound is a program at known sizes.
type bound struct {
	kernels []step
	bytes   []int64 // of each buffer of the plan
	slots   []int64 // of each temporary's memory
	slot    []int   // of each buffer, -1 for inputs, outputs and results of checks
	symbols []int64 // in the graph's order
}

// maxBound limits how many combinations of sizes a program remembers.
const maxBound = 16

// Options says how a program runs.
type Options struct {
	Threads int // goroutines of one run; 0 for one a core
}

// New returns a program that runs plan.
func New(plan *ir.Plan, opts Options) *Program {
	p := &Program{plan: plan, threads: opts.Threads, bound: map[string]*bound{}}
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
// then incomplete, and an *ir.IndexError where a check of the plan found one.
func (p *Program) Run(ctx context.Context, symbols map[string]int64, buffers [][]byte) error {
	b, err := p.bind(symbols)
	if err != nil {
		return err
	}
	found := make([]byte, len(p.checks)*ir.CheckBytes)
	memory, err := p.memory(b, buffers, found)
	if err != nil {
		return err
	}
	defer p.release(b, memory)
	var stop atomic.Bool
	defer context.AfterFunc(ctx, func() { stop.Store(true) })()
	for _, k := range b.kernels {
		k.run(memory, p.threads, &stop)
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return ir.FirstOutside(p.plan.Graph.Name, p.checks, b.symbols, found)
}

// bind returns the program for the given sizes, compiling it at first sight.
func (p *Program) bind(symbols map[string]int64) (*bound, error) {
	key := p.key(symbols)
	p.mu.Lock()
	defer p.mu.Unlock()
	if b := p.bound[key]; b != nil {
		return b, nil
	}
	b, err := p.compile(symbols)
	if err != nil {
		return nil, err
	}
	if len(p.bound) >= maxBound {
		clear(p.bound)
	}
	p.bound[key] = b
	return b, nil
}

func (p *Program) key(symbols map[string]int64) string {
	var key strings.Builder
	for _, name := range p.names {
		fmt.Fprint(&key, symbols[name], " ")
	}
	return key.String()
}

func (p *Program) compile(symbols map[string]int64) (*bound, error) {
	b := &bound{slot: make([]int, len(p.plan.Buffers))}
	for _, name := range p.names {
		b.symbols = append(b.symbols, symbols[name])
	}
	slots := map[int]int{}
	for i, buf := range p.plan.Buffers {
		size := int64(buf.Type.Size())
		for _, e := range buf.Shape {
			n, ok := ir.EvalSize(e, symbols)
			if !ok || n < 0 || n > 0 && size > (1<<62)/n {
				return nil, fmt.Errorf("tensor %s does not fit in memory: a dimension is %d", buf.Name, n)
			}
			size *= n
		}
		b.bytes, b.slot[i] = append(b.bytes, size), -1
		if buf.Kind != ir.TempBuffer {
			continue
		}
		if _, ok := slots[buf.Slot]; !ok {
			slots[buf.Slot] = len(b.slots)
			b.slots = append(b.slots, 0)
		}
		b.slot[i] = slots[buf.Slot]
		b.slots[b.slot[i]] = max(b.slots[b.slot[i]], size)
	}
	for _, k := range p.plan.Kernels {
		c, err := p.step(k, symbols)
		if err != nil {
			return nil, err
		}
		b.kernels = append(b.kernels, c)
	}
	return b, nil
}

// step is a compiled kernel.
type step interface {
	// run executes the kernel on the plan's buffers, on as many goroutines as given.
	run(memory [][]byte, threads int, stop *atomic.Bool)
}

func (p *Program) step(k *ir.Kernel, symbols map[string]int64) (step, error) {
	v, err := variant(k, symbols)
	if err != nil {
		return nil, fmt.Errorf("kernel %s: %w", k.Name, err)
	}
	if v.Sort != nil {
		return lowerSort(k, v.Sort, symbols, len(p.plan.Buffers))
	}
	if v := scattered(k, symbols); v != nil {
		return lowerScatter(k, v, symbols, len(p.plan.Buffers))
	}
	return lowerVariant(k, v, symbols, nil)
}

func (c *code) run(memory [][]byte, threads int, stop *atomic.Bool) {
	c.launch(memory, threads, stop).run()
}

// launch is a run of the kernel on the buffers of its plan.
func (c *code) launch(memory [][]byte, threads int, stop *atomic.Bool) *launch {
	l := &launch{code: c, bufs: make([][]byte, len(c.bufs)), threads: threads, stop: stop}
	for i, at := range c.bufs {
		l.bufs[i] = memory[at]
	}
	return l
}

// memory checks the caller's buffers and adds those of temporaries and of what checks
// find.
func (p *Program) memory(b *bound, buffers [][]byte, found []byte) ([][]byte, error) {
	out := make([][]byte, len(p.plan.Buffers))
	slots := make([][]byte, len(b.slots))
	for i, size := range b.slots {
		slots[i] = p.temp(size)
	}
	given := 0
	for i, buf := range p.plan.Buffers {
		if b.slot[i] >= 0 {
			out[i] = slots[b.slot[i]][:b.bytes[i]]
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

// temp returns memory aligned for any element.
func (p *Program) temp(size int64) []byte {
	if b, ok := p.temps.Get().(*[]byte); ok && int64(cap(*b)) >= size {
		return (*b)[:size]
	}
	return make([]byte, size)
}

// release keeps the temporaries for the next run.
func (p *Program) release(b *bound, memory [][]byte) {
	seen := make([]bool, len(b.slots))
	for i, m := range memory {
		if s := b.slot[i]; s >= 0 && !seen[s] {
			seen[s] = true
			m = m[:0]
			p.temps.Put(&m)
		}
	}
}
