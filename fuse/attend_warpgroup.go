package fuse

import (
	"cmp"
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/forecast"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// Figures of attention through wgmma.
const (
	slab          = 64 // elements of a line of a tile; the swizzle spans its 128 bytes
	groupQueries  = 64 // queries of a warpgroup
	warpgroup     = 128
	attendGroups  = 2 // warpgroups that multiply; three where 160 registers of a thread hold the sums
	attendKeys    = 128
	attendFewKeys = 64 // least keys of a tile

	// Registers of a thread, of the 240 that it has, for the sums of values and for scores and weights of a tile: what is computed between product
	// and exponent needs the others.
	attendHeld      = 176
	attendHeldPlain = 188
	attendReserve   = 1 << 10 // bytes of shared memory for barriers
)

// attendTileKeys are the keys of a tile that are tried, most first: the longer the heads, the fewer a block holds. An instruction that multiplies weights
// takes 16 at a time.
var attendTileKeys = []int{attendKeys, 112, 96, 80, attendFewKeys}

// attendWarpgroupVariant builds the variant through the tensor copy engine and wgmma; nil where the device
// has neither, or where an operand cannot be copied in TMA tiles.
func (lo attendKernel) attendWarpgroupVariant(a ir.Attend, depth, width int) *ir.Variant {
	if !lo.device.Warpgroups() || a.Parts > 0 || len(a.M) == 0 || len(a.Depth) != 1 || len(a.N) != 1 {
		return nil
	}
	if lo.r.stream.Chained {
		return lo.chainWarpgroupVariant(a, depth, width)
	}
	enough := lo.oneOfQueries(&a)
	upTo := func(n int) int { return (n + slab - 1) / slab * slab }
	depth, a.Width = upTo(depth), upTo(width)
	plain := lo.plainLogits(&a)
	for _, keys := range attendTileKeys {
		s := ir.Schedule{Mapping: ir.AttendWarpgroupMapping, Vector: operandVector, TileN: keys, TileK: depth, Stages: attendStages, MinBlocks: 1}
		groups := attendGroups
		if max(depth, a.Width) <= slab && plain {
			groups++
		}
		s.TileM, s.Threads = groups*groupQueries, (groups+1)*warpgroup
		if keys > attendFewKeys && !lo.holds(s, &a, plain) {
			continue
		}
		if v := lo.attendTiles(a, s); v != nil {
			v.When = algebra.And(v.When, enough)
			return v
		}
	}
	return nil
}

// holds reports whether a block has shared memory for tiles, also for the table of a mask, and its threads registers. plain says that logits need few.
func (lo attendKernel) holds(s ir.Schedule, a *ir.Attend, plain bool) bool {
	registers, beside := attendHeld, attendReserve+tableBytes
	if plain {
		registers, beside = attendHeldPlain, attendReserve
	}
	return a.Width/2+s.TileN/2+s.TileN/4 <= registers && ir.AttendWarpgroupBytes(s, a)+beside <= lo.device.SharedBlock
}

// attendTiles builds the variant of a schedule; nil where an operand cannot be copied in its tiles.
func (lo attendKernel) attendTiles(a ir.Attend, s ir.Schedule) *ir.Variant {
	needs := algebra.NewNeeds(lo.positive(), true)
	ok := true
	tmaTile := func(o ir.Operand, p panel) *ir.TMATile {
		b := lo.tmaTile(o, a.Type, p, needs)
		ok = ok && b != nil
		return b
	}
	keys := lo.k.Cols[0]
	a.QTile = tmaTile(a.Q, panel{"map_q", a.M[0], a.Depth[0], s.TileM})
	a.KTile = tmaTile(a.K, panel{"map_k", keys, a.Depth[0], s.TileN})
	a.VTile = tmaTile(a.V, panel{"map_v", keys, a.N[0], s.TileN})
	if !ok {
		return nil
	}
	v := lo.attendBody(&a, s, needs.Facts)
	v.TensorMaps = []*ir.TMAView{a.QTile.View, a.KTile.View, a.VTile.View}
	lo.require(v, needs)
	notEmpty(v)
	return v
}

// notEmpty adds to a variant's condition that its tensor maps have elements, as the engine asks.
func notEmpty(v *ir.Variant) {
	for _, w := range v.TensorMaps {
		for _, d := range w.Dims {
			v.When = algebra.And(v.When, ir.Apply(ir.OpLe, ir.IntConst(1), d))
		}
	}
}

// oneOfQueries keeps the longest range of queries in tiles, because the rows of a TMA tile are of one
// range. The other ranges, such as heads that share their keys, become batch. It returns the condition
// that tiles of that one range are mostly full; nil for no condition.
func (lo attendKernel) oneOfQueries(a *ir.Attend) *ir.Expr {
	if len(a.M) == 1 {
		return nil
	}
	longest := lo.longest(a.M)
	others := slices.DeleteFunc(slices.Clone(a.M), func(r *ir.Range) bool { return r == longest })
	a.Batch, a.M = append(slices.Clone(a.Batch), others...), []*ir.Range{longest}
	return ir.Apply(ir.OpLe, ir.IntConst(groupQueries), longest.Extent)
}

// longest is the longest of ranges, at the default sizes.
func (lo attendKernel) longest(ranges []*ir.Range) *ir.Range {
	sizes := algebra.DefaultSizes(lo.g)
	return slices.MaxFunc(ranges, func(x, y *ir.Range) int {
		return cmp.Compare(algebra.Estimate(x.Extent, sizes), algebra.Estimate(y.Extent, sizes))
	})
}

// plainLogits reports whether logits need few registers beside scores and sums: heads have a constant
// size, and what is computed between product and exponent reads no memory, has one condition, and calls no
// special function, whose steps hold registers for each of the scores that are under way at once.
func (lo attendKernel) plainLogits(a *ir.Attend) bool {
	plain := a.Weight == nil && algebra.Product(a.Depth).Op == ir.OpConst && algebra.Product(a.N).Op == ir.OpConst
	conditions := 0
	ir.Walk(lo.maximum().Body, func(e *ir.Expr) bool {
		if e.Op == ir.OpSelect {
			conditions++
		}
		plain = plain && conditions <= 1 && e.Op != ir.OpRead && e.Op != ir.OpRandom && e.Op.Info().Special == 0
		return plain
	})
	return plain
}

// panel is a tile of an operand: so many lines of a range of rows, each of which runs along lane.
type panel struct {
	name      string
	row, lane *ir.Range
	lines     int
}

// tmaTile returns the view of an operand that is a read of type t, linear in its row, in its lane and in
// each batch range or a quotient of one; nil for other operands.
func (lo attendKernel) tmaTile(o ir.Operand, t ir.DType, p panel, needs *algebra.Needs) *ir.TMATile {
	read := storedRead(form.Stripped(o.Value), t)
	if read == nil {
		return nil
	}
	offset, rows := read.Args[0], p.row.Extent
	b := &ir.TMATile{}
	if read.Guard != nil {
		if offset, rows, b.Line = lo.pieceOfRows(read, p); b.Line == nil {
			return nil
		}
	}
	offset, others, at := lo.linearParts(offset, p.row, p.lane)
	a, ok := lo.affine(offset, [][]*ir.Range{{p.lane}, {p.row}}, others)
	if !ok || !a.strides[0].IsConst(1) || len(a.others)+2 > largestRank {
		return nil
	}
	b.View = a.view(p.name, read, []*ir.Expr{p.lane.Extent, rows}, a.strides[1:], slab, p.lines)
	b.View.Swizzle = 2 * slab
	for _, r := range a.others {
		b.At = append(b.At, at[slices.Index(others, r)])
	}
	align := int64(forecast.CopyAlign / t.Size())
	for _, e := range append([]*ir.Expr{b.View.Offset}, b.View.Strides...) {
		if e != nil && !needs.Multiple(e, align) {
			return nil
		}
	}
	return b
}

// pieceOfRows reads an operand whose row is a piece of longer rows, the last of which may have fewer elements,
// as in x[piece * 256 + row] where piece * 256 + row < K, else 0. The copy engine gives 0 beyond an extent, so
// the view may have all K rows, and tiles begin where their piece does. Pieces have whole tiles, so that none
// sees rows of the next piece. It returns the offset without the pieces, K, and where the piece begins; nil for
// other conditions.
func (lo attendKernel) pieceOfRows(read *ir.Expr, p panel) (offset, rows, line *ir.Expr) {
	guard := read.Guard
	if guard.Op != ir.OpLt || !read.Fill.IsConst(0) || p.row.Extent.Op != ir.OpConst || p.row.Extent.Int%int64(p.lines) != 0 {
		return nil, nil, nil
	}
	at, rows := guard.Args[0], guard.Args[1]
	i := slices.IndexFunc(lo.k.Rows, func(r *ir.Range) bool {
		piece := ir.Apply(ir.OpMul, r.At(), p.row.Extent)
		return ir.SameIndex(at, ir.Apply(ir.OpAdd, piece, p.row.At()), lo.positive())
	})
	if i < 0 || len(ir.FreeRanges(rows)) > 0 {
		return nil, nil, nil
	}
	r := lo.k.Rows[i]
	step, ok := ir.Stride(read.Args[0], r, lo.positive())
	each, ok2 := ir.Stride(read.Args[0], p.row, lo.positive())
	if !ok || !ok2 || !ir.SameIndex(step, ir.Apply(ir.OpMul, each, p.row.Extent), lo.positive()) {
		return nil, nil, nil
	}
	zero := map[*ir.Range]*ir.Expr{r: ir.IntConst(0)}
	return ir.Simplify(ir.Substitute(read.Args[0], zero), lo.facts), rows, ir.Apply(ir.OpMul, r.At(), p.row.Extent)
}
