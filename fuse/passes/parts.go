package passes

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/forecast"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// Tensor cores multiply numbers of 16 bits more than ten times as fast as threads multiply numbers of f32. A number of
// f32 is the sum of three of bf16, of 8 significant bits each:
//
//	x = x0 + x1 + x2,  x0 = bf16(x),  x1 = bf16(x - x0),  x2 = bf16(x - x0 - x1)
//
// A product of two numbers is then the sum of nine, three of which are less than the rounding of the product in f32:
// x1*y2, x2*y1 and x2*y2. The other six are terms of one sum of products of bf16, which is six times as long.
// (Henry, Tang, Heinecke: "Leveraging the bfloat16 artificial intelligence datatype for higher-precision computations".)
//
// If x is infinite or NaN, its parts are x and two zeros. Infinity times a finite number must not become infinity times
// a zero part of that number, which is NaN. So all terms but x0*y0 use an x0 that is 0 for infinite numbers.

// Figures of products of parts. Laying an operand out costs a read of 4 and a write of 12 bytes of each element.
const (
	partTerms    = 6
	partScores   = 256     // least terms of the scores of attention
	partWork     = 1 << 28 // least multiplications of windows
	partReuse    = 512     // least multiplications of windows for each number of the input, so that laying it out pays
	partChannels = 32      // least channels of windows, and of the results
	partSlots    = 100     // most work of computing a number, which is done once for each term
)

// numberPart says which part of a number is a factor of a term.
type numberPart int

const (
	first       numberPart = iota // x0
	firstFinite                   // x0 where it is finite, else 0
	second                        // x1
	third                         // x2
)

// termsOf are the factors of the six terms: those of the left number, and those of the right
// one.
var termsOf = [2][partTerms]numberPart{
	{first, firstFinite, second, firstFinite, third, second},
	{first, second, firstFinite, third, firstFinite, second},
}

// multiplyParts turns large enough products of f32 into products of bf16, whose operands hold the factors of each
// number's terms side by side. Where sizes are symbols, the default sizes decide, and the graph then records for
// which sizes it was rewritten.
func multiplyParts(g *ir.Graph) {
	var streams map[*ir.Value]bool
	inParts(g, func(g *ir.Graph, v *ir.Value, sizes map[string]int64) *partProduct {
		if algebra.PointsAt(v.Reduce.Ranges, sizes) < partScores { // attention multiplies f32 itself, and its scores are not written
			if streams == nil {
				streams = form.InStreams(g)
			}
			if streams[v] {
				return nil
			}
		}
		return plainParts(g, v, sizes)
	})
}

// multiplyWindowParts does the same for products of weights with windows of an input. Their operands are laid out
// by a later pass.
func multiplyWindowParts(g *ir.Graph) { inParts(g, windowParts) }

func inParts(g *ir.Graph, describe func(*ir.Graph, *ir.Value, map[string]int64) *partProduct) {
	if !mayAddKernels(g) || g.TF32 {
		return
	}
	sizes := algebra.DefaultSizes(g)
	insertBefore(g, func(v *ir.Value) []*ir.Value {
		if v.Reduce == nil || v.Reduce.Op != ir.Sum || v.Body.Type != ir.F32 {
			return nil
		}
		if p := describe(g, v, sizes); p != nil {
			return p.split(g)
		}
		return nil
	})
}

// partProduct is a sum of products of two numbers of f32.
type partProduct struct {
	v     *ir.Value
	sides [2]*ir.Expr // each computed from loads
	depth *ir.Range   // the reduced range along which the terms of a number are neighbours
	lines bool        // whether rows of operands are padded to whole lines of the L2 cache, as the copy engine needs
}

// windowParts describes a product of weights with windows, of two tensors of f32; nil where it is none, or too small.
func windowParts(g *ir.Graph, v *ir.Value, sizes map[string]int64) *partProduct {
	turnTaps(v)
	w := windowedProduct(v)
	if w == nil || !w.moves(g, sizes) || w.weight.Type != ir.F32 || !w.worth(sizes) ||
		w.work(sizes) < max(partWork, partReuse*algebra.PointsAt(w.input.load.From.Axes, sizes)) {
		return nil
	}
	p := &partProduct{v: v, sides: [2]*ir.Expr{w.weight, w.input.load}, depth: w.input.channels()}
	if w.fewChannels(sizes) || p.dim(w.weight) < 0 || p.dim(w.input.load) < 0 {
		return nil
	}
	return p
}

