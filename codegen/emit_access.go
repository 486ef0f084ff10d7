package codegen

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fusec/fusec/codegen/spell"
	"github.com/fusec/fusec/ir"
)

// operandRead is the read that a wide operand consists of.
func (e *emitter) operandRead(x *ir.Expr) *ir.Expr {
	if x.Op == ir.OpLocal {
		x = x.Local.Def
	}
	return readOf(x)
}

// read writes a scalar read, guarded where it may be outside.
func (e *emitter) read(r *ir.Expr) string {
	guard, offset := e.access(r, e.given(r.Guard), r.Args[0])
	text := fmt.Sprintf("%s[%s]", e.args[r.Arg], spell.Unwrapped(offset))
	if e.fresh[r.Arg] {
		text = fmt.Sprintf("fresh(%s + %s)", e.args[r.Arg], offset)
	}
	if guard == "" {
		return text
	}
	return fmt.Sprintf("(%s ? %s : %s)", guard, text, spell.Literal(r.Fill))
}

// access writes the place of a read and the condition that it is inside, "" if it always is. given is the
// part of the condition that is not known to hold already.
func (e *emitter) access(r, given, place *ir.Expr) (guard, offset string) {
	if given != nil {
		guard = e.s.Expr(given)
	}
	return guard, e.s.Place(r.Guard, place)
}

// wide writes a read of all lanes at once.
func (e *emitter) wide(r *ir.Expr) string {
	load, last := "load", "n"
	if e.fresh[r.Arg] {
		load = "load_fresh"
	} else if policy := e.under(r); policy != "" {
		load, last = "load_under", "n"+policy
	}
	guard, offset := e.access(r, e.given(r.Guard), e.wideOffset(r.Args[0]))
	text := fmt.Sprintf("%s<VECTOR>(%s + %s, %s)", load, e.args[r.Arg], offset, last)
	if guard == "" {
		return text
	}
	return fmt.Sprintf("%s ? %s : splat<VECTOR>(%s)", guard, text, spell.Literal(r.Fill))
}

// lanesOf writes what a wide local holds for all lanes at once.
func (e *emitter) lanesOf(l *ir.Local) string {
	if call := map[ir.Op]string{ir.OpRandom: "random_lanes", ir.OpRandom16: "random_lanes16"}[l.Def.Op]; call != "" {
		return fmt.Sprintf("%s<VECTOR>(%s, %s)", call, e.s.Bare(l.Def.Args[0]), e.s.Bare(e.drawnAt(l.Def.Args[1])))
	}
	return e.wide(readOf(l.Def))
}

// wideStore writes a store of all lanes at once.
func (e *emitter) wideStore(st *ir.Store, values string) {
	at := e.s.Expr(e.wideOffset(st.Offset))
	if st.Between > 0 { // the n-th of these rows stores the n-th part of their results
		e.line("interleave<%d, VECTORS>(%s, present);", st.Between, values)
		at = fmt.Sprintf("%s + at_row %% %d * (VECTOR - 1)", at, st.Between)
	}
	text := fmt.Sprintf("store<VECTOR>(%s + %s, %s, n);", e.args[st.Arg], at, values)
	if rows, ok := e.outRows[st]; ok {
		text = fmt.Sprintf("store<VECTOR>(&%s, %s, n);", rows, values)
	}
	e.line("%s", e.guarded(st, text))
}

// policies writes the cache hints of reads that have some.
func (e *emitter) policies() {
	for _, l := range e.v.Locals {
		e.cacheHint(l, l.EvictFirst, "evict_first")
		e.cacheHint(l, l.EvictLast, "evict_last")
	}
}

// cacheHint writes a cache hint for the read of a local, for when the condition holds.
func (e *emitter) cacheHint(l *ir.Local, when *ir.Expr, policy string) {
	if when == nil {
		return
	}
	r := readOf(l.Def)
	e.replaced[r] = e.names.Fresh(r.Arg.Name + "_policy")
	if e.branchlessHints {
		e.line("const unsigned long long %s = policy_if(%s, %s());", e.replaced[r], e.s.Bare(when), policy)
		return
	}
	e.line("const unsigned long long %s = %s ? %s() : evict_normal();", e.replaced[r], e.s.Expr(when), policy)
}

