package fuse

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/forecast"
	"github.com/fusec/fusec/ir"
)

// Stencils. The windows of neighbouring rows overlap, as in pooling, depthwise convolutions and blurs. If a thread folds
// the windows of its rows one by one, it reads an element once for each window that has it, and each read costs the
// instructions for its place and its guard. So a thread reads each line once, and folds it from registers into all of
// its windows.

// Figures of stencils.
const (
	stencilOverlap  = 2    // least number of times that windows read each element of the largest tensor
	stencilRows     = 4    // of a thread at most
	stencilLanes    = 4    // of a thread whose stores are not vectors
	stencilSums     = 32   // accumulators of a thread, in words
	stencilSteps    = 1024 // folded elements of a thread, which the text unrolls: more take too long to compile
	stencilTap      = 32   // taps of a slide at most
	stencilStrides  = 4    // largest stride, and largest dilation, that is tried
	stencilThreads  = 256  // a block
	stencilResident = 256  // if a multiprocessor would have fewer threads, each thread gets fewer rows
)

// stencilVariants are the variants in which a thread has a block of rows whose windows overlap; none where windows do not
// overlap, or where there are too few rows.
func (lo columnKernel) stencilVariants() (out []*ir.Variant) {
	if len(lo.k.Rows) == 0 || lo.paired || lo.unit || len(lo.partial) > 0 || len(lo.k.Accumulated) > 0 || lo.hasScan() {
		return nil
	}
	sections, lane := lo.passes(true), algebra.Innermost(lo.k.Rows)
	switch {
	case !onePass(sections):
		return nil
	case !lo.overlaps(stencilOverlap):
		return lo.adjoiningVariants(sections, lane)
	}
	for _, rows := range []int{stencilRows, 1} { // fewer rows for fewer points
		for vector := lo.vector(); vector > 1; vector /= 2 {
			if v := lo.stencilOf(sections, lane, stencilOptions{vector, rows, true, forecast.AccessBytes, false}); v != nil {
				out = append(out, v)
			}
		}
		for _, lines := range []int{forecast.AccessBytes, wordBytes, 0} {
			if v := lo.stencilOf(sections, lane, stencilOptions{min(stencilLanes, lo.vector()), rows, false, lines, false}); v != nil {
				out = append(out, v)
			}
		}
	}
	return out
}

// onePass reports whether all folds of a body are in one pass and independent of each other, and no column is stored.
func onePass(sections []*ir.Section) bool {
	for i, s := range sections {
		if (i == 0) != (s.Level == ir.FullLevel) || i > 0 && len(s.Folds) > 0 {
			return false
		}
	}
	ordinary := func(f *ir.Fold) bool { return f.Prefix == ir.WholeRow && f.After == nil && f.Running == nil }
	first := sections[0]
	return len(first.Stores) == 0 && len(first.Folds) > 0 && !slices.ContainsFunc(first.Folds, func(f *ir.Fold) bool { return !ordinary(f) })
}

// stencilOptions are what variants of a stencil differ in.
type stencilOptions struct {
	vector, rows int  // neighbours of the innermost range that a thread has, and rows at most
	stores       bool // stores are vectors, for which sizes may have to be multiples
	lines        int  // bytes of a vector in which all lines are read, for which sizes may have to be multiples; 0 for single elements
	beside       bool // windows lie side by side, not over each other
}

// stencilOf is a variant of a stencil; nil where the options suit no variant.
func (lo columnKernel) stencilOf(sections []*ir.Section, lane *ir.Range, o stencilOptions) *ir.Variant {
	b := newBody(lo.kernel)
	v := &ir.Variant{Sections: b.sections(sections), Locals: b.locals}
	v.Schedule = ir.Schedule{Mapping: ir.FlatMapping, Threads: stencilThreads, Vector: o.vector, TileM: 1}
	var when *ir.Expr
	if o.stores {
		if when, _ = lo.widen(v, lane, o.vector); !storesWide(v) {
			return nil
		}
	}
	if v.Stencil = lo.stencil(v, lane, o); v.Stencil == nil {
		return nil
	}
	if v.Stencil.Down != nil {
		lo.rowsOfStencil(v, o.rows)
	}
	if steps := lo.stepsOfStencil(v); steps > stencilSteps || v.Schedule.TileM == 1 && v.Stencil.Along == nil {
		return nil
	}
	if v.Stencil.Along != nil && o.lines > 0 {
		if !o.stores || o.beside { // sizes may be required to be multiples for the sake of reads
			when = lo.wholeLines(v, o.lines)
		}
		if !lo.inVectors(v) && !o.stores || o.beside && !readsWhole(v, o.lines) {
			return nil
		}
	}
	for _, r := range v.Stencil.Reads {
		r.Local.Wide = r.Local.Wide && v.Stencil.Along == nil
	}
	threads := ir.Apply(ir.OpFloorDiv, algebra.Product(lo.k.Rows), ir.IntConst(int64(o.vector*v.Schedule.TileM)))
	v.When = algebra.And(when, algebra.AtLeastSize(threads, ir.ReferenceSMs*stencilResident))
	if ir.Decide(algebra.OrTrue(v.When), ir.Facts{}) == ir.False {
		return nil
	}
	return v
}

