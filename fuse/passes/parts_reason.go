package passes

import (
	"fmt"
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// WithoutParts says why a sum of products of f32 is not multiplied as a sum of terms of bf16 at some sizes, which is how f32
// reaches wgmma. It is "" where nothing is known to be missing.
func WithoutParts(g *ir.Graph, v *ir.Value, sizes map[string]int64) string {
	if g.OneKernel {
		return "@onekernel leaves no kernel that splits f32 into the terms of bf16 that wgmma multiplies"
	}
	if form.ReadsThroughWindow(v) {
		return withoutWindowParts(v, algebra.DefaultSizes(g))
	}
	a, b := form.SidesOf(v)
	switch {
	case v.Reduce.Where != nil:
		return "f32 reaches wgmma as terms of bf16, in sums of all products only: this one picks its products by a condition"
	case a == nil || b == nil:
		return ""
	case slices.ContainsFunc([]*ir.Expr{a, b}, func(side *ir.Expr) bool { return form.WorkOf(side) > partSlots }):
		return "f32 reaches wgmma as terms of bf16, and each number is computed once for each term: an operand takes too much work for that"
	case slices.ContainsFunc([]*ir.Expr{a, b}, func(side *ir.Expr) bool { return !ir.DependsOn(side, algebra.Innermost(v.Reduce.Ranges)) }):
		return "f32 reaches wgmma as terms of bf16, along the innermost range of the sum, on which one operand does not depend"
	}
	if limit, lacks := orderedProduct.lacks(v, a, b, sizes); lacks {
		return fmt.Sprintf("f32 reaches wgmma as terms of bf16, which pays from %d %s on, and here are %.0f; @tf32 multiplies f32 without them",
			limit.n, limit.what, algebra.PointsAt(limit.ranges, sizes))
	}
	if cost, saved := partCosts(v, a, b); !partsPay(cost, saved, sizes) {
		return fmt.Sprintf("f32 reaches wgmma as terms of bf16, and laying these out takes longer than they save where a sum has %.0f terms and each number so few partners; @tf32 multiplies f32 without them",
			algebra.PointsAt(v.Reduce.Ranges, sizes))
	}
	return ""
}

// withoutWindowParts is the same for windows of an input.
func withoutWindowParts(v *ir.Value, sizes map[string]int64) string {
	w := windowIn(v)
	if w == nil {
		return "f32 reaches wgmma as terms of bf16, of windows that are read in one step along each axis and that only the results' own channels repeat"
	}
	channels, own, input := algebra.Estimate(w.input.channels().Extent, sizes), algebra.PointsAt(w.own, sizes), algebra.PointsAt(w.input.load.From.Axes, sizes)
	switch {
	case w.fewChannels(sizes):
		return fmt.Sprintf("f32 reaches wgmma as terms of bf16, which pays from %d channels of the input and of the result on, and here are %.0f and %.0f",
			partChannels, channels, own)
	case w.work(sizes) < partWork:
		return fmt.Sprintf("f32 reaches wgmma as terms of bf16, which pays from %d multiplications on, and here are %.0f", partWork, w.work(sizes))
	case w.work(sizes) < partReuse*input:
		return fmt.Sprintf("f32 reaches wgmma as terms of bf16, which pays from %d multiplications of each element of the input on, and here are %.0f",
			partReuse, w.work(sizes)/input)
	}
	return ""
}

// windowIn describes a product of weights with windows as the passes see it, and leaves the value as it is.
func windowIn(v *ir.Value) *windowed {
	u := *v
	turnTaps(&u)
	return windowedProduct(&u)
}

// WithoutLayout says why the operands of a sum of products over windows are not laid out with their channels last, which is
// how windows reach wgmma. It is "" where nothing is known to be missing, and for other products.
func WithoutLayout(g *ir.Graph, v *ir.Value) string {
	if !form.ReadsThroughWindow(v) {
		return ""
	}
	w, sizes := windowIn(v), algebra.DefaultSizes(g)
	if w == nil {
		return ""
	}
	channels, own := algebra.Estimate(w.input.channels().Extent, sizes), algebra.PointsAt(w.own, sizes)
	switch {
	case w.rowByRow(sizes) || w.staged(g, sizes):
		return fmt.Sprintf("windows of %.0f channels with %.0f results each are read from the input as it lies, which moves fewer bytes than laying it out for wgmma", channels, own)
	case !w.large(sizes):
		return fmt.Sprintf("%.0f channels of the input, %.0f of the result and %.0f multiplications are too few for laying the operands out for wgmma", channels, own, w.work(sizes))
	case !w.worth(sizes):
		return fmt.Sprintf("each element of the input is multiplied %.0f times, too few for laying it out for wgmma", w.work(sizes)/algebra.PointsAt(w.input.load.From.Axes, sizes))
	}
	return ""
}
