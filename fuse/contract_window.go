package fuse

import (
	"math"
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/forecast"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// isWindowed reports whether a side of a contraction is read through windows: only where taps are inside,
// or at places that are not multiples of one stride of the columns, or of the rows where columns lie side
// by side.
func (lo productKernel) isWindowed(c *ir.Contract) bool {
	a, b := storedRead(c.A.Value, c.Type), storedRead(c.B[0].Value, c.Type)
	if a == nil || b == nil || lo.window(a) == nil || lo.window(b) == nil {
		return false
	}
	return lo.readsWindow(a, c.M) || lo.readsWindow(b, c.N)
}

// Figures of windows that threads read one by one. A tile gathers each element of a window into shared memory,
// for at most as many channels as it has rows; measured, that takes as long as multiplying it by 20 weights.
const (
	loopedChannels = 7   // most channels of a result
	loopedThreads  = 512 // least results for each multiprocessor
)

// loopsWindow reports whether windows are better read by a thread for each result than gathered into tiles: few
// channels, weights alone depend on them, and results enough to fill the device. The copy engine brings windows that were
// laid out for it whatever the channels.
func (lo *kernel) loopsWindow() bool {
	p := productKernel{lo}
	f := p.sumOfProduct()
	if f == nil || lo.r.folded != nil || lo.r.product != nil || lo.r.stream != nil ||
		algebra.PointsAt(lo.k.Rows, lo.sizes) < ir.ReferenceSMs*loopedThreads {
		return false
	}
	c := p.sides(f.Body)
	if c == nil || len(c.B) != 1 || len(c.M) == 0 {
		return false
	}
	c.Unit, c.Type = p.multiplier(c, f.Body.Type)
	few, read := algebra.Product(c.M), storedRead(c.B[0].Value, c.Type)
	if a := storedRead(c.A.Value, c.Type); a != nil && p.readsWindow(a, c.M) {
		few, read = algebra.Product(c.N), a
	}
	laidOut := c.Unit != ir.FMAUnit && lo.device.Warpgroups() && (warpgroupKernel{p}).channelsLast(read)
	if laidOut && !few.IsConst(1) {
		return false
	}
	looped := few.Op == ir.OpConst && few.Int <= loopedChannels && p.isWindowed(c)
	return looped && (few.Int < form.HaloRows || len((splitKernel{p}).haloChoices(c)) == 0)
}

// channelsLast reports whether the last dim of what a window reads is that of the innermost columns, alone or with taps
// beside it: so it was laid out for the copy engine.
func (lo warpgroupKernel) channelsLast(read *ir.Expr) bool {
	at, column := lo.loadOf(read), algebra.Innermost(lo.columns())
	if len(at) < 2 {
		return false
	}
	last := len(at) - 1
	return at[last].Op == ir.OpRange && at[last].Range == column || lo.isFlat(at[last-1:], read.Arg.Buffer.Shape[last], column)
}

// windowPart is the rows of N that a warp of a large tile computes where an operand is a window. It is
// small, because what belongs to rows of a window takes registers of which threads then have fewer.
const windowPart = 32

// largeShape is the shape of the large tiles of a product.
func (lo productKernel) largeShape(c *ir.Contract, s splitShape) splitShape {
	if c.Unit != ir.FMAUnit && lo.isWindowed(c) {
		s.partN, s.blocks = windowPart, 1
	}
	return s
}

// groupChoices are tiles of all channels of a small group, for windows in f32: of enough tiles to fill a device, or
// of too few columns to be split.
func (lo productKernel) groupChoices(c *ir.Contract, enough *ir.Expr) (out []splitCandidate) {
	if c.Unit != ir.FMAUnit || c.Type != ir.F32 || !lo.isWindowed(c) {
		return nil
	}
	for _, s := range []splitShape{eightFMA, sixteenFMA} {
		short := algebra.AtMostSize(algebra.Product(lo.k.Cols), int64(forecast.MostSplits/2*splitColumns*skinnyFMA.k-1))
		whole := ir.Apply(ir.OpOr, short, algebra.AtLeastSize(tilesIn(c, s), fmaBlocks))
		few := algebra.And(algebra.AtMostSize(algebra.Product(c.M), int64(s.m)), whole)
		out = append(out, splitCandidate{splitShape: s, splits: 1, when: algebra.And(enough, few)})
	}
	return out
}

// lowChoices are tiles of few rows, for weights of few channels in f32.
func (lo productKernel) lowChoices(c *ir.Contract, enough *ir.Expr) (out []splitCandidate) {
	if c.Unit != ir.FMAUnit || c.Type != ir.F32 || !lo.isWindowed(c) {
		return nil
	}
	for _, s := range []splitShape{lowFMA, mediumFMA} {
		s.run = 0
		out = append(out, splitCandidate{splitShape: s, splits: 1, when: algebra.And(enough, algebra.AtMostSize(algebra.Product(c.M), int64(s.m)))})
	}
	return out
}

// windowOperands describes how windows read either side, where they do.
func (lo productKernel) windowOperands(c *ir.Contract) {
	for _, o := range []*ir.Operand{&c.A, &c.B[0]} {
		read := storedRead(o.Value, c.Type)
		o.Window = lo.window(read)
		if pitch, ok := lo.strideOf(read.Args[0], lo.columns()); ok && lo.taps == nil {
			o.Window.Pitch = pitch
		}
	}
}

func (lo productKernel) readsWindow(read *ir.Expr, own []*ir.Range) bool {
	if read.Guard != nil {
		return true
	}
	for _, r := range lo.columns() {
		if !ir.DependsOn(read.Args[0], r) {
			return false
		}
	}
	_, ofRows := lo.strideOf(read.Args[0], own)
	_, ofColumns := lo.strideOf(read.Args[0], lo.columns())
	return !ofColumns || !ofRows && algebra.UnitStride(read, algebra.Innermost(lo.columns()))
}

// window describes a read whose offset, and each bound of whose guard, is a sum of a part that depends on
// rows and one that depends on columns; nil for other reads, and for reads that are not zero outside.
func (lo productKernel) window(read *ir.Expr) *ir.Window {
	w := &ir.Window{}
	var ok bool
	if w.Base, w.Step, ok = lo.byRowsAndColumns(read.Args[0]); !ok || ir.Has(read.Args[0], ir.OpRead) || ir.Has(read.Args[0], ir.OpLocal) {
		return nil
	}
	if read.Guard == nil {
		return w
	}
	if !form.IsZero(form.WithoutCasts(read.Fill)) || ir.Has(read.Guard, ir.OpRead) || ir.Has(read.Guard, ir.OpLocal) {
		return nil
	}
	var margins []*ir.Expr // integers that are not negative where the element exists
	for _, c := range ir.Conjuncts(read.Guard) {
		m := form.MarginOf(c)
		if m == nil {
			return nil
		}
		margins = append(margins, m)
	}
	for i, m := range margins {
		if m == nil {
			continue
		}
		s := ir.Span{}
		if s.Row, s.Tap, ok = lo.byRowsAndColumns(m); !ok {
			return nil
		}
		for j := i + 1; j < len(margins) && s.Extent == nil; j++ {
			if margins[j] == nil {
				continue
			}
			both := ir.Simplify(ir.Apply(ir.OpAdd, ir.Apply(ir.OpAdd, m, margins[j]), ir.IntConst(1)), lo.facts)
			if len(ir.FreeRanges(both)) == 0 { // the two conditions are the two ends of one axis
				s.Extent, margins[j] = both, nil
			}
		}
		w.Spans = append(w.Spans, s)
	}
	return w
}

// byRowsAndColumns writes an integer as a sum of a part that depends on rows and a part that depends on
// columns.
func (lo productKernel) byRowsAndColumns(e *ir.Expr) (rows, columns *ir.Expr, ok bool) {
	zero := map[*ir.Range]*ir.Expr{}
	for _, r := range lo.columns() {
		zero[r] = ir.IntConst(0)
	}
	rows = ir.Simplify(ir.Substitute(e, zero), lo.facts)
	columns = ir.Simplify(ir.Apply(ir.OpSub, e, rows), lo.facts)
	return rows, columns, !algebra.DependsOnAny(columns, algebra.RangeSet(lo.k.Rows))
}

// windowBoundBy reports whether a bound of a window depends on a range: neighbours along it need not exist
// together.
func windowBoundBy(w *ir.Window, r *ir.Range) bool {
	for _, s := range w.Spans {
		if ir.DependsOn(s.Row, r) || ir.DependsOn(s.Tap, r) {
			return true
		}
	}
	return false
}

// tilesAlongRows reports whether the tiles of an operand of elements that are copied one by one, in f32 or f64,
// should run along its rows: it is a window whose bounds depend on the innermost taps, whose innermost taps are no
// neighbours in memory, or of which fewer taps than threads of a warp are. Rows then make longer runs than
// taps do.
func (lo productKernel) tilesAlongRows(o *ir.Operand, c *ir.Contract) bool {
	if o.Window == nil || c.Unit == ir.HalfUnit {
		return false
	}
	inner := algebra.Innermost(lo.k.Cols)
	read := directRead(o.Value)
	if len(o.Window.Spans) > 0 {
		return windowBoundBy(o.Window, inner) || !algebra.UnitStride(read, inner)
	}
	own := c.N
	if o == &c.A {
		own = c.M
	}
	return algebra.UnitStride(read, algebra.Innermost(own)) && lo.run(read, lo.k.Cols) < warpThreads
}

// run is how many neighbours in memory a read goes through along ranges; math.MaxInt64 where that depends
// on sizes.
func (lo productKernel) run(read *ir.Expr, ranges []*ir.Range) int64 {
	n := int64(1)
	for _, r := range ranges[len(ranges)-ir.Contiguous(read.Args[0], ranges, lo.positive()):] {
		if r.Extent.Op != ir.OpConst {
			return math.MaxInt64
		}
		n *= r.Extent.Int
	}
	return n
}

// splitsWindow reports whether two ranges should not be joined. One may be the range of a window's taps
// whose bounds do not depend on the other: joined, the bounds would depend on both, and whole accesses
// would no longer be inside or outside together. Or one is a row of one operand alone and the other of
// both, as a phase is: joined, the range would be of both.
func (lo *kernel) splitsWindow(outer, inner *ir.Range) bool {
	taps := slices.Contains(lo.k.Cols, outer)
	for _, f := range lo.folds {
		if f.Op != ir.Sum || f.Body.Op != ir.OpMul {
			continue
		}
		for _, factor := range form.FactorsOf(f.Body) {
			read := algebra.ReadIn(factor)
			switch {
			case read == nil:
			case taps && read.Guard != nil && ir.DependsOn(read.Guard, outer) && !ir.DependsOn(read.Guard, inner) && ir.DependsOn(read.Args[0], inner):
				return true
			case !taps && ir.DependsOn(read, outer) != ir.DependsOn(read, inner):
				return true
			}
		}
	}
	return false
}

// wholeVector is the largest vector, of at most most elements, that divides an extent which is a number.
func wholeVector(r *ir.Range, most int64) int64 {
	for r.Extent.Op == ir.OpConst && r.Extent.Int%most != 0 {
		most /= 2
	}
	return most
}
