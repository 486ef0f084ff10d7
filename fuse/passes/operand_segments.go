package passes

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/forecast"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// An operand that is a concatenation along what a product sums, as in [x h] @ w, need not be written: the sum goes through the parts one after
// the other, and each stage of it copies its tiles from the tensors that they are in (ir.Contract.Segments).

// segmentedProduct is a product that warpgroups multiply: others would read the parts element by element.
var segmentedProduct = largeProduct{rows: 64, depth: 64, work: 1 << 28}

// mostSegments is the most parts of a sum: each is a tensor map for every operand.
const mostSegments = 4

// readSegments makes products read the parts of concatenated operands where they lie; parts that are computed get values of their own. If sizes
// are symbols, the default sizes decide; the graph then records for which sizes it was rewritten.
func readSegments(g *ir.Graph) {
	if !mayAddKernels(g) {
		return
	}
	sizes := algebra.DefaultSizes(g)
	var streams map[*ir.Value]bool // found when they are first asked for
	insertBefore(g, func(v *ir.Value) []*ir.Value {
		s := segmentsOf(g, v, sizes)
		if s == nil {
			return nil
		}
		if streams == nil {
			streams = form.InStreams(g)
		}
		if streams[v] { // attention copies whole rows of its operands
			return nil
		}
		a, b := s.side(0), s.side(1)
		v.Body = ir.Apply(ir.OpMul, ir.Cast(a, v.Body.Type), ir.Cast(b, v.Body.Type)).At(v.Body.Span)
		if s.when != nil {
			g.For = ir.Join(ir.OpOr, g.For, s.when)
		}
		return s.made
	})
	DropDead(g)
}

// segments is a product of which at least one operand is a concatenation along what is summed.
type segments struct {
	g     *ir.Graph
	v     *ir.Value
	k     *ir.Range
	sizes map[string]int64
	ends  []*ir.Expr    // of all segments but the last
	parts [2][]*ir.Expr // of each side: one for each segment, or one for all
	lies  [2]bool       // whether neighbours in memory are neighbours along k
	when  *ir.Expr      // the sizes at which warpgroups multiply, and the copy engine copies the parts; nil for all
	stays [2][]bool     // for each part, whether it is copied from where it lies
	made  []*ir.Value   // for the other parts
}

// segmentsOf is a product with an operand that is a concatenation along what is summed, if tiles of all parts can be copied from where they lie or
// from values of their own; nil for others.
func segmentsOf(g *ir.Graph, v *ir.Value, sizes map[string]int64) *segments {
	if !form.IsTileProduct(v) || v.Reduce.Where != nil || len(v.Reduce.Ranges) != 1 {
		return nil
	}
	a, b := form.SidesOf(v)
	if a == nil || b == nil || !halfLoad(a) || !halfLoad(b) || !segmentedProduct.holds(v, a, b, sizes) {
		return nil
	}
	s := &segments{g: g, v: v, k: v.Reduce.Ranges[0], sizes: sizes, when: segmentedProduct.at(v, a, b)}
	for i, side := range []*ir.Expr{a, b} {
		var ends []*ir.Expr
		s.parts[i], ends = form.Segments(openSegments(form.WithoutWidening(side), s.k), s.k)
		if len(ends) > 0 && len(s.ends) > 0 && !slices.EqualFunc(ends, s.ends, ir.SameSize) {
			return nil
		}
		if len(ends) > 0 {
			s.ends = ends
		}
	}
	if len(s.ends) == 0 || len(s.ends) >= mostSegments {
		return nil
	}
	for i := range s.parts {
		s.lies[i] = s.order(s.parts[i])
		for n := range s.parts[i] {
			whole := s.inPlace(i, n)
			stays := whole != nil && s.accesses(whole, s.parts[i][n].Type)
			if !stays && !s.mayGet(i, n) {
				return nil
			}
			s.stays[i] = append(s.stays[i], stays)
		}
	}
	return s
}

// openSegments is what a load reads, where that is a concatenation along k of tensors; else the load itself.
func openSegments(load *ir.Expr, k *ir.Range) *ir.Expr {
	u := load.From
	if u.IsInput() || u.Reduce != nil || load.Fill != nil {
		return load
	}
	if body := form.BodyAt(load); body.Op == ir.OpSelect {
		if _, ends := form.Segments(body, k); len(ends) > 0 {
			return body
		}
	}
	return load
}

// order reports whether the largest of some parts lies along k.
func (s *segments) order(parts []*ir.Expr) (along bool) {
	most := -1.0
	for _, part := range parts {
		if part.Op == ir.OpLoad && len(part.Args) > 0 && algebra.BytesAt(part.From, s.sizes) > most {
			most, along = algebra.BytesAt(part.From, s.sizes), ir.DependsOn(part.Args[len(part.Args)-1], s.k)
		}
	}
	return along
}

// mayGet reports whether a part may get a value of its own, of which the copy engine can copy tiles.
func (s *segments) mayGet(side, n int) bool {
	part := s.parts[side][n]
	return len(s.parts[side]) > 1 && form.IsHalf(part.Type) && ir.DependsOn(part, s.k) && s.accesses([]*ir.Expr{s.row(side, n)}, part.Type)
}

// row is the length of the rows of the value that a part gets.
func (s *segments) row(side, n int) *ir.Expr {
	own := s.axes(side, n)
	if s.lies[side] || len(own) == 0 {
		return s.length(n)
	}
	return own[len(own)-1].Extent
}

