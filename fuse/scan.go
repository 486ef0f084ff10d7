package fuse

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/ir"
)

// A reduction whose predicate bounds its range by an output index, and which does
// not depend on that index otherwise, is a prefix scan: sum[k: N where k <= i] x[k].
// Its range and the output index are one loop of the kernel, a column range; the
// result at each column is the fold of the columns so far. What is computed from
// the result at the same index, and what the terms are computed from, share the
// loop like any pointwise value.

// scan is how a value is computed in one pass.
type scan struct {
	axis    *ir.Range // the output index that bounds the range
	over    *ir.Range // the reduced range
	prefix  ir.Prefix
	reverse bool     // from the last index to the first
	where   *ir.Expr // what else the predicate asks for; nil for nothing
}

// scanOf returns how v is a scan; nil where it is none.
func scanOf(v *ir.Value) *scan {
	if v.Reduce == nil || v.Reduce.Where == nil || v.Reduce.Rank != nil || v.Reduce.Op.IsArg() || len(v.Reduce.Ranges) != 1 {
		return nil
	}
	over := v.Reduce.Ranges[0]
	var s *scan
	var rest *ir.Expr
	for _, term := range algebra.Conjuncts(v.Reduce.Where) {
		if found := prefixBound(term, over, v.Axes); found != nil && s == nil {
			s = found
			continue
		}
		rest = algebra.And(rest, term)
	}
	if s == nil || ir.DependsOn(v.Body, s.axis) || rest != nil && ir.DependsOn(rest, s.axis) {
		return nil
	}
	s.where = rest
	return s
}

// prefixBound recognises a comparison that puts over at or before, or at or after,
// one of the axes: over <= axis, or it with the sides, the direction or the
// strictness changed.
func prefixBound(cond *ir.Expr, over *ir.Range, axes []*ir.Range) *scan {
	if len(cond.Args) != 2 || cond.Args[0].Type != ir.Index {
		return nil
	}
	gap := ir.Apply(ir.OpSub, cond.Args[0], cond.Args[1]) // the condition as gap <= 0
	one := ir.IntConst(1)
	switch cond.Op {
	case ir.OpLe:
	case ir.OpLt:
		gap = ir.Apply(ir.OpAdd, gap, one)
	case ir.OpGe:
		gap = ir.Apply(ir.OpNeg, gap)
	case ir.OpGt:
		gap = ir.Apply(ir.OpSub, one, gap)
	default:
		return nil
	}
	for _, axis := range axes {
		if algebra.IsUnit(axis) || !ir.DependsOn(gap, axis) || !ir.SameSize(axis.Extent, over.Extent) {
			continue
		}
		along, ok := ir.Stride(gap, over, ir.Facts{})
		against, okAxis := ir.Stride(gap, axis, ir.Facts{})
		if !ok || !okAxis {
			return nil
		}
		at := map[*ir.Range]*ir.Expr{over: ir.IntConst(0), axis: ir.IntConst(0)}
		return boundKind(along, against, ir.Simplify(ir.Substitute(gap, at), ir.Facts{}), axis, over)
	}
	return nil
}

// boundKind reads along*over + against*axis + offset <= 0.
func boundKind(along, against, offset *ir.Expr, axis, over *ir.Range) *scan {
	s := &scan{axis: axis, over: over, prefix: ir.Inclusive}
	switch {
	case along.IsConst(1) && against.IsConst(-1):
	case along.IsConst(-1) && against.IsConst(1):
		s.reverse = true
	default:
		return nil
	}
	switch {
	case offset.IsConst(0):
	case offset.IsConst(1):
		s.prefix = ir.Exclusive
	default:
		return nil
	}
	return s
}

// loopsOf is the ranges whose points v folds or computes: a scan takes each index
// of its axis once, and an order those of its range.
func loopsOf(v *ir.Value) []*ir.Range {
	switch s := sortOf(v); {
	case scanOf(v) != nil:
		return v.Axes
	case s != nil:
		return append(slices.DeleteFunc(slices.Clone(v.Axes), func(r *ir.Range) bool { return r == s.place }), s.over)
	}
	return algebra.AllRanges(v)
}

// scan makes r the region of one scan: the axis is its column range, and the
// reduced range another name of it.
func (r *region) scan(v *ir.Value, s *scan) {
	for _, own := range algebra.Widened(v.Axes) {
		r.space = append(r.space, own)
		r.at[v][own] = own.At()
	}
	r.at[v][s.over] = s.axis.At()
	r.cols[s.axis] = true
}

// scanIn returns a member of the region that is a scan; nil where none is.
func scanIn(r *region) *ir.Value {
	for _, v := range r.members {
		if scanOf(v) != nil {
			return v
		}
	}
	return nil
}

// templateOf names the template of a region.
func templateOf(r *region) ir.Template {
	switch {
	case scanIn(r) != nil:
		return ir.ScanTemplate
	case sortIn(r) != nil:
		return ir.SortTemplate
	}
	return ir.LoopTemplate
}

// oneDirection refuses to put scans that run in opposite directions into one
// kernel: a row that is read in pieces is swept one way. A scan's loop also stays
// one loop.
func oneDirection(a, b *region) *refusal {
	for i, r := range []*region{a, b} {
		other := []*region{b, a}[i]
		if v := scanIn(r); v != nil && (len(r.cols) != 1 || len(other.walk) > 0) {
			return refuse(ir.ReasonIndexMismatch, v.Origin.Span, "the loop in which %s accumulates would have to be split", v.Name)
		}
	}
	for _, u := range a.members {
		for _, v := range b.members {
			su, sv := scanOf(u), scanOf(v)
			if su != nil && sv != nil && su.reverse != sv.reverse {
				return refuse(ir.ReasonDifferentRanges, v.Origin.Span,
					"%s runs from the other end of %s than %s", v.Name, sv.axis.Name, u.Name)
			}
		}
	}
	return nil
}

// hasScan reports whether the kernel holds a scan.
func (lo *lowering) hasScan() bool { return lo.k.Template == ir.ScanTemplate }

// placeScans lists in every section the scans it reads, those that they read in
// turn first, and drops sections that are left with nothing to do.
func (lo *lowering) placeScans(folds []*ir.Fold, sections []*ir.Section) []*ir.Section {
	if !lo.hasScan() {
		return sections
	}
	var out []*ir.Section
	for _, s := range sections {
		if len(s.Folds) == 0 && len(s.Stores) == 0 {
			continue
		}
		needed := scansRead(folds, s)
		var scans []*ir.Fold
		for _, f := range folds {
			if needed[f] {
				c := *f
				scans = append(scans, &c)
			}
		}
		s.Reverse = lo.reverse && len(scans) > 0
		s.Folds = append(scans, s.Folds...)
		out = append(out, s)
	}
	return out
}

// scansRead returns the scans that a section reads, directly or through others.
func scansRead(folds []*ir.Fold, s *ir.Section) map[*ir.Fold]bool {
	out := map[*ir.Fold]bool{}
	visit := func(*ir.Expr) {}
	visit = func(e *ir.Expr) {
		for _, f := range folds {
			if f.Prefix != ir.WholeRow && !out[f] && e != nil && readsLocal(e, f.Result) {
				out[f] = true
				visit(f.Body)
				visit(f.Where)
			}
		}
	}
	for _, f := range s.Folds {
		visit(f.Body)
		visit(f.Where)
		visit(f.Index)
	}
	for _, st := range s.Stores {
		visit(st.Value)
		visit(st.Offset)
		visit(st.Guard)
	}
	return out
}
