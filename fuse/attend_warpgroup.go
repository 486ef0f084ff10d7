package fuse

import (
	"cmp"
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// Figures of the attend mapping through wgmma.
const (
	slab           = 64 // elements of a line of a tile: the 128 bytes that the swizzle spans
	groupQueries   = 64 // of a warpgroup
	warpgroup      = 128
	attendGroups   = 2 // that multiply; three where the registers of 160 a thread hold their sums
	attendKeys     = 128
	attendFewKeys  = 64 // where heads are longer than 128
	largestViewDim = 5
	viewAlign      = 8 // elements of 16 bits: the copy engine's strides are multiples of 16 bytes
)

// attendWarpgroupVariant builds the variant through the tensor copy engine and wgmma;
// nil where the device has none, or where an operand cannot come in boxes.
func (lo attendKernel) attendWarpgroupVariant(a ir.Attend, depth, width int) *ir.Variant {
	if !lo.device.Warpgroups() || len(a.Depth) != 1 || len(a.N) != 1 {
		return nil
	}
	enough := lo.oneOfQueries(&a)
	upTo := func(n int) int { return (n + slab - 1) / slab * slab }
	depth, a.Width = upTo(depth), upTo(width)
	s := ir.Schedule{Mapping: ir.AttendWarpgroupMapping, Vector: operandVector, TileN: attendKeys, TileK: depth,
		Stages: attendStages, MinBlocks: 1}
	groups := attendGroups
	switch {
	case max(depth, a.Width) > attendKeys:
		s.TileN = attendFewKeys
	case max(depth, a.Width) <= slab && lo.plainLogits(&a):
		groups++
	}
	s.TileM, s.Threads = groups*groupQueries, (groups+1)*warpgroup
	needs := algebra.NewNeeds(lo.positive(), true)
	ok := true
	box := func(name string, o ir.Operand, row, lane *ir.Range, lines int) *ir.Box {
		b := lo.box(name, o, a.Type, row, lane, lines, needs)
		ok = ok && b != nil
		return b
	}
	keys := lo.k.Cols[0]
	a.QBox = box("map_q", a.Q, a.M[0], a.Depth[0], s.TileM)
	a.KBox = box("map_k", a.K, keys, a.Depth[0], s.TileN)
	a.VBox = box("map_v", a.V, keys, a.N[0], s.TileN)
	if !ok {
		return nil
	}
	v := lo.attendBody(&a, s)
	v.Views = []*ir.View{a.QBox.View, a.KBox.View, a.VBox.View}
	v.When = algebra.And(v.When, enough)
	lo.require(v, needs)
	for _, w := range v.Views { // the engine has no empty tensors
		for _, d := range w.Dims {
			v.When = algebra.And(v.When, ir.Apply(ir.OpLe, ir.IntConst(1), d))
		}
	}
	return v
}

// oneOfQueries leaves one range of queries in tiles, the longest: a box has rows of one range. The others, as heads that
// share their keys, become batch. It returns the condition that tiles of that one range are not mostly empty; nil for
// no condition.
func (lo attendKernel) oneOfQueries(a *ir.Attend) *ir.Expr {
	if len(a.M) == 1 {
		return nil
	}
	sizes := algebra.DefaultSizes(lo.g)
	longest := slices.MaxFunc(a.M, func(x, y *ir.Range) int {
		return cmp.Compare(algebra.Estimate(x.Extent, sizes), algebra.Estimate(y.Extent, sizes))
	})
	others := slices.DeleteFunc(slices.Clone(a.M), func(r *ir.Range) bool { return r == longest })
	a.Batch, a.M = append(slices.Clone(a.Batch), others...), []*ir.Range{longest}
	return ir.Apply(ir.OpLe, ir.IntConst(groupQueries), longest.Extent)
}

// plainLogits reports whether logits need few registers beside scores and sums: heads
// have a known size, and what stands between product and exponent reads no memory.
func (lo attendKernel) plainLogits(a *ir.Attend) bool {
	plain := a.Weight == nil && algebra.Product(a.Depth).Op == ir.OpConst && algebra.Product(a.N).Op == ir.OpConst
	ir.Walk(lo.maximum().Body, func(e *ir.Expr) bool {
		plain = plain && e.Op != ir.OpRead && e.Op != ir.OpRandom
		return plain
	})
	return plain
}

// box is the view of an operand that is a read of type t, linear in its row, its lane, and in
// each batch range or quotient of one; nil where it is none. needs are what symbols
// must be multiples of.
func (lo attendKernel) box(
	name string, o ir.Operand, t ir.DType, row, lane *ir.Range, lines int, needs *algebra.Needs,
) *ir.Box {
	read := storedRead(form.Stripped(o.Value), t)
	if read == nil || read.Guard != nil {
		return nil
	}
	offset, others, at := lo.linearParts(read.Args[0], row, lane)
	facts := lo.facts
	facts.Positive = true
	w := &ir.View{Name: name, Arg: read.Arg, Swizzle: 2 * slab}
	b := &ir.Box{View: w}
	for d, r := range append([]*ir.Range{lane, row}, others...) {
		stride, ok := ir.Stride(offset, r, facts)
		switch {
		case !ok || d == 0 && !stride.IsConst(1) || d == 1 && stride.IsConst(0):
			return nil
		case d > 1 && stride.IsConst(0):
			continue
		case d > 0:
			w.Strides = append(w.Strides, stride)
		}
		w.Dims, w.Box = append(w.Dims, r.Extent), append(w.Box, 1)
		if d > 1 {
			b.At = append(b.At, at[d-2])
		}
	}
	if len(w.Dims) > largestViewDim {
		return nil
	}
	w.Box[0], w.Box[1] = slab, lines
	zero := map[*ir.Range]*ir.Expr{lane: ir.IntConst(0), row: ir.IntConst(0)}
	for _, r := range others {
		zero[r] = ir.IntConst(0)
	}
	if start := ir.Simplify(ir.Substitute(offset, zero), facts); !start.IsConst(0) {
		w.Offset = start
	}
	for _, e := range append([]*ir.Expr{w.Offset}, w.Strides...) {
		if e == nil {
			continue
		}
		own := algebra.NewNeeds(facts, true)
		if !own.Try(viewAlign, []*ir.Expr{e}, func(f ir.Facts) bool { return ir.Multiple(e, viewAlign, f) }) {
			return nil
		}
		needs.Add(own)
	}
	return b
}

// linearParts writes an offset over ranges alone: quotients and remainders of batch
// ranges become ranges of their own. It returns those besides row and lane, and what
// each stands for.
func (lo attendKernel) linearParts(
	offset *ir.Expr, row, lane *ir.Range,
) (linear *ir.Expr, others []*ir.Range, at []*ir.Expr) {
	var cut func(e *ir.Expr) *ir.Expr
	cut = func(e *ir.Expr) *ir.Expr {
		free := ir.FreeRanges(e)
		if e.Op != ir.OpFloorDiv && e.Op != ir.OpMod || len(free) == 0 || free[row] || free[lane] {
			return e.WithParts(cut)
		}
		if i := slices.IndexFunc(at, func(x *ir.Expr) bool { return ir.Equal(x, e) }); i >= 0 {
			return others[i].At()
		}
		_, last := ir.Bounds(e, lo.inside(ir.FullLevel))
		if last == nil {
			return e
		}
		part := lo.g.NewRange("part", ir.Simplify(ir.Apply(ir.OpAdd, last, ir.IntConst(1)), lo.facts))
		others, at = append(others, part), append(at, e)
		return part.At()
	}
	linear = cut(offset)
	free := ir.FreeRanges(linear)
	for _, r := range lo.k.Rows {
		if free[r] && r != row && r != lane {
			others, at = append(others, r), append(at, r.At())
		}
	}
	return linear, others, at
}
