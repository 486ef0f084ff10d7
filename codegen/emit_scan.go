package codegen

import (
	"slices"

	"github.com/fusec/fusec/codegen/skeleton"
	"github.com/fusec/fusec/ir"
)

// scanPreludes is the prelude of scans; empty for kernels without scans.
func scanPreludes(_ *ir.Kernel, v *ir.Variant) string {
	if slices.ContainsFunc(v.Sections, func(s *ir.Section) bool { return len(s.Scans()) > 0 }) {
		return skeleton.Text("scan")
	}
	return ""
}

// waves groups scans that do not read each other; the scans of one wave share a barrier.
func waves(scans []*ir.Fold) [][]*ir.Fold {
	var out [][]*ir.Fold
	for i, f := range scans {
		if i == 0 || readsAny(f, out[len(out)-1]) {
			out = append(out, nil)
		}
		out[len(out)-1] = append(out[len(out)-1], f)
	}
	return out
}

// readsAny reports whether a fold's terms depend on the results of others.
func readsAny(f *ir.Fold, others []*ir.Fold) bool {
	results := map[*ir.Local]bool{}
	for _, o := range others {
		results[o.Result] = true
	}
	found := false
	ir.WalkThrough(func(x *ir.Expr) bool {
		found = found || x.Op == ir.OpLocal && results[x.Local]
		return !found
	}, f.Body, f.Where)
	return found
}

// waveTerms names the results of a wave's scans, and lists what they are computed from.
func (e *emitter) waveTerms(wave []*ir.Fold) (names map[*ir.Fold]string, roots []*ir.Expr) {
	names = map[*ir.Fold]string{}
	for _, f := range wave {
		roots = append(roots, f.Body, f.Where)
		names[f] = e.names.Fresh(f.Result.Name)
	}
	return names, roots
}

// termsAt writes the terms of a wave's scans at one lane of a column.
func (e *emitter) termsAt(wave []*ir.Fold, names map[*ir.Fold]string) {
	for _, f := range wave {
		guard := ""
		if where := e.given(f.Where); where != nil {
			guard = "if (" + e.s.Bare(where) + ") "
		}
		e.noted(f.Result.Span, "%s%s[u][v] = %s;", guard, names[f], e.s.Bare(f.Body))
	}
}
