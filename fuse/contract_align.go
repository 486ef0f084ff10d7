package fuse

import (
	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/forecast"
	"github.com/fusec/fusec/ir"
)

// aligning collects what symbols must be divisible by for the wide accesses of a
// variant.
type aligning struct {
	lo    *kernel
	wide  bool     // assume what accesses need; else only what is known
	facts ir.Facts // what is known, and what was assumed so far
	needs map[string]int64
	any   bool // some access is wide
}

func (lo productKernel) newAlignment(wide bool) *aligning {
	a := &aligning{lo: lo.kernel, wide: wide, needs: map[string]int64{}}
	a.facts = lo.inside(ir.FullLevel)
	if a.facts.Divisible == nil {
		a.facts.Divisible = map[string]int64{}
	}
	return a
}

// condition is what must hold of the sizes; nil for nothing.
func (a *aligning) condition() *ir.Expr { return algebra.Divisible(ir.Facts{Divisible: a.needs}) }

// try runs f under the facts with r's extent a multiple of n; where f says that it
// holds, what it needed is kept.
func (a *aligning) try(r *ir.Range, n int64, f func(ir.Facts) bool) bool {
	if f(a.facts) {
		a.any = true
		return true
	}
	if !a.wide {
		return false
	}
	needs := algebra.MultiplesIn(n, r.Extent)
	more := algebra.Assuming(a.facts, needs)
	if len(needs) == 0 || !f(more) {
		return false
	}
	a.facts, a.any = more, true
	a.needs = algebra.JoinMultiples(a.needs, needs)
	return true
}

// sliceOperand says how one side reaches its tiles: along which of its ranges
// memory runs, and whether neighbours are copied together, computed together, or
// each by itself.
func (lo productKernel) sliceOperand(o *ir.Operand, own []*ir.Range, v *ir.Variant, c *ir.Contract, a *aligning) {
	read := directRead(o.Value)
	main := read
	if main == nil {
		main = largestRead(o.Value)
	}
	o.KLast = true
	inner := algebra.Innermost(lo.k.Cols)
	if main != nil && len(own) > 0 && !algebra.UnitStride(main, inner) && algebra.UnitStride(main, algebra.Innermost(own)) {
		o.KLast, inner = false, algebra.Innermost(own)
	}
	read = storedRead(o.Value, c.Type)
	direct := read != nil && read.Guard == nil
	length := int64(forecast.AccessBytes / c.Type.Size())
	if direct && !(c.Unit == ir.FMAUnit && o.KLast) { // whose tiles run along the rows
		o.Wide = a.try(inner, length, func(f ir.Facts) bool {
			ok, _ := algebra.ContiguousFrom(read.Args[0], inner, length, f, f)
			return ok && ir.Multiple(inner.Extent, length, f)
		})
	}
	if o.Wide {
		return
	}
	a.try(inner, length, func(f ir.Facts) bool {
		o.Pieces = lo.pieces(o.Value, v.Locals, inner, int(length), f)
		return o.Pieces != nil
	})
	o.Async = o.Pieces == nil && direct && c.Type.Size() >= 4
}

// epilogueLanes marks what the epilogue accesses in vectors along the innermost row
// range.
func (lo productKernel) epilogueLanes(v *ir.Variant, c *ir.Contract, a *aligning) {
	lane := algebra.Innermost(lo.k.Rows)
	group := c.N
	if len(c.M) > 0 && algebra.Innermost(c.M) == lane {
		group = c.M
	}
	if algebra.Innermost(group) != lane {
		return // the batch is innermost: every element by itself
	}
	vector := int64(lo.vector())
	if len(group) > 1 && !a.try(lane, vector, func(f ir.Facts) bool { return ir.Multiple(lane.Extent, vector, f) }) {
		return // a vector must not run into the next of the outer range
	}
	wide := false
	check := func(offset *ir.Expr) bool {
		if lo.variesThroughLocals(offset, lane) {
			return false
		}
		ok := a.try(lane, vector, func(f ir.Facts) bool {
			ok, _ := algebra.ContiguousFrom(offset, lane, vector, f, f)
			return ok
		})
		wide = wide || ok
		return ok
	}
	for _, l := range v.Locals {
		if r := algebra.ReadIn(l.Def); r != nil && l.Level == ir.RowLevel && r.Guard == nil && vector > 1 {
			l.Wide = check(r.Args[0])
		}
	}
	for _, st := range v.Sections[len(v.Sections)-1].Stores {
		if st.Guard == nil && vector > 1 {
			st.Wide = check(st.Offset)
		}
	}
	if wide {
		v.Schedule.Vector = int(vector)
	}
}
