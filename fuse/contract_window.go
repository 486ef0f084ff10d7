package fuse

import (
	"math"
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
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
	rows = ir.Simplify(ir.AtZero(e, lo.columns()...), lo.facts)
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
