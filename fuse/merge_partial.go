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

// mostPartials is the most accumulated results of one kernel.
const mostPartials = 4

// joinPartials merges regions of partial results over chunks of rows into the regions of those rows.
func (f *fuser) joinPartials() {
	for _, v := range f.g.Values {
		c := f.home[v]
		if c == nil || c.members[0] != v || !f.partialRegion(c) {
			continue
		}
		seen := map[*region]bool{c: true}
		for _, from := range f.sources[v] {
			for _, u := range append([]*ir.Value{from}, f.readers[from]...) {
				r := f.home[u]
				if r == nil || seen[r] {
					continue
				}
				seen[r] = true
				if f.joinPartial(r, c) {
					seen[f.home[v]] = true
				}
				if f.home[v] != c {
					break
				}
			}
			if f.home[v] != c {
				break
			}
		}
	}
}

// partialRegion reports whether all members of a region are folds of floats over the same chunk of rows,
// with no predicate but the bound of the last chunk.
func (f *fuser) partialRegion(c *region) bool {
	if len(c.accumulated) > 0 {
		return false
	}
	for _, v := range c.members {
		if v.Reduce == nil || form.ScanOf(v) != nil || v.Reduce.Op.IsArg() || !v.Type.IsFloat() || f.results[v] || f.chunked(v) == nil {
			return false
		}
		if c.inputs[v] {
			return false
		}
	}
	return true
}

// chunked returns the predicate part*n + point < rows of a fold over a chunk; nil for other values.
func (f *fuser) chunked(v *ir.Value) *ir.Expr {
	where := v.Reduce.Where
	if where == nil || where.Op != ir.OpLt || len(ir.FreeRanges(where.Args[1])) > 0 {
		return nil
	}
	outer, n, inner := (&matcher{facts: f.facts}).mixed(where.Args[0])
	if n == nil || outer.Op != ir.OpRange || inner.Op != ir.OpRange {
		return nil
	}
	if !slices.Contains(v.Axes, outer.Range) || !slices.Contains(v.Reduce.Ranges, inner.Range) {
		return nil
	}
	return where
}

// joinPartial merges the region c of partial results into the region r of rows where both loop over the
// same tensors, and reports whether it did.
func (f *fuser) joinPartial(r, c *region) bool {
	first := c.members[0]
	guard := f.chunked(first)
	m := &matcher{facts: f.facts}
	part, n, point := m.mixed(guard.Args[0])
	if len(r.accumulated) == 0 {
		rows := f.chunkedRanges(r, c, guard)
		if rows == nil {
			return false
		}
		name := rows[0].Name
		outer, inner := f.g.NewRange(name+"_part", part.Range.Extent), f.g.NewRange(name, n)
		r = r.split(rows, outer, inner)
		r.inside = ir.Apply(ir.OpLt, ir.Apply(ir.OpAdd, ir.Apply(ir.OpMul, outer.At(), n), inner.At()), guard.Args[1])
	}
	m.alignment = &alignment{to: map[*ir.Range]*ir.Range{}, from: map[*ir.Range]*ir.Range{}}
	if f.readsAtDigits(first) {
		if !f.pairChunks(m, r, c) {
			return false
		}
	}
	if no := f.alignEdges(m, r, c); no != nil || m.want != nil {
		return false
	}
	f.alignSharedReads(m, r, c)
	if m.want != nil || len(m.to) != len(c.space) || len(m.from) != len(r.space) {
		return false
	}
	accumulated, cols := map[*ir.Range]bool{}, map[*ir.Range]bool{}
	for _, rc := range c.space {
		switch to := m.to[rc]; {
		case c.cols[rc]:
			accumulated[to] = true
		case rc != f.rangeOf(c, first, part) && !r.accumulated[to]:
			cols[to] = true
		}
	}
	if point == nil {
		return false
	}
	j := merged(r, c, m.alignment, f.order)
	j.accumulated, j.inside, j.cols = accumulated, r.inside, cols
	return f.accumulable(r, c, j, m.alignment) && f.take(j)
}

