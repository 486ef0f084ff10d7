package ir

import (
	"cmp"
	"math"
	"strings"
)

// compareAtoms is a total order of expressions that depends only on what they
// say: ranges by ID first, then compound expressions by structure, then symbols
// by name. It decides the order in which products and sums are written.
func compareAtoms(a, b *Expr) int {
	if a == b {
		return 0
	}
	if c := cmp.Compare(atomRank(a), atomRank(b)); c != 0 {
		return c
	}
	if a.Op == OpRange && a.Range != nil && b.Range != nil {
		return cmp.Compare(a.Range.ID, b.Range.ID)
	}
	return compareStructure(a, b)
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
