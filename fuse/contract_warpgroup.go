package fuse

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/forecast"
	"github.com/fusec/fusec/ir"
)

// Figures of the warpgroup mapping: in a block, one warpgroup copies and two multiply.
const (
	warpgroupThreads = 384
	warpgroupLine    = 128     // bytes of a row in a stage; the swizzle spans them
	warpgroupStaging = 4 << 12 // bytes of shared memory for staging: 16 rows of 64 sums for each warp of a warpgroup that multiplies
	warpgroupReserve = 2 << 10 // bytes of shared memory for barriers and alignment
	sharedOfBlock    = 1 << 10 // bytes of shared memory that the device takes for each block
	warpgroupStages  = 12      // at most
	warpgroupStart   = 1800    // cycles before the first tile, for barriers, registers and the first bytes; measured against split-K
)

// warpgroupKernel makes the variants that multiply through warpgroups (wgmma) and copy their operands
// through the tensor copy engine.
type warpgroupKernel struct{ productKernel }

// warpgroupVariants makes the variants of a contraction whose operands the tensor copy engine can copy,
// none where it cannot. cost is the cycles that few tiles of the smallest shape take.
func (lo warpgroupKernel) warpgroupVariants(c ir.Contract) (out []*ir.Variant, cost *ir.Expr) {
	if !lo.device.Warpgroups() {
		return nil, nil
	}
	lo.storeAlongN(&c)
	if lo.isWindowed(&c) {
		return lo.windowWarpgroups(c)
	}
	needs := lo.viewableNeeds(&c)
	if needs == nil {
		return nil, nil
	}
	tiles := tilesFor(&c, lo.slotsAfter(&c) >= longEpilogue)
	widest := widestVector(c.Type)
	for vector := widest; ; vector = lo.halfOrSingle(&c, vector, needs) {
		aligned := ir.IntNum(ir.Bool, 0)
		for i, tile := range tiles {
			if tile.full && vector < widest {
				continue
			}
			v, ok := lo.warpgroupVariant(c, tile, vector, needs)
			if !ok {
				break
			}
			aligned = v.When
			v.When = algebra.And(algebra.And(lo.worthTiles(&c, splitRows), lo.exactSums(&c)), algebra.And(lo.cheapest(&c, tiles[i:]), v.When))
			if ir.Decide(algebra.OrTrue(v.When), ir.Facts{}) != ir.False {
				out = append(out, v)
			}
		}
		if vector == 1 || ir.Decide(algebra.OrTrue(aligned), needs.With(ir.Facts{})) == ir.True {
			break
		}
	}
	if len(out) == 0 {
		return nil, nil
	}
	return out, ir.Apply(ir.OpAdd, lo.cost(&c, smallestTile(tiles), lo.slotsAfter(&c)), ir.IntConst(warpgroupStart))
}

// widestVector is the most results that a thread writes at once: neighbours in a tile of a type.
func widestVector(t ir.DType) int { return min(operandVector, forecast.CopyAlign/t.Size()) }

// halfOrSingle is the next smaller vector that a thread writes: half of a whole access if rows are known to be
// multiples of that, as those of an image of 14 by 14 are; else a single element. Half an access takes a quarter of the
// instructions.
func (lo warpgroupKernel) halfOrSingle(c *ir.Contract, vector int, needs *algebra.Needs) int {
	const half = forecast.CopyAlign / 4
	if vector > half && ir.Multiple(algebra.Innermost(c.N).Extent, half, needs.With(lo.facts)) {
		return half
	}
	return 1
}

// storeAlongN swaps the sides of a product if the result is contiguous along M, unless these are a few rows whose
// results alternate along N (contract_interleave.go).
func (lo warpgroupKernel) storeAlongN(c *ir.Contract) {
	alongM := lo.allStores(func(offset *ir.Expr) bool { return algebra.UnitStrideOf(offset, algebra.Innermost(c.M)) })
	swap := alongM && !lo.allStores(func(offset *ir.Expr) bool { return liesBetween(offset, c.M, c.N) }) ||
		!alongM && lo.allStores(func(offset *ir.Expr) bool { return liesBetween(offset, c.N, c.M) })
	if swap && len(c.B) == 1 {
		*c = *swapped(c)
	}
}

// allStores reports whether something holds of the offsets of all stores.
func (lo *kernel) allStores(holds func(*ir.Expr) bool) bool {
	return !slices.ContainsFunc(lo.stores, func(s *storing) bool { return !holds(s.Offset) })
}

