package ir

// Stencil is how a thread of ColumnStencil folds overlapping windows. It has TileM neighbours of Down's row
// and Vector neighbours of the innermost range, reads each line that their windows cover once, and folds from
// registers.
type Stencil struct {
	Down  *Slide // nil where threads have one row only
	Along *Slide // its row is the innermost range; nil if lanes do not share reads
	Reads []StencilRead
}

// Slide says that a read depends on a row and a tap of a window only through their place,
// Stride*Row + Dilation*Tap. If Turned is set, taps count from the last one: windows of gradients are
// read backwards.
type Slide struct {
	Row, Tap, Place  *Range
	Stride, Dilation int64
	Turned           bool
}

// StencilRead is a read at full level that is a function of places. Local is defined by the read, and At is the same
// read over the places of the stencil's slides instead of their rows and taps. A line along the lanes is read in
// aligned vectors of Width elements, beginning Shift places before that of the first lane; At's guard holds for all
// elements of a vector or for none. Width is 0 if the line is read element by element.
type StencilRead struct {
	Local        *Local
	At           *Expr
	Width, Shift int
}

// Lines is how many places a thread reads that has so many neighbours of a slide's row.
func (s *Slide) Lines(rows int) int {
	return int(s.Stride)*(rows-1) + int(s.Dilation*(s.Tap.Extent.Int-1)) + 1
}

// Slides lists the slides of a stencil, outermost first.
func (s *Stencil) Slides() (out []*Slide) {
	for _, slide := range []*Slide{s.Down, s.Along} {
		if slide != nil {
			out = append(out, slide)
		}
	}
	return out
}

// At is the place of a row and a tap.
func (s *Slide) At(row, tap *Expr) *Expr {
	return Apply(OpAdd, Apply(OpMul, IntConst(s.Stride), row), Apply(OpMul, IntConst(s.Dilation), s.Count(tap)))
}

// Count converts a tap to the way the slide counts taps, or back.
func (s *Slide) Count(tap *Expr) *Expr {
	if !s.Turned {
		return tap
	}
	return Apply(OpSub, IntConst(s.Tap.Extent.Int-1), tap)
}
