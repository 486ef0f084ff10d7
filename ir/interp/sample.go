package interp

import (
	"errors"
	"fmt"

	"github.com/fusec/fusec/ir"
)

// Point is one element of one output.
type Point struct {
	Output int // position in Graph.Outputs
	Index  []int
}

// ErrStopped is the error of an evaluation that Options.Stop ended.
var ErrStopped = errors.New("stopped")

// stopEvery is how many elements are computed between two calls of Options.Stop.
const stopEvery = 64

// Sample evaluates the chosen elements only, and of other values only what they
// need, each element once. The results are in the order of points. Indices are not
// checked, also of a strict graph.
func Sample(g *ir.Graph, inputs []*Tensor, points []Point, opts Options) ([]Scalar, error) {
	s, err := NewSampler(g, inputs, opts)
	if err != nil {
		return nil, err
	}
	out := make([]Scalar, len(points))
	for i, p := range points {
		if out[i], err = s.At(p); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Sampler is a demand-driven evaluation: it remembers what it has computed. After an error it is of no use.
type Sampler struct {
	g       *ir.Graph
	opts    Options
	symbols map[string]int64
	values  map[*ir.Value]*lazy
	kept    int64    // elements remembered
	chooser *chooser // in Sampled mode, else nil
	stopped error
}

// NewSampler prepares the evaluation of elements of g's outputs.
func NewSampler(g *ir.Graph, inputs []*Tensor, opts Options) (*Sampler, error) {
	symbols, err := bind(g, inputs)
	if err != nil {
		return nil, err
	}
	s := &Sampler{g: g, opts: opts, symbols: symbols, values: map[*ir.Value]*lazy{}, chooser: newChooser(g, opts)}
	for i, v := range g.Inputs {
		s.values[v] = &lazy{name: v.Name, input: inputs[i].rounded()}
	}
	for _, v := range g.Values {
		if v.IsInput() {
			continue
		}
		if s.values[v], err = s.compile(v); err != nil {
			return nil, fmt.Errorf("%svalue %s: %w", at(v.Origin.Span), v.Name, err)
		}
	}
	return s, nil
}

// lazy is a value that is computed element by element.
type lazy struct {
	name  string
	input *Tensor // of an input: all there is
	space box
	body  code
	frame *frame
	known map[int64]Scalar
}

// At evaluates one element.
func (s *Sampler) At(p Point) (Scalar, error) {
	if p.Output < 0 || p.Output >= len(s.g.Outputs) {
		return Scalar{}, fmt.Errorf("sample of output %d: the graph has %d", p.Output, len(s.g.Outputs))
	}
	o := s.g.Outputs[p.Output]
	v := s.values[o.Value]
	n, err := v.offset(p.Index)
	if err != nil {
		return Scalar{}, fmt.Errorf("sample of %s: %w", o.Name, err)
	}
	result, err := s.at(v, n)
	if err != nil {
		return Scalar{}, err
	}
	if s.chooser != nil { // where the last rounding would hide what is near a tie
		return result, nil
	}
	one := New(o.Value.Type)
	one.set(0, result)
	return one.rounded().at(0), nil
}

// offset is the row-major position of an index tuple.
func (v *lazy) offset(index []int) (int64, error) {
	extents := v.space.extents
	if v.input != nil {
		extents = extents64(v.input.Shape)
	}
	if len(index) != len(extents) {
		return 0, fmt.Errorf("expected %d indices, found %v", len(extents), index)
	}
	n := int64(0)
	for d, i := range index {
		if i < 0 || int64(i) >= extents[d] {
			return 0, fmt.Errorf("index %v is outside shape %v", index, extents)
		}
		n = n*extents[d] + int64(i)
	}
	return n, nil
}

func (s *Sampler) compile(v *ir.Value) (*lazy, error) {
	c := newCompiler(s.opts.Mode, s.symbols)
	c.leaf = func(e *ir.Expr) code { return s.load(c, e) }
	c.chooser = s.chooser
	space, body, err := c.value(v)
	if err != nil {
		return nil, err
	}
	return &lazy{name: v.Name, space: space, body: body, frame: c.frame(), known: map[int64]Scalar{}}, nil
}

func (s *Sampler) load(c *compiler, e *ir.Expr) code {
	from := s.values[e.From]
	if from.input != nil {
		return c.load(e, from.input)
	}
	offset := position(c.indices(e.Args), from.space.extents)
	return c.guarded(e, offset, func(f *frame, n int64) Scalar {
		v, err := s.at(from, n)
		if err != nil && f.err == nil {
			f.err = err
		}
		if s.chooser != nil && e.Type.IsFloat() {
			v.F = s.chooser.loaded(e.Type, v.F)
		}
		return v
	})
}

// rememberedBytes is about what one remembered element costs.
const rememberedBytes = 64

// at returns the element of v at position n, computing it at the first request.
func (s *Sampler) at(v *lazy, n int64) (Scalar, error) {
	if v.input != nil {
		return v.input.at(n), nil
	}
	if out, ok := v.known[n]; ok {
		return out, nil
	}
	if s.stopped != nil { // loops around this element still come to their end
		return Scalar{}, s.stopped
	}
	if s.kept%stopEvery == 0 && s.opts.Stop != nil && s.opts.Stop() {
		s.stopped = ErrStopped
		return Scalar{}, s.stopped
	}
	f := v.frame
	s.chooser.begin()
	v.space.seek(f, n)
	f.now++
	out := v.body.eval(f)
	if f.err != nil {
		return Scalar{}, f.err
	}
	if s.kept++; s.kept > s.opts.limit()/rememberedBytes {
		return Scalar{}, fmt.Errorf("value %s: the samples need more memory than the limit of %d bytes",
			v.name, s.opts.limit())
	}
	v.known[n] = out
	return out, nil
}

// seek sets the ranges to the point at linear position n.
func (b box) seek(f *frame, n int64) {
	for d := len(b.slots) - 1; d >= 0; d-- {
		f.at[b.slots[d]] = n % b.extents[d]
		n /= b.extents[d]
	}
}

func extents64(shape []int) []int64 {
	out := make([]int64, len(shape))
	for i, d := range shape {
		out[i] = int64(d)
	}
	return out
}
