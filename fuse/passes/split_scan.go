package passes

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/forecast"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// Scans of few long rows. One block goes through a row, so few rows leave most of a device idle. A row is cut into chunks: each
// chunk is folded, the folds are scanned, and each chunk is scanned by itself, with what the chunks ahead of it give. This
// reads the row twice, by all blocks.

// Columns of a chunk of a scan.
const (
	leastScanned = 1 << 10 // with fewer, the folds of the chunks are a long row themselves
	mostScanned  = 1 << 14
)

// scanChunk is the columns of a chunk, a power of two, that fill the device with blocks; 0 where a scan should stay whole.
func (s *splitter) scanChunk(v *ir.Value, scan *form.Scan) int64 {
	rows, cols := form.RowsAt(v, s.sizes), algebra.Estimate(scan.Over.Extent, s.sizes)
	if rows >= forecast.FullDevice/2 || cols < forecast.SplitLeast || !ir.SameSize(scan.Axis.Extent, scan.Over.Extent) {
		return 0
	}
	chunk := int64(leastScanned)
	for chunk < mostScanned && rows*cols > float64(chunk)*forecast.SplitBlocks {
		chunk *= 2
	}
	return chunk
}

// splitScan makes v, a scan, that of its chunks and of what is ahead of each, and returns the values that it then reads.
func splitScan(g *ir.Graph, v *ir.Value, scan *form.Scan, chunk int64) []*ir.Value {
	size := ir.IntConst(chunk)
	count := ir.Simplify(algebra.CeilDiv(scan.Over.Extent, chunk), g.Facts())
	others := slices.DeleteFunc(slices.Clone(v.Axes), func(r *ir.Range) bool { return r == scan.Axis })
	op := v.Reduce.Op
	acc := op.Accumulator(v.Body.Type)
	// over makes axes for the other axes of v and for the chunks, and the indices at which these are those of v.
	over := func(more ...*ir.Expr) (axes []*ir.Range, at map[*ir.Range]*ir.Expr) {
		axes, at = nil, map[*ir.Range]*ir.Expr{}
		for _, r := range others {
			own := g.NewRange(r.Name, r.Extent)
			axes, at[r] = append(axes, own), algebra.UnitIndices([]*ir.Range{own})[0]
		}
		for _, extent := range append([]*ir.Expr{count}, more...) {
			axes = append(axes, g.NewRange(scan.Axis.Name, extent))
		}
		return axes, at
	}
	place := func(chunk, point *ir.Range) *ir.Expr {
		return ir.Apply(ir.OpAdd, ir.Apply(ir.OpMul, chunk.At(), size), point.At())
	}
	// fold is a reduction of the points of a chunk, of those that where holds for.
	fold := func(name string, axes []*ir.Range, at map[*ir.Range]*ir.Expr, where *ir.Expr) *ir.Value {
		point := g.NewRange(scan.Over.Name, size)
		at[scan.Over] = place(axes[len(others)], point)
		inside := ir.Apply(ir.OpLt, at[scan.Over], scan.Over.Extent)
		if where != nil {
			inside = ir.Join(ir.OpAnd, inside, form.GuardLoads(ir.Substitute(where, at)))
		}
		return g.Adopt(&ir.Value{Name: name, Type: acc, Axes: axes, Origin: v.Origin,
			Reduce: &ir.Reduction{Op: op, Ranges: []*ir.Range{point}, Where: inside},
			Body:   ir.Cast(ir.Substitute(form.GuardLoads(v.Body), at), acc)})
	}
	axes, at := over()
	total := fold(v.Name+"_part", axes, at, scan.Where)

	axes, _ = over()
	before := g.NewRange(scan.Over.Name, count)
	ahead := ir.Apply(ir.OpLt, before.At(), axes[len(others)].At())
	if scan.Reverse {
		ahead = ir.Apply(ir.OpLt, axes[len(others)].At(), before.At())
	}
	carried := g.Adopt(&ir.Value{Name: v.Name + "_ahead", Type: acc, Axes: axes, Origin: v.Origin,
		Body:   ir.Load(total, append(algebra.UnitIndices(axes[:len(others)]), before.At()), nil),
		Reduce: &ir.Reduction{Op: op, Ranges: []*ir.Range{before}, Where: ahead}})

	axes, at = over(size)
	at[scan.Axis] = place(axes[len(others)], axes[len(others)+1])
	own := fold(v.Name+"_chunk", axes, at, v.Reduce.Where)

	i := scan.Axis.At()
	rows := append(algebra.UnitIndices(others), ir.Apply(ir.OpFloorDiv, i, size))
	inChunk := append(slices.Clone(rows), ir.Apply(ir.OpMod, i, size))
	v.Body = ir.Cast(ir.Apply(op.Info().Combine, ir.Load(carried, rows, nil), ir.Load(own, inChunk, nil)), v.Type)
	v.Reduce = nil
	return []*ir.Value{total, carried, own}
}
