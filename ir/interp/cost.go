package interp

import (
	"math"

	"github.com/fusec/fusec/ir"
)

// Cost is about how many scalar operations Run takes for the given sizes: the
// nodes of every value's body times its points. An operation takes 10 to 20 ns.
func Cost(g *ir.Graph, symbols map[string]int64) float64 {
	total := 0.0
	for _, v := range g.Values {
		total += Work(v, func(r *ir.Range) float64 {
			if extent, ok := ir.EvalSize(r.Extent, symbols); ok {
				return float64(extent)
			}
			return 1
		})
	}
	return total
}

// Work is about how many operations a value takes where so many points of each of its ranges are computed; none for inputs. An order is
// sorted once for all places that are picked from it.
func Work(v *ir.Value, points func(*ir.Range) float64) float64 {
	if v.IsInput() {
		return 0
	}
	elements, nodes := pointsOf(v.Axes, points), float64(size(v.Body))
	if v.Reduce == nil {
		return elements * nodes
	}
	terms := pointsOf(v.Reduce.Ranges, points)
	if v.Reduce.Rank == nil {
		return elements * terms * (nodes + 1 + float64(size(v.Reduce.Where)))
	}
	var rows []*ir.Range
	free := ir.FreeRanges(v.Body)
	for _, r := range v.Axes {
		if free[r] {
			rows = append(rows, r)
		}
	}
	return pointsOf(rows, points)*terms*(nodes+math.Log2(terms+1)) + elements*float64(size(v.Reduce.Rank))
}

func pointsOf(ranges []*ir.Range, points func(*ir.Range) float64) float64 {
	n := 1.0
	for _, r := range ranges {
		n *= points(r)
	}
	return n
}

// size counts the distinct nodes of an expression.
func size(e *ir.Expr) int {
	n := 0
	ir.Walk(e, func(*ir.Expr) bool { n++; return true })
	return n
}
