package fuse

import "github.com/fusec/fusec/ir"

// maxSplits bounds the loops that are split to align two regions.
const maxSplits = 8

// The names of the two parts of a split range are its own name with a suffix.
const (
	highSuffix = "_high"
	lowSuffix  = "_low"
)

// matcher pairs the loops of two regions, a and b, so that an index of one is an index of the other. Where
// one loop of a region is two loops of the other, it asks for a split: a range s that is read as s/n and
// s%n, or that corresponds to an index outer*n + inner, becomes the two ranges outer and inner.
type matcher struct {
	*alignment
	facts ir.Facts
	equal bool      // whether any two indices match if all of their loops are paired and they are equal
	fresh []pairing // pairs of the current match
	want  *split
}

type pairing struct{ a, b *ir.Range }

// split asks for s to become outer*inner.Extent + inner, in region b or a.
type split struct {
	ofB          bool
	s            *ir.Range
	outer, inner *ir.Expr // extents
}

// match reports whether ea, over a's space, and eb, over b's, are the same index, or become so by pairing
// loops or by the split it asks for. The pairs are kept until commit.
func (m *matcher) match(ea, eb *ir.Expr) bool {
	if ea == nil || eb == nil {
		return false
	}
	if m.equal && m.areEqual(ea, eb) {
		return true
	}
	switch {
	case ea.Op == ir.OpRange && eb.Op == ir.OpRange:
		return m.matchRanges(ea.Range, eb.Range)
	case ea.Op == ir.OpConst || eb.Op == ir.OpConst:
		return ir.Equal(ea, eb)
	case ea.Op == ir.OpRange:
		return m.matchSplit(ea.Range, eb, false)
	case eb.Op == ir.OpRange:
		return m.matchSplit(eb.Range, ea, true)
	}
	outerA, na, innerA := m.mixed(ea)
	outerB, nb, innerB := m.mixed(eb)
	return na != nil && nb != nil && m.same(na, nb) && m.match(outerA, outerB) && m.match(innerA, innerB)
}

// areEqual reports whether two indices of loops that are all paired are the same.
func (m *matcher) areEqual(ea, eb *ir.Expr) bool {
	rename := map[*ir.Range]*ir.Expr{}
	for r := range ir.FreeRanges(eb) {
		if m.to[r] == nil {
			return false
		}
		rename[r] = m.to[r].At()
	}
	return ir.SameIndex(ea, ir.Substitute(eb, rename), m.facts)
}

func (m *matcher) matchRanges(ra, rb *ir.Range) bool {
	for _, p := range m.fresh {
		if p.a == ra || p.b == rb {
			return p.a == ra && p.b == rb
		}
	}
	switch {
	case m.to[rb] == ra:
		return true
	case m.to[rb] != nil || m.from[ra] != nil || m.sorted[ra] != m.sorted[rb] || !ir.SameSize(ra.Extent, rb.Extent):
		return false
	}
	m.fresh = append(m.fresh, pairing{ra, rb})
	return true
}

// matchSplit matches range r of one region with an index e of the other. e is a part of a range there, or
// r is several ranges of e taken as one. inB says that r is of region b.
func (m *matcher) matchSplit(r *ir.Range, e *ir.Expr, inB bool) bool {
	if m.sorted[r] {
		return false
	}
	if outer, n, inner := m.mixed(e); n != nil {
		return !m.paired(r, inB) && m.ask(inB, r, m.span(outer), n) && inner != nil
	}
	if e.Op != ir.OpFloorDiv && e.Op != ir.OpMod || e.Args[0].Op != ir.OpRange {
		return false
	}
	s, n := e.Args[0].Range, e.Args[1]
	if m.paired(s, !inB) {
		return false
	}
	if e.Op == ir.OpFloorDiv {
		return m.ask(!inB, s, r.Extent, n)
	}
	runs := m.facts
	runs.Within = []*ir.Range{s, r}
	return m.same(r.Extent, n) && m.ask(!inB, s, ir.Simplify(ir.Apply(ir.OpFloorDiv, s.Extent, n), runs), n)
}

func (m *matcher) paired(r *ir.Range, inB bool) bool {
	if inB {
		return m.to[r] != nil
	}
	return m.from[r] != nil
}

// ask asks for a split if outer*inner points are provably the points of s.
func (m *matcher) ask(ofB bool, s *ir.Range, outer, inner *ir.Expr) bool {
	if outer == nil || m.sorted[s] || !m.same(ir.Apply(ir.OpMul, outer, inner), s.Extent) {
		return false
	}
	if m.want == nil {
		m.want = &split{ofB, s, outer, inner}
	}
	return true
}

func (m *matcher) same(a, b *ir.Expr) bool {
	return ir.Equal(a, b) || ir.SameSize(ir.Simplify(a, m.facts), ir.Simplify(b, m.facts))
}

