package codegen

import "github.com/fusec/fusec/ir"

// wideOffset is the offset of a wide access in row strategies. If there are several ranges of columns,
// it is written over the position c among all columns, provided that this leaves no division:
// k*(H*W) + l is c itself.
func (e *emitter) wideOffset(offset *ir.Expr) *ir.Expr {
	if e.acrossRows {
		return e.overPoints(offset)
	}
	if !e.byPosition || len(e.k.Cols) < 2 {
		return offset
	}
	if out, ok := e.linear[offset]; ok {
		return out
	}
	out := offset
	if flat := e.overPosition(offset); !e.dependsOn(e.k.Cols, []*ir.Expr{flat}) && !divides(flat, e.columnPosition()) {
		out = flat
	}
	e.linear[offset] = out
	return out
}

// overPosition writes the columns of x as digits of one position.
func (e *emitter) overPosition(x *ir.Expr) *ir.Expr {
	digits := ir.Digits(e.k.Cols, e.columnPosition().At())
	facts := e.s.Facts
	facts.Within = append(append([]*ir.Range(nil), e.k.Rows...), e.k.Cols...)
	return ir.Simplify(ir.Substitute(x, digits), facts)
}

// columnPosition is the range of c, the linear position of a column.
func (e *emitter) columnPosition() *ir.Range { return e.position("c", e.k.Cols) }

// position is a range over all points of ranges. Its name is the variable in the text that holds the number
// of a point.
func (e *emitter) position(name string, ranges []*ir.Range) *ir.Range {
	if e.column == nil {
		e.column = &ir.Range{ID: -1, Name: name, Extent: product(extents(ranges))}
		e.ranges[e.column] = name
	}
	return e.column
}

// divides reports whether x divides something that depends on r.
func divides(x *ir.Expr, r *ir.Range) bool {
	return ir.Contains(x, func(x *ir.Expr) bool {
		return (x.Op == ir.OpFloorDiv || x.Op == ir.OpMod) && ir.DependsOn(x, r)
	})
}

// wideUses are the index expressions that wide reads evaluate.
func (e *emitter) wideUses(locals []*ir.Local) []*ir.Expr {
	var out []*ir.Expr
	for _, l := range locals {
		if r := readOf(l.Def); r != nil {
			out = append(out, e.wideOffset(r.Args[0]), r.Guard)
		} else {
			out = append(out, l.Def)
		}
	}
	return out
}

// storeUses are the index expressions that wide stores evaluate.
func (e *emitter) storeUses(stores []*ir.Store) []*ir.Expr {
	var out []*ir.Expr
	for _, st := range stores {
		out = append(out, e.wideOffset(st.Offset), st.Guard)
	}
	return out
}

// overPoints writes the offset of a wide access across the ends of rows as a function of the number of its first point.
func (e *emitter) overPoints(offset *ir.Expr) *ir.Expr {
	return ir.Simplify(ir.Apply(ir.OpAdd, e.position("first", e.k.Rows).At(), ir.AtZero(offset, e.k.Rows...)), e.s.Facts)
}