// rowsOfStencil sets how many rows of Down a thread takes, up to a limit: as many as registers hold sums for, and as
// the kernel's text may unroll.
func (lo columnKernel) rowsOfStencil(v *ir.Variant, most int) {
	words := stateWords(v.Sections) * v.Schedule.Vector
	for v.Schedule.TileM = most; v.Schedule.TileM > 1; v.Schedule.TileM /= 2 {
		if v.Schedule.TileM*words <= stencilSums && lo.stepsOfStencil(v) <= stencilSteps {
			return
		}
	}
}

// stepsOfStencil is how many elements the unrolled text of a thread folds: those of all taps from Down's on, the
// numbers of which are constant.
func (lo columnKernel) stepsOfStencil(v *ir.Variant) int {
	first := v.Stencil.Down
	if first == nil {
		first = v.Stencil.Along
	}
	steps := v.Schedule.TileM * v.Schedule.Vector * len(v.Sections[0].Folds)
	for _, c := range lo.k.Cols[slices.Index(lo.k.Cols, first.Tap):] {
		if c.Extent.Op != ir.OpConst || c.Extent.Int > stencilSteps {
			return stencilSteps + 1
		}
		steps *= int(max(1, c.Extent.Int))
	}
	return steps
}

// stencil finds the slides of a body: one along the innermost range and the last columns, and one down another range and
// the columns before those. A thread takes at most the given number of neighbours of that range. nil where there is none.
func (lo columnKernel) stencil(v *ir.Variant, lane *ir.Range, o stencilOptions) *ir.Stencil {
	reads := lo.columnReads(v)
	s := &ir.Stencil{}
	last := len(lo.k.Cols) - 1
	outer := lo.k.Cols
	if o.beside {
		if s.Along, reads = lo.adjoiningSlide(reads, lane, lo.k.Cols[last]); s.Along == nil {
			return nil
		}
		return lo.placed(s, reads)
	}
	if s.Along, reads = lo.slideOf(reads, lane, lo.k.Cols[last], v.Schedule.Vector); s.Along != nil {
		outer = outer[:last]
	}
	for _, tap := range slices.Backward(outer) {
		for _, row := range slices.Backward(lo.k.Rows[:len(lo.k.Rows)-1]) {
			down, moved := lo.slideOf(reads, row, tap, o.rows)
			if down == nil || s.Along != nil && len(moved) < len(reads) || lo.rowValuesVary(v, row) {
				continue
			}
			s.Down, reads = down, moved
			return lo.placed(s, reads)
		}
	}
	if s.Along == nil {
		return nil
	}
	return lo.placed(s, reads)
}

// columnReads lists the reads that differ between columns, at places that are sums and products of coordinates.
func (lo columnKernel) columnReads(v *ir.Variant) (out []*ir.Local) {
	plain := func(e *ir.Expr) bool {
		return !ir.Contains(e, func(e *ir.Expr) bool {
			return e.Op == ir.OpLocal || e.Op == ir.OpRead || e.Op == ir.OpMod || e.Op == ir.OpFloorDiv
		})
	}
	for _, l := range v.Locals {
		if r := algebra.ReadIn(l.Def); r != nil && l.Level == ir.FullLevel && plain(r.Args[0]) && (r.Guard == nil || plain(r.Guard)) {
			out = append(out, l)
		}
	}
	return out
}

