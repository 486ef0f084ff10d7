package explain

import (
	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/ir"
)

// The time that threads spend on copying operands to the tiles of a product. The tensor copy engine
// copies without them, and copies of whole accesses are few. But copying a single element takes
// instructions for its address and its conditions, and few such copies are under way at a time. That
// often takes much longer than the multiplications.

// Figures of such copies, in slots in which a thread issues an instruction; measured on an H100, within a factor of two.
const (
	copyAccess   = 8  // of a copy of 16 bytes
	copyBand     = 3  // of an element that is copied with its neighbours, and read by itself
	copyWindow   = 50 // of an element of 32 bits that goes to shared memory without a register
	copyRow      = 10 // of an element of a window that a thread reads with all others of its row
	copyElement  = 60 // of any other element, which waits in a register,
	copyDivision = 22 // and each quotient or remainder in its place
)

// copies adds the work of copying operands to tiles, where threads do that, to a kernel's tally.
func (x *explainer) copies(v *ir.Variant, cols []*ir.Range, t *tally) {
	c, s := v.Contract, v.Schedule
	if c == nil || s.Mapping != ir.SplitKMapping && s.Mapping != ir.ContractMapping || c.B[0].Window != nil && c.B[0].Window.Halo != nil {
		return
	}
	tiles := func(ranges []*ir.Range, rows int) *ir.Expr { return algebra.TilesOf(algebra.Product(ranges), rows) }
	m, n, k := tiles(c.M, s.TileM), tiles(c.N, s.TileN), tiles(cols, s.TileK)
	steps := ir.Simplify(ir.Apply(ir.OpMul, ir.Apply(ir.OpMul, algebra.Product(c.Batch), k), ir.Apply(ir.OpMul, m, n)), ir.Facts{Positive: true})
	slots := float64(s.TileM*s.TileK) * slotsOf(c.A, c.M, cols, c.Type)
	for _, o := range c.B {
		slots += float64(s.TileN*s.TileK) * slotsOf(o, c.N, cols, c.Type)
	}
	count, ok := x.eval(steps)
	t.unknown = t.unknown || !ok
	const perSlot = 2 // a device's rate counts two operations for each slot
	t.done(points{float64(count), steps}, Work{Copies: perSlot * slots})
}

// slotsOf is what it takes to bring one element of an operand to its tile.
func slotsOf(o ir.Operand, own, cols []*ir.Range, t ir.DType) float64 {
	const access = 16 // bytes
	switch {
	case o.Wide:
		return copyAccess * float64(t.Size()) / access
	case o.Band != nil:
		return copyBand
	case o.Window != nil && o.Window.ByRow:
		return copyRow
	case o.Async:
		return copyWindow
	}
	divisions := algebra.Divisions(algebra.WithoutLocals(o.Value))
	for _, ranges := range [][]*ir.Range{own, cols} { // the index of each is a digit of a place in the tile
		divisions += 2 * max(0, len(ranges)-1)
	}
	slots := float64(copyElement + copyDivision*divisions)
	if o.Pieces != nil {
		slots /= float64(o.Pieces.Length)
	}
	return slots
}
