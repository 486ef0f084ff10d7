package passes

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// splitByRows makes a reduction over several axes of a tensor, such as the sum of all of its elements, one of the results of its
// rows, where another reduction goes along these rows: one kernel then reads the tensor for both. It returns the reduction of
// each row, and what the one of those is cut into; none where no other reduction goes along rows.
func (s *splitter) splitByRows(v *ir.Value) []*ir.Value {
	load := largestRead(v, s.sizes)
	if load == nil || !joinable(s.g, v) || v.Reduce.Where != nil || !form.PlainIndices(load) {
		return nil
	}
	for _, u := range s.readers[load.From] {
		if u == v || u.Reduce == nil || !isPlain(u) || form.Crosses(u) {
			continue
		}
		for _, l := range u.Loads() {
			if l.From != load.From || !form.PlainIndices(l) {
				continue
			}
			if rows := rowsBeside(v, load, u, l); len(rows) > 0 && !s.follows(u, v, map[*ir.Value]bool{}) {
				parts := []*ir.Value{reduceRows(s.g, v, rows)}
				return append(parts, s.split(v)...)
			}
		}
	}
	return nil
}

// follows reports whether a value depends on another one, directly or through values between them in the graph.
func (s *splitter) follows(u, v *ir.Value, seen map[*ir.Value]bool) bool {
	if s.place[u] <= s.place[v] || seen[u] {
		return false
	}
	seen[u] = true
	return slices.ContainsFunc(u.Loads(), func(l *ir.Expr) bool { return l.From == v || s.follows(l.From, v, seen) })
}

// rowsBeside is the ranges that v reduces and u does not, by their loads of one tensor; nil where v reduces no range that u
// reduces, or u another one.
func rowsBeside(v *ir.Value, load *ir.Expr, u *ir.Value, other *ir.Expr) (rows []*ir.Range) {
	along := 0
	for d, at := range load.Args {
		if at.Op != ir.OpRange || other.Args[d].Op != ir.OpRange {
			continue
		}
		byV, byU := slices.Contains(v.Reduce.Ranges, at.Range), slices.Contains(u.Reduce.Ranges, other.Args[d].Range)
		switch {
		case byV && byU:
			along++
		case byU:
			return nil
		case byV:
			rows = append(rows, at.Range)
		}
	}
	if along == 0 || along != len(u.Reduce.Ranges) || along+len(rows) != len(v.Reduce.Ranges) {
		return nil
	}
	return rows
}

// reduceRows makes v a reduction of results for each point of some of its ranges, and returns the value that has these.
func reduceRows(g *ir.Graph, v *ir.Value, rows []*ir.Range) *ir.Value {
	shape, to := v.Shape(), map[*ir.Range]*ir.Expr{}
	for _, r := range rows {
		shape = append(shape, r.Extent)
	}
	axes := g.NewAxes(shape)
	for d, r := range append(slices.Clone(v.Axes), rows...) {
		to[r] = algebra.UnitIndices(axes)[d]
	}
	each := &ir.Reduction{Op: v.Reduce.Op}
	for _, r := range v.Reduce.Ranges {
		if !slices.Contains(rows, r) {
			own := g.NewRange(r.Name, r.Extent)
			each.Ranges, to[r] = append(each.Ranges, own), own.At()
		}
	}
	part := g.Adopt(&ir.Value{Name: v.Name + "_rows", Type: v.Type, Axes: axes, Body: ir.Substitute(v.Body, to), Reduce: each, Origin: v.Origin})
	v.Body = ir.Load(part, append(algebra.UnitIndices(v.Axes), ir.Indices(rows)...), nil).At(v.Body.Span)
	v.Reduce = &ir.Reduction{Op: v.Reduce.Op, Ranges: rows}
	return part
}
