package codegen

import (
	"fmt"
	"slices"

	"github.com/fusec/fusec/codegen/spell"
	"github.com/fusec/fusec/ir"
)

// stencilEmitter writes kernels whose threads fold overlapping windows: those of ROWS rows of one range by VECTOR
// neighbours of the innermost. Each line that these windows cover is read once, to registers.
type stencilEmitter struct {
	columnEmitter
	down, along *ir.Slide
	tile        *ir.Range   // groups of ROWS of down's row, in place of it; nil without down
	tiled       []*ir.Range // the kernel's rows, with tile in place of down's row
}

func newColumnStencil(e *emitter) *stencilEmitter {
	s := &stencilEmitter{columnEmitter: *newColumn(e, false), down: e.v.Stencil.Down, along: e.v.Stencil.Along}
	s.tile, s.tiled = stencilTile(e.k, e.v)
	if s.tile != nil {
		e.ranges[s.tile] = e.names.Fresh(s.tile.Name)
	}
	for _, slide := range e.v.Stencil.Slides() {
		e.ranges[slide.Place] = e.names.Fresh(slide.Place.Name)
	}
	return s
}

// stencilTile returns the range over groups of rows that threads have, nil if each has one row, and the kernel's rows
// with this range in place of the grouped one.
func stencilTile(k *ir.Kernel, v *ir.Variant) (*ir.Range, []*ir.Range) {
	down := v.Stencil.Down
	if down == nil {
		return nil, k.Rows
	}
	tile := &ir.Range{ID: -1, Name: down.Row.Name + "_tile", Extent: ir.Simplify(ceilDiv(down.Row.Extent, int64(v.Schedule.TileM)), v.Facts)}
	rows := slices.Clone(k.Rows)
	rows[slices.Index(rows, down.Row)] = tile
	return tile, rows
}

// stencilBlocks is the number of blocks whose threads have a group of rows each.
func stencilBlocks(k *ir.Kernel, v *ir.Variant) *ir.Expr {
	_, rows := stencilTile(k, v)
	last := len(rows) - 1
	vectors := ir.Apply(ir.OpMul, product(extents(rows[:last])), ceilDiv(rows[last].Extent, int64(v.Schedule.Vector)))
	return ceilDiv(vectors, int64(v.Schedule.Threads))
}

func stencilDefines(v *ir.Variant) string {
	return fmt.Sprintf("#define ROWS %d\n", v.Schedule.TileM)
}

func (e *stencilEmitter) kernel() {
	e.line("const INDEX t = (INDEX)%s * THREADS + threadIdx.x;", e.block)
	e.position()
	pass, rest := e.v.Sections[0], e.v.Sections[1:]
	states := e.fold(pass)
	for _, f := range pass.Folds {
		e.place[f.Result] = foldResult(f, states[f])
	}
	e.line("")
	e.eachRow(true, func() {
		for _, sec := range rest {
			e.rowValues(sectionRoots(sec))
			e.flatStores(sec, nil, nil)
		}
	})
}

// position writes the coordinates of the thread's first row and lane.
func (e *stencilEmitter) position() {
	uses, outer := e.every(), e.tiled[:len(e.tiled)-1]
	if e.tile != nil {
		uses = append(uses, e.tile.At())
	}
	extent := e.s.Expr(e.lane.Extent)
	if len(outer) == 0 {
		e.line("[[maybe_unused]] const INDEX first = t * VECTOR;")
		e.line("if (first >= %s) return;", extent)
	} else {
		e.line("const INDEX vectors = (%s + VECTOR - 1) / VECTOR;", extent)
		by := e.divisorOf("vectors", fmt.Sprintf("(%s + VECTOR - 1) / VECTOR", extent), ceilDiv(e.lane.Extent, int64(e.v.Schedule.Vector)))
		e.line("if (t >= %s * vectors) return;", e.s.Expr(product(extents(outer))))
		e.line("[[maybe_unused]] const INDEX first = t %% %s * VECTOR;", by)
		e.line("const INDEX outer = t / %s;", by)
		e.take(outer, "outer", uses...)
	}
	e.vectorInside("first", e.lane)
}

// eachRow writes a loop over the thread's rows. Where the body stores, rows outside are left out.
func (e *stencilEmitter) eachRow(stores bool, body func()) {
	e.line("#pragma unroll")
	e.open("for (int r = 0; r < ROWS; ++r)")
	if e.down != nil {
		e.line("[[maybe_unused]] const INDEX %s = %s * ROWS + r;", e.ranges[e.down.Row], e.ranges[e.tile])
		if stores && !ir.Multiple(e.down.Row.Extent, int64(e.v.Schedule.TileM), e.v.Facts) {
			e.line("if (%s >= %s) continue;", e.ranges[e.down.Row], e.s.Expr(e.down.Row.Extent))
		}
	}
	body()
	e.close()
}

