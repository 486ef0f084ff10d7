package fuse

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// Chained contractions: streams whose weights are a function of products, and have no maximum beside them.

// chainBody lowers the fold, the stores and the weight over locals, as attendBody does.
func (lo attendKernel) chainBody(a *ir.Attend, s ir.Schedule, known ir.Facts) *ir.Variant {
	b := newBody(lo.kernel)
	v := &ir.Variant{Sections: b.sections(lo.passes(true)), Attend: a, Schedule: s}
	a.Acc = v.Sections[0].Folds[0]
	if a.Also != nil {
		lo.alsoSum(v, a)
	}
	lo.widenStores(v, a, known)
	a.Skip = lo.chainMask(b, a, s)
	a.Weight = b.build(b.intern(a.Weight))
	if a.Also != nil {
		a.Also.Weight = b.build(b.intern(a.Also.Weight))
	}
	v.Locals = b.locals
	a.OfQuery = lo.ofQuery(v, a)
	return v
}

// chainBands makes bands of the queries and keys of a chain of one product that lie in short rows, and would be copied one by one.
func (lo attendKernel) chainBands(a *ir.Attend, s ir.Schedule) {
	if depth := algebra.Product(a.Depth); len(a.Others) > 0 || a.ValueIn > 0 || a.Also != nil || a.Parts > 0 || depth.Op != ir.OpConst {
		return
	}
	for _, side := range []struct {
		o    *ir.Operand
		own  []*ir.Range
		rows int
	}{{&a.Q, a.M, s.TileM}, {&a.K, lo.k.Cols, s.TileN}} {
		if side.o.Wide {
			continue
		}
		band, along := lo.bandOf(*side.o, a.Type, side.own, a.Depth, a.Batch, side.rows)
		if band != nil && along && band.Pitch <= s.TileK && band.Pitch%2 == 0 && band.Skip%2 == 0 { // threads read pairs, for each tile again
			side.o.Band, side.o.KLast = band, true
		}
	}
}

// alsoSum finds the folds of two sums.
func (lo attendKernel) alsoSum(v *ir.Variant, a *ir.Attend) {
	also := *a.Also
	for _, f := range v.Sections[0].Folds {
		if f.Result.Value == lo.r.stream.Out {
			a.Acc = f
		} else {
			also.Acc = f
		}
	}
	a.Also = &also
}

// chainMask bounds the condition of a weight that is 0 where the condition does not hold.
func (lo attendKernel) chainMask(b *body, a *ir.Attend, s ir.Schedule) ir.TileMask {
	t := lo.tileBounds(a, s)
	none := ir.TileMask{Query: t.mask.Query, Key: t.mask.Key}
	condition := form.WeightCondition(a.Weight) // both sums of a pair have the same condition
	if condition == nil || algebra.ReadsMemory(condition) {
		return none
	}
	rest := t.condition(condition)
	clear := func(weight *ir.Expr) *ir.Expr {
		w := form.Stripped(weight)
		if rest == nil {
			return b.build(b.intern(w.Args[1]))
		}
		return b.build(b.intern(ir.Where(rest, w.Args[1], w.Args[2])))
	}
	if t.mask.Any == nil {
		return none
	}
	if t.mask.All != nil {
		t.mask.Clear = clear(a.Weight)
		if a.Also != nil {
			a.Also.Clear = clear(a.Also.Weight)
		}
	}
	t.mask.Any, t.mask.All = t.restore(t.mask.Any), t.restore(t.mask.All)
	t.mask.FirstMost = lo.firstSeeMost(t.mask, a, s)
	return t.mask
}

