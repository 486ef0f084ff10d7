package interp

import (
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/num"
)

// segment computes a run of elements along the last axis of a value, in the row that the frame stands at.
type segment func(f *frame, start int64, out []float64)

// segments compiles runs of elements of a value; nil where it is computed element by element.
func (c *compiler) segments(v *ir.Value, points box) segment {
	last := len(points.extents) - 1
	if last < 0 || points.extents[last] < leastLanes || c.source == nil {
		return nil
	}
	if v.Reduce == nil {
		if row := c.lanes(v.Body, v.Axes[last]); row != nil {
			return row.into
		}
	} else if a := c.across(v, points); a != nil {
		return a.into
	}
	return nil
}

// whole computes all elements of a value, whose elements are body at points.
func whole(points box, body code, run segment) func(*frame, *Tensor) {
	if run == nil {
		return func(f *frame, out *Tensor) {
			points.each(f, func(n int64) {
				if n%stopEvery == 0 {
					f.checkStop()
				}
				out.set(n, body.eval(f))
			})
		}
	}
	last := len(points.extents) - 1
	extent, rows := points.extents[last], box{points.slots[:last], points.extents[:last]}
	return func(f *frame, out *Tensor) {
		rows.each(f, func(n int64) {
			for start := int64(0); start < extent && f.err == nil; start += mostLanes {
				run(f, start, out.F[n*extent+start:n*extent+min(start+mostLanes, extent)])
			}
		})
	}
}

// across is a reduction for a run of elements along the last axis of its value: the terms at one point of its ranges are
// computed and folded for all of them.
type across struct {
	*fold
	over    box
	body    *row
	results func([]float64) // brings results to the type of the value
}

// across compiles a value as such; nil where that is not possible, or where runs along its last range are longer.
func (c *compiler) across(v *ir.Value, points box) *across {
	r, axis := v.Reduce, v.Axes[len(v.Axes)-1]
	switch {
	case c.chooser != nil || r.Rank != nil || r.Op.IsArg() || !v.Body.Type.IsFloat() || len(r.Ranges) == 0,
		r.Where != nil && (ir.DependsOn(r.Where, axis) || c.prefix(v) != nil):
		return nil
	}
	over, err := c.box(r.Ranges)
	if err != nil || min(over.extents[len(over.extents)-1], mostLanes) > points.extents[len(points.extents)-1] {
		return nil
	}
	out := &across{fold: c.newFold(r.Op, r.Where, v.Body), over: over, results: func([]float64) {}}
	out.body = c.lanes(v.Body, axis)
	if t := v.Type; c.mode == Strict && t != ir.F64 {
		out.results = func(list []float64) {
			for i, x := range list {
				list[i] = num.Round(t, num.Round(t.Info().Compute, x))
			}
		}
	}
	return out
}

func (a *across) into(f *frame, start int64, out []float64) {
	for i := range out {
		out[i] = a.identity.F
	}
	a.over.each(f, func(int64) {
		f.at[a.body.slot] = start
		if a.takesPart(f) {
			a.combineAll(out, a.body.run(f, start, int64(len(out))))
		}
	})
	a.results(out)
}

// combineAll folds a term into each of the running values.
func (a *across) combineAll(acc, terms []float64) {
	if a.op == ir.Sum && a.round == nil {
		for i, v := range terms {
			acc[i] += v
		}
		return
	}
	combine := a.op.Info().Combine.Info().Float
	for i, v := range terms {
		a.acc.F = acc[i]
		a.setFloat(combine(acc[i], v, 0))
		acc[i] = a.acc.F
	}
}
