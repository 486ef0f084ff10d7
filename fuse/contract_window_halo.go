package fuse

import (
	"math"
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/forecast"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// Windows of few channels that read planes as they lie in memory. Laid out with channels last, such an input is
// written and read once more, and a copy of few channels fills a small part of a line. Here a block copies what the
// windows of its tile cover, the halo, to shared memory once, whatever the number of taps. The fragments of tensor
// cores are made of that: where a tap's element is from the first of a window is the same for all windows.

// Figures of such tiles.
const (
	haloPlaces = 256       // windows of a tile, where shared memory has room for what they cover
	haloPart   = 32        // those that a warp multiplies, and of multiply-adds those that its threads have one of each
	haloStep   = 32        // bytes of the columns that tensor cores multiply in a step
	haloShared = 100 << 10 // bytes of shared memory of a block, so that two are there at a time
	haloReuse  = 3         // least reads of an element of the halo, and
	haloFew    = 32        // columns above which it is faster than reading windows row by row,
	haloShort  = 4         // and planes,
	haloMany   = 32        // where there are more results than this
	haloRounds = 2         // rounds of planes for any number of places,
	haloFull   = 1 << 12   // and those that each further one asks for
	haloBusy   = 1 << 14   // least places where planes come in rounds, in multiply-adds: half of the multiprocessors then have a tile
	haloCopy   = 3.0       // what an element of the halo costs to copy, in reads of an element by a tap
	haloLine   = 8         // least places of a tile side by side
)

// The tiles by their rows of weights: of tensor cores, whose warps have all rows of some places, and of multiply-adds, whose
// threads have some rows of places that lie a warp apart.
var (
	haloTensor = []splitShape{{m: 16, partM: 16, partN: haloPart, blocks: 4}, {m: 32, partM: 32, partN: haloPart, blocks: 3}, {m: 64, partM: 64, partN: haloPart, blocks: 2}}
	haloFMA    = []splitShape{{m: 4, partM: 4, partN: 2, blocks: 5}, {m: 8, partM: 8, partN: 2, blocks: 5}, {m: 16, partM: 8, partN: 4, blocks: 4}, {m: 32, partM: 8, partN: 8, blocks: 3}}
)

// haloShapes are these tiles for so many columns and places.
func haloShapes(columns int64, places int, t ir.DType, unit ir.Multiplier) (out []splitShape) {
	step := int64(haloStep / t.Size())
	shapes := haloTensor
	if unit == ir.FMAUnit {
		shapes = haloFMA
	}
	for _, s := range shapes {
		s.n, s.k, s.stages = places, int((columns+step-1)/step*step), 1
		if unit == ir.FMAUnit {
			s.partN = min(s.partN, places/haloPart)
		}
		out = append(out, s)
	}
	return out
}

// haloChoices are the candidates of a product whose windows are multiplied from a halo; none for other products.
func (lo splitKernel) haloChoices(c *ir.Contract) (out []splitCandidate) {
	if c.Type == ir.F64 || c.Unit == ir.IntegerUnit || c.Taps != nil || !lo.isWindowed(c) {
		return nil
	}
	turned, h := *c, lo.haloOf(c)
	ofA := h == nil
	if ofA {
		turned = *swapped(c)
		h = lo.haloOf(&turned)
	}
	if h == nil {
		return nil
	}
	weights := algebra.Product(turned.M)
	enough := algebra.And(algebra.AtLeastSize(algebra.Product(turned.N), haloPlaces/2), algebra.AtLeastSize(weights, form.HaloRows))
	if h.Channel != nil {
		if c.Unit == ir.FMAUnit { // what is copied for a round is soon there, beside its multiply-adds
			enough = algebra.And(enough, algebra.AtLeastSize(algebra.Product(slices.Concat(turned.N, turned.Batch)), haloBusy))
		} else { // tiles of planes that are laid out multiply more channels faster
			enough = algebra.And(algebra.And(enough, algebra.AtMostSize(h.Channel.Extent, form.HaloPlanes)), haloFills(&turned, h))
		}
	}
	for _, s := range haloShapes(h.Columns(), h.Places(), c.Type, c.Unit) {
		if haloBytes(h, s.m, c.Type) > haloShared {
			break
		}
		when := algebra.And(enough, algebra.AtMostSize(weights, int64(s.m)))
		if ir.Decide(algebra.OrTrue(when), ir.Facts{}) == ir.False { // a thread for each result is rather taken than a gather
			continue
		}
		out = append(out, splitCandidate{splitShape: s, splits: 1, when: when, halo: h, turned: ofA})
	}
	return out
}

// haloFills is the condition that there are places enough to fill the device, where planes come in many rounds, one after the
// other; nil where there are few rounds.
func haloFills(c *ir.Contract, h *ir.Halo) *ir.Expr {
	places := ir.Apply(ir.OpMul, algebra.Product(c.N), algebra.Product(c.Batch))
	rounds := ir.Apply(ir.OpSub, algebra.CeilDiv(h.Channel.Extent, int64(h.Channels)), ir.IntConst(haloRounds))
	fills := ir.Simplify(ir.Apply(ir.OpLe, ir.Apply(ir.OpMul, rounds, ir.IntConst(haloFull)), places), ir.Facts{Positive: true})
	if fills.IsConst(1) {
		return nil
	}
	return fills
}

// rowsBeatHalo reports whether windows are rather read row by row, where either is possible: a thread then waits for one
// round of reads, where blocks copy a halo first. It pays for few columns, for few planes and many results, or where a
// halo is read a few times.
func (lo splitKernel) rowsBeatHalo(c *ir.Contract, halos, rows []splitCandidate) bool {
	if len(halos) == 0 || len(rows) == 0 {
		return false
	}
	weights := c.M
	if halos[0].turned {
		weights = c.N
	}
	h, many := halos[0].halo, lo.estimate(algebra.Product(weights)) > haloMany
	return h.Columns() <= haloFew || many && h.Channels <= haloShort || haloReuse*h.Covers()*int64(h.Channels) > int64(h.Places())*h.Columns()
}

// haloBytes is the shared memory of a tile: so many rows of weights and the halo.
func haloBytes(h *ir.Halo, rows int, t ir.DType) int64 {
	return (int64(rows)*h.Columns() + int64(h.Channels)*h.Room()) * int64(t.Size())
}

// haloOf describes the windows of the right side of a product; nil where they are no boxes of planes: along each axis
// a window stands at a multiple of one range of rows, has taps of one range of columns, and is inside of the axis.
func (lo splitKernel) haloOf(c *ir.Contract) *ir.Halo {
	read := storedRead(c.B[0].Value, c.Type)
	at, shape := (warpgroupKernel{lo.productKernel}).placesIn(read)
	if at == nil || read.Guard != nil && !form.IsZero(form.WithoutCasts(read.Fill)) {
		return nil
	}
	b := &haloBuilder{lo: lo.productKernel, c: c, h: &ir.Halo{Start: ir.IntConst(0)}, seen: map[*ir.Range]bool{}}
	apart := ir.IntConst(1)
	for d := len(at) - 1; d >= 0; d-- {
		if !b.axis(at[d], shape[d], apart) {
			return nil
		}
		apart = ir.Simplify(ir.Apply(ir.OpMul, apart, shape[d]), lo.facts)
	}
	slices.Reverse(b.h.Dims)
	if !b.complete() || !lo.insideOf(read, at, shape) {
		return nil
	}
	b.h.Start = ir.Simplify(b.h.Start, lo.facts)
	if !lo.planesAtATime(b.h, c) {
		return nil
	}
	rows := 16
	for float64(rows) < min(64, lo.estimate(algebra.Product(c.M))) {
		rows *= 2
	}
	for places := haloPlaces; places >= haloPart; places /= 2 {
		lo.haloTiles(b.h, places)
		lo.padHalo(b.h, c)
		if haloBytes(b.h, rows, c.Type) <= haloShared {
			return b.h
		}
	}
	return nil
}

// haloBuilder gathers the axes of a halo, the innermost first.
type haloBuilder struct {
	lo   productKernel
	c    *ir.Contract
	h    *ir.Halo
	seen map[*ir.Range]bool
}

// axis adds a dim of the input, which is read at a place; false where windows are not read so.
func (b *haloBuilder) axis(at, extent, apart *ir.Expr) bool {
	row, okRow := b.only(at, b.c.N)
	tap, okTap := b.only(at, b.lo.k.Cols)
	if !okRow || !okTap {
		return false
	}
	d := ir.HaloDim{Row: row, Tile: 1, Tap: tap, Stride: 1, Dilation: 1, First: at, Extent: extent, Apart: apart}
	for _, r := range []struct {
		r    *ir.Range
		step *int64
	}{{row, &d.Stride}, {tap, &d.Dilation}} {
		if r.r == nil {
			continue
		}
		stride, ok := ir.Stride(at, r.r, b.lo.positive())
		if !ok || stride.Op != ir.OpConst || stride.Int < 1 {
			return false
		}
		*r.step = stride.Int
		d.First = ir.AtZero(d.First, r.r)
	}
	d.First = ir.Simplify(d.First, b.lo.facts)
	switch {
	case row == nil && tap == nil:
		b.h.Start = ir.Apply(ir.OpAdd, b.h.Start, ir.Apply(ir.OpMul, at, apart))
		return true
	case row == nil && b.h.Channel == nil: // planes that are summed over, in a group of them all of those
		b.h.Start = ir.Apply(ir.OpAdd, b.h.Start, ir.Apply(ir.OpMul, d.First, apart))
		b.h.Channel, b.h.Plane = tap, ir.Simplify(ir.Apply(ir.OpMul, ir.IntConst(d.Dilation), apart), b.lo.facts)
		return true
	case tap != nil && tap.Extent.Op != ir.OpConst:
		return false
	}
	b.h.Dims = append(b.h.Dims, d)
	return true
}

// only is the one of some ranges on which a place depends, nil for none; ok is false where it depends on several, or on
// one on which another axis depends.
func (b *haloBuilder) only(at *ir.Expr, of []*ir.Range) (r *ir.Range, ok bool) {
	for _, x := range of {
		if !ir.DependsOn(at, x) {
			continue
		}
		if r != nil || b.seen[x] {
			return nil, false
		}
		r, b.seen[x] = x, true
	}
	return r, true
}

// complete reports whether each range of rows and of columns is that of an axis, and memory runs along one that windows
// move along.
func (b *haloBuilder) complete() bool {
	for _, r := range slices.Concat(b.c.N, b.lo.k.Cols) {
		if !b.seen[r] {
			return false
		}
	}
	n := len(b.h.Dims)
	if n == 0 || !b.h.Dims[n-1].Apart.IsConst(1) || b.h.Dims[n-1].Row == nil {
		return false
	}
	lane := algebra.Innermost(b.lo.k.Rows) // neighbours of which are stored together
	return !slices.Contains(b.c.N, lane) || lane == b.h.Dims[n-1].Row
}

// insideOf reports whether the condition of a read says that its places are inside of dims of so many elements, and no more.
func (lo productKernel) insideOf(read *ir.Expr, at, shape []*ir.Expr) bool {
	if read.Guard == nil {
		return true
	}
	for _, c := range ir.Conjuncts(read.Guard) {
		m := form.MarginOf(c)
		if m == nil {
			return false
		}
		ok := false
		for d, e := range at {
			last := ir.Apply(ir.OpSub, shape[d], ir.IntConst(1))
			ok = ok || lo.sameSign(m, e) || lo.sameSign(m, ir.Apply(ir.OpSub, last, e))
		}
		if !ok {
			return false
		}
	}
	return true
}

// sameSign reports whether an integer, which the algebra has simplified, is negative where a place is: it is the place, or
// one of them is a quotient of the other, as 2p + 2i - 3 is not negative where p + i - 2 is not, and p + i - 1, of windows at
// phases, is not where 2p + 2i - 1 is not.
func (lo productKernel) sameSign(m, place *ir.Expr) bool {
	return ir.SameIndex(m, place, lo.facts) || lo.isQuotient(m, place) || lo.isQuotient(place, m)
}

// isQuotient reports whether an integer is another one divided by the step of that along a range of rows. Of the two ways to
// say so the algebra may know one alone: (-1 - x) / n is -1 - x / n.
func (lo productKernel) isQuotient(m, of *ir.Expr) bool {
	beyond := func(e *ir.Expr) *ir.Expr { return ir.Apply(ir.OpSub, ir.IntConst(-1), e) }
	for _, r := range lo.k.Rows {
		step, ok := ir.Stride(of, r, lo.positive())
		if !ok || step.Op != ir.OpConst {
			continue
		}
		by := ir.IntConst(max(step.Int, -step.Int))
		if by.Int > 1 && (ir.SameIndex(m, ir.Apply(ir.OpFloorDiv, of, by), lo.facts) ||
			ir.SameIndex(beyond(m), ir.Apply(ir.OpFloorDiv, beyond(of), by), lo.facts)) {
			return true
		}
	}
	return false
}

// planesAtATime chooses how many planes are in shared memory at a time: all, where their columns are few, else as many
// as are a step of tensor cores at each tap, or as have few columns. It reports whether the columns can be divided so.
func (lo productKernel) planesAtATime(h *ir.Halo, c *ir.Contract) bool {
	most := form.HaloColumns(c.Type)
	h.Channels = 1
	taps := h.Columns()
	if h.Channel == nil {
		return taps <= most
	}
	n := h.Channel.Extent
	if n.Op == ir.OpConst && n.Int*taps <= most {
		h.Channels = int(n.Int)
		return true
	}
	h.Channels = haloStep / c.Type.Size()
	if c.Unit == ir.FMAUnit {
		if h.Channels = int(max(1, most/taps)); n.Op == ir.OpConst { // rounds of as many planes each
			rounds := (n.Int + int64(h.Channels) - 1) / int64(h.Channels)
			h.Channels = int((n.Int + rounds - 1) / rounds)
		}
	}
	return lo.k.Cols[0] == h.Channel
}

// haloTiles divides so many windows of a tile among the axes, in powers of two, so that at the program's default sizes most
// of the tile is inside and the halo is small.
func (lo productKernel) haloTiles(h *ir.Halo, places int) {
	least, best := math.Inf(1), make([]int, len(h.Dims))
	taps := float64(h.Columns()) / float64(h.Channels)
	var try func(d, left int, boxes float64)
	try = func(d, left int, boxes float64) {
		if d < 0 {
			if cost := boxes * (float64(places)*taps + haloCopy*float64(h.Covers())); left == 1 && cost < least {
				least = cost
				for i := range h.Dims {
					best[i] = h.Dims[i].Tile
				}
			}
			return
		}
		if h.Dims[d].Row == nil {
			try(d-1, left, boxes)
			return
		}
		extent := math.Max(1, lo.estimate(h.Dims[d].Row.Extent))
		for n := 1; n <= left; n *= 2 {
			if d == len(h.Dims)-1 && n < haloLine {
				continue
			}
			h.Dims[d].Tile = n
			try(d-1, left/n, boxes*math.Ceil(extent/float64(n)))
		}
		h.Dims[d].Tile = 1
	}
	try(len(h.Dims)-1, places, 1)
	for i := range h.Dims {
		h.Dims[i].Tile = best[i]
	}
}

// readHalo makes blocks copy what the windows of a tile cover.
func (lo splitKernel) readHalo(c *ir.Contract, h *ir.Halo) {
	c.A.Window = nil
	w := *lo.window(storedRead(c.B[0].Value, c.Type))
	w.Halo = h
	o := &c.B[0]
	o.Window, o.Pieces, o.Wide, o.Async, o.KLast = &w, nil, false, true, false
	if c.Unit != ir.FMAUnit && lo.weightsInOrder(c) { // a tile for multiply-adds runs along the rows, not along the columns as these do
		c.A.Wide, c.A.Pieces = true, nil
	}
}

// weightsInOrder reports whether memory holds the columns of each row of the left side one after the other, in whole
// accesses, whatever ranges they are of.
func (lo splitKernel) weightsInOrder(c *ir.Contract) bool {
	read := storedRead(c.A.Value, c.Type)
	if read == nil || read.Guard != nil || !c.A.KLast {
		return false
	}
	length := int64(forecast.AccessBytes / c.Type.Size())
	pitch, ok := lo.strideOf(read.Args[0], lo.k.Cols)
	first, _, apart := lo.byRowsAndColumns(read.Args[0])
	return ok && pitch.IsConst(1) && apart && ir.Multiple(algebra.Product(lo.k.Cols), length, lo.facts) && ir.Multiple(first, length, lo.facts)
}
