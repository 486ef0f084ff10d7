package fuse

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/forecast"
	"github.com/fusec/fusec/ir"
)

// Figures of the tile mapping.
const (
	tileSide    = 64  // points along either range: a 128-byte line of a 16-bit type
	tileShort   = 32  // along a range of no more points than that
	tileLong    = 128 // along the other one
	smallTile   = 32  // where there would be fewer large tiles than multiprocessors
	smallSide   = 16  // vectors along either range of such a tile, so that a block has eight warps
	tileVectors = 16  // vectors along either range of a larger tile, of which each thread has a square
	tileLeast   = 16  // least points of a range for which tiles pay
	tileThreads = 256
	tileSteps   = 4        // most elements from one that is read to the next
	tileShared  = 48 << 10 // bytes of shared memory a kernel has without asking
)

// tileVariants makes the variants of a pointwise kernel that reads a tensor across its
// innermost range, as a transposition does; none for other kernels. Tiles of narrow elements
// are larger if there are enough tiles. Tiles are smaller if there are few.
func (lo columnKernel) tileVariants(sections []*ir.Section, lane *ir.Range) []*ir.Variant {
	if len(lo.k.Cols) > 0 || len(lo.k.Rows) < 2 {
		return nil
	}
	var out []*ir.Variant
	inVectors := func(s tileSides, vector int, when *ir.Expr) {
		for _, v := range lo.tilesOf(sections, lane, s, vector) {
			if v.Schedule.Vector > 1 {
				v.When = algebra.And(when, v.When)
				out = append(out, v)
			}
		}
	}
	points := algebra.Product(lo.k.Rows)
	filling := func(s tileSides) *ir.Expr {
		return ir.Apply(ir.OpLe, ir.IntConst(int64(forecast.FullDevice*s.across*s.along)), points)
	}
	if side := lo.largeTile(); side > tileSide {
		s := tileSides{across: side, along: side, least: tileSide + 1}
		inVectors(s, lo.vector(), filling(s))
	}
	for _, s := range []tileSides{{across: tileLong, along: tileShort}, {across: tileShort, along: tileLong}} {
		if s.across*s.along*lo.bytesRead() <= tileShared {
			inVectors(s, lo.vector(), filling(s))
		}
	}
	large := len(out)
	inVectors(tileSides{across: smallTile, along: smallTile}, min(lo.vector(), smallTile/smallSide), ir.Apply(ir.OpLt, points, ir.IntConst(forecast.FullDevice*tileSide*tileSide/2)))
	for _, v := range out[large:] {
		if whole := wholeTiles(v, lane); whole != nil {
			out = slices.Insert(out, large, whole)
		}
	}
	return append(out, lo.tilesOf(sections, lane, tileSides{across: tileSide, along: tileSide}, lo.vector())...)
}

// tileSides are the points of a tile along both of its ranges. least is how many points either range has at least, for tiles that
// would be mostly outside otherwise.
type tileSides struct{ across, along, least int }

// suit is the condition that ranges have as many points as the tiles are for: no range that is long is cut into short sides,
// and a range that is short is no long side.
func (s tileSides) suit(across, along *ir.Expr) *ir.Expr {
	when := algebra.And(ir.Apply(ir.OpLe, ir.IntConst(int64(max(tileLeast, s.least))), across), ir.Apply(ir.OpLe, ir.IntConst(int64(max(tileLeast, s.least))), along))
	if s.across == s.along {
		return when
	}
	short, long := across, along
	if s.across > s.along {
		short, long = along, across
	}
	return algebra.And(when, algebra.And(algebra.AtMostSize(short, tileShort), ir.Apply(ir.OpLt, ir.IntConst(tileShort), long)))
}

// wholeTiles is a variant for ranges that are whole numbers of tiles, so that it needs no
// bounds checks; nil if there is none.
func wholeTiles(v *ir.Variant, lane *ir.Range) *ir.Variant {
	side := int64(v.Schedule.TileM)
	whole := *v
	whole.Facts = algebra.Assuming(v.Facts, algebra.MultiplesIn(side, v.Across.Extent, lane.Extent))
	if !ir.Multiple(v.Across.Extent, side, whole.Facts) || !ir.Multiple(lane.Extent, side, whole.Facts) {
		return nil
	}
	whole.When = algebra.And(v.When, algebra.Divisible(whole.Facts))
	return &whole
}

// largeTile is the side of a tile of which each thread has a square as wide as a vector, if
// such tiles of all tensors that are read fit shared memory; else 0.
func (lo columnKernel) largeTile() int {
	side := tileVectors * lo.vector()
	if side*side*lo.bytesRead() > tileShared {
		return 0
	}
	return side
}

