package passes

import (
	"iter"
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// loopOperations is the operations on f32 in the time in which one byte is moved; a multiplication and an addition are two. It is as true for
// all devices as chainOperations, which is that of tensor cores.
const loopOperations = 8

// Limits of taking pairs out of sums of products.
const (
	pairGain    = 2       // how many times longer the sum has to take as it is
	pairBytes   = 1 << 24 // bytes that are moved in the time that has to be saved: that of a launch or two
	pairFactors = 6       // most factors of a sum
)

// splitPairs sums products of three and more factors two at a time where that takes less work: the sum over i and j of a[i] b[i, j] c[j] is that
// over j of c[j] times the sum over i of a[i] b[i, j]. Gradients of mixtures of experts, and of forms in three tensors, are such sums. Often
// the sum that is taken out exists, because another gradient needs it. It does so for sums that tensor cores may compute, whose
// factors are taken out of sums anyway. Sums of products that are read for these alone are such sums too.
func splitPairs(g *ir.Graph) {
	if !mayAddKernels(g) {
		return
	}
	p, changed := &pairs{g, algebra.DefaultSizes(g), widenedIn(g), countReaders(g), newReaches(g)}, false
	insertBefore(g, func(v *ir.Value) (made []*ir.Value) {
		made = p.sumFirst(v)
		changed = changed || made != nil
		for best := p.best(v); best != nil; best = p.best(v) {
			made, changed = append(made, best.inner), true
			v.Body, v.Reduce = best.body, best.reduce
		}
		return made
	})
	if changed {
		mergeEqual(g)
	}
}

type pairs struct {
	graph *ir.Graph
	sizes map[string]int64
	wide  map[*ir.Value]bool // elements of 16 bits in f32

	readers map[*ir.Value]int
	reaches *reaches
}

// factors are those of a body, without what only rounds them. Under fast, kernels do not round there.
func (p *pairs) factors(body *ir.Expr) []*ir.Expr {
	return unrounded(form.Expand(body, p.wide))
}

// pair is the sum of the products of two factors, and the sum that it was taken out of, over it.
type pair struct {
	inner  *ir.Value
	body   *ir.Expr
	reduce *ir.Reduction // nil where nothing is left to be summed
	exists bool          // the graph has such a sum
}

// best is the pair with which a sum takes the least time; nil where none is worth a kernel.
func (p *pairs) best(v *ir.Value) (best *pair) {
	if v.Reduce == nil || v.Reduce.Op != ir.Sum || v.Reduce.Where != nil || !v.Type.IsFloat() {
		return nil
	}
	factors := p.factors(v.Body)
	if len(factors) < 3 || len(factors) > pairFactors {
		return nil
	}
	whole, onTiles := p.time(v), p.onTiles(v, factors)
	least := min(whole/pairGain, whole-pairBytes)
	for i := range factors {
		for j := range i + 1 {
			pair := p.pair(v, factors, j, i)
			if pair == nil || !onTiles && !form.IsTileProduct(pair.inner) {
				continue
			}
			outer := *v
			outer.Body, outer.Reduce = pair.body, pair.reduce
			time := p.time(&outer)
			if !pair.exists {
				time += p.time(pair.inner)
			}
			if time < least {
				best, least = pair, time
			}
		}
	}
	return best
}

// onTiles reports whether a sum has a product for tensor cores in it.
func (p *pairs) onTiles(v *ir.Value, factors []*ir.Expr) bool {
	whole := *v
	whole.Body = form.ProductOf(wide(factors))
	return form.IsTileProduct(&whole)
}

// pair takes two factors out of a sum, or one if i is j, with the ranges on which they alone depend; nil if there are no such ranges.
func (p *pairs) pair(v *ir.Value, factors []*ir.Expr, i, j int) *pair {
	product, beside := ir.Cast(factors[i], ir.F32), slices.Delete(slices.Clone(factors), j, j+1)
	if i != j {
		product, beside = ir.Apply(ir.OpMul, product, ir.Cast(factors[j], ir.F32)), slices.Delete(beside, i, i+1)
	}
	own, others := ir.FreeRanges(product), ir.FreeRanges(form.ProductOf(beside))
	var ranges, summed, left []*ir.Range
	for _, r := range v.Reduce.Ranges {
		if own[r] && !others[r] {
			summed = append(summed, r)
		} else {
			left = append(left, r)
		}
	}
	for _, r := range append(slices.Clone(v.Axes), left...) {
		if own[r] {
			ranges = append(ranges, r)
		}
	}
	if len(summed) == 0 {
		return nil
	}
	inner := p.sum(v, product, ranges, summed)
	out := &pair{inner: inner, exists: p.exists(inner, ranges)}
	out.body = ir.Cast(form.ProductOf(append(wide(beside), ir.Load(inner, ir.Indices(ranges), nil))), v.Body.Type).At(v.Body.Span)
	if len(left) > 0 {
		reduction := *v.Reduce
		reduction.Ranges, out.reduce = left, &reduction
	} else {
		out.body = ir.Cast(out.body, v.Type)
	}
	return out
}

// wide is factors in f32.
func wide(factors []*ir.Expr) (out []*ir.Expr) {
	for _, f := range factors {
		out = append(out, ir.Cast(f, ir.F32))
	}
	return out
}

// sum is a new value: the sum of a body, which is written over the ranges of v, with some of these as axes.
func (p *pairs) sum(v *ir.Value, body *ir.Expr, ranges, summed []*ir.Range) *ir.Value {
	at, shape := map[*ir.Range]*ir.Expr{}, []*ir.Expr(nil)
	for _, r := range ranges {
		shape = append(shape, r.Extent)
	}
	axes := p.graph.NewAxes(shape)
	for d, r := range ranges {
		at[r] = axes[d].At()
	}
	var fresh []*ir.Range
	for _, r := range summed {
		f := p.graph.NewRange(r.Name, r.Extent)
		at[r], fresh = f.At(), append(fresh, f)
	}
	return p.graph.Adopt(&ir.Value{Name: v.Name + "_pair", Type: ir.F32, Axes: axes, Body: ir.Substitute(body, at),
		Reduce: &ir.Reduction{Op: ir.Sum, Ranges: fresh}, Origin: v.Origin})
}

// exists reports whether the graph has a sum that is inner up to the order of its axes and of its factors. It gives inner, and the ranges
// that are its indices, that order, so that the two become one value.
func (p *pairs) exists(inner *ir.Value, ranges []*ir.Range) bool {
	bodies := []*ir.Expr{inner.Body}
	if inner.Body.Op == ir.OpMul {
		bodies = append(bodies, ir.Apply(ir.OpMul, inner.Body.Args[1], inner.Body.Args[0]))
	}
	for _, u := range p.graph.Values {
		if u.Reduce == nil || len(u.Axes) != len(inner.Axes) || len(u.Reduce.Ranges) != len(inner.Reduce.Ranges) {
			continue
		}
		for order := range orders(len(ranges)) {
			like := *inner
			like.Axes = picked(inner.Axes, order)
			for _, body := range bodies {
				if like.Body = body; form.SameDefinition(u, &like) {
					copy(ranges, picked(ranges, order))
					*inner = like
					return true
				}
			}
		}
	}
	return false
}

// orders yields the orders of n places, for small n the given one first.
func orders(n int) iter.Seq[[]int] {
	return func(yield func([]int) bool) {
		var from func(order []int) bool
		from = func(order []int) bool {
			if len(order) == n {
				return yield(order)
			}
			for i := range n {
				if !slices.Contains(order, i) && !from(append(slices.Clone(order), i)) {
					return false
				}
			}
			return true
		}
		from(nil)
	}
}

// time is how long a value takes, in bytes moved.
func (p *pairs) time(v *ir.Value) float64 {
	bytes, seen := algebra.BytesAt(v, p.sizes), map[*ir.Value]bool{}
	for _, l := range v.Loads() {
		if !seen[l.From] {
			seen[l.From] = true
			bytes += algebra.BytesAt(l.From, p.sizes)
		}
	}
	factors := p.factors(v.Body)
	operations, rate := 2*algebra.PointsAt(algebra.AllRanges(v), p.sizes)*float64(max(1, len(factors)-1)), float64(loopOperations)
	if a, b := form.SidesOf(v); v.Reduce != nil && a != nil && b != nil && form.IsTileProduct(v) {
		rate = chainOperations
		for _, side := range []*ir.Expr{a, b} {
			if !form.PlainLoad(side) {
				bytes += 2 * float64(side.Type.Size()) * algebra.PointsAt(algebra.RangesOf(ir.FreeRanges(side)), p.sizes) // it is an operand that is written ahead
			}
		}
	}
	return max(bytes, operations/rate)
}
