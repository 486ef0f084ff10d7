package ir

// Stencil is how a thread of ColumnStencil folds windows that lie over each other: it has TileM neighbours
// of Down's row, and Vector neighbours of the innermost, reads each line of what their windows cover once, and
// folds from registers.
type Stencil struct {
	Down  *Slide // nil where threads have one row only
	Along *Slide // its row is the innermost range; nil where lanes do not share what they read
	Reads []StencilRead
}

// Slide says that a read moves with a row and a tap of a window as it does with their place, which is
// Stride*Row + Dilation*Tap. Turned, taps count from the last: windows of gradients are read backwards.
type Slide struct {
	Row, Tap, Place  *Range
	Stride, Dilation int64
	Turned           bool
}

// StencilRead is a read at full level that is a function of places: Local is defined by the read, and At is the same
// read over the places of the stencil's slides, in place of their rows and taps. A line along the lanes is read in aligned
// vectors of Width elements from the place Shift ahead of the first lane's on, all of which At's guard holds for, or none;
// Width is 0 where it is read element by element.
type StencilRead struct {
	Local        *Local
	At           *Expr
	Width, Shift int
}

// Lines is how many places a thread meets that has so many neighbours of a slide's row.
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

// Count is which tap a tap is, counted as the slide counts them; and the tap that one so counted is.
func (s *Slide) Count(tap *Expr) *Expr {
	if !s.Turned {
		return tap
	}
	return Apply(OpSub, IntConst(s.Tap.Extent.Int-1), tap)
}
