package passes

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/forecast"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// A windowed contraction is a sum of products over channels and over the places (taps) of a window. One
// factor is weights, with an element for each tap and channel; the other is an input, which is read where
// the window of each result is. A convolution of any number of dimensions is one.

// window is how the input of a windowed contraction is read.
type window struct {
	load    *ir.Expr // of the input
	plain   []int    // axes of the input that are indexed by an axis of the result alone
	spans   []span   // axes along which windows move
	channel int      // axis that is summed over besides the taps
	shared  bool     // several products want the input laid out: they read one value
}

// span is one axis of the input along which windows move. Output o reads tap t at o*stride + t*dilation,
// plus where windows begin.
type span struct {
	dim              int // of the input
	output           *ir.Range
	tap              *ir.Range // nil where the window has one place
	stride, dilation int64
}

// windowOf describes how a value reads an input that it multiplies by weights; nil where that is no
// window, or where the input is not zero outside. Axes of the result on which the weights depend too, as
// phases are, may say where windows begin.
func windowOf(v *ir.Value, load, weight *ir.Expr) *window {
	if load.Op != ir.OpLoad || load.Fill != nil && !form.IsZero(load.Fill) {
		return nil
	}
	w := &window{load: load, channel: -1}
	reduced, seen := algebra.RangeSet(v.Reduce.Ranges), map[*ir.Range]bool{}
	for d, at := range load.Args {
		var output, tap []*ir.Range
		for _, r := range algebra.AllRanges(v) {
			switch {
			case !ir.DependsOn(at, r) || !reduced[r] && ir.DependsOn(weight, r):
				continue
			case seen[r]:
				return nil // two axes of the input move together
			case reduced[r]:
				tap = append(tap, r)
			default:
				output = append(output, r)
			}
			seen[r] = true
		}
		if !w.add(d, at, output, tap) {
			return nil
		}
	}
	if w.channel < 0 || !moves(w) && slices.ContainsFunc(w.plain, func(d int) bool { return ir.DependsOn(weight, load.Args[d].Range) }) {
		return nil // a batched product of two sides has no window that moves
	}
	return w
}

// add describes axis d of the input, whose index depends on the given axes of the result and on the given
// reduced ranges. It returns false where windows are not read so.
func (w *window) add(d int, at *ir.Expr, output, tap []*ir.Range) bool {
	switch {
	case len(output) > 1 || len(tap) > 1:
		return false
	case len(output) == 0 && len(tap) == 1:
		ok := w.channel < 0 && at.Op == ir.OpRange && ir.SameSize(at.Range.Extent, w.load.From.Axes[d].Extent)
		w.channel = d
		return ok
	case len(tap) == 0 && at.Op == ir.OpRange && ir.SameSize(at.Range.Extent, w.load.From.Axes[d].Extent):
		w.plain = append(w.plain, d) // the axis may be that of groups, on which weights depend too
		return true
	case len(output) == 0 && len(tap) == 0 && algebra.IsUnit(w.load.From.Axes[d]):
		return true // a batch of one
	case len(output) == 0:
		return false // a plane of the input, as in a slice
	}
	s := span{dim: d, output: output[0]}
	var ok bool
	if s.stride, ok = constantStride(at, s.output); !ok {
		return false
	}
	if len(tap) == 1 {
		s.tap = tap[0]
		if s.dilation, ok = constantStride(at, s.tap); !ok || s.leaps() {
			return false
		}
	}
	w.spans = append(w.spans, s)
	return true
}

// leaps reports whether each tap is behind all places of the one before it, so that no two windows share an element: the axis
// then holds several rows, as it does where heads of attention are joined, and its taps are one of these each.
func (s *span) leaps() bool {
	places := s.output.Extent
	return places.Op == ir.OpConst && places.Int > 1 && s.dilation >= s.stride*places.Int
}

// constantStride is the stride of an index along a range where that is a positive constant.
func constantStride(at *ir.Expr, r *ir.Range) (int64, bool) {
	stride, ok := coefficient(at, r)
	if !ok || stride < 1 {
		return 0, false
	}
	return stride, true
}

// channels is the range that the input is summed over besides the taps.
func (w *window) channels() *ir.Range { return w.load.Args[w.channel].Range }

// countsTaps reports whether the condition of a sum says which of the taps are absent, by the axes along which no
// windows move: at phases of a transposed convolution.
func (w *window) countsTaps(v *ir.Value) bool {
	counts := form.TapCounts(v.Reduce.Where, v.Reduce.Ranges, ir.Facts{})
	for r, n := range counts {
		tap := func(s span) bool { return s.tap == r }
		moves := func(s span) bool { return ir.DependsOn(n, s.output) }
		if !slices.ContainsFunc(w.spans, tap) || slices.ContainsFunc(w.spans, moves) {
			return false
		}
	}
	return counts != nil
}

// places is the number of places of a window, where symbols are large.
func (w *window) places() float64 {
	n := 1.0
	for _, s := range w.spans {
		n *= extentOf(s.output)
	}
	return n
}

// before reports whether the window is that of a product's input rather than another one.
func (w *window) before(other *window) bool {
	if moves(w) || moves(other) {
		return w.places() > other.places()
	}
	return len(w.plain)+len(w.spans) > len(other.plain)+len(other.spans)
}

// strided is the span of an axis of the input between whose windows elements are left out; nil for other
// axes.
func (w *window) strided(dim int) *span {
	for i, s := range w.spans {
		if s.dim == dim && s.stride > 1 {
			return &w.spans[i]
		}
	}
	return nil
}

// points is the span of an axis along which windows have one place each and leave elements out between these, so that the input
// can be laid out without them; nil for other axes.
func (w *window) points(dim int) *span {
	s := w.strided(dim)
	if s == nil || s.tap != nil || w.shared || len(w.load.Args) <= 3 {
		return nil
	}
	if free := ir.FreeRanges(w.load.Args[dim]); len(free) != 1 || !free[s.output] {
		return nil // such as a phase
	}
	return s
}

// unaligned reports whether the channels of an input are planes not all of which begin at a whole access, at some
// sizes. Only with channels last can such an input be read in whole accesses. rest is how many elements of a plane are
// behind its last whole access.
func (w *window) unaligned(sizes map[string]int64, facts ir.Facts) (rest *ir.Expr, unaligned bool) {
	if len(w.load.Args) <= 3 {
		return nil, false
	}
	plane := algebra.Product(w.load.From.Axes[w.channel+1:])
	n, ok := ir.EvalSize(plane, sizes)
	rest = behindAccesses(plane, w.load.Type)
	access := int64(forecast.AccessBytes / w.load.Type.Size())
	return rest, ok && n > 1 && n%access != 0 && !ir.Multiple(plane, access, facts)
}