// ofSegment is an expression whose loads are 0 where they are outside of their tensors, as they are in other segments.
func ofSegment(e *ir.Expr) *ir.Expr {
	return ir.Rewrite(e, func(e *ir.Expr) *ir.Expr {
		if e.Op != ir.OpLoad || e.Fill != nil {
			return e
		}
		return ir.Load(e.From, e.Args, zeroOf(e.Type)).At(e.Span)
	})
}

// axes are the axes of the product that a part depends on.
func (s *segments) axes(side, n int) []*ir.Range {
	return slices.DeleteFunc(rangesIn(s.v, s.parts[side][n]), func(r *ir.Range) bool { return r == s.k })
}

// length is the number of points of a segment.
func (s *segments) length(n int) *ir.Expr {
	end := s.k.Extent
	if n < len(s.ends) {
		end = s.ends[n]
	}
	return ir.Simplify(ir.Apply(ir.OpSub, end, s.start(n)), s.g.Facts())
}

// start is the first point of a segment.
func (s *segments) start(n int) *ir.Expr {
	if n == 0 {
		return ir.IntConst(0)
	}
	return s.ends[n-1]
}

// inPlace is what has to be whole accesses for the copy engine to copy a part from where it lies; nil where it cannot. The part is an element of a tensor, at
// indices that are ranges or lie a distance behind one.
func (s *segments) inPlace(side, n int) (whole []*ir.Expr) {
	part, last := s.parts[side][n], len(s.parts[side][n].Args)-1
	if part.Op != ir.OpLoad || !form.IsHalf(part.Type) || last < 1 || part.Fill != nil && !s.readsAll(part, n) {
		return nil
	}
	seen := map[*ir.Range]bool{}
	for _, at := range part.Args {
		free := algebra.RangesOf(ir.FreeRanges(at))
		if len(free) > 1 || ir.Has(at, ir.OpLoad) {
			return nil
		}
		for _, r := range free {
			if stride, ok := ir.Stride(at, r, s.g.Facts()); !ok || !stride.IsConst(1) || seen[r] {
				return nil
			}
			seen[r] = true
		}
	}
	if !seen[s.k] || ir.DependsOn(part.Args[last], s.k) != s.lies[side] {
		return nil
	}
	whole = []*ir.Expr{part.From.Axes[last].Extent}
	if !s.lies[side] {
		return append(whole, ir.AtZero(part.Args[last], algebra.RangesOf(ir.FreeRanges(part.Args[last]))...))
	}
	if len(s.parts[side]) == 1 { // each segment begins within a row
		return append(whole, s.ends...)
	}
	return append(whole, s.first(part.Args[last], n))
}

// first is an index along k at the first point of a segment.
func (s *segments) first(at *ir.Expr, n int) *ir.Expr {
	return ir.Simplify(ir.Substitute(at, map[*ir.Range]*ir.Expr{s.k: s.start(n)}), s.g.Facts())
}

// readsAll reports whether a load goes through whole axes of its tensor in a segment, so that it is inside at all points.
func (s *segments) readsAll(load *ir.Expr, n int) bool {
	for d, at := range load.Args {
		extent := load.From.Axes[d].Extent
		switch {
		case ir.DependsOn(at, s.k):
			if !s.first(at, n).IsConst(0) || !ir.SameSize(extent, s.length(n)) {
				return false
			}
		case at.Op == ir.OpRange && !ir.SameSize(extent, at.Range.Extent), at.Op != ir.OpRange && !algebra.IsUnit(load.From.Axes[d]):
			return false
		}
	}
	return true
}

// accesses reports whether numbers of elements are whole accesses at the default sizes, and adds to s that they have to be at others.
func (s *segments) accesses(numbers []*ir.Expr, t ir.DType) bool {
	access := int64(forecast.CopyAlign / t.Size())
	var when *ir.Expr
	for _, n := range numbers {
		if !wholeAt(n, access, s.sizes, s.g.Facts()) {
			return false
		}
		if !ir.Multiple(n, access, s.g.Facts()) {
			when = algebra.And(when, ir.Apply(ir.OpEq, behindAccesses(n, t), ir.IntConst(0)))
		}
	}
	s.when = algebra.And(s.when, when)
	return true
}

// side is an operand as one of its parts, each of which is a load.
func (s *segments) side(side int) (e *ir.Expr) {
	parts := s.parts[side]
	for n := len(parts) - 1; n >= 0; n-- {
		part := parts[n]
		if !s.stays[side][n] {
			part = s.value(side, n)
		}
		if e == nil {
			e = part
			continue
		}
		e = ir.Apply(ir.OpSelect, ir.Apply(ir.OpLt, s.k.At(), s.ends[n]), part, e).At(part.Span)
	}
	return e
}

// value makes a value of a part, in the order of the side's largest part, and returns its load.
func (s *segments) value(side, n int) *ir.Expr {
	part := s.parts[side][n]
	local := s.g.NewRange(s.k.Name, s.length(n))
	own := s.axes(side, n)
	order := append(slices.Clone(own), local)
	if !s.lies[side] {
		order = append([]*ir.Range{local}, own...)
	}
	from := ir.Simplify(ir.Apply(ir.OpAdd, local.At(), s.start(n)), s.g.Facts())
	value, load := operandOver(s.g, s.v, ir.Substitute(part, map[*ir.Range]*ir.Expr{s.k: from}), order)
	s.made = append(s.made, value)
	to := ir.Simplify(ir.Apply(ir.OpSub, s.k.At(), s.start(n)), s.g.Facts())
	return ofSegment(ir.Substitute(load, map[*ir.Range]*ir.Expr{local: to}))
}
