package interp

import (
	"fmt"

	"github.com/fusec/fusec/ir"
)

// PlanOptions says how to run a plan.
type PlanOptions struct {
	Options
	// Force names the variant to run, by kernel name, instead of the first
	// whose When holds. The variant's facts must hold for the sizes.
	Force map[string]int
}

// RunPlan runs a plan literally, kernel by kernel, row by row, section by
// section, and returns the results in the order of the graph's. It reports what
// no correct plan does: reads of elements never written or of a temporary whose
// memory another has taken, accesses outside a buffer, outputs left incomplete. Next
// values of states take the memory of the present ones where the plan says that they may.
// Inputs are not changed.
func RunPlan(p *ir.Plan, inputs []*Tensor, opts PlanOptions) ([]*Tensor, error) {
	symbols, err := bind(p.Graph, inputs)
	if err != nil {
		return nil, err
	}
	m := &memory{opts: opts.Options, buffers: map[*ir.Buffer]*contents{}}
	if err := m.start(p, inputs, symbols); err != nil {
		return nil, err
	}
	for _, k := range p.At(symbols).Kernels {
		if err := runKernel(k, m, symbols, opts); err != nil {
			return nil, fmt.Errorf("kernel %s: %w", k.Name, err)
		}
	}
	out, err := m.outputs(p)
	if err != nil {
		return nil, err
	}
	return checked(p.Graph, symbols, out)
}

// contents is what a buffer holds.
type contents struct {
	*Tensor
	written []bool // nil for inputs: everywhere
	under   []bool // written of the buffer whose memory this one has; nil where that is an input, or there is none
}

// store sets an element. What another buffer had in its place is lost.
func (c *contents) store(n int64, v Scalar) {
	c.set(n, v)
	c.written[n] = true
	if c.under != nil {
		c.under[n] = false
	}
}

// memory is the buffers of a run.
type memory struct {
	opts    Options
	bytes   int64
	buffers map[*ir.Buffer]*contents
	slots   map[int]*ir.Buffer // the temporary that owns each slot now
}

func (m *memory) start(p *ir.Plan, inputs []*Tensor, symbols map[string]int64) error {
	m.slots = map[int]*ir.Buffer{}
	given := map[*ir.Value]*Tensor{}
	for i, v := range p.Graph.Inputs {
		given[v] = inputs[i].rounded()
	}
	for _, b := range p.Buffers {
		if b.Kind == ir.InputBuffer {
			m.buffers[b] = &contents{Tensor: given[b.Value]}
			continue
		}
		if b.InPlace {
			m.buffers[b] = m.buffers[b.Updates].over()
			continue
		}
		if b.Over != nil {
			continue
		}
		c, err := m.alloc(b, symbols)
		if err != nil {
			return fmt.Errorf("buffer %s: %w", b.Name, err)
		}
		m.buffers[b] = c
	}
	for _, b := range p.Buffers {
		m.takeOver(b)
	}
	return nil
}

// takeOver gives a temporary that may have another's memory that memory.
func (m *memory) takeOver(b *ir.Buffer) {
	if m.buffers[b] == nil {
		m.takeOver(b.Over)
		m.buffers[b] = m.buffers[b.Over].over()
	}
}

// over is a buffer with the same memory, which nothing has been stored to.
func (c *contents) over() *contents {
	return &contents{Tensor: c.Tensor, written: make([]bool, c.Len()), under: c.written}
}

func (m *memory) alloc(b *ir.Buffer, symbols map[string]int64) (*contents, error) {
	extents := make([]int64, len(b.Shape))
	for i, e := range b.Shape {
		var err error
		if extents[i], err = evalSize(e, symbols); err != nil {
			return nil, err
		}
	}
	r := runner{opts: m.opts, bytes: m.bytes}
	t, err := r.alloc(b.Type, extents)
	if err != nil {
		return nil, err
	}
	m.bytes = r.bytes
	return &contents{Tensor: t, written: make([]bool, t.Len())}, nil
}

// take makes b the owner of its slot; the contents of other buffers in the slot are lost.
func (m *memory) take(b *ir.Buffer) {
	if b.Kind != ir.TempBuffer {
		return
	}
	if old := m.slots[b.Slot]; old != nil && old != b {
		clear(m.buffers[old].written)
	}
	m.slots[b.Slot] = b
}

func (m *memory) outputs(p *ir.Plan) ([]*Tensor, error) {
	of := map[*ir.Value]*contents{}
	for _, b := range p.Buffers {
		if b.Kind != ir.TempBuffer && b.Value != nil {
			of[b.Value] = m.buffers[b]
		}
	}
	out := make([]*Tensor, len(p.Graph.Outputs))
	for i, o := range p.Graph.Outputs {
		c := of[o.Value]
		if c == nil {
			return nil, fmt.Errorf("output %s has no buffer", o.Name)
		}
		for n, ok := range c.written {
			if !ok {
				return nil, fmt.Errorf("output %s: element %d was never written", o.Name, n)
			}
		}
		out[i] = c.rounded()
	}
	return out, nil
}

// chooseVariant returns the variant that runs for the given sizes.
func chooseVariant(k *ir.Kernel, symbols map[string]int64, force map[string]int) (*ir.Variant, error) {
	if n, ok := force[k.Name]; ok {
		if n < 0 || n >= len(k.Variants) {
			return nil, fmt.Errorf("variant %d forced, there are %d", n, len(k.Variants))
		}
		return k.Variants[n], holds(k.Variants[n].Facts, symbols)
	}
	for _, v := range k.Variants {
		if v.When == nil {
			return v, nil
		}
		if yes, ok := ir.EvalSize(v.When, symbols); ok && yes != 0 {
			return v, holds(v.Facts, symbols)
		}
	}
	return nil, fmt.Errorf("no variant takes the sizes %v", symbols)
}

// holds checks a variant's promises. Positive is not one of them: a loop over
// nothing runs no code that could rely on it.
func holds(facts ir.Facts, symbols map[string]int64) error {
	for name, by := range facts.Divisible {
		if by != 0 && symbols[name]%by != 0 {
			return fmt.Errorf("variant needs %s divisible by %d, found %d", name, by, symbols[name])
		}
	}
	for _, m := range facts.Multiples {
		if !m.Holds(symbols) {
			return fmt.Errorf("variant needs %s divisible by %d, which it is not", m.Size, m.By)
		}
	}
	return nil
}
