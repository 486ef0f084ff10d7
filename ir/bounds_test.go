package ir

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// everyPoint calls f at every point of the ranges in es, for every binding of
// the symbols N, M and C that agrees with the facts, symbols up to 5.
func everyPoint(es []*Expr, facts Facts, f func(at point)) {
	var ranges []*Range
	seen := map[*Range]bool{}
	for _, e := range es {
		for r := range FreeRanges(e) {
			if !seen[r] {
				seen[r] = true
				ranges = append(ranges, r)
			}
		}
	}
	everyBinding(facts, []string{"N", "M", "C"}, map[string]int64{}, func(syms map[string]int64) {
		everyIndex(ranges, point{map[*Range]int64{}, syms}, f)
	})
}

func everyBinding(facts Facts, names []string, syms map[string]int64, f func(map[string]int64)) {
	if len(names) == 0 {
		f(syms)
		return
	}
	step, limit := int64(1), int64(5)
	if d := facts.Divisible[names[0]]; d > 1 {
		step, limit = d, 2*d
	}
	var first int64
	if facts.Positive {
		first = step
	}
	for v := first; v <= limit; v += step {
		syms[names[0]] = v
		everyBinding(facts, names[1:], syms, f)
	}
}

func everyIndex(ranges []*Range, at point, f func(point)) {
	if len(ranges) == 0 {
		f(at)
		return
	}
	for v := range at.eval(ranges[0].Extent) {
		at.ranges[ranges[0]] = v
		everyIndex(ranges[1:], at, f)
	}
}

func requireEqualAt(t require.TestingT, want, got *Expr, at point) {
	if a, b := at.eval(want), at.eval(got); a != b {
		require.Equal(t, a, b, "%s is not %s at %v", show(got), show(want), at)
	}
}

// randomWorld draws three ranges with extents of many kinds, and facts.
func randomWorld(t *rapid.T) (*world, []*Range) {
	extents := []string{"1", "2", "3", "4", "6", "N", "M", "N*M", "N+1", "N-1", "N/2", "(N+1)/2", "2*M",
		"C", "C/4", "M+N-1",
		"min(N,3)"}
	pickExtent := rapid.SampledFrom(extents)
	decl := "i:" + pickExtent.Draw(t, "i") + " j:" + pickExtent.Draw(t, "j") + " k:" + pickExtent.Draw(t, "k")
	w := newWorld(decl)
	w.facts = rapid.SampledFrom([]Facts{{}, {Positive: true}, {Divisible: map[string]int64{"C": 4}},
		{Divisible: map[string]int64{"C": 4, "N": 2}, Positive: true}}).Draw(t, "facts")
	return w, []*Range{w.ranges["i"], w.ranges["j"], w.ranges["k"]}
}

// randomIndex draws an index expression, biased towards sums of products that
// divisions can split.
func randomIndex(t *rapid.T, w *world, ranges []*Range, depth int) *Expr {
	sub := func() *Expr { return randomIndex(t, w, ranges, depth-1) }
	if depth == 0 {
		return randomLeaf(t, w, ranges)
	}
	switch rapid.IntRange(0, 12).Draw(t, "op") {
	case 0:
		return randomLeaf(t, w, ranges)
	case 1, 2:
		return Apply(OpAdd, sub(), sub())
	case 3:
		return Apply(OpSub, sub(), sub())
	case 4:
		return Apply(OpMul, sub(), randomLeaf(t, w, ranges))
	case 5:
		n := randomSize(t, w)
		return Apply(OpAdd, Apply(OpMul, sub(), n), randomLeaf(t, w, ranges))
	case 6, 7:
		return Apply(OpFloorDiv, sub(), randomSize(t, w))
	case 8, 9:
		return Apply(OpMod, sub(), randomSize(t, w))
	case 10:
		return Apply(rapid.SampledFrom([]Op{OpMin, OpMax}).Draw(t, "extremum"), sub(), sub())
	case 11:
		return Where(randomCond(t, w, ranges, depth-1), sub(), sub())
	}
	return Apply(rapid.SampledFrom([]Op{OpFloorDiv, OpMod}).Draw(t, "division"), sub(), sub())
}

func randomLeaf(t *rapid.T, w *world, ranges []*Range) *Expr {
	if rapid.Bool().Draw(t, "range") {
		return rapid.SampledFrom(ranges).Draw(t, "r").At()
	}
	return randomSize(t, w)
}

func randomSize(t *rapid.T, w *world) *Expr {
	sizes := []string{"0", "1", "2", "3", "4", "6", "8", "0-1", "0-2",
		"N", "M", "C", "N*M", "N+1", "C/4", "N/2", "2*M"}
	return w.parse(rapid.SampledFrom(sizes).Draw(t, "size"))
}

