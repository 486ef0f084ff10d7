package ir

// Window is a read of an operand whose place is a sum of what its rows say and what the columns
// say: of a convolution, where a window stands and which tap of it is meant. What belongs to a row
// is computed once for all columns.
type Window struct {
	Base  *Expr // flat offset, over the operand's rows and the batch
	Step  *Expr // what columns add to it
	Pitch *Expr // Step is so many for each column, where columns are counted together; nil where it is not
	Spans []Span
	// ByRow says that a thread has a row of the tile and goes through all of its columns: these are few, one tile of
	// them, so that what belongs to a column is a number in the text.
	ByRow bool
}

// Span is a condition under which an element of a Window exists: 0 <= Row + Tap, and Row + Tap <
// Extent unless that is nil. Where one does not hold the element is zero.
type Span struct {
	Row    *Expr // over the operand's rows and the batch
	Tap    *Expr // over the columns
	Extent *Expr // over symbols
}

// Rows are the expressions that belong to a row.
func (w *Window) Rows() []*Expr {
	out := []*Expr{w.Base}
	for _, s := range w.Spans {
		out = append(out, s.Row)
	}
	return out
}

// Taps are the expressions that belong to a column and not to their count.
func (w *Window) Taps() []*Expr {
	var out []*Expr
	if w.Pitch == nil {
		out = append(out, w.Step)
	}
	for _, s := range w.Spans {
		out = append(out, s.Tap)
	}
	return out
}

// WindowTiles is how tiles of an operand of a windowed contraction come through the tensor copy engine:
// a box of View for each tap and block of channels. Tiles are boxes of the operand's rows, in place
// of so many rows one after the other. What lies outside the tensor arrives as zeros.
type WindowTiles struct {
	View *TMAView // its first dim is the channels, the innermost of the columns
	// At is where a box begins in the view's dims, over the first of the tile's rows, the columns
	// and the batch.
	At []*Expr
	// Tile is the places of a tile along each of the operand's rows; their product is the tile's
	// rows. The last lie side by side. nil where the operand has one range of rows.
	Tile []int
	// Share is which of the operand's rows the blocks of a cluster divide among them, where they do.
	Share int
}

// placed are the expressions that say where an operand of a windowed contraction is read.
func (o *Operand) placed() []*Expr {
	var out []*Expr
	if w := o.Window; w != nil {
		out = append(append(out, w.Rows()...), w.Step)
		for _, s := range w.Spans {
			out = append(out, s.Tap)
		}
	}
	if o.WindowTiles != nil {
		out = append(out, o.WindowTiles.At...)
	}
	return out
}
