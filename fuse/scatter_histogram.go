package fuse

import (
	"math"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/forecast"
	"github.com/fusec/fusec/ir"
)

// If few rows share the key of a place (one row in a histogram), making a list of columns for each place
// costs more than folding them. In HistogramMapping a block keeps the running values of many places, and
// folds each column into them as soon as it is read. The columns are cut into chunks, so that there are
// enough blocks.

const histogramThreads = 128

// histograms makes the bodies for places whose key few rows share, where the estimate says that no other mapping is faster.
func (lo scatterKernel) histograms(sections []*ir.Section) []*ir.Variant {
	s := lo.scatter(sections[0].Folds)
	lanes, to := algebra.Product(s.Lanes(lo.k.Rows)), s.To.Extent
	when := algebra.And(algebra.AtLeastSize(lanes, 1), algebra.AtMostSize(lanes, forecast.HistogramLanes))
	when = algebra.And(when, algebra.And(algebra.AtLeastSize(to, forecast.HistogramPlaces), algebra.AtMostSize(to, math.MaxInt32)))
	bytes := 0
	for _, f := range sections[0].Folds {
		bytes += forecast.RunningBytes(f.Op, f.Result.Type)
	}
	many := algebra.AtLeastSize(ir.Simplify(ir.Apply(ir.OpMul, to, lanes), ir.Facts{}), forecast.HistogramMany)
	tile := func(rows int, own *ir.Expr) []*ir.Variant {
		own = algebra.And(algebra.And(own, when), lo.fastHistogram(s, rows))
		return lo.aligned(along{sections: sections, lane: nil, vector: 1}, false, func(vector int) (ir.Schedule, *ir.Expr) {
			return ir.Schedule{Mapping: ir.HistogramMapping, Threads: histogramThreads, Vector: vector, TileM: rows}, own
		})
	}
	out := append(tile(2*forecast.RunningRows(bytes), many), tile(forecast.RunningRows(bytes), nil)...)
	for _, v := range out {
		v.Scatter = lo.scatter(v.Sections[0].Folds)
	}
	return out
}

// fastHistogram is the condition that running values of so many rows in a block are faster than a loop over all columns, and than
// bins where there are any.
func (lo scatterKernel) fastHistogram(s *ir.Scatter, rows int) *ir.Expr {
	sizes := lo.scatterSizes(s)
	when := lo.scatterPays(sizes.Histogram(rows))
	if len(s.Batch) > 0 {
		return when
	}
	faster := ir.Apply(ir.OpLe, sizes.Histogram(rows), sizes.Binned())
	for _, unbinned := range []*ir.Expr{
		algebra.AtMostSize(sizes.Columns, forecast.ScatterOnce-1),
		algebra.AtMostSize(sizes.To, int64(forecast.BinFew-1)),
		ir.Apply(ir.OpLt, scaledSize(sizes.To, forecast.ScatterBinned), sizes.Columns),
	} {
		faster = ir.Apply(ir.OpOr, faster, unbinned)
	}
	return algebra.And(when, ir.Simplify(faster, ir.Facts{}))
}
