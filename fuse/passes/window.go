package passes

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/forecast"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// Figures of windowed contractions whose operands are laid out for tensor cores. Laying out costs a read
// and a write of each element of the input and two more kernels, and saves gathers of single elements. It
// pays for large products only.
const (
	windowWork    = 1 << 23 // multiplications
	windowStill   = 1 << 29 // the same where windows are points, so that the input could be read unchanged
	windowRows    = 8       // least elements of a result that share an element of the input
	windowReuse   = 32      // multiplications of each element of the input
	windowPadding = 4       // most channels after padding, as a multiple of those there are
)

// layWindows makes values of the operands of windowed contractions on tensor cores, with their channels
// last. Neighbours along the sum are then contiguous whatever the tap, and so are the zeros outside the
// input and those that pad the channels to a whole access. An operand whose channels are last already
// stays. It decides for the program's default sizes.
func layWindows(g *ir.Graph) {
	if !mayAddKernels(g) {
		return
	}
	sizes := algebra.DefaultSizes(g)
	products, laid := map[*ir.Value]*windowed{}, map[*ir.Value]bool{} // laid are inputs that some product wants laid out
	for _, v := range g.Values {
		turnTaps(v)
		if p := windowedProduct(v); p != nil {
			products[v] = p
			p.exact = p.weight.Type == ir.F32 && !g.TF32
			if p.moves() && p.worth(sizes) && !p.exact {
				laid[p.input.load.From] = true
			}
		}
	}
	insertBefore(g, func(v *ir.Value) []*ir.Value {
		p := products[v]
		if p == nil || !(p.moves() && p.worth(sizes) || laid[p.input.load.From] && p.large(sizes)) {
			return nil
		}
		return p.layOut(g)
	})
}

// turnTaps turns reduced ranges round along which a factor of a sum of products is read backwards, as
// a transposed convolution reads its input: it is then a convolution over weights in the other order.
// The order of a sum is open. Where the other factor is read forwards, as weights may be at each phase, the one with
// more places decides.
func turnTaps(v *ir.Value) {
	if v.Reduce == nil || v.Reduce.Op != ir.Sum || len(form.FactorsOf(v.Body)) != 2 {
		return
	}
	for _, r := range v.Reduce.Ranges {
		forth, back := placesAlong(v, r)
		if r.Extent.Op != ir.OpConst || back <= forth {
			continue
		}
		turned := map[*ir.Range]*ir.Expr{r: ir.Apply(ir.OpSub, ir.IntConst(r.Extent.Int-1), r.At())}
		v.Body = ir.Substitute(v.Body, turned)
		if v.Reduce.Where != nil {
			reduce := *v.Reduce
			reduce.Where = ir.Substitute(reduce.Where, turned)
			v.Reduce = &reduce
		}
	}
}

// placesAlong is the most places along one axis of the result with which a load moves on where it moves on with a
// reduced range too, and where it moves back with that.
func placesAlong(v *ir.Value, r *ir.Range) (forth, back float64) {
	for _, load := range ir.Loads(v.Body) {
		for _, at := range load.Args {
			step, ok := ir.Stride(at, r, ir.Facts{})
			if !ok || step.Op != ir.OpConst || step.Int == 0 {
				continue
			}
			for _, a := range v.Axes {
				if _, moves := constantStride(at, a); moves && step.Int > 0 {
					forth = max(forth, extentOf(a))
				} else if moves {
					back = max(back, extentOf(a))
				}
			}
		}
	}
	return forth, back
}

// extentOf is the extent of a range, where symbols are large.
func extentOf(r *ir.Range) float64 {
	const symbol = 1 << 20
	if r.Extent.Op == ir.OpConst {
		return float64(r.Extent.Int)
	}
	return symbol
}

// windowed is a product of weights with an input that is read through windows.
type windowed struct {
	v      *ir.Value
	exact  bool     // computed in f32, by multiply-adds
	weight *ir.Expr // a load
	input  *window
	own    []*ir.Range // axes of the result on which the weights alone depend
	both   []*ir.Range // axes of the result on which both depend
}

