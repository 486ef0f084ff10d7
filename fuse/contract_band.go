package fuse

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/forecast"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// Products of 16-bit operands whose rows in memory are short and no whole number of accesses, such as points with 27 or
// 36 features. The tensor copy engine does not take such rows, and copied one by one their elements take longer than
// all else. But a tile of them is one run of memory. It is copied in whole accesses, and threads take their operands
// from where they lie in it.

// Figures of tiles that are bands of memory.
const (
	bandRows     = 128 // rows of the longer side in a tile
	bandPart     = 32  // those that a warp multiplies
	bandWidest   = 128 // most rows of the shorter side in a tile
	bandHalved   = 128 // most columns with as many rows in a tile; with more columns tiles have half as many
	bandStep     = 16  // columns of a step of tensor cores
	bandTiles    = 64  // least such tiles that results fill: with fewer, tiles are small
	bandLeast    = 8   // least rows of the shorter side: loops read the longer one as fast for fewer
	bandFew      = 32  // least rows of the longer side for small tiles
	bandBlocks   = 4   // blocks of a multiprocessor, of tiles of at most half as many rows as the widest
	widestBlocks = 2   // those of other tiles
)

// bandVariants makes the variants of choices with bands: those whose other accesses are aligned, and those for the sizes at which these
// are not.
func (lo splitKernel) bandVariants(fold ir.Fold, c *ir.Contract, choices []splitCandidate) []*ir.Variant {
	out := lo.splitVariantsOf(fold, c, choices, bothSides)
	if len(out) == 0 || !algebra.Assumes(out[0].Facts) {
		return out
	}
	return append(out, lo.splitVariantsOf(fold, c, choices, neitherSide)...)
}

// storeSingly makes each thread take one result at a time where no result is stored in vectors, whatever else is read in
// vectors: neighbours in a warp then write neighbours in memory.
func storeSingly(v *ir.Variant) {
	if storesWide(v) {
		return
	}
	v.Schedule.Vector = 1
	for _, l := range v.Locals {
		if l.Level == ir.RowLevel {
			l.Wide = false
		}
	}
}

// bandChoices are the candidates of a product whose columns are one tile, and of which a side may be a band; none for
// other products.
func (lo splitKernel) bandChoices(c *ir.Contract) []splitCandidate {
	columns := algebra.Product(lo.k.Cols)
	if c.Unit != ir.HalfUnit || c.Taps != nil || lo.isWindowed(c) || columns.Op != ir.OpConst ||
		columns.Int < forecast.SplitKPoints {
		return nil
	}
	m, n := algebra.Product(c.M), algebra.Product(c.N)
	if columns.Int > forecast.BandDepth(min(lo.estimate(m), lo.estimate(n))) {
		return nil
	}
	depth := int(columns.Int+bandStep-1) / bandStep * bandStep
	few, many := n, m
	turned := lo.estimate(m) < lo.estimate(n)
	if turned {
		few, many = m, n
	}
	large := bandShape(few, depth)
	if turned {
		large = large.transposed()
	}
	small := smallBand
	small.k = depth
	enough := algebra.AtLeastSize(few, bandLeast)
	points := ir.Simplify(ir.Apply(ir.OpMul, algebra.Product(c.Batch), ir.Apply(ir.OpMul, m, n)), ir.Facts{})
	fills := algebra.And(algebra.AtLeastSize(many, forecast.BandLeast), algebra.AtLeastSize(points, int64(bandTiles*large.m*large.n)))
	return []splitCandidate{
		{splitShape: large, splits: 1, when: algebra.And(enough, fills), bands: true},
		{splitShape: small, splits: 1, when: algebra.And(enough, algebra.AtLeastSize(many, bandFew)), bands: true},
	}
}

// smallBand is a tile of products with too few results for larger ones.
var smallBand = splitShape{m: 32, n: 32, partM: 16, partN: 16, stages: 1, blocks: 8}

