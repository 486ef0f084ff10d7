package view

import (
	"math"
	"slices"
	"sort"
)

// item is a box to be placed: its size, then its place.
type item struct {
	w, h float64
	x, y float64 // of the upper left corner
	rank int
	row  span // of its layer, from top to bottom
}

type span struct{ from, to float64 }

// gaps between boxes.
type gaps struct{ x, y float64 }

type point struct{ x, y float64 }

// place lays boxes out in layers, so that edges lead down: each box in the layer below
// the last one that leads to it, those that nothing leads to just above the first that
// they lead to; the boxes of a layer in the order of their neighbours, and near them. Edges lead
// from lower to higher positions in items. Where an edge passes layers, it has a way between their
// boxes: bends holds the points of it, from top to bottom. The size is that of the whole.
func place(items []item, edges [][2]int, gap gaps) (w, h float64, bends [][]point) {
	if len(items) == 0 {
		return 0, 0, nil
	}
	from, to := neighbours(len(items), edges)
	rankItems(items, from, to)
	own := items
	items, parts, through := withWays(items, edges)
	from, to = neighbours(len(items), parts)
	layers := layersOf(items)
	orderLayers(layers, from, to)
	h = rows(items, layers, gap)
	for i := range own {
		if len(from[i]) == 0 { // its edges lead down at once
			items[i].y = items[i].row.to - items[i].h
		}
	}
	w = columns(items, layers, from, to, gap)
	bends = make([][]point, len(edges))
	for e, way := range through {
		for _, i := range way {
			x := items[i].x + items[i].w/2
			bends[e] = append(bends[e], point{x, items[i].row.from}, point{x, items[i].row.to})
		}
	}
	copy(own, items)
	return w, h, bends
}

// withWays adds a thin box for each layer that an edge passes. through lists them by edge.
func withWays(items []item, edges [][2]int) (all []item, parts [][2]int, through [][]int) {
	const thin, farthest, most = 14, 60, 30_000
	all = items
	through = make([][]int, len(edges))
	for n, e := range edges {
		span := items[e[1]].rank - items[e[0]].rank
		last := e[0]
		if span <= farthest && len(all)+span < len(items)+most {
			for rank := items[e[0]].rank + 1; rank < items[e[1]].rank; rank++ {
				all = append(all, item{w: thin, rank: rank})
				through[n] = append(through[n], len(all)-1)
				parts = append(parts, [2]int{last, len(all) - 1})
				last = len(all) - 1
			}
		}
		parts = append(parts, [2]int{last, e[1]})
	}
	return all, parts, through
}

func neighbours(n int, edges [][2]int) (from, to [][]int) {
	from, to = make([][]int, n), make([][]int, n)
	for _, e := range edges {
		to[e[0]] = append(to[e[0]], e[1])
		from[e[1]] = append(from[e[1]], e[0])
	}
	return from, to
}

func rankItems(items []item, from, to [][]int) {
	for i := range items {
		items[i].rank = 0
		for _, j := range from[i] {
			items[i].rank = max(items[i].rank, items[j].rank+1)
		}
	}
	for i := range items {
		if len(from[i]) > 0 || len(to[i]) == 0 {
			continue
		}
		first := math.MaxInt
		for _, j := range to[i] {
			first = min(first, items[j].rank)
		}
		items[i].rank = first - 1
	}
}

func layersOf(items []item) [][]int {
	most := 0
	for _, it := range items {
		most = max(most, it.rank)
	}
	layers := make([][]int, most+1)
	for i, it := range items {
		layers[it.rank] = append(layers[it.rank], i)
	}
	return slices.DeleteFunc(layers, func(l []int) bool { return len(l) == 0 })
}

// orderLayers sorts each layer by the mean place of its boxes' neighbours, downwards and
// upwards in turns.
func orderLayers(layers [][]int, from, to [][]int) {
	const sweeps = 8
	at := make([]float64, len(from))
	note := func(l []int) {
		for p, i := range l {
			at[i] = (float64(p) + 0.5) / float64(len(l))
		}
	}
	for _, l := range layers {
		note(l)
	}
	key := make([]float64, len(from))
	alternate(sweeps, layers, from, to, func(l []int, near [][]int) {
		for _, i := range l {
			if key[i] = at[i]; len(near[i]) > 0 {
				key[i] = mean(near[i], at)
			}
		}
		sort.SliceStable(l, func(a, b int) bool { return key[l[a]] < key[l[b]] })
		note(l)
	})
}

// alternate visits all layers so many times, downwards and upwards in turns, each with the
// neighbours that were visited just before: those above, then those below.
func alternate(sweeps int, layers, from, to [][]int, visit func(layer []int, near [][]int)) {
	for s := range sweeps {
		if s%2 == 0 {
			for _, l := range layers {
				visit(l, from)
			}
			continue
		}
		for _, l := range slices.Backward(layers) {
			visit(l, to)
		}
	}
}

func mean(of []int, at []float64) float64 {
	sum := 0.0
	for _, i := range of {
		sum += at[i]
	}
	return sum / float64(len(of))
}

// rows gives each layer its height.
func rows(items []item, layers [][]int, gap gaps) float64 {
	y := 0.0
	for n, l := range layers {
		tall := 0.0
		for _, i := range l {
			tall = max(tall, items[i].h)
		}
		if n > 0 {
			y += gap.y
		}
		for _, i := range l {
			items[i].y = y + (tall-items[i].h)/2
			items[i].row = span{y, y + tall}
		}
		y += tall
	}
	return y
}

// columns moves boxes towards the middle of their neighbours, in the order of their layers.
func columns(items []item, layers [][]int, from, to [][]int, gap gaps) float64 {
	const sweeps = 10
	center := make([]float64, len(items))
	for _, l := range layers {
		x := 0.0
		for _, i := range l {
			center[i] = x + items[i].w/2
			x += items[i].w + gap.x
		}
		for _, i := range l {
			center[i] -= (x - gap.x) / 2
		}
	}
	alternate(sweeps, layers, from, to, func(l []int, near [][]int) { settle(items, l, near, center, gap.x) })
	left, right := math.Inf(1), math.Inf(-1)
	for i := range items {
		left, right = min(left, center[i]-items[i].w/2), max(right, center[i]+items[i].w/2)
	}
	for i := range items {
		items[i].x = center[i] - items[i].w/2 - left
	}
	return right - left
}

// settle places a layer: runs of boxes that would overlap share the mean of what they want.
func settle(items []item, layer []int, near [][]int, center []float64, gap float64) {
	type run struct {
		first, n int
		sum      float64 // of what the boxes want, less their places in the run
		width    float64 // up to the centre of the next box
	}
	var runs []run
	place := func(r run) float64 { return r.sum / float64(r.n) }
	for p, i := range layer {
		want := center[i]
		if len(near[i]) > 0 {
			want = mean(near[i], center)
		}
		runs = append(runs, run{p, 1, want, 0})
		for len(runs) > 1 {
			a, b := runs[len(runs)-2], runs[len(runs)-1]
			last := layer[b.first-1]
			step := (items[last].w+items[layer[b.first]].w)/2 + gap
			if place(a)+a.width+step <= place(b) {
				break
			}
			offset := a.width + step
			runs = append(runs[:len(runs)-2], run{a.first, a.n + b.n, a.sum + b.sum - offset*float64(b.n), offset + b.width})
		}
	}
	for _, r := range runs {
		x := place(r)
		for p := r.first; p < r.first+r.n; p++ {
			if p > r.first {
				x += (items[layer[p-1]].w+items[layer[p]].w)/2 + gap
			}
			center[layer[p]] = x
		}
	}
}
