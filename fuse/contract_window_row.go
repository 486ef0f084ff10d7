package fuse

import (
	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// Windows of few taps and channels together, as the first layer of a network for images has: a result is a short sum, so
// that what takes long is to write the results, and to get the windows into tiles. The columns are one tile, there are
// no stages, and many blocks wait side by side. Of the window a thread of the block reads one row; see ir.Window.ByRow.

// Figures of such tiles.
const (
	rowWindowPlaces = 128 // windows of a tile, one for each thread
	rowWindowPart   = 32  // those that a warp multiplies
	rowWindowStep   = 16  // columns of a step of tensor cores in 16 bits, two in tf32
)

// rowWindowShapes are the tiles by their rows of weights.
func rowWindowShapes(t ir.DType, columns int64) (out []splitShape) {
	depth := int((columns + rowWindowStep - 1) / rowWindowStep * rowWindowStep)
	blocks := 6 // all reads of a row are under way at once, so that long rows need registers
	switch {
	case depth > 32:
		blocks = 2
	case t == ir.F32:
		blocks = 4
	}
	for _, rows := range []int{16, 32, 64} {
		out = append(out, splitShape{m: rows, n: rowWindowPlaces, k: depth, partM: rows, partN: rowWindowPart, stages: 1, blocks: blocks})
	}
	return out
}

// rowWindowChoices are the candidates of a product whose windows threads read row by row; none for other products.
func (lo splitKernel) rowWindowChoices(c *ir.Contract) (out []splitCandidate) {
	columns := algebra.Product(lo.k.Cols)
	if c.Unit != ir.HalfUnit && c.Unit != ir.TF32Unit || c.Taps != nil || columns.Op != ir.OpConst || columns.Int > form.FewColumns {
		return nil
	}
	ofA, ok := lo.rowWindowSide(c)
	if !ok {
		return nil
	}
	weights, places := c.M, c.N
	if ofA {
		weights, places = c.N, c.M
	}
	many := algebra.And(algebra.AtLeastSize(algebra.Product(places), rowWindowPlaces), algebra.AtLeastSize(algebra.Product(weights), loopedChannels+1))
	shapes := rowWindowShapes(c.Type, columns.Int)
	for i, s := range shapes {
		when := many
		if i < len(shapes)-1 {
			when = algebra.And(when, algebra.AtMostSize(algebra.Product(weights), int64(s.m)))
		}
		if ofA {
			s = s.transposed()
		}
		out = append(out, splitCandidate{splitShape: s, splits: 1, when: when, byRow: true})
	}
	return out
}

// rowWindowSide reports which side of a product such windows are read on: that with the rows, of which memory holds the
// elements in the type of the tiles. ok is false where it is neither, or both, or where the window was laid out with its
// channels last, so that copies bring several.
func (lo productKernel) rowWindowSide(c *ir.Contract) (ofA, ok bool) {
	if !lo.isWindowed(c) {
		return false, false
	}
	a, b := storedRead(c.A.Value, c.Type), storedRead(c.B[0].Value, c.Type)
	ofA, ofB := lo.readsWindow(a, c.M), lo.readsWindow(b, c.N)
	if ofA && ofB && (a.Guard == nil) != (b.Guard == nil) { // weights in another order than the taps' are at no one stride of these, but all are there
		ofA, ofB = a.Guard != nil, b.Guard != nil
	}
	read := b
	if ofA {
		read = a
	}
	return ofA, ofA != ofB && !(warpgroupKernel{lo}).channelsLast(read)
}

// readByRow makes threads read an operand's windows row by row.
func (lo splitKernel) readByRow(c *ir.Contract) {
	ofA, _ := lo.rowWindowSide(c)
	o, weights := &c.B[0], &c.A
	if ofA {
		o, weights = weights, o
	}
	weights.Window = nil
	w := *lo.window(storedRead(o.Value, c.Type))
	w.ByRow = true
	o.Window, o.Pieces, o.Wide, o.Async, o.KLast = &w, nil, false, true, c.Type.Size() == 2
}
