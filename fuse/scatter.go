package fuse

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/forecast"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// A fold over the columns that match the row's place by their key, as in
//
//	y[v, d] = sum[n where index[n] == v] x[n, d]
//
// is a scatter, written from the side of the places that columns go to. Gradients of embeddings, segment
// sums and histograms have this form. Computed as written, each row reads all columns. The scatter
// mappings read each key once for many places, and each column only for the place that it goes to.

// Figures of the scatter mappings.
const (
	scatterThreads = 256
	scatterBlocks  = forecast.ScatterBlocks // blocks on a multiprocessor, at 64 registers a thread
	scatterOnce    = forecast.ScatterOnce   // most columns whose keys a block reads at once
	scatterParts   = 2                      // vectors of a thread for more columns than that
	scatterWords   = 32                     // most registers of a thread for running values; for more than half of these, half as many blocks
)

// With more words of running values for each element than scatterMany, a thread has one vector at a time.
const scatterMany = forecast.SharedWords

// From the tile at index scatterDense on, tiles are for more columns a place than bins have room for.
const scatterDense = 2

// scatterShape is a block of the other scatter mappings: its places and threads, the least vectors of
// lanes that it is for, and the most columns that a place may have on average.
type scatterShape struct{ places, threads, vectors, columns int }

// Blocks that read all keys at once, and blocks that have bins. The first shape of onceShapes is for sizes
// that give each multiprocessor of a large GPU a block.
var (
	onceShapes = []scatterShape{{64, 512, 1, 0}, {8, 512, 33, 0}, {8, 256, 1, 0}}
	binShapes  = []scatterShape{{forecast.BinPlaces, 256, 1, 2}, {forecast.BinFew, 256, 1, forecast.ScatterBinned}}
)

// narrowBins are for lanes of up to narrowVectors vectors. Blocks of eight places would leave most of
// their threads idle there. They are taken where each multiprocessor of a large GPU has a block.
var narrowBins = scatterShape{forecast.BinPlaces, 256, 1, forecast.ScatterBinned}

// shortBins are for few lanes and few columns a place: fewer blocks then wait for their turn. They are taken where each
// multiprocessor of a large GPU has a block.
var shortBins = scatterShape{forecast.BinMany, 256, 1, forecast.BinColumns}

const narrowVectors = 32

// scatterKernel makes the variants of a kernel whose keys say which place a column goes to.
type scatterKernel struct{ *kernel }

// scatter finds the key that the conditions of all folds compare with a row; nil where they do not.
func (lo scatterKernel) scatter(folds []*ir.Fold) *ir.Scatter {
	if len(folds) == 0 {
		return nil
	}
	where := folds[0].Where
	for _, f := range folds {
		if f.Where == nil || f.Prefix != ir.WholeRow || f.After != nil || !ir.Equal(f.Where, where) {
			return nil
		}
	}
	return form.ScatterOf(where, lo.k.Rows, lo.k.Cols)
}

// scattered is the folds, written with conditions: a term that is the identity of the fold where a
// condition fails, as in sum(where(c, x, 0)), becomes a fold of x under c. It returns nil where some
// fold has no condition. If the conditions differ, folds keep what all have: see underCommon.
func (lo scatterKernel) scattered(folds []*ir.Fold) []*ir.Fold {
	var out []*ir.Fold
	for _, f := range folds {
		g := *f
		if g.Where == nil {
			if g.Where, g.Body = form.ConditionIn(g.Op, g.Body); g.Where == nil {
				return nil
			}
		}
		out = append(out, &g)
	}
	return lo.underCommon(out)
}

// underCommon gives folds the parts of their conditions that all of them have, so that they can share a list
// of columns. Where the other parts of its condition fail, a fold's term becomes the identity. The place of an
// extreme has no such term; then folds stay as they are.
func (lo scatterKernel) underCommon(folds []*ir.Fold) []*ir.Fold {
	if len(folds) == 0 || !slices.ContainsFunc(folds, func(f *ir.Fold) bool { return !ir.Equal(f.Where, folds[0].Where) }) {
		return folds
	}
	common := form.Conditions(folds[0].Where)
	for _, f := range folds[1:] {
		common = form.CommonConditions(common, form.Conditions(f.Where), lo.k.Rows, lo.k.Cols)
	}
	var where *ir.Expr
	for _, c := range common {
		where = ir.Join(ir.OpAnd, where, c)
	}
	var out []*ir.Fold
	for _, f := range folds {
		g := *f
		var rest *ir.Expr
		for _, c := range form.Conditions(f.Where) {
			if !slices.ContainsFunc(common, func(x *ir.Expr) bool { return form.SameCondition(x, c, lo.k.Rows, lo.k.Cols) }) {
				rest = ir.Join(ir.OpAnd, rest, c)
			}
		}
		if where == nil || rest != nil && f.Op.IsArg() {
			return folds
		}
		if g.Where = where; rest != nil {
			g.Body = ir.Where(rest, f.Body, f.Op.Identity(f.Body.Type))
		}
		out = append(out, &g)
	}
	return out
}

