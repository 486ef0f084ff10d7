package form

import (
	"maps"
	"slices"

	"github.com/fusec/fusec/ir"
)

// renamedAnswers remembers what a function of index expressions gave. Readers of a value ask the same about its indices, each
// over ranges of its own, and a proof about quotients and remainders takes long, so it is made once for expressions that differ
// in their ranges only. The ranges must be in the same order, which the terms of a canonical expression follow.
type renamedAnswers map[uint64][]renamedAnswer

type renamedAnswer struct {
	question []*ir.Expr
	ranges   []*ir.Range // of the question, in order
	answer   *ir.Expr    // may be nil
}

// of returns the answer to a question, which ask finds where it is new. Questions about indices that are read from memory are
// not remembered: an answer would be for the values of one graph.
func (known renamedAnswers) of(question []*ir.Expr, ask func() *ir.Expr) *ir.Expr {
	if slices.ContainsFunc(question, func(e *ir.Expr) bool { return ir.Has(e, ir.OpLoad) }) {
		return ask()
	}
	ranges := orderedRanges(question)
	key := renamedHash(question, ranges)
	for _, k := range known[key] {
		if k.matches(question, ranges) {
			return k.over(question, ranges)
		}
	}
	out := ask()
	known[key] = append(known[key], renamedAnswer{question, ranges, out})
	return out
}

// orderedRanges is the ranges that expressions depend on, by ID.
func orderedRanges(es []*ir.Expr) []*ir.Range {
	all := map[*ir.Range]bool{}
	for _, e := range es {
		maps.Copy(all, ir.FreeRanges(e))
	}
	return slices.SortedFunc(maps.Keys(all), func(r, s *ir.Range) int { return r.ID - s.ID })
}

// renamedHash is equal for expressions that differ in their ranges only.
func renamedHash(es []*ir.Expr, ranges []*ir.Range) (key uint64) {
	at := make(map[*ir.Range]*ir.Expr, len(ranges))
	for i, r := range ranges {
		at[r] = ir.IntConst(noIndex + int64(i))
	}
	for _, e := range es {
		key = key*31 + ir.Substitute(e, at).Hash()
	}
	return key
}

// noIndex and the numbers above it stand for ranges in hashes: no index constant of a program is this large.
const noIndex = int64(1) << 40

// matches reports whether a question is the known one but for its ranges.
func (k renamedAnswer) matches(question []*ir.Expr, ranges []*ir.Range) bool {
	if len(ranges) != len(k.ranges) || len(question) != len(k.question) {
		return false
	}
	rename := make(map[*ir.Range]*ir.Expr, len(ranges))
	for i, r := range k.ranges {
		if !ir.Equal(r.Extent, ranges[i].Extent) {
			return false
		}
		rename[r] = ranges[i].At()
	}
	for i, e := range k.question {
		if !ir.Equal(ir.Substitute(e, rename), question[i]) {
			return false
		}
	}
	return true
}

// over is the answer over the ranges of a question that matches. It shares the nodes with this question that the known answer
// shares with the known question, and no others: CostOf counts shared nodes once, and must not depend on what was asked before.
func (k renamedAnswer) over(question []*ir.Expr, ranges []*ir.Range) *ir.Expr {
	if k.answer == nil {
		return nil
	}
	to := map[*ir.Expr]*ir.Expr{}
	for i, e := range k.question {
		pairNodes(e, question[i], to)
	}
	var written func(e *ir.Expr) *ir.Expr
	written = func(e *ir.Expr) *ir.Expr {
		out, ok := to[e]
		if ok {
			return out
		}
		if i := slices.Index(k.ranges, e.Range); e.Op == ir.OpRange && i >= 0 {
			out = ranges[i].At().At(e.Span)
		} else if out = e.WithParts(written); out == e {
			same := *e
			out = &same
		}
		to[e] = out
		return out
	}
	return written(k.answer)
}

// pairNodes maps each node of an expression to the node at the same place of another one of the same structure.
func pairNodes(e, other *ir.Expr, to map[*ir.Expr]*ir.Expr) {
	if _, ok := to[e]; ok {
		return
	}
	to[e] = other
	for i, a := range e.Args {
		pairNodes(a, other.Args[i], to)
	}
}
