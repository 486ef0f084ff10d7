package fuse

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/forecast"
	"github.com/fusec/fusec/ir"
)

// A concatenation needs no kernel of its own if other kernels compute its parts: each of them stores its part at its
// place in the memory of the whole. A part is a value with the elements of the concatenation between two indices
// along one axis. Elements that no kernel computes anyway, such as those of an input, are also a part, and that part
// gets a kernel.

// mostConcatParts is the most parts of a concatenation: each is simplified, merged, and is a tensor of the kernels that read the
// whole by its parts while it is not decided who stores them.
const mostConcatParts = mostArgs / 2

// concat is a concatenation and its parts.
type concat struct {
	whole    *ir.Value
	parts    []*ir.Value
	places   []concatPart // of the parts
	computed []bool       // for each part, whether it reads what another kernel computes in loops of its own
	beside   []bool       // whether the kernel of the part before it computes it too
	apart    float64      // seconds that are saved where such kernels do not choose among parts at each element
	body     *ir.Expr     // of the whole, before it reads the parts
}

// mergeConcats gives the parts of concatenations to the kernels that compute them, if that saves at least half a
// launch. Less than that is within the error of the estimates, for instance where one token is appended to a long
// cache.
func (f *fuser) mergeConcats() {
	if f.g.OneKernel {
		return
	}
	var found []*concat
	for _, v := range f.g.Values {
		if c := f.concatOf(v); c != nil {
			found = append(found, c)
		}
	}
	if len(found) == 0 {
		return
	}
	f.insertParts(found)
	gains := slices.DeleteFunc(slices.Clone(found), func(c *concat) bool { return f.gainOfParts(c) <= f.device.Launch/2 })
	f.withdrawParts(slices.DeleteFunc(found, func(c *concat) bool { return slices.Contains(gains, c) }))
	for _, c := range gains {
		f.home[c.whole].concat, f.stored[c.whole] = true, true
	}
	for _, c := range gains {
		f.mergeParts(c)
	}
}

// mergeParts merges the parts into the regions that compute them.
func (f *fuser) mergeParts(c *concat) {
	f.refused.forget(c.whole)
	q := &queue{}
	for _, p := range c.parts {
		f.pushNeighbours(q, f.home[p], false)
	}
	f.mergeFrom(q)
}

// concatOf makes the parts of v; nil if v is not a concatenation of values that other kernels
// compute.
func (pt *partition) concatOf(v *ir.Value) *concat {
	if !pt.joins(v) {
		return nil
	}
	for axis := range v.Axes {
		if cuts := pt.cutAxis(v, axis); cuts != nil {
			if c := pt.concatBetween(cuts); len(c.parts) > 1 && (slices.Contains(c.computed, true) || c.apart > 0) {
				return c
			}
		}
	}
	return nil
}

// joins reports whether v may be a concatenation: it is computed point by point, alone in its region.
func (pt *partition) joins(v *ir.Value) bool {
	return !v.IsInput() && v.Reduce == nil && pt.updates[v] == nil && !pt.checks[v] && len(pt.home[v].members) == 1
}

// concatBetween makes the parts of a value between cuts. Parts next to each other that nothing else computes are one, unless choosing
// among them at each element takes longer than computing each.
func (pt *partition) concatBetween(cuts *axisCuts) *concat {
	c := &concat{whole: cuts.v, body: cuts.v.Body}
	pieces := make([]*ir.Value, len(cuts.ends)-1)
	computed := make([]bool, len(pieces))
	for i := range pieces {
		pieces[i] = cuts.part(i, i+1)
		computed[i] = pt.readsRegions(pieces[i].Body, hasLoops) || cuts.storesRuns(pieces[i]) && pt.readsRegions(pieces[i].Body, isAny)
	}
	for i := 0; i < len(pieces); {
		next := i + 1
		for !computed[i] && next < len(pieces) && !computed[next] {
			next++
		}
		together := []*ir.Value{pieces[i]}
		if next > i+1 {
			together[0] = cuts.part(i, next)
			if saved := pt.savedApart(together[0], pieces[i:next], cuts.axis); saved > 0 {
				c.apart, together = c.apart+saved, pieces[i:next]
			}
		}
		for j, part := range together {
			c.parts, c.computed, c.beside = append(c.parts, part), append(c.computed, computed[i]), append(c.beside, j > 0)
			c.places = append(c.places, concatPart{cuts.v, cuts.axis, cuts.ends[i+j]})
		}
		i = next
	}
	return c
}

