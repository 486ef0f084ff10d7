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
	windowStill   = 1 << 25 // the same where windows are points, so that the input could be read unchanged
	windowRows    = 8       // least elements of a result that share an element of the input,
	windowFew     = 2       // and where there are channels enough for a step of tensor cores,
	windowStep    = 32      // so many
	windowReuse   = 32      // multiplications of each element of the input,
	windowFewer   = 16      // and where windows have several taps, which are read again and again without it
	windowShort   = 4       // most channels of an input that is read as it is where sums are short
	windowPadding = 4       // most channels after padding, as a multiple of those there are
)

// gathers is from how many elements of windows, which tiles would gather one by one, an input is laid out whatever is computed from them:
// so many for each of the input, and so many more for two launches. Threads copy elements of 32 bits to shared memory
// without a register, three to four times as fast as those of 16 bits.
var gathers = map[int]struct{ each, launches float64 }{2: {0.5, 1 << 20}, 4: {3, 1 << 22}}

// gatherTile is the windows of a tile that gathers them one by one.
const gatherTile = 64

// stencilReads is from how many reads of each element of the input threads read windows of few results line by line.
const stencilReads = 2

// Figures of products whose input is read as it lies, by blocks that copy what their windows cover.
const (
	haloOwn     = 64      // most channels of the results,
	haloExact   = 32      // the same in multiply-adds,
	haloBoth    = 1 << 10 // most of these times those of the input,
	haloMany    = 32      // of so many results a sum in f32 should not be short,
	haloWeights = 1 << 15 // most bytes of weights in shared memory where planes come in rounds,
	haloFull    = 1 << 14 // and least places then
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
	products, laid := map[*ir.Value]*windowed{}, map[*ir.Value]int{} // laid is how many products want an input laid out
	inPlanes := map[*ir.Value]*windowed{}                            // those that read theirs from planes
	for _, v := range g.Values {
		turnTaps(v)
		if p := windowedProduct(v); p != nil {
			if p.exact = p.isExact(g); p.rowByRow(sizes) {
				inPlanes[v] = p
				continue
			}
			if p.staged(g, sizes) {
				p.channelsFirst()
				inPlanes[v] = p
				continue
			}
			if p.hasChannelsLast(g) {
				p.sumInOrder(p.input.channels())
			}
			products[v] = p
			if p.moves(g, sizes) && p.worth(sizes) && !p.exact {
				laid[p.input.load.From]++
			}
		}
	}
	for _, p := range products {
		p.input.shared = laid[p.input.load.From] > 1
	}
	insertBefore(g, func(v *ir.Value) []*ir.Value {
		p := products[v]
		switch {
		case inPlanes[v] != nil:
			return inPlanes[v].layPlanes(g, sizes)
		case p == nil:
			return nil
		case p.moves(g, sizes) && p.worth(sizes), laid[p.input.load.From] > 0 && p.large(sizes):
		case p.work(sizes) >= windowWork && len(p.taps()) > 0 && !p.hasChannelsLast(g): // threads read such windows one by one
			return p.layPlanes(g, sizes)
		default:
			return nil
		}
		p.laidFor(g, sizes)
		if columns := p.patches(); columns != nil {
			return p.layPatches(g, columns)
		}
		if p.unfolds(sizes) {
			return p.layUnfolded(g)
		}
		return p.layOut(g)
	})
	readLaidOut(g)
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
// whose windows have more places; of two whose windows do not move, the one with more axes, as images have beside their channels.
func windowedProduct(v *ir.Value) *windowed {
	factors := loadsMultiplied(v)
	if factors == nil || v.Body.Type != ir.F32 && !form.IsHalf(v.Body.Type) {
		return nil
	}
	a, b := factors[0], factors[1]
	if a.Type != b.Type || !form.IsHalf(a.Type) && a.Type != ir.F32 {
		return nil
	}
	var best *windowed
	for _, sides := range [][2]*ir.Expr{{a, b}, {b, a}} {
		if w := windowOf(v, sides[1], sides[0]); w != nil && (v.Reduce.Where == nil || w.countsTaps(v)) {
			if p := productOfWindow(v, sides[0], w); p != nil && (best == nil || w.before(best.input)) {
				best = p
			}
		}
	}
	return best
}

// loadsMultiplied are the two loads of which a value sums the products; nil for other values.
func loadsMultiplied(v *ir.Value) []*ir.Expr {
	if v.Reduce == nil || v.Reduce.Op != ir.Sum {
		return nil
	}
	factors := form.FactorsOf(v.Body)
	if len(factors) != 2 {
		return nil
	}
	a, b := form.WithoutCasts(factors[0]), form.WithoutCasts(factors[1])
	if a.Op != ir.OpLoad || b.Op != ir.OpLoad {
		return nil
	}
	return []*ir.Expr{a, b}
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

// moves reports whether a window has several taps, leaves elements out between its places, or reaches outside of the input.
func moves(w *window) bool {
	reaches := func(s span) bool { return w.load.Fill != nil || s.tap != nil || s.stride > 1 }
	return slices.ContainsFunc(w.spans, reaches)
}

// moves reports whether the input is laid out for the sake of this product, at some sizes.
func (p *windowed) moves(g *ir.Graph, sizes map[string]int64) bool {
	_, unaligned := p.input.unaligned(sizes, g.Facts())
	return unaligned || moves(p.input)
}

// laidFor adds to a graph the sizes for which the input is laid out: where windows are points, these are the sizes of
// planes that are no whole accesses.
func (p *windowed) laidFor(g *ir.Graph, sizes map[string]int64) {
	rest, unaligned := p.input.unaligned(sizes, g.Facts())
	if unaligned && !moves(p.input) && rest.Op != ir.OpConst {
		g.For = ir.Join(ir.OpOr, g.For, ir.Apply(ir.OpNe, rest, ir.IntConst(0)))
	}
}

// strides reports whether windows move along an axis of the result.
func (w *window) strides(r *ir.Range) bool {
	return slices.ContainsFunc(w.spans, func(s span) bool { return s.output == r })
}

// worth reports whether a product is large enough for its operands to be laid out. Points of a few channels, which are one
// access laid out, are sums too short for tensor cores: neighbouring threads read neighbours of each channel as it is.
func (p *windowed) worth(sizes map[string]int64) bool {
	least := float64(windowWork)
	if !moves(p.input) {
		if least = windowStill; algebra.Estimate(p.input.channels().Extent, sizes) <= float64(p.align()) {
			return false
		}
	}
	if p.reachesOnly() && p.fewColumns() {
		return false // threads read such rows one by one
	}
	reuse := float64(windowReuse)
	if p.few(sizes) && slices.ContainsFunc(p.input.spans, func(s span) bool { return s.tap != nil }) {
		reuse = windowFewer
	}
	work := p.work(sizes)
	return work >= least && p.large(sizes) && (work >= reuse*algebra.PointsAt(p.input.load.From.Axes, sizes) || p.gathers(sizes))
}

// gathers reports whether tiles would gather so many elements of windows that laying the input out takes less time, although
// few results share each.
func (p *windowed) gathers(sizes map[string]int64) bool {
	if p.exact || !moves(p.input) || p.fewColumns() {
		return false
	}
	rows, input := algebra.PointsAt(p.own, sizes), algebra.PointsAt(p.input.load.From.Axes, sizes)
	elements, least := p.work(sizes)/rows, gathers[p.weight.Type.Size()]
	if tiles := algebra.PointsAt(p.v.Axes, sizes) / rows / gatherTile; tiles < forecast.FullDevice/forecast.MostSplits {
		elements *= forecast.FullDevice / forecast.MostSplits / max(1, tiles) // by the multiprocessors that have a tile
	}
	return elements >= least.each*input+least.launches && (rows >= windowRows || elements < stencilReads*input)
}

// reachesOnly reports whether windows are points, some of which are outside of the input.
func (p *windowed) reachesOnly() bool {
	return p.input.load.Fill != nil && !slices.ContainsFunc(p.input.spans, func(s span) bool { return s.tap != nil || s.stride > 1 })
}

// fewColumns reports whether a sum is so short that threads read windows row by row.
func (p *windowed) fewColumns() bool {
	columns := algebra.Product(p.v.Reduce.Ranges)
	return columns.Op == ir.OpConst && columns.Int <= form.FewColumns
}

// large reports whether a product has rows and channels enough for tensor cores, and work enough for
// weights to be laid out. An input that lies ready for another product needs no more.
func (p *windowed) large(sizes map[string]int64) bool {
	channels := algebra.Estimate(p.input.channels().Extent, sizes)
	return (algebra.PointsAt(p.own, sizes) >= windowRows || p.few(sizes)) && p.work(sizes) >= windowWork &&
		channels*windowPadding >= float64(p.align())
}

// isExact reports whether a product is computed in f32, by multiply-adds.
func (p *windowed) isExact(g *ir.Graph) bool { return p.weight.Type == ir.F32 && !g.TF32 }

// rowByRow reports whether threads read windows row by row, for tensor cores.
func (p *windowed) rowByRow(sizes map[string]int64) bool { return !p.exact && p.short(sizes) }

// short reports whether a sum is so short, and of so few channels, that threads read windows row by row, from the input as
// it is: laid out it would be padded to several times its size.
func (p *windowed) short(sizes map[string]int64) bool {
	channels := p.input.channels().Extent
	return p.fewColumns() && channels.Op == ir.OpConst && channels.Int <= windowShort &&
		p.v.Reduce.Where == nil && moves(p.input) && algebra.PointsAt(p.own, sizes) >= windowRows
}

// staged reports whether blocks copy what windows cover from planes, since there are few channels: laid out with these last, the
// input would be written and read once more, for copies of parts of lines. One whose channels are last already is read so, where these
// are whole accesses or those of the result are last too.
func (p *windowed) staged(g *ir.Graph, sizes map[string]int64) bool {
	channels, own := algebra.Estimate(p.input.channels().Extent, sizes), algebra.PointsAt(p.own, sizes)
	fits := channels <= form.HaloPlanes && own <= haloOwn && channels*own <= haloBoth
	if p.exact {
		fits = own <= haloExact
	}
	if !fits || own < form.HaloRows || p.v.Reduce.Where != nil || p.work(sizes) < windowWork {
		return false
	}
	if !p.exact && p.channelsAreLast() && (p.wholeChannels(g) || !p.alongPixels()) {
		return false
	}
	taps := int64(1)
	for _, s := range p.input.spans {
		if s.tap != nil && s.tap.Extent.Op != ir.OpConst {
			return false
		}
		if s.tap != nil {
			taps *= s.tap.Extent.Int
		}
	}
	if p.weight.Type == ir.F32 && !p.exact && own > haloMany && channels*float64(taps) <= form.FewColumns {
		return false // measured: as fast laid out, and slower where a reduction follows
	}
	return taps > 1 && p.divides(taps, own, sizes)
}

// alongPixels reports whether neighbours in the result are neighbouring windows.
func (p *windowed) alongPixels() bool {
	axes := algebra.Widened(p.v.Axes)
	return len(axes) > 0 && p.input.strides(axes[len(axes)-1])
}

// divides reports whether the columns of a product, which are so many taps of each channel, are few enough for shared
// memory, or can be divided at channels, and then are few enough beside so many rows of weights, for places enough to fill
// the device.
func (p *windowed) divides(taps int64, own float64, sizes map[string]int64) bool {
	channel := p.input.channels()
	if n := channel.Extent; n.Op == ir.OpConst && n.Int*taps <= form.HaloColumns(p.weight.Type) {
		return true
	}
	bytes := float64(2*p.align()*taps*int64(p.weight.Type.Size())) * own
	return bytes <= haloWeights && algebra.PointsAt(p.v.Axes, sizes) >= own*haloFull
}

// channelsFirst makes the channels the outermost range of the sum, whose order is open: planes may then come in rounds.
func (p *windowed) channelsFirst() {
	channel := p.input.channels()
	rest := slices.DeleteFunc(slices.Clone(p.v.Reduce.Ranges), func(r *ir.Range) bool { return r == channel })
	p.v.Reduce.Ranges = append([]*ir.Range{channel}, rest...)
}

// few reports whether a product has few rows, but channels enough for tensor cores all the same.
func (p *windowed) few(sizes map[string]int64) bool {
	rows := algebra.PointsAt(p.own, sizes)
	return !p.exact && rows >= windowFew && rows < windowRows && algebra.Estimate(p.input.channels().Extent, sizes) >= windowStep
}

// work is the number of multiplications.
func (p *windowed) work(sizes map[string]int64) float64 {
	return algebra.PointsAt(p.v.Axes, sizes) * algebra.PointsAt(p.v.Reduce.Ranges, sizes)
}

// align is the elements of a whole access.
func (p *windowed) align() int64 { return int64(forecast.AccessBytes / p.weight.Type.Size()) }
