package fuse

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/forecast"
	"github.com/fusec/fusec/ir"
)

// Figures of the split-K mapping.
const (
	splitColumns  = 4       // least tiles of columns in one split
	fewColumns    = 2       // the same for the largest number of splits of few rows
	splitStart    = 2300    // cycles before the first and after the last tile of columns
	singleWork    = 1 << 20 // least multiply-adds for tiles whose elements are copied one by one, where a side has few rows
	singleColumns = 256     // least columns for splits where elements are copied one by one and small tiles are a choice
)

// splitKernel makes the variants whose tiles are small and whose columns may be split over the blocks of a
// cluster (split-K).
type splitKernel struct{ productKernel }

// splitVariants makes the variants of a contraction for sizes that do not suit large tiles of tensor
// cores: few rows, few tiles, f32 and f64. The variants that read in vectors are returned apart; they are
// for sizes at which they take fewer cycles than rival, which is what few tiles take through warpgroups,
// or nil. So are those in slices of 16 bits, which are better than clusters of warpgroups.
func (lo splitKernel) splitVariants(rival *ir.Expr) (sliced, aligned, others []*ir.Variant) {
	f := lo.tiledSum()
	if f == nil {
		return nil, nil, nil
	}
	product := exactlyWidened(f.Body)
	c := lo.sides(product)
	if c == nil || len(c.M) == 0 {
		return nil, nil, nil
	}
	c.Unit, c.Type = lo.multiplier(c, product.Type)
	if !lo.batchTaps(c) || c.Unit == ir.IntegerUnit && lo.isWindowed(c) { // threads that read each line once fold windows of integers faster
		return nil, nil, nil
	}
	c.Taps = lo.tapsOf()
	if !c.Unit.TensorCores() && !lo.device.TensorCores() {
		return nil, nil, nil // the device has no asynchronous copies
	}
	fold := *f
	fold.Body = ir.Cast(ir.Apply(ir.OpMul, c.A.Value, c.B[0].Value), f.Body.Type)
	sliced = lo.bandVariants(fold, c, lo.halfSlices(c))
	always := false             // whether reads are aligned at all sizes
	var single []splitCandidate // of windows, without an access of several elements
	for _, choice := range lo.splitCandidates(c, true, rival) {
		v := lo.splitVariant(fold, *c, choice, bothSides)
		if v == nil {
			if choice.halo != nil || choice.byRow {
				single = append(single, choice)
			}
			continue
		}
		always = always || !algebra.Assumes(v.Facts)
		if large := shapesOf[c.Unit].large; rival != nil && choice.m == large.m && choice.n == large.n {
			others = append(others, v) // for large tiles the rival comes first
			continue
		}
		aligned = append(aligned, v)
	}
	if always { // copies of what windows cover are faster than tiles that gather windows, whatever else these read in vectors
		aligned = append(lo.splitVariantsOf(fold, c, single, neitherSide), aligned...)
	}
	aligned = append(lo.bandVariants(fold, c, lo.bandChoices(c)), aligned...)
	aligned = lo.longEnough(aligned, c)
	if c.Unit == ir.IntegerUnit { // warpgroups multiply bytes faster
		aligned, others = nil, aligned
	}
	if always {
		return sliced, aligned, lo.longEnough(others, c)
	}
	others = append(others, lo.halfAligned(fold, c)...)
	others = append(others, lo.splitVariantsOf(fold, c, lo.splitCandidates(c, false, nil), neitherSide)...)
	return sliced, aligned, lo.longEnough(others, c)
}

// splitVariantsOf makes the variants of choices that there are.
func (lo splitKernel) splitVariantsOf(fold ir.Fold, c *ir.Contract, choices []splitCandidate, aligned sides) (out []*ir.Variant) {
	for _, choice := range choices {
		if v := lo.splitVariant(fold, *c, choice, aligned); v != nil {
			out = append(out, v)
		}
	}
	return out
}

// longEnough leaves products with few rows on a side and little work to the loop mappings, if elements would be copied
// one by one. An example is the gates of a layer with an odd number of channels. A tile would wait for each of its
// stages, while in a loop mapping many threads read all that they multiply at once.
func (lo splitKernel) longEnough(variants []*ir.Variant, c *ir.Contract) []*ir.Variant {
	if c.Unit != ir.HalfUnit || lo.isWindowed(c) {
		return variants
	}
	m, n := algebra.Product(c.M), algebra.Product(c.N)
	work := ir.Simplify(ir.Apply(ir.OpMul, ir.Apply(ir.OpMul, m, n), algebra.Product(lo.k.Cols)), ir.Facts{})
	tiles := algebra.And(algebra.AtLeastSize(m, forecast.ContractLeast), algebra.AtLeastSize(n, forecast.ContractLeast))
	if tiles == nil {
		return variants
	}
	enough := ir.Simplify(ir.Apply(ir.OpOr, algebra.OrTrue(algebra.AtLeastSize(work, singleWork)), tiles), ir.Facts{})
	single := func(o ir.Operand) bool { return directRead(o.Value) != nil && !o.Wide }
	return slices.DeleteFunc(variants, func(v *ir.Variant) bool {
		if !single(v.Contract.A) && !single(v.Contract.B[0]) {
			return false
		}
		v.When = algebra.And(v.When, enough)
		return ir.Decide(algebra.OrTrue(v.When), ir.Facts{}) == ir.False
	})
}

