package codegen

import "github.com/fusec/fusec/ir"

// binRoom is the number of columns for which a bin has room.
func binRoom(k *ir.Kernel, v *ir.Variant) *ir.Expr {
	shares := ir.Apply(ir.OpFloorDiv, v.Scatter.To.Extent, ir.IntConst(int64(binTimes*v.Schedule.TileM)))
	even := ir.Apply(ir.OpFloorDiv, product(extents(k.Cols)), ir.Apply(ir.OpMax, shares, ir.IntConst(1)))
	return ir.Apply(ir.OpMin, ir.Apply(ir.OpAdd, even, ir.IntConst(binLeast)), ir.IntConst(binMost))
}

// binBytes is the memory of all bins, 8 bytes for each column.
func binBytes(k *ir.Kernel, v *ir.Variant) *ir.Expr {
	return ir.Apply(ir.OpMul, ir.Apply(ir.OpMul, scatterGrid(k, v), binRoom(k, v)), ir.IntConst(8))
}

// binOwn is the workspace of a launch: two counters, one counter for each bin, and the bins.
func binOwn(k *ir.Kernel, v *ir.Variant) workspace {
	return workspace{counters: ir.Apply(ir.OpAdd, scatterGrid(k, v), ir.IntConst(2)), bytes: binBytes(k, v)}
}
