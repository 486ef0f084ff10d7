package fuse

import (
	"maps"
	"slices"
	"strings"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/ir"
)

// joinRanges joins neighbouring loops into one if that needs no division. A tensor x[i, j] that is read
// and written whole is then one long row, whatever its rank.
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
}

func (lo *lowering) joinAll(ranges []*ir.Range) []*ir.Range {
	for d := len(ranges) - 2; d >= 0; d-- {
		part := lo.parts[ranges[d]]
		if part != lo.parts[ranges[d+1]] {
			continue
		}
		if t := lo.join(ranges[d], ranges[d+1], nil); t != nil {
			if part {
				lo.parts[t] = true
			}
			ranges = append(append(append([]*ir.Range(nil), ranges[:d]...), t), ranges[d+2:]...)
		}
	}
	return ranges
}

// join replaces outer*|inner| + inner by a new range t in every expression of the kernel. It returns
// nil, and changes nothing, if t would have to be divided to give outer or inner, but in expressions that may divide.
func (lo *lowering) join(outer, inner *ir.Range, may func(*ir.Expr) bool) *ir.Range {
	if lo.splitsWindow(outer, inner) {
		return nil
	}
	extent := ir.Simplify(ir.Apply(ir.OpMul, outer.Extent, inner.Extent), lo.facts)
	t := lo.g.NewRange(joinedName(outer.Name, inner.Name), extent)
	with := ir.Digits([]*ir.Range{outer, inner}, t.At())
	roots := lo.roots()
	fresh := make([]*ir.Expr, len(roots))
	for i, root := range roots {
		fresh[i] = ir.Simplify(ir.Substitute(*root.expr, with), lo.inside(root.level))
		if algebra.Divisions(fresh[i]) > algebra.Divisions(*root.expr) && (may == nil || !may(*root.expr)) {
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
