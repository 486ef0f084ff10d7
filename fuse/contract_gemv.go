package fuse

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/forecast"
	"github.com/fusec/fusec/fuse/packed"
	"github.com/fusec/fusec/ir"
)

// Figures of the gemv mapping: products in which one side has few rows.
const (
	gemvLeast      = 1024 // least rows of the other side, and least columns, for a block to have enough to read
	gemvNeeded     = 6    // a shape must give work to six of eight multiprocessors
	gemvNeighbours = 8    // neighbours, of the side with few rows, that are computed together
	gemvQuad       = 4    // threads that multiply neighbouring pieces of a row together
	gemvThreads    = 256  // eight warps, which divide the columns among themselves
)

// gemvShape is a tile of the gemv mapping: the most rows of the side with few, the rows of the other side,
// and the blocks of this shape that fit a multiprocessor.
type gemvShape struct{ fewRows, manyRows, blocks int }

// gemvShapes are ordered by the number of few rows, then from the shape that needs most rows of the other
// side to the one that takes any number. Many small blocks wait for memory at different times, which hides
// latency.
var gemvShapes = []gemvShape{{fewRows: 8, manyRows: 16, blocks: 4}, {fewRows: 16, manyRows: 32, blocks: 2},
	{fewRows: 16, manyRows: 16, blocks: 2}}

// gemvPlain are the shapes for elements that are not packed.
var gemvPlain = []gemvShape{{fewRows: 8, manyRows: 16, blocks: 4}, {fewRows: 16, manyRows: 32, blocks: 2}}

// gemvLengths are the numbers of neighbours in a row that one access may read, the largest first.
var gemvLengths = []int{32, 16, 8}

// gemvKernel makes the variants of products of few rows, which are bound by reading packed weights.
type gemvKernel struct{ productKernel }

// gemvVariants makes the variants of a product with few rows on one side. The other side is read once, in
// pieces of 16 bytes, however it is packed. Variants for elements that are not packed are returned apart,
// because tiles are faster where both sides are aligned.
func (lo gemvKernel) gemvVariants() (packed, plain []*ir.Variant) {
	f := lo.sumOfProduct()
	if f == nil {
		return nil, nil
	}
	c := lo.sides(f.Body)
	if c == nil {
		return nil, nil
	}
	fold := *f
	fold.Body = ir.Apply(ir.OpMul, c.A.Value, c.B[0].Value)
	for _, fewN := range []bool{false, true} {
		c.FewN = fewN
		if c.Unit, c.Type = lo.gemvType(c, f.Body.Type); c.Unit != ir.HalfUnit {
			continue
		}
		if many := c.Many(); storedRead(many.Value, c.Type) != nil {
			plain = append(plain, lo.plainVariants(fold, *c)...)
			continue
		}
		for i := range gemvShapes {
			packed = append(packed, lo.gemvShapeVariants(fold, *c, i)...)
		}
	}
	return packed, plain
}

// plainVariants makes the variants for elements that memory holds in the type in which they are
// multiplied. A product with one row is a weighted sum, which the mappings of reductions read faster.
func (lo gemvKernel) plainVariants(fold ir.Fold, c ir.Contract) (out []*ir.Variant) {
	few, many := gemvRows(&c)
	for _, shape := range gemvPlain {
		when := algebra.And(algebra.AtLeastSize(few, 2), lo.enoughToRead(shape, few, many))
		if v, _ := lo.gemvVariant(fold, c, shape, when, false); v != nil {
			out = append(out, v)
		}
	}
	return out
}

// gemvRows returns the rows of the side with few, and of the other side.
func gemvRows(c *ir.Contract) (few, many *ir.Expr) {
	if c.FewN {
		return algebra.Product(c.N), algebra.Product(c.M)
	}
	return algebra.Product(c.M), algebra.Product(c.N)
}

// enoughToRead is the condition that the few rows fit a shape and that its blocks have enough to read of
// the others.
func (lo gemvKernel) enoughToRead(shape gemvShape, few, many *ir.Expr) *ir.Expr {
	return algebra.And(algebra.AtMostSize(few, int64(shape.fewRows)),
		algebra.And(algebra.AtLeastSize(many, gemvLeast), algebra.AtLeastSize(algebra.Product(lo.k.Cols), gemvLeast)))
}

// gemvShapeVariants makes the variants of shape i, for sizes that the shapes before it do not take.
func (lo gemvKernel) gemvShapeVariants(fold ir.Fold, c ir.Contract, i int) (out []*ir.Variant) {
	few, many := gemvRows(&c)
	shape := gemvShapes[i]
	when := lo.enoughToRead(shape, few, many)
	last := i+1 == len(gemvShapes) || gemvShapes[i+1].fewRows > shape.fewRows
	if !last {
		rows := ir.Simplify(ir.Apply(ir.OpMul, many, algebra.Product(c.Batch)), ir.Facts{})
		when = algebra.And(when, algebra.AtLeastSize(rows, int64(ir.ReferenceSMs*shape.blocks*shape.manyRows*gemvNeeded/8)))
	}
	for _, vectors := range []bool{true, false} {
		v, always := lo.gemvVariant(fold, c, shape, when, vectors)
		if v != nil {
			out = append(out, v)
		}
		if always || !last {
			break
		}
	}
	return out
}

// gemvType returns the unit that multiplies and the type in which it does. Scales that are hoisted out of
// the sums do not count.
func (lo gemvKernel) gemvType(c *ir.Contract, sum ir.DType) (ir.Multiplier, ir.DType) {
	d := *c
	d.B = slices.Clone(c.B)
	many := d.Many()
	inner := algebra.Innermost(lo.k.Cols)
	facts := algebra.Assuming(lo.inside(ir.FullLevel), algebra.MultiplesIn(int64(gemvQuad*gemvLengths[0]), inner.Extent))
	many.Value, _ = lo.hoisted(many.Value, inner, gemvQuad*gemvNeighbours, facts)
	return lo.multiplier(&d, sum)
}

