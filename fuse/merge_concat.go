package fuse

import (
	"slices"

	"github.com/fusec/fusec/ir"
)

// A concatenation needs no kernel of its own if other kernels compute its parts: each of them stores its part at its
// place in the memory of the whole. A part is a value with the elements of the concatenation between two indices
// along one axis. Elements that no kernel computes anyway, such as those of an input, are also a part, and that part
// gets a kernel.

// mostConcatParts is the most parts of a concatenation: each is simplified, merged, and may be a launch.
const mostConcatParts = 16

// concat is a concatenation and its parts.
type concat struct {
	whole    *ir.Value
	parts    []*ir.Value
	places   []concatPart // of the parts
	computed []bool       // for each part, whether it reads what another kernel computes in loops of its own
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
		f.home[c.whole].concat = true
	}
	for _, c := range gains {
		f.mergeParts(c)
	}
}

// concatOf makes the parts of v; nil if v is not a concatenation of values that other kernels
// compute.
func (f *fuser) concatOf(v *ir.Value) *concat {
	if v.IsInput() || v.Reduce != nil || f.updates[v] != nil || f.checks[v] || len(f.home[v].members) > 1 || !f.readsLoops(v.Body) {
		return nil
	}
	for axis := range v.Axes {
		if ends := f.concatEnds(v, axis); len(ends) > 2 {
			if c := f.cutConcat(v, axis, ends); len(c.parts) > 1 && slices.Contains(c.computed, true) {
				return c
			}
		}
	}
	return nil
}

// cutConcat cuts a value into parts between the given ends. Parts next to each other that nothing else computes
// are one.
func (f *fuser) cutConcat(v *ir.Value, axis int, ends []*ir.Expr) *concat {
	c := &concat{whole: v, body: v.Body}
	pieces := make([]*ir.Value, len(ends)-1)
	computed := make([]bool, len(pieces))
	for i := range pieces {
		pieces[i] = f.partOf(v, axis, ends[i], ends[i+1])
		computed[i] = f.readsLoops(pieces[i].Body)
	}
	for i := 0; i < len(pieces); {
		part, next := pieces[i], i+1
		for !computed[i] && next < len(pieces) && !computed[next] {
			next++
		}
		if next > i+1 {
			part = f.partOf(v, axis, ends[i], ends[next])
		}
		c.parts, c.computed = append(c.parts, part), append(c.computed, computed[i])
		c.places = append(c.places, concatPart{v, axis, ends[i]})
		i = next
	}
	return c
}

// readsLoops reports whether an expression reads what a kernel with loops of its own computes.
func (f *fuser) readsLoops(e *ir.Expr) bool {
	found := false
	ir.Walk(e, func(e *ir.Expr) bool {
		if e.Op == ir.OpLoad {
			r := f.home[e.From]
			found = found || r != nil && (len(r.cols) > 0 || r.stream != nil || sortIn(r) != nil)
		}
		return !found
	})
	return found
}

// concatEnds lists the indices along an axis at which conditions of a value change, from 0 to the axis's extent; nil
// where there are too many, or their order is not known.
func (f *fuser) concatEnds(v *ir.Value, axis int) []*ir.Expr {
	r := v.Axes[axis]
	ends := []*ir.Expr{ir.IntConst(0), r.Extent}
	known := true
	ir.Walk(v.Body, func(e *ir.Expr) bool {
		for _, cut := range cutsOf(e, r) {
			known = known && f.insertEnd(&ends, ir.Simplify(cut, f.facts))
		}
		return known
	})
	if !known || len(ends) > mostConcatParts+1 {
		return nil
	}
	return ends
}

// cutsOf lists the indices at which a condition on a range alone changes.
func cutsOf(e *ir.Expr, r *ir.Range) []*ir.Expr {
	if e.Op < ir.OpLt || e.Op > ir.OpNe {
		return nil
	}
	op, a, b := e.Op, position(e.Args[0]), position(e.Args[1])
	if b.Op == ir.OpRange {
		a, b = b, a
		op = map[ir.Op]ir.Op{ir.OpLt: ir.OpGt, ir.OpLe: ir.OpGe, ir.OpGt: ir.OpLt, ir.OpGe: ir.OpLe, ir.OpEq: ir.OpEq, ir.OpNe: ir.OpNe}[op]
	}
	if a.Op != ir.OpRange || a.Range != r || b.Type != ir.Index || len(ir.FreeRanges(b)) > 0 {
		return nil
	}
	next := ir.Apply(ir.OpAdd, b, ir.IntConst(1))
	switch op {
	case ir.OpLt, ir.OpGe:
		return []*ir.Expr{b}
	case ir.OpLe, ir.OpGt:
		return []*ir.Expr{next}
	}
	return []*ir.Expr{b, next}
}

