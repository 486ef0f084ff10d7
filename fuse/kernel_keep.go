package fuse

import (
	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// expensiveSlots is the work above which a value that two passes need is kept instead of computed again.
const expensiveSlots = 8

// keep chooses the full-level locals that stay on chip between passes: expensive values first, then reads that later
// passes would repeat.
func keep(v *ir.Variant) []*ir.Local {
	kept := map[*ir.Local]bool{}
	again := repeated(v, kept)
	for _, l := range v.Locals {
		if again[l] && ownCost(l) > expensiveSlots {
			kept[l] = true
		}
	}
	again = repeated(v, kept)
	for _, l := range v.Locals {
		if again[l] && algebra.ReadIn(l.Def) != nil {
			kept[l] = true
		}
	}
	var out []*ir.Local
	for _, l := range v.Locals {
		if kept[l] {
			out = append(out, l)
		}
	}
	return out
}

func ownCost(l *ir.Local) int {
	c := form.CostOf(l.Def)
	return c.Slots + 8*c.Special
}

// scanned is the registers of the section's scans at one column.
func scanned(s *ir.Section) float64 {
	n := 0.0
	for _, f := range s.Scans() {
		n += float64(f.Result.Type.Size()) / 4
	}
	return n
}

// repeated returns the full-level locals that more than one pass evaluates, given those that are kept.
func repeated(v *ir.Variant, kept map[*ir.Local]bool) map[*ir.Local]bool {
	times := map[*ir.Local]int{}
	have := map[*ir.Local]bool{}
	for _, s := range v.Sections {
		for l := range needed(s, kept, have) {
			times[l]++
		}
	}
	out := map[*ir.Local]bool{}
	for l, n := range times {
		out[l] = n > 1
	}
	return out
}

// needed returns the full-level locals that a section evaluates. have is the locals that
// earlier sections hold; this section adds its own.
func needed(s *ir.Section, kept, have map[*ir.Local]bool) map[*ir.Local]bool {
	out := map[*ir.Local]bool{}
	visit := func(e *ir.Expr) {
		ir.WalkThrough(func(e *ir.Expr) bool {
			if e.Op != ir.OpLocal || e.Local.Def == nil {
				return true
			}
			own := e.Local.Level == ir.FullLevel && !have[e.Local]
			if own {
				out[e.Local] = true
			}
			return own
		}, e)
	}
	for _, f := range s.Folds {
		visit(f.Where)
		visit(f.Body)
		visit(f.Index)
	}
	if s.Level == ir.FullLevel {
		for _, st := range s.Stores {
			visit(st.Value)
			visit(st.Offset)
			visit(st.Guard)
		}
	}
	for _, p := range s.Partials {
		visit(p.Body)
	}
	for l := range out {
		if kept[l] {
			have[l] = true
		}
	}
	return out
}

// words is the largest number of 32-bit registers that the values of one column of a persistent row take at a time:
// what is kept during a pass, and what the pass reads besides. Reads stay in their storage type.
func words(v *ir.Variant, kept []*ir.Local) float64 {
	set, have := map[*ir.Local]bool{}, map[*ir.Local]bool{}
	for _, l := range kept {
		set[l] = true
	}
	last := map[*ir.Local]int{}
	for i, s := range v.Sections {
		for l := range needed(s, nil, map[*ir.Local]bool{}) {
			last[l] = i
		}
	}
	most := 0.0
	for i, s := range v.Sections {
		n := scanned(s)
		for l := range have {
			if last[l] >= i {
				n += registersOf(l)
			}
		}
		for l := range needed(s, set, have) {
			if set[l] || algebra.ReadIn(l.Def) != nil {
				n += registersOf(l)
			}
		}
		most = max(most, n)
	}
	return most
}

func registersOf(l *ir.Local) float64 {
	if r := algebra.ReadIn(l.Def); r != nil {
		return float64(r.Type.Size()) / 4
	}
	return float64(l.Type.Size()) / 4
}
