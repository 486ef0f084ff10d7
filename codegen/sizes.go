package codegen

import "github.com/fusec/fusec/ir"

func bytesOf(b *ir.Buffer) *ir.Expr {
	return ir.Simplify(ir.Apply(ir.OpMul, product(b.Shape), ir.IntConst(int64(b.Type.Size()))), ir.Facts{})
}

// memoryOf is the bytes of a temporary: none at sizes where no kernel uses it.
func memoryOf(b *ir.Buffer) *ir.Expr {
	bytes := bytesOf(b)
	if b.When != nil {
		bytes = ir.Apply(ir.OpMul, bytes, ir.Cast(b.When, ir.Index))
	}
	return bytes
}

func product(dims []*ir.Expr) *ir.Expr {
	out := ir.IntConst(1)
	for _, d := range dims {
		out = ir.Apply(ir.OpMul, out, d)
	}
	return ir.Simplify(out, ir.Facts{})
}

func extents(ranges []*ir.Range) []*ir.Expr {
	out := make([]*ir.Expr, len(ranges))
	for i, r := range ranges {
		out[i] = r.Extent
	}
	return out
}

func ceilDiv(e *ir.Expr, by int64) *ir.Expr {
	if by == 1 {
		return e
	}
	return ir.Apply(ir.OpFloorDiv, ir.Apply(ir.OpAdd, e, ir.IntConst(by-1)), ir.IntConst(by))
}

// rows are the ranges that the blocks of the kernel, or its groups, divide among themselves: all ranges
// but the parts, if there are others.
func (e *emitter) rows() []*ir.Range { return dealt(e.k, e.v) }

func dealt(k *ir.Kernel, v *ir.Variant) []*ir.Range {
	if grouped(k, v) {
		return k.LastBlock.Rest(k.Rows)
	}
	return k.Rows
}

// grouped reports whether the blocks of a kernel are in groups, each of which has rows of its own;
// otherwise all blocks are one group.
func grouped(k *ir.Kernel, v *ir.Variant) bool {
	return v.LastBlock != nil && len(k.LastBlock.Parts) < len(k.Rows)
}
