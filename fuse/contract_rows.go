package fuse

import (
	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/forecast"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// Figures of the row product mapping, in which each warp of a block computes the whole tile over a share
// of the columns. Every tile along N folds the rows of the tile again, so tiles should have few rows.
// These have the fewest with which a thread still multiplies more often than it reads shared memory.
const (
	rowProductTileM     = 16
	rowProductTileN     = 32
	rowProductPart      = 4 // rows of M, and rows of N, that a thread computes
	rowProductThreads   = 512
	rowProductReserve   = 1 << 10 // bytes left for static shared memory
	rowProductRegisters = 64      // registers of a thread for its part of a folded row
	rowProductPieces    = 24      // registers for pieces of the right operand that are being read
	rowProductBlocks    = 2       // blocks on a multiprocessor where two fit: the copies of one overlap with the work of the other
	rowProductShort     = 24      // most registers for a row if two blocks are to fit
)

// rowProductKernel makes the variants of a product whose left operand needs folds over its own rows: each
// block computes these folds itself, row by row.
type rowProductKernel struct{ productKernel }

// rowProductDepth is the columns in shared memory: all of them, rounded up to vectors of four.
func rowProductDepth(columns int64) int { return int(columns+3) / 4 * 4 }

// rowProductSchedule is the schedule of products over so many columns in shared memory.
func rowProductSchedule(depth int) ir.Schedule {
	return ir.Schedule{Mapping: ir.RowProductMapping, Threads: rowProductThreads, RowThreads: 32, Vector: 1,
		TileM: rowProductTileM, TileN: rowProductTileN, TileK: depth, PartM: rowProductPart, PartN: rowProductPart}
}

// rowProductShared is the bytes of dynamic shared memory of such a product in f32.
func rowProductShared(depth int) int {
	return ir.ContractRowsBytes(rowProductSchedule(depth), ir.F32.Size())
}

// smallProductVariants makes the variants of a product of few tiles that needs no folds and whose rows are
// read in order. Two blocks on a multiprocessor hold all columns, which saves the cluster that would add
// up the parts of a split-K.
func (lo rowProductKernel) smallProductVariants() []*ir.Variant {
	f, length := lo.sumOfProduct(), algebra.Product(lo.k.Cols)
	if f == nil || f.Body.Type != ir.F32 || !lo.device.TensorCores() ||
		length.Op != ir.OpConst || length.Int < forecast.SplitKPoints {
		return nil
	}
	if rowProductBlocks*(rowProductShared(rowProductDepth(length.Int))+rowProductReserve) > ir.ReferenceShared {
		return nil
	}
	c := lo.sides(f.Body)
	if c == nil || len(c.M) == 0 {
		return nil
	}
	a, b := algebra.ReadIn(c.A.Value), algebra.ReadIn(c.B[0].Value)
	if a == nil || b == nil || a.Guard != nil || b.Guard != nil {
		return nil
	}
	if unit, t := lo.multiplier(c, f.Body.Type); unit != ir.FMAUnit || t != ir.F32 {
		return nil
	}
	if !algebra.UnitStride(a, algebra.Innermost(lo.k.Cols)) || !algebra.UnitStride(b, algebra.Innermost(c.N)) {
		return nil
	}
	tiles := ir.Apply(ir.OpMul, algebra.Product(c.Batch),
		ir.Apply(ir.OpMul, algebra.TilesOf(algebra.Product(c.M), rowProductTileM), algebra.TilesOf(algebra.Product(c.N), rowProductTileN)))
	return lo.rowProductVariants(f.Result.Value, algebra.AtMostSize(tiles, rowProductBlocks*ir.ReferenceSMs))
}

// rowProductVariants makes the variants of a product whose left operand may need folds over its rows, for
// the sizes of when: one with aligned accesses, and one without.
func (lo rowProductKernel) rowProductVariants(of *ir.Value, when *ir.Expr) []*ir.Variant {
	var out []*ir.Variant
	if ir.Decide(algebra.OrTrue(when), ir.Facts{}) == ir.False {
		return nil
	}
	for _, wide := range []bool{true, false} {
		if v := lo.rowProductVariant(of, wide); v != nil {
			aligned := v.When == nil
			v.When = algebra.And(when, v.When)
			out = append(out, v)
			if aligned {
				break
			}
		}
	}
	return out
}

// rowProductVariant builds one variant; nil where wide asks for aligned accesses and no access needs them,
// or none can have them.
func (lo rowProductKernel) rowProductVariant(of *ir.Value, wide bool) *ir.Variant {
	sections, fold := lo.productLast(of)
	c := lo.sides(fold.Body)
	if c == nil || len(c.M) == 0 {
		panic("BUG: a product merged with a row program has no two sides")
	}
	if lo.foldsOver(of, c.N) || waits(c.B[0].Value) {
		c = swapped(c)
	}
	moveFoldResultsLeft(c)
	c.Unit, c.Type = ir.FMAUnit, ir.F32
	fold.Body = ir.Apply(ir.OpMul, c.A.Value, c.B[0].Value)
	b := newBody(lo.kernel)
	v := &ir.Variant{Sections: b.sections(sections), Contract: c}
	v.Locals = b.locals
	body := v.Sections[len(sections)-2].Folds[0].Body
	c.A.Value, c.B[0].Value = body.Args[0], body.Args[1]
	depth := rowProductDepth(algebra.Product(lo.k.Cols).Int)
	v.Schedule = rowProductSchedule(depth)
	needs := algebra.NewNeeds(lo.inside(ir.FullLevel), wide)
	lo.splitOperand(&c.B[0], c.N, v, c, needs)
	fewPieces(&c.B[0], v.Schedule)
	c.B[0].Early = lo.readsInputs(c.B[0].Value)
	lo.epilogueLanes(v, c, needs)
	if wide && !needs.Any {
		return nil
	}
	registers := lo.foldedRows(v, needs)
	if c.B[0].Pieces == nil && registers <= rowProductShort && rowProductBlocks*(rowProductShared(depth)+rowProductReserve) <= ir.ReferenceShared {
		v.Schedule.MinBlocks = rowProductBlocks
	}
	v.When = needs.Condition()
	if v.When != nil {
		v.Facts = needs.Facts
	}
	return v
}

// productLast returns the passes of the row program, then one pass for the product alone, then the stores.
func (lo rowProductKernel) productLast(of *ir.Value) (sections []*ir.Section, fold *ir.Fold) {
	row := &ir.Section{Level: ir.RowLevel}
	for _, s := range lo.passes(false) {
		folds := s.Folds
		s.Folds = nil
		for _, f := range folds {
			if f.Result.Value == of {
				fold = f
			} else {
				s.Folds = append(s.Folds, f)
			}
		}
		switch {
		case s.Level == ir.RowLevel:
			row = s
		case len(s.Folds) > 0:
			sections = append(sections, s)
		}
	}
	return append(sections, &ir.Section{Level: ir.FullLevel, Folds: []*ir.Fold{fold}}, row), fold
}

// foldsOver reports whether the folds beside the product differ along some of the ranges.
func (lo rowProductKernel) foldsOver(of *ir.Value, rows []*ir.Range) bool {
	for _, f := range lo.folds {
		if f.Result.Value == of {
			continue
		}
		for _, e := range []*ir.Expr{f.Body, f.Where} {
			if e != nil && algebra.DependsOnAny(e, algebra.RangeSet(rows)) {
				return true
			}
		}
	}
	return false
}

// moveFoldResultsLeft moves all factors that read results of folds to the left side. A factor that is only such a
// result, like the scale of a norm's rows, has no rows of its own from which its side would follow.
func moveFoldResultsLeft(c *ir.Contract) {
	left, right := form.FactorsOf(c.A.Value), []*ir.Expr(nil)
	for _, f := range form.FactorsOf(c.B[0].Value) {
		if waits(f) {
			left = append(left, f)
		} else {
			right = append(right, f)
		}
	}
	c.A.Value, c.B[0].Value = form.ProductOf(left), form.ProductOf(right)
}

// readsInputs reports whether an expression over locals reads nothing but inputs of the graph.
func (lo rowProductKernel) readsInputs(e *ir.Expr) bool {
	inputs := true
	ir.WalkThrough(func(e *ir.Expr) bool {
		inputs = inputs && (e.Op != ir.OpRead || e.Arg.Buffer.Kind == ir.InputBuffer)
		return inputs
	}, e)
	return inputs
}

// foldedRows chooses how a warp goes through a row: in vectors where the reads of the left operand are
// aligned for them, and with what several passes need in registers where that fits. It returns the
// registers that a thread needs for its part of the row.
func (lo rowProductKernel) foldedRows(v *ir.Variant, needs *algebra.Needs) (registers int) {
	inner, vector := algebra.Innermost(lo.k.Cols), int64(v.Schedule.Vector)
	if vector > 1 && ir.Multiple(inner.Extent, vector, needs.Facts) {
		for _, l := range ir.LocalsIn(v.Locals, v.Contract.A.Value) {
			if r := algebra.ReadIn(l.Def); r != nil && l.Level == ir.FullLevel && r.Guard == nil && !lo.variesThroughLocals(r.Args[0], inner) {
				l.Wide = algebra.Contiguous(r.Args[0], inner, vector, needs.Facts)
			}
		}
	}
	items := (v.Schedule.TileK + 32*v.Schedule.Vector - 1) / (32 * v.Schedule.Vector)
	folds := *v
	folds.Sections = append(append([]*ir.Section(nil), v.Sections[:len(v.Sections)-2]...), operandPass(v))
	kept := keep(&folds)
	registers = int(words(&folds, kept) * float64(items*v.Schedule.Vector))
	if registers <= rowProductRegisters {
		v.Keep, v.Schedule.Items = kept, items
		return registers
	}
	v.Schedule.Unroll = max(1, loopRegisters/v.Schedule.Vector/2)
	return v.Schedule.Unroll * v.Schedule.Vector
}

// fewPieces reads each element by itself where pieces, which stay in registers until the folds are done,
// would take too many registers.
func fewPieces(o *ir.Operand, s ir.Schedule) {
	if o.Pieces == nil {
		return
	}
	turns := (s.TileN*s.TileK/o.Pieces.Length + s.Threads - 1) / s.Threads
	registers := 0
	for _, r := range o.Pieces.Reads {
		registers += turns * (r.Width*r.Arg.Type.Size() + 3) / 4
	}
	if registers > rowProductPieces {
		read := directRead(o.Value)
		o.Pieces, o.Async = nil, read != nil && read.Guard == nil && read.Type == ir.F32
	}
}

// operandPass is a pass that computes the left operand alone.
func operandPass(v *ir.Variant) *ir.Section {
	return &ir.Section{Level: ir.FullLevel, Stores: []*ir.Store{{Offset: ir.IntConst(0), Value: v.Contract.A.Value}}}
}
