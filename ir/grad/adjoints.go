package grad

import (
	"slices"

	"github.com/fusec/fusec/ir"
)

// Adjoints adds to g the gradients of the value of with respect to the values by. They have the
// types and axes of those, and are the gradients of the sum of all elements of the value, each
// times its element of weight (nil: 1). The values by have to be copies that nothing else reads.
// An error is a *Blocked. Of opts only Rules and Delta are used.
func Adjoints(g *ir.Graph, of, weight *ir.Value, by []*ir.Value, opts Options) ([]*ir.Value, error) {
	p := &pass{g: g, opts: opts, facts: g.Facts(), adj: map[*ir.Value]*adjoint{}}
	values := slices.Clone(g.Values[slices.Index(g.Values, by[0]):])
	p.active = p.activeBy(values, by)
	axes := p.of(of).axes
	seed := ir.Num(computed(of.Type), 1)
	if weight != nil {
		seed = wide(ir.Load(weight, ir.Indices(axes), nil))
	}
	p.give(of, term{expr: seed})
	p.backward(values, by)
	out := make([]*ir.Value, len(by))
	for i, x := range by {
		a := p.adj[x]
		if a == nil || !p.active[of] {
			return nil, p.blocked(x, values)
		}
		out[i] = p.gradient(x, a)
	}
	opts.Rules.first(values)
	return out, nil
}
