package ir

import (
	"cmp"
	"math"
	"strings"
)

// compareAtoms is a total order of expressions that depends only on their contents. Atoms are
// in the order of the ranges that they begin with, by ID; a range comes before expressions
// computed from it; symbols come last, by name. This is the order in which products and sums
// are written.
func compareAtoms(a, b *Expr) int {
	if a == b {
		return 0
	}
	c := cmp.Or(cmp.Compare(atomRange(a), atomRange(b)), cmp.Compare(atomRank(a), atomRank(b)))
	if c != 0 || a.Op == OpRange {
		return c
	}
	return compareStructure(a, b)
}

// atomRange is the ID of the range that an expression begins with.
func atomRange(e *Expr) int {
	for len(e.Args) > 0 {
		e = e.Args[0]
	}
	if e.Op == OpRange {
		return e.Range.ID
	}
	return math.MaxInt
}

func atomRank(e *Expr) int {
	switch e.Op {
	case OpRange:
		return 0
	case OpSym:
		return 1 + int(numOps)
	}
	return 1 + int(e.Op)
}

func compareStructure(a, b *Expr) int {
	c := cmp.Or(
		cmp.Compare(len(a.Args), len(b.Args)), cmp.Compare(a.Type, b.Type),
		strings.Compare(a.Name, b.Name), cmp.Compare(a.Int, b.Int),
		cmp.Compare(math.Float64bits(a.Val), math.Float64bits(b.Val)),
		cmp.Compare(sourceID(a), sourceID(b)))
	for i := 0; c == 0 && i < len(a.Args); i++ {
		c = compareAtoms(a.Args[i], b.Args[i])
	}
	if c != 0 || Equal(a, b) {
		return c
	}
	return cmp.Compare(a.hash, b.hash)
}

// sourceID is the number of what a leaf reads.
func sourceID(e *Expr) int {
	switch {
	case e.From != nil:
		return e.From.ID
	case e.Local != nil:
		return e.Local.ID
	case e.Arg != nil:
		return e.Arg.Index
	}
	return -1
}
