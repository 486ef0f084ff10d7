package grad

import (
	"slices"

	"github.com/fusec/fusec/ir"
)

// An equation says that two indices are equal. Only left depends on the ranges that remain.
type equation struct{ left, right *ir.Expr }

// A guard says that the solution for a range lies inside it.
type guard struct {
	of   *ir.Range
	cond *ir.Expr
}

// A system is a sum of body over ranges, at the points where equations and conditions hold.
// Solving it eliminates ranges: one that an equation determines is replaced by its solution,
// whose guard is that it lies inside the range.
type system struct {
	p        *pass
	within   []*ir.Range // all ranges that may occur; none is empty at a point that matters
	ranges   []*ir.Range // those that remain
	eqs      []equation
	conds    []*ir.Expr
	guards   []guard
	body     *ir.Expr
	original *ir.Expr // body before any solution
	singular bool     // body may be infinite at points outside the system
}

const (
	maxPieces = 16 // pieces of one index, beyond which it is left as it is
	maxSteps  = 64 // eliminations and replacements of one system
)

// solve eliminates ranges as far as it can, and returns the pieces of the system: a choice in
// an index makes two.
func (s *system) solve(pieces int) []*system {
	s.useResidues()
	for range maxSteps {
		s.normalize()
		if c := s.choice(); c != nil && pieces > 1 {
			yes, no := s.given(c, true), s.given(c, false)
			return append(yes.solve(pieces/2), no.solve(pieces/2)...)
		}
		if !s.step() {
			break
		}
	}
	s.leaveAll()
	s.useConditions()
	return []*system{s}
}

// step applies the first elimination of the table that fits. Eliminations that leave no new
// range come first.
func (s *system) step() bool {
	for _, try := range []func(equation) bool{s.determined, s.single, s.quotient, s.remainder, s.digits, s.overlap,
		s.beside, s.unit, s.divisible} {
		for i, e := range s.eqs {
			rest := slices.Clone(s.eqs)
			s.eqs = slices.Delete(slices.Clone(s.eqs), i, i+1)
			if try(e) {
				return true
			}
			s.eqs = rest
		}
	}
	return false
}

// facts for proofs about points that matter.
func (s *system) facts() ir.Facts {
	f := s.p.facts
	f.Within = s.within
	return f
}

func (s *system) simple(e *ir.Expr) *ir.Expr { return ir.Simplify(e, s.facts()) }

// normalize moves what depends on the ranges that remain to the left of each equation, and the
// rest to the right.
func (s *system) normalize() {
	for i, e := range s.eqs {
		left, right := ir.IntConst(0), ir.IntConst(0)
		for _, t := range addends(s.simple(minus(e.left, e.right)), false) {
			if s.dependsOn(t) {
				left = plus(left, t)
			} else {
				right = minus(right, t)
			}
		}
		left, right = s.simple(left), s.simple(right)
		if left.Op == ir.OpNeg || left.Op == ir.OpMul && left.Args[0].Op == ir.OpConst && left.Args[0].Int < 0 {
			left, right = s.simple(negated(left)), s.simple(negated(right))
		}
		s.eqs[i] = equation{left, right}
	}
}

// addends are the terms of a sum.
func addends(e *ir.Expr, minus bool) []*ir.Expr {
	switch e.Op {
	case ir.OpAdd:
		return append(addends(e.Args[0], minus), addends(e.Args[1], minus)...)
	case ir.OpSub:
		return append(addends(e.Args[0], minus), addends(e.Args[1], !minus)...)
	case ir.OpNeg:
		return addends(e.Args[0], !minus)
	}
	if minus {
		e = negated(e)
	}
	return []*ir.Expr{e}
}

// replace eliminates a range with the solution by.
func (s *system) replace(r *ir.Range, by *ir.Expr) {
	by = s.simple(by)
	s.ranges = slices.DeleteFunc(slices.Clone(s.ranges), func(x *ir.Range) bool { return x == r })
	with := map[*ir.Range]*ir.Expr{r: by}
	for i, e := range s.eqs {
		s.eqs[i] = equation{ir.Substitute(e.left, with), ir.Substitute(e.right, with)}
	}
	s.substitute(with)
	low, high := ir.Apply(ir.OpLe, ir.IntConst(0), by), ir.Apply(ir.OpLt, by, r.Extent)
	s.guards = append(s.guards, guard{r, ir.Apply(ir.OpAnd, low, high)})
}

