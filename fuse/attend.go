package fuse

import (
	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/forecast"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// Figures of the attend mapping through mma.sync: each warp takes 16 queries, and
// all their keys.
const (
	attendThreads = 256
	attendTileM   = 128
	attendTileN   = 64 // keys of a stage; 32 where heads are long or shared memory is short
	attendStages  = 2

	attendFew        = 64 // queries, heads of a group packed, up to which the warps of a block divide the keys
	attendFewThreads = 128
)

// attendKernel makes the variants of a stream: weighted sums under exponentials of scores, as in attention.
type attendKernel struct{ *kernel }

// heads are the sizes that queries, keys and values are padded to where the program
// leaves them open.
var heads = []int64{64, 128, form.LargestHead}

// attendVariants makes the variants of a stream: for each size of heads one that
// copies tiles as memory has them, and one for operands that are computed, or not
// aligned, on their way. Heads longer than any tile take the flat mapping.
func (lo attendKernel) attendVariants() []*ir.Variant {
	a, few := lo.attend, lo.few
	var out []*ir.Variant
	for _, head := range heads {
		depth, width, fits := lo.padded(a.Depth, head), lo.padded(a.N, head), lo.fits(a, head)
		if v := lo.attendWarpgroupVariant(*a, depth, width); v != nil && !few {
			v.When = algebra.And(fits, v.When)
			out = append(out, v)
		}
		for _, wide := range []bool{true, false} {
			v, any := lo.attendVariant(*a, depth, width, wide)
			if !any && wide {
				continue
			}
			v.When = algebra.And(fits, v.When)
			out = append(out, v)
			if v.When == nil {
				return out
			}
			if v.Facts.Divisible == nil {
				break // of this size of heads
			}
		}
	}
	flat := columnKernel{lo.kernel}.flatVariants()
	last := flat[len(flat)-1]
	last.Schedule.Unroll = 1 // a column is a product: one at a time fills the registers
	return append(out, last)
}

// padded is a number of points rounded up to whole fragments; that of a size of
// heads where it is open.
func (lo attendKernel) padded(ranges []*ir.Range, head int64) int {
	n := algebra.Product(ranges)
	if n.Op != ir.OpConst {
		return int(head)
	}
	return (int(n.Int) + forecast.Fragment - 1) / forecast.Fragment * forecast.Fragment
}

// fits is the condition that open sizes of heads are at most the given one; nil for
// always.
func (lo attendKernel) fits(a *ir.Attend, head int64) *ir.Expr {
	var out *ir.Expr
	for _, ranges := range [][]*ir.Range{a.Depth, a.N} {
		if n := algebra.Product(ranges); n.Op != ir.OpConst {
			out = algebra.And(out, ir.Apply(ir.OpLe, n, ir.IntConst(head)))
		}
	}
	return out
}

// attendVariant builds one variant through mma.sync; any says whether an operand is
// copied as it is.
func (lo attendKernel) attendVariant(a ir.Attend, depth, width int, wide bool) (v *ir.Variant, any bool) {
	a.Width = width
	needs := algebra.NewNeeds(lo.positive(), wide)
	lo.tileOperand(&a.Q, a.M, a.Depth, a.Type, needs)
	lo.tileOperand(&a.K, lo.k.Cols, a.Depth, a.Type, needs)
	lo.tileOperand(&a.V, lo.k.Cols, a.N, a.Type, needs)
	v = lo.attendBody(&a, lo.attendSchedule(&a, depth))
	lo.require(v, needs)
	return v, a.Q.Wide || a.K.Wide || a.V.Wide
}

// require makes a variant one for sizes that are what its accesses need.
func (lo *kernel) require(v *ir.Variant, needs *algebra.Needs) {
	v.When = algebra.And(v.When, needs.Condition())
	if !needs.None() {
		v.Facts = needs.With(lo.facts)
	}
}

// attendBody lowers folds, stores and mask over locals.
func (lo attendKernel) attendBody(a *ir.Attend, s ir.Schedule) *ir.Variant {
	b := newBody(lo.kernel)
	v := &ir.Variant{Sections: b.sections(lo.passes(true)), Attend: a, Schedule: s}
	stream := lo.r.stream
	a.Sums = nil
	for _, f := range v.Sections[0].Folds {
		switch f.Result.Value {
		case stream.Weight.Max.From:
			a.Max = f
		case stream.Out:
			a.Acc = f
		default:
			a.Sums = append(a.Sums, f)
		}
		if f.After == nil && f.Op != ir.Max {
			panic("BUG: " + f.Result.Name + " does not follow the maximum of its stream")
		}
	}
	lo.widenStores(v, a)
	a.Skip = lo.tileMask(b, a, s)
	v.Locals = b.locals
	return v
}

// widenStores marks the stores of 16-bit results that run with the columns of the
// values in aligned vectors.
func (lo attendKernel) widenStores(v *ir.Variant, a *ir.Attend) {
	known := lo.facts
	known.Positive = true
	const spans = 32 // columns that the threads of a row store together
	lane := algebra.Innermost(a.N)
	if a.Width%spans != 0 || !ir.Multiple(lane.Extent, operandVector, known) {
		return
	}
	for _, s := range v.Sections {
		for _, st := range s.Stores {
			ok := algebra.Contiguous(st.Offset, lane, operandVector, known)
			st.Wide = ok && st.Guard == nil && (st.Arg.Type == ir.BF16 || st.Arg.Type == ir.F16)
		}
	}
}

// attendSchedule chooses how many keys a stage holds: as many as shared memory has
// room for beside the queries.
func (lo attendKernel) attendSchedule(a *ir.Attend, depth int) ir.Schedule {
	m, threads := attendTileM, attendThreads
	if queries := algebra.Product(a.M); queries.Op == ir.OpConst && queries.Int <= attendFew {
		m, threads = forecast.Fragment, attendFewThreads
	}
	s := ir.Schedule{Mapping: ir.AttendMapping, Threads: threads, Vector: operandVector,
		TileM: m, TileN: attendTileN, TileK: depth, Stages: attendStages, MinBlocks: 1}
	for {
		fits := ir.PanelBytes(s, a) <= lo.device.SharedBlock
		if fits && (s.TileN == forecast.Fragment || max(depth, a.Width) <= attendTileM || s.TileN < attendTileN) {
			return s
		}
		s.TileN /= 2
	}
}

// tableBytes is what is kept in shared memory besides panels: answers for tiles of keys,
// barriers, and what aligns slabs.
const tableBytes = 2048

// tileOperand says how tiles of an operand, rows by lanes, are read: whether memory
// runs along the lanes, and whether it can be copied in aligned vectors of type t,
// adding to needs what that takes of symbols.
func (lo attendKernel) tileOperand(o *ir.Operand, rows, lanes []*ir.Range, t ir.DType, needs *algebra.Needs) {
	read := directRead(form.Stripped(o.Value))
	lane := algebra.Innermost(lanes)
	o.KLast = read == nil || len(rows) == 0 || algebra.UnitStride(read, lane) || !algebra.UnitStride(read, algebra.Innermost(rows))
	if read = storedRead(form.Stripped(o.Value), t); !needs.Assume || read == nil ||
		read.Guard != nil && (algebra.DependsOnAny(read.Guard, algebra.RangeSet(lanes)) || !read.Fill.IsConst(0)) {
		return
	}
	o.Wide = needs.Try(operandVector, []*ir.Expr{read.Args[0], lane.Extent}, func(f ir.Facts) bool {
		return algebra.Contiguous(read.Args[0], lane, operandVector, f) && ir.Multiple(lane.Extent, operandVector, f)
	})
}
