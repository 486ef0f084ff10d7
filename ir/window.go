package ir

// Window is a read of an operand whose place is the sum of a part that depends on its rows and a
// part that depends on the columns. In a convolution these are the place of the window and the tap
// in it. The part of a row is computed once for all columns.
type Window struct {
	Base  *Expr // flat offset, over the operand's rows and the batch
	Step  *Expr // the part that depends on the columns
	Pitch *Expr // the stride of Step over all columns counted together; nil if it has none
	Spans []Span
	// ByRow says that a thread has a row of the tile and goes through all of its columns. There are few of them, in
	// one tile, so the part of a column is a number in the text.
	ByRow bool
	// Halo says that a block copies the elements that the windows of a tile cover to shared memory once, and
	// multiplies from there; nil if windows are copied into tiles one by one.
	Halo *Halo
}

// Halo is the elements that the windows of a tile of places cover. In each plane of the input these are a
// box: the places times their stride, and what the taps reach around them. It is stored in shared memory
// channel by channel.
type Halo struct {
	Start    *Expr  // flat offset of the first plane, over the batch
	Channel  *Range // the columns that planes are of; nil where there is one plane
	Channels int    // planes that are in shared memory at the same time
	Plane    *Expr  // elements from one plane to the next, over symbols; nil if there is one
	Dims     []HaloDim
	Pad      int // elements behind each line in shared memory, so that threads of a warp read different banks
}

// HaloDim is an axis of such a plane. At place p of Row and tap t of Tap, the axis is read at
// First + p*Stride + t*Dilation; the element is zero if that is negative or not below Extent.
type HaloDim struct {
	Row              *Range // of the operand; nil where all windows are at one place
	Tile             int    // places of a tile, a power of two
	Tap              *Range // nil where windows have one place
	Stride, Dilation int64
	First            *Expr // over the batch
	Extent           *Expr // over symbols
	Apart            *Expr // elements from a place of the axis to the next, over symbols
}

// Covers is the places of the axis that the windows of a tile cover.
func (d *HaloDim) Covers() int64 {
	n := (int64(d.Tile)-1)*d.Stride + 1
	if d.Tap != nil {
		n += (d.Tap.Extent.Int - 1) * d.Dilation
	}
	return n
}

// Covers is the elements of a plane that the windows of a tile cover.
func (h *Halo) Covers() int64 {
	n := int64(1)
	for i := range h.Dims {
		n *= h.Dims[i].Covers()
	}
	return n
}

// Places is the windows of a tile.
func (h *Halo) Places() int {
	n := 1
	for _, d := range h.Dims {
		n *= d.Tile
	}
	return n
}

// Columns is the taps times the channels of the planes that are in shared memory at the same time.
func (h *Halo) Columns() int64 {
	n := int64(h.Channels)
	for _, d := range h.Dims {
		if d.Tap != nil {
			n *= d.Tap.Extent.Int
		}
	}
	return n
}

// Line is the elements of a line that the windows of a tile cover.
func (h *Halo) Line() int64 { return h.Dims[len(h.Dims)-1].Covers() }

// Room is the elements of a plane in shared memory.
func (h *Halo) Room() int64 { return h.Covers() / h.Line() * (h.Line() + int64(h.Pad)) }

// apart is the distance in shared memory between neighbouring places of axis d.
func (h *Halo) apart(d int) int64 {
	n := int64(1)
	for i := d + 1; i < len(h.Dims); i++ {
		n *= h.Dims[i].Covers()
	}
	if d < len(h.Dims)-1 {
		n = n / h.Line() * (h.Line() + int64(h.Pad))
	}
	return n
}

// ApartRows is the distance in shared memory between the windows of neighbours along axis d.
func (h *Halo) ApartRows(d int) int64 { return h.apart(d) * h.Dims[d].Stride }

// TapApart is the distance in shared memory between the elements of neighbouring columns of a
// range.
func (h *Halo) TapApart(r *Range) int64 {
	if r == h.Channel {
		return h.Room()
	}
	for i, d := range h.Dims {
		if d.Tap == r {
			return h.apart(i) * d.Dilation
		}
	}
	return 0
}

