package passes

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// A transposed convolution sums, at each place of its result, over the taps that meet an element of the
// input there: those of one residue modulo the stride. The residue depends on that of the place, its
// phase. So each phase is a convolution of stride 1 over a part of the taps.

// splitPhases rewrites sums whose condition picks the points of one residue into sums over those points
// alone. An axis p on which the residue depends becomes two axes, p / s and p % s.
func splitPhases(g *ir.Graph) { phasesOfAll(g, func(*ir.Value) bool { return false }) }

// splitPhasesForTiles does the same for devices on which one kernel takes the taps of each phase alone, tile by tile:
// phases of products with unlike numbers of taps stay one value, and those of short sums, where a launch is more than
// a few absent taps.
func splitPhasesForTiles(g *ir.Graph) {
	sizes := algebra.DefaultSizes(g)
	phasesOfAll(g, func(v *ir.Value) bool { return isShort(v, sizes) || multiplyOnTiles(v, sizes) })
}

// shortSum is the most points of a sum that a thread adds up alone.
const shortSum = 64

// isShort reports whether a value is a sum of few points.
func isShort(v *ir.Value, sizes map[string]int64) bool {
	return v.Reduce != nil && algebra.PointsAt(v.Reduce.Ranges, sizes) <= shortSum
}

// phasesOfAll splits the phases of all values; together picks those whose phases stay one value.
func phasesOfAll(g *ir.Graph, together func(*ir.Value) bool) {
	if g.Numerics != ir.Fast {
		return
	}
	insertBefore(g, func(v *ir.Value) []*ir.Value { return phasesIn(g, v, together(v)) })
}

// multiplyOnTiles reports whether a value is a sum of products with work enough for tiles.
func multiplyOnTiles(v *ir.Value, sizes map[string]int64) bool {
	if v.Reduce == nil || v.Reduce.Op != ir.Sum || !manyTerms(v, sizes) {
		return false
	}
	factors := form.FactorsOf(v.Body)
	if len(factors) != 2 {
		return false
	}
	for i, f := range factors {
		load := form.WithoutCasts(f)
		if load.Op != ir.OpLoad || !form.IsHalf(load.Type) && load.Type != ir.F32 || pointsAlone(v, f, factors[1-i], sizes) < windowRows {
			return false
		}
	}
	return true
}

// manyTerms reports whether a reduction has more terms than a launch of its own takes time for.
func manyTerms(v *ir.Value, sizes map[string]int64) bool {
	return algebra.PointsAt(v.Axes, sizes)*algebra.PointsAt(v.Reduce.Ranges, sizes) >= windowWork
}

// pointsAlone is the points of a value along axes on which one factor depends and another does not.
func pointsAlone(v *ir.Value, factor, other *ir.Expr, sizes map[string]int64) float64 {
	var own []*ir.Range
	for _, a := range v.Axes {
		if ir.DependsOn(factor, a) && !ir.DependsOn(other, a) {
			own = append(own, a)
		}
	}
	return algebra.PointsAt(own, sizes)
}

// phasesIn splits the phases of each axis of a value, and returns the new values, which come before it.
// together keeps phases with unlike numbers of taps in one value.
func phasesIn(g *ir.Graph, v *ir.Value, together bool) []*ir.Value {
	for _, a := range v.Axes {
		p := phaseOf(v, a)
		if p == nil || p.meetsSome() && !manyTerms(v, algebra.DefaultSizes(g)) {
			continue
		}
		var out []*ir.Value
		for _, u := range p.split(g, together) {
			out = append(append(out, phasesIn(g, u, together)...), u)
		}
		return out
	}
	return nil
}

// phase is a condition (place*axis + step*tap + first) % stride == 0 of a reduction.
type phase struct {
	v                   *ir.Value
	axis, tap           *ir.Range
	place, step, stride int64
	first               *ir.Expr
	rest                []*ir.Expr // the other conditions
}

// phaseOf finds such a condition on an axis of a reduction; nil where there is none, or where the taps of
// a residue are neither every stride-th tap nor none at all.
func phaseOf(v *ir.Value, axis *ir.Range) *phase {
	if v.Reduce == nil || v.Reduce.Where == nil || v.Reduce.Rank != nil || v.Reduce.Op.IsArg() {
		return nil
	}
	conditions := ir.Conjuncts(v.Reduce.Where)
	for i, c := range conditions {
		residue := residueOf(c)
		if residue == nil || residue.Args[1].Op != ir.OpConst {
			continue
		}
		p := &phase{v: v, axis: axis, stride: residue.Args[1].Int}
		if p.linear(residue.Args[0]) {
			p.rest = slices.Delete(slices.Clone(conditions), i, i+1)
			return p
		}
	}
	return nil
}

