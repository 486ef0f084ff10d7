package fuse

import (
	"fmt"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// Passes decide at the sizes that a program is usually run at. Where a decision would be another one at other
// sizes, and costs much there, the graph is planned for those sizes too, and its kernels run where they are
// the better ones: a program is planned for all its sizes.

// alternative plans a graph for sizes at which passes rewrite it in another way, and joins that to its plan. work is
// the graph as the passes left it.
func alternative(g, work *ir.Graph, plan *ir.Plan, opts Options) (*ir.Plan, error) {
	if len(work.Symbols) == 0 || g.OneKernel || g.HasState() || !mayDiffer(work) {
		return plan, nil
	}
	opts.Observe = nil
	other, err := Normalize(withOtherSizes(g, work.For != nil), opts)
	if err != nil || (work.For == nil) == (other.For == nil) {
		return plan, err
	}
	second := formed(other, opts).plan()
	if err := ir.VerifyPlan(second); err != nil {
		panic("BUG: " + err.Error())
	}
	when := work.For
	if when == nil {
		when = ir.Apply(ir.OpNot, other.For)
	}
	return joinPlans(plan, second, when), nil
}

// mayDiffer reports whether a graph has a product that sizes may have rewritten in another way.
func mayDiffer(g *ir.Graph) bool {
	for _, v := range g.Values {
		if form.IsTileProduct(v) {
			return true
		}
	}
	return false
}

// wholeAccess is the elements of 16 bits in an access of the largest size.
const wholeAccess = 8

// withOtherSizes is a graph whose usual sizes are whole accesses, or are not, unlike its own.
func withOtherSizes(g *ir.Graph, whole bool) *ir.Graph {
	out, sizes := g.Clone(), algebra.DefaultSizes(g)
	for i := range out.Symbols {
		s := &out.Symbols[i]
		if s.Default = sizes[s.Name] | 1; whole {
			s.Default = (sizes[s.Name] + wholeAccess - 1) / wholeAccess * wholeAccess
		}
	}
	return out
}

// joinPlans is a plan that runs the kernels of first where when holds, and those of second where it does not. Both
// are plans of one graph, so their inputs and results are the same buffers.
func joinPlans(first, second *ir.Plan, when *ir.Expr) *ir.Plan {
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
	otherwise := ir.Apply(ir.OpNot, when)
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