// mixed reads an index as outer*n + inner with inner from 0 to n-1; n is nil where it is none.
func (m *matcher) mixed(e *ir.Expr) (outer, n, inner *ir.Expr) {
	if e.Op != ir.OpAdd {
		return nil, nil, nil
	}
	for i, product := range e.Args {
		inner := e.Args[1-i]
		size := m.span(inner)
		if product.Op != ir.OpMul || size == nil {
			continue
		}
		for j, n := range product.Args {
			if outer := product.Args[1-j]; m.span(outer) != nil && len(ir.FreeRanges(n)) == 0 && m.same(size, n) {
				return outer, n, inner
			}
		}
	}
	return m.mixedOfTerms(e)
}

// mixedOfTerms does the same for a sum of more than two terms, such as (i*H + h)*D + d after expansion: all terms
// but the innermost are multiples of the innermost extent.
func (m *matcher) mixedOfTerms(e *ir.Expr) (outer, n, inner *ir.Expr) {
	terms := ir.Operands(ir.OpAdd, e)
	if len(terms) < 3 {
		return nil, nil, nil
	}
	for i, inner := range terms {
		n := m.span(inner)
		if n == nil {
			continue
		}
		rest := ir.IntConst(0)
		for j, t := range terms {
			if j != i {
				rest = ir.Apply(ir.OpAdd, rest, t)
			}
		}
		outer := ir.Simplify(ir.Apply(ir.OpFloorDiv, rest, n), m.facts)
		whole := ir.Apply(ir.OpAdd, ir.Apply(ir.OpMul, outer, n), inner)
		if m.span(outer) != nil && ir.SameIndex(whole, e, m.facts) {
			return outer, n, inner
		}
	}
	return nil, nil, nil
}

// span is the number of points that an index made of whole ranges runs over; nil for other indices.
func (m *matcher) span(e *ir.Expr) *ir.Expr {
	if e.Op == ir.OpRange {
		return e.Range.Extent
	}
	if outer, n, _ := m.mixed(e); n != nil {
		return ir.Apply(ir.OpMul, m.span(outer), n)
	}
	return nil
}

// digits lists the ranges of an index made of whole ranges, outermost first; none
// for any other.
func (m *matcher) digits(e *ir.Expr) []*ir.Range {
	if e.Op == ir.OpRange {
		return []*ir.Range{e.Range}
	}
	outer, n, inner := m.mixed(e)
	if n == nil {
		return nil
	}
	return append(m.digits(outer), m.digits(inner)...)
}

// commit adds the pairs of a match to the alignment.
func (m *matcher) commit() {
	for _, p := range m.fresh {
		m.to[p.b], m.from[p.a] = p.a, p.b
	}
	m.fresh = m.fresh[:0]
}

// matchLoads pairs the loops of two loads of one tensor when every axis can be indexed alike.
func (m *matcher) matchLoads(a, b site) {
	for d := range a.load.Args {
		if !m.match(a.index(d, m.facts), b.index(d, m.facts)) {
			m.fresh, m.want = m.fresh[:0], nil
			return
		}
	}
	if m.want != nil { // the loops that the split makes are paired in the next round
		m.fresh = m.fresh[:0]
		return
	}
	m.commit()
}

// apply returns the regions with the loop split.
func (s *split) apply(g *ir.Graph, a, b *region) (*region, *region) {
	outer, inner := g.NewRange(s.s.Name+highSuffix, s.outer), g.NewRange(s.s.Name+lowSuffix, s.inner)
	if s.ofB {
		return a, b.split([]*ir.Range{s.s}, outer, inner)
	}
	return a.split([]*ir.Range{s.s}, outer, inner), b
}

// split returns the region with neighbouring ranges of its space replaced: taken as one, they become outer*|inner|
// + inner. The two new ranges are columns if the old ones are.
func (r *region) split(ranges []*ir.Range, outer, inner *ir.Range) *region {
	index := ir.Apply(ir.OpAdd, ir.Apply(ir.OpMul, outer.At(), inner.Extent), inner.At())
	with := ir.Digits(ranges, index)
	out := &region{id: r.id, members: r.members, accumulated: r.accumulated, inside: r.inside, concat: r.concat, size: r.size,
		reads: r.reads, inputs: r.inputs, cols: map[*ir.Range]bool{}, at: map[*ir.Value]map[*ir.Range]*ir.Expr{}}
	for _, old := range r.space {
		parts := []*ir.Range{old}
		switch {
		case old == ranges[0]:
			parts = []*ir.Range{outer, inner}
		case with[old] != nil:
			continue
		}
		for _, part := range parts {
			out.space = append(out.space, part)
			if r.cols[old] {
				out.cols[part] = true
			}
		}
	}
	for v, at := range r.at {
		out.at[v] = map[*ir.Range]*ir.Expr{}
		for own, e := range at {
			out.at[v][own] = ir.Substitute(e, with)
		}
	}
	out.stored = map[*ir.Value]*ir.Expr{}
	for v, inside := range r.stored {
		out.stored[v] = ir.Substitute(inside, with)
	}
	return out
}
