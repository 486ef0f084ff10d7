package codegen

import (
	"fmt"
	"slices"

	"github.com/fusec/fusec/codegen/spell"
	"github.com/fusec/fusec/ir"
)

// findsPlaces reports whether the kernel, or the one that its last blocks run, finds the place of an
// extreme.
func findsPlaces(k *ir.Kernel) bool {
	finds := func(v *ir.Value) bool { return v.Reduce != nil && v.Reduce.Op.IsArg() }
	return slices.ContainsFunc(k.Members, finds) || k.LastBlock != nil && slices.ContainsFunc(k.LastBlock.Kernel.Members, finds)
}

// foldClass is the name in the prelude of a reduction.
func foldClass(m ir.Monoid) string {
	return [...]string{"Sum", "Prod", "Max", "Min", "Any", "All", "ArgMax", "ArgMin"}[m]
}

// foldType is the C type of a fold's running state.
func foldType(f *ir.Fold) string {
	if f.Op.IsArg() {
		return fmt.Sprintf("At<%s>", spell.ComputeType(f.Body.Type))
	}
	switch t := f.Result.Type; t {
	case ir.Bool, ir.I8, ir.U8, ir.I16:
		return "int" // only whole words are exchanged between blocks
	default:
		return spell.ComputeType(t)
	}
}

func foldStart(f *ir.Fold) string {
	id := spell.Literal(f.Op.Identity(f.Body.Type))
	if f.Op.IsArg() {
		return fmt.Sprintf("%s{%s, -1}", foldType(f), id)
	}
	return id
}

// foldStep is the statement that folds one element into state.
func (e *emitter) foldStep(f *ir.Fold, state string) string {
	value := e.s.Bare(f.Body)
	if f.Op.IsArg() {
		if f.Where == nil && e.inOrder(f.Index) {
			return fmt.Sprintf("%s = meet<%s>(%s, (%s)(%s), (INDEX)%s);", state, foldClass(f.Op), state, spell.ComputeType(f.Body.Type),
				value, e.s.Expr(f.Index))
		}
		value = fmt.Sprintf("%s{%s, (INDEX)%s}", foldType(f), value, e.s.Expr(f.Index))
	}
	folded := fmt.Sprintf("%s::apply(%s, %s)", foldClass(f.Op), state, value)
	if !f.Op.IsArg() {
		folded = fmt.Sprintf("%s::apply(%s, (%s)(%s))", foldClass(f.Op), state, foldType(f), value)
	}
	where := e.given(f.Where)
	switch {
	case where == nil:
		return fmt.Sprintf("%s = %s;", state, folded)
	case where.Op == ir.OpLocal && where.Local.Def == nil: // the condition is known already; without a branch, reads do not wait for it
		return fmt.Sprintf("%s = chosen(%s, %s, %s);", state, e.s.Bare(where), folded, state)
	}
	return fmt.Sprintf("if (%s) %s = %s;", e.s.Bare(where), state, folded)
}

// inOrder reports whether a thread that goes through the columns in order also meets the positions in
// order, from 0 on. In later passes over chunks it does not.
func (e *emitter) inOrder(index *ir.Expr) bool {
	if !e.columnsInOrder || slices.ContainsFunc(e.v.Sections, func(s *ir.Section) bool { return s.Reverse }) {
		return false
	}
	return ir.Contiguous(index, e.k.Cols, e.s.Facts) == len(e.k.Cols) && ir.Simplify(ir.AtZero(index, e.k.Cols...), e.s.Facts).IsConst(0)
}

// foldResult is the result of a fold, given its running state.
func foldResult(f *ir.Fold, state string) string {
	if f.Op.IsArg() {
		return fmt.Sprintf("max_((long long)%s.index, 0LL)", state)
	}
	return state
}

// safely writes the running maximum for the sums that depend on it, with 0 in place of -inf, so that
// terms of -inf count as zero.
func (e *emitter) safely(f *ir.Fold, state string) {
	name := e.names.Fresh(f.Result.Name + "_now")
	e.line("const %s %s = %s == -infinity() ? 0 : %s;", foldType(f), name, state, state)
	e.place[f.Running] = name
}

// rescaled writes the factor by which f's running sum changes when the maximum it depends on goes from one
// value to another (online softmax).
func (e *emitter) rescaled(f *ir.Fold, from, to string) string {
	saved, had := e.place[f.After.Running]
	e.place[f.Old], e.place[f.After.Running] = from, to
	text := e.s.Bare(f.Rescale)
	if had {
		e.place[f.After.Running] = saved
	}
	return text
}

// foldNames lists what a pass folds, for the comment before it.
func foldNames(sec *ir.Section) string {
	text, before := "", ": "
	for _, f := range sec.Folds {
		text += before + f.Result.Name + " = " + f.Op.String()
		before = ", "
	}
	return text
}

// laneNeeds returns those of the given locals that the roots use.
func (e *emitter) laneNeeds(rest []*ir.Local, roots []*ir.Expr) []*ir.Local {
	inside := map[*ir.Local]bool{}
	for _, l := range rest {
		inside[l] = true
	}
	return e.wants(ir.FullLevel, func(l *ir.Local) bool { return !inside[l] }, roots...)
}

// ordered separates the folds that depend on no other fold of the pass from those that do.
func ordered(sec *ir.Section) (lead, follow []*ir.Fold) {
	for _, f := range sec.Folds {
		switch {
		case f.Prefix != ir.WholeRow:
		case f.After == nil:
			lead = append(lead, f)
		default:
			follow = append(follow, f)
		}
	}
	return lead, follow
}
