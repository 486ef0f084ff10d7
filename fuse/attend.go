package fuse

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/forecast"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// Figures of attention through mma.sync: each warp takes 16 queries and all their keys.
const (
	attendThreads = 256
	attendTileM   = 128
	attendTileN   = 64 // keys of a stage; 32 where heads are long or there is little shared memory
	attendStages  = 2

	wideKeys = 80 // keys of an f32 stage times their parts where heads are longer than 64, so that registers hold the sums

	attendFewQueries = 64 // most queries, with the heads of a group packed, for which the warps of a block divide the keys
	attendFewThreads = 128
)

// attendKernel makes the variants of a stream: sums weighted by exponentials of scores, as in attention.
type attendKernel struct{ *kernel }

// heads are the sizes of heads to which queries, keys and values are padded where the program leaves the
// size open.
var heads = []int64{64, 128, 192, form.LargestHead}

// attendVariants makes the variants of a stream. For each size of heads there is one whose tiles are
// copied unchanged, and one for operands that are computed or are not aligned.
func (lo attendKernel) attendVariants() []*ir.Variant {
	a, chained := lo.attend, lo.r.stream.Chained
	var out []*ir.Variant
	for _, head := range heads {
		if chained && head > form.LargestChain {
			break
		}
		if a.Parts > 0 && head > form.LargestWideHead {
			break
		}
		depth, width, fits := lo.depth(a, head), lo.padded(a.N, head), lo.fits(a, head)
		if v := lo.attendWarpgroupVariant(*a, depth, width); v != nil && !lo.fewQueries {
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
			if !algebra.Assumes(v.Facts) {
				break // no further variant of this size of heads is needed
			}
		}
	}
	return out
}

// depth is the points of a score, of all products the most, padded.
func (lo attendKernel) depth(a *ir.Attend, head int64) int {
	most := 0
	for _, p := range a.Products() {
		most = max(most, lo.padded(p.Depth, head))
	}
	return most
}

// padded is a number of points, rounded up to whole fragments; where it is open, the given size of heads.
func (lo attendKernel) padded(ranges []*ir.Range, head int64) int {
	n := algebra.Product(ranges)
	if n.Op != ir.OpConst {
		return int(head)
	}
	return (int(n.Int) + forecast.Fragment - 1) / forecast.Fragment * forecast.Fragment
}

// fits is the condition that open sizes of heads are at most the given one; nil where it always holds.
func (lo attendKernel) fits(a *ir.Attend, head int64) *ir.Expr {
	var out *ir.Expr
	all := [][]*ir.Range{a.N}
	for _, p := range a.Products() {
		all = append(all, p.Depth)
	}
	for _, ranges := range all {
		if n := algebra.Product(ranges); n.Op != ir.OpConst {
			out = algebra.And(out, ir.Apply(ir.OpLe, n, ir.IntConst(head)))
		}
	}
	return out
}

// attendVariant builds one variant through mma.sync; any says whether an operand is copied unchanged.
func (lo attendKernel) attendVariant(a ir.Attend, depth, width int, wide bool) (v *ir.Variant, any bool) {
	a.Width = width
	needs := algebra.NewNeeds(lo.positive(), wide)
	lo.tileOperand(&a.Q, a.M, a.Depth, a.Type, needs)
	lo.tileOperand(&a.K, lo.k.Cols, a.Depth, a.Type, needs)
	lo.tileOperand(&a.V, lo.k.Cols, a.N, a.Type, needs)
	any = a.Q.Wide || a.K.Wide || a.V.Wide
	a.Others = slices.Clone(a.Others)
	for i := range a.Others {
		o := &a.Others[i]
		lo.tileOperand(&o.Q, a.M, o.Depth, a.Type, needs)
		lo.tileOperand(&o.K, lo.k.Cols, o.Depth, a.Type, needs)
		any = any || o.Q.Wide || o.K.Wide
	}
	if s := lo.attendSchedule(&a, depth); lo.r.stream.Chained {
		lo.chainBands(&a, s)
		v = lo.chainBody(&a, s, needs.Facts)
	} else {
		v = lo.attendBody(&a, s, needs.Facts)
	}
	lo.require(v, needs)
	return v, any
}

// attendBody lowers folds, stores and mask over locals. known is what holds of the sizes that the variant takes.
func (lo attendKernel) attendBody(a *ir.Attend, s ir.Schedule, known ir.Facts) *ir.Variant {
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
	lo.widenStores(v, a, known)
	a.Skip = lo.tileMask(b, a, s)
	v.Locals = b.locals
	return v
}

