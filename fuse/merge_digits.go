package fuse

import (
	"slices"

	"github.com/fusec/fusec/fuse/forecast"
	"github.com/fusec/fusec/ir"
)

// One axis of a result may be several axes of the reduced tensor taken together. An example is the gradient of a bias
// whose product is split into heads: it has an element for each pair of a head and a place in the head. Then no loop
// of the kernel runs along the memory that it reads. splitDigits splits the loop into one for each of these axes; the
// result stays the same. Or a tensor is repeated along an axis: then the row of what is read again and again is split, so that neighbours
// are read together.

// leastRepeated is how many neighbours a tensor that is repeated must have: so many fill vectors and lines.
const leastRepeated = 32

// splitDigits splits rows of reductions where the largest tensor is read along digits of them, and others where all is read along the
// last of two digits.
func (pt *partition) splitDigits() {
	for _, v := range pt.g.Values {
		r := pt.home[v]
		if r == nil || r.members[0] != v || r.stream != nil || scanIn(r) != nil || sortIn(r) != nil {
			continue
		}
		split := pt.repeatedRow
		if storesRowsOnly(r) {
			split = pt.digitRead
		}
		if s, n := split(r); s != nil {
			outer := ir.Simplify(ir.Apply(ir.OpFloorDiv, s.Extent, n), pt.facts)
			pt.take(r.split([]*ir.Range{s}, pt.g.NewRange(s.Name+highSuffix, outer), pt.g.NewRange(s.Name+lowSuffix, n)))
		}
	}
}

// digitRead returns the row of a region and an n such that row % n runs along the memory of the largest tensor
// that the region's reductions read; nil if there is none.
func (p *program) digitRead(r *region) (row *ir.Range, n *ir.Expr) {
	var last *ir.Expr
	most := -1.0
	for _, v := range r.members {
		if v.Reduce == nil {
			continue
		}
		for _, l := range p.loads[v] {
			if size := p.bytes(l.From); !r.has(l.From) && len(l.Args) > 0 && size > most {
				most, last = size, r.index(v, l.Args[len(l.Args)-1], p.facts)
			}
		}
	}
	if last == nil || last.Op != ir.OpMod || last.Args[0].Op != ir.OpRange || r.cols[last.Args[0].Range] {
		return nil, nil
	}
	row, n = last.Args[0].Range, last.Args[1]
	whole := ir.Apply(ir.OpMul, ir.Apply(ir.OpFloorDiv, row.Extent, n), n)
	if len(ir.FreeRanges(n)) > 0 || !ir.SameSize(ir.Simplify(whole, p.facts), row.Extent) || !slices.Contains(r.space, row) {
		return nil, nil
	}
	return row, n
}

// repeatedRow returns the row of a region without reductions and a number n such that all that depends on the row is read at row % n;
// nil if there is none.
func (p *program) repeatedRow(r *region) (row *ir.Range, n *ir.Expr) {
	var at []*ir.Expr
	for _, v := range r.members {
		if v.Reduce != nil {
			return nil, nil
		}
		for _, l := range p.loads[v] {
			for _, e := range l.Args {
				if r.has(l.From) {
					continue
				}
				index := r.index(v, e, p.facts)
				if index == nil {
					return nil, nil
				}
				at = append(at, index)
			}
		}
	}
	i := slices.IndexFunc(at, func(e *ir.Expr) bool { return isRepeated(e, r) })
	if i < 0 {
		return nil, nil
	}
	row, n = at[i].Args[0].Range, at[i].Args[1]
	if slices.ContainsFunc(at, func(e *ir.Expr) bool { return ir.DependsOn(e, row) && !ir.Equal(e, at[i]) }) {
		return nil, nil
	}
	return row, n
}

// isRepeated reports whether an index goes several times through what is neither too little for lines of memory nor for vectors.
func isRepeated(e *ir.Expr, r *region) bool {
	if e.Op != ir.OpMod || e.Args[0].Op != ir.OpRange || e.Args[1].Op != ir.OpConst {
		return false
	}
	row, n := e.Args[0].Range, e.Args[1].Int
	return slices.Contains(r.space, row) && row.Extent.Op == ir.OpConst && row.Extent.Int%n == 0 && row.Extent.Int > n &&
		n >= leastRepeated && n%forecast.WidestVector == 0
}