// AtTap is the offset in shared memory of a column's element from the beginning of its window.
func (h *Halo) AtTap(columns []*Range) *Expr {
	at := IntConst(0)
	for _, r := range columns {
		at = Apply(OpAdd, at, Apply(OpMul, r.At(), IntConst(h.TapApart(r))))
	}
	return at
}

// Span is a condition under which an element of a Window exists: 0 <= Row + Tap, and Row + Tap <
// Extent unless that is nil. If one does not hold, the element is zero.
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

// WindowTiles is how tiles of an operand of a windowed contraction are copied by the tensor copy
// engine: a box of View for each tap and block of channels. A tile is a box of the operand's rows
// instead of consecutive rows. Elements outside the tensor arrive as zeros.
type WindowTiles struct {
	View *TMAView // its first dim is the channels, the innermost of the columns
	// At is where a box begins in the view's dims, over the first of the tile's rows, the columns
	// and the batch.
	At []*Expr
	// Tile is the places of a tile along each of the operand's rows; their product is the tile's
	// rows. The last lie side by side. nil where the operand has one range of rows.
	Tile []int
	// Share is which of the operand's rows the blocks of a cluster divide among themselves, if they
	// do.
	Share int
	Cover *Cover // nil where each tap's box is copied
}

// A Cover is what the windows of a tile reach: neighbouring windows overlap, so it has far fewer places than the windows together.
// It is copied once for each block of channels, and all taps are multiplied from there. A place is a line of shared memory; lines
// follow each other as places do in the copied box. Tensor cores take eight rows of a tile from eight lines that follow each
// other, at any line, and groups of eight at an equal distance.
type Cover struct {
	Lines int   // places of the box
	Apart []int // lines from a row of the tile to the next one, along each of the operand's rows
	Tap   *Expr // lines from a row's first tap to a tap, over the columns
	Taps  int   // at most
	Rows  int   // rows of an instruction, whose groups of eight are equally far apart
	Group int   // lines between these groups
	Every int   // groups of the tile from one of an instruction's to its next: 1 where those are neighbours
	Slots int   // boxes that shared memory holds at a time

	// Channels is the elements of a tap, where the innermost columns have several taps beside their channels; nil else.
	Channels *Expr
}

// coverAlign is the bytes of which a box begins at a multiple in shared memory.
const coverAlign = 1 << 10

// Bytes is the shared memory of a box whose lines have so many bytes.
func (c *Cover) Bytes(line int) int { return (c.Lines*line + coverAlign - 1) / coverAlign * coverAlign }

// StageLines is the lines of a pipeline stage that hold so many rows of an operand: none where its windows are multiplied from
// what they cover.
func (o *Operand) StageLines(rows int) int {
	if o.WindowTiles != nil && o.WindowTiles.Cover != nil {
		return 0
	}
	return rows
}

// Cover is what the windows of one operand of a contraction cover, nil where each tap's tile is copied; ofA says that it
// is the first operand.
func (c *Contract) Cover() (cover *Cover, ofA bool) {
	if w := c.A.WindowTiles; w != nil && w.Cover != nil {
		return w.Cover, true
	}
	if len(c.B) > 0 {
		if w := c.B[0].WindowTiles; w != nil {
			return w.Cover, false
		}
	}
	return nil, false
}

// placed are the expressions that say where an operand of a windowed contraction is read.
func (o *Operand) placed() []*Expr {
	var out []*Expr
	if w := o.Window; w != nil {
		out = append(append(out, w.Rows()...), w.Step)
		for _, s := range w.Spans {
			out = append(out, s.Tap)
		}
		if h := w.Halo; h != nil {
			out = append(out, h.Start)
			for _, d := range h.Dims {
				out = append(out, d.First)
			}
		}
	}
	if o.WindowTiles != nil {
		out = append(out, o.WindowTiles.At...)
		if v := o.WindowTiles.Cover; v != nil {
			out = append(out, v.Tap)
		}
	}
	return out
}