// halfAligned makes the variants that read the larger side in vectors and the smaller one by elements, such as the
// weights of a layer with an odd number of channels. Warpgroups cannot take such operands, so they are no rival.
func (lo splitKernel) halfAligned(fold ir.Fold, c *ir.Contract) (out []*ir.Variant) {
	if c.Unit != ir.HalfUnit { // copies of single elements of 32 bits do not hold threads up
		return nil
	}
	for _, choice := range lo.splitCandidates(c, true, nil) {
		v, both := lo.splitVariant(fold, *c, choice, largerSide), lo.splitVariant(fold, *c, choice, bothSides)
		if v != nil && !ir.Equal(algebra.OrTrue(v.When), algebra.OrTrue(both.When)) {
			out = append(out, v)
		}
	}
	return out
}

// splitCandidate is a shape, the number of splits of its columns, and the condition on the sizes that
// it is for.
type splitCandidate struct {
	splitShape
	splits int      // over the blocks of a cluster
	when   *ir.Expr // nil for all sizes
	slices *ir.Expr // over blocks whose sums pass through memory; nil for none
	fill   int      // blocks of slices that a multiprocessor has to hold at a time
	byRow  bool     // threads read windows row by row
	bands  bool     // tiles of sides that are not aligned are copied as they lie in memory
	halo   *ir.Halo // blocks copy what the windows of the right side cover; nil where they do not
	turned bool     // the two sides of the product are swapped

	symmetric bool // the tiles below the diagonal are those above it
}

// splitCandidates lists what a product may take, in order of preference: the first candidate that fits the
// sizes and takes fewer cycles than the rival is used.
func (lo splitKernel) splitCandidates(c *ir.Contract, wide bool, rival *ir.Expr) []splitCandidate {
	m, n := algebra.Product(c.M), algebra.Product(c.N)
	shapes := shapesOf[c.Unit]
	if c.Unit == ir.FMAUnit && c.Type == ir.F64 {
		shapes = doubleShapes
	}
	var out []splitCandidate
	few := tilesIn(c, shapes.large)
	add := func(s splitShape, blocks int64, when, rival *ir.Expr) {
		if !wide && s != shapes.small && lo.device.Clusters() {
			// copies of single elements wait for memory, so splits, which give more blocks, come first; small tiles are
			// for short sums
			worth := ir.Apply(ir.OpOr, algebra.AtLeastSize(algebra.Product(lo.k.Cols), singleColumns), algebra.AtLeastSize(few, shapes.least))
			const splits = forecast.MostSplits / 2
			whole := algebra.And(algebra.And(when, worth), algebra.AtLeastSize(algebra.Product(lo.k.Cols), splits*int64(s.k)))
			out = append(out, splitCandidate{splitShape: s, splits: splits, when: whole}, splitCandidate{splitShape: s, splits: 1, when: algebra.And(when, worth)})
			return
		}
		tiles, columns := tilesIn(c, s), int64(splitColumns*s.k)
		if !wide || lo.isWindowed(c) { // a tile whose elements are copied one by one takes longer than adding up splits
			columns = int64(s.k)
		}
		for _, splits := range lo.splitsOf(wide) {
			fits := algebra.And(algebra.AtMostSize(tiles, blocks/splits), algebra.AtLeastSize(algebra.Product(lo.k.Cols), splits*columns))
			out = append(out, splitCandidate{splitShape: s, splits: int(splits), when: algebra.And(when, algebra.And(fits, lo.beats(rival, s, tiles, splits)))})
		}
		out = append(out, splitCandidate{splitShape: s, splits: 1, when: algebra.And(when, lo.beats(rival, s, tiles, 1))})
	}
	points := ir.Simplify(ir.Apply(ir.OpMul, m, n), ir.Facts{})
	enough := algebra.And(algebra.AtLeastSize(algebra.Product(lo.k.Cols), forecast.SplitKPoints), algebra.AtLeastSize(points, forecast.SplitKPoints*forecast.SplitKPoints))
	blocks := int64(ir.ReferenceSMs)
	multiplyAdds := c.Unit == ir.FMAUnit && c.Type == ir.F32
	if multiplyAdds && rival == nil {
		out = append(out, lo.symmetricChoices(c, enough, wide)...)
	}
	if multiplyAdds && rival == nil && wide {
		out = append(out, lo.cutChoices(c, enough)...)
	}
	if multiplyAdds && rival == nil {
		out = append(out, lo.sliceChoices(c, enough, wide)...)
	}
	halos, rows := lo.haloChoices(c), lo.rowWindowChoices(c)
	if lo.rowsBeatHalo(c, halos, rows) {
		halos, rows = rows, halos
	}
	out = append(append(out, halos...), rows...)
	out = append(out, lo.groupChoices(c, enough)...)
	for _, s := range shapes.fewRows {
		rows := int64(s.m)
		fewM, fewN := algebra.AtMostSize(m, rows), algebra.AtMostSize(n, rows)
		if rival != nil {
			fewM, fewN = lo.fewRowsOf(c, rows)
		}
		atM, atN := algebra.And(enough, fewM), algebra.And(enough, fewN)
		switch {
		case rival != nil && c.Unit == ir.HalfUnit: // warpgroups take products of more rows, and most that need splits
			out = append(out, lo.fewRowsBesideWarpgroups(c, s, enough)...)
		case s.m == s.n:
			add(s, forecast.FullDevice, algebra.And(enough, ir.Apply(ir.OpOr, fewM, fewN)), nil)
		default:
			add(s, forecast.FullDevice, atM, nil)
			add(s.transposed(), forecast.FullDevice, atN, nil)
		}
	}
	if multiplyAdds {
		blocks = fmaBlocks
	}
	add(shapes.small, blocks, algebra.And(enough, algebra.AtMostSize(few, shapes.least-1)), rival)
	prologue := storedRead(c.A.Value, c.Type) == nil || storedRead(c.B[0].Value, c.Type) == nil
	if c.Unit != ir.HalfUnit || prologue || lo.isWindowed(c) { // the other products take their large tiles from the contract mapping
		out = append(out, lo.lowChoices(c, enough)...)
		out = append(out, lo.largeChoices(lo.largeShape(c, shapes.large), enough, wide)...)
	}
	for i, choice := range out {
		if choice.run > 0 {
			out[i].splitShape = lo.inRuns(choice.splitShape)
		}
	}
	return out
}

