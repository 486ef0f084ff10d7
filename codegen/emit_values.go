package codegen

import (
	"slices"

	"github.com/fusec/fusec/codegen/spell"
	"github.com/fusec/fusec/ir"
)

// readDepth is the length of the longest chain of reads in an expression, in which each read is the index
// of the next.
func readDepth(x *ir.Expr) int { return depths{}.of(x) }

// depths is readDepth of the definitions of locals.
type depths map[*ir.Local]int

func (known depths) of(x *ir.Expr) int {
	depth, own := 0, 0
	ir.Walk(x, func(x *ir.Expr) bool {
		switch {
		case x.Op == ir.OpLocal && x.Local.Def != nil:
			if _, ok := known[x.Local]; !ok {
				known[x.Local] = known.of(x.Local.Def)
			}
			depth = max(depth, known[x.Local])
		case x.Op == ir.OpRead:
			own = 1
		}
		return true
	})
	return depth + own
}

func (e *emitter) size(ranges []*ir.Range) string { return e.s.Bare(product(extents(ranges))) }

// operandLocals returns the locals of any level that an expression uses, in the
// order of definition.
func (e *emitter) operandLocals(xs ...*ir.Expr) []*ir.Local {
	have := func(l *ir.Local) bool { return e.done[l] }
	wanted := map[*ir.Local]bool{}
	for _, level := range []ir.Level{ir.RowLevel, ir.FullLevel} {
		for _, l := range e.wants(level, have, xs...) {
			wanted[l] = true
		}
	}
	var out []*ir.Local
	for _, l := range e.v.Locals {
		if wanted[l] {
			out = append(out, l)
		}
	}
	return out
}

// What the expressions of a section use: coordinates, and locals to be computed before them.

// take writes the coordinates that the given expressions use from a linear
// position over ranges, outermost first.
func (e *emitter) take(ranges []*ir.Range, linear string, uses ...*ir.Expr) {
	used := e.used(uses)
	for d := len(ranges) - 1; d >= 0; d-- {
		name := e.ranges[ranges[d]]
		more := anyOf(ranges[:d], used)
		if d == 0 {
			if used[ranges[0]] {
				e.line("[[maybe_unused]] const INDEX %s = %s;", name, linear)
			}
			return
		}
		extent := e.extentDivisor(ranges[d])
		if used[ranges[d]] {
			e.line("[[maybe_unused]] const INDEX %s = %s %% %s;", name, linear, extent)
		}
		if !more {
			return
		}
		e.line("const INDEX %s_outer = %s / %s;", name, linear, extent)
		linear = name + "_outer"
	}
}

// extentDivisor is the extent of a range, as a divisor of positions.
func (e *emitter) extentDivisor(r *ir.Range) string {
	switch known := e.divisor[r]; {
	case known != "":
		return known
	case r.Extent.Op != ir.OpConst && e.takesFactors():
		return e.divisorOf(e.ranges[r], e.s.Bare(r.Extent), r.Extent)
	}
	return e.s.Expr(r.Extent)
}

// used collects the ranges that expressions mention.
func (e *emitter) used(exprs []*ir.Expr) map[*ir.Range]bool {
	out := map[*ir.Range]bool{}
	for _, x := range exprs {
		if x == nil {
			continue
		}
		for r := range ir.FreeRanges(x) {
			out[r] = true
		}
	}
	return out
}

// dependsOn reports whether the expressions depend on one of the ranges.
func (e *emitter) dependsOn(ranges []*ir.Range, uses []*ir.Expr) bool {
	return anyOf(ranges, e.used(uses))
}

func anyOf(ranges []*ir.Range, set map[*ir.Range]bool) bool {
	return slices.ContainsFunc(ranges, func(r *ir.Range) bool { return set[r] })
}

// every returns all expressions of the variant.
func (e *emitter) every() []*ir.Expr { return rootsOf(e.v) }

// rootsOf lists the expressions that a variant evaluates, and the definitions of its locals.
func rootsOf(v *ir.Variant) []*ir.Expr {
	out := definitions(v.Locals)
	for _, s := range v.Sections {
		out = append(out, sectionRoots(s)...)
	}
	if s := v.Scatter; s != nil {
		out = append(out, s.Key, s.Rest)
	}
	if s := v.Sort; s != nil {
		out = append(append(out, s.Key), sectionRoots(&ir.Section{Stores: s.Stores})...)
	}
	return out
}

func definitions(locals []*ir.Local) []*ir.Expr {
	out := make([]*ir.Expr, len(locals))
	for i, l := range locals {
		out[i] = l.Def
	}
	return out
}

// wants returns the locals of one level that the expressions use, directly or through other locals, in the
// order of definition. Locals for which have is true are known already.
func (e *emitter) wants(level ir.Level, have func(*ir.Local) bool, roots ...*ir.Expr) []*ir.Local {
	found := map[*ir.Local]bool{}
	ir.WalkThrough(func(x *ir.Expr) bool {
		if x.Op != ir.OpLocal || x.Local.Def == nil {
			return true
		}
		wanted := !have(x.Local)
		if wanted {
			found[x.Local] = true
		}
		return wanted
	}, roots...)
	var out []*ir.Local
	for _, l := range e.v.Locals {
		if found[l] && l.Level == level {
			out = append(out, l)
		}
	}
	return out
}

// usesFull reports whether a definition needs another full-level local first.
func usesFull(x *ir.Expr) bool {
	return ir.Contains(x, func(x *ir.Expr) bool { return x.Op == ir.OpLocal && x.Local.Level == ir.FullLevel })
}

// sectionRoots are the expressions a section evaluates.
func sectionRoots(s *ir.Section) []*ir.Expr {
	var out []*ir.Expr
	for _, f := range s.Folds {
		out = append(out, f.Where, f.Body, f.Index)
	}
	for _, st := range s.Stores {
		out = append(out, st.Offset, st.Guard, st.Value)
	}
	for _, p := range s.Partials {
		out = append(out, p.Body, p.Offset)
	}
	return out
}

// constant writes a local as a constant of the innermost block of text; another block may write
// the same local again.
func (e *emitter) constant(l *ir.Local) {
	text := e.s.Bare(l.Def)
	name := e.name(l)
	e.noted(l.Span, "const %s %s = %s;", e.typeOf(l), name, text)
	e.place[l] = name
}

// variesOver reports whether an expression depends on one of the ranges, or on a local.
func variesOver(x *ir.Expr, ranges []*ir.Range) bool {
	return ir.Contains(x, func(x *ir.Expr) bool {
		return x.Op == ir.OpLocal || x.Op == ir.OpRange && slices.Contains(ranges, x.Range)
	})
}

// rowLocals writes the row-level locals that the roots need and that are not written yet.
func (e *emitter) rowLocals(roots ...*ir.Expr) {
	have := func(l *ir.Local) bool { return e.done[l] }
	for _, l := range e.wants(ir.RowLevel, have, roots...) {
		e.done[l] = true
		e.scalar(l)
	}
}

// scalar writes a local as a constant.
func (e *emitter) scalar(l *ir.Local) {
	text := ""
	if stored := e.stored[l]; stored != "" {
		text = converted(l, stored)
	} else {
		text = e.s.Bare(l.Def)
	}
	name := e.names.Fresh(l.Name)
	e.noted(l.Span, "const %s %s = %s;", e.typeOf(l), name, text)
	e.place[l] = name
}

func (e *emitter) typeOf(l *ir.Local) string {
	if l.Type != l.Type.Info().Compute {
		return spell.StorageType(l.Type)
	}
	return spell.ComputeType(l.Type)
}