// valuesIn is the number, from 1, of the product whose keys are also the given values, so that one tile serves both;
// 0 if there is none.
func valuesIn(a *ir.Attend, values *ir.Expr) int {
	if len(a.N) != 1 {
		return 0
	}
	for i, p := range a.Products() {
		if len(p.Depth) != 1 || !ir.SameSize(p.Depth[0].Extent, a.N[0].Extent) {
			continue
		}
		across := ir.Substitute(p.K.Value, map[*ir.Range]*ir.Expr{p.Depth[0]: a.N[0].At()})
		if ir.Equal(ir.Simplify(across, ir.Facts{}), ir.Simplify(values, ir.Facts{})) {
			return i + 1
		}
	}
	return 0
}

// brought lists the f32 locals that are read from memory and depend on the key alone, as many as fit shared memory
// beside the tiles.
func (lo attendKernel) brought(v *ir.Variant, a *ir.Attend) (out []*ir.Local) {
	const barrierBytes = 256
	bytes := v.Schedule.Stages * v.Schedule.TileN * ir.F32.Size()
	most := (tableBytes - barrierBytes) / bytes
	return numbersOf(v, lo.k.Cols, append(slices.Clone(a.M), a.N...), most)
}

// ofQuery lists the f32 locals that are read from memory and depend on the query alone, at most as many as
// registers hold.
func (lo attendKernel) ofQuery(v *ir.Variant, a *ir.Attend) []*ir.Local {
	const most = 2
	return numbersOf(v, a.M, append(slices.Clone(lo.k.Cols), a.N...), most)
}

// numbersOf lists at most the given number of f32 locals read from memory, at places that depend on ranges and not
// on others.
func numbersOf(v *ir.Variant, ranges, others []*ir.Range, most int) (out []*ir.Local) {
	on, not := algebra.RangeSet(ranges), algebra.RangeSet(others)
	for _, l := range v.Locals {
		read := directRead(l.Def)
		if read != nil && l.Type == ir.F32 && read.Guard == nil && len(out) < most &&
			algebra.DependsOnAny(l.Def, on) && !algebra.DependsOnAny(l.Def, not) {
			out = append(out, l)
		}
	}
	return out
}

// chainKeys is the keys of a tile of a chain through wgmma: registers hold the scores of every product beside the sums.
const chainKeys = 64

// heldSlabs is how many slabs of queries registers hold beside scores, weights and sums: all slabs or none. With the
// queries in registers a product reads half as much from shared memory, and that is what limits products of 64 keys.
func (lo attendKernel) heldSlabs(a *ir.Attend, s ir.Schedule) int {
	const (
		most    = 192                                 // registers for all of these; the others are for addresses and bounds
		perSlab = groupQueries * slab / warpgroup / 2 // 16-bit elements of a thread, two in a register
	)
	if a.InPlace() || !lo.plainWeights(a) {
		return 0
	}
	products, sums := len(a.Products()), 1
	if a.Also != nil {
		sums++
	}
	used := max(products, sums)*s.TileN/2 + sums*(s.TileN/4+a.Width/2)
	all := products * s.TileK / slab
	if used+all*perSlab > most {
		return 0
	}
	return all
}

// plainWeights reports whether weights need few registers beside scores: all that they read is numbers that belong to
// the query or to the key, and they call at most one special function.
func (lo attendKernel) plainWeights(a *ir.Attend) bool {
	weights := []*ir.Expr{a.Weight}
	if a.Also != nil {
		weights = append(weights, a.Also.Weight)
	}
	plain := true
	for _, w := range weights {
		special := 0
		ir.Walk(w, func(e *ir.Expr) bool {
			if e.Op.Info().Special > 0 {
				special++
			}
			plain = plain && e.Op != ir.OpRandom
			return plain
		})
		plain = plain && special <= 1
	}
	return plain
}

