// Package interp is the reference interpreter: the definition of what a graph
// means. It is slow and obvious: one closure a node, one element at a time, one
// goroutine, values in the order of the graph. Long runs of elements and terms go
// through the nodes together (lanes.go), with the same results.
//
// Run evaluates a whole graph, Sample chosen elements of one that is too large
// for that and of other values what these need, and RunPlan a plan, kernel by kernel, to prove that it computes what
// its graph says.
//
// Integers are exact and wrap to the width of their type after each operation.
// Floats are float64 (Exact), rounded to their type after each operation
// (Strict), or one of the results that an engine may give (Sampled).
//
// The package must not know devices, schedules, files or the language. Its
// functions keep no state and are safe for concurrent use.
package interp

import (
	"fmt"
	"slices"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/diag"
)

// Mode says when floats are rounded.
type Mode uint8

const (
	// Exact computes in float64; only inputs and outputs have their type. It is
	// what the accuracy of every other engine is measured against.
	Exact Mode = iota
	// Strict rounds the result of each operation to the type it is computed in
	// (f32 for the narrow floats) and then to its own, as hardware does, and each
	// partial result of a reduction to the type it accumulates in, in index order.
	Strict
	// Sampled gives each result one of the values that the language allows an engine to
	// give it, drawn from Options.Seed: rounded or not where a graph is fast, with the
	// error of an approximate function, of a sum in another order. What several samples
	// agree on does not depend on rounding, and every engine must give it.
	Sampled
)

// Options says how to evaluate. The zero value is Exact with the default limit.
type Options struct {
	Mode     Mode
	Seed     uint64 // of Sampled
	MaxBytes int64  // limit on memory for values, 0 for 4 GiB; 8 bytes an element

	Stop func() bool // of samples: asked now and then whether to end with ErrStopped; nil for never
}

func (o Options) limit() int64 {
	if o.MaxBytes == 0 {
		return 4 << 30
	}
	return o.MaxBytes
}

// Run evaluates g for the given inputs, in the order of g.Inputs, and returns
// the results in the order of g.Results. Inputs are not changed. Where an index of a
// strict graph is outside, the error is an *ir.IndexError.
func Run(g *ir.Graph, inputs []*Tensor, opts Options) ([]*Tensor, error) {
	g = ir.Checked(g)
	symbols, err := bind(g, inputs)
	if err != nil {
		return nil, err
	}
	r := &runner{opts: opts, symbols: symbols, values: map[*ir.Value]*Tensor{}, lastUse: lastUses(g),
		chooser: newChooser(g, opts)}
	for i, v := range g.Inputs {
		r.values[v] = inputs[i].rounded()
	}
	for i, v := range g.Values {
		if err := r.value(i, v); err != nil {
			return nil, err
		}
	}
	out := make([]*Tensor, len(g.Outputs))
	for i, o := range g.Outputs {
		out[i] = r.values[o.Value]
		if opts.Mode != Sampled { // where the last rounding would hide what is near a tie
			out[i] = out[i].rounded()
		}
	}
	return checked(g, symbols, out)
}

// checked takes the results of checks off the outputs; an error is what they found.
func checked(g *ir.Graph, symbols map[string]int64, outputs []*Tensor) ([]*Tensor, error) {
	results := len(g.Results())
	if results == len(outputs) {
		return outputs, nil
	}
	var found []byte
	for _, t := range outputs[results:] {
		found = append(found, t.Bytes()...)
	}
	position, values := map[string]int{}, []int64(nil)
	for name, v := range symbols {
		position[name] = len(values)
		values = append(values, v)
	}
	if err := ir.FirstOutside(g.Name, ir.IndexChecks(g, position), values, found); err != nil {
		return nil, err
	}
	return outputs[:results], nil
}

// bind checks the inputs and returns the values of the symbols.
func bind(g *ir.Graph, inputs []*Tensor) (map[string]int64, error) {
	shapes := make([][]int, len(inputs))
	for i, t := range inputs {
		if i < len(g.Inputs) {
			if err := t.check(g.Inputs[i].Name, g.Inputs[i].Type); err != nil {
				return nil, err
			}
		}
		shapes[i] = t.Shape
	}
	return ir.BindGraph(g, shapes)
}

// runner holds the values of one evaluation as they are computed.
type runner struct {
	opts    Options
	symbols map[string]int64
	values  map[*ir.Value]*Tensor
	lastUse map[*ir.Value]int // position in Graph.Values of the last reader
	bytes   int64
	chooser *chooser
}

// lastUses finds when each value that is not an output can be dropped.
func lastUses(g *ir.Graph) map[*ir.Value]int {
	out := map[*ir.Value]int{}
	for i, v := range g.Values {
		for _, load := range v.Loads() {
			out[load.From] = i
		}
	}
	for _, o := range g.Outputs {
		out[o.Value] = len(g.Values)
	}
	return out
}

