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
	kept    int64    // elements computed one by one
	bytes   int64    // of what is remembered
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
		s.values[v] = &lazy{name: v.Name, dtype: v.Type, input: true, all: inputs[i].rounded()}
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

// lazy is a value that is computed element by element, until so many have been asked for that all are computed.
type lazy struct {
	name    string
	dtype   ir.DType
	input   bool
	all     *Tensor // every element, of an input, and once they are computed; else nil
	space   box
	body    code
	run     segment // nil where elements are computed one by one
	whole   func(*frame, *Tensor)
	frame   *frame
	known   *pages // the elements computed one by one
	partial bool   // elements stay to be computed one by one
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
	if v.input {
		extents = extents64(v.all.Shape)
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
	c.source = func(e *ir.Expr) source { return s.source(s.values[e.From]) }
	c.chooser = s.chooser
	space, body, err := c.value(v)
	if err != nil {
		return nil, err
	}
	run := c.segments(v, space)
	out := &lazy{name: v.Name, dtype: v.Type, space: space, body: body, run: run, whole: whole(space, body, run), frame: c.frame(), known: newPages(v.Type, space.len())}
	out.frame.stop = func() error { s.askStop(); return s.stopped }
	return out, nil
}

func (s *Sampler) load(c *compiler, e *ir.Expr) code {
	from := s.values[e.From]
	if from.input {
		return c.load(e, from.all)
	}
	offset := position(c.indices(e.Args), from.space.extents)
	return c.guarded(e, offset, func(f *frame, n int64) Scalar {
		v := s.demand(f, from, n)
		if s.chooser != nil && e.Type.IsFloat() {
			v.F = s.chooser.loaded(e.Type, v.F)
		}
		return v
	})
}

// source is a value whose elements are computed when they are read.
func (s *Sampler) source(v *lazy) source {
	if v.input {
		return v.all.source()
	}
	return source{v.space.extents, func(f *frame, first, step int64, out []float64) {
		for len(out) > 0 && f.err == nil {
			n := 1
			if v.all != nil {
				v.all.read(first, step, out)
				return
			} else if n = s.unknown(v, first, step, len(out)); n < leastLanes {
				out[0], n = s.demand(f, v, first).F, 1
			} else {
				s.demandRun(f, v, first, out[:n])
			}
			first, out = first+int64(n)*step, out[n:]
		}
	}}
}

// unknown is how many elements from first on can be computed as a run: neighbours of one row that are not known.
func (s *Sampler) unknown(v *lazy, first, step int64, most int) int {
	if v.run == nil || step != 1 || v.isEnough() {
		return 0
	}
	extent, n := v.space.extents[len(v.space.extents)-1], 0
	for most = min(most, int(extent-first%extent)); n < most && !v.known.has(first+int64(n)); n++ {
	}
	return n
}

// demandRun computes elements as unknown counts them, for the evaluation of f.
func (s *Sampler) demandRun(f *frame, v *lazy, first int64, out []float64) {
	if s.askStop(); s.stopped != nil {
		f.err = s.stopped
		return
	}
	own := v.frame
	own.err = nil
	s.chooser.begin()
	v.space.seek(own, first)
	v.run(own, own.at[v.space.slots[len(v.space.slots)-1]], out)
	if f.err = own.err; f.err != nil {
		return
	}
	for i := 0; i < len(out) && f.err == nil; i++ {
		f.err = s.remember(v, first+int64(i), Scalar{F: out[i]})
	}
}

// demand is the element of v at position n for the evaluation of f, which is told of errors. Where enough of v is asked for, all of
// it is computed.
func (s *Sampler) demand(f *frame, v *lazy, n int64) Scalar {
	if v.isEnough() {
		s.computeAll(v)
	}
	out, err := s.at(v, n)
	if err != nil && f.err == nil {
		f.err = err
	}
	return out
}

// isEnough reports whether so many elements were asked for that all are computed.
func (v *lazy) isEnough() bool {
	return v.all == nil && !v.partial && v.known.count > max(wholeLeast, v.known.elements/wholePart)
}

const (
	// Where more than this part of a value has been asked for, all of it is computed, which takes less time for an element: most
	// values are needed nearly whole, or little of them.
	wholePart  = 3
	wholeLeast = 64 // elements

	elementBytes = 8 // of an element of a tensor
)

// at returns the element of v at position n, computing it at the first request.
func (s *Sampler) at(v *lazy, n int64) (Scalar, error) {
	if v.all != nil {
		return v.all.at(n), nil
	}
	if out, ok := v.known.get(n); ok {
		return out, nil
	}
	if s.kept%stopEvery == 0 {
		s.askStop()
	}
	if s.stopped != nil { // loops around this element still come to their end
		return Scalar{}, s.stopped
	}
	f := v.frame
	f.err = nil
	s.chooser.begin()
	v.space.seek(f, n)
	f.now++
	out := v.body.eval(f)
	if f.err != nil {
		return Scalar{}, f.err
	}
	return out, s.remember(v, n, out)
}

// remember keeps an element.
func (s *Sampler) remember(v *lazy, n int64, x Scalar) error {
	s.kept++
	if s.bytes += v.known.set(n, x); s.bytes > s.opts.limit() {
		return fmt.Errorf("value %s: the samples need more memory than the limit of %d bytes", v.name, s.opts.limit())
	}
	return nil
}

// askStop asks whether to stop.
func (s *Sampler) askStop() {
	if s.stopped == nil && s.opts.Stop != nil && s.opts.Stop() {
		s.stopped = ErrStopped
	}
}

// computeAll computes all elements of v, where there is room for them. Those that are known stay as they are. Where one of the others cannot
// be computed, such as one that reads outside, elements are still computed one by one.
func (s *Sampler) computeAll(v *lazy) {
	v.partial = true
	elements := v.space.len()
	if elements > (s.opts.limit()-s.bytes)/elementBytes {
		return
	}
	out, f := New(v.dtype, shapeOf(v.space)...), v.frame
	f.err = nil
	s.chooser.begin()
	v.whole(f, out)
	if f.err != nil {
		return
	}
	v.known.each(out.set)
	s.bytes += elements*elementBytes - v.known.bytes
	v.all, v.known = out, nil
}

// seek sets the ranges to the point at linear position n.
func (b box) seek(f *frame, n int64) {
	for d := len(b.slots) - 1; d >= 0; d-- {
		f.at[b.slots[d]] = n % b.extents[d]
		n /= b.extents[d]
	}
}

// shapeOf is the shape of a value with such points.
func shapeOf(points box) []int {
	out := make([]int, len(points.extents))
	for d, extent := range points.extents {
		out[d] = int(extent)
	}
	return out
}

func extents64(shape []int) []int64 {
	out := make([]int64, len(shape))
	for i, d := range shape {
		out[i] = int64(d)
	}
	return out
}
