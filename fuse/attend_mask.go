package fuse

import (
	"slices"

	"github.com/fusec/fusec/ir"
)

// Which tiles a mask leaves nothing of, and which it leaves whole, follows from the
// bounds of its conditions over a tile: causal masks, windows, offsets, chunks and
// lengths are cases of it, none is known by name.

// tileMask finds the bounds of the conditions under which a logit is not -inf.
func (lo *lowering) tileMask(b *body, a *ir.Attend, s ir.Schedule) ir.TileMask {
	t := &tileBounds{lo: lo, a: a, names: map[string]*ir.Expr{}, facts: lo.f.g.Facts()}
	t.mask.Query, t.mask.Key = lo.freeSymbol("query_0"), lo.freeSymbol("key_0")
	t.at = map[*ir.Range]*ir.Expr{}
	tile := func(r *ir.Range, first string, points int) {
		within := lo.f.g.NewRange(r.Name, ir.IntConst(int64(points)))
		t.at[r] = ir.Apply(ir.OpAdd, ir.Sym(first), within.At())
	}
	if len(a.M) == 1 {
		tile(a.M[0], t.mask.Query, s.TileM)
	}
	if len(lo.k.Cols) == 1 {
		tile(lo.k.Cols[0], t.mask.Key, s.TileN)
	}
	for _, r := range a.Batch {
		t.at[r] = t.named(r.At())
	}
	logit := lo.maximum().Body
	clear := t.visit(logit)
	if t.mask.Any == nil && t.mask.All == nil {
		return ir.TileMask{Query: t.mask.Query, Key: t.mask.Key}
	}
	if t.mask.All != nil {
		t.mask.Clear = b.build(b.intern(clear))
	}
	t.mask.Any, t.mask.All = t.restore(t.mask.Any), t.restore(t.mask.All)
	return t.mask
}

// maximum is the fold of the largest logit.
func (lo *lowering) maximum() *ir.Fold {
	for _, f := range lo.folds {
		if f.Op == ir.Max {
			return f
		}
	}
	panic("BUG: a stream without a maximum")
}

// freeSymbol is a name that no symbol of the graph has.
func (lo *lowering) freeSymbol(name string) string {
	for lo.f.g.Symbol(name) != nil {
		name += "_"
	}
	return name
}

type tileBounds struct {
	lo    *lowering
	a     *ir.Attend
	at    map[*ir.Range]*ir.Expr // ranges as they are inside a tile
	names map[string]*ir.Expr    // symbols that stand for what is the same in the tile
	facts ir.Facts
	mask  ir.TileMask
}

// named stands a symbol for a non-negative index that is the same in the whole tile.
func (t *tileBounds) named(e *ir.Expr) *ir.Expr {
	for name, known := range t.names {
		if ir.Equal(known, e) {
			return ir.Sym(name)
		}
	}
	name := t.lo.freeSymbol("of_batch_" + string(rune('a'+len(t.names))))
	t.names[name] = e
	return ir.Sym(name)
}

// restore puts back what named symbols stand for.
func (t *tileBounds) restore(e *ir.Expr) *ir.Expr {
	if e == nil {
		return nil
	}
	return ir.Rewrite(ir.Simplify(e, t.facts), func(e *ir.Expr) *ir.Expr {
		if e.Op == ir.OpSym && t.names[e.Name] != nil {
			return t.names[e.Name]
		}
		return e
	})
}

// visit walks down to the conditions whose other branch is -inf. It returns the
// logit without those that bounds can tell hold in a whole tile.
func (t *tileBounds) visit(e *ir.Expr) *ir.Expr {
	switch {
	case e.Op == ir.OpCast && e.Type.IsFloat() && e.Args[0].Type.IsFloat():
		return ir.Cast(t.visit(e.Args[0]), e.Type)
	case e.Op == ir.OpAdd:
		return ir.Apply(ir.OpAdd, t.visit(e.Args[0]), t.visit(e.Args[1]))
	case e.Op == ir.OpSelect && isMinusInfinity(e.Args[2]):
		if rest := t.condition(e.Args[0]); rest != nil {
			return ir.Where(rest, t.visit(e.Args[1]), e.Args[2])
		}
		return t.visit(e.Args[1])
	case e.Op == ir.OpSelect && isMinusInfinity(e.Args[1]):
		if rest := t.condition(ir.Apply(ir.OpNot, e.Args[0])); rest != nil {
			return ir.Where(rest, t.visit(e.Args[2]), e.Args[1])
		}
		return t.visit(e.Args[2])
	}
	return e
}

// condition adds the bounds of a conjunction to the mask, and returns the part of
// it that they do not decide; nil for none.
func (t *tileBounds) condition(e *ir.Expr) *ir.Expr {
	if e.Op == ir.OpAnd {
		return and(t.condition(e.Args[0]), t.condition(e.Args[1]))
	}
	some, all := t.truth(e)
	t.mask.Any = and(t.mask.Any, some)
	if all == nil {
		return e
	}
	t.mask.All = and(t.mask.All, all)
	return nil
}

