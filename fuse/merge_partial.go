package fuse

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/forecast"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// Row-chunk accumulation. The gradient of a norm has a value for each element, computed from sums over its
// row, and sums over the rows; both read the same tensors. splitReductions cuts the sums over rows into
// partial sums, one for each chunk of rows, and a reduction of those. joinPartials puts the partial sums
// into the kernel of the rows: the same threads go through the rows of a chunk one after the other, and
// keep a running value for each of their columns. So the tensors are read once.

// Limits of accumulation.
const (
	mostPartials = 4                   // accumulated results of one kernel
	fullChunks   = ir.ReferenceSMs / 2 // least chunks, unless they have few rows
	shortChunk   = 8                   // most rows of a chunk where there are fewer
)

// joinPartials merges regions of partial results over chunks of rows into the regions of those rows.
func (pt *partition) joinPartials() {
	for _, v := range pt.g.Values {
		c := pt.home[v]
		if c == nil || c.members[0] != v || !pt.isPartial(c) {
			continue
		}
		seen := map[*region]bool{c: true}
		for _, from := range pt.sources[v] {
			for _, u := range append([]*ir.Value{from}, pt.readers[from]...) {
				r := pt.home[u]
				if r == nil || seen[r] {
					continue
				}
				seen[r] = true
				if pt.joinPartial(r, c) {
					seen[pt.home[v]] = true
				}
				if pt.home[v] != c {
					break
				}
			}
			if pt.home[v] != c {
				break
			}
		}
	}
}

// joinPartial merges the region c of partial results into the region r of rows where both loop over the
// same tensors, and reports whether it did.
func (pt *partition) joinPartial(r, c *region) bool {
	a := &accumulation{flow: pt.flow, r: r, c: c, chunk: chunkOf(c.members[0], pt.facts), m: &matcher{facts: pt.facts}}
	if len(r.accumulated) == 0 && !a.splitRows() || !a.pairLoops() {
		return false
	}
	j := a.region()
	return a.fillsDevice() && !a.multiplies() && a.overSameColumns(j) && a.overSameRows() && a.folds() <= mostPartials && !a.storesAcross(j) && pt.may(a.r, isAccumulated) &&
		pt.keepsConvex(r, c) == nil && pt.oneSum(a.r, c) == nil && a.sharesReads() && pt.take(j)
}

// isPartial reports whether all members of a region are folds of floats over the same chunk of rows,
// with no predicate but the bound of the last chunk.
func (fl *flow) isPartial(c *region) bool {
	if len(c.accumulated) > 0 {
		return false
	}
	for _, v := range c.members {
		if v.Reduce == nil || form.ScanOf(v) != nil || v.Reduce.Op.IsArg() || !v.Type.IsFloat() || fl.results[v] || chunkOf(v, fl.facts) == nil {
			return false
		}
		if c.inputs[v] {
			return false
		}
	}
	return true
}

// chunk is a part of n rows: a fold over it has the predicate part*n + point < rows.
type chunk struct {
	row, rows      *ir.Expr // the two sides
	part, n, point *ir.Expr
}

// chunkOf returns the chunk that a value folds; nil for other values.
func chunkOf(v *ir.Value, facts ir.Facts) *chunk {
	where := v.Reduce.Where
	if where == nil || where.Op != ir.OpLt || len(ir.FreeRanges(where.Args[1])) > 0 {
		return nil
	}
	part, n, point := (&matcher{facts: facts}).mixed(where.Args[0])
	if n == nil || part.Op != ir.OpRange || point.Op != ir.OpRange {
		return nil
	}
	if !slices.Contains(v.Axes, part.Range) || !slices.Contains(v.Reduce.Ranges, point.Range) {
		return nil
	}
	return &chunk{where.Args[0], where.Args[1], part, n, point}
}

// accumulation is a region of partial results that are to be accumulated in the loop over the rows of another region.
type accumulation struct {
	*flow
	r, c  *region  // of the rows, of the partial results
	chunk *chunk   // that the first member of c folds
	m     *matcher // of the loops of r and c
}

// fillsDevice reports whether the chunks are blocks enough, or have few rows each: a block goes through its rows one after the other, so that
// a few blocks take longer than reading the tensors again.
func (a *accumulation) fillsDevice() bool {
	parts := a.estimate(a.chunk.part.Range.Extent)
	return parts >= fullChunks || a.estimate(a.chunk.rows) <= shortChunk*parts
}