// fold writes the pass, and returns the running states of its folds.
func (e *stencilEmitter) fold(sec *ir.Section) map[*ir.Fold]string {
	e.rowValues(sectionRoots(sec))
	e.line("")
	e.line("// pass 1%s", foldNames(sec))
	states := map[*ir.Fold]string{}
	for _, f := range sec.Folds {
		name := e.names.Fresh(f.Result.Name)
		states[f] = name + "[r][v]"
		e.line("%s %s[ROWS][VECTOR];", foldType(f), name)
		e.line("#pragma unroll")
		e.line("for (int r = 0; r < ROWS; ++r)")
		e.line("#pragma unroll")
		e.line("    for (int v = 0; v < VECTOR; ++v) %s = %s;", states[f], foldStart(f))
	}
	full := slices.DeleteFunc(e.ofColumns(sec), e.isLine)
	e.columnsOf(e.k.Cols, func() { e.flatColumn(sec, full, states) })
	return states
}

// isLine reports whether a local is read once for all windows that it is in.
func (e *stencilEmitter) isLine(l *ir.Local) bool {
	return slices.ContainsFunc(e.v.Stencil.Reads, func(r ir.StencilRead) bool { return r.Local == l })
}

// columnsOf writes the loops over columns, outermost first. A loop over lines stands in place of the one over down's
// tap; inside it, when a line has been read, is a loop over rows.
func (e *stencilEmitter) columnsOf(cols []*ir.Range, body func()) {
	switch {
	case len(cols) == 0 && e.along == nil:
		e.readLines()
		e.rowsOfLine(body)
	case len(cols) == 0:
		panic("BUG: a stencil's tap along the lanes is not its last column")
	case e.along != nil && cols[0] == e.along.Tap:
		e.readLines()
		e.rowsOfLine(func() {
			e.line("#pragma unroll")
			e.columnLoop(cols[0], body)
		})
	case e.down != nil && cols[0] == e.down.Tap:
		e.line("#pragma unroll")
		if lines := e.down.Lines(e.v.Schedule.TileM); e.down.Turned {
			e.open("for (int line = %d; line >= 0; --line)", lines-1)
		} else {
			e.open("for (int line = 0; line < %d; ++line)", lines)
		}
		e.line("[[maybe_unused]] const INDEX %s = %s * (ROWS * %d) + line;", e.ranges[e.down.Place], e.ranges[e.tile], e.down.Stride)
		e.columnsOf(cols[1:], body)
		e.close()
	default:
		if e.down == nil || slices.Index(e.k.Cols, cols[0]) > slices.Index(e.k.Cols, e.down.Tap) {
			e.line("#pragma unroll")
		}
		e.columnLoop(cols[0], func() { e.columnsOf(cols[1:], body) })
	}
}

func (e *stencilEmitter) columnLoop(r *ir.Range, body func()) {
	name := e.ranges[r]
	e.open("for (INDEX %s = 0; %s < %s; ++%s)", name, name, e.s.Expr(r.Extent), name)
	body()
	e.close()
}

// rowsOfLine writes a loop over the thread's rows whose windows contain the line, with the tap that the line
// is in each.
func (e *stencilEmitter) rowsOfLine(body func()) {
	e.eachRow(false, func() {
		if e.down != nil {
			e.line("const int down = line - r * %d;", e.down.Stride)
			e.line("if (down < 0 || down %% %d != 0 || down / %d >= %s) continue;", e.down.Dilation, e.down.Dilation, e.s.Expr(e.down.Tap.Extent))
			e.line("[[maybe_unused]] const INDEX %s = %s;", e.ranges[e.down.Tap], tapOf(e.down, fmt.Sprintf("down / %d", e.down.Dilation)))
		}
		body()
	})
}

// readLines writes the reads of a line, for each of the stencil's reads.
func (e *stencilEmitter) readLines() {
	needed := ""
	if e.down != nil && !ir.Multiple(e.down.Row.Extent, int64(e.v.Schedule.TileM), e.v.Facts) {
		// the line is in the window of a row that is inside
		needed = fmt.Sprintf("%s < (%s - 1) * %d + %d", e.ranges[e.down.Place], e.s.Expr(e.down.Row.Extent), e.down.Stride, e.down.Lines(1))
	}
	for _, r := range e.v.Stencil.Reads {
		if e.along != nil {
			e.lineAlong(r, needed)
		} else {
			e.lineAcross(r, needed)
		}
	}
}

