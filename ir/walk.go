package ir

import "slices"

// Walk calls f on e and everything below it, each shared node once, parents
// first. f returns whether to go below.
func Walk(e *Expr, f func(*Expr) bool) {
	var seen exprMap[struct{}]
	walk(e, f, &seen)
}

func walk(e *Expr, f func(*Expr) bool, seen *exprMap[struct{}]) {
	if e == nil {
		return
	}
	if _, ok := seen.get(e); ok {
		return
	}
	seen.set(e, struct{}{})
	if !f(e) {
		return
	}
	for _, a := range e.Args {
		walk(a, f, seen)
	}
	walk(e.Fill, f, seen)
	walk(e.Guard, f, seen)
	if e.Reduce != nil {
		walk(e.Reduce.Where, f, seen)
		walk(e.Reduce.Rank, f, seen)
	}
}

// WalkThrough is Walk over several expressions, any of which may be nil. It also goes into the
// definitions of locals for which f returns true.
func WalkThrough(f func(*Expr) bool, exprs ...*Expr) {
	var seen exprMap[struct{}]
	var visit func(e *Expr) bool
	visit = func(e *Expr) bool {
		below := f(e)
		if below && e.Op == OpLocal {
			walk(e.Local.Def, visit, &seen)
		}
		return below
	}
	for _, e := range exprs {
		walk(e, visit, &seen)
	}
}

// Contains reports whether is holds for a node of e; e may be nil, which has none.
func Contains(e *Expr, is func(*Expr) bool) bool {
	found := false
	Walk(e, func(e *Expr) bool {
		found = found || is(e)
		return !found
	})
	return found
}

// Has reports whether a node of e, which may be nil, is one of the operations.
func Has(e *Expr, ops ...Op) bool {
	return Contains(e, func(e *Expr) bool { return slices.Contains(ops, e.Op) })
}

// LocalsIn returns the locals with definitions that expressions use, those that these use
// in turn included, in the order of all.
func LocalsIn(all []*Local, exprs ...*Expr) []*Local {
	used := map[*Local]bool{}
	WalkThrough(func(e *Expr) bool {
		if e.Op == OpLocal && e.Local.Def != nil {
			used[e.Local] = true
		}
		return true
	}, exprs...)
	return slices.DeleteFunc(slices.Clone(all), func(l *Local) bool { return !used[l] })
}

// Rewrite rebuilds e bottom up: f sees each node with its parts already
// rewritten, and returns the node to use instead. Shared nodes are visited once.
func Rewrite(e *Expr, f func(*Expr) *Expr) *Expr {
	if e == nil {
		return nil
	}
	var memo exprMap[*Expr]
	var rewrite func(e *Expr) *Expr
	rewrite = func(e *Expr) *Expr {
		if out, ok := memo.get(e); ok {
			return out
		}
		out := f(e.WithParts(rewrite))
		memo.set(e, out)
		return out
	}
	return rewrite(e)
}

// Replace rebuilds e top down: f sees each node before its parts, and where it
// returns another node that one is used as it is.
func Replace(e *Expr, f func(*Expr) *Expr) *Expr {
	var memo exprMap[*Expr]
	var replace func(e *Expr) *Expr
	replace = func(e *Expr) *Expr {
		if out, ok := memo.get(e); ok {
			return out
		}
		out := f(e)
		if out == e {
			out = e.WithParts(replace)
		}
		memo.set(e, out)
		return out
	}
	return replace(e)
}

// WithParts returns e with each sub-expression replaced, e itself where none changed.
func (e *Expr) WithParts(f func(*Expr) *Expr) *Expr {
	var args []*Expr // nil while all are as before: most nodes stay
	for i, a := range e.Args {
		next := f(a)
		if next != a && args == nil {
			args = append(make([]*Expr, 0, len(e.Args)), e.Args[:i]...)
		}
		if args != nil {
			args = append(args, next)
		}
	}
	swap := func(old *Expr) *Expr {
		if old == nil {
			return nil
		}
		return f(old)
	}
	fill, guard := swap(e.Fill), swap(e.Guard)
	var where, rank *Expr
	if e.Reduce != nil {
		where, rank = swap(e.Reduce.Where), swap(e.Reduce.Rank)
	}
	if args == nil && fill == e.Fill && guard == e.Guard &&
		(e.Reduce == nil || where == e.Reduce.Where && rank == e.Reduce.Rank) {
		return e
	}
	c := *e
	if args != nil {
		c.Args = args
	}
	c.Fill, c.Guard = fill, guard
	if e.Reduce != nil && (where != e.Reduce.Where || rank != e.Reduce.Rank) {
		r := *e.Reduce
		r.Where, r.Rank = where, rank
		c.Reduce = &r
	}
	return c.seal()
}

// Substitute replaces ranges by expressions. The ranges a nested reduction
// binds are left alone.
func Substitute(e *Expr, with map[*Range]*Expr) *Expr {
	if len(with) == 0 {
		return e
	}
	return Rewrite(e, func(e *Expr) *Expr {
		if e.Op == OpRange {
			if to, ok := with[e.Range]; ok {
				return to
			}
		}
		return e
	})
}

// AtZero returns an integer expression with ranges at their first point, 0: where an access begins.
func AtZero(e *Expr, ranges ...*Range) *Expr {
	to := make(map[*Range]*Expr, len(ranges))
	for _, r := range ranges {
		to[r] = IntConst(0)
	}
	return Substitute(e, to)
}

// FreeRanges returns the ranges e depends on, less those that its nested
// reductions bind. Range extents are not looked into: they hold symbols only.
func FreeRanges(e *Expr) map[*Range]bool {
	free := map[*Range]bool{}
	var bound []*Range
	Walk(e, func(e *Expr) bool {
		switch e.Op {
		case OpRange:
			free[e.Range] = true
		case OpReduce:
			bound = append(bound, e.Reduce.Ranges...)
		}
		return true
	})
	for _, r := range bound {
		delete(free, r)
	}
	return free
}

// Loads returns the loads in e, each once, in order of first appearance.
func Loads(e *Expr) []*Expr {
	var out []*Expr
	Walk(e, func(e *Expr) bool {
		if e.Op == OpLoad {
			out = append(out, e)
		}
		return true
	})
	return out
}

// Loads returns the loads of a value's body, predicate and rank.
func (v *Value) Loads() []*Expr {
	if v.Body == nil {
		return nil
	}
	out := Loads(v.Body)
	if v.Reduce != nil {
		out = append(append(out, Loads(v.Reduce.Where)...), Loads(v.Reduce.Rank)...)
	}
	return out
}