// rangeOf returns the range of a region to which an index of its member is equal; nil for other indices.
func (f *fuser) rangeOf(r *region, v *ir.Value, e *ir.Expr) *ir.Range {
	return r.index(v, e, f.facts).Range
}

// readsAtDigits reports whether a fold over a chunk reads tensors at quotients and remainders (digits) of
// part*n + point: its rows are several axes of the tensors, taken as one.
func (f *fuser) readsAtDigits(v *ir.Value) bool {
	index := ir.Simplify(f.chunked(v).Args[0], f.facts)
	for _, l := range f.loads[v] {
		for _, e := range l.Args {
			if e := ir.Simplify(e, f.facts); e.Op == ir.OpFloorDiv && ir.Equal(e.Args[0], index) {
				return true
			}
		}
	}
	return false
}

// pairChunks pairs the part and the point of a chunk in both regions. An index that is a digit of the row does
// not show which loop it is, so from here on indices match if they are equal.
func (f *fuser) pairChunks(m *matcher, r, c *region) bool {
	first := c.members[0]
	part, _, point := m.mixed(f.chunked(first).Args[0])
	outer, _, inner := m.mixed(r.inside.Args[0])
	partC, pointC := f.rangeOf(c, first, part), f.rangeOf(c, first, point)
	m.equal = true
	return outer != nil && partC != nil && pointC != nil && m.pair(outer.Range, partC) && m.pair(inner.Range, pointC)
}

// chunkedRanges returns the ranges of r that c cuts into chunks, outermost first. It is the range that indexes a
// tensor in r at the axis where part*n + point indexes it in c, or the ranges at the axes that its digits index.
func (f *fuser) chunkedRanges(r, c *region, guard *ir.Expr) []*ir.Range {
	m, index := &matcher{facts: f.facts}, ir.Simplify(guard.Args[0], f.facts)
	for _, lc := range f.loads[c.members[0]] {
		for _, u := range r.members {
			reads := f.loads[u]
			if u == lc.From { // a member that c reads
				reads = append([]*ir.Expr{ir.Load(u, algebra.UnitIndices(u.Axes), nil)}, reads...)
			}
			for _, lr := range reads {
				if lr.From != lc.From {
					continue
				}
				if rows := m.rowsAt(site{r, u, lr}, lc, index, guard.Args[1]); rows != nil {
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

// accumulable reports whether c may be accumulated in the loop over r's rows, as the region j: the columns
// are the same and few enough to keep, no other region stands between the two, few values are kept, and
// most of what c reads are tensors that r reads too.
func (f *fuser) accumulable(r, c, j *region, al *alignment) bool {
	accumulated, cols := j.accumulated, j.cols
	if len(cols) == 0 || len(r.cols) > 0 && !algebra.SameRanges(ordered(r.space, cols), r.cols) || len(r.accumulated) > 0 && !algebra.SameRanges(ordered(r.space, accumulated), r.accumulated) {
		return false
	}
	if f.estimate(algebra.Product(ordered(r.space, cols))) > forecast.AccumulateColumns {
		return false
	}
	rename := map[*ir.Range]*ir.Expr{}
	for rc, to := range al.to {
		rename[rc] = to.At()
	}
	for _, v := range c.members {
		own := ir.Substitute(f.chunked(v), c.at[v])
		if !ir.SameIndex(ir.Substitute(own.Args[0], rename), r.inside.Args[0], f.facts) || !ir.SameSize(own.Args[1], r.inside.Args[1]) {
			return false
		}
	}
	folds := len(c.members)
	for _, v := range r.members {
		if v.Reduce != nil && r.accumulates(v) {
			folds++
		}
	}
	if folds > mostPartials || !f.may(r, isAccumulated) || f.keepsConvex(f.home[r.members[0]], c) != nil || f.oneSum(r, c) != nil {
		return false
	}
	shared, all := 0.0, 0.0
	for _, v := range c.members {
		for _, from := range f.sources[v] {
			size := f.bytes(from)
			all += size
			if r.has(from) || r.inputs[from] {
				shared += size
			}
		}
	}
	return 2*shared >= all
}