// rowValuesVary reports whether the pass needs values of its row that are not the same for neighbours along a range.
func (lo columnKernel) rowValuesVary(v *ir.Variant, row *ir.Range) bool {
	used := map[*ir.Local]bool{}
	for _, f := range v.Sections[0].Folds {
		for _, e := range []*ir.Expr{f.Where, f.Body, f.Index} {
			if e == nil {
				continue
			}
			ir.WalkThrough(func(e *ir.Expr) bool {
				if e.Op == ir.OpLocal {
					used[e.Local] = true
				}
				return true
			}, e)
		}
	}
	for l := range used {
		if l.Level == ir.RowLevel && l.Def != nil && ir.DependsOn(l.Def, row) {
			return true
		}
	}
	return false
}

// slideOf finds how reads move with a row and a tap, and returns the slide with the reads that move so. It is nil, with
// all reads, where no slide makes the windows of the given number of neighbours overlap.
func (lo columnKernel) slideOf(reads []*ir.Local, row, tap *ir.Range, neighbours int) (*ir.Slide, []*ir.Local) {
	if tap.Extent.Op != ir.OpConst || tap.Extent.Int < 2 || tap.Extent.Int > stencilTap {
		return nil, reads
	}
	for _, s := range waysToSlide {
		s.Row, s.Tap = row, tap
		if s.Lines(neighbours) >= neighbours*int(tap.Extent.Int) {
			continue
		}
		if moved := lo.movedBy(&s, reads); len(moved) > 0 {
			return &s, moved
		}
	}
	return nil, reads
}

// movedBy lists the reads that move as a slide does, and gives it its places.
func (lo columnKernel) movedBy(s *ir.Slide, reads []*ir.Local) (moved []*ir.Local) {
	last := s.At(ir.Apply(ir.OpSub, s.Row.Extent, ir.IntConst(1)), s.Count(ir.IntConst(s.Tap.Extent.Int-1)))
	s.Place = lo.g.NewRange(s.Row.Name+"_at", ir.Simplify(ir.Apply(ir.OpAdd, last, ir.IntConst(1)), lo.facts))
	for _, l := range reads {
		if r := algebra.ReadIn(l.Def); lo.moves(s, r.Args[0]) && lo.over(s, r) != nil {
			moved = append(moved, l)
		}
	}
	return moved
}

// waysToSlide are the strides and dilations that are tried. One of the two is 1, because otherwise neither the
// row nor the tap follows from a place.
var waysToSlide = func() (out []ir.Slide) {
	for _, turned := range []bool{false, true} {
		for n := int64(1); n <= stencilStrides; n++ {
			out = append(out, ir.Slide{Stride: n, Dilation: 1, Turned: turned})
			if n > 1 {
				out = append(out, ir.Slide{Stride: 1, Dilation: n, Turned: turned})
			}
		}
	}
	return out
}()

// moves reports whether an offset depends on the row and the tap of a slide only through their place.
func (lo columnKernel) moves(s *ir.Slide, offset *ir.Expr) bool {
	if !ir.DependsOn(offset, s.Row) || !ir.DependsOn(offset, s.Tap) {
		return false
	}
	row, ok := ir.Stride(offset, s.Row, lo.facts)
	tap, also := ir.Stride(offset, s.Tap, lo.facts)
	if !ok || !also {
		return false
	}
	dilation := ir.IntConst(s.Dilation)
	if s.Turned {
		dilation = ir.IntConst(-s.Dilation)
	}
	return ir.SameSize(ir.Apply(ir.OpMul, tap, ir.IntConst(s.Stride)), ir.Apply(ir.OpMul, row, dilation))
}

// over writes a read as a function of the place of a slide, instead of its row and its tap; nil if it cannot.
func (lo columnKernel) over(s *ir.Slide, read *ir.Expr) *ir.Expr {
	with := map[*ir.Range]*ir.Expr{}
	if s.Dilation == 1 {
		with[s.Tap] = s.Count(ir.Apply(ir.OpSub, s.Place.At(), ir.Apply(ir.OpMul, ir.IntConst(s.Stride), s.Row.At())))
	} else {
		with[s.Row] = ir.Apply(ir.OpSub, s.Place.At(), ir.Apply(ir.OpMul, ir.IntConst(s.Dilation), s.Count(s.Tap.At())))
	}
	at := ir.Simplify(ir.Substitute(read, with), lo.facts)
	free := ir.FreeRanges(at)
	if at.Op != ir.OpRead || free[s.Row] || free[s.Tap] || !free[s.Place] {
		return nil
	}
	return at
}