// warpgroupVariant builds one variant; ok is false where nothing is written in vectors of that
// width.
func (lo warpgroupKernel) warpgroupVariant(c ir.Contract, tile warpgroupTile, vector int, needs *algebra.Needs) (*ir.Variant, bool) {
	v := lo.contractBody(&c)
	v.Schedule = lo.warpgroupSchedule(tile, c.Type, vector)
	c.B = slices.Clone(c.B)
	lo.warpgroupViews(v, &c, tile)
	v.Contract = &c
	v.When, v.Facts = needs.Condition(), needs.With(lo.facts)
	if vector == 1 {
		return v, true
	}
	lane := algebra.Innermost(c.N)
	and8, _ := lo.widen(v, lane, vector)
	// If no result is written in vectors, as in rows of odd length, a thread takes one element at a time.
	// Neighbours in a warp then write neighbours in memory; if each had a vector of its own, a store would touch
	// eight times as many lines. Reads do not matter here: the copy engine brings the operands, and what all
	// rows share stays in the L1 cache.
	if !storesWide(v) {
		if needs = lo.interleave(v, &c, vector, needs); needs == nil {
			return nil, false
		}
		v.When, v.Facts = needs.Condition(), needs.With(v.Facts)
	} else if len(c.N) > 1 && !ir.Multiple(lane.Extent, int64(vector), v.Facts) {
		return nil, false
	}
	if and8 != nil {
		v.Facts = needs.With(v.Facts)
		v.When = algebra.Divisible(v.Facts)
	}
	return v, true
}

// warpgroupSchedule is the schedule of tiles of a shape.
func (lo warpgroupKernel) warpgroupSchedule(tile warpgroupTile, t ir.DType, vector int) ir.Schedule {
	cluster := tile.cluster
	s := ir.Schedule{Mapping: ir.WarpgroupMapping, Threads: warpgroupThreads, Vector: vector, Cluster: cluster,
		TileM: tile.m, TileN: tile.n, TileK: depthOf(t), Turns: tile.turns, Stages: lo.stagesOf(tile),
		MinBlocks: 1, Blocks: lo.device.SMs / cluster * cluster}
	if cluster == 1 {
		s.Cluster = 0
	}
	if tile.splits > 0 {
		s.Threads, s.Cluster, s.SplitK, s.Blocks, s.MinBlocks = splitThreads, tile.splits, tile.splits, 0, tile.blocks
	}
	return s
}

// warpgroupViews adds to a variant the tensor maps through which tiles of both sides are copied.
func (lo warpgroupKernel) warpgroupViews(v *ir.Variant, c *ir.Contract, tile warpgroupTile) {
	if c.Segments == nil {
		lo.sideViews(v, c, &c.A, c.B, algebra.Product(lo.columns()), tile)
		return
	}
	c.Segments = slices.Clone(c.Segments)
	for i := range c.Segments {
		s := &c.Segments[i]
		s.B = slices.Clone(s.B)
		lo.sideViews(v, c, &s.A, s.B, s.Depth, tile)
	}
}

// sideViews adds the tensor maps of both sides of a product with so many columns.
func (lo warpgroupKernel) sideViews(v *ir.Variant, c *ir.Contract, a *ir.Operand, b []ir.Operand, depth *ir.Expr, tile warpgroupTile) {
	rows := tile.m
	if tile.fewRows > 0 {
		rows = tile.fewRows
	}
	lo.view(v, a, c, viewTile{"map_a", c.M, depth, rows, 1})
	for i := range b {
		lo.view(v, &b[i], c, viewTile{"map_b", c.N, depth, tile.n / len(b), tile.cluster})
	}
}

// depthOf is the columns of a stage.
func depthOf(t ir.DType) int { return warpgroupLine / t.Size() }

// stagesOf is how many pipeline stages of a tile's operands shared memory holds.
func (lo warpgroupKernel) stagesOf(tile warpgroupTile) int {
	left := lo.device.SharedBlock - 2*warpgroupStaging
	if tile.splits > 0 { // the blocks exchange their sums in the memory of the stages
		left = (lo.device.SharedBlock+sharedOfBlock)/tile.blocks - sharedOfBlock
	}
	left -= warpgroupReserve
	return min(warpgroupStages, left/((tile.m+tile.n)*warpgroupLine))
}

// viewableNeeds chooses how the copy engine copies all operands, and returns what the sizes must satisfy for it;
// nil where it cannot. The ranges of one side may not follow each other in memory, as with experts, each of which
// has its own weights for the same rows. Then only the innermost ranges that do follow each other stay rows, and
// the others become batch.
func (lo warpgroupKernel) viewableNeeds(c *ir.Contract) *algebra.Needs {
	needs := algebra.NewNeeds(lo.positive(), true)
	if lo.viewable(c, needs) {
		return needs
	}
	for _, together := range []bool{true, false} {
		apart := *c
		apart.B = slices.Clone(c.B)
		m, n := len(c.M)-1, len(c.N)-1
		if together {
			m, n = lo.rowsApartInMemory(c.A, c.M), lo.rowsApartInMemory(c.B[0], c.N)
		}
		apart.Batch, apart.M, apart.N = slices.Concat(c.Batch, c.M[:m], c.N[:n]), c.M[m:], c.N[n:]
		needs = algebra.NewNeeds(lo.positive(), true)
		if lo.viewable(&apart, needs) {
			*c = apart
			return needs
		}
	}
	return nil
}

