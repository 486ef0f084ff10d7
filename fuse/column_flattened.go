package fuse

import (
	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/ir"
)

// Figures of flattened kernels.
const (
	mostNear   = 4 // highest cost, in total, of the reads that are not vectors: see nearCost
	mostStride = 4 // largest stride of such a read, in elements
	mostTurns  = 4 // most lines between which such a read alternates
)

// flattened replaces the last variant of a kernel, which reads single elements, by one with vectors that run across the
// ends of rows, where the kernel allows it.
func (lo columnKernel) flattened(flat []*ir.Variant, sections []*ir.Section, lane *ir.Range, vector int) []*ir.Variant {
	together := lo.flattenedVariants(sections, lane, vector)
	if last := len(flat) - 1; len(together) > 0 && flat[last].When == nil {
		return append(flat[:last:last], together...)
	}
	return flat
}

// flattenedVariants are for pointwise kernels whose rows may not be whole numbers of vectors. A tensor with an element
// for each point, in the order of the points, is read and stored in vectors that run across the ends of rows, so these
// variants suit all sizes. A tensor of rows or columns alone is read point by point. There are no such variants if
// vectors along the innermost range suit all sizes already, or gain nothing.
func (lo columnKernel) flattenedVariants(sections []*ir.Section, lane *ir.Range, vector int) []*ir.Variant {
	if len(lo.k.Cols) > 0 || len(lo.k.Rows) < 2 || len(lo.parts) > 0 || vector == 1 || lo.gathers() ||
		ir.Multiple(lane.Extent, int64(vector), lo.inside(ir.FullLevel)) || !lo.readsFlattened(lane, vector) {
		return nil
	}
	b := newBody(lo.kernel)
	v := &ir.Variant{Sections: b.sections(sections), Locals: b.locals,
		Schedule: ir.Schedule{Mapping: ir.FlattenedMapping, Threads: pointThreads, Vector: vector}}
	for _, l := range v.Locals {
		if r := algebra.ReadIn(l.Def); r != nil {
			l.Wide = lo.runsFlattened(r.Guard, r.Args[0], vector)
		} else if drawn(l.Def.Op, vector) {
			l.Wide = lo.runsFlattened(nil, l.Def.Args[1], vector)
		}
	}
	for _, s := range v.Sections {
		for _, st := range s.Stores {
			if st.Wide = lo.runsFlattened(st.Guard, st.Offset, vector); !st.Wide {
				return nil
			}
		}
	}
	return []*ir.Variant{v}
}

// readsFlattened reports whether each read is such a vector, or of a small tensor, or cheap because
// neighbouring points lie near each other.
func (lo columnKernel) readsFlattened(lane *ir.Range, vector int) bool {
	seen, cost := map[*ir.Expr]bool{}, 0
	for _, root := range lo.roots() {
		ir.Walk(*root.expr, func(e *ir.Expr) bool {
			if e.Op == ir.OpRead && !seen[e] && !lo.runsFlattened(e.Guard, e.Args[0], vector) && !lo.smallArg(e.Arg) {
				cost += lo.nearCost(e.Args[0], lane)
			}
			seen[e] = true
			return cost <= mostNear
		})
	}
	return cost <= mostNear
}

// nearCost is how many lines of memory a warp asks for when its lanes read single elements, for each line that lanes with
// neighbouring elements would ask for. A small cost is fine: the elements of a thread are a few apart, so its next reads
// find the lines in the L1 cache. Elements that lie far apart, such as those that a transposition reads, cost too much.
func (lo columnKernel) nearCost(offset *ir.Expr, lane *ir.Range) int {
	along := lane
	if lane.Extent.Op == ir.OpConst && lane.Extent.Int <= mostTurns { // the range around the lane moves along its lines
		along = lo.k.Rows[len(lo.k.Rows)-2]
	}
	straight := ir.Rewrite(offset, func(e *ir.Expr) *ir.Expr {
		switch {
		case (e.Op == ir.OpMin || e.Op == ir.OpMax) && !ir.DependsOn(e.Args[1], along): // a clamp, which changes few places
			return e.Args[0]
		case (e.Op == ir.OpMin || e.Op == ir.OpMax) && !ir.DependsOn(e.Args[0], along):
			return e.Args[1]
		case e.Op != ir.OpMod && e.Op != ir.OpFloorDiv || !ir.DependsOn(e.Args[0], along):
			return e
		case e.Op == ir.OpMod && e.Args[1].Op == ir.OpConst && e.Args[1].Int <= mostTurns:
			return ir.IntConst(0)
		}
		return e.Args[0] // a remainder rarely starts again, and a quotient moves less than its dividend
	})
	stride, ok := ir.Stride(straight, along, ir.Facts{Positive: true})
	if !ok || stride.Op != ir.OpConst || max(stride.Int, -stride.Int) > mostStride {
		return mostNear + 1
	}
	return int(max(1, stride.Int, -stride.Int))
}

// runsFlattened reports whether an access has stride 1 over the points of all rows together, and begins at a multiple
// of vector.
func (lo columnKernel) runsFlattened(guard, offset *ir.Expr, vector int) bool {
	if guard != nil || ir.Has(offset, ir.OpLocal, ir.OpRead) {
		return false
	}
	stride, ok := lo.strideOf(offset, lo.k.Rows)
	if !ok || !stride.IsConst(1) {
		return false
	}
	return ir.Multiple(ir.AtZero(offset, lo.k.Rows...), int64(vector), lo.positive())
}

// smallArg reports whether a tensor has so few elements, compared with the points of the loops, that repeated reads
// find them in the cache.
func (lo *kernel) smallArg(a *ir.Arg) bool {
	const shared = 8 // least points of the loops for each element
	return !a.Write && shared*algebra.PointsAt(a.Buffer.Value.Axes, lo.sizes) <= algebra.PointsAt(lo.k.Rows, lo.sizes)
}