// windowedProduct describes a sum of products one factor of which is read through a window; nil where v is
// none. Where both are, as the weights of a transposed convolution may be read at each phase, the input is the one
// whose windows have more places.
func windowedProduct(v *ir.Value) *windowed {
	if v.Reduce == nil || v.Reduce.Op != ir.Sum || v.Body.Type != ir.F32 && !form.IsHalf(v.Body.Type) {
		return nil
	}
	factors := form.FactorsOf(v.Body)
	if len(factors) != 2 {
		return nil
	}
	a, b := form.WithoutCasts(factors[0]), form.WithoutCasts(factors[1])
	if a.Op != ir.OpLoad || b.Op != ir.OpLoad || a.Type != b.Type || !form.IsHalf(a.Type) && a.Type != ir.F32 {
		return nil
	}
	var best *windowed
	for _, sides := range [][2]*ir.Expr{{a, b}, {b, a}} {
		if w := windowOf(v, sides[1], sides[0]); w != nil && (v.Reduce.Where == nil || w.countsTaps(v)) {
			if p := productOfWindow(v, sides[0], w); p != nil && (best == nil || w.places() > best.input.places()) {
				best = p
			}
		}
	}
	return best
}

// productOfWindow divides the axes of a result among weights and a window; nil where the weights do not
// depend on each tap and the channel, or have no axis of their own.
func productOfWindow(v *ir.Value, weight *ir.Expr, w *window) *windowed {
	p := &windowed{v: v, weight: weight, input: w}
	if weight.Fill != nil && !form.IsZero(weight.Fill) {
		return nil
	}
	for _, r := range v.Reduce.Ranges {
		if !algebra.IsUnit(r) && (!ir.DependsOn(weight, r) || !ir.DependsOn(w.load, r)) {
			return nil
		}
	}
	for _, r := range v.Axes {
		inWeight, inInput := ir.DependsOn(weight, r), ir.DependsOn(w.load, r)
		switch {
		case inWeight && inInput:
			p.both = append(p.both, r)
			if w.strides(r) {
				return nil // the weights change from place to place
			}
		case inWeight:
			p.own = append(p.own, r)
		case !inInput && !algebra.IsUnit(r):
			return nil
		}
	}
	if len(p.own) == 0 {
		return nil
	}
	return p
}

// moves reports whether a window has several taps, or leaves elements out between its places.
func moves(w *window) bool {
	return slices.ContainsFunc(w.spans, func(s span) bool { return s.tap != nil || s.stride > 1 })
}

// moves reports whether the input is laid out for the sake of this product.
func (p *windowed) moves() bool { return moves(p.input) || p.input.unaligned() }

// strides reports whether windows move along an axis of the result.
func (w *window) strides(r *ir.Range) bool {
	return slices.ContainsFunc(w.spans, func(s span) bool { return s.output == r })
}

// worth reports whether a product is large enough for its operands to be laid out.
func (p *windowed) worth(sizes map[string]int64) bool {
	least := float64(windowWork)
	if !moves(p.input) {
		least = windowStill
	}
	work := p.work(sizes)
	return work >= least && work >= windowReuse*algebra.PointsAt(p.input.load.From.Axes, sizes) && p.large(sizes)
}

// large reports whether a product has rows and channels enough for tensor cores, and work enough for
// weights to be laid out. An input that lies ready for another product needs no more.
func (p *windowed) large(sizes map[string]int64) bool {
	channels := algebra.Estimate(p.input.channels().Extent, sizes)
	return algebra.PointsAt(p.own, sizes) >= windowRows && p.work(sizes) >= windowWork &&
		channels*windowPadding >= float64(p.align())
}

// work is the number of multiplications.
func (p *windowed) work(sizes map[string]int64) float64 {
	return algebra.PointsAt(p.v.Axes, sizes) * algebra.PointsAt(p.v.Reduce.Ranges, sizes)
}

// align is the elements of a whole access.
func (p *windowed) align() int64 { return int64(forecast.AccessBytes / p.weight.Type.Size()) }

