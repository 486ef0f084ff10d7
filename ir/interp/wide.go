package interp

import "github.com/fusec/fusec/ir"

// in128 compiles an index that may not fit 64 bits.
func (c *compiler) in128(e *ir.Expr) func(*frame) ir.Int128 {
	switch {
	case !ir.MayOverflow(e, ir.SizeBits):
		part := c.compile(e).int
		return func(f *frame) ir.Int128 { return ir.ToInt128(part(f)) }
	case e.Op == ir.OpSelect:
		cond, a, b := c.compile(e.Args[0]).int, c.in128(e.Args[1]), c.in128(e.Args[2])
		return func(f *frame) ir.Int128 {
			if cond(f) != 0 {
				return a(f)
			}
			return b(f)
		}
	}
	return c.operation128(e)
}

// operation128 compiles an operation on such indices.
func (c *compiler) operation128(e *ir.Expr) func(*frame) ir.Int128 {
	apply, a := ir.Apply128(e.Op), c.in128(e.Args[0])
	if len(e.Args) == 1 {
		return func(f *frame) ir.Int128 { return apply(a(f), ir.Int128{}) }
	}
	b := c.in128(e.Args[1])
	return func(f *frame) ir.Int128 { return apply(a(f), b(f)) }
}