// blocksStay reports whether blocks are persistent, and go from one tile of queries to the next. They are where all
// tiles have the same work, or where the default sizes have so few keys that starting a tile costs as much as the work
// of tiles differs. Otherwise one block for each tile balances the load better. With two sums there are no registers
// for it.
func (lo attendKernel) blocksStay(a *ir.Attend, s ir.Schedule) bool {
	const fewKeys, rounds = 1024, 8
	sizes := algebra.DefaultSizes(lo.g)
	tiles := algebra.Estimate(algebra.Product(a.M), sizes) / float64(s.TileM) * algebra.Estimate(algebra.Product(a.Batch), sizes)
	return a.Also == nil && (a.Skip.Any == nil ||
		algebra.Estimate(algebra.Product(lo.k.Cols), sizes) <= fewKeys && tiles >= float64(rounds*lo.device.SMs))
}

// oneOfKeys keeps the longest range of keys in tiles, as oneOfQueries does for queries; the other ranges become loops
// around the tiles. It returns the condition that tiles of that one range are mostly full; nil for no condition.
func (lo attendKernel) oneOfKeys(a *ir.Attend) *ir.Expr {
	if len(lo.k.Cols) == 1 {
		return nil
	}
	longest := lo.longest(lo.k.Cols)
	a.Outer = slices.DeleteFunc(slices.Clone(lo.k.Cols), func(r *ir.Range) bool { return r == longest })
	return ir.Apply(ir.OpLe, ir.IntConst(chainKeys), longest.Extent)
}

// chainWarpgroupVariant builds the variant through the tensor copy engine and wgmma; nil where an operand cannot be
// copied in TMA tiles.
func (lo attendKernel) chainWarpgroupVariant(a ir.Attend, depth, width int) *ir.Variant {
	if len(a.N) != 1 {
		return nil
	}
	enough := algebra.And(lo.oneOfQueries(&a), lo.oneOfKeys(&a))
	upTo := func(n int) int { return (n + slab - 1) / slab * slab }
	depth, a.Width = upTo(depth), upTo(width)
	s := ir.Schedule{Mapping: ir.ChainWarpgroupMapping, Vector: operandVector, TileM: attendGroups * groupQueries, TileN: chainKeys,
		TileK: depth, Stages: attendStages, MinBlocks: 1, Threads: (attendGroups + 1) * warpgroup}
	needs := algebra.NewNeeds(lo.positive(), true)
	var maps []*ir.TMAView
	tile := func(name string, o ir.Operand, row, lane *ir.Range, lines int) *ir.TMATile {
		t := lo.tmaTile(o, a.Type, panel{name, row, lane, lines}, needs)
		if t != nil {
			maps = append(maps, t.View)
		}
		return t
	}
	a.Held = lo.heldSlabs(&a, s)
	keys, products := a.Keys(lo.k)[0], a.Products()
	for i := range products {
		p, name := &products[i], string(rune('a'+i))
		if len(p.Depth) != 1 {
			return nil
		}
		p.QTile = tile("map_q"+name, p.Q, a.M[0], p.Depth[0], s.TileM)
		p.KTile = tile("map_k"+name, p.K, keys, p.Depth[0], s.TileN)
	}
	if a.ValueIn == 0 {
		a.VTile = tile("map_v", a.V, keys, a.N[0], s.TileN)
	}
	operands := 2 * len(products)
	if a.ValueIn == 0 {
		operands++
	}
	if len(maps) < operands { // one of them cannot be copied so
		return nil
	}
	// Three stages are in use at a time: one is multiplied by weights, one by queries, and one
	// is being copied.
	if s.Stages++; ir.ChainWarpgroupBytes(s, &a)+tableBytes > lo.device.SharedBlock {
		s.Stages--
	}
	a.QTile, a.KTile, a.Others = products[0].QTile, products[0].KTile, products[1:]
	v := lo.chainBody(&a, s, needs.Facts)
	if lo.blocksStay(&a, s) {
		v.Schedule.Blocks = lo.device.SMs
	}
	a.Brought = lo.brought(v, &a)
	v.TensorMaps, v.When = maps, algebra.And(v.When, enough)
	lo.require(v, needs)
	notEmpty(v)
	return v
}