// fewChannels reports whether tiles of terms would be mostly empty.
func (p *windowed) fewChannels(sizes map[string]int64) bool {
	return min(algebra.Estimate(p.input.channels().Extent, sizes), algebra.PointsAt(p.own, sizes)) < partChannels
}

// plainParts describes a product of two matrices, or of batches of them; nil where it is none, or too small. It adds
// to the graph the sizes for which it is large enough.
func plainParts(g *ir.Graph, v *ir.Value, sizes map[string]int64) *partProduct {
	if v.Reduce.Where != nil {
		return nil
	}
	a, b := form.SidesOf(v)
	if a == nil || b == nil || !allF32(a) || !allF32(b) || !orderedProduct.holds(v, a, b, sizes) {
		return nil
	}
	cost, saved := partCosts(v, a, b)
	if !partsPay(cost, saved, sizes) {
		return nil
	}
	p := &partProduct{v: v, sides: [2]*ir.Expr{a, b}, depth: algebra.Innermost(v.Reduce.Ranges), lines: true}
	facts := g.Facts()
	facts.Positive = true
	if !ir.ProveLess(ir.IntConst(0), p.depth.Extent, facts) { // operands may have rows of no elements
		return nil
	}
	if slices.ContainsFunc(p.sides[:], func(side *ir.Expr) bool { return !ir.DependsOn(side, p.depth) || form.WorkOf(side) > partSlots }) {
		return nil
	}
	pays := ir.Simplify(ir.Apply(ir.OpLe, cost, saved), facts)
	if when := algebra.And(orderedProduct.at(v, a, b), pays); when != nil {
		g.For = ir.Join(ir.OpOr, g.For, when)
	}
	return p
}

// allF32 reports whether a side of a product is computed from numbers of f32 alone.
func allF32(side *ir.Expr) bool {
	for _, l := range ir.Loads(side) {
		if l.Type != ir.F32 {
			return false
		}
	}
	return side.Type == ir.F32
}

// dim is the one dim of a tensor whose index in a load is that of the depth; -1 where a side is no load, or none or
// several dims depend on the depth.
func (p *partProduct) dim(side *ir.Expr) int {
	if side.Op != ir.OpLoad || side.Fill != nil && !form.IsZero(side.Fill) {
		return -1
	}
	found := -1
	for d, at := range side.Args {
		if !ir.DependsOn(at, p.depth) {
			continue
		}
		if found >= 0 || at.Op != ir.OpRange {
			return -1
		}
		found = d
	}
	return found
}

// split rewrites the product over operands that hold the factors of the terms, and returns these.
func (p *partProduct) split(g *ir.Graph) []*ir.Value {
	long := g.NewRange(p.depth.Name, p.times(g, p.depth.Extent))
	var made []*ir.Value
	var factors [2]*ir.Expr
	for i, side := range p.sides {
		operand := p.computed
		if p.dim(side) >= 0 {
			operand = p.inOrder
		}
		value, load := operand(g, i, long)
		made, factors[i] = append(made, value), ir.Cast(load.At(side.Span), ir.F32)
	}
	p.v.Body = ir.Apply(ir.OpMul, factors[0], factors[1]).At(p.v.Body.Span)
	reduce := *p.v.Reduce
	reduce.Ranges = slices.Clone(reduce.Ranges)
	reduce.Ranges[slices.Index(reduce.Ranges, p.depth)] = long
	p.v.Reduce = &reduce
	return made
}

// times is a size counted in terms.
func (p *partProduct) times(g *ir.Graph, size *ir.Expr) *ir.Expr {
	return ir.Simplify(ir.Apply(ir.OpMul, size, ir.IntConst(partTerms)), g.Facts())
}

// inOrder makes the operand for a side that is a load. The operand has the order of the
// tensor's axes.
func (p *partProduct) inOrder(g *ir.Graph, i int, long *ir.Range) (value *ir.Value, load *ir.Expr) {
	side, dim := p.sides[i], p.dim(p.sides[i])
	shape := side.From.Shape()
	shape[dim] = p.times(g, shape[dim])
	value = p.operand(g, shape, func(axes []*ir.Range) (*ir.Expr, *ir.Range) {
		from := ir.Indices(axes)
		from[dim], _ = p.numberAt(axes[dim])
		return loadWithin(side.From, from, p.lines), axes[dim]
	}, i)
	at, fill := slices.Clone(side.Args), (*ir.Expr)(nil)
	at[dim] = long.At()
	if side.Fill != nil {
		fill = ir.Num(ir.BF16, 0)
	}
	return value, ir.Load(value, at, fill)
}

