package fuse

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/forecast"
	"github.com/fusec/fusec/ir"
)

// A concatenation of many parts, such as all states of a recurrence, is kept apart from what reads it until it is known whether
// the kernels that compute its parts store them. Otherwise a kernel of both would pick every element among all parts.

// longConcat is the parts from which on a concatenation is kept apart. A pick among fewer is cheap beside memory.
const longConcat = 17

// withholdConcats keeps the long concatenations out of merges, and returns them.
func (f *fuser) withholdConcats() (held []*ir.Value) {
	if f.g.OneKernel {
		return nil
	}
	for _, v := range slices.Clone(f.g.Values) {
		cuts := f.longCuts(v)
		if cuts == nil {
			continue
		}
		if cuts.alternates() {
			cuts = f.turned(cuts)
		}
		f.home[cuts.v].concat = true
		held = append(held, cuts.v)
	}
	return held
}

// releaseConcats merges the withheld concatenations that stay kernels.
func (f *fuser) releaseConcats(held []*ir.Value) {
	q := &queue{}
	for _, v := range held {
		if r := f.home[v]; !f.stored[v] {
			r.concat = false
			f.pushNeighbours(q, r, false)
		}
	}
	f.mergeFrom(q)
}

// longCuts is where a long concatenation of values that kernels compute is cut; nil for all other values.
func (pt *partition) longCuts(v *ir.Value) *axisCuts {
	if !pt.joins(v) || !pt.readsRegions(v.Body, isAny) {
		return nil
	}
	for axis := range v.Axes {
		if cuts := pt.cutAxis(v, axis); cuts != nil && len(cuts.ends) > longConcat {
			return cuts
		}
	}
	return nil
}

// alternates reports whether the parts lie between each other in memory, so that a thread of a part could store no sector, and kernels
// compute all of them.
func (c *axisCuts) alternates() bool {
	each := algebra.PointsAt(c.v.Axes[c.axis:], c.sizes) / float64(len(c.ends)-1)
	return each*float64(c.v.Type.Size()) < forecast.SectorBytes && !slices.ContainsFunc(c.v.Loads(), func(l *ir.Expr) bool { return l.From.IsInput() })
}

// turned makes a concatenation along the first axis of one along another, which then reads that. Threads could only store
// single elements of parts that lie between each other; from parts one after another, a tile of the whole is turned in shared memory.
func (pt *partition) turned(c *axisCuts) *axisCuts {
	v := c.v
	order := append([]int{c.axis}, slices.DeleteFunc(indicesOf(v.Axes), func(d int) bool { return d == c.axis })...)
	shape, old := v.Shape(), ir.Indices(v.Axes)
	var own []*ir.Expr
	for _, d := range order {
		own = append(own, shape[d])
	}
	axes, at, with := pt.g.NewAxes(own), []*ir.Expr(nil), map[*ir.Range]*ir.Expr{}
	for i, d := range order {
		with[v.Axes[d]] = axes[i].At()
		at = append(at, old[d])
	}
	w := pt.g.Adopt(&ir.Value{Name: v.Name + "_turned", Type: v.Type, Axes: axes, Body: ir.Substitute(v.Body, with), Origin: v.Origin})
	pt.setBody(w, w.Body)
	pt.setBody(v, ir.Load(w, at, nil).At(v.Origin.Span))
	pt.g.Values = slices.Insert(pt.g.Values, slices.Index(pt.g.Values, v), w)
	pt.home[w] = newRegion(w)
	pt.relink()
	pt.take(newRegion(w))
	pt.take(newRegion(v))
	return &axisCuts{c.program, w, 0, c.ends}
}

func indicesOf(axes []*ir.Range) []int {
	out := make([]int, len(axes))
	for d := range out {
		out[d] = d
	}
	return out
}