// fewRowsOf is the conditions that M, or N, has at most so many rows, where warpgroups are a choice too. With windows,
// warpgroups are faster for rows of weights that would not fill even a small tile (worthPlaces).
func (lo productKernel) fewRowsOf(c *ir.Contract, rows int64) (ofM, ofN *ir.Expr) {
	most := func(ranges []*ir.Range, o ir.Operand) *ir.Expr {
		if read := storedRead(o.Value, c.Type); read != nil && lo.isWindowed(c) && !lo.readsWindow(read, ranges) {
			return algebra.OrTrue(algebra.And(algebra.AtMostSize(algebra.Product(ranges), rows), algebra.AtLeastSize(algebra.Product(ranges), loopedChannels+1)))
		}
		return algebra.AtMostSize(algebra.Product(ranges), rows)
	}
	return most(c.M, c.A), most(c.N, c.B[0])
}

// fewRowsBesideWarpgroups lists the splits of a shape for products of few rows where warpgroups are a choice
// too: the most splits for the fewest tiles, and one for the short sums that are left.
func (lo splitKernel) fewRowsBesideWarpgroups(c *ir.Contract, s splitShape, enough *ir.Expr) (out []splitCandidate) {
	m, n := algebra.Product(c.M), algebra.Product(c.N)
	if s.m == s.n {
		fewM, fewN := lo.fewRowsOf(c, splitRows-1)
		few := ir.Apply(ir.OpOr, fewM, fewN)
		return []splitCandidate{{splitShape: s, splits: 1, when: algebra.And(enough, few)}}
	}
	long := algebra.AtLeastSize(algebra.Product(lo.k.Cols), forecast.MostSplits*fewColumns*int64(s.k))
	add := func(shape splitShape, few *ir.Expr) {
		tiles := ir.Apply(ir.OpMul, algebra.Product(c.Batch), ir.Apply(ir.OpMul, algebra.TilesOf(m, shape.m), algebra.TilesOf(n, shape.n)))
		out = append(out, splitCandidate{splitShape: shape, splits: forecast.MostSplits, when: algebra.And(algebra.And(enough, few), algebra.And(algebra.AtMostSize(tiles, forecast.FullDevice/forecast.MostSplits), long))})
	}
	fewM, fewN := lo.fewRowsOf(c, int64(s.m))
	add(s, fewM)
	add(s.transposed(), fewN)
	return out
}