// placed gives a stencil its reads over the places of its slides.
func (lo columnKernel) placed(s *ir.Stencil, reads []*ir.Local) *ir.Stencil {
	for _, l := range reads {
		at := algebra.ReadIn(l.Def)
		for _, slide := range s.Slides() {
			if at = lo.over(slide, at); at == nil {
				return nil
			}
		}
		s.Reads = append(s.Reads, ir.StencilRead{Local: l, At: at})
	}
	return s
}

// wholeLines is the condition on the sizes under which lines of what a variant reads are whole numbers of accesses of the
// given bytes.
func (lo columnKernel) wholeLines(v *ir.Variant, bytes int) *ir.Expr {
	known := lo.promised(v)
	facts := known
	for _, r := range v.Stencil.Reads {
		last, width := algebra.Innermost(r.At.Arg.Buffer.Value.Axes).Extent, int64(max(1, bytes/r.At.Type.Size()))
		if !ir.Multiple(last, width, known) {
			facts, _ = algebra.Whole(facts, width, last)
			v.Facts = ir.Facts{Divisible: facts.Divisible, Multiples: facts.Multiples}
		}
	}
	if len(v.Facts.Divisible)+len(v.Facts.Multiples) == 0 {
		return nil
	}
	return algebra.Divisible(v.Facts)
}

// inVectors marks the lines that can be read in aligned vectors, each either wholly inside the tensor or wholly
// outside. It reports whether all lines can.
func (lo columnKernel) inVectors(v *ir.Variant) bool {
	all := true
	for i := range v.Stencil.Reads {
		r := &v.Stencil.Reads[i]
		lo.lineInVectors(v, r)
		all = all && r.Width > 0
	}
	return all
}

// lineInVectors finds the widest vectors in which a line is read.
func (lo columnKernel) lineInVectors(v *ir.Variant, r *ir.StencilRead) {
	along := v.Stencil.Along
	for width := int64(forecast.AccessBytes / r.At.Type.Size()); width > 1 && width*int64(r.At.Type.Size()) >= wordBytes; width /= 2 {
		if (along.Stride*int64(v.Schedule.Vector))%width == 0 && lo.lineBegins(v, r, width) {
			return
		}
	}
}

const wordBytes = 4 // of the narrowest vector that saves instructions

// lineBegins marks a line to be read in vectors of a width, and reports whether it can be.
func (lo columnKernel) lineBegins(v *ir.Variant, r *ir.StencilRead, width int64) bool {
	along, facts := v.Stencil.Along, lo.promised(v)
	if !ir.Multiple(algebra.Product(r.At.Arg.Buffer.Value.Axes), width, facts) {
		return false
	}
	at := lo.g.NewRange(along.Place.Name, along.Place.Extent) // places, counted from one at which a vector begins
	for shift := range width {
		from := map[*ir.Range]*ir.Expr{along.Place: ir.Apply(ir.OpSub, at.At(), ir.IntConst(shift))}
		offset := ir.Simplify(ir.Substitute(r.At.Args[0], from), facts)
		if !algebra.Contiguous(offset, at, width, facts) {
			continue
		}
		if guard := r.At.Guard; guard == nil || changesBetween(ir.Substitute(guard, from), at, width, facts) {
			r.Width, r.Shift = int(width), int(shift)
			return true
		}
		return false
	}
	return false
}

// changesBetween reports whether a condition has one value within each vector along a range: it does not depend on the
// point, or it compares something that grows with the point to a bound at which a vector begins.
func changesBetween(cond *ir.Expr, along *ir.Range, width int64, facts ir.Facts) bool {
	if !ir.DependsOn(cond, along) {
		return true
	}
	switch cond.Op {
	case ir.OpAnd:
		return changesBetween(cond.Args[0], along, width, facts) && changesBetween(cond.Args[1], along, width, facts)
	case ir.OpLt, ir.OpLe:
		// a < b is a - b < 0; where b is what grows, it is the opposite of b - (a + 1) < 0. a <= b is a < b + 1.
		a, b, one := cond.Args[0], cond.Args[1], ir.IntConst(1)
		rising, falling := ir.Apply(ir.OpSub, a, b), ir.Apply(ir.OpSub, b, ir.Apply(ir.OpAdd, a, one))
		if cond.Op == ir.OpLe {
			rising, falling = ir.Apply(ir.OpSub, a, ir.Apply(ir.OpAdd, b, one)), ir.Apply(ir.OpSub, b, a)
		}
		return algebra.Contiguous(ir.Simplify(rising, facts), along, width, facts) || algebra.Contiguous(ir.Simplify(falling, facts), along, width, facts)
	}
	return false
}
