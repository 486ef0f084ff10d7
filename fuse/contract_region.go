package fuse

import (
	"maps"

	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// Which regions may keep a product in tiles.

// keepsTiles refuses to put a second reduction into the kernel of a product that is computed in tiles. Whether two
// streams may share a kernel, their own veto says.
func (m *merging) keepsTiles() *form.Refusal {
	if m.al.streams != nil {
		return nil
	}
	return m.oneSum(m.wholeA, m.wholeB)
}

// oneSum refuses two regions of which one is a product in tiles and the other has a reduction: the registers hold one
// set of sums. Two products with the same left side are allowed, because that side is then read once.
func (fl *flow) oneSum(a, b *region) *form.Refusal {
	for _, pair := range [][2]*region{{a, b}, {b, a}} {
		product, other := fl.product(pair[0]), reductionOf(pair[1])
		if product == nil || other == nil {
			continue
		}
		if fl.oneLeftSide(a, b) {
			return nil
		}
		return form.Refuse(ir.ReasonResources, other.Origin.Span,
			"%s is multiplied in tiles, with the sums of one reduction in registers", product.Name)
	}
	return nil
}

// oneLeftSide reports whether the reductions of two regions, in one kernel, would be products with the same left side.
func (fl *flow) oneLeftSide(a, b *region) bool {
	a, b, al, no := fl.align(a, b)
	return no == nil && sharesOperand(merged(a, b, al, fl.order))
}

// sharesOperand reports whether all reductions of a region are products with the same elements of one
// tensor, and these share only the innermost range and the batch with the result.
func sharesOperand(r *region) bool {
	var left *ir.Expr
	var own map[*ir.Range]bool
	count := 0
	for _, v := range r.members {
		if v.Reduce == nil {
			continue
		}
		factors := form.FactorsOf(v.Body)
		if !form.IsTileProduct(v) || len(factors) != 2 {
			return false
		}
		at, last := r.at[v], v.Axes[len(v.Axes)-1]
		a, b := factors[0], factors[1]
		if ir.DependsOn(a, last) {
			a, b = b, a
		}
		side, others := ir.Substitute(a, at), ir.FreeRanges(ir.Substitute(b, at))
		if ir.DependsOn(a, last) || count > 0 && (!ir.Equal(side, left) || !maps.Equal(others, own)) {
			return false
		}
		left, own = side, others
		count++
	}
	return count <= contractFolds
}

// product returns a member that sums products of two tensors each of which lacks rows of the other; nil
// where there is none.
func (p *program) product(r *region) *ir.Value {
	if p.g.Numerics != ir.Fast || !p.device.TensorCores() {
		return nil
	}
	for _, v := range r.members {
		if form.Crosses(v) {
			return v
		}
	}
	return nil
}