// layOut rewrites the product over new values whose channels are last, and returns these. For
// multiply-adds of threads the rows are contiguous instead: the pixels of an input whose channels are
// planes are so already.
func (p *windowed) layOut(g *ir.Graph) (made []*ir.Value) {
	if p.exact {
		return p.layRows(g)
	}
	channel := p.input.channels()
	whole := roundedUp(channel.Extent, p.align(), g.Facts())
	if block := roundedUp(channel.Extent, forecast.LineBytes/int64(p.weight.Type.Size()), g.Facts()); p.inBlocks(block) {
		whole = block
	}
	columns := channel
	if !ir.SameSize(whole, channel.Extent) {
		columns = g.NewRange(channel.Name, whole)
	}
	taps := p.taps()
	weight, input := p.weight, p.input.load
	if w := p.layWeight(g, taps, columns); w != nil {
		weight, made = w, append(made, w.From)
	}
	if x := p.layInput(g, columns); x != nil {
		input, made = x, append(made, x.From)
	}
	if len(made) == 0 {
		return nil
	}
	body := p.v.Body
	p.v.Body = ir.Apply(ir.OpMul, ir.Cast(weight, body.Args[0].Type), ir.Cast(input, body.Args[1].Type)).At(body.Span)
	r := *p.v.Reduce
	r.Ranges = append(slices.Clone(taps), columns)
	p.v.Reduce = &r
	return made
}

// layRows rewrites the product over weights that are contiguous along the rows that only they depend on.
func (p *windowed) layRows(g *ir.Graph) []*ir.Value {
	order := slices.Concat(p.both, p.v.Reduce.Ranges, p.own)
	if p.weight.Fill == nil && readsInOrder(p.weight, order) {
		return nil
	}
	w := p.lay(g, "weight", p.weight, order, order[len(order)-1])
	body := p.v.Body
	factors := []*ir.Expr{body.Args[0], body.Args[1]}
	if form.WithoutCasts(factors[1]) == p.weight {
		slices.Reverse(factors)
	}
	p.v.Body = ir.Apply(ir.OpMul, ir.Cast(w, factors[0].Type), factors[1]).At(body.Span)
	return []*ir.Value{w.From}
}

// taps are the reduced ranges besides the channel, in the order of the input's axes.
func (p *windowed) taps() (out []*ir.Range) {
	for _, s := range p.input.spans {
		if s.tap != nil {
			out = append(out, s.tap)
		}
	}
	return out
}

// inBlocks reports whether channels should be padded to whole lines. Where windows leave elements out
// along two axes, the copy engine has no dim left to keep the channels of neighbours apart. It is false
// where that would add too many channels.
func (p *windowed) inBlocks(block *ir.Expr) bool {
	strided := 0
	for _, s := range p.input.spans {
		if s.stride > 1 {
			strided++
		}
	}
	channels := p.input.channels().Extent
	return strided == 2 && channels.Op == ir.OpConst && block.Int*3 <= channels.Int*4
}

// roundedUp is an extent, rounded up to a multiple of n.
func roundedUp(extent *ir.Expr, n int64, facts ir.Facts) *ir.Expr {
	if ir.Multiple(extent, n, facts) {
		return extent
	}
	return ir.Simplify(ir.Apply(ir.OpMul, algebra.CeilDiv(extent, n), ir.IntConst(n)), facts)
}

// layWeight is a load of a new value that holds the weights with taps and channels last, and zero for
// columns past the last channel; nil where the weights are so already.
func (p *windowed) layWeight(g *ir.Graph, taps []*ir.Range, columns *ir.Range) *ir.Expr {
	order := slices.Concat(p.both, p.own, taps, []*ir.Range{p.input.channels()})
	if columns == p.input.channels() && p.weight.Fill == nil && readsInOrder(p.weight, order) {
		return nil
	}
	return p.lay(g, "weight", p.weight, order, columns)
}

