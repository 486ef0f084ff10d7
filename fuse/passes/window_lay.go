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
	return !p.exact && p.channelsLie(g) && p.weightLies(p.taps())
}

// channelsLie reports whether the channels of the input are last, in whole accesses.
func (p *windowed) channelsLie(g *ir.Graph) bool {
	return p.input.channel == len(p.input.load.Args)-1 && ir.Multiple(p.input.channels().Extent, p.align(), g.Facts())
}

// layRows rewrites the product over an input in planes, and weights that are contiguous along the rows that only they depend on.
func (p *windowed) layRows(g *ir.Graph) (made []*ir.Value) {
	if x := p.planes(g); x != nil {
		made = append(made, x.From)
		p.replace(p.input.load, x)
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

// layPlanes makes a product that reads its input as planes read copies where that is not so: of the input with the axes along
// which windows move last, in the order of the result's, and the channels before these; and of weights whose taps do not follow
// each other for each channel, unless threads hold them all. It returns the copies.
func (p *windowed) layPlanes(g *ir.Graph, sizes map[string]int64) (made []*ir.Value) {
	if x := p.planes(g); x != nil {
		made = append(made, x.From)
		p.replace(p.input.load, x)
	}
	if !p.rowByRow(sizes) && p.weightsAreTurned(g, sizes) {
		order := slices.Concat(p.both, p.own, []*ir.Range{p.input.channels()}, p.taps())
		w := p.lay(g, "weight", p.weight, order, order[len(order)-1])
		made = append(made, w.From)
		p.replace(p.weight, w)
	}
	return made
}

// replace puts a load in the place of an operand.
func (p *windowed) replace(operand, by *ir.Expr) {
	p.v.Body = ir.Rewrite(p.v.Body, func(e *ir.Expr) *ir.Expr {
		if e.Op == ir.OpLoad && ir.Equal(e, operand) {
			return by
		}
		return e
	})
}

// planes is a load of a new value that holds the input as planes; nil where the input is so already.
func (p *windowed) planes(g *ir.Graph) *ir.Expr {
	w := p.input
	place := func(d int) int { // of the result's axis that a dim of the input goes with
		return slices.IndexFunc(p.v.Axes, func(a *ir.Range) bool { return !algebra.IsUnit(a) && ir.DependsOn(w.load.Args[d], a) })
	}
	var order []int // of the input's dims but that of channels
	for d := range w.load.Args {
		if d != w.channel {
			order = append(order, d)
		}
	}
	moves := func(d int) bool { return slices.ContainsFunc(w.spans, func(s span) bool { return s.dim == d }) }
	first := slices.IndexFunc(order, moves)
	if first < 0 { // windows are points
		return nil
	}
	inOrder := slices.IsSortedFunc(order[first:], func(a, b int) int { return place(a) - place(b) })
	if inOrder && w.channel < order[first] {
		return nil
	}
	slices.SortStableFunc(order, func(a, b int) int { return place(a) - place(b) })
	order = slices.Insert(order, slices.IndexFunc(order, moves), w.channel)
	var shape, at []*ir.Expr
	for _, d := range order {
		shape, at = append(shape, w.load.From.Axes[d].Extent), append(at, w.load.Args[d])
	}
	axes, from := g.NewAxes(shape), make([]*ir.Expr, len(order))
	for k, d := range order {
		from[d] = axes[k].At()
	}
	return ir.Load(p.adopt(g, "planes", axes, ir.Load(w.load.From, from, nil)), at, w.load.Fill).At(w.load.Span)
}

// weightsAreTurned reports whether neighbouring taps of weights are further from each other than neighbouring channels, or, of few
// results, which threads fold line by line, channels further than these.
func (p *windowed) weightsAreTurned(g *ir.Graph, sizes map[string]int64) bool {
	if p.weight.Fill != nil {
		return false
	}
	order := append([]*ir.Range{p.input.channels()}, p.taps()...)
	if len(p.both) == 0 && algebra.PointsAt(p.own, sizes) < windowRows {
		order = slices.Concat(p.own, order)
	}
	facts := g.Facts()
	facts.Positive = true
	offset := ir.FlatOffset(p.weight.From.Shape(), p.weight.Args)
	var outer *ir.Expr
	for _, r := range algebra.Widened(order) {
		stride, ok := ir.Stride(offset, r, facts)
		if !ok {
			return false
		}
		if ir.Decide(ir.Apply(ir.OpLt, stride, ir.IntConst(0)), facts) == ir.True {
			stride = ir.Simplify(ir.Apply(ir.OpNeg, stride), facts)
		}
		if outer != nil && ir.Decide(ir.Apply(ir.OpLt, outer, stride), facts) == ir.True {
			return true
		}
		outer = stride
	}
	return false
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
	last := ir.Apply(ir.OpMul, ir.Apply(ir.OpSub, s.output.Extent, ir.IntConst(1)), ir.IntConst(s.stride))
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
	if last.Op != ir.OpRange || splitsDims(load.From) {
		return false
	}
	if holdsPatches(load, reader) || holdsWindows(load, reader) || besideWindows(load, reader) {
		return true
	}
	p := windowedProduct(reader)
	return p != nil && (moves(p.input) || reordered(p.input.load.From)) && (last.Range == p.input.channels() || slices.Contains(p.own, last.Range))
}

// splitsDims reports whether a value is a view that divides dims of a tensor into several: its elements are where they were.
func splitsDims(v *ir.Value) bool {
	if v.Body.Op != ir.OpLoad || v.Body.Fill != nil || len(v.Axes) <= len(v.Body.Args) {
		return false
	}
	rest := v.Axes
	for d, at := range v.Body.Args {
		n := 1
		for n < len(rest) && !ir.SameSize(algebra.Product(rest[:n]), v.Body.From.Axes[d].Extent) {
			n++
		}
		if len(rest) == 0 || !ir.SameIndex(at, placeOfDigits(rest[:n]), ir.Facts{}) {
			return false
		}
		rest = rest[n:]
	}
	return len(rest) == 0
}

// copiedOperands is, of each product whose windows are copied from the input as it is, that input, and the same of views between
// the two: threads copy elements, or lines of them, and compute nothing on the way, where a tile would compute each element at
// each tap. What such a product reads in another order than that of its rows and taps is copied before.
func copiedOperands(g *ir.Graph, sizes map[string]int64) map[*ir.Value][]*ir.Value {
	out := map[*ir.Value][]*ir.Value{}
	if !mayAddKernels(g) {
		return out
	}
	for _, v := range g.Values {
		p := windowedProduct(v)
		if p == nil || p.work(sizes) < windowWork || !moves(p.input) {
			continue
		}
		for _, l := range []*ir.Expr{p.weight, p.input.load} {
			if permutes(l.From) {
				out[v] = append(out[v], l.From)
			}
		}
		if p.exact = p.isExact(g); !p.rowByRow(sizes) && !p.staged(g, sizes) {
			continue
		}
		readers, from := []*ir.Value{v}, p.input.load.From
		for !from.IsInput() && from.Reduce == nil && from.Body.Op == ir.OpLoad && !permutes(from) {
			readers, from = append(readers, from), from.Body.From
		}
		for _, r := range readers {
			out[r] = append(out[r], from)
		}
	}
	return out
}

// permutes reports whether a value reads a tensor whose axes are its own in another order.
func permutes(v *ir.Value) bool {
	if v.IsInput() || v.Reduce != nil {
		return false
	}
	return slices.ContainsFunc(ir.Loads(v.Body), func(l *ir.Expr) bool {
		last := -1
		for _, at := range l.Args {
			d := slices.IndexFunc(v.Axes, func(a *ir.Range) bool { return ir.DependsOn(at, a) && !algebra.IsUnit(a) })
			if d >= 0 && d < last {
				return true
			}
			last = max(last, d)
		}
		return false
	})
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
