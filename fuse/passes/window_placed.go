package passes

import (
	"slices"

	"github.com/fusec/fusec/ir"
)

// What follows a sum over phases is its epilogue where nothing else is needed first. A norm needs its statistics first, which are
// sums over the same results: these go through memory in any case. Then they are stored at their places, and all that follows
// reads them there, as if there were no phases.

// storePlaced makes a value of the results of each sum over ragged phases that something else than an epilogue reads.
func storePlaced(g *ir.Graph) {
	after := map[*ir.Value]*ir.Value{}
	for _, v := range g.Values {
		if v.IsInput() || v.Reduce != nil || v.Body.Op == ir.OpLoad {
			continue
		}
		for _, l := range ir.Loads(v.Body) {
			if after[l.From] == nil && isRaggedSum(g, v, l) && needsMore(v, l.From) {
				if z := placedSum(g, v, l); z != nil {
					after[l.From] = z
				}
			}
		}
	}
	if len(after) == 0 {
		return
	}
	var out []*ir.Value
	for _, v := range g.Values {
		out = append(out, v)
		if z := after[v]; z != nil {
			out = append(out, z)
		}
	}
	g.Values = out
}

// isRaggedSum reports whether a load of a value reads a sum over phases of which some have places past the end.
func isRaggedSum(g *ir.Graph, v *ir.Value, l *ir.Expr) bool {
	return l.From.Reduce != nil && l.Fill == nil && PlacesOf(v, l) != nil && isRagged(v, l, g.Facts())
}

// needsMore reports whether a value reads another one that is computed from the sum.
func needsMore(v, sum *ir.Value) bool {
	known := map[*ir.Value]bool{}
	var follows func(v *ir.Value) bool
	follows = func(v *ir.Value) bool {
		if found, ok := known[v]; ok {
			return found
		}
		known[v] = false
		for _, l := range v.Loads() {
			if l.From == sum || follows(l.From) {
				known[v] = true
				break
			}
		}
		return known[v]
	}
	for _, l := range v.Loads() {
		if l.From != sum && follows(l.From) {
			return true
		}
	}
	return false
}

// placedSum is the value of a sum's results at the places at which a load of v reads them, for all that reads the sum; nil where
// some reader reads others.
func placedSum(g *ir.Graph, v *ir.Value, load *ir.Expr) *ir.Value {
	sum, places := load.From, PlacesOf(v, load)
	z := &ir.Value{Name: sum.Name + "_placed", Type: sum.Type, Origin: sum.Origin}
	var order []Place // of the axes of z: those of v in the order of the sum's dims
	at := map[*ir.Range]*ir.Expr{}
	for d := range load.Args {
		for a, p := range places {
			if p.part == d {
				axis := g.NewAxes([]*ir.Expr{a.Extent})[0]
				axis.Name = a.Name
				at[a] = axis.At()
				z.Axes, order = append(z.Axes, axis), append(order, p)
			}
		}
	}
	rewritten := map[*ir.Value]*ir.Expr{}
	for _, r := range g.Values {
		whole := true
		if r.IsInput() || !readsValue(r, sum) {
			continue
		}
		rewritten[r] = ir.Rewrite(r.Body, func(e *ir.Expr) *ir.Expr {
			if e.Op != ir.OpLoad || e.From != sum {
				return e
			}
			indices := naturalIndices(e, order)
			whole = whole && indices != nil && e.Fill == nil
			if !whole {
				return e
			}
			return ir.Load(z, indices, nil).At(e.Span)
		})
		if !whole {
			return nil
		}
	}
	z.Body = ir.Simplify(ir.Substitute(ir.Load(sum, load.Args, nil), at), g.Facts()).At(load.Span)
	g.Adopt(z)
	for r, body := range rewritten {
		r.Body = body
	}
	return z
}

func readsValue(r, v *ir.Value) bool {
	return slices.ContainsFunc(r.Loads(), func(l *ir.Expr) bool { return l.From == v })
}

// naturalIndices are the indices of a load of a sum over phases along axes that are not divided; nil where it does not read the
// quotient and the remainder of one index.
func naturalIndices(load *ir.Expr, axes []Place) (out []*ir.Expr) {
	for _, p := range axes {
		e := load.Args[p.part]
		if p.Stride > 1 {
			rest := load.Args[p.phase]
			if e.Op != ir.OpFloorDiv || !e.Args[1].IsConst(float64(p.Stride)) || rest.Op != ir.OpMod || !rest.Args[1].IsConst(float64(p.Stride)) || !ir.Equal(e.Args[0], rest.Args[0]) {
				return nil
			}
			e = e.Args[0]
		}
		out = append(out, e)
	}
	return out
}