// position is an index that is compared, without a cast to a tensor's type.
func position(e *ir.Expr) *ir.Expr {
	if e.Op == ir.OpCast && e.Args[0].Type == ir.Index {
		return e.Args[0]
	}
	return e
}

// insertEnd inserts an index into a list in order; false where its place is not known.
func (f *fuser) insertEnd(ends *[]*ir.Expr, at *ir.Expr) bool {
	for i, end := range *ends {
		switch {
		case ir.SameSize(at, end) || i == 0 && f.atMost(at, end):
			return true
		case f.atMost(at, end):
			*ends = slices.Insert(*ends, i, at)
			return true
		case !f.atMost(end, at):
			return false
		}
	}
	return true // past the end of the axis
}

func (f *fuser) atMost(a, b *ir.Expr) bool {
	return ir.Decide(ir.Apply(ir.OpLe, a, b), f.facts) == ir.True
}

// partOf makes the value with the elements of v between two indices along an axis.
func (f *fuser) partOf(v *ir.Value, axis int, from, to *ir.Expr) *ir.Value {
	shape := v.Shape()
	shape[axis] = ir.Simplify(ir.Apply(ir.OpSub, to, from), f.facts)
	axes := f.g.NewAxes(shape)
	old := v.Axes[axis].At()
	inside := ir.Apply(ir.OpAnd, ir.Apply(ir.OpLe, from, old), ir.Apply(ir.OpLt, old, to))
	body, with := ir.SimplifyGiven(v.Body, inside, f.facts), map[*ir.Range]*ir.Expr{}
	for d, r := range v.Axes {
		with[r] = axes[d].At()
	}
	with[v.Axes[axis]] = ir.Apply(ir.OpAdd, axes[axis].At(), from)
	facts := f.facts
	facts.Within = axes
	body = ir.Simplify(ir.Substitute(body, with), facts)
	return &ir.Value{Name: v.Name + "_part", Type: v.Type, Axes: axes, Body: body, Origin: v.Origin}
}

// insertParts puts the parts into the graph, where the concatenations read them.
func (f *fuser) insertParts(found []*concat) {
	before := map[*ir.Value][]*ir.Value{}
	for _, c := range found {
		before[c.whole] = c.parts
		for i, p := range c.parts {
			f.g.Adopt(p)
			f.setBody(p, p.Body)
			f.parts[p] = c.places[i]
		}
		f.setBody(c.whole, c.readingParts())
	}
	var values []*ir.Value
	for _, v := range f.g.Values {
		values = append(append(values, before[v]...), v)
	}
	f.g.Values = values
	for _, c := range found {
		for _, p := range c.parts {
			f.home[p] = newRegion(p)
		}
	}
	f.relink()
	for _, c := range found {
		for _, v := range append(slices.Clone(c.parts), c.whole) {
			f.take(newRegion(v))
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

func (f *fuser) setBody(v *ir.Value, body *ir.Expr) {
	v.Body = body
	f.loads[v] = v.Loads()
	delete(f.work, v)
}

// gainOfParts estimates the seconds saved by computing the parts in other kernels: the bytes that need not be
// written and read, and the launch of the concatenation, less a launch for each part that gets a kernel.
func (f *fuser) gainOfParts(c *concat) float64 {
	gain := f.device.Launch
	for i, p := range c.parts {
		best := 0.0
		for _, from := range f.sources[p] {
			r := f.home[from]
			if r == nil || !c.computed[i] {
				continue
			}
			if saved := f.saving(r, f.home[p]); saved > best {
				if _, no := f.mergeable(r, f.home[p]); no == nil {
					best = saved
				}
			}
		}
		gain += best - f.device.Launch
	}
	return gain
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

// withdrawParts gives concatenations their bodies back, and takes their parts out of the graph.
func (f *fuser) withdrawParts(of []*concat) {
	gone := map[*ir.Value]bool{}
	for _, c := range of {
		for _, p := range c.parts {
			gone[p] = true
			delete(f.home, p)
			delete(f.parts, p)
			delete(f.loads, p)
		}
		f.setBody(c.whole, c.body)
	}
	f.g.Values = slices.DeleteFunc(f.g.Values, func(v *ir.Value) bool { return gone[v] })
	f.relink()
	for _, c := range of {
		f.take(newRegion(c.whole))
	}
}
