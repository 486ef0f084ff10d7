package fuse

import (
	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/ir"
)

// nearReads is how many large tensors a flattened kernel reads at most at other places than those of its vectors. The
// threads of a warp read elements a vector apart then, from lines that are in the first-level cache after the first
// such read, which costs it as much as four reads of neighbours.
const nearReads = 2

// flattened puts vectors of all rows together in place of single elements, the last of the variants of a kernel, where
// the kernel allows it.
func (lo columnKernel) flattened(flat []*ir.Variant, sections []*ir.Section, lane *ir.Range, vector int) []*ir.Variant {
	together := lo.flattenedVariants(sections, lane, vector)
	if last := len(flat) - 1; len(together) > 0 && flat[last].When == nil {
		return append(flat[:last:last], together...)
	}
	return flat
}

// flattenedVariants are for pointwise kernels whose rows may be no whole number of vectors. What has an element for each
// point, in the order of the points, is read and stored in vectors of all rows together, so any sizes will do; what
// belongs to rows or columns is read for each point. None where vectors along the innermost range always serve, or bring
// nothing.
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

// readsFlattened reports whether what the kernel reads is read in vectors of all rows, or is small, or lies near: few
// tensors that the innermost range walks one element at a time, in either direction, or in turns.
func (lo columnKernel) readsFlattened(lane *ir.Range, vector int) bool {
	fits, near := true, map[*ir.Expr]bool{}
	for _, root := range lo.roots() {
		ir.Walk(*root.expr, func(e *ir.Expr) bool {
			if e.Op != ir.OpRead || lo.runsFlattened(e.Guard, e.Args[0], vector) || lo.smallArg(e.Arg) {
				return fits
			}
			near[e], fits = true, fits && (isNear(e.Args[0], lane) || lo.takesTurns(e.Args[0], lane))
			return fits
		})
	}
	return fits && len(near) <= nearReads
}

// mostTurns is of how many lines at most an access of a warp has elements, in turns.
const mostTurns = 4

// takesTurns reports whether elements along lane, of which there are few, are of as many lines, each of which the range
// around it walks: planes of colours, of which pixels are made.
func (lo columnKernel) takesTurns(offset *ir.Expr, lane *ir.Range) bool {
	return lane.Extent.Op == ir.OpConst && lane.Extent.Int <= mostTurns && isNear(offset, lo.k.Rows[len(lo.k.Rows)-2])
}

// isNear reports whether an offset goes along lane by single elements, but where it begins again, as in a rotation.
func isNear(offset *ir.Expr, lane *ir.Range) bool {
	straight := ir.Rewrite(offset, func(e *ir.Expr) *ir.Expr {
		if e.Op == ir.OpMod && ir.DependsOn(e.Args[0], lane) {
			return e.Args[0]
		}
		return e
	})
	stride, ok := ir.Stride(straight, lane, ir.Facts{Positive: true})
	return ok && stride.Op == ir.OpConst && stride.Int >= -1 && stride.Int <= 1
}

// runsFlattened reports whether an access runs with the points of all rows together, starting at a multiple of vector.
func (lo columnKernel) runsFlattened(guard, offset *ir.Expr, vector int) bool {
	if guard != nil || ir.Has(offset, ir.OpLocal, ir.OpRead) {
		return false
	}
	stride, ok := lo.strideOf(offset, lo.k.Rows)
	if !ok || !stride.IsConst(1) {
		return false
	}
	start := map[*ir.Range]*ir.Expr{}
	for _, r := range lo.k.Rows {
		start[r] = ir.IntConst(0)
	}
	return ir.Multiple(ir.Substitute(offset, start), int64(vector), lo.positive())
}
