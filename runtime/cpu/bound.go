package cpu

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"sync"

	"github.com/fusec/fusec/internal/hostmem"
	"github.com/fusec/fusec/ir"
)

// bound is a program at known sizes.
type bound struct {
	kernels []step
	bytes   []int64 // of each buffer of the plan
	at      []int64 // where each temporary lies in the memory of a run; -1 for other buffers
	memory  int64   // bytes of all temporaries
	scratch int64   // most bytes that a kernel allocates while it runs
	symbols []int64 // in the graph's order
}

// How much a program remembers: combinations of sizes with at most this many kernels together,
// but always a few. BenchmarkShapes says what that gives: a small kernel takes 4 KiB and 20 us
// to make, and a call of softmax as 4 kernels on one row, of 1 to so many elements as there are
// combinations in turns, takes 3 us of a processor (AMD EPYC) with 1, 16 and 17 combinations, 5
// with 100, 17 with 1000, and 130 with 4000, which do not fit. Where only 16 fit, it takes 82
// with 17, 100 with 100 and 124 with 1000. Through Function.Run, fused, it takes 2 with 1 to
// 17, 7 with 100 and 13 with 1000.
const (
	maxKernels = 1 << 13
	minBounds  = 16
)

// boundCache remembers programs at known sizes. It is safe for concurrent use. It forgets the
// less recently used of two random entries. If sizes come in turns, and there is one more than
// fits, most of them are still found then; with the least recently used none would be.
type boundCache struct {
	mu      sync.Mutex
	clock   uint64
	kernels int // of all entries
	list    []*boundEntry
	at      map[string]int // in list
}

// boundEntry is compiled once, by the first goroutine that needs it; others wait.
type boundEntry struct {
	key     string
	kernels int
	used    uint64 // clock at the last use
	once    sync.Once
	bound   *bound
	err     error
}

// get returns the entry of a key, an empty one where there is none.
func (c *boundCache) get(key []byte, kernels int) *boundEntry {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.clock++
	if at, ok := c.at[string(key)]; ok {
		e := c.list[at]
		e.used = c.clock
		return e
	}
	for len(c.list) >= minBounds && c.kernels+kernels > maxKernels {
		c.forget()
	}
	e := &boundEntry{key: string(key), kernels: kernels, used: c.clock}
	if c.at == nil {
		c.at = map[string]int{}
	}
	c.at[e.key] = len(c.list)
	c.list = append(c.list, e)
	c.kernels += kernels
	return e
}

// forget drops an entry. A run that has it may go on using it.
func (c *boundCache) forget() {
	at := rand.IntN(len(c.list))
	if other := rand.IntN(len(c.list)); c.list[other].used < c.list[at].used {
		at = other
	}
	last := len(c.list) - 1
	delete(c.at, c.list[at].key)
	c.kernels -= c.list[at].kernels
	if at != last {
		c.list[at] = c.list[last]
		c.at[c.list[at].key] = at
	}
	c.list[last] = nil
	c.list = c.list[:last]
}

// bind returns the program for the given sizes, compiling it the first time. Sizes that are
// refused are remembered too, so that they are refused quickly the next time.
func (p *Program) bind(symbols map[string]int64) (*bound, error) {
	var space [64]byte
	key := space[:0]
	for _, name := range p.names {
		key = binary.AppendVarint(key, symbols[name])
	}
	e := p.bounds.get(key, max(1, len(p.plan.Kernels)))
	e.once.Do(func() { e.bound, e.err = p.compile(symbols) })
	return e.bound, e.err
}

// memoryAlign is what every temporary is aligned to: a line of the cache.
const memoryAlign = 64

func (p *Program) compile(symbols map[string]int64) (*bound, error) {
	b := &bound{}
	for _, name := range p.names {
		b.symbols = append(b.symbols, symbols[name])
	}
	if err := b.measure(p.plan, symbols); err != nil {
		return nil, err
	}
	for _, k := range p.plan.Kernels {
		c, err := p.step(k, symbols)
		if err != nil {
			return nil, err
		}
		b.kernels = append(b.kernels, c)
		b.scratch = max(b.scratch, c.scratch(p.threads))
	}
	return b, nil
}

// measure finds the bytes of the buffers, and the places of those between kernels. Buffers of kernels that do not run at
// these sizes take no memory, and may be too large for any.
func (b *bound) measure(plan *ir.Plan, symbols map[string]int64) error {
	used := map[*ir.Buffer]bool{}
	for _, k := range plan.Kernels {
		if idle(k, symbols) {
			continue
		}
		for _, a := range k.Args {
			used[a.Buffer] = true
		}
	}
	slots := map[int]int64{} // bytes of each slot
	for _, buf := range plan.Buffers {
		size := int64(0)
		if buf.Kind != ir.TempBuffer || used[buf] {
			var err error
			if size, err = bytesOf(buf, symbols); err != nil {
				return err
			}
		}
		b.bytes = append(b.bytes, size)
		if buf.Kind == ir.TempBuffer {
			slots[buf.Slot] = max(slots[buf.Slot], size)
		}
	}
	b.place(plan.Buffers, slots)
	return nil
}

func bytesOf(buf *ir.Buffer, symbols map[string]int64) (int64, error) {
	size := int64(buf.Type.Size())
	for _, e := range buf.Shape {
		n, ok := ir.EvalSize(e, symbols)
		if !ok || n < 0 || n > 0 && size > (1<<62)/n {
			return 0, fmt.Errorf("tensor %s does not fit in memory: a dimension is %d", buf.Name, n)
		}
		size *= n
	}
	return size, nil
}

// place lays out the slots of temporaries one after another. A sum that does not fit in 64 bits
// becomes the largest number, for which no memory has room.
func (b *bound) place(buffers []*ir.Buffer, slots map[int]int64) {
	begin := map[int]int64{}
	for _, buf := range buffers {
		if buf.Kind != ir.TempBuffer {
			b.at = append(b.at, -1)
			continue
		}
		at, placed := begin[buf.Slot]
		if !placed {
			at = b.memory
			begin[buf.Slot] = at
			b.memory = plus(at, plus(slots[buf.Slot], memoryAlign-1)&^(memoryAlign-1))
		}
		b.at = append(b.at, at)
	}
}

// admit returns an *ir.MemoryError where the machine has no room for so many bytes of the
// program's own.
func (p *Program) admit(b *bound, bytes int64) error {
	err := hostmem.Admit("", bytes)
	if refused, ok := err.(*ir.MemoryError); ok {
		refused.What = "the memory between kernels"
		largest := int64(0)
		for i, buf := range p.plan.Buffers {
			if b.at[i] >= 0 && b.bytes[i] > largest {
				largest = b.bytes[i]
				refused.What = fmt.Sprintf("the memory between kernels, most of it for tensor %s (%d bytes),", buf.Name, largest)
			}
		}
	}
	return err
}
