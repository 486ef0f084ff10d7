package ir

// demand says which elements of a graph's values its results need under lazy evaluation: of
// where(c, a, b) only one side, of a && b and a || b the right side only where the left one
// does not decide, and of a reduction the points at which its predicate holds. It is a property
// of the graph, however that is fused. Where it is not exact, it says that more is needed:
//
//   - a reduction that is needed at all is needed at all points
//   - a part of a predicate that compares an index of the read with other indices, such as
//     k <= i in a running sum, is taken to hold
//   - a value read in more than maxUses ways is needed at all points
type demand struct {
	g     *Graph
	facts Facts
	needs map[*Value]*need
	sites map[*Value][]site
}

// need is where a value is needed: everywhere, or as each use says.
type need struct {
	whole bool
	used  []use
}

// A use needs a value once for each point of ranges at which the condition where holds.
type use struct {
	ranges []*Range
	where  *Expr            // nil: at all
	at     map[*Range]*Expr // the value's ranges there; nil: they are ranges
	unsafe bool             // at may be outside at points where the condition does not hold
}

// A site is a read that is checked.
type site struct {
	load  *Expr
	axis  int
	where *Expr // over the ranges of its value: where it is evaluated; nil: at all points
}

const maxUses = 8

func newDemand(g *Graph) *demand {
	d := &demand{g: g, facts: g.Facts(), needs: map[*Value]*need{}, sites: map[*Value][]site{}}
	for _, o := range g.Outputs {
		d.needs[o.Value] = &need{whole: true}
	}
	for i := len(g.Values) - 1; i >= 0; i-- {
		v := g.Values[i]
		n := d.needs[v]
		if n == nil || v.IsInput() {
			continue
		}
		n.whole = n.whole || v.Reduce != nil
		if v.Reduce == nil {
			d.visit(v, v.Body, nil)
			continue
		}
		d.visit(v, v.Body, v.Reduce.Where)
		d.visit(v, v.Reduce.Where, nil)
		d.visit(v, v.Reduce.Rank, nil)
	}
	return d
}

// ranges are those that the expressions of v are over.
func (v *Value) ranges() []*Range {
	if v.Reduce == nil {
		return v.Axes
	}
	return append(v.Axes[:len(v.Axes):len(v.Axes)], v.Reduce.Ranges...)
}

// uses lists the uses of v.
func (n *need) uses(v *Value) []use {
	if n.whole {
		return []use{{ranges: v.ranges()}}
	}
	return n.used
}

// of writes an expression of the value over the points of u.
func (u use) of(e *Expr) *Expr {
	if e == nil || u.at == nil {
		return e
	}
	if u.unsafe {
		e = safeAnywhere(e)
	}
	return Substitute(e, u.at)
}

// visit notes what a part of v's definition reads, which is evaluated under a predicate
// (nil: always).
func (d *demand) visit(v *Value, part, predicate *Expr) {
	if part == nil {
		return
	}
	for _, r := range reached(part) {
		r.predicate = predicate
		d.check(v, r)
		if !r.load.From.IsInput() {
			d.read(v, r)
		}
	}
}

// under is the condition under which a read is evaluated, as far as it can be said over the
// given ranges.
func (r reach) under(on map[*Range]bool) *Expr {
	if r.predicate == nil {
		return r.where
	}
	return Both(somewhere(r.predicate, on), r.where)
}

// check notes the axes along which a read may be outside.
func (d *demand) check(v *Value, r reach) {
	if !r.load.NoElse {
		return
	}
	for axis, index := range r.load.Args {
		extent := r.load.From.Axes[axis].Extent
		if dependsOnData(index) && !ProveInside(withoutExactCasts(index), extent, d.facts) {
			d.sites[v] = append(d.sites[v], site{r.load, axis, r.under(FreeRanges(index))})
		}
	}
}

// withoutExactCasts is an index without the integer conversions that lose nothing, so that the index algebra
// recognises clamps and remainders.
func withoutExactCasts(e *Expr) *Expr {
	switch e.Op {
	case OpMin, OpMax, OpMod, OpSelect:
		return e.WithParts(func(a *Expr) *Expr {
			if a.Type == Index {
				return withoutExactCasts(a)
			}
			return a
		})
	case OpCast:
	default:
		return e
	}
	in := e.Args[0]
	switch {
	case !in.Type.IsInt():
	case in.Op == OpMin, in.Op == OpMax, in.Op == OpMod:
		return Apply(in.Op, withoutExactCasts(Cast(in.Args[0], Index)), withoutExactCasts(Cast(in.Args[1], Index)))
	case in.Op == OpSelect:
		return Where(in.Args[0], withoutExactCasts(Cast(in.Args[1], Index)), withoutExactCasts(Cast(in.Args[2], Index)))
	case in.Op == OpCast && in.Type == I64 && (in.Args[0].Type.IsInt() || in.Args[0].Type == Index):
		return withoutExactCasts(Cast(in.Args[0], Index))
	}
	return e
}

