package fuse

import (
	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// A mask may leave nothing of a tile, or all of it. Which of these holds follows from bounds of the mask's
// conditions over the tile. Causal masks, windows, offsets, chunks, lengths and documents are all cases of
// this; none is known by name. Conditions over positions alone are bounded by the index algebra, as
// differences of their two sides. Those that depend on memory are bounded by an interval for each side
// (attend_interval.go).

// tileMask bounds the conditions under which a logit is not -inf.
func (lo attendKernel) tileMask(b *body, a *ir.Attend, s ir.Schedule) ir.TileMask {
	t := lo.tileBounds(a, s)
	logit := lo.maximum().Body
	clear := remask(logit, t.condition)
	if t.mask.Any == nil && t.mask.All == nil {
		return ir.TileMask{Query: t.mask.Query, Key: t.mask.Key}
	}
	if t.mask.All != nil {
		t.mask.Clear = b.build(b.intern(clear))
	}
	t.mask.Any, t.mask.All = t.restore(t.mask.Any), t.restore(t.mask.All)
	t.mask.FirstMost = lo.firstSeeMost(t.mask, a, s)
	fits := ir.PanelBytes(s, a)+tableBytes <= lo.device.SharedBlock
	if t.mask.Table = t.mask.Table && t.mask.All != nil && fits; t.mask.Table {
		t.byPoints(b)
	}
	return t.mask
}

// firstSeeMost reports whether a mask of positions alone leaves more tiles of keys to the first tile of queries than to
// the last one, at the default sizes.
func (lo attendKernel) firstSeeMost(m ir.TileMask, a *ir.Attend, s ir.Schedule) bool {
	const mostCounted = 1 << 20 // keys that are counted at most: the default size may be any number
	sizes := algebra.DefaultSizes(lo.g)
	queries, keys := int64(algebra.Estimate(algebra.Product(a.M), sizes)), algebra.Estimate(algebra.Product(a.Keys(lo.k)), sizes)
	if m.Any == nil || len(a.M) != 1 || len(ir.FreeRanges(m.Any)) > 0 || algebra.ReadsMemory(m.Any) {
		return false
	}
	visible := func(query int64) (n int) {
		sizes[m.Query] = query
		for key := int64(0); float64(key) < min(keys, mostCounted); key += int64(s.TileN) {
			sizes[m.Key] = key
			if seen, ok := ir.EvalSize(m.Any, sizes); ok && seen != 0 {
				n++
			}
		}
		return n
	}
	last := max(queries-1, 0) / int64(s.TileM) * int64(s.TileM)
	return visible(0) > visible(last)
}

// tileBounds names the first query and key of a tile, and writes ranges as they are inside it.
func (lo attendKernel) tileBounds(a *ir.Attend, s ir.Schedule) *tileBounds {
	t := &tileBounds{lo: lo.kernel, a: a, names: map[string]*ir.Expr{}, facts: lo.facts}
	t.mask.Query, t.mask.Key = lo.freeSymbol("query_0"), lo.freeSymbol("key_0")
	t.at = map[*ir.Range]*ir.Expr{}
	first, points := map[*ir.Range]string{}, map[*ir.Range]int{}
	tile := func(r *ir.Range, at string, n int) {
		within := lo.g.NewRange(r.Name, ir.IntConst(int64(n)))
		t.at[r], first[r], points[r] = ir.Apply(ir.OpAdd, ir.Sym(at), within.At()), at, n
	}
	if len(a.M) == 1 {
		tile(a.M[0], t.mask.Query, s.TileM)
	}
	if keys := a.Keys(lo.k); len(keys) == 1 {
		tile(keys[0], t.mask.Key, s.TileN)
	}
	for _, r := range a.Batch {
		t.at[r] = t.named(r.At())
	}
	t.readParts(first, points)
	return t
}

// byPoints adds the conditions that decide each point of a tile that is neither empty nor whole.
func (t *tileBounds) byPoints(b *body) {
	var placed []*ir.Expr
	for _, e := range t.decided {
		t.mask.Kept = ir.Join(ir.OpAnd, t.mask.Kept, e)
		if _, all := t.truth(e); algebra.ReadsMemory(e) {
			t.mask.Settled = ir.Join(ir.OpAnd, t.mask.Settled, all)
		} else {
			placed = append(placed, e)
		}
	}
	t.mask.Kept = b.build(b.intern(t.mask.Kept))
	if len(placed) == 0 {
		t.mask.Settled = nil
		return
	}
	for _, e := range placed {
		t.mask.Placed = ir.Join(ir.OpAnd, t.mask.Placed, e)
	}
	t.mask.Placed, t.mask.Settled = b.build(b.intern(t.mask.Placed)), t.restore(t.mask.Settled)
}

// maximum returns the fold of the largest logit.
func (lo attendKernel) maximum() *ir.Fold {
	for _, f := range lo.folds {
		if f.Op == ir.Max {
			return f
		}
	}
	panic("BUG: a stream without a maximum")
}

// freeSymbol extends a name until no symbol of the graph has it.
func (lo attendKernel) freeSymbol(name string) string {
	for lo.g.Symbol(name) != nil {
		name += "_"
	}
	return name
}

type tileBounds struct {
	lo    *kernel
	a     *ir.Attend
	at    map[*ir.Range]*ir.Expr // ranges as they are inside a tile
	names map[string]*ir.Expr    // symbols that stand for what is the same in the tile
	parts []tilePart
	facts ir.Facts
	mask  ir.TileMask

	decided []*ir.Expr // conditions of which both bounds are known
}

// named replaces an index that is the same in the whole tile by a symbol.
func (t *tileBounds) named(e *ir.Expr) *ir.Expr {
	for name, known := range t.names {
		if ir.Equal(known, e) {
			return ir.Sym(name)
		}
	}
	name := attendKernel{t.lo}.freeSymbol("of_batch_" + string(rune('a'+len(t.names))))
	t.names[name] = e
	return ir.Sym(name)
}

// restore replaces the symbols that named made by what they stand for.
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

// remask replaces each condition of a logit whose other branch is -inf by what f leaves of it; where f
// returns nil the condition is dropped.
func remask(e *ir.Expr, f func(cond *ir.Expr) *ir.Expr) *ir.Expr {
	choose := func(cond, x, masked *ir.Expr) *ir.Expr {
		x = remask(x, f)
		if rest := f(cond); rest != nil {
			return ir.Where(rest, x, masked)
		}
		return x
	}
	switch {
	case e.Op == ir.OpCast && e.Type.IsFloat() && e.Args[0].Type.IsFloat():
		return ir.Cast(remask(e.Args[0], f), e.Type)
	case e.Op == ir.OpAdd:
		return ir.Apply(ir.OpAdd, remask(e.Args[0], f), remask(e.Args[1], f))
	case e.Op == ir.OpSelect && form.IsMinusInfinity(e.Args[2]):
		return choose(e.Args[0], e.Args[1], e.Args[2])
	case e.Op == ir.OpSelect && form.IsMinusInfinity(e.Args[1]):
		return choose(ir.Apply(ir.OpNot, e.Args[0]), e.Args[2], e.Args[1])
	}
	return e
}

// condition adds the bounds of a conjunction to the mask, and returns the part of the conjunction that
// they do not decide; nil for none.
func (t *tileBounds) condition(e *ir.Expr) *ir.Expr {
	if e.Op == ir.OpAnd && t.part(e) == nil {
		return algebra.And(t.condition(e.Args[0]), t.condition(e.Args[1]))
	}
	some, all := t.truth(e)
	t.mask.Any = algebra.And(t.mask.Any, some)
	if all == nil {
		return e
	}
	t.mask.All = algebra.And(t.mask.All, all)
	t.decided = append(t.decided, e)
	return nil
}

// truth bounds a condition over a tile by two others. some holds wherever e holds at one point of the tile
// at least; where all holds, e holds at all points. Either is nil where no such bound is known.
func (t *tileBounds) truth(e *ir.Expr) (some, all *ir.Expr) {
	if p := t.part(e); p != nil {
		return p.high, p.low
	}
	if algebra.ReadsMemory(e) && t.fixed(e) {
		return e, e
	}
	switch e.Op {
	case ir.OpAnd:
		s1, a1 := t.truth(e.Args[0])
		s2, a2 := t.truth(e.Args[1])
		return algebra.And(s1, s2), eachKnown(ir.OpAnd, a1, a2)
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

// comparison bounds the difference of the two sides over the tile, or each side by itself where they
// depend on memory.
func (t *tileBounds) comparison(e *ir.Expr) (some, all *ir.Expr) {
	if algebra.ReadsMemory(e) {
		return t.intervalComparison(e)
	}
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
	some, all = algebra.And(s1, s2), eachKnown(ir.OpAnd, a1, a2)
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

// index writes an integer expression as an index, at a point of the tile.
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
