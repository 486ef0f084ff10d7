package fuse

import (
	"fmt"
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/forecast"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// Passes decide at the sizes that a program is usually run at (its default sizes). At other sizes the
// decision may be wrong and cost much. For those sizes the graph is planned a second time, and at run time
// the sizes choose between the two plans.

// alternative rewrites the graph at other sizes, and returns the result if the passes decide in another way there
// than for work, which is the graph that they rewrote at the default sizes. It returns nil if they decide alike.
func alternative(g, work *ir.Graph, opts Options) (*ir.Graph, error) {
	if len(work.Symbols) == 0 || g.OneKernel || g.HasState() {
		return nil, nil
	}
	opts.Observe = nil
	for _, other := range otherSizes(g, work, opts.Device) {
		rewritten, err := Normalize(other, opts)
		if err != nil || (work.For == nil) != (rewritten.For == nil) {
			return rewritten, err
		}
	}
	if work.For != nil {
		return nil, nil
	}
	return longAlternative(g, work, opts)
}

// longAlternative rewrites the graph for sizes at which reductions are long that have few points at the default sizes, where
// one block adds them up: a million points need all blocks. It returns nil where passes decide alike.
func longAlternative(g, work *ir.Graph, opts Options) (*ir.Graph, error) {
	long, when := longReductions(g)
	if long == nil {
		return nil, nil
	}
	rewritten, err := Normalize(long, opts)
	if err != nil || rewritten.For != nil || len(rewritten.Values) == len(work.Values) {
		return nil, err
	}
	rewritten.For = when
	return rewritten, nil
}

// longReductions is a copy of a graph in which the symbols that few results are reduced over are long by default, and the
// condition that one of these reductions is; nil where there is none. Results are few if a block for each leaves half of the
// multiprocessors idle.
func longReductions(g *ir.Graph) (long *ir.Graph, when *ir.Expr) {
	sizes, longer := algebra.DefaultSizes(g), map[string]bool{}
	for _, v := range g.Values {
		if v.Reduce == nil || 2*form.RowsAt(v, sizes) >= ir.ReferenceSMs || algebra.PointsAt(v.Reduce.Ranges, sizes) >= forecast.SplitLeast {
			continue
		}
		points := algebra.Product(v.Reduce.Ranges)
		ir.Walk(points, func(e *ir.Expr) bool {
			longer[e.Name] = longer[e.Name] || e.Op == ir.OpSym
			return true
		})
		if ir.Has(points, ir.OpSym) {
			when = ir.Join(ir.OpOr, when, ir.Simplify(ir.Apply(ir.OpLe, ir.IntConst(forecast.SplitLeast), points), g.Facts()))
		}
	}
	if when == nil {
		return nil, nil
	}
	long = g.Clone()
	for i := range long.Symbols {
		if s := &long.Symbols[i]; longer[s.Name] {
			s.Default = manyLong
		}
	}
	return long, when
}

// manyLong is the points of long reductions at which passes decide how blocks share one.
const manyLong = 1 << 22

// planForAll is a plan that runs work at the sizes that work was rewritten for, and other at
// all other sizes.
func planForAll(work, other *ir.Graph, opts Options) *ir.Plan {
	when, otherwise := work.For, other.For
	if when == nil {
		when = ir.Apply(ir.OpNot, otherwise)
	} else {
		otherwise = ir.Apply(ir.OpNot, when)
	}
	return joinPlans(formed(work, opts, when).plan(), formed(other, opts, otherwise).plan(), when, otherwise)
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

// Sizes at which products of f32 are small, and sizes at which they are so large that being cut
// into parts pays.
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
	if device.Warpgroups() && !g.TF32 && slices.ContainsFunc(g.Values, isF32) {
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

// joinPlans is a plan that runs the kernels of first where when holds, and those of second where otherwise, its
// opposite, holds. Both are plans of one graph, so they share the buffers of inputs and results, of which each has its own parts.
func joinPlans(first, second *ir.Plan, when, otherwise *ir.Expr) *ir.Plan {
	out := &ir.Plan{Graph: first.Graph, Buffers: first.Buffers, Kernels: first.Kernels, Refused: first.Refused}
	names, slots := map[string]bool{}, 0
	for _, k := range first.Kernels {
		k.When, names[k.Name] = when, true
	}
	for _, b := range first.Buffers {
		if b.Kind == ir.TempBuffer {
			b.When, slots = when, max(slots, b.Slot+1)
		}
	}
	is := map[*ir.Buffer]*ir.Buffer{}
	for i, b := range second.Buffers {
		if b.Kind != ir.TempBuffer {
			is[b] = first.Buffers[i]
			is[b].Parts = append(is[b].Parts, b.Parts...)
			continue
		}
		b.Index, b.Slot, b.When, is[b] = len(out.Buffers), b.Slot+slots, otherwise, b
		out.Buffers = append(out.Buffers, b)
	}
	for _, k := range second.Kernels {
		k.When, k.Name = otherwise, uniqueName(names, k.Name)
		for _, a := range k.Args {
			a.Buffer = is[a.Buffer]
		}
		out.Kernels = append(out.Kernels, k)
	}
	return out
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
