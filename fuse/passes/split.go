package passes

import (
	"maps"
	"math"
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/forecast"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// Figures of splitting, in blocks and elements.
const (
	splitChunk = 64      // least points of the split range in one chunk
	mostChunk  = 1 << 17 // most points of a chunk: sizes without a default are guesses, and a small tensor still takes a whole chunk
	stripChunk = 256     // least points of a chunk where blocks divide columns: a round of reads for each of 32 groups
	flatLanes  = 32      // threads of a block that take neighbouring rows, see Schedule.ColThreads
)

// splitReductions makes long reductions with few results two-stage reductions, so that many blocks work on
// each: partial results over chunks of the outermost reduced range, then a reduction of those. The chunk
// is a constant of the program (from its default sizes), so the number of partial results does not depend
// on the device. Sums of squares about a mean are cut so that they do not wait for the mean
// (split_moments.go). A graph that is to be one kernel stays whole.
func splitReductions(g *ir.Graph) { splitWith(g, false, false) }

// splitForBlocks is splitReductions for GPUs, where histograms need chunks too.
func splitForBlocks(g *ir.Graph) { splitWith(g, true, false) }

// splitForClusters is splitForBlocks for GPUs on which clusters hold longer rows.
func splitForClusters(g *ir.Graph) { splitWith(g, true, true) }

func splitWith(g *ir.Graph, histograms, clusters bool) {
	if g.OneKernel {
		return
	}
	s := &splitter{g: g, histograms: histograms, clusters: clusters, sizes: algebra.DefaultSizes(g), whole: form.InStreams(g), readers: map[*ir.Value][]*ir.Value{}, place: map[*ir.Value]int{}}
	for i, v := range g.Values {
		s.place[v] = i
		for _, l := range v.Loads() {
			s.readers[l.From] = append(s.readers[l.From], v)
		}
	}
	s.largest = s.largestReaders()
	if clusters {
		maps.Copy(s.whole, s.wholeRows())
	}
	s.persistent = s.persistentChunks()
	s.element = s.elements()
	if histograms {
		s.scatters = scatterCuts(g, s.sizes)
	}
	insertBefore(g, s.split)
}

// splitter decides which reductions to cut, and into which chunks.
type splitter struct {
	g          *ir.Graph
	sizes      map[string]int64
	histograms bool // whether to cut histograms, as GPUs need
	clusters   bool // whether the GPU has clusters of blocks
	persistent map[*ir.Value]int64
	whole      map[*ir.Value]bool // reductions that stay whole: those of streams, which have chunks of their own, and those of rows that clusters hold
	readers    map[*ir.Value][]*ir.Value
	place      map[*ir.Value]int     // in the graph
	largest    map[*ir.Value]float64 // see largestReaders
	element    map[*ir.Value]int     // see elements
	scatters   map[*ir.Value]*scatterCut
}

// split makes v a reduction of partial results, and returns those; none where v should stay whole.
func (s *splitter) split(v *ir.Value) []*ir.Value {
	if chunk := s.persistent[v]; chunk > 0 {
		if squares, ok := squaresOf(s.g, v); ok {
			return splitSquares(s.g, v, squares, chunk)
		}
		return splitReduction(s.g, v, chunksOf(v, chunk))
	}
	if v.Reduce == nil || s.whole[v] || s.sliced(v) {
		return nil
	}
	if cut := s.scatters[v]; cut != nil {
		return splitScatter(s.g, v, cut)
	}
	if placed(v) {
		return s.splitPlaced(v)
	}
	if scan := form.ScanOf(v); scan != nil {
		if chunk := s.scanChunk(v, scan); chunk > 0 {
			return splitScan(s.g, v, scan, chunk)
		}
		return nil
	}
	rows := *v // a copy in which several axes of rows are taken as one
	together := v.Reduce.Where == nil && !contiguousColumns(v, s.sizes) && neighbours(v.Reduce.Ranges, largestRead(v, s.sizes))
	if together {
		takeAsOne(s.g, &rows)
	}
	chunk := chunkOf(&rows, s.sizes, s.enough(v))
	if chunk == 0 {
		return nil
	}
	if parts := s.splitByRows(v); parts != nil {
		return parts
	}
	if c := s.rowChunks(v, together); c != nil {
		return splitReduction(s.g, v, *c)
	}
	if s.shared(v) || s.chained(v) {
		return nil
	}
	if together {
		takeAsOne(s.g, v)
		if !algebra.HasUsualSize(s.g, v.Reduce.Ranges[0].Extent) { // guesses at each of several axes say nothing about their product
			return splitReduction(s.g, v, countedChunks(v, stripParts(algebra.PointsAt(v.Axes, s.sizes))))
		}
	}
	switch {
	case !s.histograms || !contiguousColumns(v, s.sizes):
	case lineOf(s.g, v):
		chunk = s.lineChunk(v)
	case s.joinOuter(v):
		chunk = max(1, chunkOf(v, s.sizes, s.enough(v)))
	}
	return splitReduction(s.g, v, chunksOf(v, chunk))
}

// splitPlaced cuts the search for the place of an extreme; it returns none where that should stay whole.
func (s *splitter) splitPlaced(v *ir.Value) []*ir.Value {
	chunk := chunkOf(v, s.sizes, s.enough(v))
	if chunk == 0 || s.shared(v) {
		return nil
	}
	if s.histograms && contiguousColumns(v, s.sizes) && lineOf(s.g, v) {
		chunk = s.lineChunk(v)
	}
	return splitPlace(s.g, v, chunksOf(v, chunk))
}

// sliced reports whether the blocks of a product will split its sums through memory anyway
// (ir.Contract.Slices). Those of products in f32 by multiply-adds do, however few tiles there
// are, and long sums of few tiles in 16 bits.
func (s *splitter) sliced(v *ir.Value) bool {
	const points = forecast.SplitKPoints * forecast.SplitKPoints
	if form.IsTileProduct(v) && s.histograms && s.g.Numerics == ir.Fast && v.Reduce.Where == nil {
		a, b := form.SidesOf(v)
		return a != nil && b != nil && inSlices(v, a, b, s.sizes)
	}
	return s.clusters && s.g.Numerics == ir.Fast && !s.g.TF32 && v.Body.Type == ir.F32 && v.Reduce.Where == nil &&
		form.IsMatrixProduct(v) && !form.Halves(v.Body) && algebra.PointsAt(v.Axes, s.sizes) >= points
}

// shared reports whether a reduction over columns that are not contiguous in memory has enough blocks, and
// no reduction of the same tensor is cut.
func (s *splitter) shared(v *ir.Value) bool {
	if contiguousColumns(v, s.sizes) || s.largest[v] > algebra.PointsAt(v.Axes, s.sizes) {
		return false
	}
	if s.besidePersistent(v) {
		return false
	}
	rows, cols := algebra.PointsAt(v.Axes, s.sizes), algebra.PointsAt(v.Reduce.Ranges, s.sizes)
	vector := forecast.AccessBytes / v.Body.Type.Size()
	return forecast.ShareOf(cols).Blocks(rows, vector) >= forecast.StripLeast
}

// besidePersistent reports whether what v reads is also read by a reduction in persistent chunks.
func (s *splitter) besidePersistent(v *ir.Value) bool {
	for _, l := range v.Loads() {
		if slices.ContainsFunc(s.readers[l.From], func(r *ir.Value) bool { return s.persistent[r] > 0 }) {
			return true
		}
	}
	return false
}

// enough is the number of blocks with which a reduction should stay whole. Few are enough if its reader is
// a kernel over more points than its results, because the two may then fuse. Otherwise there have to be so
// many that the last wave of blocks hardly counts.
func (s *splitter) enough(v *ir.Value) float64 {
	if s.largest[v] > algebra.PointsAt(v.Axes, s.sizes) {
		return forecast.FullDevice
	}
	return forecast.SplitBlocks / 2
}

// largestReaders is the most points of a kernel that reads a value, directly or through others. It is
// infinite where such a reader is a reduction.
func (s *splitter) largestReaders() map[*ir.Value]float64 {
	out := map[*ir.Value]float64{}
	for i := len(s.g.Values) - 1; i >= 0; i-- { // readers come later in the list
		v := s.g.Values[i]
		for _, r := range s.readers[v] {
			points := math.Inf(1)
			if r.Reduce == nil {
				points = max(algebra.PointsAt(r.Axes, s.sizes), out[r])
			}
			out[v] = max(out[v], points)
		}
	}
	return out
}

// chunks is how a range is cut: into count chunks of size points each, the last of which may have fewer
// points, or none.
type chunks struct{ size, count *ir.Expr }

// chunksOf cuts v's outermost range into pieces of a constant size.
func chunksOf(v *ir.Value, size int64) chunks {
	extent := ir.Apply(ir.OpAdd, v.Reduce.Ranges[0].Extent, ir.IntConst(size-1))
	count := ir.Apply(ir.OpFloorDiv, extent, ir.IntConst(size))
	return chunks{ir.IntConst(size), ir.Simplify(count, ir.Facts{})}
}

// chunkOf returns the points of the outermost reduced range that one block should take; 0 for a reduction
// that should stay whole, such as one that has enough blocks in the flat mapping.
func chunkOf(v *ir.Value, sizes map[string]int64, enough float64) int64 {
	if v.Reduce == nil || v.Reduce.Op.IsArg() && !placed(v) || v.Reduce.Rank != nil || form.ScanOf(v) != nil {
		return 0
	}
	if forecast.SplitKFills(v, sizes) {
		return 0
	}
	rows := algebra.PointsAt(v.Axes, sizes)
	cols := algebra.PointsAt(v.Reduce.Ranges, sizes)
	if cols < forecast.SplitLeast && rows*cols < 16*forecast.SplitLeast {
		return 0
	}
	blocks := rows
	if contiguousColumns(v, sizes) {
		enough = forecast.FullDevice
	} else {
		blocks = rows / (flatLanes * forecast.AccessBytes / float64(v.Body.Type.Size()))
	}
	outer := algebra.Estimate(v.Reduce.Ranges[0].Extent, sizes)
	if blocks >= enough || outer < 2*splitChunk && outer == cols {
		return 0
	}
	if blocks != rows {
		blocks *= flatLanes / forecast.StripLanes
	}
	parts := forecast.SplitBlocks / max(blocks, 1)
	chunk := int64(1)
	for float64(chunk) < outer/parts && chunk < mostChunk {
		chunk *= 2
	}
	if least := int64(forecast.SplitLeast / max(1, cols/outer) / 2); blocks == rows { // each block should have a large enough part of a row
		for chunk < least {
			chunk *= 2
		}
	} else {
		chunk = max(chunk, stripChunk)
	}
	if float64(chunk) >= outer {
		return 0
	}
	return chunk
}

// contiguousColumns reports whether the largest tensor a reduction reads is contiguous
// along a reduced range.
func contiguousColumns(v *ir.Value, sizes map[string]int64) bool {
	best, along := -1.0, true
	reduced := map[*ir.Range]bool{}
	for _, r := range v.Reduce.Ranges {
		reduced[r] = true
	}
	for _, l := range v.Loads() {
		if size := algebra.BytesAt(l.From, sizes); size > best && len(l.Args) > 0 {
			best, along = size, algebra.DependsOnAny(l.Args[len(l.Args)-1], reduced)
		}
	}
	return along
}

// splitReduction makes v a reduction of partial results, and returns the values that v then reads, partial
// results first.
func splitReduction(g *ir.Graph, v *ir.Value, cut chunks) []*ir.Value {
	return splitInOrder(g, v, cut, v.Axes)
}

// splitInOrder is splitReduction where the partial results have v's axes in the order given.
func splitInOrder(g *ir.Graph, v *ir.Value, cut chunks, axes []*ir.Range) []*ir.Value {
	ordered := *v
	ordered.Axes = axes
	c := newChunking(g, &ordered, cut)
	partial := c.partial(g, &ordered, v.Name+"_part", v.Body)
	over := g.NewRange(c.part.Name, c.part.Extent)
	whole := ir.Load(partial, append([]*ir.Expr{over.At()}, algebra.UnitIndices(axes)...), nil)
	return append([]*ir.Value{partial}, combine(g, v, whole, over, nil)...)
}

// chunking cuts the outermost range of a reduction into chunks.
type chunking struct {
	chunks
	outer  *ir.Range
	inner  *ir.Expr // points of the other ranges
	part   *ir.Range
	axes   []*ir.Range // of a partial result, after part
	reduce *ir.Reduction
	at     map[*ir.Range]*ir.Expr // the reduction's ranges in a partial result
}

func newChunking(g *ir.Graph, v *ir.Value, cut chunks) *chunking {
	outer := v.Reduce.Ranges[0]
	c := &chunking{chunks: cut, outer: outer, inner: algebra.Product(v.Reduce.Ranges[1:]), at: map[*ir.Range]*ir.Expr{}}
	c.part = g.NewRange(outer.Name+"_chunk", cut.count)
	c.axes = g.NewAxes(v.Shape())
	for d, r := range v.Axes {
		c.at[r] = algebra.UnitIndices(c.axes)[d]
	}
	c.reduce = &ir.Reduction{Op: v.Reduce.Op, Ranges: v.Reduce.Ranges[1:]}
	c.at[outer] = c.part.At()
	if !cut.size.IsConst(1) || len(v.Reduce.Ranges) == 1 {
		point := g.NewRange(outer.Name, cut.size)
		c.reduce.Ranges = append([]*ir.Range{point}, v.Reduce.Ranges[1:]...)
		c.at[outer] = ir.Apply(ir.OpAdd, ir.Apply(ir.OpMul, c.part.At(), cut.size), point.At())
		c.reduce.Where = ir.Apply(ir.OpLt, c.at[outer], outer.Extent)
	}
	if v.Reduce.Where != nil {
		c.reduce.Where = ir.Join(ir.OpAnd, c.reduce.Where, form.GuardLoads(ir.Substitute(v.Reduce.Where, c.at)))
	}
	return c
}

// partial is the reduction of a body, given over v's ranges, over each chunk.
func (c *chunking) partial(g *ir.Graph, v *ir.Value, name string, body *ir.Expr) *ir.Value {
	body = form.GuardLoads(ir.Substitute(body, c.at))
	acc := ir.I64 // of a place
	if !c.reduce.Op.IsArg() {
		acc = c.reduce.Op.Accumulator(body.Type)
		body = ir.Cast(body, acc)
	}
	axes := g.NewAxes(append([]*ir.Expr{c.part.Extent}, v.Shape()...))
	rename := map[*ir.Range]*ir.Expr{c.part: algebra.UnitIndices(axes)[0]}
	for d, r := range c.axes {
		rename[r] = algebra.UnitIndices(axes)[d+1]
	}
	reduce := *c.reduce
	reduce.Ranges = nil
	for _, r := range c.reduce.Ranges {
		own := g.NewRange(r.Name, r.Extent)
		reduce.Ranges = append(reduce.Ranges, own)
		rename[r] = own.At()
	}
	if reduce.Where != nil {
		reduce.Where = ir.Substitute(c.reduce.Where, rename)
	}
	return g.Adopt(&ir.Value{Name: name, Type: acc, Axes: axes, Origin: v.Origin, Reduce: &reduce,
		Body: ir.Substitute(body, rename)})
}

// points is the number of points of a chunk, of which the last may have fewer.
func (c *chunking) points(part *ir.Range) *ir.Expr {
	left := ir.Apply(ir.OpSub, c.outer.Extent, ir.Apply(ir.OpMul, part.At(), c.size))
	return ir.Apply(ir.OpMul, ir.Apply(ir.OpMin, left, c.size), c.inner)
}

// combine makes v the reduction of whole over the chunks, and returns the values that it reads for that.
func combine(g *ir.Graph, v *ir.Value, whole *ir.Expr, over *ir.Range, where *ir.Expr) []*ir.Value {
	v.Reduce = &ir.Reduction{Op: v.Reduce.Op, Ranges: []*ir.Range{over}, Where: where}
	if v.Type == whole.Type {
		v.Body = whole
		return nil
	}
	return []*ir.Value{roundToType(g, v, whole)}
}

// roundToType makes v a rounding to its type of a new reduction, in the type of the accumulator.
func roundToType(g *ir.Graph, v *ir.Value, whole *ir.Expr) *ir.Value {
	axes := g.NewAxes(v.Shape())
	rename := map[*ir.Range]*ir.Expr{}
	for d, r := range v.Axes {
		rename[r] = algebra.UnitIndices(axes)[d]
	}
	total := g.Adopt(&ir.Value{Name: v.Name + "_total", Type: whole.Type, Axes: axes, Body: ir.Substitute(whole, rename), Reduce: v.Reduce, Origin: v.Origin})
	v.Reduce = nil
	v.Body = ir.Cast(ir.Load(total, algebra.UnitIndices(v.Axes), nil), v.Type)
	return total
}