func randomCond(t *rapid.T, w *world, ranges []*Range, depth int) *Expr {
	if depth > 0 {
		switch rapid.IntRange(0, 5).Draw(t, "junction") {
		case 0:
			return Apply(OpAnd, randomCond(t, w, ranges, depth-1), randomCond(t, w, ranges, depth-1))
		case 1:
			return Apply(OpOr, randomCond(t, w, ranges, depth-1), randomCond(t, w, ranges, depth-1))
		case 2:
			return Apply(OpNot, randomCond(t, w, ranges, depth-1))
		}
	}
	op := rapid.SampledFrom([]Op{OpLt, OpLe, OpGt, OpGe, OpEq, OpNe}).Draw(t, "comparison")
	return Apply(op, randomIndex(t, w, ranges, max(depth-1, 0)), randomIndex(t, w, ranges, max(depth-1, 0)))
}

func TestSimplifyKeepsTheMeaning(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, ranges := randomWorld(t)
		e := randomIndex(t, w, ranges, rapid.IntRange(1, 4).Draw(t, "depth"))
		got := Simplify(e, w.facts)
		everyPoint([]*Expr{e}, w.facts, func(at point) {
			requireEqualAt(t, e, got, at)
		})
	})
}

// TestSmallDivisions goes through (a*i + b*j + c) / d and % d with small
// numbers, and through comparisons of them.
func TestSmallDivisions(t *testing.T) {
	factors := [][3]int64{
		{1, 1, 0}, {4, 1, 0}, {4, 1, 3}, {-1, 4, 2}, {8, -1, 7}, {3, -2, -5}, {6, 4, 9}, {0, -3, 1},
	}
	for _, decl := range []string{"i:2 j:3", "i:4 j:4", "i:3 j:8"} {
		w := newWorld(decl)
		i, j := w.ranges["i"], w.ranges["j"]
		for _, n := range factors {
			sum := Apply(OpAdd, Apply(OpMul, i.At(), IntConst(n[0])), Apply(OpMul, j.At(), IntConst(n[1])))
			for d := int64(-4); d <= 9; d++ {
				checkDivision(t, i, j, Apply(OpAdd, sum, IntConst(n[2])), IntConst(d))
			}
		}
	}
}

func checkDivision(t *testing.T, i, j *Range, sum, d *Expr) {
	quotient, rest := Apply(OpFloorDiv, sum, d), Apply(OpMod, sum, d)
	for _, e := range []*Expr{
		quotient, rest, Apply(OpLt, quotient, rest), Apply(OpEq, rest, i.At()), Apply(OpLe, j.At(), quotient),
		Apply(OpMod, quotient, IntConst(2)), Apply(OpFloorDiv, rest, IntConst(2)),
	} {
		got := Simplify(e, Facts{})
		at := point{ranges: map[*Range]int64{}}
		everyIndex([]*Range{i, j}, at, func(at point) { requireEqualAt(t, e, got, at) })
	}
}

func TestConditionsKeepTheirMeaning(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, ranges := randomWorld(t)
		e := randomCond(t, w, ranges, rapid.IntRange(1, 3).Draw(t, "depth"))
		got := Simplify(e, w.facts)
		everyPoint([]*Expr{e}, w.facts, func(at point) {
			requireEqualAt(t, e, got, at)
		})
	})
}

func TestAnswersAreTrue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, ranges := randomWorld(t)
		depth := rapid.IntRange(1, 3).Draw(t, "depth")
		e, size := randomIndex(t, w, ranges, depth), randomSize(t, w)
		inside := ProveInside(e, size, w.facts)
		lo, hi := Bounds(e, w.facts)
		n := rapid.Int64Range(1, 8).Draw(t, "n")
		multiple := Multiple(e, n, w.facts)
		guard := Inside([]*Expr{size, size}, []*Expr{e, ranges[0].At()}, w.facts)
		es := []*Expr{e, ranges[0].At()}
		everyPoint(es, w.facts, func(at point) {
			v, s := at.eval(e), at.eval(size)
			isInside := 0 <= v && v < s
			both := isInside && at.ranges[ranges[0]] < s
			for name, ok := range map[string]bool{
				"inside": !inside || isInside, "multiple": !multiple || v%n == 0,
				"lo": lo == nil || at.eval(lo) <= v, "hi": hi == nil || v <= at.eval(hi),
				"guard": both == (guard == nil || at.eval(guard) != 0),
			} {
				if !ok {
					require.Fail(t, "wrong answer", "%s of %s in %s by %d at %v",
						name, show(e), show(size), n, at)
				}
			}
		})
	})
}

func TestSameIndexIsTrue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, ranges := randomWorld(t)
		a := randomIndex(t, w, ranges, 2)
		b := randomIndex(t, w, ranges, 2)
		if !SameIndex(a, b, w.facts) {
			return
		}
		everyPoint([]*Expr{a, b}, w.facts, func(at point) {
			requireEqualAt(t, a, b, at)
		})
	})
}

func TestImplicationIsTrue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, ranges := randomWorld(t)
		a, b := randomCond(t, w, ranges, 2), randomCond(t, w, ranges, 2)
		if !Implies(a, b, w.facts) {
			return
		}
		everyPoint([]*Expr{a, b}, w.facts, func(at point) {
			if at.eval(a) != 0 && at.eval(b) == 0 {
				require.Fail(t, "wrong implication", "%s implies %s at %v", show(a), show(b), at)
			}
		})
	})
}

