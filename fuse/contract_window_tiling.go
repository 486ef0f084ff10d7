package fuse

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/forecast"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// How the tensor copy engine may bring an operand of a windowed contraction: the dims in which it reads the tensor.

// largestStep is the longest step with which the copy engine goes along a dim.
const largestStep = 8

// windowTiling is how the tensor copy engine may bring an operand: where in each dim of its tensor
// the rows of the operand are.
type windowTiling struct {
	name  string // of the tensor map
	rows  []*ir.Range
	arg   *ir.Arg
	shape []*ir.Expr // outermost first
	at    []*ir.Expr // of each dim, over the kernel's ranges
	along []int      // index of the operand's range of rows that each dim depends on; -1 for none
	steps []int      // elements of each dim from one that a copy moves to the next
	whole bool       // dims are not divided where windows leave elements out: copies move one element in so many

	// Of windows whose elements are neighbours in memory, in the last two dims: the elements from a window
	// to the next, and those of a line of places. Nil where the dims are those of the tensor.
	apart, line *ir.Expr
}

// windowTiling describes an operand; nil where the copy engine cannot bring it in boxes of its rows at one
// tap, with channels innermost, adding to needs what that takes.
func (lo warpgroupKernel) windowTiling(o ir.Operand, own []*ir.Range, t ir.DType, needs *algebra.Needs) *windowTiling {
	if x := lo.tilingOf(o, own, t, needs, false); x != nil {
		return x
	}
	return lo.tilingOf(o, own, t, needs, true)
}

// tilingOf is windowTiling by dims that are divided where windows leave elements out, or by whole ones.
func (lo warpgroupKernel) tilingOf(o ir.Operand, own []*ir.Range, t ir.DType, needs *algebra.Needs, whole bool) *windowTiling {
	read := storedRead(o.Value, t)
	load, shape := lo.placesIn(read)
	if load == nil || read.Guard != nil && !form.IsZero(form.WithoutCasts(read.Fill)) {
		return nil
	}
	x := &windowTiling{rows: own, arg: read.Arg, whole: whole}
	aligned := int64(forecast.CopyAlign / t.Size())
	load, shape = withoutUnits(load, shape)
	channel := algebra.Innermost(lo.k.Cols)
	last := len(load) - 1
	if last < 0 {
		return nil
	}
	flat := last > 0 && lo.isFlat(load[last-1:], shape[last], channel)
	if flat {
		last--
	} else if load[last].Op != ir.OpRange || load[last].Range != channel || !ir.SameSize(shape[last], channel.Extent) ||
		!needs.Multiple(shape[last], aligned) {
		return nil
	}
	for d, at := range load[:last] {
		along, ok := lo.rowsAt(at, own)
		if !ok || ir.DependsOn(at, channel) || !x.add(shape[d], at, along, lo.positive()) {
			return nil
		}
	}
	if flat && !lo.addFlat(x, load[last:], shape[last:], needs, aligned) {
		return nil
	}
	if !flat {
		x.push(shape[last], channel.At(), -1, 1)
	}
	if len(x.along)-count(x.along, -1) != len(own) {
		return nil
	}
	x.joinTaps(lo.k.Cols[:len(lo.k.Cols)-1])
	if !x.joinChannels(int64(depthOf(t)), needs) {
		return nil
	}
	return x
}

// withoutUnits leaves out the dims of a tensor that have one element, as those of the taps of a point; the last dim that
// is left is that of the channels.
func withoutUnits(load, shape []*ir.Expr) (at, dims []*ir.Expr) {
	for d, extent := range shape {
		if !extent.IsConst(1) || len(shape) == 1 {
			at, dims = append(at, load[d]), append(dims, extent)
		}
	}
	return at, dims
}

// isFlat reports whether the last two dims of a tensor, with so many channels, are read at what a range of
// taps and their channels side by side is divided into: x[..., q + t / C, t % C]. A range of channels alone is
// none of that: its quotient is always 0.
func (lo warpgroupKernel) isFlat(load []*ir.Expr, channels *ir.Expr, t *ir.Range) bool {
	tap := ir.Simplify(ir.Apply(ir.OpFloorDiv, t.At(), channels), lo.facts)
	rest := ir.Simplify(ir.Apply(ir.OpSub, load[0], tap), lo.facts)
	return ir.DependsOn(tap, t) && !ir.DependsOn(rest, t) && ir.Equal(load[1], ir.Simplify(ir.Apply(ir.OpMod, t.At(), channels), lo.facts))
}

