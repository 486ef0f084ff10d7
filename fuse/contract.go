package fuse

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/forecast"
	"github.com/fusec/fusec/ir"
)

// Figures of tiles through mma.sync: a block of eight warps computes a tile of 128 by 128, of which each
// warp computes 64 by 32.
const (
	contractThreads = 256
	contractTile    = 128
	contractDepth   = 32 // deeper tiles need fewer barriers, but their addresses spill registers
	contractStages  = 4
	contractBlocks  = 2  // blocks on a multiprocessor, at 128 registers a thread
	contractColumns = 16 // least columns
)

// contractVariants makes the mma.sync variants of a product of two sides, with and without aligned
// vectors.
func (lo productKernel) contractVariants(c *ir.Contract) []*ir.Variant {
	var out []*ir.Variant
	for _, aligned := range []sides{bothSides, largerSide, neitherSide} {
		v, any := lo.contractVariant(*c, aligned)
		if !any && aligned != neitherSide {
			continue
		}
		if len(out) > 0 && aligned == largerSide && ir.Equal(algebra.OrTrue(v.When), algebra.OrTrue(out[0].When)) {
			continue // the smaller side requires nothing more of the sizes
		}
		out = append(out, v)
		if !algebra.Assumes(v.Facts) && aligned != neitherSide {
			break // this variant takes all sizes
		}
	}
	return out
}

// sides says for which sides of a product a variant may require sizes to be multiples of a
// vector.
type sides uint8

const (
	neitherSide sides = iota
	largerSide
	bothSides
)

// assumes reports whether a variant may require such sizes for an operand of a product.
func (lo productKernel) assumes(aligned sides, o *ir.Operand, c *ir.Contract) bool {
	if aligned != largerSide {
		return aligned == bothSides
	}
	elements := func(o *ir.Operand) float64 {
		if read := largestRead(o.Value); read != nil {
			return algebra.PointsAt(read.Arg.Buffer.Value.Axes, lo.sizes)
		}
		return 0
	}
	other := &c.A
	if o == other {
		other = &c.B[0]
	}
	return elements(o) > elements(other)
}

// contractBody lowers the folds and stores of a contraction over locals.
func (lo productKernel) contractBody(c *ir.Contract) *ir.Variant {
	sum, row := &ir.Section{Level: ir.FullLevel}, &ir.Section{Level: ir.RowLevel}
	for i, f := range lo.folds {
		fold := *f
		fold.Body = ir.Cast(ir.Apply(ir.OpMul, c.A.Value, c.B[i].Value), f.Body.Type)
		sum.Folds = append(sum.Folds, &fold)
	}
	for _, s := range lo.stores {
		row.Stores = append(row.Stores, s.Store)
	}
	b := newBody(lo.kernel)
	return &ir.Variant{Sections: b.sections([]*ir.Section{sum, row}), Locals: b.locals}
}

// productVariant is a variant without a schedule: a pass that folds the product, then the stores. The
// operands of c become expressions over the variant's locals.
func (lo productKernel) productVariant(fold *ir.Fold, c *ir.Contract) *ir.Variant {
	row := &ir.Section{Level: ir.RowLevel}
	for _, st := range lo.stores {
		row.Stores = append(row.Stores, st.Store)
	}
	b := newBody(lo.kernel)
	v := &ir.Variant{Sections: b.sections([]*ir.Section{{Level: ir.FullLevel, Folds: []*ir.Fold{fold}}, row}), Contract: c}
	v.Locals = b.locals
	body := exactlyWidened(v.Sections[0].Folds[0].Body)
	c.A.Value, c.B[0].Value = body.Args[0], body.Args[1]
	return v
}