// substitute replaces ranges in the conditions, the guards and the body. The lists are copied
// first, because systems that are pieces of one index share them.
func (s *system) substitute(with map[*ir.Range]*ir.Expr) {
	s.conds = slices.Clone(s.conds)
	for i, c := range s.conds {
		s.conds[i] = ir.Substitute(c, with)
	}
	s.guards = slices.Clone(s.guards)
	for i, g := range s.guards {
		s.guards[i].cond = ir.Substitute(g.cond, with)
	}
	s.body = ir.Substitute(s.body, with)
}

// add adds a range to sum over.
func (s *system) add(name string, extent *ir.Expr) *ir.Range {
	r := s.p.g.NewRange(name, s.simple(extent))
	s.ranges = append(slices.Clone(s.ranges), r)
	s.within = append(slices.Clone(s.within), r)
	return r
}

func (s *system) require(cond *ir.Expr) { s.conds = append(slices.Clone(s.conds), cond) }

// equal adds an equation.
func (s *system) equal(left, right *ir.Expr) { s.eqs = append(s.eqs, equation{left, right}) }

// leaveAll turns the equations that are left into conditions.
func (s *system) leaveAll() {
	for _, e := range s.eqs {
		s.require(ir.Apply(ir.OpEq, e.left, e.right))
	}
	s.eqs = nil
}

// useConditions eliminates ranges that are determined by a condition, such as the comparison
// with a key.
func (s *system) useConditions() {
	for i := 0; i < len(s.conds); i++ {
		c := s.conds[i]
		if c.Op != ir.OpEq || c.Args[0].Type != ir.Index {
			continue
		}
		difference := s.simple(minus(c.Args[0], c.Args[1]))
		if r, stride := s.linearIn(difference, 1); r != nil {
			s.conds = slices.Delete(slices.Clone(s.conds), i, i+1)
			s.replace(r, ir.Apply(ir.OpMul, negated(stride), s.without(difference, r)))
			i = -1
		}
	}
}

// useResidues sums over every n-th point of a range alone where a condition picks these, as that of a transposed convolution
// does whose taps are a multiple of the stride apart: the range is n*t plus a number, and so it is in all quotients by n.
func (s *system) useResidues() {
	for i := 0; i < len(s.conds); i++ {
		c := s.simple(s.conds[i])
		if c.Op != ir.OpEq || c.Args[0].Type != ir.Index || c.Args[0].Op != ir.OpMod || c.Args[1].Op != ir.OpConst {
			continue
		}
		place, n := c.Args[0].Args[0], c.Args[0].Args[1]
		r := s.only(place)
		if r == nil || n.Op != ir.OpConst || n.Int < 2 || len(ir.FreeRanges(place)) != 1 {
			continue
		}
		stride, ok := ir.Stride(place, r, s.facts())
		if !ok || !stride.IsConst(1) && !stride.IsConst(-1) {
			continue
		}
		first := s.simple(rest(ir.Apply(ir.OpMul, stride, minus(c.Args[1], s.without(place, r))), n))
		s.conds = slices.Delete(slices.Clone(s.conds), i, i+1)
		t := s.add("t", over(plus(minus(r.Extent, first), minus(n, ir.IntConst(1))), n))
		s.replace(r, plus(first, ir.Apply(ir.OpMul, n, t.At())))
		i = -1
	}
}

// allConds are the conditions, with the guards that are not implied by reads. A guard is
// implied if a factor reads an axis of the range's extent at the solution itself: outside of
// the range that read is 0.
func (s *system) allConds() []*ir.Expr {
	out := slices.Clone(s.conds)
	for _, g := range s.guards {
		if s.singular || !impliesInside(s.original, g.of) {
			out = append(out, ir.Conjuncts(g.cond)...)
		}
	}
	return out
}