// layInput is a load of a new value that holds the input with channels last; nil where the input is so
// already.
func (p *windowed) layInput(g *ir.Graph, columns *ir.Range) *ir.Expr {
	w := p.input
	last := len(w.load.Args) - 1
	if columns == w.channels() && w.channel == last {
		return nil
	}
	var shape, at []*ir.Expr                   // shape of the new value, and where it is read
	from := make([]*ir.Expr, len(w.load.Args)) // where its elements are in the input
	outside := columns != w.channels()
	for d, a := range w.load.Args {
		if d == w.channel {
			continue
		}
		extent := w.load.From.Axes[d].Extent
		if s := w.strided(d); s != nil { // extents are whole strides, so that a tap reads one place of each
			whole := roundedUp(extent, s.stride, g.Facts())
			outside, extent = outside || !ir.SameSize(whole, extent), whole
		}
		shape, at = append(shape, extent), append(at, a)
	}
	axes := g.NewAxes(append(shape, columns.Extent))
	for d, k := 0, 0; d < len(from); d++ {
		from[d] = axes[last].At()
		if d != w.channel {
			from[d] = axes[k].At()
			k++
		}
	}
	value := p.adopt(g, "input", axes, loadWithin(w.load.From, from, outside))
	return ir.Load(value, append(at, columns.At()), w.load.Fill).At(w.load.Span)
}

// lay is a load of a new value that holds what another load reads over ranges, in their order. The last of
// the ranges is replaced by columns.
func (p *windowed) lay(g *ir.Graph, name string, load *ir.Expr, ranges []*ir.Range, columns *ir.Range) *ir.Expr {
	last := len(ranges) - 1
	at := append(slices.Clone(ranges[:last]), columns)
	var shape []*ir.Expr
	for _, r := range at {
		shape = append(shape, r.Extent)
	}
	axes, rename := g.NewAxes(shape), map[*ir.Range]*ir.Expr{}
	for d, r := range ranges {
		rename[r] = axes[d].At()
	}
	args := make([]*ir.Expr, len(load.Args))
	for d, a := range load.Args {
		args[d] = ir.Substitute(a, rename)
	}
	value := p.adopt(g, name, axes, loadWithin(load.From, args, columns != ranges[last] || load.Fill != nil))
	return ir.Load(value, ir.Indices(at), nil).At(load.Span)
}

func (p *windowed) adopt(g *ir.Graph, name string, axes []*ir.Range, body *ir.Expr) *ir.Value {
	return g.Adopt(&ir.Value{Name: p.v.Name + "_" + name, Type: body.Type, Axes: axes, Body: body, Origin: p.v.Origin, Parts: body.From.Parts})
}

// loadWithin is a load that gives zero outside the tensor, where outside says that it may be there.
func loadWithin(from *ir.Value, at []*ir.Expr, outside bool) *ir.Expr {
	if outside {
		return ir.Load(from, at, ir.Num(from.Type, 0))
	}
	return ir.Load(from, at, nil)
}

// readsInOrder reports whether a load reads a whole tensor with the given ranges as indices, in their
// order.
func readsInOrder(load *ir.Expr, ranges []*ir.Range) bool {
	var indices []*ir.Range
	for d, a := range load.Args {
		if algebra.IsUnit(load.From.Axes[d]) {
			continue
		}
		if a.Op != ir.OpRange || !ir.SameSize(a.Range.Extent, load.From.Axes[d].Extent) {
			return false
		}
		indices = append(indices, a.Range)
	}
	return slices.Equal(indices, algebra.Widened(ranges))
}

// isLaidOut reports whether a load is of an operand that a windowed product reads with channels last: a
// value made for that, which must not be computed again at each tap.
func isLaidOut(load *ir.Expr, reader *ir.Value) bool {
	if reader.Reduce == nil || load.From.IsInput() || load.From.Reduce != nil || len(load.Args) == 0 {
		return false
	}
	last := load.Args[len(load.Args)-1]
	if last.Op != ir.OpRange {
		return false
	}
	p := windowedProduct(reader)
	return p != nil && (moves(p.input) || reordered(p.input.load.From)) && (last.Range == p.input.channels() || slices.Contains(p.own, last.Range))
}

// reordered reports whether neighbours in an image are not contiguous in what it is read from.
func reordered(v *ir.Value) bool {
	if v.IsInput() {
		return false
	}
	last := v.Axes[len(v.Axes)-1]
	return len(v.Axes) > 3 && slices.ContainsFunc(ir.Loads(v.Body), func(l *ir.Expr) bool {
		return ir.DependsOn(l, last) && !ir.DependsOn(l.Args[len(l.Args)-1], last)
	})
}
