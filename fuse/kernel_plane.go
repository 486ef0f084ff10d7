package fuse

import (
	"slices"

	"github.com/fusec/fusec/ir"
)

// plane is a range that goes through all rows of a plane, and the length of one of these rows.
type plane struct {
	points *ir.Range
	length *ir.Expr
}

// inRow is the offset of a read within the first row of the plane, over a range that goes through that row alone.
func (lo *kernel) inRow(offset *ir.Expr) (*ir.Expr, *ir.Range) {
	place := lo.g.NewRange(lo.plane.points.Name, lo.plane.length)
	facts := lo.positive()
	facts.Within = append(slices.Clone(lo.k.Rows), place)
	return ir.Simplify(ir.Substitute(offset, map[*ir.Range]*ir.Expr{lo.plane.points: place.At()}), facts), place
}