// bandShape is a tile of many rows of one side, and of all rows of the other where these are few.
func bandShape(few *ir.Expr, depth int) splitShape {
	n := bandWidest
	for few.Op == ir.OpConst && n > bandStep && few.Int <= int64(n/2) {
		n /= 2
	}
	s := splitShape{m: bandRows, n: n, k: depth, partM: bandPart, partN: min(n, bandWidest/2), stages: 1, blocks: bandBlocks}
	if depth > bandHalved {
		s.m, s.partN = bandRows/2, min(n, bandWidest/4)
	}
	if n == bandWidest {
		s.blocks = widestBlocks
	}
	return s
}

// readBands makes bands of the sides whose elements would be copied one by one. It reports false where one can be none, or where
// there is no such side and the columns are one tile, or where right sides of several folds do not lie alike.
func (lo splitKernel) readBands(c *ir.Contract, s splitShape) bool {
	const access = forecast.AccessBytes / 2
	some := s.stages > 1
	read := func(o *ir.Operand, own []*ir.Range, rows int) bool {
		if o.Wide {
			return true
		}
		band, along := lo.bandOf(*o, c.Type, own, lo.columns(), c.Batch, rows)
		if band == nil || along && s.stages > 1 {
			return false
		}
		o.Band, o.KLast, o.Pieces, o.Async = band, along, nil, false
		some = some || band.Skip != 0 || band.Pitch%access != 0
		return true
	}
	if !read(&c.A, c.M, s.m) {
		return false
	}
	for i := range c.B {
		o, first := &c.B[i], &c.B[0]
		if !read(o, c.N, s.n) || o.KLast != first.KLast || (o.Band == nil) != (first.Band == nil) || o.Band != nil && *o.Band != *first.Band {
			return false
		}
	}
	return some
}

// gateVariants are the variants with bands of two products with a common operand.
func (lo splitKernel) gateVariants(c *ir.Contract) (out []*ir.Variant) {
	if len(c.B) != 2 || !form.IsHalf(c.Type) {
		return nil
	}
	of := *c
	of.Unit = ir.HalfUnit
	for _, choice := range lo.bandChoices(&of) {
		if choice.m < choice.n || choice.m == choice.n && choice.partM > choice.partN {
			continue // few rows of the common operand, and many of each of the others
		}
		choice.n = min(choice.n, bandWidest/2)
		choice.partN, choice.blocks = min(choice.n, choice.partM), widestBlocks
		for _, aligned := range []sides{bothSides, neitherSide} {
			v := lo.gateVariant(of, choice, aligned)
			if v == nil {
				break
			}
			if out = append(out, v); !algebra.Assumes(v.Facts) {
				break
			}
		}
	}
	return out
}

// gateVariant builds one such variant; nil where a side can be no band.
func (lo splitKernel) gateVariant(c ir.Contract, s splitCandidate, aligned sides) *ir.Variant {
	v := lo.contractBody(&c)
	c.B = slices.Clone(c.B)
	v.Contract = &c
	v.Schedule = s.on(ir.Schedule{Mapping: ir.SplitKMapping, Vector: 1}, c.Unit)
	for i, f := range v.Sections[0].Folds {
		c.A.Value, c.B[i].Value = f.Body.Args[0], f.Body.Args[1]
	}
	needs := algebra.NewNeeds(lo.inside(ir.FullLevel), aligned != neitherSide)
	lo.splitOperand(&c.A, c.M, v, &c, needs)
	for i := range c.B {
		lo.splitOperand(&c.B[i], c.N, v, &c, needs)
	}
	if !lo.readBands(&c, s.splitShape) {
		return nil
	}
	lo.epilogueLanes(v, &c, needs)
	storeSingly(v)
	if v.When = algebra.And(s.when, needs.Condition()); needs.Condition() != nil {
		v.Facts = needs.Facts
	}
	return v
}
