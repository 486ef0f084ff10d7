package interp

import (
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/num"
)

// fold is a reduction under way.
type fold struct {
	op       ir.Monoid
	where    func(*frame) int64 // nil: every point takes part
	body     code
	bodyType ir.DType
	identity Scalar
	round    func(float64) float64   // to the accumulator's type; nil in Exact mode
	sampled  func([]float64) float64 // in Sampled mode: one of the results that an engine may get from the terms
	row      *row                    // computes the body for runs along a range; nil where it is computed point by point
	along    int                     // that range

	acc  Scalar // the running value; for argmax and argmin, of the best element
	best int64  // argmax and argmin: the position of the best element
	seen bool   // whether a point has taken part
}

// newFold compiles a reduction of body.
func (c *compiler) newFold(op ir.Monoid, where, body *ir.Expr) *fold {
	r := &fold{op: op, body: c.root(body), bodyType: body.Type}
	if where != nil {
		r.where = c.root(where).int
	}
	id := op.Identity(body.Type)
	r.identity = Scalar{F: id.Val, I: id.Int}
	t := op.Accumulator(body.Type)
	switch {
	case !t.IsFloat():
	case c.chooser != nil:
		r.sampled = func(terms []float64) float64 { return c.chooser.fold(op.Info().Combine, t, id.Val, terms) }
	case c.mode == Strict && t != ir.F64:
		r.round = func(v float64) float64 { return num.Round(t, v) }
	}
	return r
}

// mostInside is how many points the ranges behind that of a run may have: their terms lie between those of the run, and wait for these.
const mostInside = 64

// foldOver compiles the reduction r of body over the points of b, in runs where a range is long: the last, or one before short ones.
func (c *compiler) foldOver(r *ir.Reduction, body *ir.Expr, b box) *fold {
	out, inside := c.newFold(r.Op, r.Where, body), int64(1)
	for p := len(b.extents) - 1; p >= 0 && c.source != nil && inside <= mostInside && (r.Where == nil || inside == 1); p-- {
		if b.extents[p] >= leastLanes {
			out.row, out.along = c.lanes(body, r.Ranges[p]), p
			break
		}
		inside *= b.extents[p]
	}
	return out
}

func (r *fold) reset() { r.acc, r.best, r.seen = r.identity, 0, false }

// step folds the current point, the one with index n.
func (r *fold) step(f *frame, n int64) {
	if !r.takesPart(f) {
		return
	}
	v := r.body.eval(f)
	if r.op.IsArg() {
		if !r.seen || r.beats(v, n) {
			r.acc, r.best = v, n
		}
	} else {
		r.combine(v)
	}
	r.seen = true
}

// takesPart reports whether the predicate holds at the current point.
func (r *fold) takesPart(f *frame) bool { return r.where == nil || r.where(f) != 0 }

func (r *fold) combine(v Scalar) {
	info := r.op.Info().Combine.Info()
	if !r.bodyType.IsFloat() {
		r.acc.I = info.Int(r.acc.I, v.I, 0)
		return
	}
	r.setFloat(info.Float(r.acc.F, v.F, 0))
}

// scale multiplies the running value.
func (r *fold) scale(by float64) { r.setFloat(r.acc.F * by) }

func (r *fold) setFloat(v float64) {
	if r.round != nil {
		v = r.round(v)
	}
	r.acc.F = v
}

// beats reports whether v at index n comes before the best element so far. NaN comes before
// everything else; of equal elements the one with the smaller index comes first.
func (r *fold) beats(v Scalar, n int64) bool {
	compare := r.op.Info().Combine.Info()
	switch {
	case !r.bodyType.IsFloat() && v.I != r.acc.I:
		return compare.Int(v.I, r.acc.I, 0) != 0
	case v.F == r.acc.F || v.F != v.F && r.acc.F != r.acc.F:
		return n < r.best
	case r.acc.F != r.acc.F:
		return false
	}
	return v.F != v.F || compare.Float(v.F, r.acc.F, 0) != 0
}

