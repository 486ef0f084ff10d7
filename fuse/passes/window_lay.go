package passes

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/forecast"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// How the operands of a windowed contraction are laid out.

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
	p.sumInOrder(columns)
	return made
}

// sumInOrder makes the sum go through the columns of one tap after the other: neighbours of both operands, laid out.
func (p *windowed) sumInOrder(columns *ir.Range) {
	r := *p.v.Reduce
	r.Ranges = append(p.taps(), columns)
	p.v.Reduce = &r
}

// hasChannelsLast reports whether both operands of a product for tensor cores have their channels last, in whole accesses, as the
// program's tensors may. Nothing need be copied then.
func (p *windowed) hasChannelsLast(g *ir.Graph) bool {
	return !p.exact && p.channelsAreLast() && p.wholeChannels(g) && p.weightLies(p.taps())
}

// channelsAreLast reports whether the channels of the input are its last axis.
func (p *windowed) channelsAreLast() bool { return p.input.channel == len(p.input.load.Args)-1 }

// wholeChannels reports whether the channels are a whole number of accesses.
func (p *windowed) wholeChannels(g *ir.Graph) bool {
	return ir.Multiple(p.input.channels().Extent, p.align(), g.Facts())
}

// layRows rewrites the product over an input in planes, and weights that are contiguous along the rows that only they depend on.
func (p *windowed) layRows(g *ir.Graph) (made []*ir.Value) {
	if x := p.planes(g); x != nil {
		made = append(made, x.From)
		p.v.Body = replaceLoad(p.v.Body, p.input.load, x)
	}
	order := slices.Concat(p.both, p.v.Reduce.Ranges, p.own)
	if p.weight.Fill == nil && readsInOrder(p.weight, order) {
		return made
	}
	w := p.lay(g, "weight", p.weight, order, order[len(order)-1])
	body := p.v.Body
	factors := []*ir.Expr{body.Args[0], body.Args[1]}
	if form.WithoutCasts(factors[1]) == p.weight {
		slices.Reverse(factors)
	}
	p.v.Body = ir.Apply(ir.OpMul, ir.Cast(w, factors[0].Type), factors[1]).At(body.Span)
	return append(made, w.From)
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
		if s.stride > 1 && p.input.points(s.dim) == nil {
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
	if columns == p.input.channels() && p.weightLies(taps) {
		return nil
	}
	return p.lay(g, "weight", p.weight, p.weightOrder(taps), columns)
}

// weightOrder is the order of the weights' axes in which taps and channels are last.
func (p *windowed) weightOrder(taps []*ir.Range) []*ir.Range {
	return slices.Concat(p.both, p.own, taps, []*ir.Range{p.input.channels()})
}

// weightLies reports whether the weights are a whole tensor in that order.
func (p *windowed) weightLies(taps []*ir.Range) bool {
	return p.weight.Fill == nil && readsInOrder(p.weight, p.weightOrder(taps))
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
	outside, margins, picked := columns != w.channels(), map[int]*ir.Expr{}, map[int]*ir.Range{}
	for d, a := range w.load.Args {
		if d == w.channel {
			continue
		}
		extent := w.load.From.Axes[d].Extent
		if s := w.points(d); s != nil { // elements that no window reads are left out
			shape, at, picked[d] = append(shape, s.output.Extent), append(at, s.output.At()), s.output
			outside = outside || w.load.Fill != nil
			continue
		}
		if before, whole := p.padded(g, d, columns); whole != nil {
			a, extent, margins[d], outside = ir.Simplify(ir.Apply(ir.OpAdd, a, before), g.Facts()), whole, before, true
		} else if s := w.strided(d); s != nil { // extents are whole strides, so that a tap reads one place of each
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
			if o := picked[d]; o != nil {
				from[d] = ir.Substitute(w.load.Args[d], map[*ir.Range]*ir.Expr{o: from[d]})
			}
			if before := margins[d]; before != nil {
				from[d] = ir.Apply(ir.OpSub, from[d], before)
			}
			k++
		}
	}
	value := p.adopt(g, "input", axes, loadWithin(w.load.From, from, outside))
	return ir.Load(value, append(at, columns.At()), w.load.Fill).At(w.load.Span)
}

// padded is how many zeros come before the elements along a dim, and the extent with the zeros on both sides, where the
// windows of a line read neighbours in memory: those along the last dim, which then are one range with the taps, where
// that makes fewer steps of the sum. whole is nil for other dims, and where windows do not reach outside. It adds to
// the graph the sizes for which that is so.
func (p *windowed) padded(g *ir.Graph, dim int, columns *ir.Range) (before, whole *ir.Expr) {
	w := p.input
	at := slices.IndexFunc(w.spans, func(s span) bool { return s.dim == dim })
	if at < 0 || w.load.Fill == nil || slices.ContainsFunc(w.spans, func(s span) bool { return s.dim > dim }) {
		return nil, nil
	}
	s := w.spans[at]
	if s.tap == nil || s.dilation != 1 {
		return nil, nil
	}
	fewer := fewerSteps(s.tap.Extent, columns.Extent, w.load.Type)
	if n, ok := ir.EvalSize(fewer, algebra.DefaultSizes(g)); !ok || n == 0 {
		return nil, nil
	}
	first := ir.Simplify(ir.Substitute(w.load.Args[dim], map[*ir.Range]*ir.Expr{s.output: ir.IntConst(0), s.tap: ir.IntConst(0)}), g.Facts())
	if first.Op != ir.OpConst || first.Int >= 0 {
		return nil, nil
	}
	if fewer.Op != ir.OpConst {
		g.For = ir.Join(ir.OpOr, g.For, fewer)
	}
	before = ir.IntConst(-first.Int)
	last := ir.Apply(ir.OpMul, lastOf(s.output.Extent), ir.IntConst(s.stride))
	read := ir.Apply(ir.OpAdd, last, s.tap.Extent)
	held := ir.Apply(ir.OpAdd, w.load.From.Axes[dim].Extent, before)
	return before, roundedUp(ir.Simplify(ir.Apply(ir.OpMax, read, held), g.Facts()), s.stride, g.Facts())
}

// fewerSteps is the condition that the steps of a sum over taps and channels, each a line of memory, are fewer by a
// quarter where these are one range than where each tap begins a step of its own.
func fewerSteps(taps, channels *ir.Expr, t ir.DType) *ir.Expr {
	step := forecast.LineBytes / int64(t.Size())
	together := algebra.CeilDiv(ir.Apply(ir.OpMul, taps, channels), step)
	apart := ir.Apply(ir.OpMul, taps, algebra.CeilDiv(channels, step))
	return ir.Simplify(ir.Apply(ir.OpLe, ir.Apply(ir.OpMul, ir.IntConst(4), together), ir.Apply(ir.OpMul, ir.IntConst(3), apart)), ir.Facts{})
}

// lay is a load of a new value that holds what another load reads over ranges, in their order. The last of
// the ranges is replaced by columns.
func (p *windowed) lay(g *ir.Graph, name string, load *ir.Expr, ranges []*ir.Range, columns *ir.Range) *ir.Expr {
	value := layOver(g, p.v, name, load, ranges, columns.Extent)
	at := append(slices.Clone(ranges[:len(ranges)-1]), columns)
	return ir.Load(value, ir.Indices(at), nil).At(load.Span)
}

// layOver is a new value, for v, that holds what a load reads over ranges, in their order. The last of its axes has the given
// extent, with zeros behind the last of the ranges.
func layOver(g *ir.Graph, v *ir.Value, name string, load *ir.Expr, ranges []*ir.Range, extent *ir.Expr) *ir.Value {
	var shape []*ir.Expr
	for _, r := range ranges {
		shape = append(shape, r.Extent)
	}
	last := len(ranges) - 1
	outside := load.Fill != nil || !ir.SameSize(extent, shape[last])
	shape[last] = extent
	axes, rename := g.NewAxes(shape), map[*ir.Range]*ir.Expr{}
	for d, r := range ranges {
		rename[r] = axes[d].At()
	}
	args := make([]*ir.Expr, len(load.Args))
	for d, a := range load.Args {
		args[d] = ir.Substitute(a, rename)
	}
	return adoptFor(g, v, name, axes, loadWithin(load.From, args, outside))
}

func (p *windowed) adopt(g *ir.Graph, name string, axes []*ir.Range, body *ir.Expr) *ir.Value {
	return adoptFor(g, p.v, name, axes, body)
}

// adoptFor adds to a graph a value that holds elements of a tensor for v.
func adoptFor(g *ir.Graph, v *ir.Value, name string, axes []*ir.Range, body *ir.Expr) *ir.Value {
	return g.Adopt(&ir.Value{Name: v.Name + "_" + name, Type: body.Type, Axes: axes, Body: body, Origin: v.Origin, Parts: body.From.Parts})
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
	indices, ok := wholeIndices(load)
	return ok && slices.Equal(indices, algebra.Widened(ranges))
}

// wholeIndices are the ranges with which a load reads a whole tensor, each element once: one for each axis of several elements.
// ok is false for other loads, such as those of windows.
func wholeIndices(load *ir.Expr) (indices []*ir.Range, ok bool) {
	for d, a := range load.Args {
		if algebra.IsUnit(load.From.Axes[d]) {
			continue
		}
		if a.Op != ir.OpRange || slices.Contains(indices, a.Range) || !ir.SameSize(a.Range.Extent, load.From.Axes[d].Extent) {
			return nil, false
		}
		indices = append(indices, a.Range)
	}
	return indices, true
}