// residueOf is the remainder that a condition says is zero; nil for other conditions.
func residueOf(c *ir.Expr) *ir.Expr {
	if c.Op != ir.OpEq {
		return nil
	}
	for i, e := range c.Args {
		if e.Op == ir.OpMod && c.Args[1-i].IsConst(0) {
			return e
		}
	}
	return nil
}

// linear reads the expression whose residue is taken, as coefficients of the axis and the tap; false where
// it is not linear.
func (p *phase) linear(e *ir.Expr) bool {
	reduced := algebra.RangeSet(p.v.Reduce.Ranges)
	for r := range ir.FreeRanges(e) {
		switch {
		case reduced[r] && p.tap == nil:
			p.tap = r
		case r != p.axis:
			return false
		}
	}
	if p.stride < 2 || p.tap != nil && p.tap.Extent.Op != ir.OpConst {
		return false
	}
	var ok, okStep bool
	p.place, ok = coefficient(e, p.axis)
	p.step, okStep = coefficient(e, p.tap)
	if !ok || !okStep || p.place == 0 {
		return false
	}
	origin := map[*ir.Range]*ir.Expr{p.axis: ir.IntConst(0)}
	if p.tap != nil {
		origin[p.tap] = ir.IntConst(0)
	}
	p.first = ir.Simplify(ir.Substitute(e, origin), ir.Facts{})
	return inverse(p.step, p.stride) > 0 || p.meetsSome()
}

// coefficient is the constant by which an index grows where a range does, 0 for no range.
func coefficient(e *ir.Expr, r *ir.Range) (int64, bool) {
	if r == nil {
		return 0, true
	}
	by, ok := ir.Stride(e, r, ir.Facts{Positive: true})
	if !ok || by.Op != ir.OpConst {
		return 0, false
	}
	return by.Int, true
}

// inverse is the number below n whose product with a is 1 modulo n; 0 where there is none.
func inverse(a, n int64) int64 {
	for x := int64(1); x < n; x++ {
		if ((a*x)%n+n)%n == 1 {
			return x
		}
	}
	return 0
}

// split moves the sum to values over phases, makes the original read from these, and returns them. There
// is one such value where all phases have as many taps, or where they stay together and each has one; otherwise there is one for the
// phases with a tap more and one for the others.
func (p *phase) split(g *ir.Graph, together bool) []*ir.Value {
	if p.meetsSome() {
		return []*ir.Value{p.splitMet(g)}
	}
	if n := p.tap.Extent.Int; n%p.stride != 0 && !(together && n >= p.stride) && inverse(p.place, p.stride) > 0 && p.splitAlone() {
		return p.splitByTaps(g)
	}
	return []*ir.Value{p.splitEvenly(g)}
}

// splitEvenly makes one value of all phases, with the phase as an axis.
func (p *phase) splitEvenly(g *ir.Graph) *ir.Value {
	residue := g.NewRange(p.axis.Name+"_phase", ir.IntConst(p.stride))
	taps := g.NewRange(p.tap.Name, ir.Simplify(algebra.CeilDiv(p.tap.Extent, p.stride), g.Facts()))
	first := p.firstTap(residue.At())
	count := ir.IntConst(p.tap.Extent.Int / p.stride)
	if p.tap.Extent.Int%p.stride != 0 {
		count = ir.Simplify(algebra.CeilDiv(ir.Apply(ir.OpSub, p.tap.Extent, first), p.stride), g.Facts())
	}
	of := phases{axis: residue, residue: residue.At(), first: first, taps: taps, count: count}
	s, at := ir.IntConst(p.stride), p.axis.At()
	part := ir.Apply(ir.OpFloorDiv, at, s)
	if of.backwards = p.descends(p.axis) && ir.Decide(ir.Apply(ir.OpEq, ir.Apply(ir.OpMod, p.axis.Extent, s), ir.IntConst(0)), g.Facts()) == ir.True; of.backwards {
		part = ir.Simplify(ir.Apply(ir.OpSub, lastOf(ir.Apply(ir.OpFloorDiv, p.axis.Extent, s)), part), g.Facts())
	}
	u := p.over(g, of)
	p.v.Reduce, p.v.Body = nil, ir.Load(u, p.read(part, ir.Apply(ir.OpMod, at, s)), nil).At(p.v.Body.Span)
	return u
}