// result is the folded value.
func (r *fold) result() Scalar {
	if r.op.IsArg() {
		return Scalar{I: r.best}
	}
	return r.acc
}

// code compiles the whole reduction over the points of b.
func (r *fold) code(b box, t ir.DType) code {
	run := r.inOrder(b)
	if r.sampled != nil && !r.op.IsArg() {
		run = r.allTerms(b)
	}
	if t.IsFloat() {
		return code{float: func(f *frame) float64 { run(f); return r.result().F }}
	}
	return code{int: func(f *frame) int64 { run(f); return r.result().I }}
}

// inOrder folds the points of b one after the other.
func (r *fold) inOrder(b box) func(*frame) {
	if r.row == nil {
		return func(f *frame) {
			r.reset()
			b.each(f, func(n int64) { r.step(f, n) })
		}
	}
	return func(f *frame) {
		r.reset()
		r.runs(f, b, r.takeRun)
	}
}

// allTerms gathers the terms at the points of b before it folds them.
func (r *fold) allTerms(b box) func(*frame) {
	return func(f *frame) {
		var terms []float64
		if r.row != nil {
			r.runs(f, b, func(values []float64, _ int64) { terms = append(terms, values...) })
		} else {
			b.each(f, func(int64) {
				if r.takesPart(f) {
					terms = append(terms, r.body.eval(f).F)
				}
			})
		}
		r.acc.F = r.sampled(terms)
	}
}

// runs visits the values at the points of b that take part, in order, many at a time.
func (r *fold) runs(f *frame, b box, visit func(values []float64, n int64)) {
	if b.len() == 0 {
		return
	}
	extent, inside := b.extents[r.along], box{b.slots[r.along+1:], b.extents[r.along+1:]}
	terms := make([]float64, 0)
	if inside.len() > 1 {
		terms = make([]float64, min(mostLanes, extent)*inside.len())
	}
	box{b.slots[:r.along], b.extents[:r.along]}.each(f, func(n int64) {
		for from := int64(0); from < extent && f.err == nil; {
			to := min(from+mostLanes, extent)
			from, to = r.takingPart(f, from, to)
			switch {
			case from >= to:
			case len(terms) > 0:
				visit(r.between(f, inside, from, terms[:(to-from)*inside.len()]), (n*extent+from)*inside.len())
			default:
				visit(r.row.run(f, from, to-from), n*extent+from)
			}
			from = to
		}
	})
}

// between computes terms from a point of the run's range on, each with those of the ranges behind.
func (r *fold) between(f *frame, inside box, from int64, terms []float64) []float64 {
	step := int(inside.len())
	inside.each(f, func(n int64) {
		for i, v := range r.row.run(f, from, int64(len(terms)/step)) {
			terms[i*step+int(n)] = v
		}
	})
	return terms
}

// takingPart is the first run between two points of the last range that takes part as a whole; an empty one where none does.
func (r *fold) takingPart(f *frame, from, to int64) (int64, int64) {
	if r.where == nil {
		return from, to
	}
	at := func(i int64) bool {
		f.at[r.row.slot] = i
		f.now++
		return r.takesPart(f)
	}
	for from < to && !at(from) {
		from++
	}
	for i := from + 1; i < to; i++ {
		if !at(i) {
			return from, i
		}
	}
	return from, to
}

// takeRun folds the values of a run, the first of which has index n.
func (r *fold) takeRun(values []float64, n int64) {
	switch {
	case r.op.IsArg():
		for i, v := range values {
			if !r.seen || r.beats(Scalar{F: v}, n+int64(i)) {
				r.acc, r.best, r.seen = Scalar{F: v}, n+int64(i), true
			}
		}
	case r.op == ir.Sum && r.round == nil:
		for _, v := range values {
			r.acc.F += v
		}
	default:
		combine := r.op.Info().Combine.Info().Float
		for _, v := range values {
			r.setFloat(combine(r.acc.F, v, 0))
		}
	}
}
