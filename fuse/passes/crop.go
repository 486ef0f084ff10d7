package passes

import (
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// A value may be read in part: the last token of a product, one half of a concatenation. What no reader takes need not be
// computed, whatever the value is, because its elements do not depend on each other.

// cropLeast is how many times longer an axis has to be than what is read of it. To leave out less saves little, and rows of
// another length may be no whole number of accesses.
const cropLeast = 2

// cropValues computes of each axis of a value what is read of it: a single point, or a part that is half as long at most.
func cropValues(g *ir.Graph) {
	c := &cropper{g: g, facts: g.Facts(), readers: map[*ir.Value][]*ir.Value{}, kept: map[*ir.Value]bool{}}
	for _, o := range g.Outputs {
		c.kept[o.Value] = true
	}
	for _, v := range g.Values {
		seen := map[*ir.Value]bool{}
		for _, l := range v.Loads() {
			if !seen[l.From] {
				seen[l.From] = true
				c.readers[l.From] = append(c.readers[l.From], v)
			}
		}
	}
	changed := false
	for i := len(g.Values) - 1; i >= 0; i-- { // readers first, which then read less
		v := g.Values[i]
		if v.IsInput() || c.kept[v] || v.Parts || v.Reduce != nil && (v.Reduce.Rank != nil || form.ScanOf(v) != nil) {
			continue
		}
		for d := len(v.Axes) - 1; d >= 0; d-- {
			changed = c.crop(v, d) || changed
		}
	}
	if changed {
		simplify(g)
		DropDead(g)
	}
}

// cropper is the readers of a graph's values, and the values that are kept as they are.
type cropper struct {
	g       *ir.Graph
	facts   ir.Facts
	readers map[*ir.Value][]*ir.Value
	kept    map[*ir.Value]bool
}

// crop makes an axis of a value as long as what is read of it; false where that is all, or nearly all.
func (c *cropper) crop(v *ir.Value, d int) bool {
	first, width := c.part(v, d)
	if first == nil {
		return false
	}
	axis, at := v.Axes[d], first
	var own []*ir.Range // the axis that is left
	if !width.IsConst(1) {
		r := c.g.NewRange(axis.Name, width)
		own, at = []*ir.Range{r}, ir.Apply(ir.OpAdd, first, r.At())
	}
	v.Axes = append(append(append([]*ir.Range{}, v.Axes[:d]...), own...), v.Axes[d+1:]...)
	v.MapExprs(func(e *ir.Expr) *ir.Expr { return ir.Substitute(e, map[*ir.Range]*ir.Expr{axis: at}) })
	for _, u := range c.readers[v] {
		u.MapExprs(func(e *ir.Expr) *ir.Expr {
			return ir.Rewrite(e, func(e *ir.Expr) *ir.Expr {
				if e.Op != ir.OpLoad || e.From != v {
					return e
				}
				args := append([]*ir.Expr{}, e.Args[:d]...)
				if own != nil {
					args = append(args, ir.Simplify(ir.Apply(ir.OpSub, e.Args[d], first), c.facts))
				}
				return ir.Load(v, append(args, e.Args[d+1:]...), e.Fill).At(e.Span)
			})
		})
	}
	return true
}

// part is where what is read of an axis begins, and how long it is; nil where that is not known, or too much of the axis.
func (c *cropper) part(v *ir.Value, d int) (first, width *ir.Expr) {
	var last *ir.Expr
	for _, u := range c.readers[v] {
		for _, l := range u.Loads() {
			if l.From != v {
				continue
			}
			if l.Fill != nil || len(ir.Loads(l.Args[d])) > 0 {
				return nil, nil
			}
			low, high := ir.Bounds(l.Args[d], c.facts)
			switch {
			case low == nil || high == nil:
				return nil, nil
			case first == nil:
				first, last = low, high
			case !ir.SameSize(first, low) || !ir.SameSize(last, high):
				if low.Op != ir.OpConst || high.Op != ir.OpConst || first.Op != ir.OpConst || last.Op != ir.OpConst {
					return nil, nil
				}
				first, last = ir.IntConst(min(first.Int, low.Int)), ir.IntConst(max(last.Int, high.Int))
			}
		}
	}
	if first == nil {
		return nil, nil
	}
	extent := v.Axes[d].Extent
	width = ir.Simplify(ir.Apply(ir.OpAdd, ir.Apply(ir.OpSub, last, first), ir.IntConst(1)), c.facts)
	if width.IsConst(1) && !extent.IsConst(1) {
		return first, width
	}
	least := ir.Apply(ir.OpMul, width, ir.IntConst(cropLeast))
	if !ir.ProveLess(least, ir.Apply(ir.OpAdd, extent, ir.IntConst(1)), c.facts) || !ir.ProveLess(ir.IntConst(0), width, c.facts) {
		return nil, nil
	}
	return first, width
}
