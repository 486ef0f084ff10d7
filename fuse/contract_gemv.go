package fuse

import (
	"slices"

	"github.com/fusec/fusec/ir"
)

// Figures of the gemv mapping.
const (
	gemvRows    = 16   // the few rows: those of a tensor core fragment
	gemvThreads = 256  // eight warps, which share the columns
	gemvBlocks  = 2    // on a multiprocessor, of 128 registers a thread
	gemvWide    = 32   // rows of the other side of one block
	gemvNarrow  = 16   // where those would leave multiprocessors without work
	gemvLeast   = 1024 // rows of the other side, and columns, from which a block has enough to read
	gemvFew     = 8    // neighbours of the few rows that are computed together
	gemvFlight  = 2    // pieces of a row that a thread has on their way
)

// gemvLengths are the neighbours of a row that one access may serve, most first.
var gemvLengths = []int{32, 16, 8}

// gemvVariants makes the variants of a product with few rows on one side: what the
// other side holds is read once, in pieces of 16 bytes whatever it is packed in.
func (lo *lowering) gemvVariants() []*ir.Variant {
	f := lo.sumOfProduct()
	if f == nil {
		return nil
	}
	c := lo.sides(f.Body)
	if c == nil {
		return nil
	}
	if c.Unit, c.Type = lo.multiplier(c, f.Body.Type); c.Unit != ir.HalfUnit {
		return nil
	}
	fold := *f
	fold.Body = ir.Apply(ir.OpMul, c.A.Value, c.B[0].Value)
	var out []*ir.Variant
	for _, fewN := range []bool{false, true} {
		c.FewN = fewN
		few, many := product(c.M), product(c.N)
		if fewN {
			few, many = many, few
		}
		rows := ir.Simplify(ir.Apply(ir.OpMul, many, product(c.Batch)), ir.Facts{})
		when := and(and(atMostSize(few, gemvRows), atLeastSize(many, gemvLeast)), atLeastSize(product(lo.k.Cols), gemvLeast))
		wide := atLeastSize(rows, gemvBlocks*sliceDevice*gemvWide*3/4)
		for _, choice := range []struct {
			rows int
			when *ir.Expr
		}{{gemvWide, and(when, wide)}, {gemvNarrow, when}} {
			if v := lo.gemvVariant(fold, *c, choice.rows, choice.when); v != nil {
				out = append(out, v)
			}
		}
	}
	return out
}

// gemvVariant builds one variant; nil where its sizes exclude each other, or where
// the side with many rows cannot be read in pieces along the columns.
func (lo *lowering) gemvVariant(fold ir.Fold, c ir.Contract, rows int, when *ir.Expr) *ir.Variant {
	if ir.Decide(orTrue(when), ir.Facts{}) == ir.False {
		return nil
	}
	c.B = slices.Clone(c.B)
	v := lo.productVariant(&fold, &c)
	v.Schedule = ir.Schedule{Mapping: ir.GemvMapping, Threads: gemvThreads, Vector: 1, TileM: gemvRows, TileN: rows,
		MinBlocks: gemvBlocks, Unroll: gemvFlight}
	few, many := &c.A, &c.B[0]
	if c.FewN {
		few, many = many, few
	}
	a := lo.newAlignment(true)
	inner := innermost(lo.k.Cols)
	for _, length := range gemvLengths {
		ok := a.try(inner, int64(length), func(f ir.Facts) bool {
			many.Pieces = lo.pieces(many.Value, v.Locals, inner, length, f)
			return many.Pieces != nil && longestAccess(many.Pieces) <= accessBytes
		})
		if ok {
			break
		}
		many.Pieces = nil
	}
	if many.Pieces == nil || longestAccess(many.Pieces) < accessBytes || many.Pieces.Length == gemvFew {
		return nil // what is not packed reaches the slice mapping's tiles sooner
	}
	many.KLast = true
	a.try(inner, gemvFew, func(f ir.Facts) bool {
		few.Pieces = lo.pieces(few.Value, v.Locals, inner, gemvFew, f)
		return few.Pieces != nil
	})
	if many.Pieces.Length > gemvFew {
		v.Schedule.Unroll = 1 // what is computed from a piece takes registers
	}
	if few.Pieces == nil {
		v.Schedule.MinBlocks = 1 // and so do addresses for each element
	}
	lo.epilogueLanes(v, &c, a)
	v.When = and(when, a.condition())
	if a.condition() != nil {
		v.Facts = a.facts
	}
	return v
}

// longestAccess is the bytes of the largest of a piece's reads.
func longestAccess(p *ir.Piece) int {
	most := 0
	for _, r := range p.Reads {
		most = max(most, r.Width*r.Arg.Type.Size())
	}
	return most
}
