package explain

import (
	"math"
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/forecast"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// loopShared is how many blocks of a multiprocessor use what one of them has read while it is in that multiprocessor's cache. It is fitted to
// one product, 2048x2048x1024 in bf16 under a condition, which took 0.71 ms; the estimate is 0.78.
const loopShared = 2

// loopRate is the operations a second of matrix products that loops compute, which keep no tiles on chip: every row reads its
// factors from the L2 cache. What is not read from there bounds nothing.
func (x *explainer) loopRate(k *ir.Kernel, v *ir.Variant) float64 {
	m := v.Schedule.Mapping
	if v.Contract != nil || v.Attend != nil || v.Stencil != nil || m != ir.FlatMapping && m != ir.RowMapping {
		return math.Inf(1)
	}
	most := 0.0
	for _, u := range k.Members {
		if form.IsMatrixProduct(u) && !form.OnlyForNaN(u.Reduce.Where, u.Reduce.Ranges) {
			most = max(most, x.termBytes(k, v, u))
		}
	}
	return 2 / most * loopShared * forecast.BytesL2 * float64(x.device.SMs) * forecast.Clock
}

// termBytes is the bytes that a term of a product takes from the L2 cache. Neighbouring rows of a block share what does not depend on their
// range. Tensors that fit a multiprocessor, and windows, which lie over each other, are read from its own cache.
func (x *explainer) termBytes(k *ir.Kernel, v *ir.Variant, product *ir.Value) (bytes float64) {
	s := v.Schedule
	beside := s.Threads / max(1, s.ColThreads) * max(1, s.Vector)
	if s.Mapping == ir.RowMapping {
		beside = max(1, s.Threads/max(1, s.RowThreads))
	}
	var lane *ir.Range
	if len(k.Rows) > 0 {
		lane = algebra.Innermost(k.Rows)
	}
	summed := algebra.RangeSet(product.Reduce.Ranges)
	for _, l := range ir.Loads(product.Body) {
		window := slices.ContainsFunc(l.Args, func(at *ir.Expr) bool { return at.Op != ir.OpRange && algebra.DependsOnAny(at, summed) })
		size, known := x.eval(algebra.Bytes(l.From))
		if window || !known || size <= int64(x.device.SharedBlock) || !algebra.DependsOnAny(l, summed) {
			continue
		}
		if own := float64(l.Type.Size()); lane != nil && ir.DependsOn(l, lane) {
			bytes += own
		} else {
			bytes += own / float64(beside)
		}
	}
	return bytes
}