// truth returns conditions on a tile: some holds wherever e does at one point of
// it, and e holds at all points where all does; nil where there is no such bound.
func (t *tileBounds) truth(e *ir.Expr) (some, all *ir.Expr) {
	switch e.Op {
	case ir.OpAnd:
		s1, a1 := t.truth(e.Args[0])
		s2, a2 := t.truth(e.Args[1])
		return and(s1, s2), eachKnown(ir.OpAnd, a1, a2)
	case ir.OpOr:
		s1, a1 := t.truth(e.Args[0])
		s2, a2 := t.truth(e.Args[1])
		if a1 == nil || a2 == nil {
			a1, a2 = either(a1, a2), either(a2, a1)
		}
		return eachKnown(ir.OpOr, s1, s2), eachKnown(ir.OpOr, a1, a2)
	case ir.OpNot:
		s, a := t.truth(e.Args[0])
		return not(a), not(s)
	case ir.OpLt, ir.OpLe, ir.OpGt, ir.OpGe, ir.OpEq, ir.OpNe:
		return t.comparison(e)
	}
	return nil, nil
}

func eachKnown(op ir.Op, a, b *ir.Expr) *ir.Expr {
	if a == nil || b == nil {
		return nil
	}
	return ir.Apply(op, a, b)
}

func either(a, b *ir.Expr) *ir.Expr {
	if a != nil {
		return a
	}
	return b
}

func not(e *ir.Expr) *ir.Expr {
	if e == nil {
		return nil
	}
	return ir.Apply(ir.OpNot, e)
}

// comparison bounds the difference of the two sides over the tile.
func (t *tileBounds) comparison(e *ir.Expr) (some, all *ir.Expr) {
	a, okA := t.index(e.Args[0])
	b, okB := t.index(e.Args[1])
	if !okA || !okB {
		return nil, nil
	}
	atLeast := func(x, y *ir.Expr, least int64) (some, all *ir.Expr) { // x - y >= least
		gap := ir.Apply(ir.OpSub, ir.Apply(ir.OpSub, x, y), ir.IntConst(least))
		lo, hi := ir.Bounds(ir.Simplify(gap, t.facts), t.facts)
		return notNegative(hi), notNegative(lo)
	}
	switch e.Op {
	case ir.OpLt:
		return atLeast(b, a, 1)
	case ir.OpLe:
		return atLeast(b, a, 0)
	case ir.OpGt:
		return atLeast(a, b, 1)
	case ir.OpGe:
		return atLeast(a, b, 0)
	}
	s1, a1 := atLeast(a, b, 0)
	s2, a2 := atLeast(b, a, 0)
	some, all = and(s1, s2), eachKnown(ir.OpAnd, a1, a2)
	if e.Op == ir.OpNe {
		return not(all), not(some)
	}
	return some, all
}

func notNegative(e *ir.Expr) *ir.Expr {
	if e == nil {
		return nil
	}
	return ir.Apply(ir.OpLe, ir.IntConst(0), e)
}

// index writes an integer expression in the index algebra, at a point of the tile.
func (t *tileBounds) index(e *ir.Expr) (*ir.Expr, bool) {
	if e.Type.IsFloat() || e.Type == ir.Bool {
		return nil, false
	}
	switch e.Op {
	case ir.OpConst:
		return ir.IntConst(e.Int), true
	case ir.OpSym:
		return e, true
	case ir.OpRange:
		if at, ok := t.at[e.Range]; ok {
			return at, true
		}
		return e, true
	case ir.OpCast:
		return t.index(e.Args[0])
	case ir.OpRead:
		return t.data(e)
	case ir.OpAdd, ir.OpSub, ir.OpMul, ir.OpNeg, ir.OpMin, ir.OpMax, ir.OpFloorDiv, ir.OpMod:
		args := make([]*ir.Expr, len(e.Args))
		for i, x := range e.Args {
			var ok bool
			if args[i], ok = t.index(x); !ok {
				return nil, false
			}
		}
		return ir.Apply(e.Op, args...), true
	}
	return nil, false
}

// data is an integer read from memory that is the same in the whole tile: as the
// difference of two numbers that are not negative, as symbols are taken to be.
func (t *tileBounds) data(read *ir.Expr) (*ir.Expr, bool) {
	for r := range ir.FreeRanges(read) {
		if !slices.Contains(t.a.Batch, r) {
			return nil, false
		}
	}
	zero, x := ir.IntConst(0), ir.Cast(read, ir.Index)
	above, below := ir.Apply(ir.OpMax, x, zero), ir.Apply(ir.OpMax, ir.Apply(ir.OpNeg, x), zero)
	return ir.Apply(ir.OpSub, t.named(above), t.named(below)), true
}