// gemvVariant builds one variant; nil if no sizes meet its conditions, or if the side with many rows
// cannot be read in pieces along the columns. Results are written in vectors even where that requires more
// of the sizes; always is true where it does not.
func (lo gemvKernel) gemvVariant(
	fold ir.Fold, c ir.Contract, s gemvShape, when *ir.Expr, vectors bool,
) (v *ir.Variant, always bool) {
	if ir.Decide(algebra.OrTrue(when), ir.Facts{}) == ir.False {
		return nil, true
	}
	c.B = slices.Clone(c.B)
	v = lo.productVariant(&fold, &c)
	v.Schedule = ir.Schedule{Mapping: ir.GemvMapping, Threads: gemvThreads, Vector: 1, TileM: s.fewRows,
		TileN: s.manyRows, MinBlocks: s.blocks}
	few, many := c.Few(), c.Many()
	needs := algebra.NewNeeds(lo.inside(ir.FullLevel), true)
	if !lo.gemvPieces(many, v.Locals, c.Type, needs) {
		return nil, true // elements that are not packed are faster through tiles of the split-K mapping
	}
	v.Schedule.Unroll = 1
	if packs(many.Pieces) {
		v.Schedule.Unroll = max(1, min(forecast.AccessBytes/longestAccess(many.Pieces), gemvLengths[0]/many.Pieces.Length))
	}
	lo.evictFirst(v, many.Pieces)
	inner := algebra.Innermost(lo.k.Cols)
	needs.Try(gemvNeighbours, []*ir.Expr{inner.Extent}, func(f ir.Facts) bool {
		few.Pieces = lo.pieces(few.Value, v.Locals, inner, gemvNeighbours, f)
		return few.Pieces != nil
	})
	v.Schedule.MinBlocks = gemvBlocks(few, many, v.Schedule)
	before := algebra.OrTrue(needs.Condition())
	needs.Assume = vectors
	lo.epilogueLanes(v, &c, needs)
	v.When = algebra.And(when, needs.Condition())
	if needs.Condition() != nil {
		v.Facts = needs.Facts
	}
	return v, ir.Equal(before, algebra.OrTrue(needs.Condition()))
}

// evictFirst marks the reads of a piece that are whole accesses for early eviction from the cache: no
// other block reads them again.
func (lo gemvKernel) evictFirst(v *ir.Variant, p *ir.Piece) {
	for _, r := range p.Reads {
		for _, l := range v.Locals {
			if read := algebra.ReadIn(l.Def); read != nil && read.Arg == r.Arg && r.Width*r.Arg.Type.Size() == forecast.AccessBytes {
				l.EvictFirst = lo.exceedsCache(r.Arg.Buffer, evictFirstCaches)
			}
		}
	}
}

// gemvBlocks is how many blocks of a schedule the registers of a multiprocessor are enough for.
func gemvBlocks(few, many *ir.Operand, s ir.Schedule) int {
	fields := many.Pieces.Fields
	switch {
	case !packs(many.Pieces):
		return s.MinBlocks
	case few.Pieces == nil || fields == nil && directRead(many.Value) == nil:
		return 1 // an address, or a value, for each element takes registers
	case s.Unroll > 1 || fields != nil && fields.Offset != nil:
		return min(s.MinBlocks, 2) // factors and offsets take registers too
	}
	return s.MinBlocks
}

// gemvPieces cuts the side with many rows into the longest pieces that read 16 bytes of packed elements.
// It takes shorter ones where only those allow a scale to be hoisted out of the sums.
func (lo gemvKernel) gemvPieces(o *ir.Operand, locals []*ir.Local, t ir.DType, needs *algebra.Needs) bool {
	inner, value := algebra.Innermost(lo.k.Cols), o.Value
	if storedRead(value, t) != nil {
		o.KLast = true
		return needs.Try(operandVector, []*ir.Expr{inner.Extent}, func(f ir.Facts) bool {
			o.Pieces = lo.pieces(value, locals, inner, operandVector, f)
			return o.Pieces != nil && longestAccess(o.Pieces) == forecast.AccessBytes
		})
	}
	for _, needScale := range []bool{true, false} {
		for _, length := range gemvLengths {
			ok := needs.Try(int64(gemvQuad*length), []*ir.Expr{inner.Extent}, func(f ir.Facts) bool {
				rest, scale := lo.hoisted(value, inner, int64(gemvQuad*length), f)
				if needScale && scale == nil {
					return false
				}
				o.Value, o.Pieces, o.Scale = rest, lo.pieces(rest, locals, inner, length, f), nil
				if o.Pieces == nil || !packs(o.Pieces) || longestAccess(o.Pieces) > forecast.AccessBytes {
					return false
				}
				if scale != nil {
					o.Scale = lo.pieces(scale, locals, inner, length, f)
				}
				return scale == nil || o.Scale != nil
			})
			if ok {
				o.Pieces.Fields = packed.Fields(o.Pieces, t)
				o.KLast = true
				return true
			}
		}
	}
	o.Value, o.Pieces, o.Scale = value, nil, nil
	return false
}

// longestAccess is the bytes of the largest read of a piece.
func longestAccess(p *ir.Piece) int {
	most := 0
	for _, r := range p.Reads {
		most = max(most, r.Width*r.Arg.Type.Size())
	}
	return most
}

// packs reports whether a piece reads fewer bytes than its elements would take in 16 bits each.
func packs(p *ir.Piece) bool { return longestAccess(p) < 2*p.Length }