// read notes that v needs what it reads.
func (d *demand) read(v *Value, r reach) {
	from := r.load.From
	n := d.needs[from]
	if n == nil {
		n = &need{}
		d.needs[from] = n
	}
	on := map[*Range]bool{}
	for _, index := range r.load.Args {
		for free := range FreeRanges(index) {
			on[free] = true
		}
	}
	where := r.under(on)
	if n.whole = n.whole || from.Reduce != nil || d.needs[v].whole && where == nil && covers(r.load); n.whole {
		n.used = nil
		return
	}
	if r.load.Fill != nil {
		where = Both(where, Inside(from.Shape(), r.load.Args, d.facts))
	}
	for _, u := range d.needs[v].uses(v) {
		next := use{ranges: u.ranges, where: Both(u.where, u.of(where)), at: map[*Range]*Expr{},
			unsafe: u.unsafe || r.load.Fill != nil}
		for axis, own := range from.Axes {
			next.at[own] = u.of(r.load.Args[axis])
		}
		n.used = append(n.used, next)
	}
	if len(n.used) > maxUses {
		n.whole, n.used = true, nil
	}
}

// covers reports whether a load at all points of its value reads all of another.
func covers(load *Expr) bool {
	seen := map[*Range]bool{}
	for axis, index := range load.Args {
		extent := load.From.Axes[axis].Extent
		if extent.IsConst(1) && index.IsConst(0) {
			continue
		}
		if index.Op != OpRange || seen[index.Range] || !SameSize(index.Range.Extent, extent) {
			return false
		}
		seen[index.Range] = true
	}
	return true
}

// reach is a load with the conditions under which it is evaluated, of its expression
// and of its reduction; nil: always.
type reach struct {
	load             *Expr
	where, predicate *Expr
}

// reached finds the loads in e.
func reached(e *Expr) []reach {
	order := ParentsFirst(e, nil)
	where := map[*Expr]*Expr{}
	seen := map[*Expr]bool{e: true}
	enter := func(part, under *Expr) {
		if seen[part] {
			under = either(where[part], under)
		}
		seen[part], where[part] = true, under
	}
	var out []reach
	for _, e := range order {
		here := where[e]
		if e.Op == OpLoad {
			out = append(out, reach{load: e, where: here})
		}
		for i, a := range e.Args {
			under := here
			switch {
			case e.Op == OpSelect && i == 1, e.Op == OpAnd && i == 1:
				under = Both(here, e.Args[0])
			case e.Op == OpSelect && i == 2, e.Op == OpOr && i == 1:
				under = Both(here, Apply(OpNot, e.Args[0]))
			}
			enter(a, under)
		}
	}
	return out
}

// either is a || b, where nil always holds.
func either(a, b *Expr) *Expr {
	switch {
	case a == nil || Equal(a, b):
		return a
	case b == nil:
		return nil
	}
	return Apply(OpOr, a, b)
}

// somewhere is a condition over the given ranges alone that holds wherever cond holds for some
// point of the other ranges; nil for always.
func somewhere(cond *Expr, on map[*Range]bool) *Expr {
	out := Simplify(relaxed(cond, on, true), Facts{})
	if out.IsConst(1) {
		return nil
	}
	return out
}

// relaxed replaces the parts of cond that depend on other ranges than the given ones. The
// result holds at least wherever cond holds, or, without more, at most there.
func relaxed(cond *Expr, on map[*Range]bool, more bool) *Expr {
	known := true
	for r := range FreeRanges(cond) {
		known = known && on[r]
	}
	switch {
	case known:
		return cond
	case cond.Op == OpNot:
		return Apply(OpNot, relaxed(cond.Args[0], on, !more))
	case cond.Op == OpAnd || cond.Op == OpOr:
		return Apply(cond.Op, relaxed(cond.Args[0], on, more), relaxed(cond.Args[1], on, more))
	}
	return truthExpr(more)
}
