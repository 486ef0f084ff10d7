package fuse

import (
	"maps"
	"slices"

	"github.com/fusec/fusec/ir"
)

// Tensor maps: how the copy engine sees an operand. An offset that is affine in groups of ranges, each taken
// together, is a tensor of as many dims; the strides but the first are multiples of 16 bytes.

const (
	mostTMATile = 256 // elements of a TMA tile along one dim
	largestRank = 5   // dims of a view
)

// affineRead is an offset as strides: one for each group of ranges, and one for each other range that
// the offset depends on.
type affineRead struct {
	start        *ir.Expr
	strides      []*ir.Expr // of the groups
	others       []*ir.Range
	otherStrides []*ir.Expr
}

// affine takes an offset apart. ok is false unless each group has one stride, all strides are positive, and the
// offset begins inside the tensor.
func (lo *kernel) affine(offset *ir.Expr, groups [][]*ir.Range, others []*ir.Range) (a affineRead, ok bool) {
	for _, g := range groups {
		stride, ok := lo.strideOf(offset, g)
		if !ok {
			return a, false
		}
		a.strides = append(a.strides, stride)
	}
	a.start = ir.Simplify(ir.AtZero(offset, slices.Collect(maps.Keys(ir.FreeRanges(offset)))...), lo.facts)
	for _, r := range others {
		stride, ok := ir.Stride(offset, r, lo.positive())
		if !ok {
			return a, false
		}
		if !stride.IsConst(0) {
			a.others, a.otherStrides = append(a.others, r), append(a.otherStrides, stride)
		}
	}
	for _, e := range slices.Concat(a.strides, a.otherStrides) {
		if ir.Decide(ir.Apply(ir.OpLt, ir.IntConst(0), e), lo.positive()) != ir.True {
			return a, false
		}
	}
	return a, ir.Decide(ir.Apply(ir.OpLe, ir.IntConst(0), a.start), lo.positive()) == ir.True
}

// strideOf is the stride of an offset along ranges, outermost first, taken as one index. There
// is one if the stride of each range is that of the next one times the extent of the next one.
func (lo *kernel) strideOf(offset *ir.Expr, ranges []*ir.Range) (*ir.Expr, bool) {
	var least, next *ir.Expr
	for d := len(ranges) - 1; d >= 0; d-- {
		if ranges[d].Extent.IsConst(1) {
			continue
		}
		stride, ok := ir.Stride(offset, ranges[d], lo.positive())
		if !ok || next != nil && !ir.SameIndex(stride, next, lo.positive()) {
			return nil, false
		}
		if least == nil {
			least = stride
		}
		next = ir.Apply(ir.OpMul, stride, ranges[d].Extent)
	}
	return least, least != nil
}

// view is the tensor map of the dims of an affine read: the groups in the given order, then the other ranges, each
// one element of a TMA tile.
func (a affineRead) view(name string, read *ir.Expr, dims, strides []*ir.Expr, box ...int) *ir.TMAView {
	w := &ir.TMAView{Name: name, Arg: read.Arg, Dims: dims, Strides: strides, Box: box}
	if !a.start.IsConst(0) {
		w.Offset = a.start
	}
	for i, r := range a.others {
		w.Dims, w.Strides, w.Box = append(w.Dims, r.Extent), append(w.Strides, a.otherStrides[i]), append(w.Box, 1)
	}
	return w
}

// linearParts rewrites an offset so that it is linear in ranges: quotients and remainders of
// batch ranges become ranges of their own. It returns the ranges other than row and lane, and
// what each of them stands for.
func (lo *kernel) linearParts(offset *ir.Expr, row, lane *ir.Range) (linear *ir.Expr, others []*ir.Range, at []*ir.Expr) {
	var cut func(e *ir.Expr) *ir.Expr
	cut = func(e *ir.Expr) *ir.Expr {
		free := ir.FreeRanges(e)
		if e.Op != ir.OpFloorDiv && e.Op != ir.OpMod || len(free) == 0 || free[row] || free[lane] {
			return e.WithParts(cut)
		}
		if i := slices.IndexFunc(at, func(x *ir.Expr) bool { return ir.Equal(x, e) }); i >= 0 {
			return others[i].At()
		}
		_, last := ir.Bounds(e, lo.inside(ir.FullLevel))
		if last == nil {
			return e
		}
		part := lo.g.NewRange("part", ir.Simplify(ir.Apply(ir.OpAdd, last, ir.IntConst(1)), lo.facts))
		others, at = append(others, part), append(at, e)
		return part.At()
	}
	linear = cut(offset)
	free := ir.FreeRanges(linear)
	for _, r := range slices.Concat(lo.k.Rows, lo.k.Cols) {
		if free[r] && r != row && r != lane {
			others, at = append(others, r), append(at, r.At())
		}
	}
	return linear, others, at
}