// largeChoices are the large tiles, added up in runs where sums are long.
func (lo splitKernel) largeChoices(large splitShape, enough *ir.Expr, wide bool) []splitCandidate {
	if large == largeFMA[0] && !wide {
		large = looseFMA
	}
	atOnce := large
	atOnce.run = 0
	out := []splitCandidate{{splitShape: atOnce, splits: 1, when: enough}}
	if large.run > 0 && lo.inRuns(large).run > 0 {
		long := algebra.And(enough, algebra.AtLeastSize(algebra.Product(lo.k.Cols), longSum+1))
		out = slices.Insert(out, 0, splitCandidate{splitShape: large, splits: 1, when: long})
	}
	return out
}

// beats is the condition that a shape takes fewer cycles than a rival: the rounds in which its blocks run,
// times what a block takes.
func (lo splitKernel) beats(rival *ir.Expr, s splitShape, tiles *ir.Expr, splits int64) *ir.Expr {
	if rival == nil {
		return nil
	}
	rounds := algebra.CeilDiv(ir.Apply(ir.OpMul, tiles, ir.IntConst(splits)), ir.ReferenceSMs)
	steps := ir.Apply(ir.OpMul, algebra.CeilDiv(algebra.Product(lo.k.Cols), splits*int64(s.k)), ir.IntConst(s.step))
	cost := ir.Apply(ir.OpAdd, ir.Apply(ir.OpMul, rounds, steps), ir.IntConst(splitStart))
	return ir.Apply(ir.OpLe, cost, rival)
}

// splitsOf lists the numbers of splits for the columns of few tiles; where nothing is aligned there are
// fewer choices.
func (lo splitKernel) splitsOf(wide bool) []int64 {
	switch {
	case !lo.device.Clusters():
		return nil
	case wide:
		return []int64{forecast.MostSplits, forecast.MostSplits / 2}
	}
	return []int64{forecast.MostSplits / 2}
}

// splitVariant builds one variant; nil where its sizes exclude each other, or where wide asks for aligned
// accesses and no access needs them, or none can have them.
func (lo splitKernel) splitVariant(fold ir.Fold, c ir.Contract, s splitCandidate, aligned sides) *ir.Variant {
	if ir.Decide(algebra.OrTrue(s.when), ir.Facts{}) == ir.False {
		return nil
	}
	c.B = slices.Clone(c.B)
	if s.turned {
		turned := *swapped(&c)
		turned.Unit = c.Unit
		c, fold.Body = turned, ir.Cast(ir.Apply(ir.OpMul, c.B[0].Value, c.A.Value), fold.Body.Type)
	}
	v := lo.productVariant(&fold, &c)
	v.Schedule = s.on(ir.Schedule{Mapping: ir.SplitKMapping, Vector: 1}, c.Unit)
	if s.splits > 1 {
		v.Schedule.Cluster = s.splits
	}
	v.Schedule.Run = s.run
	c.Slices, c.Symmetric = s.slices, s.symmetric
	if lo.isWindowed(&c) {
		lo.windowOperands(&c)
	}
	needs := algebra.NewNeeds(lo.inside(ir.FullLevel), lo.assumes(aligned, &c.A, &c))
	lo.splitOperand(&c.A, c.M, v, &c, needs)
	needs.Assume = lo.assumes(aligned, &c.B[0], &c)
	lo.splitOperand(&c.B[0], c.N, v, &c, needs)
	switch {
	case s.byRow:
		lo.readByRow(&c)
	case s.bands:
		if !lo.readBands(&c, s.splitShape) {
			return nil
		}
	case s.halo != nil:
		lo.readHalo(&c, s.halo)
		if !c.A.Wide { // places of single elements take registers
			v.Schedule.MinBlocks = max(1, s.blocks-1)
		}
	}
	needs.Assume = aligned != neitherSide
	lo.epilogueLanes(v, &c, needs)
	if s.bands {
		storeSingly(v)
	} else if aligned != neitherSide && !needs.Any {
		return nil
	}
	if s.halo != nil && v.Schedule.Vector > s.halo.Dims[len(s.halo.Dims)-1].Tile {
		return nil
	}
	if !s.byRow && s.halo == nil && (!plain(c.A) || !plain(c.B[0]) || c.A.Window != nil) {
		v.Schedule.MinBlocks = max(1, s.fill) // a prologue needs registers, and so do addresses of single elements
	}
	v.When = algebra.And(s.when, needs.Condition())
	if needs.Condition() != nil {
		v.Facts = needs.Facts
	}
	return v
}

// plain reports whether neighbours of an operand are copied together, unchanged.
func plain(o ir.Operand) bool {
	return o.Wide || o.Band != nil || o.Pieces != nil && directRead(o.Value) != nil
}
