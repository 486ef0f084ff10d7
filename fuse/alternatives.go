package fuse

import (
	"fmt"
	"math"
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/forecast"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/fuse/passes"
	"github.com/fusec/fusec/ir"
)

// Passes decide at the sizes that a program is usually run at (its default sizes). At other sizes the
// decision may be wrong and cost much. For those sizes the graph is planned again, and at run time the sizes
// choose among the plans.

// otherGraphs rewrites the graph at other sizes, and returns the results in which the passes decide in another way than
// for work, which is the graph that they rewrote at the default sizes. Each says for which sizes it is, which no other
// of them is for; work is for the sizes that remain.
func otherGraphs(g, work *ir.Graph, opts Options) ([]*ir.Graph, error) {
	if len(work.Symbols) == 0 || g.OneKernel || g.HasState() {
		return nil, nil
	}
	opts.Observe = nil
	for _, other := range otherSizes(g, work, opts.Device) {
		rewritten, err := normalized(other, work, opts)
		if err != nil {
			return nil, err
		}
		if (work.For == nil) == (rewritten.For == nil) {
			continue
		}
		if work.For != nil {
			rewritten.For = ir.Apply(ir.OpNot, work.For)
		}
		return []*ir.Graph{rewritten}, nil
	}
	if work.For != nil {
		return nil, nil
	}
	return longAlternatives(g, work, opts)
}

// longAlternatives rewrites the graph for sizes at which reductions are long that have few points at the default sizes, where
// one block adds them up: a million points need all blocks. There is one for each size that may be long, up to a
// number; sizes beside it are as usual in it.
func longAlternatives(g, work *ir.Graph, opts Options) (out []*ir.Graph, err error) {
	var before *ir.Expr // the sizes of the alternatives so far
	for _, long := range longReductions(g, work) {
		rewritten, err := normalized(long.among(g), work, opts)
		if err != nil {
			return nil, err
		}
		if rewritten.For != nil || len(rewritten.Values) == len(work.Values) {
			continue
		}
		rewritten.For = long.when
		if before != nil {
			rewritten.For = algebra.And(ir.Apply(ir.OpNot, before), long.when)
		}
		before = ir.Join(ir.OpOr, before, long.when)
		if out = append(out, rewritten); len(out) == mostLong {
			break
		}
	}
	return out, nil
}

// mostLong is the most plans of a graph for long reductions.
const mostLong = 2

// A longSize is the symbols of a number of points, and the condition that a reduction over so many is long.
type longSize struct {
	symbols []string
	when    *ir.Expr
}

// longReductions is the sizes of the reductions of a graph that may be long and have few results, and are short at the default
// sizes. Results are few if a block for each leaves half of the multiprocessors idle. Passes have left these reductions as
// they are: what they have cut already, as the keys of attention, has chunks at all sizes.
func longReductions(g, work *ir.Graph) (out []longSize) {
	sizes, whole := algebra.DefaultSizes(g), map[string]*ir.Expr{}
	for _, v := range work.Values {
		if v.Reduce != nil {
			whole[v.Name] = algebra.Product(v.Reduce.Ranges)
		}
	}
	for _, v := range g.Values {
		if v.Reduce == nil || 2*form.RowsAt(v, sizes) >= ir.ReferenceSMs || algebra.PointsAt(v.Reduce.Ranges, sizes) >= forecast.SplitLeast {
			continue
		}
		if left := whole[v.Name]; left == nil || !ir.SameSize(left, algebra.Product(v.Reduce.Ranges)) {
			continue
		}
		points := algebra.Product(v.Reduce.Ranges)
		symbols := symbolsIn(points)
		if len(symbols) == 0 {
			continue
		}
		when := ir.Simplify(ir.Apply(ir.OpLe, ir.IntConst(forecast.SplitLeast), points), g.Facts())
		i := slices.IndexFunc(out, func(l longSize) bool { return slices.Equal(l.symbols, symbols) })
		if i < 0 {
			out = append(out, longSize{symbols, when})
		} else if !ir.Equal(out[i].when, when) {
			out[i].when = ir.Join(ir.OpOr, out[i].when, when)
		}
	}
	return out
}

// among is a copy of a graph in which that size is long by default.
func (l longSize) among(g *ir.Graph) *ir.Graph {
	long := g.Clone()
	each := int64(math.Pow(manyLong, 1/float64(len(l.symbols))))
	for i := range long.Symbols {
		if s := &long.Symbols[i]; slices.Contains(l.symbols, s.Name) {
			s.Default = max(s.Default, each)
		}
	}
	return long
}

// symbolsIn is the names of the symbols in an expression, in order.
func symbolsIn(e *ir.Expr) (names []string) {
	ir.Walk(e, func(e *ir.Expr) bool {
		if e.Op == ir.OpSym && !slices.Contains(names, e.Name) {
			names = append(names, e.Name)
		}
		return true
	})
	slices.Sort(names)
	return names
}

// manyLong is the points of long reductions at which passes decide how blocks share one.
const manyLong = 1 << 20

// planForAll is a plan that runs each of others at the sizes that it is for, and work at all other sizes.
func planForAll(work *ir.Graph, others []*ir.Graph, opts Options) *ir.Plan {
	var any *ir.Expr
	for _, other := range others {
		any = ir.Join(ir.OpOr, any, other.For)
	}
	when := work.For
	if when == nil {
		when = ir.Apply(ir.OpNot, any)
	}
	plans := []*ir.Plan{runWhere(formed(work, opts, when).plan(), when)}
	for _, other := range others {
		plans = append(plans, runWhere(formed(other, opts, other.For).plan(), other.For))
	}
	return joinPlans(plans)
}

