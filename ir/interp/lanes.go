package interp

import (
	"math"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/num"
)

// Most of the time of an evaluation goes into a few floats: the terms of sums, and elements of large values. These are
// computed for a run of neighbouring points at a time, the lanes: each operation is a loop over the lanes, in place of a
// closure for each point. Every lane goes through the operations, and every sum through the terms, that one point at a
// time would, in the same order, so that results have the same bits.

const (
	mostLanes  = 256
	leastLanes = 8 // with fewer, a run costs more than its points one by one
)

// lanes computes a float expression at the points of a run along one range, from the current one on.
type lanes func(f *frame, out []float64)

// laner compiles expressions for runs along one range.
type laner struct {
	*compiler
	over *ir.Range
	slot int
	made map[*ir.Expr]lanes
}

// lanes compiles an expression, which is already compiled for single points, for runs along a range; nil where it is not of floats.
func (c *compiler) lanes(e *ir.Expr, over *ir.Range) *row {
	if !e.Type.IsFloat() {
		return nil
	}
	l := &laner{compiler: c, over: over, slot: c.slot(over), made: map[*ir.Expr]lanes{}}
	body := l.each(e)
	if c.chooser != nil {
		inner := body
		body = func(f *frame, out []float64) {
			inner(f, out)
			for i, v := range out {
				out[i] = c.chooser.ended(e.Type, v)
			}
		}
	}
	return &row{slot: l.slot, body: body, buffer: make([]float64, mostLanes)}
}

// row is an expression compiled for runs.
type row struct {
	slot   int
	body   lanes
	buffer []float64
}

// run computes n points from start on. What it returns is valid until the next run.
func (r *row) run(f *frame, start, n int64) []float64 {
	out := r.buffer[:n]
	r.into(f, start, out)
	return out
}

// into computes the points from start on that out has room for.
func (r *row) into(f *frame, start int64, out []float64) {
	f.at[r.slot] = start
	f.now++
	if f.run++; f.run%stopEvery == 0 {
		f.checkStop()
	}
	r.body(f, out)
}

// each compiles a node; one that is used more than once is computed once in a run.
func (l *laner) each(e *ir.Expr) lanes {
	if out, ok := l.made[e]; ok {
		return out
	}
	out := l.build(e)
	if l.uses[e] > 1 && len(e.Args) > 0 && ir.DependsOn(e, l.over) {
		out = remembered(out)
	}
	l.made[e] = out
	return out
}

// remembered computes a run at its first use.
func remembered(in lanes) lanes {
	var kept []float64
	known := uint64(0)
	return func(f *frame, out []float64) {
		if known != f.run {
			kept = append(kept[:0], out...)
			in(f, kept)
			known = f.run
		}
		copy(out, kept)
	}
}

func (l *laner) build(e *ir.Expr) lanes {
	switch {
	case !ir.DependsOn(e, l.over):
		return alike(l.compile(e).float)
	case e.Op == ir.OpLoad:
		return l.load(e)
	case !l.isFloatOp(e):
		return l.single(e)
	}
	a := l.each(e.Args[0])
	if e.Op == ir.OpCast {
		return l.rounded(e, a)
	}
	if len(e.Args) == 1 {
		compute := l.floatOp(e)
		return l.rounded(e, func(f *frame, out []float64) {
			a(f, out)
			for i, v := range out {
				out[i] = compute(v, 0, 0)
			}
		})
	}
	return l.rounded(e, l.binary(e, a, l.each(e.Args[1])))
}

// isFloatOp reports whether a node computes a float from floats that are all needed.
func (l *laner) isFloatOp(e *ir.Expr) bool {
	if len(e.Args) == 0 || len(e.Args) > 2 || e.Op == ir.OpReduce || e.Op != ir.OpCast && e.Op.Info().Float == nil {
		return false
	}
	for _, a := range e.Args {
		if !a.Type.IsFloat() {
			return false
		}
	}
	return l.chooser == nil || e.Op != ir.OpMul || len(factorsOf(e, e.Type)) < 3 // longer products are reassociated
}

// binary compiles an operation on two floats.
func (l *laner) binary(e *ir.Expr, a, b lanes) lanes {
	compute, second := l.floatOp(e), make([]float64, mostLanes)
	loop := func(out, y []float64) {
		for i, v := range out {
			out[i] = compute(v, y[i], 0)
		}
	}
	if l.chooser == nil && e.Op == ir.OpMul {
		loop = func(out, y []float64) {
			for i, v := range out {
				out[i] = v * y[i]
			}
		}
	}
	return func(f *frame, out []float64) {
		y := second[:len(out)]
		a(f, out)
		b(f, y)
		loop(out, y)
	}
}

// alike is a value that all lanes share.
func alike(one func(*frame) float64) lanes {
	return func(f *frame, out []float64) {
		v := one(f)
		for i := range out {
			out[i] = v
		}
	}
}

