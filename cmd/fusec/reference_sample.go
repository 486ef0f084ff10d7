package main

import (
	"math/rand/v2"
	"slices"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/interp"
)

// Which elements of an output are compared, where all are too many.

// What the interpreter may be asked for, in operations as in reference.go.
const (
	sampleBudget = 6e7                                // for the sampled elements of one output
	oneBudget    = sampleSeconds / secondsAnOperation // for one group of elements, where more are too many
	plainBudget  = sampleSeconds / plainSeconds       // for one group in the plain runs alone
	samples      = 256                                // elements of one output, where the budget allows
	sharing      = 1.5                                // times what one element costs: most of a group that shares with it
)

// samplePoints chooses elements of an output: its corners, and others at random, as many as the budget allows; nil where it
// allows none. It says about how many operations they take. Where elements are dear they come in groups that need the same reductions, as those of a row of a norm, which
// the interpreter computes once for all of them.
func samplePoints(g *ir.Graph, output int, sizes map[string]int64, shape []int, random *rand.Rand) (at [][]int, cost float64) {
	if slices.Contains(shape, 0) {
		return [][]int{}, 0
	}
	group := groupOf(g, output, sizes, shape)
	n := samples / product(group)
	for n > 1 && groupsCost(g, output, group, n, sizes) > sampleBudget {
		n /= 2
	}
	most := float64(plainBudget)
	if g.TF32 { // which roundings are drawn for
		most = oneBudget
	}
	if cost = groupsCost(g, output, group, n, sizes); cost > most {
		return nil, cost
	}
	for i := range n {
		first := make([]int, len(shape))
		for d, extent := range shape {
			switch i {
			case 0:
			case 1:
				first[d] = extent - 1
			default:
				first[d] = random.IntN(extent)
			}
		}
		at = append(at, groupAt(first, group, shape)...)
	}
	return at, cost
}

// groupOf is how many positions along each axis the elements of a group have: one where elements are cheap, or share nothing.
func groupOf(g *ir.Graph, output int, sizes map[string]int64, shape []int) []int {
	group := slices.Repeat([]int{1}, len(shape))
	one := groupsCost(g, output, group, 1, sizes)
	if groupsCost(g, output, group, samples, sizes) <= sampleBudget {
		return group
	}
	for d := len(shape) - 1; d >= 0; d-- {
		for 2*product(group) <= samples && 2*group[d] <= shape[d] {
			group[d] *= 2
			if groupsCost(g, output, group, 1, sizes) > sharing*one {
				group[d] /= 2
				break
			}
		}
	}
	return group
}

// groupAt lists the elements of a group, whose positions along each axis lie evenly from the first.
func groupAt(first, group, shape []int) [][]int {
	var out [][]int
	for i := range product(group) {
		p, rest := make([]int, len(shape)), i
		for d := len(shape) - 1; d >= 0; d-- {
			p[d] = (first[d] + rest%group[d]*(shape[d]/group[d])) % shape[d]
			rest /= group[d]
		}
		out = append(out, p)
	}
	return out
}

func product(counts []int) int {
	n := 1
	for _, c := range counts {
		n *= c
	}
	return n
}

// sampleCost is about how many operations n elements of an output take.
func sampleCost(g *ir.Graph, output, n int, sizes map[string]int64) float64 {
	return groupsCost(g, output, slices.Repeat([]int{1}, len(g.Outputs[output].Value.Axes)), n, sizes)
}

// groupsCost is about how many operations n groups of elements of an output take, with so many positions along each axis. Backwards
// from it, of each value a box is needed for each group: along each axis as many points as the loads of its readers visit. What the groups
// share is computed once, so that no value takes more than all of it.
func groupsCost(g *ir.Graph, output int, group []int, n int, sizes map[string]int64) float64 {
	root := make([]float64, len(group))
	for d, positions := range group {
		root[d] = float64(positions)
	}
	need, total := map[*ir.Value][]float64{g.Outputs[output].Value: root}, 0.0
	for i := len(g.Values) - 1; i >= 0; i-- {
		v := g.Values[i]
		if v.IsInput() || need[v] == nil {
			continue
		}
		visits := visitedPoints(v, need[v], sizes)
		box := interp.Work(v, func(r *ir.Range) float64 { return visits[r] })
		total += min(float64(n)*box, interp.Work(v, func(r *ir.Range) float64 { return points([]*ir.Range{r}, sizes) }))
		for _, l := range v.Loads() {
			need[l.From] = widen(need[l.From], l, visits, sizes)
		}
	}
	return total
}

// visitedPoints is how many points of each of its ranges a value visits, for a box of it.
func visitedPoints(v *ir.Value, box []float64, sizes map[string]int64) map[*ir.Range]float64 {
	out := map[*ir.Range]float64{}
	for d, r := range v.Axes {
		out[r] = box[d]
	}
	if v.Reduce != nil {
		for _, r := range v.Reduce.Ranges {
			out[r] = points([]*ir.Range{r}, sizes)
		}
	}
	return out
}

// widen grows a box until it holds what a load visits.
func widen(box []float64, load *ir.Expr, visits map[*ir.Range]float64, sizes map[string]int64) []float64 {
	if box == nil {
		box = make([]float64, len(load.Args))
	}
	for d, index := range load.Args {
		n := 1.0
		for r := range ir.FreeRanges(index) {
			n *= visits[r]
		}
		box[d] = max(box[d], min(n, points(load.From.Axes[d:d+1], sizes)))
	}
	return box
}