// runWhere makes a plan one for the sizes at which a condition holds.
func runWhere(p *ir.Plan, when *ir.Expr) *ir.Plan {
	for _, k := range p.Kernels {
		k.When = when
	}
	for _, b := range p.Buffers {
		if b.Kind == ir.TempBuffer {
			b.When = when
		}
	}
	return p
}

// boundsIn is the part of a condition that bounds sizes from below or above; nil if there is
// none.
func boundsIn(when *ir.Expr) (bounds *ir.Expr) {
	if when == nil {
		return nil
	}
	for _, c := range ir.Conjuncts(when) {
		switch {
		case c.Op == ir.OpLe && (c.Args[0].Op == ir.OpConst || c.Args[1].Op == ir.OpConst):
			bounds = algebra.And(bounds, c)
		case c.Op == ir.OpOr:
			bounds = algebra.And(bounds, boundsOfBoth(boundsIn(c.Args[0]), boundsIn(c.Args[1])))
		}
	}
	return bounds
}

// boundsOfBoth are the bounds that hold where either of two conditions does: those of each that the other one implies.
func boundsOfBoth(a, b *ir.Expr) (both *ir.Expr) {
	if a == nil || b == nil {
		return nil
	}
	for _, sides := range [][2]*ir.Expr{{a, b}, {b, a}} {
		for _, c := range ir.Conjuncts(sides[0]) {
			if ir.Narrower(sides[1], c) && (both == nil || !ir.Narrower(both, c)) {
				both = algebra.And(both, c)
			}
		}
	}
	return both
}

// wholeAccess is the number of 16-bit elements in the largest access.
const wholeAccess = 8

// fewRows is a size at which no side of a product is large enough for copies of operands.
const fewRows = 16

// manyChannels is a size at which each tap of a window has enough channels for a whole step of the sum.
const manyChannels = 64

// Sizes at which products are small, and sizes at which they are so large that those of f32 are worth being cut into parts, and those under
// conditions guarded factors.
const (
	fewOfSize  = 64
	manyOfSize = 4096
)

// otherSizes are copies of a graph with other default sizes, at which passes may rewrite its products in another way.
// For products of 16 bits it matters whether rows are whole numbers of accesses, for those of f32 whether they are
// large or small.
func otherSizes(g, work *ir.Graph, device ir.Device) (out []*ir.Graph) {
	if slices.ContainsFunc(work.Values, form.IsTileProduct) {
		out = append(out, withSizes(g, func(n int64) int64 {
			if work.For == nil {
				return n | 1
			}
			return (n + wholeAccess - 1) / wholeAccess * wholeAccess
		}))
		if work.For != nil { // work may be for few channels, so many are tried too; and it may be for large products only
			out = append(out, withSizes(g, func(n int64) int64 { return (max(n, manyChannels) + wholeAccess - 1) / wholeAccess * wholeAccess }))
			out = append(out, withSizes(g, func(n int64) int64 { return min(n, fewRows) }))
		}
	}
	isF32 := func(v *ir.Value) bool { return v.Type == ir.F32 && form.Crosses(v) }
	if device.Warpgroups() && !g.TF32 && slices.ContainsFunc(g.Values, isF32) || device.TensorCores() && slices.ContainsFunc(g.Values, passes.MayGuard) {
		out = append(out, withSizes(g, func(n int64) int64 {
			if work.For == nil {
				return max(n, manyOfSize)
			}
			return min(n, fewOfSize)
		}))
	}
	return out
}

// withSizes is a copy of a graph with other default sizes.
func withSizes(g *ir.Graph, other func(int64) int64) *ir.Graph {
	out, sizes := g.Clone(), algebra.DefaultSizes(g)
	for i := range out.Symbols {
		s := &out.Symbols[i]
		s.Default = other(sizes[s.Name])
	}
	return out
}

// joinPlans makes one plan of plans of one graph, of which one runs at any sizes. They share the buffers of inputs and results,
// of which each has its own parts.
func joinPlans(plans []*ir.Plan) *ir.Plan {
	first := plans[0]
	out := &ir.Plan{Graph: first.Graph, Buffers: first.Buffers, Kernels: first.Kernels, Refused: first.Refused}
	names := map[string]bool{}
	for _, k := range first.Kernels {
		names[k.Name] = true
	}
	for _, p := range plans[1:] {
		is, slots := map[*ir.Buffer]*ir.Buffer{}, slotsOf(out)
		for i, b := range p.Buffers {
			if b.Kind != ir.TempBuffer {
				is[b] = out.Buffers[i]
				is[b].Parts = append(is[b].Parts, b.Parts...)
				continue
			}
			b.Index, b.Slot, is[b] = len(out.Buffers), b.Slot+slots, b
			out.Buffers = append(out.Buffers, b)
		}
		for _, k := range p.Kernels {
			k.Name = uniqueName(names, k.Name)
			for _, a := range k.Args {
				a.Buffer = is[a.Buffer]
			}
			out.Kernels = append(out.Kernels, k)
		}
	}
	return out
}

// slotsOf is the number of slots that the temporaries of a plan take.
func slotsOf(p *ir.Plan) (n int) {
	for _, b := range p.Buffers {
		if b.Kind == ir.TempBuffer {
			n = max(n, b.Slot+1)
		}
	}
	return n
}

// uniqueName makes a name that no kernel has yet from the given one.
func uniqueName(names map[string]bool, name string) string {
	fresh := name
	for n := 2; names[fresh]; n++ {
		fresh = fmt.Sprintf("%s_%d", name, n)
	}
	names[fresh] = true
	return fresh
}
