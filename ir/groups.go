package ir

// An index i / n picks the element that belongs to a group of n, such as the scale of a group
// of weights, or the key head that a group of query heads shares. Unless a program says what a
// read outside returns, such an index must stay inside its axis.

// GroupOf splits an index i / n with n over symbols, or i itself, which is i / 1; r is
// nil for any other index.
func GroupOf(index *Expr) (r *Range, n *Expr) {
	switch {
	case index.Op == OpRange:
		return index.Range, IntConst(1)
	case index.Op == OpFloorDiv && index.Args[0].Op == OpRange && len(FreeRanges(index.Args[1])) == 0:
		return index.Args[0].Range, index.Args[1]
	}
	return nil, nil
}

// GroupsHold is the condition that i / n is below groups for every i below extent. It fails for
// n = 0.
func GroupsHold(extent, n, groups *Expr) *Expr {
	return Apply(OpGe, Simplify(Apply(OpMul, groups, n), Facts{}), Simplify(extent, Facts{}))
}

// Implies reports whether a condition a >= b is one of the graph's constraints, or a == b is,
// or it follows from their divisibility.
func (g *Graph) Implies(cond *Expr) bool {
	a, b := cond.Args[0], cond.Args[1]
	for _, c := range g.Constraints {
		same := c.Cond.Op == OpEq &&
			(Equal(c.Cond.Args[0], a) && Equal(c.Cond.Args[1], b) || Equal(c.Cond.Args[0], b) && Equal(c.Cond.Args[1], a))
		if same || Equal(c.Cond, cond) {
			return true
		}
	}
	facts := g.Facts()
	return ProveNonNegative(Simplify(Apply(OpSub, a, b), facts), facts)
}

// groupsHold reports whether no index i / n of a load can be outside. An index that has casts of numbers may be i / n once they
// are numbers, as they are where the text of the index is parsed.
func (g *Graph) groupsHold(load *Expr) bool {
	for axis, index := range load.Args {
		if plain := withoutCastNumbers(index); plain != index {
			index = Simplify(plain, Facts{})
		}
		r, n := GroupOf(index)
		if index.Op == OpFloorDiv && r != nil && !g.Implies(GroupsHold(r.Extent, n, load.From.Axes[axis].Extent)) {
			return false
		}
	}
	return true
}

// withoutCastNumbers is an index in which casts of numbers, which elements have been found to be, are numbers.
func withoutCastNumbers(e *Expr) *Expr {
	return Rewrite(e, func(e *Expr) *Expr {
		if e.Op == OpCast && e.Args[0].Op == OpConst {
			return Cast(e.Args[0], e.Type)
		}
		return e
	})
}
