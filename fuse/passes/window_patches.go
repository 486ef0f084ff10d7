package passes

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/ir"
)

// Windows that neither overlap nor leave anything out, as the patches that a vision transformer cuts an image into, are
// laid out as they are: the elements of a window side by side, in the order of the weights. That holds each element
// once, the weights stay where they are, and what is left is a plain product. With channels last few channels
// would be padded, and a step of the sum would be of one line of the window.

// patches is the ranges of the sum in the order of the weights, where windows are such ones and their lines whole accesses;
// nil for other windows.
func (p *windowed) patches() []*ir.Range {
	w := p.input
	if p.exact || w.load.Fill != nil || p.weight.Fill != nil || len(p.both) > 0 || len(w.spans) == 0 {
		return nil
	}
	for _, s := range w.spans {
		if s.tap == nil || s.dilation != 1 || !s.tap.Extent.IsConst(float64(s.stride)) {
			return nil
		}
		start := map[*ir.Range]*ir.Expr{s.output: ir.IntConst(0), s.tap: ir.IntConst(0)}
		if !ir.Simplify(ir.Substitute(w.load.Args[s.dim], start), ir.Facts{}).IsConst(0) {
			return nil
		}
	}
	line := w.spans[len(w.spans)-1]
	columns := indicesOf(p.weight, p.v.Reduce.Ranges)
	if line.dim != len(w.load.Args)-1 || line.tap.Extent.Int%p.align() != 0 || len(columns) == 0 || columns[len(columns)-1] != line.tap ||
		len(columns) != len(algebra.Widened(p.v.Reduce.Ranges)) || !readsInOrder(p.weight, slices.Concat(p.own, columns)) {
		return nil
	}
	return columns
}

// indicesOf is the ranges of a set that are indices of a load, in their order.
func indicesOf(load *ir.Expr, of []*ir.Range) (out []*ir.Range) {
	for _, at := range load.Args {
		if at.Op == ir.OpRange && slices.Contains(of, at.Range) {
			out = append(out, at.Range)
		}
	}
	return out
}

// layPatches rewrites the product over a new value that holds the windows, and returns that.
func (p *windowed) layPatches(g *ir.Graph, columns []*ir.Range) []*ir.Value {
	order := slices.Clone(columns)
	for i := len(p.v.Axes) - 1; i >= 0; i-- {
		if a := p.v.Axes[i]; ir.DependsOn(p.input.load, a) {
			order = slices.Insert(order, 0, a)
		}
	}
	input := p.lay(g, "input", p.input.load, order, columns[len(columns)-1])
	body := p.v.Body
	p.v.Body = ir.Apply(ir.OpMul, ir.Cast(p.weight, body.Args[0].Type), ir.Cast(input, body.Args[1].Type)).At(body.Span)
	r := *p.v.Reduce
	r.Ranges = columns
	p.v.Reduce = &r
	return []*ir.Value{input.From}
}

// holdsPatches reports whether a load is of a value that holds windows side by side, which its reader multiplies: substituted
// there it would be windows again. In such a value other axes stand between the two that a line was divided into; side by
// side these would be a reshape, as groups of channels are.
func holdsPatches(load *ir.Expr, reader *ir.Value) bool {
	if loadsMultiplied(reader) == nil || load.From.Body.Op != ir.OpLoad || load.Fill != nil {
		return false
	}
	for _, at := range load.Args {
		if at.Op != ir.OpRange && !at.IsConst(0) {
			return false
		}
	}
	from := load.From.Body.Args
	if len(from) == 0 {
		return false
	}
	line, axes := ir.FreeRanges(from[len(from)-1]), load.From.Axes
	first := slices.IndexFunc(axes, func(a *ir.Range) bool { return line[a] })
	return len(line) == 2 && line[axes[len(axes)-1]] && first < len(axes)-2
}
