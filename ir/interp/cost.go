package interp

import "github.com/fusec/fusec/ir"

// Cost is about how many scalar operations Run takes for the given sizes: the
// nodes of every value's body times its points. An operation takes 10 to 20 ns.
func Cost(g *ir.Graph, symbols map[string]int64) float64 {
	total := 0.0
	for _, v := range g.Values {
		if v.IsInput() {
			continue
		}
		ranges, nodes := v.Axes, size(v.Body)
		if v.Reduce != nil {
			ranges = append(append([]*ir.Range(nil), ranges...), v.Reduce.Ranges...)
			nodes += 1 + size(v.Reduce.Where)
		}
		points := 1.0
		for _, r := range ranges {
			if extent, ok := ir.EvalSize(r.Extent, symbols); ok {
				points *= float64(extent)
			}
		}
		total += points * float64(nodes)
	}
	return total
}

// size counts the distinct nodes of an expression.
func size(e *ir.Expr) int {
	n := 0
	ir.Walk(e, func(*ir.Expr) bool { n++; return true })
	return n
}
