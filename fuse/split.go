package fuse

import "github.com/fusec/fusec/ir"

// Figures of splitting, in blocks and elements.
const (
	fullDevice   = 264   // blocks that keep a large GPU busy: two a multiprocessor
	splitBlocks  = 2112  // blocks to aim for when splitting: many waves leave no long tail
	splitLeast   = 32768 // elements of one reduction below which one block will do
	splitChunk   = 64    // least points of the split range in one chunk
	flatLanes    = 32    // threads of a block that walk neighbouring rows, see Schedule.ColThreads
	groupThreads = 8     // threads that share the columns of one row in flat mapping
)

// splitReductions cuts long reductions with few results in two, so that many
// blocks work on each: partial results over chunks of the outermost reduced
// range, then their reduction. The chunk is a constant of the program (from its
// default sizes), so the number of partial results does not depend on the device. A graph that is to be
// one kernel stays whole.
func splitReductions(g *ir.Graph) {
	if g.OneKernel {
		return
	}
	sizes := defaultSizes(g)
	var out []*ir.Value
	for _, v := range g.Values {
		if chunk := chunkOf(v, sizes); chunk > 0 {
			out = append(out, splitReduction(g, v, chunk)...)
		}
		out = append(out, v)
	}
	g.Values = out
}

// chunkOf returns the points of the outermost reduced range that one block
// should take; 0 for a reduction that is better left whole.
func chunkOf(v *ir.Value, sizes map[string]int64) int64 {
	if v.Reduce == nil || v.Reduce.Op.IsArg() {
		return 0
	}
	rows := estimateSize(product(v.Axes), sizes)
	cols := estimateSize(product(v.Reduce.Ranges), sizes)
	if cols < splitLeast && rows*cols < 16*splitLeast {
		return 0
	}
	blocks := rows
	if !walksColumns(v, sizes) {
		blocks = rows / (flatLanes * accessBytes / float64(v.Body.Type.Size()))
	}
	outer := estimateSize(v.Reduce.Ranges[0].Extent, sizes)
	if blocks >= fullDevice || outer < 2*splitChunk && outer == cols {
		return 0
	}
	parts := splitBlocks / max(blocks, 1)
	chunk := int64(1)
	for float64(chunk) < outer/parts {
		chunk *= 2
	}
	if least := int64(splitLeast / max(1, cols/outer) / 2); blocks == rows { // a block wants enough of a row
		for chunk < least {
			chunk *= 2
		}
	} else {
		chunk = max(chunk, splitChunk)
	}
	if float64(chunk) >= outer {
		return 0
	}
	return chunk
}

// walksColumns reports whether the largest tensor a reduction reads is contiguous
// along a reduced range.
func walksColumns(v *ir.Value, sizes map[string]int64) bool {
	best, along := -1.0, true
	reduced := map[*ir.Range]bool{}
	for _, r := range v.Reduce.Ranges {
		reduced[r] = true
	}
	for _, l := range v.Loads() {
		if size := estimateSize(bytesOf(l.From), sizes); size > best && len(l.Args) > 0 {
			best, along = size, dependsOnAny(l.Args[len(l.Args)-1], reduced)
		}
	}
	return along
}

// splitReduction returns the values that v now reads, partial results first, and
// makes v the reduction of them.
func splitReduction(g *ir.Graph, v *ir.Value, chunk int64) []*ir.Value {
	outer := v.Reduce.Ranges[0]
	chunks := ir.Simplify(ir.Apply(ir.OpFloorDiv, ir.Apply(ir.OpAdd, outer.Extent, ir.IntConst(chunk-1)), ir.IntConst(chunk)), ir.Facts{})
	part := g.NewRange(outer.Name+"_chunk", chunks)
	point := g.NewRange(outer.Name, ir.IntConst(chunk))
	axes := g.NewAxes(v.Shape())
	at := map[*ir.Range]*ir.Expr{}
	for d, r := range v.Axes {
		at[r] = unitIndices(axes)[d]
	}
	index := ir.Apply(ir.OpAdd, ir.Apply(ir.OpMul, part.At(), ir.IntConst(chunk)), point.At())
	at[outer] = index
	inside := ir.Apply(ir.OpLt, index, outer.Extent)
	where := inside
	if v.Reduce.Where != nil {
		where = ir.Apply(ir.OpAnd, inside, guardLoads(ir.Substitute(v.Reduce.Where, at)))
	}
	acc := v.Reduce.Op.Accumulator(v.Body.Type)
	partial := g.Adopt(&ir.Value{
		Name: v.Name + "_part", Type: acc, Axes: append([]*ir.Range{part}, axes...),
		Body: ir.Cast(guardLoads(ir.Substitute(v.Body, at)), acc), Origin: v.Origin,
		Reduce: &ir.Reduction{Op: v.Reduce.Op, Ranges: append([]*ir.Range{point}, v.Reduce.Ranges[1:]...), Where: where},
	})
	over := g.NewRange(part.Name, chunks)
	whole := ir.Load(partial, append([]*ir.Expr{over.At()}, unitIndices(v.Axes)...), nil)
	v.Reduce = &ir.Reduction{Op: v.Reduce.Op, Ranges: []*ir.Range{over}}
	if v.Type == acc {
		v.Body = whole
		return []*ir.Value{partial}
	}
	return []*ir.Value{partial, finishNarrow(g, v, whole)}
}

// finishNarrow makes v the rounding of a reduction in the accumulator's type.
func finishNarrow(g *ir.Graph, v *ir.Value, whole *ir.Expr) *ir.Value {
	axes := g.NewAxes(v.Shape())
	rename := map[*ir.Range]*ir.Expr{}
	for d, r := range v.Axes {
		rename[r] = unitIndices(axes)[d]
	}
	total := g.Adopt(&ir.Value{Name: v.Name + "_total", Type: whole.Type, Axes: axes, Body: ir.Substitute(whole, rename), Reduce: v.Reduce, Origin: v.Origin})
	v.Reduce = nil
	v.Body = ir.Cast(ir.Load(total, unitIndices(v.Axes), nil), v.Type)
	return total
}
