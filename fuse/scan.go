package fuse

import (
	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// A reduction whose predicate bounds its range by an output index, and which does
// not depend on that index otherwise, is a prefix scan: sum[k: N where k <= i] x[k].
// Its range and the output index are one loop of the kernel, a column range; the
// result at each column is the fold of the columns so far. What is computed from
// the result at the same index, and what the terms are computed from, share the
// loop like any pointwise value.

// scan makes r the region of one scan: the axis is its column range, and the
// reduced range another name of it.
func (r *region) scan(v *ir.Value, s *form.Scan) {
	for _, own := range algebra.Widened(v.Axes) {
		r.space = append(r.space, own)
		r.at[v][own] = own.At()
	}
	r.at[v][s.Over] = s.Axis.At()
	r.cols[s.Axis] = true
}

// scanIn returns a member of the region that is a scan; nil where none is.
func scanIn(r *region) *ir.Value {
	for _, v := range r.members {
		if form.ScanOf(v) != nil {
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
func oneDirection(a, b *region) *form.Refusal {
	for i, r := range []*region{a, b} {
		other := []*region{b, a}[i]
		if v := scanIn(r); v != nil && (len(r.cols) != 1 || len(other.walk) > 0) {
			return form.Refuse(ir.ReasonIndexMismatch, v.Origin.Span, "the loop in which %s accumulates would have to be split", v.Name)
		}
	}
	for _, u := range a.members {
		for _, v := range b.members {
			su, sv := form.ScanOf(u), form.ScanOf(v)
			if su != nil && sv != nil && su.Reverse != sv.Reverse {
				return form.Refuse(ir.ReasonDifferentRanges, v.Origin.Span,
					"%s runs from the other end of %s than %s", v.Name, sv.Axis.Name, u.Name)
			}
		}
	}
	return nil
}

// hasScan reports whether the kernel holds a scan.
func (lo *kernel) hasScan() bool { return lo.k.Template == ir.ScanTemplate }

// placeScans lists in every section the scans it reads, those that they read in
// turn first, and drops sections that are left with nothing to do.
func (lo *kernel) placeScans(folds []*ir.Fold, sections []*ir.Section) []*ir.Section {
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
