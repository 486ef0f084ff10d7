package fuse

import (
	"maps"
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/ir"
)

// The members of a region that lie along fewer rows than others: those of a scatter with fewer lanes.

// storeOnce makes the members of a scatter with fewer lanes be stored at the first of the lanes that they do not have.
func (r *region) storeOnce(fewer *region) {
	if fewer == nil {
		return
	}
	if r.stored == nil {
		r.stored = map[*ir.Value]*ir.Expr{}
	}
	for _, v := range fewer.members {
		for _, row := range r.lacks(v) {
			r.stored[v] = algebra.And(r.stored[v], ir.Apply(ir.OpEq, row.At(), ir.IntConst(0)))
		}
	}
}

// lacks lists the rows of a region that a member does not lie along.
func (r *region) lacks(v *ir.Value) []*ir.Range {
	own := map[*ir.Range]bool{}
	for _, e := range r.at[v] {
		maps.Copy(own, ir.FreeRanges(e))
	}
	return slices.DeleteFunc(slices.Clone(r.space), func(row *ir.Range) bool { return own[row] || r.cols[row] })
}

// lackTheSame reports whether all members that do not lie along all rows lack the same ones, or only rows that have elements at
// any size. There is one body for the sizes at which these have none, see scatter_empty.go.
func (r *region) lackTheSame() bool {
	var first []*ir.Range
	same, always := true, true
	for _, v := range r.members {
		lacks := r.lacks(v)
		if len(first) == 0 {
			first = lacks
		}
		same = same && (len(lacks) == 0 || slices.Equal(lacks, first))
		always = always && !slices.ContainsFunc(lacks, func(row *ir.Range) bool { return row.Extent.Op != ir.OpConst || row.Extent.Int < 1 })
	}
	return same || always
}