// contractVariant builds one variant; any says whether an operand is read in vectors.
func (lo productKernel) contractVariant(c ir.Contract, aligned sides) (v *ir.Variant, any bool) {
	v = lo.contractBody(&c)
	v.Contract = &c
	v.Schedule = ir.Schedule{Mapping: ir.ContractMapping, Threads: contractThreads, Vector: operandVector,
		TileM: contractTile, TileN: contractTile / len(c.B), TileK: contractDepth, Stages: contractStages}
	needs := algebra.NewNeeds(lo.positive(), false)
	c.B = slices.Clone(c.B)
	allWide := true
	for i, f := range v.Sections[0].Folds {
		c.A.Value, c.B[i].Value = f.Body.Args[0], f.Body.Args[1]
	}
	for i := range c.B {
		needs.Assume = lo.assumes(aligned, &c.B[i], &c)
		lo.operand(&c.B[i], c.N, c.Type, needs)
		any, allWide = any || c.B[i].Wide, allWide && c.B[i].Wide
		if c.B[i].KLast != c.B[0].KLast {
			c.B[i].KLast, c.B[i].Wide, allWide = c.B[0].KLast, false, false
		}
	}
	needs.Assume = lo.assumes(aligned, &c.A, &c)
	lo.operand(&c.A, c.M, c.Type, needs)
	switch {
	case c.A.Wide && allWide: // a prologue would need more registers
		v.Schedule.MinBlocks = contractBlocks
	case !c.A.Wide && !any && len(c.B) == 1: // two right operands leave fewer registers for sums
		v.Schedule.TileN /= 2
	}
	v.When = lo.worthTiles(&c, forecast.ContractLeast)
	lo.require(v, needs)
	return v, any || c.A.Wide
}

// fewTogether is the rows of an operand that several others are multiplied by from which tiles pay, however empty. Nothing else
// reads these others once for all rows: mappings for few rows multiply two operands.
const fewTogether = 2

// worthTiles is the condition that tiles pay: both sides have at least the given number of
// rows.
func (lo productKernel) worthTiles(c *ir.Contract, least int64) *ir.Expr {
	rows := least
	if len(c.B) > 1 {
		rows = fewTogether
	}
	atLeast := func(ranges []*ir.Range, n int64) *ir.Expr {
		return ir.Apply(ir.OpLe, ir.IntConst(n), algebra.Product(ranges))
	}
	return algebra.And(algebra.And(atLeast(c.M, rows), atLeast(c.N, least)), atLeast(lo.columns(), contractColumns))
}

// operand chooses how one side is read: along which of its ranges it is contiguous, and whether
// vectors of type t are aligned. It adds to needs what that requires of the sizes.
func (lo productKernel) operand(o *ir.Operand, own []*ir.Range, t ir.DType, needs *algebra.Needs) {
	read := directRead(o.Value)
	main := read
	if main == nil {
		main = largestRead(o.Value)
	}
	o.KLast = true
	ranges := lo.columns()
	if main != nil && !algebra.UnitStride(main, algebra.Innermost(ranges)) && algebra.UnitStride(main, algebra.Innermost(own)) {
		o.KLast, ranges = false, own
	}
	if read = storedRead(o.Value, t); !needs.Assume || read == nil || read.Guard != nil {
		return
	}
	lane := algebra.Innermost(ranges)
	whole := []*ir.Expr{lane.Extent}           // sizes that must be multiples of a vector
	sizes := []*ir.Expr{lane.Extent}           // sizes whose symbols may be assumed to be multiples
	if lo.r.cols[lane] && lo.r.folded != nil { // the lane is a chunk of a longer range
		sizes = append(sizes, read.Args[0])
		if e := lo.r.folded.extent; e != nil {
			whole, sizes = append(whole, e), append(sizes, e)
		}
	}
	o.Wide = needs.Try(operandVector, sizes, func(f ir.Facts) bool {
		return algebra.Contiguous(read.Args[0], lane, operandVector, f) &&
			!slices.ContainsFunc(whole, func(e *ir.Expr) bool { return !ir.Multiple(e, operandVector, f) })
	})
}