// lastOf is the last place of an axis of n places.
func lastOf(n *ir.Expr) *ir.Expr { return ir.Apply(ir.OpSub, n, ir.IntConst(1)) }

// descends reports whether what a tap meets at a place comes earlier, as a range grows: the elements of the other factor are
// those that the quotient by the stride says.
func (p *phase) descends(r *ir.Range) bool {
	grows := p.place
	if r == p.tap {
		grows = p.step
	}
	for _, l := range ir.Loads(p.v.Body) {
		for _, at := range l.Args {
			if !ir.DependsOn(at, p.axis) || !ir.DependsOn(at, p.tap) {
				continue
			}
			both := ir.Substitute(at, map[*ir.Range]*ir.Expr{r: ir.Apply(ir.OpMul, r.At(), ir.IntConst(p.stride))})
			if c, ok := coefficient(ir.Simplify(both, ir.Facts{}), r); ok {
				return c < 0
			}
		}
	}
	return grows < 0
}

// splitAlone reports whether the reduction is a sum, which is 0 for a phase without taps.
func (p *phase) splitAlone() bool { return p.v.Reduce.Op == ir.Sum }

// splitByTaps makes a value of the phases whose first tap is below the remainder of the taps by the
// stride, which have one tap more, and a value of the others, so that neither sum has a condition. The
// axis of both is the first tap, which determines the phase.
func (p *phase) splitByTaps(g *ir.Graph) []*ir.Value {
	n, s := p.tap.Extent.Int, ir.IntConst(p.stride)
	at, body := p.axis.At(), p.v.Body
	part, first := ir.Apply(ir.OpFloorDiv, at, s), ir.Simplify(p.firstTap(ir.Apply(ir.OpMod, at, s)), g.Facts())
	var out []*ir.Value
	side := func(from, to, taps int64) *ir.Expr {
		if taps == 0 {
			return ir.Cast(ir.IntConst(0), p.v.Type)
		}
		of := phases{first: ir.IntConst(from), taps: g.NewRange(p.tap.Name, ir.IntConst(taps)), count: ir.IntConst(taps)}
		place := []*ir.Expr{part}
		if to-from > 1 {
			of.axis = g.NewRange(p.axis.Name+"_phase", ir.IntConst(to-from))
			of.first = ir.Apply(ir.OpAdd, of.axis.At(), ir.IntConst(from))
			place = append(place, ir.Simplify(ir.Apply(ir.OpSub, first, ir.IntConst(from)), g.Facts()))
		}
		of.residue = p.residueAt(of.first)
		u := p.over(g, of)
		out = append(out, u)
		return ir.Load(u, p.read(place...), ir.Cast(ir.IntConst(0), u.Type)).At(body.Span)
	}
	more, less := side(0, n%p.stride, n/p.stride+1), side(n%p.stride, p.stride, n/p.stride)
	p.v.Reduce = nil
	p.v.Body = ir.Apply(ir.OpSelect, ir.Apply(ir.OpLt, first, ir.IntConst(n%p.stride)), more, less)
	return out
}

// firstTap is the first tap at a residue of the place:
// step*tap = -(place*residue + first) modulo the stride.
func (p *phase) firstTap(residue *ir.Expr) *ir.Expr {
	sum := ir.Apply(ir.OpAdd, ir.Apply(ir.OpMul, residue, ir.IntConst(p.place)), p.first)
	return p.turned(sum, p.step)
}

// residueAt is the residue of the places whose first tap is tap.
func (p *phase) residueAt(tap *ir.Expr) *ir.Expr {
	return p.turned(ir.Apply(ir.OpAdd, ir.Apply(ir.OpMul, tap, ir.IntConst(p.step)), p.first), p.place)
}

// turned is the number that, times a factor, is the negative of a sum modulo the stride.
func (p *phase) turned(sum *ir.Expr, factor int64) *ir.Expr {
	turn := p.stride - inverse(factor, p.stride)
	return ir.Apply(ir.OpMod, ir.Apply(ir.OpMul, sum, ir.IntConst(turn)), ir.IntConst(p.stride))
}

// phases is some phases of an axis: their axis (nil for a single phase), the residue of their places,
// their first tap, a range over the most taps that one has, counting every stride-th, and how many each has.
type phases struct {
	axis                  *ir.Range
	residue, first, count *ir.Expr
	taps                  *ir.Range
	backwards             bool // the places come in the opposite order
}

