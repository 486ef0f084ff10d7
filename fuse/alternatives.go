package fuse

import (
	"fmt"
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// Passes decide at the sizes that a program is usually run at. Where a decision would be another one at other
// sizes, and costs much there, the graph is planned for those sizes too, and its kernels run where they are
// the better ones: a program is planned for all its sizes.

// alternative is a graph as the passes rewrite it at sizes at which they do so in another way than work, which they
// left at its usual sizes; nil where they do not.
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
	return nil, nil
}

// planForAll is a plan that runs work at the sizes it was rewritten for, and other at its own.
func planForAll(work, other *ir.Graph, opts Options) *ir.Plan {
	when, otherwise := work.For, other.For
	if when == nil {
		when = ir.Apply(ir.OpNot, otherwise)
	} else {
		otherwise = ir.Apply(ir.OpNot, when)
	}
	return joinPlans(planned(work, opts, when), planned(other, opts, otherwise), when, otherwise)
}

// boundsIn is what a condition says of the least and the greatest of sizes; nil for nothing.
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

// boundsOfBoth are the bounds among a that b has too.
func boundsOfBoth(a, b *ir.Expr) (both *ir.Expr) {
	if a == nil {
		return nil
	}
	for _, c := range ir.Conjuncts(a) {
		if ir.Narrower(b, c) {
			both = algebra.And(both, c)
		}
	}
	return both
}

// wholeAccess is the elements of 16 bits in an access of the largest size.
const wholeAccess = 8

// manyChannels is a size of symbols at which a tap of a window has channels for a whole step of its sum.
const manyChannels = 64

// Sizes at which products of f32 are small, and large enough for what pays for large ones only.
const (
	fewOfSize  = 64
	manyOfSize = 4096
)

// otherSizes are a graph at other usual sizes, at which products that it has may be rewritten in another way: those of
// 16 bits where rows are whole accesses or are not, those of f32 where they are large or small.
func otherSizes(g, work *ir.Graph, device ir.Device) (out []*ir.Graph) {
	if slices.ContainsFunc(work.Values, form.IsTileProduct) {
		out = append(out, withSizes(g, func(n int64) int64 {
			if work.For == nil {
				return n | 1
			}
			return (n + wholeAccess - 1) / wholeAccess * wholeAccess
		}))
		if work.For != nil { // what is for few channels, too
			out = append(out, withSizes(g, func(n int64) int64 { return (max(n, manyChannels) + wholeAccess - 1) / wholeAccess * wholeAccess }))
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

// withSizes is a graph with other usual sizes.
func withSizes(g *ir.Graph, other func(int64) int64) *ir.Graph {
	out, sizes := g.Clone(), algebra.DefaultSizes(g)
	for i := range out.Symbols {
		s := &out.Symbols[i]
		s.Default = other(sizes[s.Name])
	}
	return out
}

// joinPlans is a plan that runs the kernels of first where when holds, and those of second otherwise, where it does
// not. Both are plans of one graph, so their inputs and results are the same buffers.
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
			continue
		}
		b.Index, b.Slot, b.When, is[b] = len(out.Buffers), b.Slot+slots, otherwise, b
		out.Buffers = append(out.Buffers, b)
	}
	for _, k := range second.Kernels {
		k.When, k.Name = otherwise, unlike(names, k.Name)
		for _, a := range k.Args {
			a.Buffer = is[a.Buffer]
		}
		out.Kernels = append(out.Kernels, k)
	}
	return out
}

// unlike is a name that no kernel has yet, made of the one given.
func unlike(names map[string]bool, name string) string {
	fresh := name
	for n := 2; names[fresh]; n++ {
		fresh = fmt.Sprintf("%s_%d", name, n)
	}
	names[fresh] = true
	return fresh
}