// widenStores marks the stores of 16-bit results that are aligned vectors along the columns of the values.
func (lo attendKernel) widenStores(v *ir.Variant, a *ir.Attend, known ir.Facts) {
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

// attendSchedule chooses how many keys a stage holds: as many as fit shared memory beside the queries.
func (lo attendKernel) attendSchedule(a *ir.Attend, depth int) ir.Schedule {
	mapping, m, threads := ir.AttendMapping, attendTileM, attendThreads
	if queries := algebra.Product(a.M); lo.r.stream.Chained {
		mapping = ir.ChainMapping
	} else if queries.Op == ir.OpConst && queries.Int <= attendFewQueries {
		m, threads = forecast.Fragment, attendFewThreads
	}
	s := ir.Schedule{Mapping: mapping, Threads: threads, Vector: operandVector,
		TileM: m, TileN: attendTileN, TileK: depth, Stages: attendStages, MinBlocks: 1}
	if a.Also != nil && a.Width > attendTileN {
		s.TileN /= 2 // threads hold two sums
	}
	if a.Parts > 0 && m > forecast.Fragment && max(depth, a.Width) > attendTileN {
		s.TileN = wideKeys / a.Parts / forecast.Fragment * forecast.Fragment // threads hold what they read of the next stage
	}
	for {
		fits := ir.PanelBytes(s, a) <= lo.device.SharedBlock
		if fits && (s.TileN == forecast.Fragment || max(depth, a.Width) <= attendTileM || s.TileN < attendTileN) {
			if m == forecast.Fragment { // each warp that shares the keys has a fragment of them
				s.Threads = min(s.Threads, s.TileN/forecast.Fragment*32)
			}
			return s
		}
		if s.TileN > forecast.Fragment {
			s.TileN /= 2
			continue
		}
		s.TileM, s.TileN, s.Threads = s.TileM/2, attendTileN, s.Threads/2 // elements of f32 are larger, and chains have several products
	}
}

// tableBytes is the shared memory beside the panels: the table of tests of tiles, barriers, and the
// alignment of slabs.
const tableBytes = 2048

// tileOperand chooses how tiles of an operand, of rows and lanes, are read: whether the lanes are
// contiguous, and whether they can be copied in aligned vectors of type t. It adds to needs what that asks
// of symbols.
func (lo attendKernel) tileOperand(o *ir.Operand, rows, lanes []*ir.Range, t ir.DType, needs *algebra.Needs) {
	read := directRead(form.Stripped(o.Value))
	lane := algebra.Innermost(lanes)
	reads := copiedReads(o.Value, t, lanes)
	if read == nil && len(reads) > 0 {
		read = reads[0]
	}
	o.KLast = read == nil || len(rows) == 0 || algebra.UnitStride(read, lane) || !algebra.UnitStride(read, algebra.Innermost(rows))
	if !needs.Assume || len(reads) == 0 {
		return
	}
	sizes := []*ir.Expr{lane.Extent}
	for _, r := range reads {
		sizes = append(sizes, r.Args[0])
	}
	o.Wide = needs.Try(operandVector, sizes, func(f ir.Facts) bool {
		return ir.Multiple(lane.Extent, operandVector, f) && !slices.ContainsFunc(reads, func(r *ir.Expr) bool {
			return !algebra.Contiguous(r.Args[0], lane, operandVector, f)
		})
	})
}

// copiedReads returns the reads of an operand whose elements are stored in type t in one of several tensors, or in one: threads
// may copy them as they lie, since which of them it is, and whether it is there, is the same along the lanes. Nil if
// they may not.
func copiedReads(value *ir.Expr, t ir.DType, lanes []*ir.Range) []*ir.Expr {
	along := algebra.RangeSet(lanes)
	reads, conditions, ok := ir.JoinedReads(form.Stripped(value))
	if !ok || slices.ContainsFunc(conditions, func(c *ir.Expr) bool { return algebra.DependsOnAny(c, along) || algebra.ReadsMemory(c) }) {
		return nil
	}
	for _, r := range reads {
		if storedRead(r, t) == nil || r.Guard != nil && (algebra.DependsOnAny(r.Guard, along) || !r.Fill.IsConst(0)) {
			return nil
		}
	}
	return reads
}
