package fuse

import (
	"slices"

	"github.com/fusec/fusec/ir"
)

// Size classes: the conditions under which the variants of a kernel are chosen, and which
// of them can be.

// classes adds the 32-bit condition to each variant, and 64-bit versions of some;
// it drops what can never be chosen.
func classes(in []*ir.Variant, small *ir.Expr) []*ir.Variant {
	in = reachable(in)
	var out []*ir.Variant
	for _, v := range in {
		v.When = and(small, v.When)
		if ir.Decide(orTrue(v.When), ir.Facts{}) == ir.False {
			continue
		}
		out = append(out, v)
		if v.When == nil {
			return out
		}
	}
	for _, v := range anySize(in) {
		large := *v
		large.When = withoutTerm(v.When, small)
		large.Schedule = widely(v.Schedule)
		out = append(out, &large)
		if large.When == nil {
			return out
		}
	}
	return out
}

// widely is a schedule for 64-bit offsets, which take registers that threads with many accesses
// under way, and those of the largest blocks in chains, do not have.
func widely(s ir.Schedule) ir.Schedule {
	s.Index64 = true
	switch {
	case s.Chain > 0 && s.Threads == chainThreads:
		return halved(s)
	case s.Chain == 0 && s.ColThreads > 0 && s.Unroll*s.Vector > groupGuarded:
		s.Unroll /= 2
	}
	return s
}

// anySize lists the variants that have versions with 64-bit offsets: the last two, which
// take any size, between which may be blocks for rows of single elements of some length, and of
// tiles the one that does where no other is better.
func anySize(in []*ir.Variant) []*ir.Variant {
	last := in[len(in)-1:]
	for _, v := range slices.Backward(in[:len(in)-1]) {
		if s := v.Schedule; s.Mapping != ir.RowMapping || s.Vector > 1 || s.Items == 0 {
			last = []*ir.Variant{v, last[0]}
			break
		}
	}
	var tiles *ir.Variant
	for _, v := range in {
		if v.Schedule.Mapping == ir.WarpgroupMapping && v.Schedule.Vector == in[0].Schedule.Vector {
			tiles = v
		}
	}
	if tiles == nil || slices.Contains(last, tiles) {
		return last
	}
	return append([]*ir.Variant{tiles}, last...)
}

// reachable drops what stands behind a variant that takes all of its sizes: of rows of
// constant length all but the first rung that is long enough, of tiles through mma.sync
// those that warpgroups take.
func reachable(in []*ir.Variant) (out []*ir.Variant) {
	for _, v := range in {
		taken := slices.ContainsFunc(out, func(first *ir.Variant) bool {
			return includes(v.When, first.When)
		})
		if !taken {
			out = append(out, v)
		}
	}
	return out
}

// includes reports whether every part of a condition is one of another's, or a lower bound
// that one of another's is above: then that implies it.
func includes(e, condition *ir.Expr) bool {
	parts := conjuncts(orTrue(e))
	return condition == nil || !slices.ContainsFunc(conjuncts(condition), func(c *ir.Expr) bool {
		return !slices.ContainsFunc(parts, func(part *ir.Expr) bool { return ir.Equal(part, c) || above(part, c) })
	})
}

// above reports whether two conditions are lower bounds of one size, the first no lower one.
func above(a, b *ir.Expr) bool {
	bound := func(e *ir.Expr) bool { return e.Op == ir.OpLe && e.Args[0].Op == ir.OpConst }
	return bound(a) && bound(b) && a.Args[0].Int >= b.Args[0].Int && ir.Equal(a.Args[1], b.Args[1])
}

func orTrue(e *ir.Expr) *ir.Expr {
	if e == nil {
		return ir.IntNum(ir.Bool, 1)
	}
	return e
}

// and joins two conditions, either of which may be nil for true.
func and(a, b *ir.Expr) *ir.Expr {
	return ir.Join(ir.OpAnd, orNil(a), orNil(b))
}

// orNil is a condition, or nil where it always holds.
func orNil(e *ir.Expr) *ir.Expr {
	if e != nil && always(e) {
		return nil
	}
	return e
}

// always reports whether a condition always holds. A conjunction does where its parts do; most have a
// first part that does not, which saves deciding the others.
func always(e *ir.Expr) bool {
	if e.Op == ir.OpAnd {
		return always(e.Args[0]) && always(e.Args[1])
	}
	return ir.Decide(e, ir.Facts{}) == ir.True
}

// withoutTerm undoes and(term, rest).
func withoutTerm(e, term *ir.Expr) *ir.Expr {
	switch {
	case e == nil || e == term:
		return nil
	case e.Op == ir.OpAnd && e.Args[0] == term:
		return e.Args[1]
	}
	return e
}
