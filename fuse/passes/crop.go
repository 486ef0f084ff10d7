package passes

import (
	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/forecast"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// A value may be read in part: the last token of a product, one half of a concatenation. What no reader takes need not be
// computed, whatever the value is, because its elements do not depend on each other.

// cropLeast is how many times longer an axis has to be than what is read of it. To leave out less saves little, and rows of
// another length may be no whole number of accesses.
const cropLeast = 2

// cropValues computes of each axis of a value what is read of it: a single point, or a part that is half as long at most. A value stays
// whole where a kernel that computes it beside others that stay whole takes less time (crop_share.go).
func cropValues(g *ir.Graph) {
	c := &cropper{g: g, facts: g.Facts(), sizes: algebra.DefaultSizes(g), readers: readersOf(g), loads: map[*ir.Value][]*ir.Expr{},
		whole: map[*ir.Value]bool{}, results: resultsOf(g)}
	for _, v := range g.Values {
		c.loads[v] = v.Loads()
		c.whole[v] = v.IsInput() || c.results[v] || v.Parts || v.Reduce != nil && (v.Reduce.Rank != nil || form.ScanOf(v) != nil || form.ScatterIn(v) != nil)
	}
	for c.findParts(); c.keepShared(); c.findParts() {
	}
	if len(c.at) > 0 {
		c.crop()
		simplify(g)
		DropDead(g)
	}
}

// cropper is the parts of a graph's values that are read.
type cropper struct {
	g       *ir.Graph
	facts   ir.Facts
	readers map[*ir.Value][]*ir.Value
	loads   map[*ir.Value][]*ir.Expr
	results map[*ir.Value]bool
	whole   map[*ir.Value]bool // computed as they are
	sizes   map[string]int64

	parts  map[*ir.Value][]*cropped             // by axis, nil for all of it
	at     map[*ir.Value]map[*ir.Range]*ir.Expr // where the points of a part lie on the axes of the whole
	single map[*ir.Range]*ir.Expr               // the only points of axes that have one, or none
}

// cropped is what is read of an axis.
type cropped struct {
	low, high    *ir.Expr  // the first and the last point that are read
	first, width *ir.Expr  // the part that is computed, in whole accesses
	own          *ir.Range // the axis that is left; nil where the part is a point
}

// findParts finds what is read of each value that is not kept whole. Readers come first: those that are cropped read less.
func (c *cropper) findParts() {
	c.parts, c.at, c.single = map[*ir.Value][]*cropped{}, map[*ir.Value]map[*ir.Range]*ir.Expr{}, map[*ir.Range]*ir.Expr{}
	for i := len(c.g.Values) - 1; i >= 0; i-- {
		v := c.g.Values[i]
		if c.whole[v] {
			continue
		}
		parts, at := make([]*cropped, len(v.Axes)), map[*ir.Range]*ir.Expr{}
		for d := range v.Axes {
			parts[d] = c.part(v, d)
		}
		c.keepProduct(v, parts)
		for d, p := range parts {
			if p != nil {
				at[v.Axes[d]] = c.placeOf(p)
			}
		}
		if len(at) > 0 {
			c.parts[v], c.at[v] = parts, at
		}
	}
}

// placeOf is where the points of a part lie on the axis of the whole.
func (c *cropper) placeOf(p *cropped) *ir.Expr {
	if p.own == nil {
		return p.first
	}
	if ir.SameSize(p.first, p.high) {
		c.single[p.own] = ir.IntConst(0)
	}
	return ir.Apply(ir.OpAdd, p.first, p.own.At())
}

// part is what is read of an axis; nil where that is not known, or too much of the axis.
func (c *cropper) part(v *ir.Value, d int) *cropped {
	low, high, outside := c.read(v, d)
	extent := v.Axes[d].Extent
	if low == nil || extent.IsConst(1) {
		return nil
	}
	first, width := low, ir.IntConst(1)
	switch inside := ir.Inside([]*ir.Expr{extent, extent}, []*ir.Expr{low, high}, c.facts) == nil; {
	case ir.SameSize(low, high) && inside && !outside:
		return &cropped{low, high, first, width, nil}
	case ir.SameSize(low, high) && inside: // the axis says what is outside
	case ir.SameSize(low, high):
		if width = c.pointOrNone(low, extent); width == nil {
			return nil
		}
	case !inside:
		return nil
	default:
		if first, width = c.wholeAccesses(v, d, low, high); !c.isLess(width, extent) {
			return nil
		}
	}
	return &cropped{low, high, first, width, c.g.NewRange(v.Axes[d].Name, width)}
}

// pointOrNone is how many points of an axis are at one index, which sizes may put outside beside the axis: one or none; nil where it may lie
// farther outside.
func (c *cropper) pointOrNone(at, extent *ir.Expr) *ir.Expr {
	before, behind := ir.Apply(ir.OpAdd, at, ir.IntConst(1)), ir.Apply(ir.OpSub, extent, at)
	if !ir.ProveNonNegative(before, c.facts) || !ir.ProveNonNegative(behind, c.facts) {
		return nil
	}
	return ir.Simplify(ir.Apply(ir.OpMin, ir.IntConst(1), ir.Apply(ir.OpMin, before, behind)), c.facts)
}

// isLess reports whether a part of an axis has points, and is so much shorter that to crop it pays.
func (c *cropper) isLess(width, extent *ir.Expr) bool {
	return ir.ProveLess(ir.IntConst(0), width, c.facts) && c.atMost(ir.Apply(ir.OpMul, width, ir.IntConst(cropLeast)), extent)
}

// read is the first and the last point of an axis that readers take, and whether they read outside of the axis too; nil where the points are not
// known, or a reader takes all.
func (c *cropper) read(v *ir.Value, d int) (first, last *ir.Expr, outside bool) {
	extent := v.Axes[d].Extent
	for _, u := range c.readers[v] {
		for _, l := range c.loads[u] {
			if l.From != v {
				continue
			}
			at := l.Args[d]
			if at.Op == ir.OpRange && c.at[u][at.Range] == nil && ir.Equal(at.Range.Extent, extent) || len(ir.Loads(at)) > 0 {
				return nil, nil, false
			}
			low, high := c.bounds(u, at)
			low, high, clipped := clip(low, high, extent)
			if outside = outside || clipped; first == nil {
				first, last = low, high
			} else {
				first, last = joinBounds(first, last, low, high)
			}
			if first == nil || last == nil {
				return nil, nil, false
			}
		}
	}
	return first, last, outside
}

// clip is the bounds of those of the indices within bounds that are inside an axis, if all are numbers, and whether there are others.
func clip(low, high, extent *ir.Expr) (least, greatest *ir.Expr, clipped bool) {
	if low == nil || low.Op != ir.OpConst || high.Op != ir.OpConst || extent.Op != ir.OpConst {
		return low, high, false
	}
	return ir.IntConst(max(0, low.Int)), ir.IntConst(min(high.Int, extent.Int-1)), low.Int < 0 || high.Int >= extent.Int
}

// bounds is the least and the greatest value of an index of a reader, which may itself be cropped; nil where they are not known.
func (c *cropper) bounds(reader *ir.Value, index *ir.Expr) (low, high *ir.Expr) {
	low, high = ir.Bounds(ir.Substitute(ir.Substitute(index, c.at[reader]), c.single), c.facts)
	if low == nil || high == nil {
		return nil, nil
	}
	return low, high
}

// joinBounds are the bounds of what lies within either of two; nil where sizes decide which these are.
func joinBounds(first, last, low, high *ir.Expr) (least, greatest *ir.Expr) {
	if low == nil || ir.SameSize(first, low) && ir.SameSize(last, high) {
		return low, high
	}
	for _, e := range []*ir.Expr{first, last, low, high} {
		if e.Op != ir.OpConst {
			return nil, nil
		}
	}
	return ir.IntConst(min(first.Int, low.Int)), ir.IntConst(max(last.Int, high.Int))
}

// wholeAccesses widens a part of an axis to whole accesses of the tensors whose rows run along it: the value itself, and what it reads. A
// result of each row, which it reads at all elements of the row, does not count.
func (c *cropper) wholeAccesses(v *ir.Value, d int, low, high *ir.Expr) (first, width *ir.Expr) {
	extent := v.Axes[d].Extent
	if low.Op != ir.OpConst || high.Op != ir.OpConst || extent.Op != ir.OpConst {
		return low, ir.Simplify(ir.Apply(ir.OpAdd, ir.Apply(ir.OpSub, high, low), ir.IntConst(1)), c.facts)
	}
	least := forecast.AccessBytes              // bytes of an element
	if d == len(v.Axes)-1 && v.Reduce == nil { // results of reductions are few, and have to have the rows of what reads them
		least = v.Type.Size()
	}
	inner := v.Axes[len(v.Axes)-1]
	for _, l := range c.loads[v] {
		if n := len(l.Args); n > 0 && ir.DependsOn(l.Args[n-1], v.Axes[d]) && (inner == v.Axes[d] || ir.DependsOn(l, inner)) {
			least = min(least, l.Type.Size())
		}
	}
	return multipleOf(forecast.AccessBytes/max(1, least), low, high, extent)
}

// multipleOf widens a part of an axis until it begins and ends at multiples of some points, or with the axis.
func multipleOf(points int, low, high, extent *ir.Expr) (first, width *ir.Expr) {
	each := int64(points)
	from := low.Int / each * each
	return ir.IntConst(from), ir.IntConst(min((high.Int/each+1)*each, extent.Int) - from)
}

// crop makes the axes of values as long as the parts of them that are read.
func (c *cropper) crop() {
	for _, v := range c.g.Values {
		at := c.at[v]
		if at != nil {
			v.Axes = c.left(v)
		}
		v.MapExprs(func(e *ir.Expr) *ir.Expr {
			return ir.Rewrite(ir.Substitute(e, at), func(e *ir.Expr) *ir.Expr {
				if e.Op != ir.OpLoad || c.parts[e.From] == nil {
					return e
				}
				return c.readPart(e)
			})
		})
	}
}

// left is the axes that a cropped value has.
func (c *cropper) left(v *ir.Value) (axes []*ir.Range) {
	for d, p := range c.parts[v] {
		switch {
		case p == nil:
			axes = append(axes, v.Axes[d])
		case p.own != nil:
			axes = append(axes, p.own)
		}
	}
	return axes
}

// readPart is the load of a value that is cropped.
func (c *cropper) readPart(load *ir.Expr) *ir.Expr {
	var args []*ir.Expr
	for d, p := range c.parts[load.From] {
		switch {
		case p == nil:
			args = append(args, load.Args[d])
		case p.own != nil:
			args = append(args, ir.Simplify(ir.Apply(ir.OpSub, load.Args[d], p.first), c.facts))
		}
	}
	return ir.Load(load.From, args, load.Fill).At(load.Span)
}
