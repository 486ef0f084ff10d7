package passes

import (
	"maps"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/forecast"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// alignedDepth is the least length of a sum for which copying an operand pays: the product is so much
// faster if rows are whole numbers of accesses. The least rows and tiles are the same as for other
// operands that are laid out.
const alignedDepth = 256

// alignOperands copies operands of 16-bit products if their rows are not whole numbers of accesses: the
// copies have zeros after each row. The tensor copy engine takes only whole accesses, and without it threads
// would read one element at a time. If the length of rows is a symbol, the default sizes decide; the graph
// then records for which sizes it was rewritten.
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
	if a == nil || b == nil || !halfLoad(a) || !halfLoad(b) || !fillsTiles(v, a, b, sizes) ||
		algebra.PointsAt(v.Reduce.Ranges, sizes) < alignedDepth {
		return nil
	}
	body, both := v.Body, form.AxesIn(v, b)
	inA := form.AxesIn(v, a)
	maps.DeleteFunc(both, func(r *ir.Range, _ bool) bool { return !inA[r] })
	var unaligned *ir.Expr
	always := false
	for _, side := range []**ir.Expr{&a, &b} {
		if load := form.WithoutWidening(*side); unalignedRows(load, both, sizes, g.Facts()) {
			value := alignedCopy(g, v, load.From)
			copied := ir.Load(value, load.Args, load.Fill).At(load.Span)
			*side, made = ir.Cast(copied, (*side).Type).At((*side).Span), append(made, value)
			row := load.From.Axes[len(load.Args)-1].Extent
			always = always || row.Op == ir.OpConst
			unaligned = ir.Join(ir.OpOr, unaligned, ir.Apply(ir.OpNe, behindAccesses(row, load.Type), ir.IntConst(0)))
		}
	}
	if len(made) > 0 {
		v.Body = ir.Apply(ir.OpMul, a, b).At(body.Span)
	}
	if unaligned != nil && !always {
		g.For = ir.Join(ir.OpOr, g.For, algebra.And(unaligned, fillsTilesAt(v, inA, form.AxesIn(v, b))))
	}
	return made
}

// behindAccesses is the number of elements of a row after its last whole access.
func behindAccesses(row *ir.Expr, t ir.DType) *ir.Expr {
	return ir.Simplify(ir.Apply(ir.OpMod, row, ir.IntConst(int64(forecast.CopyAlign/t.Size()))), ir.Facts{})
}

// fillsTilesAt is the condition on the sizes that fillsTiles and alignedDepth hold for a product whose sides
// have the given axes; nil if they always hold.
func fillsTilesAt(v *ir.Value, inA, inB map[*ir.Range]bool) (when *ir.Expr) {
	rows, columns, batch := productAxes(v, inA, inB)
	least := func(n *ir.Expr, least int64) {
		when = algebra.And(when, ir.Simplify(ir.Apply(ir.OpLe, ir.IntConst(least), n), ir.Facts{}))
	}
	m, n := algebra.Product(rows), algebra.Product(columns)
	least(m, orderedRows)
	least(n, orderedRows)
	points := ir.Apply(ir.OpMul, algebra.Product(batch), ir.Apply(ir.OpMul, m, n))
	least(ir.Simplify(points, ir.Facts{}), orderedTiles*orderedSide*orderedSide)
	least(algebra.Product(v.Reduce.Ranges), alignedDepth)
	return when
}

// halfLoad reports whether a side of a product is an element of a tensor of 16-bit floats.
func halfLoad(side *ir.Expr) bool {
	load := form.WithoutWidening(side)
	return load.Op == ir.OpLoad && form.IsHalf(load.Type)
}

// unalignedRows reports whether a tensor has several rows whose length is no whole number of accesses at the
// default sizes, and the product reads along them. batch is the ranges of the product's batch.
func unalignedRows(load *ir.Expr, batch map[*ir.Range]bool, sizes map[string]int64, facts ir.Facts) bool {
	last := len(load.Args) - 1
	if last < 1 || algebra.DependsOnAny(load.Args[last], batch) {
		return false
	}
	row, access := load.From.Axes[last].Extent, int64(forecast.CopyAlign/load.Type.Size())
	length, ok := ir.EvalSize(row, sizes)
	return ok && length > 1 && length%access != 0 && !ir.Multiple(row, access, facts)
}

// alignedCopy is a value that holds a tensor with zeros after each row, up to a whole line of the L2 cache. If
// rows began inside lines, the copy engine would request twice as many lines.
func alignedCopy(g *ir.Graph, v, of *ir.Value) *ir.Value {
	shape, last := of.Shape(), len(of.Axes)-1
	shape[last] = roundedUp(shape[last], int64(forecast.LineBytes/of.Type.Size()), ir.Facts{})
	axes := g.NewAxes(shape)
	body := ir.Load(of, ir.Indices(axes), ir.Num(of.Type, 0))
	return g.Adopt(&ir.Value{Name: v.Name + "_operand", Type: of.Type, Axes: axes, Body: body, Origin: v.Origin, Parts: of.Parts})
}
