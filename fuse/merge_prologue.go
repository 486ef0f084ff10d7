package fuse

import (
	"maps"
	"math"
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/forecast"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/diag"
)

// mergePrologues makes a row program the prologue of a product: folds over an axis and what follows from
// them, such as a softmax or a norm, go into the kernel of a product that sums over the same axis, where
// nothing else reads their values. Each block folds the rows of its tile before it multiplies. Every tile
// of columns folds the rows again, so this is for products with little work: it saves a launch, and
// writing and reading the rows.
func (f *fuser) mergePrologues() {
	for _, v := range f.g.Values {
		b := f.home[v]
		if b == nil || b.product != nil || f.product(b) != v || !f.rowProduct(b, v) {
			continue
		}
		for _, a := range f.rowPrograms(b) {
			m, no := f.prologue(a, b, v)
			if no != nil {
				f.refused.merge(f.program, a, b, no)
				continue
			}
			if f.take(m) {
				break
			}
		}
	}
}

// rowPrograms lists the regions that fold rows and that a region reads.
func (f *fuser) rowPrograms(b *region) []*region {
	var out []*region
	for _, u := range b.members {
		for _, from := range f.sources[u] {
			if a := f.home[from]; a != nil && a != b && f.foldsRows(a) && !slices.Contains(out, a) {
				out = append(out, a)
			}
		}
	}
	return out
}

// rowProduct reports whether a region is a product that threads compute by multiply-adds, with its
// epilogue.
func (p *program) rowProduct(r *region, v *ir.Value) bool {
	if !p.may(r, takesRows) || p.g.TF32 || v.Body.Type != ir.F32 {
		return false
	}
	for _, u := range r.members {
		if u != v && u.Reduce != nil {
			return false
		}
	}
	a, b := elementsOf(v)
	return !form.IsHalf(a) && !form.IsHalf(b)
}

// elementsOf are the types of the largest tensors on the sides of a product.
func elementsOf(v *ir.Value) (a, b ir.DType) {
	left, right := form.SidesOf(v)
	if left == nil {
		return ir.Invalid, ir.Invalid
	}
	widest := func(e *ir.Expr) ir.DType {
		t, rank := ir.Invalid, -1
		for _, l := range ir.Loads(e) {
			if len(l.From.Axes) > rank {
				t, rank = l.From.Type, len(l.From.Axes)
			}
		}
		return t
	}
	return widest(left), widest(right)
}

// foldsRows reports whether a region folds whole rows and does nothing else.
func (p *program) foldsRows(r *region) bool {
	return reductionOf(r) != nil && p.may(r, givesRows)
}

// prologue merges the row program a into the region b of the product v.
func (f *fuser) prologue(a, b *region, v *ir.Value) (*region, *form.Refusal) {
	span := v.Origin.Span
	if no := f.servesOnly(a, b, v); no != nil {
		return nil, no
	}
	if no := f.keepsConvex(a, b); no != nil {
		return nil, no
	}
	al := &alignment{to: map[*ir.Range]*ir.Range{}, from: map[*ir.Range]*ir.Range{}}
	m := &matcher{alignment: al, facts: f.facts}
	if no := f.alignEdges(m, a, b); no != nil {
		return nil, no
	}
	if m.want == nil { // if only results of folds are read, this pairs the columns
		f.alignSharedReads(m, a, b)
	}
	if m.want != nil || len(al.from) != len(a.space) {
		return nil, form.Refuse(ir.ReasonIndexMismatch, span, "%s does not multiply the elements that the rows of %s are reduced from", v.Name, a.members[len(a.members)-1].Name)
	}
	for _, rb := range b.space {
		if ra := al.to[rb]; b.cols[rb] != (ra != nil && a.cols[ra]) {
			return nil, form.Refuse(ir.ReasonDifferentRanges, span, "%s sums over %s, and the rows of %s are reduced over %s",
				v.Name, form.Shape(ordered(b.space, b.cols)), a.members[len(a.members)-1].Name, form.Shape(ordered(a.space, a.cols)))
		}
	}
	if no := f.oneSide(a, b, v, al); no != nil {
		return nil, no
	}
	if no := f.worthPrologue(a, b, unpaired(b.space, al.to), span); no != nil {
		return nil, no
	}
	out := merged(b, a, &alignment{to: al.from, from: al.to}, f.order) // the region is over the product's ranges
	out.product = v
	return out, nil
}

// servesOnly refuses a row program that another kernel reads too, or of which the product's epilogue reads
// more than results of folds.
func (f *fuser) servesOnly(a, b *region, v *ir.Value) *form.Refusal {
	for _, u := range a.members {
		if f.results[u] {
			return form.WrittenAnyway(u.Origin.Span, u, nil)
		}
		for _, reader := range f.readers[u] {
			if reader != v && !a.has(reader) && !(b.has(reader) && u.Reduce != nil) {
				return form.WrittenAnyway(reader.Origin.Span, u, reader)
			}
		}
	}
	return nil
}

// oneSide refuses a row program whose rows are not those of one side of the product.
func (f *fuser) oneSide(a, b *region, v *ir.Value, al *alignment) *form.Refusal {
	folded := map[*ir.Range]bool{}
	for _, axis := range v.Axes {
		if algebra.IsUnit(axis) {
			continue
		}
		for r := range ir.FreeRanges(b.at[v][axis]) {
			if ra := al.to[r]; ra != nil && !a.cols[ra] {
				folded[axis] = true
			}
		}
	}
	left, right := form.SidesOf(v)
	if left != nil && (loadsOf(right, a) || !algebra.Subset(folded, form.AxesIn(v, left))) {
		left, right = right, left
	}
	if left == nil || loadsOf(right, a) || !algebra.Subset(folded, form.AxesIn(v, left)) || algebra.Subset(form.AxesIn(v, right), form.AxesIn(v, left)) {
		return form.Refuse(ir.ReasonIndexMismatch, v.Origin.Span, "both operands of %s are computed from the same rows", v.Name)
	}
	return crosses(v, left, right, &computed{in: []*region{a, b}, axes: map[*ir.Value]map[*ir.Range]bool{}})
}