// lineAlong reads the elements of a line that the windows of the lanes cover.
func (e *stencilEmitter) lineAlong(r ir.StencilRead, needed string) {
	name, place := e.names.Fresh(r.Local.Name+"_line"), e.ranges[e.along.Place]
	length := e.along.Lines(e.v.Schedule.Vector)
	index := fmt.Sprintf("v * %d + (int)(%s) * %d", e.along.Stride, tapOf(e.along, e.ranges[e.along.Tap]), e.along.Dilation)
	if r.Width > 0 {
		e.lineOfVectors(r, name, length, needed)
		e.place[r.Local] = converted(r.Local, fmt.Sprintf("%s[(%s + %d) / %d].v[(%s + %d) %% %d]", name, index, r.Shift, r.Width, index, r.Shift, r.Width))
		return
	}
	e.line("%s %s[%d];", spell.StorageType(r.At.Type), name, length)
	e.line("#pragma unroll")
	e.open("for (int s = 0; s < %d; ++s)", length)
	e.line("[[maybe_unused]] const INDEX %s = first * %d + s;", place, e.along.Stride)
	if !e.wholeLanes() {
		inside := fmt.Sprintf("s < (n - 1) * %d + %d", e.along.Stride, e.along.Lines(1))
		needed = both(needed, inside)
	}
	e.element(name+"[s]", r, needed)
	e.close()
	e.place[r.Local] = converted(r.Local, fmt.Sprintf("%s[%s]", name, index))
}

// lineOfVectors reads a line in aligned vectors.
func (e *stencilEmitter) lineOfVectors(r ir.StencilRead, name string, length int, needed string) {
	vectors := (r.Shift + length + r.Width - 1) / r.Width
	e.line("Vec<%s, %d> %s[%d];", spell.StorageType(r.At.Type), r.Width, name, vectors)
	e.line("#pragma unroll")
	e.open("for (int s = 0; s < %d; ++s)", vectors)
	e.line("[[maybe_unused]] const INDEX %s = first * %d + (s * %d - %d);", e.ranges[e.along.Place], e.along.Stride, r.Width, r.Shift)
	if !e.wholeLanes() { // places after the last lane belong to no window
		needed = both(needed, fmt.Sprintf("%s < %s", e.ranges[e.along.Place], e.s.Expr(e.along.Place.Extent)))
	}
	guard, offset := e.access(r.At, r.At.Guard, r.At.Args[0])
	text := fmt.Sprintf("load<%d>(%s + %s, %d)", r.Width, e.args[r.At.Arg], offset, r.Width)
	if guard = both(needed, guard); guard != "" {
		text = fmt.Sprintf("%s ? %s : splat<%d>(%s)", guard, text, r.Width, outside(r.At))
	}
	e.noted(r.Local.Span, "%s[s] = %s;", name, text)
	e.close()
}

// outside is the text for an element that does not exist, or that no row needs.
func outside(read *ir.Expr) string {
	if read.Fill == nil {
		return spell.Literal(ir.Num(read.Type, 0))
	}
	return spell.Literal(read.Fill)
}

// tapOf converts a tap to the way its slide counts taps, or back.
func tapOf(s *ir.Slide, counted string) string {
	if !s.Turned {
		return counted
	}
	return fmt.Sprintf("%d - %s", s.Tap.Extent.Int-1, counted)
}

// lineAcross reads an element of a line for each lane.
func (e *stencilEmitter) lineAcross(r ir.StencilRead, needed string) {
	name := e.names.Fresh(r.Local.Name + "_line")
	if r.Local.Wide {
		e.atFirst(func() {
			read := e.wide(r.At)
			if needed != "" {
				read = fmt.Sprintf("(%s) ? (%s) : splat<VECTOR>(%s)", needed, read, outside(r.At))
			}
			e.noted(r.Local.Span, "const auto %s = %s;", name, read)
		})
		e.place[r.Local] = converted(r.Local, name+".v[v]")
		return
	}
	e.line("%s %s[VECTOR];", spell.StorageType(r.At.Type), name)
	e.flatLanes(false, func() {
		if !e.wholeLanes() {
			needed = both(needed, "v < n")
		}
		e.element(name+"[v]", r, needed)
	})
	e.place[r.Local] = converted(r.Local, name+"[v]")
}

// element reads one element where it is needed.
func (e *stencilEmitter) element(to string, r ir.StencilRead, needed string) {
	read := e.read(r.At)
	if needed != "" { // a choice instead of a branch, so that all reads of a line are under way together
		read = fmt.Sprintf("(%s) ? %s : %s", needed, read, outside(r.At))
	}
	e.noted(r.Local.Span, "%s = %s;", to, read)
}

// both joins two conditions, either of which may be empty.
func both(a, b string) string {
	switch {
	case a == "":
		return b
	case b == "":
		return a
	}
	return "((" + a + ") && (" + b + "))"
}