// channelsLast reports whether the last dim of what a window reads is that of the innermost columns, alone or with taps
// beside it: so it was laid out for the copy engine.
func (lo warpgroupKernel) channelsLast(read *ir.Expr) bool {
	at, column := lo.loadOf(read), algebra.Innermost(lo.columns())
	if len(at) < 2 {
		return false
	}
	last := len(at) - 1
	return at[last].Op == ir.OpRange && at[last].Range == column || lo.isFlat(at[last-1:], read.Arg.Buffer.Shape[last], column)
}

// addFlat adds the last two dims of a tensor where taps and channels are one range t. The elements of a
// window are neighbours in memory, so a dim has those of one window, and windows that overlap are so many
// elements apart as their first places are. It adds to needs that these are multiples of aligned.
func (lo warpgroupKernel) addFlat(x *windowTiling, load, shape []*ir.Expr, needs *algebra.Needs, aligned int64) bool {
	t, channels := algebra.Innermost(lo.k.Cols), shape[1]
	first := ir.Simplify(ir.AtZero(load[0], t), lo.facts)
	along, ok := lo.rowsAt(first, x.rows)
	line := ir.Simplify(ir.Apply(ir.OpMul, shape[0], channels), lo.facts)
	if !ok || !needs.Multiple(line, aligned) {
		return false
	}
	if along < 0 {
		at := ir.Apply(ir.OpAdd, ir.Apply(ir.OpMul, first, channels), t.At())
		x.push(line, ir.Simplify(at, lo.facts), -1, 1)
		return true
	}
	stride, ok := ir.Stride(first, x.rows[along], lo.positive())
	if !ok || stride.Op != ir.OpConst || stride.Int < 1 || !ir.Multiple(shape[0], stride.Int, lo.positive()) ||
		!ir.Equal(first, ir.Simplify(ir.Apply(ir.OpMul, x.rows[along].At(), stride), lo.facts)) {
		return false
	}
	x.apart = ir.Simplify(ir.Apply(ir.OpMul, stride, channels), lo.facts)
	x.line = line
	x.push(x.rows[along].Extent, x.rows[along].At(), along, 1)
	x.push(t.Extent, t.At(), -1, 1)
	return needs.Multiple(x.apart, aligned)
}

// count is how often n is among numbers.
func count(numbers []int, n int) (times int) {
	for _, m := range numbers {
		if m == n {
			times++
		}
	}
	return times
}

// rowsAt is the index of the operand's range of rows on which a place depends, -1 for none; ok is false
// where it depends on several.
func (lo warpgroupKernel) rowsAt(at *ir.Expr, own []*ir.Range) (along int, ok bool) {
	along = -1
	for i, r := range own {
		if ir.DependsOn(at, r) {
			if along >= 0 {
				return 0, false
			}
			along = i
		}
	}
	return along, true
}

// add adds a dim that is read at a place. Where windows leave places out, that makes two dims: the places
// of windows, and the places between them, of which a tap reads one.
func (x *windowTiling) add(extent, at *ir.Expr, along int, facts ir.Facts) bool {
	if along < 0 {
		x.push(extent, at, -1, 1)
		return true
	}
	r := x.rows[along]
	stride, ok := ir.Stride(at, r, facts)
	if !ok || stride.Op != ir.OpConst || stride.Int < 1 {
		return false
	}
	if stride.Int == 1 || x.whole && stride.Int <= largestStep {
		x.push(extent, at, along, int(stride.Int))
		return true
	}
	if !ir.Multiple(extent, stride.Int, facts) {
		return false
	}
	rest := ir.Simplify(ir.Apply(ir.OpSub, at, ir.Apply(ir.OpMul, r.At(), stride)), facts)
	place := ir.Apply(ir.OpAdd, r.At(), ir.Apply(ir.OpFloorDiv, rest, stride))
	between := ir.Apply(ir.OpMod, rest, stride)
	x.push(ir.Simplify(ir.Apply(ir.OpFloorDiv, extent, stride), facts), ir.Simplify(place, facts), along, 1)
	x.push(stride, ir.Simplify(between, facts), -1, 1)
	return true
}

// push adds a dim.
func (x *windowTiling) push(extent, at *ir.Expr, along, step int) {
	x.shape, x.at, x.along, x.steps = append(x.shape, extent), append(x.at, at), append(x.along, along), append(x.steps, step)
}