// impliesInside reports whether a factor of e is a read that is outside, and so 0, wherever r is.
func impliesInside(e *ir.Expr, r *ir.Range) bool {
	switch e.Op {
	case ir.OpMul:
		return impliesInside(e.Args[0], r) || impliesInside(e.Args[1], r)
	case ir.OpDiv, ir.OpNeg, ir.OpCast:
		return impliesInside(e.Args[0], r)
	case ir.OpLoad:
		if !e.Type.IsFloat() || e.Fill != nil && !e.Fill.IsConst(0) {
			return false
		}
		for d, index := range e.Args {
			if index.Op == ir.OpRange && index.Range == r && ir.SameSize(e.From.Axes[d].Extent, r.Extent) {
				return true
			}
		}
	}
	return false
}

// linearIn finds a range of stride 1 or -1 in e, or of any constant stride if most < 0, and
// returns it with its stride. Of several it takes the longest, because the others stay in the
// sum.
func (s *system) linearIn(e *ir.Expr, most int64) (best *ir.Range, stride *ir.Expr) {
	free := ir.FreeRanges(e)
	for _, r := range s.ranges {
		if !free[r] {
			continue
		}
		c, ok := ir.Stride(e, r, s.facts())
		if !ok || c.Op != ir.OpConst || c.Int == 0 || most > 0 && c.Int != 1 && c.Int != -1 {
			continue
		}
		if best == nil || longer(r, best) {
			best, stride = r, c
		}
	}
	return best, stride
}

// longer reports whether r is longer than t, as far as that is known. An extent that is not a
// number counts as longer than one that is.
func longer(r, t *ir.Range) bool {
	if t.Extent.Op != ir.OpConst {
		return false
	}
	return r.Extent.Op != ir.OpConst || r.Extent.Int > t.Extent.Int
}

// without is e with a range at 0.
func (s *system) without(e *ir.Expr, r *ir.Range) *ir.Expr {
	return s.simple(ir.Substitute(e, map[*ir.Range]*ir.Expr{r: ir.IntConst(0)}))
}

// only returns the range in e that remains, if there is only one.
func (s *system) only(e *ir.Expr) *ir.Range {
	var found *ir.Range
	free := ir.FreeRanges(e)
	for _, r := range s.ranges {
		switch {
		case !free[r]:
		case found != nil:
			return nil
		default:
			found = r
		}
	}
	return found
}

// plain is an index without conversions to i64 and back. The language uses these for operations
// such as the absolute value of ranges, and they are exact there.
func plain(e *ir.Expr) *ir.Expr {
	if ir.Has(e, ir.OpLoad, ir.OpRandom, ir.OpRandom16) && e.Op == ir.OpCast {
		return e
	}
	switch {
	case e.Op == ir.OpCast && e.Type == ir.Index && e.Args[0].Type == ir.I64:
		return unwrapped(e.Args[0])
	case e.Type == ir.Index:
		return e.WithParts(func(a *ir.Expr) *ir.Expr {
			if a.Type == ir.Index {
				return plain(a)
			}
			return a
		})
	}
	return e
}

// unwrapped is an i64 expression of ranges as an index.
func unwrapped(e *ir.Expr) *ir.Expr {
	args := make([]*ir.Expr, len(e.Args))
	for i, a := range e.Args {
		if a.Type == ir.I64 {
			args[i] = unwrapped(a)
		}
	}
	switch e.Op {
	case ir.OpConst:
		return ir.IntConst(e.Int)
	case ir.OpCast:
		return plain(ir.Cast(e.Args[0], ir.Index))
	case ir.OpSelect:
		return ir.Where(e.Args[0], args[1], args[2])
	case ir.OpAbs:
		return ir.Where(ir.Apply(ir.OpLe, ir.IntConst(0), args[0]), args[0], negated(args[0]))
	case ir.OpAdd, ir.OpSub, ir.OpMul, ir.OpNeg, ir.OpMin, ir.OpMax, ir.OpFloorDiv, ir.OpMod:
		return ir.Apply(e.Op, args...)
	}
	return ir.Cast(e, ir.Index)
}

func plus(a, b *ir.Expr) *ir.Expr  { return ir.Apply(ir.OpAdd, a, b) }
func minus(a, b *ir.Expr) *ir.Expr { return ir.Apply(ir.OpSub, a, b) }
func negated(a *ir.Expr) *ir.Expr  { return ir.Apply(ir.OpNeg, a) }
func over(a, b *ir.Expr) *ir.Expr  { return ir.Apply(ir.OpFloorDiv, a, b) }
func rest(a, b *ir.Expr) *ir.Expr  { return ir.Apply(ir.OpMod, a, b) }
