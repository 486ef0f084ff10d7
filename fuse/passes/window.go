package passes

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/forecast"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// Figures of windowed contractions whose operands are laid out for tensor cores. What that
// costs, an element of the input read and written and two more kernels, against gathers of
// single elements, pays for large products alone.
const (
	windowWork    = 1 << 23 // multiplications
	windowStill   = 1 << 29 // and of those whose windows are points, which could be read as they are
	windowRows    = 16      // elements of a result that share an input
	windowReuse   = 32      // multiplications of each element of the input
	windowPadding = 4       // times as many channels as there are, at most
	windowLine    = 128     // bytes of a block of channels
)

// layWindows gives the operands of windowed contractions on tensor cores values of their own,
// channels last: neighbours along the sum are then one access, whatever tap is read, and
// zeros outside the input and between its channels and a whole access are the same for all of
// it. Where an operand lies so already it stays. The sizes for which this decides are the
// program's defaults.
func layWindows(g *ir.Graph) {
	if !mayAddKernels(g) {
		return
	}
	sizes := algebra.DefaultSizes(g)
	insertBefore(g, func(v *ir.Value) []*ir.Value {
		p := windowedProduct(v)
		if p == nil || !moves(p.input) && !p.input.unaligned() || !p.worth(sizes) {
			return nil
		}
		p.exact = p.weight.Type == ir.F32 && !g.TF32
		return p.layOut(g)
	})
}

// windowed is a product of weights and an input that windows move over.
type windowed struct {
	v      *ir.Value
	exact  bool     // in f32, by multiply-adds of each thread
	weight *ir.Expr // a load
	input  *window
	own    []*ir.Range // axes of the result that weights alone have
	both   []*ir.Range // and those that both have
}