// over is the sum for some phases. Where these have an axis, it comes after that of the places.
func (p *phase) over(g *ir.Graph, of phases) *ir.Value {
	v, s, facts := p.v, ir.IntConst(p.stride), g.Facts()
	part := g.NewRange(p.axis.Name, ir.Simplify(algebra.CeilDiv(p.axis.Extent, p.stride), facts))
	turned := of.taps.At() // taps, in the order in which the elements that they meet ascend; absent ones come last
	if p.descends(p.tap) {
		turned = ir.Apply(ir.OpSub, ir.Apply(ir.OpSub, of.count, ir.IntConst(1)), of.taps.At())
	}
	place := part.At()
	if of.backwards {
		place = ir.Apply(ir.OpSub, lastOf(part.Extent), place)
	}
	with := map[*ir.Range]*ir.Expr{
		p.axis: ir.Apply(ir.OpAdd, ir.Apply(ir.OpMul, place, s), of.residue),
		p.tap:  ir.Simplify(ir.Apply(ir.OpAdd, ir.Apply(ir.OpMul, turned, s), of.first), facts),
	}
	at := func(e *ir.Expr) *ir.Expr { return ir.Simplify(ir.Substitute(e, with), facts) }
	u := &ir.Value{Name: v.Name + "_phases", Type: v.Type, Body: at(v.Body), Origin: v.Origin}
	r := *v.Reduce
	r.Ranges = slices.Clone(r.Ranges)
	r.Ranges[slices.Index(r.Ranges, p.tap)] = of.taps
	r.Where = ir.Simplify(ir.Apply(ir.OpLt, of.taps.At(), of.count), facts)
	past := ir.Simplify(ir.Apply(ir.OpMod, p.axis.Extent, s), facts) // of the last places, some are no places of the axis
	inside := func(e *ir.Expr) *ir.Expr { return e }
	if !r.Where.IsConst(1) || !past.IsConst(0) {
		inside = func(e *ir.Expr) *ir.Expr { return ir.Simplify(form.GuardLoads(e), facts) }
	}
	u.Body = inside(u.Body)
	for _, c := range p.rest {
		r.Where = algebra.And(r.Where, inside(at(c)))
	}
	if r.Where != nil {
		r.Where = ir.Simplify(r.Where, facts)
	}
	if r.Where == nil || r.Where.IsConst(1) {
		r.Where = nil
	} else { // the channels last, of which none are absent
		at := slices.Index(r.Ranges, of.taps)
		r.Ranges = slices.Concat([]*ir.Range{of.taps}, r.Ranges[:at], r.Ranges[at+1:])
	}
	u.Reduce = &r
	for _, a := range v.Axes {
		switch {
		case a != p.axis:
			u.Axes = append(u.Axes, a)
		case of.axis == nil:
			u.Axes = append(u.Axes, part)
		default:
			u.Axes = append(u.Axes, part, of.axis)
		}
	}
	u = freshAxes(g, u)
	dropUnits(u) // where windows do not overlap a phase has a single tap, and is a product of channels alone
	return u
}

// read is the indices at which v reads such a value: its own axes, with place in place of the split one.
func (p *phase) read(place ...*ir.Expr) (at []*ir.Expr) {
	for _, a := range p.v.Axes {
		if a == p.axis {
			at = append(at, place...)
		} else {
			at = append(at, a.At())
		}
	}
	return at
}

// freshAxes gives a new value axes of its own, and adopts it.
func freshAxes(g *ir.Graph, u *ir.Value) *ir.Value {
	fresh := g.NewAxes(u.Shape())
	rename := map[*ir.Range]*ir.Expr{}
	for d, a := range u.Axes {
		fresh[d].Name = a.Name
		rename[a] = fresh[d].At()
	}
	u.Axes = fresh
	u.Body = ir.Substitute(u.Body, rename)
	ranges := make([]*ir.Range, len(u.Reduce.Ranges))
	for i, r := range u.Reduce.Ranges { // because two values share the sum's other ranges
		ranges[i] = g.NewRange(r.Name, r.Extent)
		rename[r] = ranges[i].At()
	}
	u.Body = ir.Substitute(u.Body, rename)
	u.Reduce.Ranges = ranges
	if u.Reduce.Where != nil {
		u.Reduce.Where = ir.Substitute(u.Reduce.Where, rename)
	}
	g.Adopt(u)
	return u
}