// single computes a node point by point.
func (l *laner) single(e *ir.Expr) lanes {
	one := l.compile(e).float
	return func(f *frame, out []float64) { l.points(f, out, one) }
}

// points computes the lanes from the current one on point by point.
func (l *laner) points(f *frame, out []float64, one func(*frame) float64) {
	start := f.at[l.slot]
	for i := range out {
		f.at[l.slot] = start + int64(i)
		f.now++
		out[i] = one(f)
	}
	f.at[l.slot] = start
	f.now++
}

// rounded brings results to the type of e, as round does for single points.
func (l *laner) rounded(e *ir.Expr, in lanes) lanes {
	t, compute := e.Type, e.Type.Info().Compute
	var round func(float64) float64
	switch {
	case l.chooser != nil:
		round = func(v float64) float64 { return l.chooser.result(e.Op, t, v) }
	case l.mode == Exact || t == ir.F64:
		return in
	case t == ir.F32:
		return func(f *frame, out []float64) {
			in(f, out)
			for i, v := range out {
				out[i] = float64(float32(v))
			}
		}
	default:
		round = func(v float64) float64 { return num.Round(t, num.Round(compute, v)) }
	}
	return func(f *frame, out []float64) {
		in(f, out)
		for i, v := range out {
			out[i] = round(v)
		}
	}
}

// source is where a run reads the elements of a value.
type source struct {
	extents []int64
	read    func(f *frame, first, step int64, out []float64) // the elements at first, first + step, ...
}

// source is all of a tensor.
func (t *Tensor) source() source {
	return source{extents64(t.Shape), func(_ *frame, first, step int64, out []float64) { t.read(first, step, out) }}
}

// read copies every step-th element.
func (t *Tensor) read(first, step int64, out []float64) {
	if step == 1 {
		copy(out, t.F[first:])
		return
	}
	for i := range out {
		out[i] = t.F[first]
		first += step
	}
}

// load compiles a read of a value along the run. Where the indices do not grow evenly, each lane is read for itself.
func (l *laner) load(e *ir.Expr) lanes {
	steps, ok := l.steps(e.Args)
	if !ok {
		return l.single(e)
	}
	one, from, at := l.compile(e).float, l.source(e), l.indices(e.Args)
	reread := l.chooser != nil && !e.From.IsInput()
	return func(f *frame, out []float64) {
		first, step, lo, hi := span(f, at, steps, from.extents, len(out))
		l.points(f, out[:lo], one)
		if hi < len(out) {
			f.at[l.slot] += int64(hi)
			l.points(f, out[hi:], one)
			f.at[l.slot] -= int64(hi)
		}
		if lo < hi {
			from.read(f, first+int64(lo)*step, step, out[lo:hi])
		}
		for i := lo; reread && i < hi; i++ {
			out[i] = l.chooser.loaded(e.Type, out[i])
		}
	}
}

// steps is by how much each index grows from lane to lane.
func (l *laner) steps(args []*ir.Expr) ([]int64, bool) {
	out := make([]int64, len(args))
	for d, a := range args {
		if !ir.DependsOn(a, l.over) {
			continue
		}
		stride, ok := ir.Stride(a, l.over, ir.Facts{})
		if !ok {
			return nil, false
		}
		if out[d], ok = ir.EvalSize(stride, l.symbols); !ok || out[d] < -farAway || out[d] > farAway {
			return nil, false
		}
	}
	return out, true
}

// farAway: indices beyond it are computed one by one, as those near the ends of 64 bits are rounded to these.
const farAway = math.MaxInt32

// span is where the first lane reads, how far the next is from it, and the lanes lo <= i < hi that read inside.
func span(f *frame, at []func(*frame) int64, steps, extents []int64, count int) (first, step int64, lo, hi int) {
	lo, hi = 0, count
	for d, index := range at {
		i, extent := index(f), extents[d]
		first, step = first*extent+i, step*extent+steps[d]
		from, to := inside(i, steps[d], extent, int64(count))
		lo, hi = max(lo, int(from)), min(hi, int(to))
	}
	if lo >= hi {
		return 0, 0, count, count
	}
	return first, step, lo, hi
}

// inside are the lanes from <= n < to of count at which start + n*step is an index of an axis.
func inside(start, step, extent, count int64) (from, to int64) {
	switch {
	case start < -farAway || start > farAway:
		return 0, 0
	case step == 0:
		if start < 0 || start >= extent {
			return 0, 0
		}
		return 0, count
	case step > 0:
		return min(max(0, ceilDiv(-start, step)), count), min(max(0, ceilDiv(extent-start, step)), count)
	}
	return min(max(0, ceilDiv(start-extent+1, -step)), count), min(max(0, ir.FloorDiv(start, -step)+1), count)
}

func ceilDiv(a, b int64) int64 { return -ir.FloorDiv(-a, b) }
