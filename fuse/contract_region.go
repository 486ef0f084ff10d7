package fuse

import (
	"maps"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/ir"
)

// Which regions may keep a product in tiles.

// keepsTiles refuses to put a second reduction into the kernel of a product that
// tiles can take: its registers hold one set of sums, or two where both are
// products with one left side, which then is read once.
func (f *fuser) keepsTiles(a, b *region) *refusal {
	for _, pair := range [][2]*region{{a, b}, {b, a}} {
		product, other := f.product(pair[0]), reductionOf(pair[1])
		if product == nil || other == nil {
			continue
		}
		if a, b, al, no := f.align(a, b); no == nil && f.sharesOperand(merged(a, b, al, f.order)) {
			return nil
		}
		return refuse(ir.ReasonResources, other.Origin.Span,
			"%s is multiplied in tiles, with the sums of one reduction in registers", product.Name)
	}
	return nil
}

func reductionOf(r *region) *ir.Value {
	for _, v := range r.members {
		if v.Reduce != nil {
			return v
		}
	}
	return nil
}

// sharesOperand reports whether all reductions of a region are products of one
// tensor, the same elements of it, with others that have the innermost range and the
// batch alone in common with the result.
func (f *fuser) sharesOperand(r *region) bool {
	var left *ir.Expr
	var own map[*ir.Range]bool
	count := 0
	for _, v := range r.members {
		if v.Reduce == nil {
			continue
		}
		factors := factorsOf(v.Body)
		if !isTileProduct(v) || len(factors) != 2 {
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

// product returns a member that sums products of two tensors, neither of which has
// all the rows of the other.
func (f *fuser) product(r *region) *ir.Value {
	if f.g.Numerics != ir.Fast || !f.opts.Device.TensorCores() {
		return nil
	}
	for _, v := range r.members {
		if crosses(v) {
			return v
		}
	}
	return nil
}

// isTileProduct reports whether a value sums products of two 16-bit tensors, neither of
// which has all the rows of the other.
func isTileProduct(v *ir.Value) bool {
	if v.Reduce == nil || v.Reduce.Op != ir.Sum || v.Reduce.Where != nil {
		return false
	}
	factors := factorsOf(v.Body)
	for _, x := range factors {
		for _, y := range factors {
			if halves(x) && halves(y) && !algebra.Subset(axesIn(v, x), axesIn(v, y)) && !algebra.Subset(axesIn(v, y), axesIn(v, x)) {
				return true
			}
		}
	}
	return false
}

func axesIn(v *ir.Value, e *ir.Expr) map[*ir.Range]bool {
	free, out := ir.FreeRanges(e), map[*ir.Range]bool{}
	for _, r := range v.Axes {
		if free[r] {
			out[r] = true
		}
	}
	return out
}

// halves reports whether an expression reads 16-bit floats.
func halves(e *ir.Expr) bool {
	for _, l := range ir.Loads(e) {
		if l.Type == ir.BF16 || l.Type == ir.F16 {
			return true
		}
	}
	return false
}