// splitRows cuts the rows of r into the chunks of c; false where c folds no rows of r.
func (a *accumulation) splitRows() bool {
	rows := a.chunkedRanges()
	if rows == nil {
		return false
	}
	name := rows[0].Name
	outer, inner := a.g.NewRange(name+"_part", a.chunk.part.Range.Extent), a.g.NewRange(name, a.chunk.n)
	a.r = a.r.split(rows, outer, inner)
	a.r.inside = ir.Apply(ir.OpLt, ir.Apply(ir.OpAdd, ir.Apply(ir.OpMul, outer.At(), a.chunk.n), inner.At()), a.chunk.rows)
	return true
}

// chunkedRanges returns the ranges of r that c cuts into chunks, outermost first. It is the range that indexes a
// tensor in r at the axis where part*n + point indexes it in c, or the ranges at the axes that its digits index.
func (a *accumulation) chunkedRanges() []*ir.Range {
	index := ir.Simplify(a.chunk.row, a.facts)
	for _, lc := range a.loads[a.c.members[0]] {
		for _, u := range a.r.members {
			reads := a.loads[u]
			if u == lc.From { // a member that c reads
				reads = append([]*ir.Expr{ir.Load(u, algebra.UnitIndices(u.Axes), nil)}, reads...)
			}
			for _, lr := range reads {
				if lr.From != lc.From {
					continue
				}
				if rows := a.m.rowsAt(site{a.r, u, lr}, lc, index, a.chunk.rows); rows != nil {
					return rows
				}
			}
		}
	}
	return nil
}

// rowsAt returns the ranges of a region with which a read of it indexes a tensor where the load lc does with the
// digits of an index from 0 to rows-1, outermost first; none where these are not all of the index, in their order.
func (m *matcher) rowsAt(s site, lc, index, rows *ir.Expr) (out []*ir.Range) {
	inner := ir.IntConst(1) // points of the digits so far, which are the last ones
	for d := len(lc.Args) - 1; d >= 0; d-- {
		e := s.index(d, m.facts)
		if e == nil || e.Op != ir.OpRange || s.r.cols[e.Range] {
			continue
		}
		digit := ir.Apply(ir.OpFloorDiv, index, inner)
		switch through := ir.Apply(ir.OpMul, e.Range.Extent, inner); {
		case ir.SameIndex(lc.Args[d], digit, m.facts): // the first digit is bounded only by the index itself
			if out = append(out, e.Range); m.same(through, rows) {
				slices.Reverse(out)
				return out
			}
			return nil
		case ir.SameIndex(lc.Args[d], ir.Apply(ir.OpMod, digit, e.Range.Extent), m.facts):
			out, inner = append(out, e.Range), through
		}
	}
	return nil
}

// pairLoops pairs all loops of the two regions; false where they cannot be paired.
func (a *accumulation) pairLoops() bool {
	a.m.alignment = &alignment{to: map[*ir.Range]*ir.Range{}, from: map[*ir.Range]*ir.Range{}}
	if a.readsAtDigits() && !a.pairChunks() {
		return false
	}
	if no := a.alignEdges(a.m, a.r, a.c); no != nil || a.m.want != nil {
		return false
	}
	a.alignSharedReads(a.m, a.r, a.c)
	return a.m.want == nil && len(a.m.to) == len(a.c.space) && len(a.m.from) == len(a.r.space)
}

// readsAtDigits reports whether c reads tensors at quotients and remainders (digits) of part*n + point: its rows
// are several axes of the tensors, taken as one.
func (a *accumulation) readsAtDigits() bool {
	index := ir.Simplify(a.chunk.row, a.facts)
	for _, l := range a.loads[a.c.members[0]] {
		for _, e := range l.Args {
			if e := ir.Simplify(e, a.facts); e.Op == ir.OpFloorDiv && ir.Equal(e.Args[0], index) {
				return true
			}
		}
	}
	return false
}

