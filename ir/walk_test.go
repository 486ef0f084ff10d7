package ir

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestWalksThroughLocals: definitions of locals are looked into where the local was, each
// once, and only where they are asked for.
func TestWalksThroughLocals(t *testing.T) {
	r := &Range{Name: "i", Extent: Sym("N")}
	inner := &Local{Name: "inner", Type: Index, Def: Apply(OpAdd, r.At(), Sym("N"))}
	outer := &Local{Name: "outer", Type: Index, Def: Apply(OpMul, LocalRef(inner), LocalRef(inner))}
	fold := &Local{Name: "fold", Type: Index}
	e := Apply(OpSub, LocalRef(outer), Apply(OpMin, LocalRef(inner), LocalRef(fold)))
	visited := func(below func(*Local) bool) (out []string) {
		WalkThrough(func(e *Expr) bool {
			switch e.Op {
			case OpLocal:
				out = append(out, e.Local.Name)
				return below(e.Local)
			case OpSym:
				out = append(out, e.Name)
			}
			return true
		}, nil, e, inner.Def)
		return out
	}
	assert.Equal(t, []string{"outer", "inner", "N", "inner", "inner", "fold"}, visited(func(*Local) bool { return true }))
	assert.Equal(t, []string{"outer", "inner", "fold", "N"}, visited(func(*Local) bool { return false }))

	assert.False(t, Has(e, OpSym, OpRange), "definitions are not part of an expression")
	assert.True(t, Has(e, OpSym, OpMin))
	assert.False(t, Has(nil, OpSym))
	assert.True(t, Contains(e, func(e *Expr) bool { return e.Op == OpLocal && e.Local == fold }))

	all := []*Local{inner, fold, {Name: "other", Type: Index, Def: IntConst(1)}, outer}
	assert.Equal(t, []*Local{inner, outer}, LocalsIn(all, nil, LocalRef(outer)))
	assert.Equal(t, []*Local{inner}, LocalsIn(all, LocalRef(inner), LocalRef(fold)))
	assert.Empty(t, LocalsIn(all))
}

func TestJoin(t *testing.T) {
	a, b := Sym("A"), Sym("B")
	assert.Same(t, a, Join(OpAdd, a, nil))
	assert.Same(t, b, Join(OpAdd, nil, b))
	assert.Nil(t, Join(OpAdd, nil, nil))
	assert.True(t, Equal(Apply(OpAdd, a, b), Join(OpAdd, a, b)))
}
