package fuse

import "github.com/fusec/fusec/ir"

// Figures of the tile mapping.
const (
	tileSide    = 64 // points along either range: a 128-byte line of a 16-bit type
	tileLeast   = 16 // points of a range from which tiles pay
	tileThreads = 256
	tileShared  = 48 << 10 // bytes of shared memory a kernel has without asking
)

// tileVariants makes the variants of a pointwise kernel that reads a tensor
// across its innermost range, as a transposition does; none where it does not.
func (lo *lowering) tileVariants(sections []*ir.Section, lane *ir.Range) []*ir.Variant {
	if len(lo.k.Cols) > 0 || len(lo.k.Rows) < 2 {
		return nil
	}
	variants := lo.aligned(sections, lane, lo.vector(), false, func(vector int) (ir.Schedule, *ir.Expr) {
		return ir.Schedule{Mapping: ir.TileMapping, Threads: tileThreads, Vector: vector, TileM: tileSide, TileN: tileSide}, nil
	})
	var out []*ir.Variant
	for _, v := range variants {
		across := lo.stage(v, lane)
		if across == nil {
			return nil
		}
		large := and(ir.Apply(ir.OpLe, ir.IntConst(tileLeast), across.Extent), ir.Apply(ir.OpLe, ir.IntConst(tileLeast), lane.Extent))
		v.When = and(large, v.When)
		if ir.Decide(orTrue(v.When), ir.Facts{}) == ir.False {
			continue
		}
		out = append(out, v)
	}
	return out
}

// stage marks the reads that pass through shared memory: those that are not
// contiguous along the innermost range but along another one, the same for all.
func (lo *lowering) stage(v *ir.Variant, lane *ir.Range) *ir.Range {
	shared := 0
	for _, l := range v.Locals {
		r := readIn(l.Def)
		if r == nil || r.Guard != nil || l.Wide || lo.variesThroughLocals(r.Args[0], lane) || !ir.DependsOn(r.Args[0], lane) {
			continue
		}
		along := lo.contiguousRow(r)
		size := tileSide * (tileSide + 4) * r.Type.Size()
		if along == nil || along == lane || v.Across != nil && along != v.Across || shared+size > tileShared {
			continue
		}
		shared += size
		v.Across = along
		l.Wide = lo.alignAlong(v, r, along)
		v.Staged = append(v.Staged, l)
	}
	return v.Across
}

// contiguousRow returns the row range along which a read walks memory.
func (lo *lowering) contiguousRow(read *ir.Expr) *ir.Range {
	for _, r := range lo.k.Rows {
		if unitStride(read, r) {
			return r
		}
	}
	return nil
}

// alignAlong reports whether vectors of a read along a row range are aligned,
// adding to the variant's class what that takes.
func (lo *lowering) alignAlong(v *ir.Variant, read *ir.Expr, along *ir.Range) bool {
	vector := int64(v.Schedule.Vector)
	if vector == 1 {
		return false
	}
	known := lo.inside(ir.RowLevel)
	promised := ir.Facts{Positive: known.Positive, Within: known.Within, Divisible: v.Facts.Divisible, Multiples: v.Facts.Multiples}
	facts, product := wholeProduct(promised, along.Extent, vector)
	ok, assumed := contiguousFrom(read.Args[0], along, vector, known, facts)
	if !product || !ok {
		facts = with(promised, multiplesIn(vector, along.Extent))
		ok, assumed = contiguousFrom(read.Args[0], along, vector, known, facts)
	}
	if ok && assumed {
		v.Facts = facts
		v.When = and(v.When, divisible(facts))
	}
	return ok
}
