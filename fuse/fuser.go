package fuse

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/ir"
)

// fuser grows regions by merging them until no merge saves time.
type fuser struct {
	*program
	*dependence
	choices []Choice
	home    map[*ir.Value]*region
	next    int
	marked  int // how many searches have marked regions, see merge_convex.go
	refused edgeRefusals
	work    map[*ir.Value]int // operations of a point
}

// contiguous is the index, in a region's space, of the range that is contiguous in the largest tensor it
// accesses; -1 where no range is.
func (f *fuser) contiguous(r *region) int {
	best, along := -1.0, -1
	m := &matcher{facts: f.facts}
	consider := func(u, v *ir.Value, at []*ir.Expr) {
		if size := f.bytes(v); size > best && len(at) > 0 {
			best, along = size, -1
			if digits := m.digits(r.index(u, at[len(at)-1], f.facts)); len(digits) > 0 {
				along = slices.Index(r.space, digits[len(digits)-1])
			}
		}
	}
	for _, v := range r.members {
		if f.leaves(v, r) {
			consider(v, v, algebra.UnitIndices(v.Axes))
		}
		for _, l := range f.loads[v] {
			if !r.has(l.From) {
				consider(v, l.From, l.Args)
			}
		}
	}
	return along
}