// value computes v, the value at position i, and drops what is no longer read.
func (r *runner) value(i int, v *ir.Value) error {
	if !v.IsInput() {
		t, err := r.compute(v)
		if err != nil {
			return fmt.Errorf("%svalue %s: %w", at(v.Origin.Span), v.Name, err)
		}
		r.values[v] = t
	}
	for _, load := range v.Loads() {
		if t := r.values[load.From]; r.lastUse[load.From] <= i && t != nil {
			delete(r.values, load.From)
			r.bytes -= 8 * int64(t.Len())
		}
	}
	return nil
}

func (r *runner) compute(v *ir.Value) (*Tensor, error) {
	c := newCompiler(r.opts.Mode, r.symbols)
	c.chooser = r.chooser
	c.chooser.begin()
	c.leaf = func(e *ir.Expr) code { return c.load(e, r.values[e.From]) }
	c.source = func(e *ir.Expr) source { return r.values[e.From].source() }
	points, body, err := c.value(v)
	if err != nil {
		return nil, err
	}
	out, err := r.alloc(v.Type, points.extents)
	if err != nil {
		return nil, err
	}
	compute := whole(points, body, c.segments(v, points))
	f := c.frame()
	compute(f, out)
	return out, f.err
}

// value compiles a normal-form value: its space and what it is at one point.
func (c *compiler) value(v *ir.Value) (box, code, error) {
	points, err := c.box(v.Axes)
	if err != nil {
		return box{}, code{}, err
	}
	if v.Reduce == nil {
		return points, c.root(v.Body), nil
	}
	reduced, err := c.box(v.Reduce.Ranges)
	if err != nil {
		return box{}, code{}, err
	}
	if v.Reduce.Rank != nil {
		return points, c.round(ir.OpLoad, v.Type, c.newOrder(v).code(reduced, v.Type)), nil
	}
	if p := c.prefix(v); p != nil {
		return points, c.round(ir.OpLoad, v.Type, p.code(reduced.len(), v.Type)), nil
	}
	body := c.reduction(v.Reduce, v.Body, reduced, v.Type)
	return points, c.round(ir.OpLoad, v.Type, body), nil
}

// load compiles a read of a dense value.
func (c *compiler) load(e *ir.Expr, from *Tensor) code {
	offset := position(c.indices(e.Args), extents64(from.Shape))
	if c.chooser != nil && from.F != nil && !e.From.IsInput() {
		return c.guarded(e, offset, func(_ *frame, n int64) Scalar { return Scalar{F: c.chooser.loaded(e.Type, from.F[n])} })
	}
	return c.guarded(e, offset, func(_ *frame, n int64) Scalar { return from.at(n) })
}

func (c *compiler) indices(args []*ir.Expr) []func(*frame) int64 {
	out := make([]func(*frame) int64, len(args))
	for i, a := range args {
		out[i] = c.compile(a).int
	}
	return out
}

// guarded compiles a read at a flat offset, with the fill of e, or an error,
// where the offset is negative.
func (c *compiler) guarded(e *ir.Expr, offset func(*frame) int64, read func(*frame, int64) Scalar) code {
	fill := c.outside(e)
	get := func(f *frame) Scalar {
		if n := offset(f); n >= 0 {
			return read(f, n)
		}
		return fill(f)
	}
	if e.Type.IsFloat() {
		return code{float: func(f *frame) float64 { return get(f).F }}
	}
	return code{int: func(f *frame) int64 { return get(f).I }}
}

// outside compiles what a read outside gives.
func (c *compiler) outside(e *ir.Expr) func(*frame) Scalar {
	if e.Fill != nil {
		return c.compile(e.Fill).eval
	}
	name := readName(e)
	return func(f *frame) Scalar {
		if f.err == nil {
			f.err = fmt.Errorf("%sread outside %s, which has no fill", at(e.Span), name)
		}
		return Scalar{}
	}
}

func readName(e *ir.Expr) string {
	if e.From != nil {
		return e.From.Name
	}
	return e.Arg.Name
}

// alloc makes a tensor of the given extents within the memory limit.
func (r *runner) alloc(t ir.DType, extents []int64) (*Tensor, error) {
	shape, elements := make([]int, len(extents)), int64(1)
	limit := r.opts.limit()
	if slices.Contains(extents, 0) {
		elements = 0
	}
	for i, e := range extents {
		if e > 0 && elements > limit/e {
			return nil, fmt.Errorf("shape %v needs more memory than the limit of %d bytes; evaluate samples",
				extents, limit)
		}
		shape[i], elements = int(e), elements*e
	}
	if r.bytes += 8 * elements; r.bytes > limit {
		return nil, fmt.Errorf("values need %d bytes, the limit is %d; evaluate samples", r.bytes, limit)
	}
	return New(t, shape...), nil
}

// at is the prefix of an error about a place in the source.
func at(span diag.Span) string {
	if span.IsZero() {
		return ""
	}
	return span.String() + ": "
}

func evalSize(e *ir.Expr, symbols map[string]int64) (int64, error) {
	v, ok := ir.EvalSize(e, symbols)
	if !ok || v < 0 {
		return 0, fmt.Errorf("size %d is not between 0 and 2^63-1", v)
	}
	return v, nil
}
