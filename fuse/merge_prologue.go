package fuse

import (
	"maps"
	"math"
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/forecast"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
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
				f.refused.unmerged(f.program, a, b, no)
				continue
			}
			if f.take(m) {
				break
			}
		}
	}
}

// rowPrograms lists the regions that fold rows and that a region reads.
func (pt *partition) rowPrograms(b *region) []*region {
	var out []*region
	for _, u := range b.members {
		for _, from := range pt.sources[u] {
			if a := pt.home[from]; a != nil && a != b && pt.foldsRows(a) && !slices.Contains(out, a) {
				out = append(out, a)
			}
		}
	}
	return out
}

// rowProduct reports whether a region is a product that threads compute by multiply-adds, with its
// epilogue, which is over the results of the product and not along what it sums over.
func (p *program) rowProduct(r *region, v *ir.Value) bool {
	if !p.may(r, takesRows) || p.g.TF32 || v.Body.Type != ir.F32 {
		return false
	}
	for _, u := range r.members {
		along := func(a *ir.Range) bool { return algebra.DependsOnAny(r.at[u][a], r.cols) }
		if u != v && (u.Reduce != nil || slices.ContainsFunc(u.Axes, along)) {
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
func (pt *partition) prologue(a, b *region, v *ir.Value) (*region, *form.Refusal) {
	p := &prologue{flow: pt.flow, a: a, b: b, v: v}
	convex := func() *form.Refusal { return pt.keepsConvex(a, b) }
	for _, refusal := range []func() *form.Refusal{p.servesOnly, convex, p.pairLoops, p.oneSide, p.fitsOnChip, p.pays} {
		if no := refusal(); no != nil {
			return nil, no
		}
	}
	return p.region(), nil
}

// prologue is a row program that is to be the prologue of a product.
type prologue struct {
	*flow
	a, b *region    // of the row program, of the product
	v    *ir.Value  // the product
	al   *alignment // of b to a
}

// region is the union of the two, over the ranges of the product.
func (p *prologue) region() *region {
	out := merged(p.b, p.a, &alignment{to: p.al.from, from: p.al.to}, p.order)
	out.product = p.v
	return out
}

// servesOnly refuses a row program that another kernel reads too, or of which the product's epilogue reads
// more than results of folds.
func (p *prologue) servesOnly() *form.Refusal {
	for _, u := range p.a.members {
		if p.results[u] {
			return form.WrittenAnyway(u.Origin.Span, u, nil)
		}
		for _, reader := range p.readers[u] {
			if reader != p.v && !p.a.has(reader) && !(p.b.has(reader) && u.Reduce != nil) {
				return form.WrittenAnyway(reader.Origin.Span, u, reader)
			}
		}
	}
	return nil
}

// pairLoops pairs the loops of the row program with those of the product, its columns with what the product sums over.
func (p *prologue) pairLoops() *form.Refusal {
	a, b, last := p.a, p.b, p.a.members[len(p.a.members)-1]
	p.al = &alignment{to: map[*ir.Range]*ir.Range{}, from: map[*ir.Range]*ir.Range{}}
	m := &matcher{alignment: p.al, facts: p.facts}
	if no := p.alignEdges(m, a, b); no != nil {
		return no
	}
	if m.want == nil { // if only results of folds are read, this pairs the columns
		p.alignSharedReads(m, a, b)
	}
	if m.want != nil || len(p.al.from) != len(a.space) {
		return form.Refuse(ir.ReasonIndexMismatch, p.v.Origin.Span, "%s does not multiply the elements that the rows of %s are reduced from", p.v.Name, last.Name)
	}
	for _, rb := range b.space {
		if ra := p.al.to[rb]; b.cols[rb] != (ra != nil && a.cols[ra]) {
			return form.Refuse(ir.ReasonDifferentRanges, p.v.Origin.Span, "%s sums over %s, and the rows of %s are reduced over %s",
				p.v.Name, form.Shape(ordered(b.space, b.cols)), last.Name, form.Shape(ordered(a.space, a.cols)))
		}
	}
	return nil
}

// oneSide refuses a row program whose rows are not those of one side of the product.
func (p *prologue) oneSide() *form.Refusal {
	v, folded := p.v, map[*ir.Range]bool{}
	for _, axis := range v.Axes {
		if algebra.IsUnit(axis) {
			continue
		}
		for r := range ir.FreeRanges(p.b.at[v][axis]) {
			if ra := p.al.to[r]; ra != nil && !p.a.cols[ra] {
				folded[axis] = true
			}
		}
	}
	left, right := form.SidesOf(v)
	if left != nil && (loadsOf(right, p.a) || !algebra.Subset(folded, form.AxesIn(v, left))) {
		left, right = right, left
	}
	if left == nil || loadsOf(right, p.a) || !algebra.Subset(folded, form.AxesIn(v, left)) || algebra.Subset(form.AxesIn(v, right), form.AxesIn(v, left)) {
		return form.Refuse(ir.ReasonIndexMismatch, v.Origin.Span, "both operands of %s are computed from the same rows", v.Name)
	}
	return crosses(v, left, right, &computed{in: []*region{p.a, p.b}, axes: map[*ir.Value]map[*ir.Range]bool{}})
}

// length is the number of elements of a row.
func (p *prologue) length() *ir.Expr { return algebra.Product(ordered(p.a.space, p.a.cols)) }

// fitsOnChip refuses a row program where a block cannot hold the rows of a tile.
func (p *prologue) fitsOnChip() *form.Refusal {
	span, length := p.v.Origin.Span, p.length()
	if algebra.Product(p.b.space).IsConst(0) {
		return form.Refuse(ir.ReasonNoGain, span, "it has no elements")
	}
	if length.Op != ir.OpConst {
		return form.Refuse(ir.ReasonResources, span, "whether rows of %s elements fit on chip depends on the size: with a number in its place they may", length)
	}
	if length.Int < forecast.SplitKPoints {
		return form.Refuse(ir.ReasonResources, span, "rows of %d elements are too short to be computed and multiplied by the same threads: at least %d", length.Int, forecast.SplitKPoints)
	}
	if rowProductShared(rowProductDepth(length.Int)) > p.device.SharedBlock-rowProductReserve {
		return form.Refuse(ir.ReasonResources, span, "rows of %d elements in f32 do not fit in the shared memory of a block, %d bytes", length.Int, p.device.SharedBlock)
	}
	return nil
}

// pays refuses a row program where larger tiles would multiply faster, or where folding the rows again for each tile
// along other axes takes longer than one more kernel.
func (p *prologue) pays() *form.Refusal {
	span, others := p.v.Origin.Span, unpaired(p.b.space, p.al.to)
	var rows []*ir.Range
	for _, r := range p.a.space {
		if !p.a.cols[r] {
			rows = append(rows, r)
		}
	}
	m, n := p.estimate(algebra.Product(rows)), p.estimate(algebra.Product(others))
	shapes := shapesOf[ir.FMAUnit]
	if large := math.Ceil(m/float64(shapes.large.m)) * math.Ceil(n/float64(shapes.large.n)); large >= float64(shapes.least) {
		return form.Refuse(ir.ReasonNoGain, span, "the product is large enough for larger tiles, which are faster than keeping whole rows on chip")
	}
	slots, handed := 0, 0.0
	for _, u := range p.a.members {
		slots += form.CostOf(u.Body).Slots
		if !p.readOnlyIn(u, p.a) {
			handed += p.bytes(u)
		}
	}
	const perSlot = 2 // a device's rate counts two operations for each issue slot
	again := (math.Ceil(n/rowProductTileN) - 1) * m * float64(p.length().Int) * float64(slots) * perSlot / p.device.F32Rate
	if saved := p.device.Launch + 2*handed/p.device.Bandwidth; again > saved {
		return form.Refuse(ir.ReasonNoGain, span, "computing the rows again for every %d columns of %s takes about %.1f us, a kernel of their own %.1f us",
			rowProductTileN, form.Shape(others), again*1e6, saved*1e6)
	}
	return nil
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