// scatterVariants makes the bodies of a kernel whose folds are a scatter.
func (lo scatterKernel) scatterVariants() []*ir.Variant {
	folds, only := lo.scattered(lo.folds), *lo.kernel
	only.folds = folds
	lo.kernel = &only
	sections := lo.passes(true)
	for i, s := range sections {
		if (s.Level == ir.FullLevel) != (i == 0) || s.Level == ir.FullLevel && len(s.Stores) > 0 {
			return nil
		}
	}
	out := lo.histograms(sections)
	large, small := forecast.ScatterTiles[:scatterDense], forecast.ScatterTiles[scatterDense:]
	if len(lo.scatter(folds).Batch) == 0 {
		out = append(append(out, lo.scattersOnce(sections)...), lo.scatterBins(sections)...)
	} else { // one batch may fill the device: a block then takes as many of its places as it can
		out = append(out, lo.scatterTiles(sections, large)...)
		out = append(out, lo.scattersOnce(sections)...)
	}
	return append(out, lo.scatterTiles(sections, small)...)
}

// scatterTiles makes the bodies for blocks of each number of places, the largest first.
func (lo scatterKernel) scatterTiles(sections []*ir.Section, tiles []int) []*ir.Variant {
	var out []*ir.Variant
	for _, places := range tiles {
		out = append(out, lo.scatterTile(sections, places)...)
	}
	return out
}

// scattersOnce makes the bodies for few columns, whose keys a block reads at once.
func (lo scatterKernel) scattersOnce(sections []*ir.Section) []*ir.Variant {
	var out []*ir.Variant
	s := lo.scatter(sections[0].Folds)
	few, sizes := algebra.AtMostSize(algebra.Product(lo.k.Cols), scatterOnce), lo.scatterSizes(s)
	for i, shape := range onceShapes {
		own := algebra.And(lo.scatterPays(sizes.Once(shape.places)), few)
		if i == 0 {
			own = algebra.And(own, algebra.AtLeastSize(s.To.Extent, int64(ir.ReferenceSMs*shape.places)))
		}
		out = append(out, lo.scatterShaped(sections, own, shape, ir.Schedule{Mapping: ir.ScatterOnceMapping,
			Items: scatterOnce / shape.threads, MinBlocks: 1})...)
	}
	return out
}

// scatterBins makes the bodies with bins: for many columns that go to many places.
func (lo scatterKernel) scatterBins(sections []*ir.Section) []*ir.Variant {
	var out []*ir.Variant
	s := lo.scatter(sections[0].Folds)
	to, cols := s.To.Extent, algebra.Product(lo.k.Cols)
	bodies := func(shape scatterShape, own *ir.Expr) {
		when := ir.Apply(ir.OpLe, cols, scaledSize(to, int64(shape.columns)))
		when = algebra.And(algebra.And(lo.scatterWork(), algebra.AtLeastSize(cols, scatterOnce)), when)
		out = append(out, lo.scatterShaped(sections, algebra.And(when, own), shape, ir.Schedule{Mapping: ir.ScatterBinsMapping,
			MinBlocks: scatterBlocks, Unroll: scatterParts})...)
	}
	lanes := algebra.Product(s.Lanes(lo.k.Rows))
	short := algebra.AtMostSize(lanes, forecast.BinLanes)
	bodies(shortBins, algebra.And(short, algebra.AtLeastSize(to, int64(ir.ReferenceSMs*shortBins.places))))
	narrow := algebra.AtMostSize(lanes, int64(narrowVectors*lo.vector()))
	bodies(narrowBins, algebra.And(narrow, algebra.AtLeastSize(to, int64(ir.ReferenceSMs*narrowBins.places))))
	for _, shape := range binShapes {
		bodies(shape, nil)
	}
	return out
}

