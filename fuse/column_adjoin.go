package fuse

import (
	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/forecast"
	"github.com/fusec/fusec/ir"
)

// Windows side by side, such as pooling whose stride is the width of its windows. No element is read twice, but a line of
// memory holds several windows. Threads that read element by element would ask for the same line again and again, and
// groups of threads that share a window would use only some bytes of each line. So these are stencils too: a thread reads
// the part of a line that its windows have in vectors, and neighbouring threads read the parts beside it.

// Figures of windows side by side, in bytes.
const (
	adjoinWindow = 224 // of a window at most; groups of threads were 3 to 5 % faster with windows of 256
	adjoinBytes  = 512 // of all windows of a thread
)

// adjoiningVariants are the variants for windows side by side; none where there are none.
func (lo columnKernel) adjoiningVariants(sections []*ir.Section, lane *ir.Range) (out []*ir.Variant) {
	tap := algebra.Innermost(lo.k.Cols).Extent
	size := int64(lo.smallest())
	if len(lo.k.Cols) < 2 || tap.Op != ir.OpConst || lo.linesOfWindow()*tap.Int*size > adjoinWindow {
		return nil
	}
	add := func(o stencilOptions) {
		if v := lo.stencilOf(sections, lane, o); v != nil {
			out = append(out, v)
		}
	}
	for bytes := int64(forecast.AccessBytes); bytes > size && bytes >= wordBytes; bytes /= 2 {
		lanes := lo.lanesOfLine(tap.Int, bytes, size)
		if lanes == 0 {
			continue
		}
		if lanes > 1 && bytes == forecast.AccessBytes {
			add(stencilOptions{vector: lanes, rows: 1, stores: true, lines: int(bytes), beside: true})
		}
		add(stencilOptions{vector: lanes, rows: 1, lines: int(bytes), beside: true})
	}
	add(stencilOptions{vector: 1, rows: 1, beside: true})
	return out
}

// lanesOfLine is the least number of windows whose part of a line is a whole number of accesses; 0 where a thread has no
// room for so many.
func (lo columnKernel) lanesOfLine(taps, bytes, size int64) int {
	lines := lo.linesOfWindow()
	for lanes := int64(1); lanes == 1 || lanes <= stencilLanes && lanes*taps*size*lines <= adjoinBytes; lanes *= 2 {
		if lanes*taps*size%bytes == 0 {
			return int(lanes)
		}
	}
	return 0
}

// linesOfWindow is how many lines a window has: the product of its outer ranges of constant
// size.
func (lo columnKernel) linesOfWindow() int64 {
	lines := int64(1)
	for _, c := range lo.k.Cols[:len(lo.k.Cols)-1] {
		if c.Extent.Op == ir.OpConst {
			lines *= c.Extent.Int
		}
	}
	return lines
}

// adjoiningSlide finds how reads move where windows lie side by side along the lanes, and returns the slide with the
// reads that move so; nil where none does.
func (lo columnKernel) adjoiningSlide(reads []*ir.Local, row, tap *ir.Range) (*ir.Slide, []*ir.Local) {
	s := ir.Slide{Row: row, Tap: tap, Stride: tap.Extent.Int, Dilation: 1}
	if tap.Extent.Int < 2 || tap.Extent.Int > stencilTap {
		return nil, reads
	}
	if moved := lo.movedBy(&s, reads); len(moved) > 0 {
		return &s, moved
	}
	return nil, reads
}

// readsWhole reports whether lines are read in accesses of the given bytes. Narrower accesses ask for each line of memory
// more often than single elements would.
func readsWhole(v *ir.Variant, bytes int) bool {
	for _, r := range v.Stencil.Reads {
		if r.Width*r.At.Type.Size() != bytes {
			return false
		}
	}
	return true
}
