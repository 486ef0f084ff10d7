package passes

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// groups are the values that read matrices of each other.
func (m *matrices) groups() (out [][]*ir.Value) {
	of := map[*ir.Value]*ir.Value{} // towards the first of the group
	var first func(v *ir.Value) *ir.Value
	first = func(v *ir.Value) *ir.Value {
		if up := of[v]; up != nil {
			of[v] = first(up)
			return of[v]
		}
		return v
	}
	for _, v := range m.graph.Values {
		for _, l := range v.Loads() {
			if a, b := first(l.From), first(v); a != b && len(m.short[l.From]) > 0 && m.inside(l, v) {
				of[b] = a
			}
		}
	}
	members := map[*ir.Value][]*ir.Value{}
	for _, v := range m.graph.Values {
		members[first(v)] = append(members[first(v)], v)
	}
	for _, v := range m.graph.Values {
		if len(members[v]) > 1 {
			out = append(out, members[v])
		}
	}
	return out
}

// pays reports whether keeping the elements of a group's matrices in registers takes less time than memory does. Matrices that are read in
// another way, and results, are written element by element and put beside each other then.
func (m *matrices) pays(group []*ir.Value) bool {
	in := map[*ir.Value]bool{}
	nodes := 0
	for _, v := range group {
		in[v] = true
		nodes += m.nodes(v)
	}
	if nodes > mostElementNodes {
		return false
	}
	saved := 0.0
	outside, written := map[*ir.Value]bool{}, map[*ir.Value]bool{}
	for _, v := range m.graph.Values {
		crossed := map[*ir.Value]bool{}
		for _, l := range v.Loads() {
			switch {
			case !in[l.From]:
			case !in[v] || !m.inside(l, v):
				outside[l.From] = true
			case m.crosses(l, v):
				crossed[l.From] = true
			}
		}
		for u := range crossed {
			written[u] = true
			saved += algebra.BytesAt(u, m.sizes) + launchBytes
		}
	}
	for _, v := range group {
		bytes := algebra.BytesAt(v, m.sizes)
		switch {
		case (outside[v] || m.results[v]) && len(m.short[v]) > 0:
			saved -= 2*bytes + launchBytes
		case written[v]:
			saved += bytes
		}
	}
	return saved > 0
}

// nodes is about the size of the expressions of all elements of a value. Where the place picks one of several expressions, each of them is
// one element's.
func (m *matrices) nodes(v *ir.Value) int {
	n := form.CostOf(v.Body).Nodes
	switch {
	case v.Reduce != nil:
		return n * knownPoints(m.short[v]) * knownPoints(v.Reduce.Ranges)
	case picksByPlace(v.Body):
		return n
	}
	return n * knownPoints(m.short[v])
}

// crosses reports whether a value reads other elements of a matrix than the one that a thread would compute beside it: at a place of
// another axis, or each of them for several of its own elements. A reduction that reads each
// element once may compute it (components).
func (m *matrices) crosses(l *ir.Expr, reader *ir.Value) bool {
	short := l.Args[len(l.Args)-len(m.short[l.From]):]
	if len(short) == 0 {
		return false
	}
	reduced, sums := map[*ir.Range]bool{}, false
	if reader.Reduce != nil {
		slice := slices.ContainsFunc(short, func(at *ir.Expr) bool { return at.Op == ir.OpConst })
		if !slice && knownPoints(m.short[reader])*knownPoints(reader.Reduce.Ranges) <= knownPoints(m.short[l.From]) {
			return false
		}
		reduced = algebra.RangeSet(reader.Reduce.Ranges)
	}
	used := map[*ir.Range]bool{}
	for d, at := range short {
		if algebra.IsUnit(m.short[l.From][d]) {
			continue
		}
		if at.Op != ir.OpRange || used[at.Range] {
			return true
		}
		used[at.Range] = true
		sums = sums || reduced[at.Range]
	}
	return sums && slices.ContainsFunc(algebra.Widened(m.short[reader]), func(r *ir.Range) bool { return !used[r] })
}