// scatterShaped makes the bodies for blocks of one shape, where the lanes are as many as it is for.
func (lo scatterKernel) scatterShaped(sections []*ir.Section, when *ir.Expr, shape scatterShape,
	on ir.Schedule) []*ir.Variant {
	s := lo.scatter(sections[0].Folds)
	on.Threads, on.TileM = shape.threads, shape.places
	when = algebra.And(when, algebra.And(algebra.AtLeastSize(s.To.Extent, int64(shape.places)), algebra.AtMostSize(s.To.Extent, form.PlacesMost)))
	when = algebra.And(when, algebra.AtLeastSize(algebra.Product(s.Lanes(lo.k.Rows)), int64((shape.vectors-1)*lo.vector()+1)))
	return lo.scatterBodies(sections, s, when, on)
}

// scatterBodies makes the bodies of a schedule, one for each width of vectors of the lanes.
func (lo scatterKernel) scatterBodies(sections []*ir.Section, s *ir.Scatter, when *ir.Expr, on ir.Schedule) []*ir.Variant {
	var lane *ir.Range
	vector, words := 1, 0
	if lanes := s.Lanes(lo.k.Rows); len(lanes) > 0 {
		lane, vector = algebra.Innermost(lanes), lo.vector()
	}
	for _, f := range sections[0].Folds {
		words += forecast.RunningWords(f.Op, f.Result.Type)
	}
	if words > scatterMany {
		on.Unroll = min(on.Unroll, 1)
	}
	for vector > 1 && vector*words*max(on.Unroll, 1) > scatterWords {
		vector /= 2
	}
	if vector*words*on.Unroll > scatterWords/2 {
		on.MinBlocks = min(on.MinBlocks, scatterBlocks/2)
	}
	if len(s.Batch) > 0 && on.MinBlocks == scatterBlocks { // where a chunk begins takes registers too
		on.MinBlocks--
	}
	out := lo.aligned(along{sections: sections, lane: lane, vector: vector}, false, func(vector int) (ir.Schedule, *ir.Expr) {
		on.Vector = vector
		return on, when
	})
	for _, v := range out {
		v.Scatter = lo.scatter(v.Sections[0].Folds)
	}
	return out
}

// scatterWork is the condition that there are so many rows and columns that searching for the matching ones pays. Blocks with bins
// are then faster than any loop, for they have many columns.
func (lo scatterKernel) scatterWork() *ir.Expr {
	work := ir.Apply(ir.OpMul, algebra.Product(lo.k.Rows), algebra.Product(lo.k.Cols))
	return algebra.AtLeastSize(ir.Simplify(work, ir.Facts{}), forecast.ScatterWork)
}

// scatterPays is the condition that a mapping in which a column takes so many picoseconds is faster than a loop in which rows look
// at all columns.
func (lo scatterKernel) scatterPays(column *ir.Expr) *ir.Expr {
	written := lo.scatterSizes(lo.scatter(lo.folds)).Written()
	return algebra.And(lo.scatterWork(), ir.Simplify(ir.Apply(ir.OpLe, column, written), ir.Facts{}))
}

// scatterSizes is what estimates go by.
func (lo scatterKernel) scatterSizes(s *ir.Scatter) forecast.Scatter {
	return forecast.ScatterOf(s, lo.k.Rows, lo.k.Cols)
}

// scatterTile makes the bodies for blocks of so many places.
func (lo scatterKernel) scatterTile(sections []*ir.Section, places int) []*ir.Variant {
	s := lo.scatter(sections[0].Folds)
	when := algebra.And(algebra.AtLeastSize(s.To.Extent, int64(places)), lo.scatterPays(lo.scatterSizes(s).Lists(places)))
	when = algebra.And(when, algebra.AtMostSize(s.To.Extent, form.PlacesMost))
	if places > slices.Min(forecast.ScatterTiles) {
		to, rows := s.To.Extent, algebra.Product(append(slices.Clone(s.Batch), s.To))
		when = algebra.And(when, algebra.AtLeastSize(rows, int64(ir.ReferenceSMs*places)))
		when = algebra.And(when, ir.Apply(ir.OpLe, scaledSize(algebra.Product(lo.k.Cols), int64(places)), scaledSize(to, 2*forecast.ScatterListed)))
	}
	return lo.scatterBodies(sections, s, when, ir.Schedule{Mapping: ir.ScatterMapping, Threads: scatterThreads,
		MinBlocks: scatterBlocks, TileM: places, Unroll: scatterParts})
}

// scaledSize is a size times a factor.
func scaledSize(size *ir.Expr, by int64) *ir.Expr {
	return ir.Simplify(ir.Apply(ir.OpMul, size, ir.IntConst(by)), ir.Facts{})
}
