package fuse

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// Products whose operands are in several tensors, one after the other along the columns: [x h] @ [w; u] is a sum over the columns of x, and then
// over those of h. Graph passes make them (passes.readSegments).

// segmentsOf is the parts of a product's columns in which each operand is one read; nil where there is one part only, or an operand is
// computed from parts in another way.
func (lo productKernel) segmentsOf(c *ir.Contract) []ir.Segment {
	cols := lo.columns()
	if len(cols) != 1 {
		return nil
	}
	sides, ends := [][]*ir.Expr(nil), []*ir.Expr(nil)
	for _, o := range append([]ir.Operand{c.A}, c.B...) {
		parts, own := form.Segments(form.WithoutCasts(o.Value), cols[0])
		if len(own) > 0 && len(ends) > 0 && !slices.EqualFunc(own, ends, ir.SameSize) {
			return nil
		}
		if len(own) > 0 {
			ends = own
		}
		sides = append(sides, parts)
	}
	if len(ends) == 0 {
		return nil
	}
	out, start := make([]ir.Segment, len(ends)+1), ir.IntConst(0)
	for i := range out {
		end := cols[0].Extent
		if i < len(ends) {
			end = ends[i]
		}
		out[i].Depth = ir.Simplify(ir.Apply(ir.OpSub, end, start), lo.facts)
		at := map[*ir.Range]*ir.Expr{cols[0]: ir.Simplify(ir.Apply(ir.OpAdd, cols[0].At(), start), lo.facts)}
		for s, parts := range sides {
			part := parts[min(i, len(parts)-1)] // a side that is one tensor is read from where the segment begins
			read := storedRead(part, c.Type)
			if read == nil {
				return nil
			}
			from := *read
			from.Args, from.Guard = []*ir.Expr{ir.Simplify(ir.Substitute(read.Args[0], at), lo.facts)}, nil
			o := ir.Operand{Value: &from}
			if s == 0 {
				out[i].A = o
			} else {
				out[i].B = append(out[i].B, o)
			}
		}
		start = end
	}
	return out
}

// viewableSegments reports whether the copy engine can copy the operands of all segments, which lie in the same order in each. It adds to needs what that
// asks of the sizes.
func (lo warpgroupKernel) viewableSegments(c *ir.Contract, segments []ir.Segment, needs *algebra.Needs) bool {
	for i := range segments {
		part := *c
		part.A, part.B, part.Segments = segments[i].A, segments[i].B, nil
		if !lo.viewable(&part, needs) {
			return false
		}
		segments[i].A, segments[i].B = part.A, part.B
		if part.A.KLast != segments[0].A.KLast || part.B[0].KLast != segments[0].B[0].KLast {
			return false
		}
	}
	c.Segments = segments
	c.A.KLast = segments[0].A.KLast
	for i := range c.B {
		c.B[i].KLast = segments[0].B[0].KLast
	}
	return true
}