// crosses refuses a product whose elements are not what their indices say: a softmax of equal scores is the same for
// all rows, and a constant matrix has no columns. Once they are computed in the product's kernel, it has no two sides.
func crosses(v *ir.Value, left, right *ir.Expr, c *computed) *form.Refusal {
	m, n := c.ranges(left), c.ranges(right)
	summed := func(side map[*ir.Range]bool) bool {
		return slices.ContainsFunc(v.Reduce.Ranges, func(r *ir.Range) bool { return side[r] })
	}
	rows, columns := false, false
	for _, axis := range v.Axes {
		if !m[axis] && !n[axis] && !algebra.IsUnit(axis) {
			return form.Refuse(ir.ReasonIndexMismatch, v.Origin.Span, "%s is the same for all %s", v.Name, axis.Name)
		}
		rows, columns = rows || m[axis] && !n[axis], columns || n[axis] && !m[axis]
	}
	if !summed(m) || !summed(n) || !rows || !columns {
		return form.Refuse(ir.ReasonIndexMismatch, v.Origin.Span, "an operand of %s is the same for all its rows or columns", v.Name)
	}
	return nil
}

// computed asks on which ranges expressions depend where the members of some regions are computed, not read.
type computed struct {
	in   []*region
	axes map[*ir.Value]map[*ir.Range]bool // of members asked about before
}

// ranges are the free ranges of an expression, less those that only choose among equal elements of a member.
func (c *computed) ranges(e *ir.Expr) map[*ir.Range]bool {
	out := map[*ir.Range]bool{}
	ir.Walk(e, func(e *ir.Expr) bool {
		switch {
		case e.Op == ir.OpRange:
			out[e.Range] = true
		case e.Op == ir.OpLoad && slices.ContainsFunc(c.in, func(r *region) bool { return r.has(e.From) }):
			for i, axis := range e.From.Axes {
				if c.of(e.From)[axis] {
					maps.Copy(out, c.ranges(e.Args[i]))
				}
			}
			return false
		}
		return true
	})
	return out
}

// of are the ranges of a member that its elements depend on.
func (c *computed) of(v *ir.Value) map[*ir.Range]bool {
	if c.axes[v] == nil {
		c.axes[v] = c.ranges(v.Body)
		if v.Reduce != nil {
			maps.Copy(c.axes[v], c.ranges(v.Reduce.Where))
			maps.Copy(c.axes[v], c.ranges(v.Reduce.Rank))
		}
	}
	return c.axes[v]
}

// loadsOf reports whether an expression loads a member of a region.
func loadsOf(e *ir.Expr, r *region) bool {
	for _, l := range ir.Loads(e) {
		if r.has(l.From) {
			return true
		}
	}
	return false
}

// worthPrologue refuses where a block cannot hold the rows of a tile, where larger tiles would multiply
// faster, or where folding the rows again for each tile along others takes longer than one more kernel.
func (f *fuser) worthPrologue(a, b *region, others []*ir.Range, span diag.Span) *form.Refusal {
	if algebra.Product(b.space).IsConst(0) {
		return form.Refuse(ir.ReasonNoGain, span, "it has no elements")
	}
	length := algebra.Product(ordered(a.space, a.cols))
	if length.Op != ir.OpConst {
		return form.Refuse(ir.ReasonResources, span, "whether rows of %s elements fit on chip depends on the size: with a number in its place they may", length)
	}
	if length.Int < forecast.SplitKPoints {
		return form.Refuse(ir.ReasonResources, span, "rows of %d elements are too short to be computed and multiplied by the same threads: at least %d", length.Int, forecast.SplitKPoints)
	}
	if rowProductShared(rowProductDepth(length.Int)) > f.device.SharedBlock-rowProductReserve {
		return form.Refuse(ir.ReasonResources, span, "rows of %d elements in f32 do not fit in the shared memory of a block, %d bytes", length.Int, f.device.SharedBlock)
	}
	var rows []*ir.Range
	for _, r := range a.space {
		if !a.cols[r] {
			rows = append(rows, r)
		}
	}
	m, n := f.estimate(algebra.Product(rows)), f.estimate(algebra.Product(others))
	shapes := shapesOf[ir.FMAUnit]
	if large := math.Ceil(m/float64(shapes.large.m)) * math.Ceil(n/float64(shapes.large.n)); large >= float64(shapes.least) {
		return form.Refuse(ir.ReasonNoGain, span, "the product is large enough for larger tiles, which are faster than keeping whole rows on chip")
	}
	slots, handed := 0, 0.0
	for _, u := range a.members {
		slots += form.CostOf(u.Body).Slots
		if !f.readOnlyIn(u, a) {
			handed += f.bytes(u)
		}
	}
	const perSlot = 2 // a device's rate counts two operations for each issue slot
	again := (math.Ceil(n/rowProductTileN) - 1) * m * float64(length.Int) * float64(slots) * perSlot / f.device.F32Rate
	if saved := f.device.Launch + 2*handed/f.device.Bandwidth; again > saved {
		return form.Refuse(ir.ReasonNoGain, span, "computing the rows again for every %d columns of %s takes about %.1f us, a kernel of their own %.1f us",
			rowProductTileN, form.Shape(others), again*1e6, saved*1e6)
	}
	return nil
}