// pairChunks pairs the part and the point of a chunk in both regions. An index that is a digit of the row does
// not show which loop it is, so from here on indices match if they are equal.
func (a *accumulation) pairChunks() bool {
	outer, _, inner := a.m.mixed(a.r.inside.Args[0])
	part, point := a.loopOf(a.chunk.part), a.loopOf(a.chunk.point)
	a.m.equal = true
	return outer != nil && part != nil && point != nil && a.m.pair(outer.Range, part) && a.m.pair(inner.Range, point)
}

// loopOf returns the loop of c to which an index of its first member is equal; nil for other indices.
func (a *accumulation) loopOf(e *ir.Expr) *ir.Range {
	return a.c.index(a.c.members[0], e, a.facts).Range
}

// region is the union of the two: it accumulates over the rows of a chunk, for each of the columns.
func (a *accumulation) region() *region {
	j := merged(a.r, a.c, a.m.alignment, a.order)
	j.accumulated, j.inside, j.cols = map[*ir.Range]bool{}, a.r.inside, map[*ir.Range]bool{}
	for _, loop := range a.c.space {
		switch to := a.m.to[loop]; {
		case a.c.cols[loop]:
			j.accumulated[to] = true
		case loop != a.loopOf(a.chunk.part) && !a.r.accumulated[to]:
			j.cols[to] = true
		}
	}
	return j
}

// overSameColumns reports whether the union has the columns and the accumulated rows that r has, if it has any, and
// columns few enough to keep.
func (a *accumulation) overSameColumns(j *region) bool {
	cols, accumulated := ordered(a.r.space, j.cols), ordered(a.r.space, j.accumulated)
	if len(j.cols) == 0 || len(a.r.cols) > 0 && !algebra.SameRanges(cols, a.r.cols) || len(a.r.accumulated) > 0 && !algebra.SameRanges(accumulated, a.r.accumulated) {
		return false
	}
	return a.estimate(algebra.Product(cols)) <= forecast.AccumulateColumns
}

// multiplies reports whether r sums products of two tensors, each of which lacks rows of the other, with a conversion around
// them or without: tiles do that, and go through no rows one by one.
func (a *accumulation) multiplies() bool {
	return slices.ContainsFunc(a.r.members, func(v *ir.Value) bool {
		plain := *v
		if v.Reduce != nil {
			plain.Body = form.WithoutCasts(v.Body)
		}
		return form.Crosses(&plain)
	})
}

// overSameRows reports whether all members of c fold the chunks of rows that r goes through.
func (a *accumulation) overSameRows() bool {
	rename := map[*ir.Range]*ir.Expr{}
	for loop, to := range a.m.to {
		rename[loop] = to.At()
	}
	inside := a.r.inside.Args
	for _, v := range a.c.members {
		own := ir.Substitute(v.Reduce.Where, a.c.at[v])
		if !ir.SameIndex(ir.Substitute(own.Args[0], rename), inside[0], a.facts) || !ir.SameSize(own.Args[1], inside[1]) {
			return false
		}
	}
	return true
}

// folds is how many results the union accumulates.
func (a *accumulation) folds() int {
	n := len(a.c.members)
	for _, v := range a.r.members {
		if v.Reduce != nil && a.r.accumulates(v) {
			n++
		}
	}
	return n
}

// storesAcross reports whether the union would store large results along the rows that it goes through, one by one, each element to
// a line of its own. Rows that nothing is accumulated over are turned by their block instead.
func (a *accumulation) storesAcross(j *region) bool {
	return slices.ContainsFunc(j.members, func(v *ir.Value) bool {
		axes := algebra.Widened(v.Axes)
		if !a.leaves(v, j) || len(axes) < 2 || !straysFar(a.device, a.bytes(v)) {
			return false
		}
		varies := slices.ContainsFunc(axes, func(r *ir.Range) bool { return algebra.DependsOnAny(j.at[v][r], j.cols) })
		return varies && algebra.DependsOnAny(j.at[v][axes[len(axes)-1]], j.accumulated)
	})
}

// sharesReads reports whether most of what c reads are tensors that r reads too, or computes.
func (a *accumulation) sharesReads() bool {
	shared, all := 0.0, 0.0
	for _, v := range a.c.members {
		for _, from := range a.sources[v] {
			size := a.bytes(from)
			all += size
			if a.r.has(from) || a.r.inputs[from] {
				shared += size
			}
		}
	}
	return 2*shared >= all
}
