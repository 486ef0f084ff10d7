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
		s := f.chunkedRange(r, c, guard)
		if s == nil {
			return false
		}
		outer, inner := f.g.NewRange(s.Name+"_part", part.Range.Extent), f.g.NewRange(s.Name, n)
		r = r.split(s, outer, inner)
		r.inside = ir.Apply(ir.OpLt, ir.Apply(ir.OpAdd, ir.Apply(ir.OpMul, outer.At(), n), inner.At()), guard.Args[1])
	}
	m.alignment = &alignment{to: map[*ir.Range]*ir.Range{}, from: map[*ir.Range]*ir.Range{}}
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

// chunkedRange returns the range of r that c cuts into chunks: the one that indexes a tensor in r where
// part*n + point does in c.
func (f *fuser) chunkedRange(r, c *region, guard *ir.Expr) *ir.Range {
	v := c.members[0]
	index := ir.Simplify(guard.Args[0], f.facts)
	for _, lc := range f.loads[v] {
		for d, e := range lc.Args {
			if !ir.Equal(ir.Simplify(e, f.facts), index) {
				continue
			}
			for _, u := range r.members {
				if u == lc.From && !algebra.IsUnit(u.Axes[d]) { // a member that c reads
					if e := r.at[u][u.Axes[d]]; e.Op == ir.OpRange && !r.cols[e.Range] {
						return e.Range
					}
				}
				for _, lr := range f.loads[u] {
					if lr.From != lc.From {
						continue
					}
					e := r.index(u, lr.Args[d], f.facts)
					if e != nil && e.Op == ir.OpRange && !r.cols[e.Range] && ir.SameSize(e.Range.Extent, guard.Args[1]) {
						return e.Range
					}
				}
			}
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
	if folds > mostPartials || !f.may(r, isAccumulated) || f.between(f.home[r.members[0]], c) || f.keepsTiles(r, c, &alignment{}) != nil {
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
