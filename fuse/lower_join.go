package fuse

import (
	"maps"
	"slices"
	"strings"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/ir"
)

// joinRanges joins neighbouring loops into one where that leaves no division: x[i, j], read and written
// whole, is then one vector whatever its rank.
func (lo *lowering) joinRanges() {
	accumulated := 0
	for _, r := range lo.k.Rows {
		if lo.r.accumulated[r] {
			accumulated++
		}
	}
	outer := lo.joinAll(lo.k.Rows[:len(lo.k.Rows)-accumulated])
	lo.k.Accumulated = lo.joinAll(lo.k.Rows[len(lo.k.Rows)-accumulated:])
	lo.k.Rows = append(slices.Clone(outer), lo.k.Accumulated...)
	lo.k.Cols = lo.joinAll(lo.k.Cols)
	lo.joinAcross()
}

func (lo *lowering) joinAll(ranges []*ir.Range) []*ir.Range {
	for d := len(ranges) - 2; d >= 0; d-- {
		part := lo.parts[ranges[d]]
		if part != lo.parts[ranges[d+1]] {
			continue
		}
		if t := lo.join(ranges[d], ranges[d+1]); t != nil {
			if part {
				lo.parts[t] = true
			}
			ranges = append(append(append([]*ir.Range(nil), ranges[:d]...), t), ranges[d+2:]...)
		}
	}
	return ranges
}

// join tries t = outer*|inner| + inner in every expression of the kernel. It returns nil, and changes
// nothing, where t would have to be divided again.
func (lo *lowering) join(outer, inner *ir.Range) *ir.Range {
	if lo.splitsWindow(outer, inner) {
		return nil
	}
	return lo.joinWhere(outer, inner, func(now, before *ir.Expr) bool { return algebra.Divisions(now) <= algebra.Divisions(before) })
}

// joinWhere joins two ranges where that leaves each expression, as it is now beside what it was before, as it should be.
func (lo *lowering) joinWhere(outer, inner *ir.Range, fits func(now, before *ir.Expr) bool) *ir.Range {
	extent := ir.Simplify(ir.Apply(ir.OpMul, outer.Extent, inner.Extent), lo.facts)
	t := lo.g.NewRange(joinedName(outer.Name, inner.Name), extent)
	with := map[*ir.Range]*ir.Expr{
		outer: ir.Apply(ir.OpFloorDiv, t.At(), inner.Extent),
		inner: ir.Apply(ir.OpMod, t.At(), inner.Extent),
	}
	roots := lo.roots()
	fresh := make([]*ir.Expr, len(roots))
	for i, root := range roots {
		fresh[i] = ir.Simplify(ir.Substitute(*root.expr, with), lo.inside(root.level))
		if !fits(fresh[i], *root.expr) {
			return nil
		}
	}
	for i, root := range roots {
		*root.expr = fresh[i]
	}
	for r, e := range lo.joined {
		lo.joined[r] = ir.Simplify(ir.Substitute(e, with), lo.facts)
	}
	maps.Copy(lo.joined, with)
	return t
}

// joinedName is both names, or the name of the range that was split into the two.
func joinedName(outer, inner string) string {
	if whole, ok := strings.CutSuffix(outer, highSuffix); ok && inner == whole+lowSuffix {
		return whole
	}
	return outer + inner
}

// joinAcross joins the loops of a pointwise kernel into one although smaller tensors are then read at a quotient or a
// remainder of it: where rows are no whole number of vectors, as planes of 55x55 that a factor for each channel scales,
// vectors run across their ends.
func (lo *lowering) joinAcross() {
	for lo.vectorsAcross() {
		last := len(lo.k.Rows) - 1
		t := lo.joinWhere(lo.k.Rows[last-1], lo.k.Rows[last], func(now, _ *ir.Expr) bool { return lo.wholeAlong(now) })
		if t == nil {
			return
		}
		lo.k.Rows = append(slices.Clone(lo.k.Rows[:last-1]), t)
	}
}

// vectorsAcross reports whether a kernel is pointwise, and its innermost rows are a known number of elements that is no
// whole number of vectors.
func (lo *lowering) vectorsAcross() bool {
	if len(lo.k.Rows) < 2 || len(lo.k.Cols) > 0 || len(lo.folds)+len(lo.partial) > 0 || len(lo.k.Accumulated) > 0 {
		return false
	}
	inner := algebra.Innermost(lo.k.Rows).Extent
	return inner.Op == ir.OpConst && inner.Int > 1 && inner.Int%int64(lo.vector()) != 0 && !lo.gathers()
}

// wholeAlong reports whether an expression over a joined range reads large tensors element by element along it, and
// computes nothing but the places of smaller ones from quotients.
func (lo *lowering) wholeAlong(e *ir.Expr) bool {
	whole := true
	var walk func(e *ir.Expr)
	walk = func(e *ir.Expr) {
		if e.Op == ir.OpRead {
			whole = whole && (algebra.Divisions(e.Args[0]) == 0 || lo.smallArg(e.Arg))
			return
		}
		whole = whole && e.Op != ir.OpFloorDiv && e.Op != ir.OpMod
		for _, a := range e.Args {
			walk(a)
		}
	}
	walk(e)
	return whole
}

// smallArg reports whether a tensor is so much smaller than the loops that the cache holds what vectors read of it again.
func (lo *kernel) smallArg(a *ir.Arg) bool {
	const shared = 8 // points of the loops for each element
	return !a.Write && shared*algebra.PointsAt(a.Buffer.Value.Axes, lo.sizes) <= algebra.PointsAt(lo.k.Rows, lo.sizes)
}
