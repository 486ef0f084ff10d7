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

// Figures of the histogram mapping.
const (
	histogramThreads = 128
	histogramMany    = 1 << 18 // with more rows than this a block takes twice as many, so that fewer blocks read all keys
)

// histograms makes the bodies for places whose key few rows share.
func (lo scatterKernel) histograms(sections []*ir.Section) []*ir.Variant {
	s := lo.scatter(sections[0].Folds)
	lanes, to := algebra.Product(s.Lanes(lo.k.Rows)), s.To.Extent
	when := algebra.And(algebra.AtLeastSize(lanes, 1), algebra.AtMostSize(lanes, forecast.HistogramLanes))
	when = algebra.And(when, algebra.And(algebra.AtLeastSize(to, forecast.HistogramPlaces), algebra.AtMostSize(to, math.MaxInt32)))
	when = algebra.And(when, lo.scatterPays())
	bytes := 0
	for _, f := range sections[0].Folds {
		bytes += forecast.RunningBytes(f.Op, f.Result.Type)
	}
	many := algebra.And(when, algebra.AtLeastSize(ir.Simplify(ir.Apply(ir.OpMul, to, lanes), ir.Facts{}), histogramMany))
	tile := func(rows int, when *ir.Expr) []*ir.Variant {
		return lo.aligned(along{sections: sections, lane: nil, vector: 1}, false, func(vector int) (ir.Schedule, *ir.Expr) {
			return ir.Schedule{Mapping: ir.HistogramMapping, Threads: histogramThreads, Vector: vector, TileM: rows}, when
		})
	}
	out := append(tile(2*forecast.RunningRows(bytes), many), tile(forecast.RunningRows(bytes), when)...)
	for _, v := range out {
		v.Scatter = lo.scatter(v.Sections[0].Folds)
	}
	return out
}
