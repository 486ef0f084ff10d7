package ir

import "slices"

// ParentsFirst lists the nodes of e, each once and after all nodes that it is a part of. With a
// nil wanted it lists all of them; otherwise a node that is not wanted is left out with its
// parts.
func ParentsFirst(e *Expr, wanted func(*Expr) bool) []*Expr {
	var out []*Expr
	seen := map[*Expr]bool{}
	var visit func(e *Expr)
	visit = func(e *Expr) {
		if e == nil || seen[e] || wanted != nil && !wanted(e) {
			return
		}
		seen[e] = true
		for _, a := range slices.Backward(e.Args) {
			visit(a)
		}
		out = append(out, e)
	}
	visit(e)
	slices.Reverse(out)
	return out
}

// Both is a && b, or one of them if they are equal. nil stands for a condition that always
// holds.
func Both(a, b *Expr) *Expr {
	if Equal(a, b) {
		return a
	}
	return Join(OpAnd, a, b)
}
