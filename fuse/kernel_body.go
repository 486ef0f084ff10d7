package fuse

import (
	"math"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// body assembles the sections of one variant. It shares equal expressions, gives names to reads
// and to what is used more than once, and moves what does not depend on the columns to row
// level.
type body struct {
	lo        *kernel
	table     map[uint64][]*ir.Expr
	interned  map[*ir.Expr]*ir.Expr // by the node interned
	uses      map[*ir.Expr]int
	inFull    map[*ir.Expr]bool // those with a parent at full level
	plain     map[*ir.Expr]bool // those with a parent that is not a cast
	repeated  map[*ir.Expr]bool // values that an index is made of which stands in several places
	levels    map[*ir.Expr]ir.Level
	running   map[*ir.Expr]bool
	built     map[*ir.Expr]*ir.Expr
	names     map[*ir.Expr]*ir.Value
	cols      map[*ir.Range]bool
	locals    []*ir.Local
	alongCols bool // whether vectors run along the columns, so that a condition of the row is one for all lanes
}

func newBody(lo *kernel) *body {
	b := &body{lo: lo, table: map[uint64][]*ir.Expr{}, interned: map[*ir.Expr]*ir.Expr{}, uses: map[*ir.Expr]int{}, inFull: map[*ir.Expr]bool{}, plain: map[*ir.Expr]bool{}, repeated: map[*ir.Expr]bool{},
		levels: map[*ir.Expr]ir.Level{}, running: map[*ir.Expr]bool{}, built: map[*ir.Expr]*ir.Expr{}, names: map[*ir.Expr]*ir.Value{}, cols: map[*ir.Range]bool{}}
	for _, r := range lo.k.Cols {
		b.cols[r] = true
	}
	b.locals = append(b.locals, lo.products...)
	return b
}

// reciprocal replaces, under fast, a division by a value of the row by a multiplication, so
// that there is one division for each row.
func (b *body) reciprocal(e *ir.Expr) *ir.Expr {
	return ir.Rewrite(e, func(e *ir.Expr) *ir.Expr {
		if e.Op != ir.OpDiv || b.level(e.Args[0]) != ir.FullLevel || b.level(e.Args[1]) != ir.RowLevel || e.Args[1].Op == ir.OpConst {
			return e
		}
		return ir.Apply(ir.OpMul, e.Args[0], ir.Apply(ir.OpRecip, e.Args[1])).At(e.Span)
	})
}

// exponentials writes exp(x - m) as 2^(x*log2(e) - m*log2(e)) where m belongs to
// the row and 16-bit precision of quotients is enough: one multiply-add and one special
// function an element. In f32 the product with a large m would lose digits.
func (b *body) exponentials(e *ir.Expr) *ir.Expr {
	return ir.Rewrite(e, func(e *ir.Expr) *ir.Expr {
		if e.Op != ir.OpExp || e.Type != ir.F32 || e.Args[0].Op != ir.OpSub {
			return e
		}
		x, m := e.Args[0].Args[0], e.Args[0].Args[1]
		running := m.Op == ir.OpLocal && m.Local.Def == nil
		if b.level(m) != ir.RowLevel && !running || b.level(x) != ir.FullLevel {
			return e
		}
		by := rowLog2e(m)
		if b.lo.r.folded != nil { // the sums of products leave no registers for it
			by = ir.Num(ir.F32, math.Log2E)
		}
		return ir.Apply(ir.OpExp2, ir.Apply(ir.OpSub, ir.Apply(ir.OpMul, x, by), ir.Apply(ir.OpMul, m, by))).At(e.Span)
	})
}

// rowLog2e is log2(e), or 1 where m is large. The product with m is rounded. That with x is not,
// because the compiler makes one multiply-add of it and the difference. From m = 2^30 on, that
// rounding alone could overflow the power of two, and near the largest number the product itself
// overflows. Numbers so large are equal or at least 128 apart, so that 2^(x - m) is the same as
// exp(x - m): 0, 1 or infinite.
func rowLog2e(m *ir.Expr) *ir.Expr {
	large := ir.Apply(ir.OpGt, ir.Apply(ir.OpAbs, m), ir.Num(ir.F32, 0x1p30))
	return ir.Where(large, ir.Num(ir.F32, 1), ir.Num(ir.F32, math.Log2E))
}

// places rewrites comparisons of a place, cast to 64 bits, with an integer of the row: they are
// done in the type of places. So the integer is cast once for each row, and not the place at
// every point. The cast saturates: an integer that does not fit stays larger, or smaller, than
// every place.
func (b *body) places(e *ir.Expr) *ir.Expr {
	return ir.Rewrite(e, func(e *ir.Expr) *ir.Expr {
		switch e.Op {
		case ir.OpLt, ir.OpLe, ir.OpGt, ir.OpGe, ir.OpEq, ir.OpNe:
		default:
			return e
		}
		if b.level(e) == ir.RowLevel {
			return e
		}
		args := make([]*ir.Expr, len(e.Args))
		for i, side := range e.Args {
			switch {
			case side.Type != ir.I64:
				return e
			case b.level(side) == ir.RowLevel:
				args[i] = ir.Cast(side, ir.Index)
			case side.Op == ir.OpCast && side.Args[0].Op == ir.OpRange:
				args[i] = side.Args[0]
			default:
				return e
			}
		}
		return ir.Apply(e.Op, args...).At(e.Span)
	})
}

// summedExponentials writes exp(d) as 2^(d*log2(e)) in sums that follow a running maximum. Such
// a term is off by |d| units of the last place, and d is at most 0. The sum is off by the mean
// of |d|, weighted with the terms: at most the logarithm of their number, which is less than
// adding so many in f32 loses.
func summedExponentials(sections []*ir.Section) {
	log2e := ir.Num(ir.F32, math.Log2E)
	for _, s := range sections {
		for _, f := range s.Folds {
			if f.After == nil {
				continue
			}
			f.Body = ir.Rewrite(f.Body, func(e *ir.Expr) *ir.Expr {
				if e.Op != ir.OpExp || e.Type != ir.F32 || !algebra.ReadsLocal(e, f.After.Running) {
					return e
				}
				return ir.Apply(ir.OpExp2, ir.Apply(ir.OpMul, e.Args[0], log2e)).At(e.Span)
			})
		}
	}
}

// halfMantissa is the fraction bits of f16, the most precise 16-bit float.
const halfMantissa = 10

// sections rewrites the expressions of the given sections over named locals.
func (b *body) sections(in []*ir.Section) []*ir.Section {
	out := copySections(in)
	eachExpr(out, func(e *ir.Expr, _ ir.Level) *ir.Expr { return b.places(e) })
	if b.lo.k.Numerics == ir.Fast {
		eachExpr(out, func(e *ir.Expr, _ ir.Level) *ir.Expr { return b.reciprocal(e) })
		if b.lo.k.Mantissa <= halfMantissa && b.lo.ratios() || b.lo.r.folded != nil { // a product in f32 has lost more
			eachExpr(out, func(e *ir.Expr, _ ir.Level) *ir.Expr { return b.exponentials(e) })
		} else {
			summedExponentials(out)
		}
	}
	for _, v := range b.lo.r.members {
		if e := b.lo.value[v]; e != nil {
			e = b.intern(e)
			if b.names[e] == nil {
				b.names[e] = v
			}
		}
	}
	eachExpr(out, func(e *ir.Expr, _ ir.Level) *ir.Expr { return b.intern(e) })
	seen := map[*ir.Expr]bool{}
	eachExpr(out, func(e *ir.Expr, level ir.Level) *ir.Expr {
		b.count(e, nil, level, seen)
		return e
	})
	for e, uses := range b.uses {
		if e.Op == ir.OpCast && e.Type == ir.Index && uses > 1 {
			b.repeated[e.Args[0]] = true
		}
	}
	eachExpr(out, func(e *ir.Expr, _ ir.Level) *ir.Expr { return b.build(e) })
	return out
}

// eachExpr replaces every expression of the sections, with the level it is
// evaluated at.
func eachExpr(sections []*ir.Section, f func(*ir.Expr, ir.Level) *ir.Expr) {
	apply := func(e **ir.Expr, level ir.Level) {
		if *e != nil {
			*e = f(*e, level)
		}
	}
	for _, s := range sections {
		for _, fold := range s.Folds {
			apply(&fold.Where, ir.FullLevel)
			apply(&fold.Body, ir.FullLevel)
			apply(&fold.Index, ir.FullLevel)
		}
		for _, st := range s.Stores {
			apply(&st.Offset, s.Level)
			apply(&st.Guard, s.Level)
			apply(&st.Value, s.Level)
		}
		for _, p := range s.Partials {
			apply(&p.Body, ir.FullLevel)
			apply(&p.Offset, ir.FullLevel)
		}
	}
}

func copySections(in []*ir.Section) []*ir.Section {
	out := make([]*ir.Section, len(in))
	copied := map[*ir.Fold]*ir.Fold{}
	for i, s := range in {
		c := &ir.Section{Level: s.Level, Reverse: s.Reverse}
		for _, f := range s.Folds {
			g := *f
			g.After = copied[f.After]
			copied[f] = &g
			c.Folds = append(c.Folds, &g)
		}
		for _, st := range s.Stores {
			t := *st
			c.Stores = append(c.Stores, &t)
		}
		for _, p := range s.Partials {
			t := *p
			c.Partials = append(c.Partials, &t)
		}
		out[i] = c
	}
	return out
}

// intern returns the one node that represents all nodes equal to e.
func (b *body) intern(e *ir.Expr) *ir.Expr {
	if out, ok := b.interned[e]; ok {
		return out
	}
	out := b.representative(e.WithParts(b.intern))
	b.interned[e], b.interned[out] = out, out
	return out
}

func (b *body) representative(e *ir.Expr) *ir.Expr {
	for _, known := range b.table[e.Hash()] {
		if ir.Equal(known, e) {
			return known
		}
	}
	b.table[e.Hash()] = append(b.table[e.Hash()], e)
	return e
}

// count notes who uses each node and at which level.
func (b *body) count(e, parent *ir.Expr, level ir.Level, seen map[*ir.Expr]bool) {
	b.uses[e]++
	if parent == nil || parent.Op != ir.OpCast || cutsIndex(parent) {
		b.plain[e] = true
	}
	if level == ir.FullLevel {
		b.inFull[e] = true
	}
	if seen[e] {
		return
	}
	seen[e] = true
	eachPart(e, func(part *ir.Expr) { b.count(part, e, b.level(e), seen) })
}

func eachPart(e *ir.Expr, f func(*ir.Expr)) {
	for _, a := range e.Args {
		f(a)
	}
	if e.Guard != nil {
		f(e.Guard)
	}
}

// level is how often the value of e changes.
func (b *body) level(e *ir.Expr) ir.Level {
	if l, ok := b.levels[e]; ok {
		return l
	}
	level := ir.RowLevel
	switch e.Op {
	case ir.OpRange:
		if b.cols[e.Range] {
			level = ir.FullLevel
		}
	case ir.OpLocal:
		level = e.Local.Level
	default:
		eachPart(e, func(part *ir.Expr) { level = max(level, b.level(part)) })
	}
	b.levels[e] = level
	return level
}

// build rewrites e over locals, making those it needs.
func (b *body) build(e *ir.Expr) *ir.Expr {
	if out, ok := b.built[e]; ok {
		return out
	}
	out := b.withParts(e)
	if b.wantsName(e) {
		l := b.lo.local("t", e.Type, b.level(e))
		l.Def, l.Span = out, e.Span
		if v := b.names[e]; v != nil {
			l.Name, l.Value = v.Name, v
		} else if r := algebra.ReadIn(e); r != nil {
			l.Name = r.Arg.Name
		}
		b.locals = append(b.locals, l)
		out = ir.LocalRef(l)
	}
	b.built[e] = out
	return out
}

// wantsName reports whether e becomes a local. Reads do, so that they are issued early and can
// be kept; so does what several expressions use, or an index that stands in several places, and
// what depends on the row alone, which a pass would otherwise compute at every column.
func (b *body) wantsName(e *ir.Expr) bool {
	switch e.Op {
	case ir.OpConst, ir.OpRange, ir.OpSym, ir.OpLocal:
		return false
	case ir.OpRead:
		return b.plain[e]
	case ir.OpRandom, ir.OpRandom16: // so that neighbours can share a block of bits
		return true
	}
	if algebra.ReadIn(e) != nil {
		return !cutsIndex(e)
	}
	if e.Type == ir.Index || indexCondition(e) && !b.dividesOnce(e) || b.readsRunning(e) {
		return false
	}
	return b.uses[e] > 1 || b.repeated[e] || b.level(e) == ir.RowLevel && b.inFull[e] && !constant(e)
}

// cutsIndex reports whether e casts an integer to an index although an index of 32 bits may not
// hold it. What is read then gets a name, which has all of its bits.
func cutsIndex(e *ir.Expr) bool {
	if e.Op != ir.OpCast || e.Type != ir.Index {
		return false
	}
	from := e.Args[0].Type
	return from == ir.U32 || from.Size() == 8 || from.IsFloat()
}

// readsRunning reports whether e reads the running value of a fold. It changes at each point,
// after the point's locals are computed and before they are folded.
func (b *body) readsRunning(e *ir.Expr) bool {
	if known, ok := b.running[e]; ok {
		return known
	}
	found := e.Op == ir.OpLocal && e.Local.Level == ir.FullLevel && e.Local.Def == nil
	eachPart(e, func(part *ir.Expr) { found = found || b.readsRunning(part) })
	b.running[e] = found
	return found
}

// constant reports whether e is made of constants and symbols alone, and so is cheap enough to
// stay in place.
func constant(e *ir.Expr) bool {
	ok := true
	ir.Walk(e, func(e *ir.Expr) bool {
		ok = ok && e.Op != ir.OpRead && e.Op != ir.OpLocal && e.Op != ir.OpRange
		return ok
	})
	return ok && form.CostOf(e).Slots <= 2
}
