package passes

import (
	"maps"
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/forecast"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// Figures of products that are so much faster with rows of whole accesses that a copy of an operand, read once and written
// once, pays.
const (
	alignedDepth = 257     // least terms of a sum: more than the threads of a row add up
	alignedRow   = 32      // least elements of a row that is copied: half a line; fewer where the other operand is no smaller than the copy
	alignedRows  = 17      // least rows of each side: those of tiles through warpgroups
	alignedWork  = 1 << 26 // least multiplications: read one element at a time they take several launches
	shortDepth   = 64      // least terms of a sum, where the program gives their number, with as much work as follows
	shortWork    = 1 << 30
)

// alignedProduct is a product that is worth copies of its operands. So is alignedShort, whose sums are shorter.
var (
	alignedProduct = largeProduct{rows: alignedRows, depth: alignedDepth, work: alignedWork}
	alignedShort   = largeProduct{rows: alignedRows, depth: shortDepth, work: shortWork}
)

// alignOperands copies operands of 16-bit products if their rows are not whole numbers of accesses: the
// copies have zeros after each row. The tensor copy engine takes only whole accesses, and without it threads
// would read one element at a time. It takes no rows whose places depend on data either, and these are copied
// too. If the length of rows is a symbol, the default sizes decide; the graph then records for which sizes it
// was rewritten.
func alignOperands(g *ir.Graph) {
	if !mayAddKernels(g) {
		return
	}
	sizes := algebra.DefaultSizes(g)
	insertBefore(g, func(v *ir.Value) []*ir.Value {
		if !form.IsTileProduct(v) {
			return nil
		}
		return alignSides(g, v, sizes)
	})
}

// alignSides replaces the sides of a product whose rows are not aligned by copies, and returns these.
func alignSides(g *ir.Graph, v *ir.Value, sizes map[string]int64) (made []*ir.Value) {
	a, b := form.SidesOf(v)
	if a == nil || b == nil || !halfLoad(a) || !halfLoad(b) {
		return nil
	}
	figures := alignedProduct
	if !figures.holds(v, a, b, sizes) && algebra.Product(v.Reduce.Ranges).Op == ir.OpConst {
		figures = alignedShort
	}
	if !figures.holds(v, a, b, sizes) || readInBands(v, a, b, sizes) {
		return nil
	}
	large := figures.at(v, a, b)
	body, both := v.Body, form.AxesIn(v, b)
	inA := form.AxesIn(v, a)
	maps.DeleteFunc(both, func(r *ir.Range, _ bool) bool { return !inA[r] })
	var unaligned *ir.Expr
	always := false
	loads, reduced := [2]*ir.Expr{form.WithoutWidening(a), form.WithoutWidening(b)}, algebra.RangeSet(v.Reduce.Ranges)
	for i, side := range []**ir.Expr{&a, &b} {
		load, other := loads[i], loads[1-i]
		var value *ir.Value
		switch {
		case unalignedRows(load, other, both, reduced, sizes, g.Facts()):
			value = alignedCopy(g, v, load.From)
			load = ir.Load(value, load.Args, load.Fill).At(load.Span)
			row := algebra.Product(joinedRow(loads[i], other, both, reduced))
			always = always || row.Op == ir.OpConst
			unaligned = ir.Join(ir.OpOr, unaligned, ir.Apply(ir.OpNe, behindAccesses(row, load.Type), ir.IntConst(0)))
		case slices.ContainsFunc(load.Args, ir.OfData):
			value, load = operandValue(g, v, load)
			unaligned = ir.IntNum(ir.Bool, 1)
		default:
			continue
		}
		*side, made = ir.Cast(load, (*side).Type).At((*side).Span), append(made, value)
	}
	if len(made) > 0 {
		v.Body = ir.Apply(ir.OpMul, a, b).At(body.Span)
	}
	if unaligned != nil && !always {
		g.For = ir.Join(ir.OpOr, g.For, algebra.And(unaligned, large))
	}
	return made
}

// behindAccesses is the number of elements of a row after its last whole access.
func behindAccesses(row *ir.Expr, t ir.DType) *ir.Expr {
	return ir.Simplify(ir.Apply(ir.OpMod, row, ir.IntConst(int64(forecast.CopyAlign/t.Size()))), ir.Facts{})
}

// halfLoad reports whether a side of a product is an element of a tensor of 16-bit floats.
func halfLoad(side *ir.Expr) bool {
	load := form.WithoutWidening(side)
	return load.Op == ir.OpLoad && form.IsHalf(load.Type)
}

// unalignedRows reports whether a tensor has several rows, of a length that is not short and no whole number of accesses at
// the default sizes, and the product reads along them. batch is the ranges that the product takes one at a time, and reduced those
// that it sums over. Ranges that follow each other in memory, on both sides if they are summed over, become one, such as the lines
// of a plane: where that is a whole number of accesses, it does not count how long a line is.
func unalignedRows(load, other *ir.Expr, batch, reduced map[*ir.Range]bool, sizes map[string]int64, facts ir.Facts) bool {
	last := rowAxis(load.From)
	if last < 1 || algebra.DependsOnAny(load.Args[last], batch) {
		return false
	}
	row, access := load.From.Axes[last].Extent, int64(forecast.CopyAlign/load.Type.Size())
	if wholeAt(algebra.Product(joinedRow(load, other, batch, reduced)), access, sizes, facts) {
		return false
	}
	length, ok := ir.EvalSize(row, sizes)
	return ok && length%access != 0 && !ir.Multiple(row, access, facts) && (length >= alignedRow || length >= alignedRows && smallCopy(load, other, sizes))
}

// smallCopy reports whether a copy of a tensor whose rows are shorter than lines is no larger than the tensor of the other side.
func smallCopy(load, other *ir.Expr, sizes map[string]int64) bool {
	rows := algebra.PointsAt(load.From.Axes[:rowAxis(load.From)], sizes)
	return rows*float64(forecast.LineBytes/load.Type.Size()) <= algebra.PointsAt(other.From.Axes, sizes)
}

// ownAxes is the last axes of a tensor whose indices are ranges of the result, each whole, that only this side depends on.
func ownAxes(load *ir.Expr, batch, reduced map[*ir.Range]bool) []*ir.Range {
	last := rowAxis(load.From)
	first := last + 1
	for ; first > 0; first-- {
		at := load.Args[first-1]
		if at.Op != ir.OpRange || batch[at.Range] || reduced[at.Range] || !ir.SameSize(at.Range.Extent, load.From.Axes[first-1].Extent) {
			break
		}
	}
	return load.From.Axes[first : last+1]
}

// joinedRow is the axes that are one row for the product: the last one, with those around it that it goes on to.
func joinedRow(load, other *ir.Expr, batch, reduced map[*ir.Range]bool) []*ir.Range {
	last := rowAxis(load.From)
	for _, rows := range [][]*ir.Range{ownAxes(load, batch, reduced), summedAxes(load, other, reduced)} {
		if len(rows) > 1 {
			return rows
		}
	}
	return load.From.Axes[last : last+1]
}

// wholeAt reports whether a size is a multiple, at the default sizes or always.
func wholeAt(size *ir.Expr, of int64, sizes map[string]int64, facts ir.Facts) bool {
	n, ok := ir.EvalSize(size, sizes)
	return ok && n%of == 0 || ir.Multiple(size, of, facts)
}

// summedAxes is the last axes of a tensor whose indices are ranges of the sum, each whole, where those of the other side's
// tensor are the same ones, whole too, in the same order.
func summedAxes(load, other *ir.Expr, reduced map[*ir.Range]bool) []*ir.Range {
	last := rowAxis(load.From)
	whole := func(l *ir.Expr, d int) *ir.Range {
		if d < 0 || l.Args[d].Op != ir.OpRange || !reduced[l.Args[d].Range] || !ir.SameSize(l.Args[d].Range.Extent, l.From.Axes[d].Extent) {
			return nil
		}
		return l.Args[d].Range
	}
	place := func(r *ir.Range) int {
		return slices.IndexFunc(other.Args, func(at *ir.Expr) bool { return at.Op == ir.OpRange && at.Range == r })
	}
	first := last
	if r := whole(load, last); r == nil || whole(other, place(r)) == nil {
		return nil
	}
	for ; first > 0; first-- {
		r, inner := whole(load, first-1), load.Args[first].Range
		if r == nil || place(r) < 0 || place(r) != place(inner)-1 || whole(other, place(r)) == nil {
			break
		}
	}
	return load.From.Axes[first : last+1]
}

// rowAxis is the axis along which rows of a tensor run in memory: the last one of several elements.
func rowAxis(v *ir.Value) int {
	last := len(v.Axes) - 1
	for last > 0 && algebra.IsUnit(v.Axes[last]) {
		last--
	}
	return last
}

// alignedCopy is a value that holds a tensor with zeros after each row, up to a whole line of the L2 cache. If
// rows began inside lines, the copy engine would request twice as many lines.
func alignedCopy(g *ir.Graph, v, of *ir.Value) *ir.Value {
	shape, last := of.Shape(), rowAxis(of)
	shape[last] = roundedUp(shape[last], int64(forecast.LineBytes/of.Type.Size()), ir.Facts{})
	axes := g.NewAxes(shape)
	body := ir.Load(of, ir.Indices(axes), ir.Num(of.Type, 0))
	return g.Adopt(&ir.Value{Name: v.Name + "_operand", Type: of.Type, Axes: axes, Body: body, Origin: v.Origin, Parts: of.Parts})
}
