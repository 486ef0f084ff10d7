package fuse

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/ir"
)

// along is sections whose accesses are vectors of so many elements along a range, where these are
// aligned.
type along struct {
	sections []*ir.Section
	lane     *ir.Range
	vector   int
	halves   bool // if rows are not aligned to a vector, a half and a quarter of it are tried before single elements
}

// aligned makes the variant for rows whose accesses are aligned to a vector, and the variants
// for all other rows. A kernel that never needs alignment has only the first. schedule returns
// the schedule for a vector width, and the sizes that it is for.
func (lo *kernel) aligned(a along, hold bool,
	schedule func(vector int) (ir.Schedule, *ir.Expr)) []*ir.Variant {
	var out []*ir.Variant
	vector := a.vector
	narrower := func() {
		if a.halves {
			vector /= 2
		} else {
			vector = 1
		}
	}
	for {
		b := newBody(lo)
		b.alongCols = slices.Contains(lo.k.Cols, a.lane)
		v := &ir.Variant{Sections: b.sections(a.sections), Locals: b.locals}
		var when *ir.Expr
		v.Schedule, when = schedule(vector)
		if hold {
			v.Keep = keep(v)
		}
		needs, wide := lo.widen(v, a.lane, vector)
		if wide == 0 && vector > 1 {
			narrower()
			continue
		}
		v.When = algebra.And(when, needs)
		if ir.Decide(algebra.OrTrue(v.When), ir.Facts{}) != ir.False {
			out = append(out, v)
		}
		if needs == nil || vector == 1 {
			return out
		}
		narrower()
	}
}
