package ir

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"
)

// TestNarrowerIsAProof draws pairs of conditions over one size: where the one is said to be narrower, the
// other holds at every size at which it does. Bounds of both sides are found.
func TestNarrowerIsAProof(t *testing.T) {
	n := Sym("N")
	term := rapid.Custom(func(t *rapid.T) *Expr {
		c := IntConst(rapid.Int64Range(0, 9).Draw(t, "c"))
		switch rapid.IntRange(0, 2).Draw(t, "kind") {
		case 0:
			return Apply(OpLe, c, n)
		case 1:
			return Apply(OpLe, n, c)
		}
		return Apply(OpEq, Apply(OpMod, n, Apply(OpAdd, c, IntConst(1))), IntConst(0))
	})
	condition := rapid.Custom(func(t *rapid.T) *Expr {
		e := term.Draw(t, "first")
		for range rapid.IntRange(0, 2).Draw(t, "more") {
			e = Apply(OpAnd, e, term.Draw(t, "next"))
		}
		return e
	})
	found := 0
	rapid.Check(t, func(t *rapid.T) {
		a, b := condition.Draw(t, "a"), condition.Draw(t, "b")
		if !Narrower(a, b) {
			return
		}
		found++
		for size := range int64(40) {
			at := map[string]int64{"N": size}
			x, _ := EvalSize(a, at)
			y, _ := EvalSize(b, at)
			assert.False(t, x != 0 && y == 0, "%v, but not %v, at %d", a, b, size)
		}
	})
	assert.Positive(t, found)
	assert.True(t, Narrower(Apply(OpLe, n, IntConst(3)), Apply(OpLe, n, IntConst(5))))
	assert.True(t, Narrower(Apply(OpLe, IntConst(5), n), Apply(OpLe, IntConst(3), n)))
	assert.True(t, Narrower(n, nil))
	assert.False(t, Narrower(nil, Apply(OpLe, n, IntConst(3))))
}