// windowedProduct describes a sum of products, one factor of which is read through a window; nil
// where v is none.
func windowedProduct(v *ir.Value) *windowed {
	if v.Reduce == nil || v.Reduce.Op != ir.Sum || v.Reduce.Where != nil || v.Body.Type != ir.F32 && !form.IsHalf(v.Body.Type) {
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
	for _, sides := range [][2]*ir.Expr{{a, b}, {b, a}} {
		if w := windowOf(v, sides[1], sides[0]); w != nil {
			if p := productOfWindow(v, sides[0], w); p != nil {
				return p
			}
		}
	}
	return nil
}

// productOfWindow divides the axes of a result among weights and a window; nil where weights
// do not have each tap and the channel, or no axis of their own.
func productOfWindow(v *ir.Value, weight *ir.Expr, w *window) *windowed {
	p := &windowed{v: v, weight: weight, input: w}
	if weight.Fill != nil && !form.IsZero(weight.Fill) {
		return nil
	}
	for _, r := range v.Reduce.Ranges {
		if !ir.DependsOn(weight, r) || !ir.DependsOn(w.load, r) {
			return nil
		}
	}
	for _, r := range v.Axes {
		inWeight, inInput := ir.DependsOn(weight, r), ir.DependsOn(w.load, r)
		switch {
		case inWeight && inInput:
			p.both = append(p.both, r)
			if w.strides(r) {
				return nil // weights that change from place to place
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

// moves reports whether a window has several places, or leaves some out.
func moves(w *window) bool {
	return slices.ContainsFunc(w.spans, func(s span) bool { return s.tap != nil || s.stride > 1 })
}

// strides reports whether an axis of the result is one that a window moves along.
func (w *window) strides(r *ir.Range) bool {
	return slices.ContainsFunc(w.spans, func(s span) bool { return s.output == r })
}

// worth reports whether a product is large enough for its operands to be laid out.
func (p *windowed) worth(sizes map[string]int64) bool {
	rows, columns := algebra.PointsAt(p.own, sizes), algebra.PointsAt(p.v.Reduce.Ranges, sizes)
	work := algebra.PointsAt(p.v.Axes, sizes) * columns
	read := algebra.PointsAt(p.input.load.From.Axes, sizes)
	channels := algebra.Estimate(p.input.channels().Extent, sizes)
	least := float64(windowWork)
	if !moves(p.input) {
		least = windowStill
	}
	return rows >= windowRows && work >= least && work >= windowReuse*read &&
		channels*windowPadding >= float64(p.align())
}

// align is the elements of a whole access.
func (p *windowed) align() int64 { return int64(forecast.AccessBytes / p.weight.Type.Size()) }

// layOut rewrites the product over values of its own, channels last, and returns those. Threads
// that multiply and add by themselves take rows side by side instead: pixels of an input whose
// channels are planes are that already.
func (p *windowed) layOut(g *ir.Graph) (made []*ir.Value) {
	if p.exact {
		return p.layRows(g)
	}
	channel := p.input.channels()
	whole := roundedUp(channel.Extent, p.align(), g.Facts())
	if block := roundedUp(channel.Extent, windowLine/int64(p.weight.Type.Size()), g.Facts()); p.inBlocks(block) {
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

// layRows rewrites the product over weights that lie along the rows that they alone have.
func (p *windowed) layRows(g *ir.Graph) []*ir.Value {
	order := slices.Concat(p.both, p.v.Reduce.Ranges, p.own)
	if p.weight.Fill != nil || readsInOrder(p.weight, order) {
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

// inBlocks reports whether channels should be whole lines: where windows leave places out along two
// axes, the copy engine has no dim left to tell the channels of neighbours apart, and few are added.
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

// layWeight is a load of a value that holds the weights with taps and channels last, zero for
// columns past the last channel; nil where they are that already.
func (p *windowed) layWeight(g *ir.Graph, taps []*ir.Range, columns *ir.Range) *ir.Expr {
	order := slices.Concat(p.both, p.own, taps, []*ir.Range{p.input.channels()})
	if columns == p.input.channels() && p.weight.Fill == nil && readsInOrder(p.weight, order) {
		return nil
	}
	return p.lay(g, "weight", p.weight, order, columns)
}

// layInput is a load of a value that holds the input with channels last; nil where it is that
// already.
func (p *windowed) layInput(g *ir.Graph, columns *ir.Range) *ir.Expr {
	w := p.input
	last := len(w.load.Args) - 1
	if columns == w.channels() && w.channel == last {
		return nil
	}
	var shape, at []*ir.Expr                   // of the new value
	from := make([]*ir.Expr, len(w.load.Args)) // where in the input its elements are
	outside := columns != w.channels()
	for d, a := range w.load.Args {
		if d == w.channel {
			continue
		}
		extent := w.load.From.Axes[d].Extent
		if s := w.strided(d); s != nil { // whole strides: what a tap reads is a place of each of them
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

// lay is a load of a new value that holds what another load reads over ranges, in their order;
// the last of them is replaced by columns.
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
	return g.Adopt(&ir.Value{Name: p.v.Name + "_" + name, Type: body.Type, Axes: axes, Body: body, Origin: p.v.Origin})
}

// loadWithin is a load that gives zero outside where it may be there.
func loadWithin(from *ir.Value, at []*ir.Expr, outside bool) *ir.Expr {
	if outside {
		return ir.Load(from, at, ir.Num(from.Type, 0))
	}
	return ir.Load(from, at, nil)
}

// readsInOrder reports whether a load reads a whole tensor, its axes walked by the given ranges
// in their order.
func readsInOrder(load *ir.Expr, ranges []*ir.Range) bool {
	var walked []*ir.Range
	for d, a := range load.Args {
		if algebra.IsUnit(load.From.Axes[d]) {
			continue
		}
		if a.Op != ir.OpRange || !ir.SameSize(a.Range.Extent, load.From.Axes[d].Extent) {
			return false
		}
		walked = append(walked, a.Range)
	}
	return slices.Equal(walked, algebra.Widened(ranges))
}

// isLaidOut reports whether a load is of an operand that a windowed product reads channels
// last: a value that was made for it, and is not computed again at each tap.
func isLaidOut(load *ir.Expr, reader *ir.Value) bool {
	if reader.Reduce == nil || load.From.IsInput() || load.From.Reduce != nil || len(load.Args) == 0 {
		return false
	}
	last := load.Args[len(load.Args)-1]
	if last.Op != ir.OpRange {
		return false
	}
	p := windowedProduct(reader)
	return p != nil && (moves(p.input) || reordered(load.From)) && (last.Range == p.input.channels() || slices.Contains(p.own, last.Range))
}

// reordered reports whether neighbours of an image are no neighbours in what it is read from.
func reordered(v *ir.Value) bool {
	last := v.Axes[len(v.Axes)-1]
	return len(v.Axes) > 3 && slices.ContainsFunc(ir.Loads(v.Body), func(l *ir.Expr) bool {
		return ir.DependsOn(l, last) && !ir.DependsOn(l.Args[len(l.Args)-1], last)
	})
}
