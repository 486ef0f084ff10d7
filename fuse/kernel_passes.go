package fuse

import (
	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/ir"
)

// placeScans lists in every section the scans that it reads, each after the scans that it reads
// itself, and drops sections without work.
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
			if f.Prefix != ir.WholeRow && !out[f] && e != nil && algebra.ReadsLocal(e, f.Result) {
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

// stages is the pass in which each fold runs, and the pass after which each store may run. A
// pass may use results of earlier passes only.
type stages struct {
	fold map[*ir.Fold]int // from 1
	done map[*ir.Local]*ir.Fold
	memo map[*ir.Expr]int
}

// passes arranges folds and stores in as few passes over the columns as their
// dependences allow. With stream, folds that follow a running maximum join its
// pass (kernel_rescale.go).
func (lo *kernel) passes(stream bool) []*ir.Section {
	st := &stages{fold: map[*ir.Fold]int{}, done: map[*ir.Local]*ir.Fold{}, memo: map[*ir.Expr]int{}}
	folds := make([]*ir.Fold, len(lo.folds))
	last := 0
	for i, f := range lo.folds {
		c := *f
		folds[i] = &c
		st.done[c.Result] = &c
		st.fold[&c] = 1 + max(st.after(c.Body), st.after(c.Where))
		if stream {
			lo.tryStream(st, &c)
		}
		last = max(last, st.fold[&c])
	}
	sections := make([]*ir.Section, last)
	for s := range sections {
		sections[s] = &ir.Section{Level: ir.FullLevel}
	}
	for _, f := range folds {
		if f.Prefix == ir.WholeRow {
			s := sections[st.fold[f]-1]
			s.Folds = append(s.Folds, f)
		}
	}
	return lo.placeScans(folds, lo.placeStores(st, sections))
}

// passesOf counts the passes over the columns.
func passesOf(sections []*ir.Section) int {
	n := 0
	for _, s := range sections {
		if s.Level == ir.FullLevel {
			n++
		}
	}
	return n
}

// placeStores puts each store into the first pass that can make it; stores at
// row level run once a row, after the passes.
func (lo *kernel) placeStores(st *stages, sections []*ir.Section) []*ir.Section {
	final := &ir.Section{Level: ir.FullLevel}
	row := &ir.Section{Level: ir.RowLevel}
	for _, s := range lo.stores {
		ready := st.after(s.Value)
		switch {
		case s.level == ir.RowLevel:
			row.Stores = append(row.Stores, s.Store)
		case ready < len(sections):
			sections[ready].Stores = append(sections[ready].Stores, s.Store)
		default:
			final.Stores = append(final.Stores, s.Store)
		}
	}
	for _, p := range lo.partial {
		at := final
		if ready := st.after(p.Body); ready < len(sections) {
			at = sections[ready]
		}
		at.Partials = append(at.Partials, p)
	}
	for _, s := range []*ir.Section{final, row} {
		if len(s.Stores)+len(s.Partials) > 0 {
			sections = append(sections, s)
		}
	}
	return sections
}

// after is the number of the last pass that e waits for.
func (st *stages) after(e *ir.Expr) int {
	if e == nil {
		return 0
	}
	if n, ok := st.memo[e]; ok {
		return n
	}
	n := 0
	if e.Op == ir.OpLocal {
		if f := st.done[e.Local]; f != nil {
			n = st.fold[f]
			if f.Prefix != ir.WholeRow { // a scan is read in the pass that makes it
				n--
			}
		}
	}
	for _, a := range e.Args {
		n = max(n, st.after(a))
	}
	n = max(n, st.after(e.Guard))
	st.memo[e] = n
	return n
}

// waitsFor returns the folds whose results e reads, directly.
func (st *stages) waitsFor(e *ir.Expr) []*ir.Fold {
	var out []*ir.Fold
	seen := map[*ir.Fold]bool{}
	ir.Walk(e, func(e *ir.Expr) bool {
		if e.Op == ir.OpLocal {
			if f := st.done[e.Local]; f != nil && f.Prefix == ir.WholeRow && !seen[f] {
				seen[f] = true
				out = append(out, f)
			}
		}
		return true
	})
	return out
}

// followsMaximum reports whether a fold is rescaled by a running maximum (online softmax).
func followsMaximum(sections []*ir.Section) bool {
	for _, s := range sections {
		for _, f := range s.Folds {
			if f.After != nil {
				return true
			}
		}
	}
	return false
}
