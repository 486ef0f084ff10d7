package fuse

import (
	"slices"

	"github.com/fusec/fusec/ir"
)

// One axis of a result may be several axes of the reduced tensor taken together. An example is the gradient of a bias
// whose product is split into heads: it has an element for each pair of a head and a place in the head. Then no loop
// of the kernel runs along the memory that it reads. splitDigits splits the loop into one for each of these axes; the
// result stays the same.

// splitDigits splits rows of reductions where the largest tensor is read along digits of them.
func (pt *partition) splitDigits() {
	for _, v := range pt.g.Values {
		r := pt.home[v]
		if r == nil || r.members[0] != v || !storesRowsOnly(r) {
			continue
		}
		if s, n := pt.digitRead(r); s != nil {
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
