package fuse

import (
	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/forecast"
	"github.com/fusec/fusec/ir"
)

// bandOf is how tiles of so many rows of a side lie in memory, and whether their lines go along the sum; nil where such a
// tile is no run of memory, or does not begin at an access of which the place is known.
func (lo *kernel) bandOf(o ir.Operand, t ir.DType, own, columns, batch []*ir.Range, rows int) (band *ir.Band, alongSum bool) {
	read := storedRead(o.Value, t)
	if read == nil || read.Guard != nil {
		return nil, false
	}
	a, ok := lo.affine(read.Args[0], [][]*ir.Range{own, columns}, batch)
	if !ok || a.start.Op != ir.OpConst {
		return nil, false
	}
	access := int64(forecast.AccessBytes / t.Size())
	for _, stride := range a.otherStrides {
		if !ir.Multiple(stride, access, lo.facts) {
			return nil, false
		}
	}
	lines, width, most := a.strides[1], algebra.Product(own), int64(rows)
	if alongSum = a.strides[1].IsConst(1); alongSum {
		lines, width, most = a.strides[0], algebra.Product(columns), forecast.LongBand
	} else if !a.strides[0].IsConst(1) {
		return nil, false
	}
	if lines.Op != ir.OpConst || width.Op != ir.OpConst || width.Int > most || lines.Int < width.Int || lines.Int > 2*width.Int {
		return nil, false // a run of memory would hold more of other rows than of these
	}
	return &ir.Band{Pitch: int(lines.Int), Skip: int(a.start.Int % access)}, alongSum
}
