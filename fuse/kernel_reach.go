package fuse

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/forecast"
	"github.com/fusec/fusec/ir"
)

// Indices may be larger than any tensor. An index i * 1000 may be outside for most i, and i + 5 is
// outside at the end of a row. If such an index wrapped around, the condition that it is inside might
// hold by mistake. So every index that a kernel compares, divides or uses as a number has to fit the
// type of its indices. Only the offset of an access may wrap, because its guard keeps it from being
// used.

// reach lists the largest magnitudes of such indices, over symbols.
func (lo *kernel) reach() []*ir.Expr {
	var out []*ir.Expr
	seen := map[*ir.Expr]bool{}
	for _, root := range lo.roots() {
		facts := lo.inside(root.level)
		ir.Walk(*root.expr, func(e *ir.Expr) bool {
			if !seen[e] && algebra.NeedsWhole(e) {
				for _, a := range e.Args {
					out = append(out, algebra.ReachOf(a, facts)...)
				}
			}
			seen[e] = true
			return true
		})
	}
	return out
}

// below reports whether a magnitude is at most one of the sizes, or fits 32 bits if it is
// constant.
func (lo *kernel) below(magnitude *ir.Expr, sizes []*ir.Expr) bool {
	facts := lo.positive()
	if !ir.Has(magnitude, ir.OpSym) {
		return ir.ProveLess(magnitude, ir.IntConst(forecast.Largest32), facts)
	}
	return slices.ContainsFunc(sizes, func(size *ir.Expr) bool {
		return ir.ProveNonNegative(ir.Apply(ir.OpSub, size, magnitude), facts)
	})
}

// small is the condition under which every offset fits 32 bits; nil for always.
func (lo *kernel) small() *ir.Expr {
	var out *ir.Expr
	for _, size := range lo.extents() {
		out = algebra.And(out, ir.Apply(ir.OpLt, size, ir.IntConst(forecast.Largest32)))
	}
	return out
}

// extents lists what bounds the kernel's offsets and indices, each once: numbers of elements,
// numbers of points, and magnitudes of indices that reach beyond these.
func (lo *kernel) extents() []*ir.Expr {
	var out []*ir.Expr
	add := func(size *ir.Expr) {
		if !slices.ContainsFunc(out, func(s *ir.Expr) bool { return ir.SameSize(s, size) }) {
			out = append(out, size)
		}
	}
	for _, a := range lo.k.Args {
		add(algebra.Product(a.Buffer.Value.Axes))
	}
	add(algebra.Product(lo.k.Rows))
	add(algebra.Product(lo.k.Cols))
	for _, m := range lo.reach() {
		if !lo.below(m, out) {
			add(m)
		}
	}
	return out
}