// rowsApartInMemory is how many of the outer ranges of an operand do not follow its inner ones in memory.
func (lo warpgroupKernel) rowsApartInMemory(o ir.Operand, own []*ir.Range) (n int) {
	for n = len(own) - 1; n > 0; n-- {
		if read := directRead(o.Value); read == nil {
			break
		} else if _, ok := lo.strideOf(read.Args[0], own[n-1:]); !ok {
			break
		}
	}
	return n
}

// viewable reports whether the copy engine can copy all operands. It chooses the order in which each lies,
// and adds to needs what that asks of the sizes.
func (lo warpgroupKernel) viewable(c *ir.Contract, needs *algebra.Needs) bool {
	if segments := lo.segmentsOf(c); segments != nil {
		return lo.viewableSegments(c, segments, needs)
	}
	ok := lo.viewableOperand(&c.A, c.M, c, needs)
	for i := range c.B {
		ok = ok && lo.viewableOperand(&c.B[i], c.N, c, needs) && c.B[i].KLast == c.B[0].KLast
	}
	return ok
}

// viewableOperand reports whether an operand is a read of the tiles' type that is affine in its rows,
// taken together, in the columns, taken together, and in each range of the batch, with aligned strides.
func (lo warpgroupKernel) viewableOperand(o *ir.Operand, own []*ir.Range, c *ir.Contract, needs *algebra.Needs) bool {
	read := storedRead(o.Value, c.Type)
	if read == nil || read.Guard != nil {
		return false
	}
	a, ok := lo.affine(read.Args[0], [][]*ir.Range{own, lo.columns()}, c.Batch)
	if !ok {
		return false
	}
	outer := a.strides[0]
	o.KLast = a.strides[1].IsConst(1)
	if !o.KLast {
		outer = a.strides[1]
	}
	alongRows := !o.KLast && a.strides[0].IsConst(1) && read.Type.Size() == 2 // wgmma takes operands that lie along their rows only in types of 16 bits
	if !o.KLast && !alongRows || len(a.others)+2 > largestRank {
		return false
	}
	align := int64(forecast.CopyAlign / read.Type.Size())
	for _, e := range append([]*ir.Expr{a.start, outer}, a.otherStrides...) {
		if !needs.Multiple(e, align) {
			return false
		}
	}
	o.ViewBatch = a.others
	return true
}

// viewTile is a tile of an operand: its number of rows, which the blocks of a cluster copy together.
type viewTile struct {
	name    string
	own     []*ir.Range
	depth   *ir.Expr // number of columns
	rows    int
	cluster int
}

// view adds to a variant the tensor map through which a tile of an operand is copied. Each block of a
// cluster copies a share of the tile.
func (lo warpgroupKernel) view(v *ir.Variant, o *ir.Operand, c *ir.Contract, t viewTile) {
	read, line := directRead(o.Value), depthOf(directRead(o.Value).Type)
	a, ok := lo.affine(read.Args[0], [][]*ir.Range{t.own, lo.columns()}, c.Batch)
	if !ok {
		panic("BUG: the view of an operand that has none")
	}
	extent, depth := algebra.Product(t.own), t.depth
	if f := lo.r.folded; f != nil && f.extent != nil && algebra.Innermost(t.own) == algebra.Innermost(lo.k.Cols) {
		extent = f.extent
	}
	if o.KLast {
		o.View = a.view(t.name, read, []*ir.Expr{depth, extent}, []*ir.Expr{a.strides[0]}, line, min(t.rows/t.cluster, mostTMATile))
	} else {
		o.View = a.view(t.name, read, []*ir.Expr{extent, depth}, []*ir.Expr{a.strides[1]}, line, line)
	}
	o.View.Swizzle, o.View.TF32 = warpgroupLine, read.Type == ir.F32
	switch {
	case o.KLast:
	case t.rows < line: // rows lie side by side, in lines of their own
		o.View.Box[0], o.View.Swizzle = t.rows, t.rows*read.Type.Size()
	case t.rows/t.cluster%line != 0: // each block copies a share of the columns
		o.View.Box[1] = line / t.cluster
	}
	v.TensorMaps = append(v.TensorMaps, o.View)
}

// integerSum is the most terms of a sum of products of two i8 that an i32 holds: the magnitude of each is
// at most 2^14.
const integerSum = 1<<17 - 1

// exactSums is the condition that sums fit their accumulators; nil where they always do.
func (lo productKernel) exactSums(c *ir.Contract) *ir.Expr {
	if c.Type != ir.I8 {
		return nil
	}
	return algebra.AtMostSize(algebra.Product(lo.columns()), integerSum)
}