// readsRegions reports whether an expression reads what such a region computes.
func (pt *partition) readsRegions(e *ir.Expr, such func(*region) bool) bool {
	return ir.Contains(e, func(e *ir.Expr) bool {
		return e.Op == ir.OpLoad && pt.home[e.From] != nil && such(pt.home[e.From])
	})
}

func isAny(*region) bool { return true }

// hasLoops reports whether a region has loops of its own, not only a point for each element.
func hasLoops(r *region) bool { return len(r.cols) > 0 || r.stream != nil || sortIn(r) != nil }

// storesRuns reports whether threads with a point of a part each store whole sectors, because neighbouring points lie beside each other in
// memory; or not much more than these, because few elements of other parts lie between: that takes less time than writing parts by
// themselves, to read them again.
func (c *axisCuts) storesRuns(part *ir.Value) bool {
	const mostRecord = forecast.SectorBytes / 2
	run := func(v *ir.Value) float64 { return algebra.PointsAt(v.Axes[c.axis:], c.sizes) * float64(v.Type.Size()) }
	return run(part) >= forecast.SectorBytes || run(c.v) <= mostRecord
}

// insertParts puts the parts into the graph, where the concatenations read them.
func (pt *partition) insertParts(found []*concat) {
	before := map[*ir.Value][]*ir.Value{}
	for _, c := range found {
		before[c.whole] = c.parts
		for i, p := range c.parts {
			pt.g.Adopt(p)
			pt.setBody(p, p.Body)
			pt.parts[p] = c.places[i]
		}
		pt.setBody(c.whole, c.readingParts())
	}
	var values []*ir.Value
	for _, v := range pt.g.Values {
		values = append(append(values, before[v]...), v)
	}
	pt.g.Values = values
	for _, c := range found {
		for _, p := range c.parts {
			pt.home[p] = newRegion(p)
		}
	}
	pt.relink()
	for _, c := range found {
		for _, v := range append(slices.Clone(c.parts), c.whole) {
			pt.take(newRegion(v))
		}
	}
}

// readingParts is the body of the concatenation that reads the parts.
func (c *concat) readingParts() *ir.Expr {
	var body *ir.Expr
	for i, place := range slices.Backward(c.places) {
		at := ir.Indices(c.whole.Axes)
		index := at[place.axis]
		at[place.axis] = ir.Apply(ir.OpSub, index, place.from)
		load := ir.Load(c.parts[i], at, nil)
		if body == nil {
			body = load
			continue
		}
		body = ir.Where(ir.Apply(ir.OpLt, index, c.places[i+1].from), load, body)
	}
	return body
}

// setBody replaces the body of a value, and what is known of it.
func (fl *flow) setBody(v *ir.Value, body *ir.Expr) {
	v.Body = body
	fl.loads[v] = v.Loads()
	delete(fl.work, v)
}

// gainOfParts estimates the seconds saved by computing the parts in other kernels: the bytes that need not be
// written and read, and the launch of the concatenation, less a launch for each part that gets a kernel.
func (pt *partition) gainOfParts(c *concat) float64 {
	gain := pt.device.Launch + c.apart
	for i, p := range c.parts {
		if c.beside[i] {
			continue
		}
		best := 0.0
		for _, from := range pt.sources[p] {
			r := pt.home[from]
			if r == nil || !c.computed[i] {
				continue
			}
			if saved := pt.saving(r, pt.home[p]); saved > best {
				if _, no := pt.mergeable(r, pt.home[p]); no == nil {
					best = saved
				}
			}
		}
		gain += best - pt.device.Launch
	}
	return gain
}

// withdrawParts gives concatenations their bodies back, and takes their parts out of the graph.
func (pt *partition) withdrawParts(of []*concat) {
	gone := map[*ir.Value]bool{}
	for _, c := range of {
		for _, p := range c.parts {
			gone[p] = true
			delete(pt.home, p)
			delete(pt.parts, p)
			delete(pt.loads, p)
		}
		pt.setBody(c.whole, c.body)
	}
	pt.g.Values = slices.DeleteFunc(pt.g.Values, func(v *ir.Value) bool { return gone[v] })
	pt.relink()
	for _, c := range of {
		pt.take(newRegion(c.whole))
	}
}
