package passes

import (
	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/forecast"
	"github.com/fusec/fusec/ir"
)

// joinOuter joins the outermost ranges of a reduction, as the images and channels of a slice, until there are blocks enough for the
// points of the one that is cut. The innermost stays, so that blocks read along memory. It reports whether it joined any.
func (s *splitter) joinOuter(v *ir.Value) bool {
	if v.Reduce.Where != nil {
		return false
	}
	ranges, blocks, n := v.Reduce.Ranges, algebra.PointsAt(v.Axes, s.sizes), 0
	for ; n < len(ranges)-1 && blocks < forecast.SplitBlocks; n++ {
		blocks *= algebra.Estimate(ranges[n].Extent, s.sizes)
	}
	if n < 2 {
		return false
	}
	r := *v.Reduce
	one := s.g.NewRange(ranges[0].Name, algebra.Product(ranges[:n]))
	v.Body = ir.Substitute(v.Body, ir.Digits(ranges[:n], one.At()))
	r.Ranges = append([]*ir.Range{one}, ranges[n:]...)
	v.Reduce = &r
	return true
}
