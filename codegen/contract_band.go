package codegen

import (
	"fmt"

	"github.com/fusec/fusec/ir"
)

// Operands whose tiles are copied as they lie in memory; see ir.Band.

// hasBands reports whether a side of a product is made of bands.
func hasBands(c *ir.Contract) bool { return c.A.Band != nil || c.B[0].Band != nil }

// tileText is the type of a side's tiles of so many rows.
func (e *contractSplitK) tileText(rows string, o ir.Operand) string {
	c := e.v.Contract
	if o.Band == nil {
		return fmt.Sprintf("OperandTile<Element, %s, %t, %d>", rows, kInner(c, o), padding(c, o))
	}
	tile := map[string]int{"TILE_M": e.v.Schedule.TileM, "TILE_N": e.v.Schedule.TileN}[rows]
	columns := "TILE_K"
	if k := product(extents(e.k.Cols)); k.Op == ir.OpConst && k.Int < int64(e.v.Schedule.TileK) {
		columns = fmt.Sprint(k.Int)
	}
	return fmt.Sprintf("BandTile<Element, %t, %s, %d, %d, %d>", o.KLast, columns, o.Band.Pitch, o.Band.Skip, bandLength(o, tile, e.v.Schedule.TileK))
}

// bandCopies writes the copies of a tile that is a band, up to its last element.
func (s *side) bandCopies() {
	e, band := s.e, s.o.Band
	read := e.operandRead(s.o.Value)
	e.take(s.own, "origin_"+s.row, read.Args[0])
	e.take(e.k.Cols, "origin_k", read.Args[0])
	lines, width := fmt.Sprintf("min(extent_%s - origin_%s, (INDEX)TILE_%s)", s.row, s.row, s.rowUpper()), "extent_k"
	if !s.o.KLast {
		lines, width = "min(extent_k - origin_k, (INDEX)TILE_K)", "extent_"+s.row
	}
	e.line("const int band = %d + ((int)%s - 1) * %d + (int)%s;", band.Skip, lines, band.Pitch, width)
	e.noted(read.Span, "tile_%s[stage].copy(%s + (%s - %d), band);", s.name, e.args[read.Arg], e.s.Expr(read.Args[0]), band.Skip)
}