func TestSimplifyGivenKeepsTheMeaning(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, ranges := randomWorld(t)
		cond, e := randomCond(t, w, ranges, 2), randomIndex(t, w, ranges, rapid.IntRange(1, 3).Draw(t, "depth"))
		got := SimplifyGiven(e, cond, w.facts)
		everyPoint([]*Expr{e, cond}, w.facts, func(at point) {
			if at.eval(cond) != 0 {
				requireEqualAt(t, e, got, at)
			}
		})
	})
}

func TestStrideIsTrue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, ranges := randomWorld(t)
		e, r := randomIndex(t, w, ranges, rapid.IntRange(1, 3).Draw(t, "depth")), ranges[0]
		stride, ok := Stride(e, r, w.facts)
		if !ok {
			return
		}
		require.Empty(t, FreeRanges(stride))
		everyPoint([]*Expr{e}, w.facts, func(at point) {
			before, i := at.eval(e), at.ranges[r]
			if i+1 < at.eval(r.Extent) {
				at.ranges[r] = i + 1
				if step := at.eval(e) - before; step != at.eval(stride) {
					require.Fail(t, "wrong stride", "%s of %s at %v", show(stride), show(e), at)
				}
				at.ranges[r] = i
			}
		})
	})
}

func TestSimplifyIsDeterministic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, ranges := randomWorld(t)
		e := randomIndex(t, w, ranges, 3)
		require.True(t, Equal(Simplify(e, w.facts), Simplify(e, w.facts)), show(e))
	})
}

// TestSimplifySeesTextAlone draws indices into chunks of an axis: the form of one does not depend on whether the size of a chunk in
// it is the extent of a range itself or another expression of the same text.
func TestSimplifySeesTextAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SampledFrom([]string{"M", "2", "max(1,M)", "max(1,min(M,N/2))", "N/2+1"}).Draw(t, "parts")
		size := rapid.SampledFrom([]string{"(" + parts + "+N-1)/(" + parts + ")", "(N-1)/(" + parts + ")+1", "N/(" + parts + ")"}).Draw(t, "size")
		w := newWorld("i:" + parts + " k:" + size)
		i, k := w.ranges["i"], w.ranges["k"]
		e := Apply(OpAdd, Apply(OpMul, i.At(), k.Extent), randomIndex(t, w, []*Range{i, k}, 1))
		if rapid.Bool().Draw(t, "condition") {
			e = Apply(OpLt, e, w.parse("N"))
		}
		facts := Facts{Within: []*Range{i, k}}
		same := w.parse(show(e))
		require.True(t, Equal(Simplify(e, facts), Simplify(same, facts)), "%s is %s or %s", show(e), show(Simplify(e, facts)), show(Simplify(same, facts)))
	})
}

// TestReshapesCancel takes every index tuple of every shape through another
// shape of the same size and back, and through a transposition and back: what
// comes out must be the tuple itself.
func TestReshapesCancel(t *testing.T) {
	sizes := []string{"2", "3", "N", "M", "N*2", "N+1", "C/4"}
	for _, a := range sizes {
		for _, b := range sizes {
			for _, c := range sizes {
				w := newWorld("i:" + a + " j:" + b + " k:" + c)
				checkReshapes(t, w, Facts{Divisible: map[string]int64{"C": 4}})
			}
		}
	}
}

func checkReshapes(t *testing.T, w *world, facts Facts) {
	i, j, k := w.ranges["i"], w.ranges["j"], w.ranges["k"]
	a, b, c := i.Extent, j.Extent, k.Extent
	at, shape := Indices([]*Range{i, j, k}), []*Expr{a, b, c}
	ab, bc := Apply(OpMul, a, b), Apply(OpMul, b, c)
	for _, via := range [][]*Expr{{Apply(OpMul, ab, c)}, {ab, c}, {a, bc}, shape} {
		out := unflatten(via, FlatOffset(shape, at))
		back := SimplifyAll(unflatten(shape, FlatOffset(via, out)), facts)
		for d := range at {
			require.Equal(t, show(Simplify(at[d], facts)), show(back[d]),
				"axis %d of (%s, %s, %s)", d, show(a), show(b), show(c))
		}
	}
	flat, turnedShape := FlatOffset(shape, at), []*Expr{c, a, b}
	require.True(t, ProveInside(flat, Apply(OpMul, ab, c), facts))
	turned := unflatten(turnedShape, FlatOffset(turnedShape, []*Expr{at[2], at[0], at[1]}))
	again := SimplifyAll([]*Expr{turned[1], turned[2], turned[0]}, facts)
	require.True(t, SameIndex(FlatOffset(shape, again), flat, facts))
}

// unflatten returns the index tuple of a row-major offset.
func unflatten(shape []*Expr, offset *Expr) []*Expr {
	out := make([]*Expr, len(shape))
	for d := len(shape) - 1; d > 0; d-- {
		out[d] = Apply(OpMod, offset, shape[d])
		offset = Apply(OpFloorDiv, offset, shape[d])
	}
	out[0] = offset
	return out
}
