package parser

import (
	"fmt"

	"github.com/fusec/fusec/ir"
)

// An index i / n picks what belongs to a group of n: a scale of a group of weights, the
// head of keys that a group of queries shares. A tensor with too few groups is a
// mistake, where the fill of a read outside would hide it, so that such an index must
// stay inside: it is checked now for numbers, and when the symbols bind otherwise.
// What does read outside says so with an else, or leaves those indices out by the
// predicate of the reduction that binds i.

// ofGroups reports whether e, which the program writes as text, is such an index.
func (b *builder) ofGroups(text *exprNode, e *ir.Expr) bool {
	r, _ := ir.GroupOf(e)
	if r == nil || r.Extent == nil || e.Op == ir.OpRange && !isQuotient(text) {
		return false
	}
	info := b.rangeNamed(r)
	return info == nil || !info.guarded
}

// isQuotient reports whether e is written a / b: i / (H / G) is i where H / G is 1.
func isQuotient(e *exprNode) bool { return len(e.Rest) == 1 && e.Rest[0].Op == "/" }

// groupsHold makes an index i / n of an axis of x stay inside.
func (b *builder) groupsHold(x val, item alignedItem, e *ir.Expr) bool {
	r, n := ir.GroupOf(e)
	groups := x.arr.shape[item.axis]
	cond := ir.GroupsHold(r.Extent, n, groups)
	if b.g.Implies(cond) {
		return true
	}
	held, extent := cond.Args[0], cond.Args[1]
	info := b.rangeNamed(r)
	what := x.name
	if what == "" {
		what = x.describe()
	}
	index := fmt.Sprintf("index %s of axis %d of %s", sizeText(e), item.axis, what)
	if held.Op != ir.OpConst || extent.Op != ir.OpConst {
		b.require(cond, fmt.Sprintf("%s must stay inside: needs %s <= %s, where %s "+
			"runs over %s", index, sizeText(extent), sizeText(held), r.Name, info.extentText(r)), item.node.span())
		return true
	}
	err := b.errorf(item.node.span(), "%s runs outside: %s groups of %s hold %s, where %s runs over %s: "+
		"write else 0 behind the index to read 0 there", index, sizeText(groups), sizeText(n), sizeText(held), r.Name,
		info.extentText(r))
	b.origins(err, []val{x})
	if info != nil && info.why != "" {
		err.Note(b.shown(info.from), "%s gives %s the size %s", info.why, r.Name, sizeText(r.Extent))
	}
	return false
}

// extentText spells the extent of a range with what gave it.
func (r *rangeInfo) extentText(rng *ir.Range) string {
	if r == nil || r.why == "" {
		return sizeText(rng.Extent)
	}
	return sizeText(rng.Extent) + ", " + r.why
}

// rangeNamed is what the scope knows about a range.
func (b *builder) rangeNamed(r *ir.Range) *rangeInfo {
	for s := b.scope; s != nil; s = s.parent {
		for _, bound := range s.names {
			if bound.rng != nil && bound.rng.rng == r {
				return bound.rng
			}
		}
	}
	return nil
}

// guardRanges marks the ranges of the innermost scope.
func (b *builder) guardRanges() {
	for _, bound := range b.scope.names {
		if bound.rng != nil {
			bound.rng.guarded = true
		}
	}
}
