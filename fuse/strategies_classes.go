package fuse

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/forecast"
	"github.com/fusec/fusec/ir"
)

// Size classes: the conditions under which the variants of a kernel are chosen, and which variants can be
// chosen at all.

// classes adds the 32-bit condition to each variant, and 64-bit versions of some;
// it drops what can never be chosen.
func classes(in []*ir.Variant, small *ir.Expr) []*ir.Variant {
	in = reachable(in)
	var out []*ir.Variant
	for _, v := range in {
		v.When = algebra.And(small, v.When)
		if ir.Decide(algebra.OrTrue(v.When), ir.Facts{}) == ir.False {
			continue
		}
		out = append(out, v)
		if v.When == nil {
			return out
		}
	}
	for _, v := range anySize(in) {
		large := *v
		large.When = algebra.WithoutTerm(v.When, small)
		large.Schedule = widely(v)
		out = append(out, &large)
		if large.When == nil {
			return out
		}
	}
	return out
}

// widely is a variant's schedule for 64-bit offsets, which take more registers. Some threads have none left:
// those with many accesses in flight, those of the largest blocks in chains, and those that fold the sums of a
// whole tile.
func widely(v *ir.Variant) ir.Schedule {
	s := v.Schedule
	s.Index64 = true
	switch {
	case v.Contract != nil && v.Contract.Product != nil && s.Turns > 1: // each warpgroup then has the sums of half a tile
		s.Turns = 1
	case s.Mapping == ir.FlattenedMapping && s.Vector == forecast.WidestVector: // each lane has coordinates of its own
		s.Vector /= 2
	case s.Chain > 0 && s.Threads == forecast.ChainThreads:
		return halved(s)
	case s.Chain == 0 && s.ColThreads > 0 && s.Unroll*s.Vector > groupGuarded:
		s.Unroll /= 2
	}
	return s
}

// anySize lists the variants that get versions with 64-bit offsets. These are the last two, which take any
// size, and the blocks for rows of single elements that may be between them. Tiles that are used where no
// others are better get one too, or those that just hold a side of few rows. For parts of f32, so do the tiles of single elements, because no other tiles
// take these.
func anySize(in []*ir.Variant) []*ir.Variant {
	last := in[len(in)-1:]
	for _, v := range slices.Backward(in[:len(in)-1]) {
		if s := v.Schedule; s.Mapping != ir.RowMapping || s.Vector > 1 || s.Items == 0 {
			last = []*ir.Variant{v, last[0]}
			break
		}
	}
	var tiles, single *ir.Variant
	for _, v := range in {
		switch s := v.Schedule; {
		case s.Mapping != ir.WarpgroupMapping:
		case s.Vector == in[0].Schedule.Vector:
			if tiles == nil || !holdsRows(tiles) || s.TileM < tiles.Schedule.TileM && holdsRows(v) {
				tiles = v
			}
		case v.Contract.InParts():
			single = v
		}
	}
	for _, v := range []*ir.Variant{single, tiles} {
		if v != nil && !slices.Contains(last, v) {
			last = append([]*ir.Variant{v}, last...)
		}
	}
	return last
}

// holdsRows reports whether a tile has as many rows as there are, at all sizes, and no tile of half as many has.
func holdsRows(v *ir.Variant) bool {
	rows := algebra.Product(v.Contract.M)
	return rows.Op == ir.OpConst && rows.Int <= int64(v.Schedule.TileM) && 2*rows.Int > int64(v.Schedule.TileM)
}
