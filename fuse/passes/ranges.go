package passes

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// fitRanges gives reductions the ranges of the tensor that they read. After a reshape, a reduction reads
// t[c / 3, c % 3, p*W + q]. With two ranges in place of c, and one in place of p and q, it reads t[i, j, k],
// and can join the kernel that computes t. The order of the elements stays the same. Products keep their
// ranges, because both operands have them.
func fitRanges(g *ir.Graph) {
	facts := g.Facts()
	for _, v := range g.Values {
		if v.Reduce == nil || v.Reduce.Rank != nil || form.Crosses(v) {
			continue
		}
		f := fitting{g, v, facts}
		for f.split() {
		}
		for f.join() {
		}
	}
}

// fitting is a reduction that gets other ranges.
type fitting struct {
	g     *ir.Graph
	v     *ir.Value
	facts ir.Facts
}

// split cuts a range in two where the index r becomes quotients and remainders by one size, and that leaves
// fewer of them. By its own size there is nothing to cut off: kernels have no ranges of one index. It reports
// whether it has.
func (f *fitting) split() bool {
	for i, r := range f.v.Reduce.Ranges {
		for _, n := range f.divisors(r) {
			groups := ir.Simplify(ir.Apply(ir.OpFloorDiv, r.Extent, n), f.facts)
			if groups.IsConst(1) || !ir.SameIndex(ir.Apply(ir.OpMul, groups, n), r.Extent, f.facts) {
				continue
			}
			outer, inner := f.g.NewRange(r.Name, groups), f.g.NewRange(r.Name, n)
			at := ir.Apply(ir.OpAdd, ir.Apply(ir.OpMul, outer.At(), n), inner.At())
			if f.replace(i, 1, []*ir.Range{outer, inner}, map[*ir.Range]*ir.Expr{r: at}) {
				return true
			}
		}
	}
	return false
}

// join makes one range of two neighbours where they are only read as one. It reports whether it has.
func (f *fitting) join() bool {
	ranges := f.v.Reduce.Ranges
	for i := range ranges[:len(ranges)-1] {
		outer, inner := ranges[i], ranges[i+1]
		whole := f.g.NewRange(outer.Name, ir.Simplify(ir.Apply(ir.OpMul, outer.Extent, inner.Extent), f.facts))
		if f.replace(i, 2, []*ir.Range{whole}, ir.Digits([]*ir.Range{outer, inner}, whole.At())) {
			return true
		}
	}
	return false
}

// divisors are the sizes by which the index r is divided.
func (f *fitting) divisors(r *ir.Range) (out []*ir.Expr) {
	for _, e := range f.exprs() {
		ir.Walk(e, func(e *ir.Expr) bool {
			if (e.Op == ir.OpFloorDiv || e.Op == ir.OpMod) && e.Args[0].Op == ir.OpRange && e.Args[0].Range == r &&
				len(ir.FreeRanges(e.Args[1])) == 0 && !slices.ContainsFunc(out, func(n *ir.Expr) bool { return ir.Equal(n, e.Args[1]) }) {
				out = append(out, e.Args[1])
			}
			return true
		})
	}
	return out
}

// exprs are the value's expressions.
func (f *fitting) exprs() (out []*ir.Expr) {
	f.v.MapExprs(func(e *ir.Expr) *ir.Expr {
		out = append(out, e)
		return e
	})
	return out
}

// replace puts ranges in place of count others from position i on, and expressions of them in place of
// those. It changes nothing unless that makes the value's expressions shorter, and none of them has more
// divisions.
func (f *fitting) replace(i, count int, by []*ir.Range, with map[*ir.Range]*ir.Expr) bool {
	ranges := slices.Replace(slices.Clone(f.v.Reduce.Ranges), i, i+count, by...)
	facts := f.facts
	facts.Within = slices.Concat(f.v.Axes, ranges)
	fresh := map[*ir.Expr]*ir.Expr{}
	before, after := 0, 0
	fits := true
	for _, e := range f.exprs() {
		n := ir.Simplify(ir.Substitute(e, with), facts)
		fits = fits && algebra.Divisions(n) <= algebra.Divisions(e)
		before, after = before+length(e), after+length(n)
		fresh[e] = n
	}
	if !fits || after >= before {
		return false
	}
	f.v.MapExprs(func(e *ir.Expr) *ir.Expr { return fresh[e] })
	r := *f.v.Reduce
	r.Ranges = ranges
	f.v.Reduce = &r
	return true
}

// length is the different nodes of an expression.
func length(e *ir.Expr) int {
	seen := map[uint64]bool{}
	ir.Walk(e, func(e *ir.Expr) bool {
		seen[e.Hash()] = true
		return true
	})
	return len(seen)
}