// bytesRead is the bytes of an element of each tensor that is read.
func (lo columnKernel) bytesRead() (bytes int) {
	for _, a := range lo.k.Args {
		if !a.Write {
			bytes += a.Type.Size()
		}
	}
	return bytes
}

// tilesOf are the variants for tiles of the given sides: those for sizes at which the reads through shared memory are
// vectors, and those for all other sizes.
func (lo columnKernel) tilesOf(sections []*ir.Section, lane *ir.Range, s tileSides, vector int) []*ir.Variant {
	return wideFirst(func(assume bool) []*ir.Variant { return lo.tilesRead(sections, lane, s, vector, assume) })
}

// wideFirst are the variants that read makes where it may assume that sizes are multiples of a vector, and those for other
// sizes, where it may not: each once, those with longer vectors first.
func wideFirst(read func(assume bool) []*ir.Variant) []*ir.Variant {
	out := read(true)
	for _, v := range read(false) {
		if !slices.ContainsFunc(out, func(o *ir.Variant) bool {
			return o.Schedule.Vector == v.Schedule.Vector && ir.Equal(algebra.OrTrue(o.When), algebra.OrTrue(v.When))
		}) {
			out = append(out, v)
		}
	}
	slices.SortStableFunc(out, func(a, b *ir.Variant) int { return b.Schedule.Vector - a.Schedule.Vector })
	return out
}

// tilesRead are the variants for tiles of the given sides. assume says whether a variant may require sizes to be
// multiples of a vector, so that its reads through shared memory are vectors.
func (lo columnKernel) tilesRead(sections []*ir.Section, lane *ir.Range, s tileSides, vector int, assume bool) []*ir.Variant {
	halves := lane.Extent.Op == ir.OpConst // planes of 14 x 14 pixels are whole numbers of four
	variants := lo.aligned(along{sections: sections, lane: lane, vector: vector, halves: halves}, false, func(vector int) (ir.Schedule, *ir.Expr) {
		threads := min(tileThreads, s.across/vector*s.along/vector)
		return ir.Schedule{Mapping: ir.TileMapping, Threads: threads, Vector: vector, TileM: s.across, TileN: s.along}, nil
	})
	var out []*ir.Variant
	for _, v := range variants {
		across := lo.stage(v, lane, assume)
		if across == nil {
			return nil
		}
		v.When = algebra.And(s.suit(across.Extent, lane.Extent), v.When)
		if ir.Decide(algebra.OrTrue(v.When), ir.Facts{}) == ir.False {
			continue
		}
		out = append(out, v)
	}
	return out
}

// stage marks the reads that pass through shared memory: those that walk memory along
// another range than the innermost one. It returns that range, which is the same for all of
// them.
func (lo columnKernel) stage(v *ir.Variant, lane *ir.Range, assume bool) *ir.Range {
	shared := 0
	for _, l := range v.Locals {
		r := algebra.ReadIn(l.Def)
		if r == nil || ir.Has(r.Guard, ir.OpRead, ir.OpLocal) || l.Wide || lo.variesThroughLocals(r.Args[0], lane) || !ir.DependsOn(r.Args[0], lane) {
			continue
		}
		along, step := lo.walkedRow(r)
		size := v.Schedule.TileM * v.Schedule.TileN * r.Type.Size()
		if along == nil || along == lane || v.Across != nil && along != v.Across || shared+size > tileShared || lo.variesThroughLocals(r.Args[0], along) {
			continue // threads bring elements for others, whose locals they do not know
		}
		shared += size
		v.Across = along
		l.Wide = step == 1 && (r.Guard == nil || !ir.DependsOn(r.Guard, along)) && lo.alignAlong(v, r.Args[0], along, assume)
		v.Staged = append(v.Staged, l)
	}
	return v.Across
}

// walkedRow returns the row range along which a read walks memory, and its step: the shortest, of few elements, so that a line
// of memory has what several threads read. Of a plane that is one range, that is the step within a row of it.
func (lo columnKernel) walkedRow(read *ir.Expr) (along *ir.Range, step int64) {
	for _, r := range lo.k.Rows {
		if algebra.UnitStride(read, r) {
			return r, 1
		}
		offset, moving := read.Args[0], r
		if lo.plane != nil && r == lo.plane.points {
			offset, moving = lo.inRow(offset)
		}
		stride, ok := ir.Stride(offset, moving, lo.positive())
		if ok && stride.Op == ir.OpConst && stride.Int >= 1 && stride.Int <= tileSteps && (along == nil || stride.Int < step) {
			along, step = r, stride.Int
		}
	}
	return along, step
}