// under is the last argument of a read with a cache hint; empty for other reads.
func (e *emitter) under(r *ir.Expr) string {
	if policy, ok := e.replaced[r]; ok {
		return ", " + policy
	}
	return ""
}

func pointer(a *ir.Arg) string {
	if a.Write {
		return spell.StorageType(a.Type) + " *"
	}
	return "const " + spell.StorageType(a.Type) + " *"
}

// readsMemory reports whether an expression contains a read.
func readsMemory(exprs ...*ir.Expr) bool {
	return slices.ContainsFunc(exprs, func(x *ir.Expr) bool { return ir.Has(x, ir.OpRead) })
}

func (e *emitter) scalarStore(st *ir.Store) {
	value := storedAs(st, e.s.Bare(st.Value))
	if e.storeIf != "" { // computed by all threads
		name := e.names.Fresh(st.Arg.Name + "_value")
		e.noted(st.Span, "const auto %s = %s;", name, value)
		value = name
	}
	e.noted(st.Span, "%s", e.guarded(st, fmt.Sprintf("%s[%s] = %s;", e.args[st.Arg], e.s.Bare(st.Offset), value)))
}

// guarded puts what a store writes under its conditions.
func (e *emitter) guarded(st *ir.Store, text string) string {
	switch guard := e.given(st.Guard); {
	case guard == nil && e.storeIf == "":
		return text
	case guard == nil:
		return fmt.Sprintf("if (%s) %s", e.storeIf, text)
	case e.storeIf == "":
		return fmt.Sprintf("if (%s) %s", e.s.Bare(guard), text)
	default:
		return fmt.Sprintf("if (%s && (%s)) %s", e.storeIf, e.s.Bare(guard), text)
	}
}

// storedAs converts a computed value to what a store writes.
func storedAs(st *ir.Store, value string) string {
	if t := st.Arg.Type; t != t.Info().Compute {
		return fmt.Sprintf("from_f32<%s>(%s)", t, value)
	}
	return value
}

// splitReads separates the reads whose places depend only on the position. These are issued together,
// before anything is computed.
func (e *emitter) splitReads(full []*ir.Local) (reads, rest []*ir.Local) {
	for _, l := range full {
		if readOf(l.Def) != nil && !usesFull(l.Def) {
			reads = append(reads, l)
		} else {
			rest = append(rest, l)
		}
	}
	return reads, rest
}

// raw names the registers that hold what a local reads, and sets how the local is written from now on: as
// the element, converted.
func (e *emitter) raw(l *ir.Local, element string) string {
	name := e.rawName[l]
	if name == "" {
		name = e.names.Fresh(l.Name)
		e.rawName[l] = name
	}
	e.place[l] = converted(l, e.laneOf(l, name+element))
	e.vectorIn[l], _ = strings.CutSuffix(name+element, ".v[v]")
	return name
}

// laneOf is an element of a vector before its conversion. In strategies with lanesInVectors, an
// element of bf16 is written as its vector and its lane. Looped reductions do not do this: it changed
// the order of loads, and made sums slower.
func (e *emitter) laneOf(l *ir.Local, element string) string {
	vector, ok := strings.CutSuffix(element, ".v[v]")
	if r := readOf(l.Def); ok && e.lanesInVectors && r != nil && r != l.Def && r.Type == ir.BF16 {
		return vector + ", v"
	}
	return element
}

// converted converts an element in its storage type as the local's definition does.
func converted(l *ir.Local, element string) string {
	r := readOf(l.Def)
	if r == nil || r == l.Def {
		return element
	}
	return spell.CastText(element, r.Type, l.Type)
}

func splitWide(locals []*ir.Local) (wide, narrow []*ir.Local) {
	for _, l := range locals {
		if l.Wide {
			wide = append(wide, l)
		} else {
			narrow = append(narrow, l)
		}
	}
	return wide, narrow
}

// readOf returns the read that a definition consists of, through casts.
func readOf(e *ir.Expr) *ir.Expr {
	if e != nil && e.Op == ir.OpCast {
		e = e.Args[0]
	}
	if e != nil && e.Op == ir.OpRead {
		return e
	}
	return nil
}

// drawnAt is the place of a vector of random bits.
func (e *emitter) drawnAt(place *ir.Expr) *ir.Expr {
	if e.acrossRows {
		return e.overPoints(place)
	}
	return place
}
