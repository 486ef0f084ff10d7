package codegen

import (
	"fmt"
	"strings"

	"github.com/fusec/fusec/ir"
)

// Few warps take part in an epilogue. If it computes much for each result, or stores results one or two at a time, it is fast
// only if the instructions of several of them interleave, which no branch between them allows. Here all threads compute, those
// outside at the last place inside, and only the stores have conditions.

const (
	steadyCost   = 8 // issue slots of one result from which on this pays
	steadyVector = 2 // results stored at a time up to which it pays
	steadyUnits  = 4 // passes at a time of vectors of two
)

// isSteady reports whether the epilogue of a windowed contraction, which computes such expressions, is written in this way.
func (e *contractWarpgroup) isSteady(c *ir.Contract, computed []*ir.Expr) bool {
	if c.A.WindowTiles == nil || interleaves(e.v) || manySums(e.v) || len(c.B) > 1 {
		return false
	}
	if e.v.Schedule.Vector <= steadyVector {
		return true
	}
	cost := 0
	counted := map[uint64]bool{}
	for _, x := range computed {
		ir.WalkThrough(func(x *ir.Expr) bool {
			if x.Type != ir.Index && !counted[x.Hash()] {
				counted[x.Hash()] = true
				cost += x.Op.Info().Cost
			}
			return x.Op != ir.OpRead
		}, x)
	}
	return cost >= steadyCost
}

// steadyPosition writes the place of the thread's vector of this pass, or of the last one inside, and whether it is inside.
func (e *contractWarpgroup) steadyPosition(c *ir.Contract, uses []*ir.Expr) {
	e.vectorOfPass()
	var conditions []string
	at := map[string]string{"m": "warp_m + block * 64 + at_row", "n": "chunk_n + at_column"}
	for _, s := range storedSides(c) {
		extent := "extent_" + s.name
		if s.name == "n" {
			extent = timesSums(c, extent)
		}
		if s.windowTiles.Tile == nil { // places of one range
			last := extent + " - 1"
			if s.name == "n" {
				last = e.lastVector(extent)
			}
			conditions = append(conditions, fmt.Sprintf("%s < %s", at[s.name], extent))
			e.line("const INDEX at_%s = min(%s, (INDEX)(%s));", s.name, at[s.name], last)
			if s.name == "n" {
				e.firstOfLanes(s.own, uses...)
			} else {
				e.take(s.own, "at_"+s.name, uses...)
			}
			continue
		}
		e.line("const int inside_%s = %s - %s;", s.name, at[s.name], s.origin(c))
		conditions = append(conditions, e.steadyBox(s)...)
	}
	e.line("const bool inside = %s;", strings.Join(conditions, " && "))
	e.storeIf = "inside"
	e.vectorLength()
}

// lastVector is the place of the last vector of so many places, which may be a part of one.
func (e *contractWarpgroup) lastVector(extent string) string {
	if e.wholeLanes() {
		return extent + " - VECTOR"
	}
	return fmt.Sprintf("(%s - 1) / VECTOR * VECTOR", extent)
}

// steadyBox writes a thread's place in a box, along each range no further than the last place, and returns the conditions
// for it to be where it is.
func (e *contractWarpgroup) steadyBox(s windowSide) (conditions []string) {
	inner := 1
	for i := len(s.own) - 1; i >= 0; i-- {
		r := s.own[i]
		name, last := e.ranges[r], "1"
		if r == e.lane {
			name, last = "first", "VECTOR"
		}
		extent, place := e.s.Expr(r.Extent), e.placeInTile(s, i, inner)
		e.line("[[maybe_unused]] const INDEX %s = min((INDEX)(%s), (INDEX)(%s - %s));", name, place, extent, last)
		conditions = append(conditions, fmt.Sprintf("%s < %s", place, extent))
		inner *= s.windowTiles.Tile[i]
	}
	return conditions
}

// placeInTile is a thread's place along one range of a box, of which inner places lie between two neighbours.
func (e *contractWarpgroup) placeInTile(s windowSide, i, inner int) string {
	return fmt.Sprintf("%s + inside_%s / %d %% %d", e.tileFirst(s.own[i]), s.name, inner, s.windowTiles.Tile[i])
}
