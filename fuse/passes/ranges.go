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
		f := fitting{g: g, v: v, facts: facts, size: length}
		for r, _ := f.split(); r != nil; r, _ = f.split() {
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
	size  func(*ir.Expr) int // of an expression, which other ranges are to lessen

	inside bool // whether ranges are cut for where they have an index, so that each factor of their extents is at least 1
}

// split cuts a range in two where the index r becomes quotients and remainders by one size, and that leaves
// fewer of them. By its own size there is nothing to cut off: kernels have no ranges of one index. It returns
// the range and what that became; nil where there is none to be cut.
func (f *fitting) split() (r *ir.Range, parts []*ir.Range) {
	for i, r := range f.v.Reduce.Ranges {
		for _, n := range f.divisors(r) {
			parts := f.cut(r, n)
			if parts == nil {
				continue
			}
			ranges := slices.Replace(slices.Clone(f.v.Reduce.Ranges), i, i+1, parts...)
			if f.replace(ranges, map[*ir.Range]*ir.Expr{r: placeOfDigits(parts)}) {
				return r, parts
			}
		}
	}
	return nil, nil
}

// cut is a range in two, the inner one of n points; nil where that is no whole number of parts, or one.
func (f *fitting) cut(r *ir.Range, n *ir.Expr) []*ir.Range {
	facts := f.facts
	if f.inside {
		facts.Within = []*ir.Range{r}
	}
	groups := ir.Simplify(ir.Apply(ir.OpFloorDiv, r.Extent, n), facts)
	if groups.IsConst(1) || !ir.SameIndex(ir.Apply(ir.OpMul, groups, n), r.Extent, facts) {
		return nil
	}
	return []*ir.Range{f.g.NewRange(r.Name, groups), f.g.NewRange(r.Name, n)}
}

// placeOfDigits is the index of a range over those that it was cut into, the outermost first.
func placeOfDigits(parts []*ir.Range) *ir.Expr {
	at := parts[0].At()
	for _, r := range parts[1:] {
		at = ir.Apply(ir.OpAdd, ir.Apply(ir.OpMul, at, r.Extent), r.At())
	}
	return at
}

// join makes one range of two neighbours where they are only read as one. It reports whether it has.
func (f *fitting) join() bool {
	ranges := f.v.Reduce.Ranges
	for i := range ranges[:len(ranges)-1] {
		outer, inner := ranges[i], ranges[i+1]
		whole := f.g.NewRange(outer.Name, ir.Simplify(ir.Apply(ir.OpMul, outer.Extent, inner.Extent), f.facts))
		joined := slices.Replace(slices.Clone(ranges), i, i+2, whole)
		if f.replace(joined, ir.Digits([]*ir.Range{outer, inner}, whole.At())) {
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

// replace gives the reduction other ranges, and expressions of them, or of new axes, in place of those that there were. It
// changes nothing unless that makes the value's expressions smaller, and none of them has more divisions.
func (f *fitting) replace(ranges []*ir.Range, with map[*ir.Range]*ir.Expr) bool {
	facts := f.facts
	facts.Within = slices.Concat(f.v.Axes, ranges)
	fresh := map[*ir.Expr]*ir.Expr{}
	before, after := 0, 0
	fits := true
	for _, e := range f.exprs() {
		n := ir.Simplify(ir.Substitute(e, with), facts)
		fits = fits && algebra.Divisions(n) <= algebra.Divisions(e)
		before, after = before+f.size(e), after+f.size(n)
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
