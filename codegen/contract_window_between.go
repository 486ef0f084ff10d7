package codegen

import (
	"fmt"

	"github.com/fusec/fusec/ir"
)

// Tiles with several sums for each row and column, whose results lie between each other; see ir.Contract.Between. Copier and
// multipliers go through the points of that range in the same order.

// eachSum opens the loop over the sums of a tile, where it has several for each row and column. unroll says whether the compiler
// unrolls it: sums are in registers, which have no index.
func (e *contractWarpgroup) eachSum(c *ir.Contract, unroll string) {
	if c.Between == nil {
		return
	}
	name := e.ranges[c.Between]
	e.line("%s", unroll)
	e.open("for (int %[1]s = 0; %[1]s < %[2]d; ++%[1]s)", name, c.SumsEach())
	if c.Taps != nil && coverOf(e.v) == nil {
		e.line("const int steps = steps_at(tile, %s);", name)
	}
}

// endSums closes the loop over the sums of a tile.
func (e *contractWarpgroup) endSums(c *ir.Contract) {
	if c.Between != nil {
		e.close()
	}
}

// allSums is the name of all sums of a tile, with its first extent if there are several for each row and column.
func (e *contractWarpgroup) allSums(c *ir.Contract) string {
	if c.Between == nil {
		return "sums"
	}
	return fmt.Sprintf("sums[%d]", c.SumsEach())
}

// presentSums is the sums that are being added up.
func (e *contractWarpgroup) presentSums(c *ir.Contract) string {
	if c.Between == nil {
		return "sums"
	}
	return fmt.Sprintf("sums[%s]", e.ranges[c.Between])
}

// someStages tells the compiler that no loop over stages is empty, where a tile has several sums. It would otherwise set those of
// one point to zero, for the case that it has no products, between the products of the other, which then wait for each other.
func (e *contractWarpgroup) someStages(c *ir.Contract) {
	if c.Between == nil {
		return
	}
	if coverOf(e.v) == nil {
		e.line("__builtin_assume(steps > 0);")
		return
	}
	e.line("__builtin_assume(blocks > 0);")
	for _, n := range c.Taps {
		e.line("__builtin_assume(%s > 0);", e.s.Expr(n))
	}
}

// holdAll is hold for all sums of a tile.
func (e *contractWarpgroup) holdAll(c *ir.Contract) {
	e.eachSum(c, "#pragma unroll")
	e.hold(e.presentSums(c))
	e.endSums(c)
}

// storedSides are the sides of a windowed contraction as results are stored: the columns are those of all sums, in the order of
// memory.
func storedSides(c *ir.Contract) []windowSide {
	sides := windowSides(c)
	if c.Between == nil {
		return sides
	}
	n := &sides[1]
	n.own = c.Stored()
	if tile := n.windowTiles.Tile; tile != nil {
		last := len(tile) - 1
		wide := *n.windowTiles
		wide.Tile = append(append([]int{}, tile[:last]...), tile[last]*c.SumsEach())
		n.windowTiles = &wide
	}
	return sides
}

// timesSums is a number that is of one of the sums of a tile, for all of them.
func timesSums(c *ir.Contract, number string) string {
	if c.Between == nil {
		return number
	}
	return fmt.Sprintf("%s * %d", number, c.SumsEach())
}

// laneBase writes the first place of the present tile along the lane of its results, if its columns are a box.
func (e *contractWarpgroup) laneBase(c *ir.Contract) {
	if c.Between == nil || c.B[0].WindowTiles.Tile == nil {
		return
	}
	e.line("const int %s = %s;", e.tileFirst(c.Lane), timesSums(c, e.tileFirst(c.N[len(c.N)-1])))
}
