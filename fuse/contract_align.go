package fuse

import (
	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/forecast"
	"github.com/fusec/fusec/ir"
)

// splitOperand chooses how one side is copied to its tiles: along which of its ranges memory runs, and
// whether neighbours are copied together, computed together, or each computed by itself.
func (lo productKernel) splitOperand(o *ir.Operand, own []*ir.Range, v *ir.Variant, c *ir.Contract, needs *algebra.Needs) {
	read := directRead(o.Value)
	main := read
	if main == nil {
		main = largestRead(o.Value)
	}
	o.KLast = true
	inner := algebra.Innermost(lo.k.Cols)
	if main != nil && len(own) > 0 && (!algebra.UnitStride(main, inner) && algebra.UnitStride(main, algebra.Innermost(own)) || lo.tilesAlongRows(o, c)) {
		o.KLast, inner = false, algebra.Innermost(own)
	}
	read = storedRead(o.Value, c.Type)
	direct := read != nil && (read.Guard == nil || o.Window != nil)
	length := int64(forecast.AccessBytes / c.Type.Size())
	if direct && !(o.Window != nil && windowBoundBy(o.Window, inner)) && (c.Unit.TensorCores() || !o.KLast) { // tiles of such an operand run along the rows
		o.Wide = needs.Try(length, []*ir.Expr{inner.Extent}, func(f ir.Facts) bool {
			return algebra.Contiguous(read.Args[0], inner, length, f) && ir.Multiple(inner.Extent, length, f)
		})
	}
	if o.Wide {
		return
	}
	window := o.Window
	o.Window = nil
	needs.Try(length, []*ir.Expr{inner.Extent}, func(f ir.Facts) bool {
		o.Pieces = lo.pieces(o.Value, v.Locals, inner, int(length), f)
		return o.Pieces != nil
	})
	if o.Async = o.Pieces == nil && direct && c.Type.Size() >= 4 && (read.Guard == nil || !o.KLast); o.Async && !o.KLast {
		o.Window = window
	}
}

// epilogueLanes marks what the epilogue reads and writes in vectors, along the innermost range of rows.
func (lo productKernel) epilogueLanes(v *ir.Variant, c *ir.Contract, needs *algebra.Needs) {
	lane := algebra.Innermost(lo.k.Rows)
	group := c.N
	if len(c.M) > 0 && algebra.Innermost(c.M) == lane {
		group = c.M
	}
	if algebra.Innermost(group) != lane {
		return // the batch is innermost in memory, so every element is accessed by itself
	}
	vector := int64(lo.vector())
	if c.A.Window != nil || c.B[0].Window != nil { // an axis of an image is short, and often no whole vector
		vector = wholeVector(lane, vector)
	}
	if len(group) > 1 && !needs.Try(vector, []*ir.Expr{lane.Extent}, func(f ir.Facts) bool { return ir.Multiple(lane.Extent, vector, f) }) {
		return // a vector must not run into the next of the outer range
	}
	wide := false
	check := func(offset *ir.Expr) bool {
		if lo.variesThroughLocals(offset, lane) {
			return false
		}
		ok := needs.Try(vector, []*ir.Expr{lane.Extent}, func(f ir.Facts) bool {
			return algebra.Contiguous(offset, lane, vector, f)
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