// computed makes the operand for a side that is computed. Its depth is the last axis.
func (p *partProduct) computed(g *ir.Graph, i int, long *ir.Range) (value *ir.Value, load *ir.Expr) {
	side := p.sides[i]
	free := ir.FreeRanges(side)
	var ranges []*ir.Range
	var shape, at []*ir.Expr
	for _, r := range algebra.AllRanges(p.v) {
		if free[r] && r != p.depth {
			ranges, shape, at = append(ranges, r), append(shape, r.Extent), append(at, r.At())
		}
	}
	value = p.operand(g, append(shape, long.Extent), func(axes []*ir.Range) (*ir.Expr, *ir.Range) {
		number, _ := p.numberAt(axes[len(ranges)])
		rename := map[*ir.Range]*ir.Expr{p.depth: number}
		for d, r := range ranges {
			rename[r] = axes[d].At()
		}
		return form.GuardLoads(ir.Substitute(side, rename)), axes[len(ranges)]
	}, i)
	return value, ir.Load(value, append(at, long.At()), nil)
}

// numberAt is the index of the number to which the factor at r belongs, and of the term. The factors of all numbers to one term are
// neighbours where their number is known: then neighbours read neighbours. Otherwise those of one number are, because a quotient by a
// number that only the running program knows takes longer than all else.
func (p *partProduct) numberAt(r *ir.Range) (number, term *ir.Expr) {
	along, by := r.At(), p.depth.Extent
	if by.Op == ir.OpConst {
		return ir.Apply(ir.OpMod, along, by), ir.Apply(ir.OpFloorDiv, along, by)
	}
	by = ir.IntConst(partTerms)
	return ir.Apply(ir.OpFloorDiv, along, by), ir.Apply(ir.OpMod, along, by)
}

// operand is a value of the given shape that holds factors of terms. number returns the number at the value's axes,
// and the axis along which the factors are. Behind the last term rows are padded with zeros.
func (p *partProduct) operand(g *ir.Graph, shape []*ir.Expr, number func([]*ir.Range) (*ir.Expr, *ir.Range), side int) *ir.Value {
	if last := len(shape) - 1; p.lines {
		shape[last] = roundedUp(shape[last], int64(forecast.LineBytes/ir.BF16.Size()), g.Facts())
	}
	axes := g.NewAxes(shape)
	x, along := number(axes)
	_, term := p.numberAt(along)
	body := factorOf(x, term, termsOf[side])
	if factors := p.times(g, p.depth.Extent); p.depth.Extent.Op == ir.OpConst && along == axes[len(shape)-1] && !ir.SameSize(shape[len(shape)-1], factors) {
		body = ir.Apply(ir.OpSelect, ir.Apply(ir.OpLt, along.At(), factors), body, ir.Num(ir.BF16, 0))
	}
	return g.Adopt(&ir.Value{Name: p.v.Name + "_terms", Type: ir.BF16, Axes: axes, Body: body,
		Origin: p.v.Origin, Parts: true})
}

// factorOf is the factor that the number x contributes to a term.
func factorOf(x, term *ir.Expr, parts [partTerms]numberPart) *ir.Expr {
	rounded := func(e *ir.Expr) *ir.Expr { return ir.Cast(ir.Cast(e, ir.BF16), ir.F32) }
	greatest := ir.Num(ir.F32, ir.BF16.Info().Max) // greater numbers of f32 would be infinite in bf16
	within := ir.Apply(ir.OpMax, ir.Apply(ir.OpMin, x, greatest), ir.Apply(ir.OpNeg, greatest))
	finite := ir.Apply(ir.OpIsFinite, x)
	orZero := func(e *ir.Expr) *ir.Expr { return ir.Apply(ir.OpSelect, finite, e, ir.Num(ir.F32, 0)) }
	x0 := rounded(orZero(within))
	rest := ir.Apply(ir.OpSub, orZero(x), x0)
	x1 := rounded(rest)
	of := [...]*ir.Expr{first: ir.Apply(ir.OpSelect, finite, x0, x), firstFinite: x0, second: x1, third: ir.Apply(ir.OpSub, rest, x1)}
	isTerm := func(i int) *ir.Expr { return ir.Apply(ir.OpEq, term, ir.IntConst(int64(i))) }
	var out *ir.Expr
	for kind, e := range of {
		var when *ir.Expr
		for i, p := range parts {
			if p == numberPart(kind) {
				when = ir.Join(ir.OpOr, when, isTerm(i))
			}
		}
		if out == nil {
			out = e
		} else {
			out = ir.Apply(ir.OpSelect, when, e, out)
		}
	}
	return ir.Cast(out, ir.BF16)
}