// joinChannels joins the two innermost dims where there are more dims than the copy engine takes, and
// reports whether it then takes them. The joined dim holds the channels of several places side by side, so
// a block of channels must not reach into the next place: that adds to what it needs of the sizes.
func (x *windowTiling) joinChannels(block int64, needs *algebra.Needs) bool {
	last := len(x.shape) - 1
	if last < largestRank {
		return true
	}
	if last > largestRank || x.along[last-1] >= 0 || !needs.Multiple(x.shape[last], block) {
		return false
	}
	whole := ir.Simplify(ir.Apply(ir.OpMul, x.shape[last-1], x.shape[last]), needs.Facts)
	at := ir.Apply(ir.OpAdd, ir.Apply(ir.OpMul, x.at[last-1], x.shape[last]), x.at[last])
	x.shape = append(x.shape[:last-1], whole)
	x.at = append(x.at[:last-1], at)
	x.along, x.steps = x.along[:last], append(x.steps[:last-1], 1)
	return true
}

// placesIn returns where the kernel's sum reads a tensor, in each of its dims, and the extents of these; nil as loadOf does.
// Neighbouring dims through which one range of the kernel runs are one: without taps along the lines of a plane, places run on from
// line to line, and taps are whole lines apart.
func (lo warpgroupKernel) placesIn(read *ir.Expr) (at, shape []*ir.Expr) {
	at = lo.loadOf(read)
	if at == nil {
		return nil, nil
	}
	shape = slices.Clone(read.Arg.Buffer.Shape)
	inside := lo.inside(ir.FullLevel)
	inside.Positive = true // lines of no elements have no places
	for d := len(at) - 2; d >= 0; d-- {
		if !slices.ContainsFunc(lo.k.Rows, func(r *ir.Range) bool { return ir.DependsOn(at[d], r) && ir.DependsOn(at[d+1], r) }) {
			continue
		}
		place := ir.Apply(ir.OpAdd, ir.Apply(ir.OpMul, at[d], shape[d+1]), at[d+1])
		at = slices.Concat(at[:d], []*ir.Expr{ir.Simplify(place, inside)}, at[d+2:])
		shape = slices.Concat(shape[:d], []*ir.Expr{ir.Simplify(ir.Apply(ir.OpMul, shape[d], shape[d+1]), lo.facts)}, shape[d+2:])
	}
	return at, shape
}

// loadOf returns where the kernel's sum reads a tensor, in each of its dims, over the kernel's ranges; nil
// where the tensor is not read as a factor.
func (lo warpgroupKernel) loadOf(read *ir.Expr) (at []*ir.Expr) {
	for _, v := range lo.r.members {
		if read == nil || v.Reduce == nil {
			continue
		}
		for _, f := range form.FactorsOf(v.Body) {
			l := form.WithoutCasts(f)
			if l.Op != ir.OpLoad || lo.buffers[l.From] != read.Arg.Buffer {
				continue
			}
			if at != nil {
				return nil // both factors read it
			}
			for _, e := range l.Args {
				at = append(at, ir.Simplify(ir.Substitute(ir.Substitute(e, lo.r.at[v]), lo.joined), lo.inside(ir.FullLevel)))
			}
		}
	}
	known := algebra.RangeSet(slices.Concat(lo.k.Rows, lo.k.Cols))
	for _, e := range at {
		for r := range ir.FreeRanges(e) {
			if !known[r] {
				return nil
			}
		}
	}
	return at
}

// joinTaps joins neighbouring dims that depend on taps alone, as those of weights do.
func (x *windowTiling) joinTaps(taps []*ir.Range) {
	ofTaps := func(d int) bool { return x.at[d].Op == ir.OpRange && slices.Contains(taps, x.at[d].Range) }
	for d := len(x.shape) - 3; d >= 0; d-- {
		if !ofTaps(d) || x.along[d+1] >= 0 || !algebra.DependsOnAny(x.at[d+1], algebra.RangeSet(taps)) {
			continue
		}
		whole := ir.Simplify(ir.Apply(ir.OpMul, x.shape[d], x.shape[d+1]), ir.Facts{})
		at := ir.Simplify(ir.Apply(ir.OpAdd, ir.Apply(ir.OpMul, x.at[d], x.shape[d+1]), x.at[d+1]), ir.Facts{})
		x.shape = slices.Concat(x.shape[:d], []*ir.Expr{whole}, x.shape[d+2:])
		x.at = slices.Concat(x.at[:d], []*ir.Expr{at}, x.at[d+2:])
		x.along = slices.Concat(x.along[:d], []int{-1}, x.along[d+2:])
		x.steps = slices.Concat(x.steps[:d], []int{1}, x.steps[d+2:])
	}
}

// strideBefore is the stride of the dim before d, given that of d.
func (x *windowTiling) strideBefore(d int, stride *ir.Expr, facts ir.Facts) *ir.Expr {
	switch {
	case x.apart != nil && d == len(x.shape)-1:
		return x.apart
	case x.apart != nil && d == len(x.shape)-2:
		return x.line
	}
	return ir.Simplify(ir.Apply(ir.OpMul, stride, x.shape[d]), facts)
}
