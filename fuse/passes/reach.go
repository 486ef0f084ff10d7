package passes

import (
	"math"
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// Bounds of the values of floats. A pass that moves a factor out of a sum asks whether the factor may be
// infinite. With an infinite factor, terms of 0, or of both signs, make the sum NaN. The factor times the
// sum of the rest would lose that.

// reach is bounds of a float, both included. The float may also be NaN.
type reach struct{ low, high float64 }

var anywhere = reach{math.Inf(-1), math.Inf(1)}

// finite reports whether no number within the bounds is infinite.
func (r reach) finite() bool { return !math.IsInf(r.low, 0) && !math.IsInf(r.high, 0) }

// nonzero reports whether 0 is not within the bounds.
func (r reach) nonzero() bool { return r.low > 0 || r.high < 0 }

// infinite reports whether all within the bounds is infinite, or the largest number of type t.
func (r reach) infinite(t ir.DType) bool { return r.low >= t.Info().Max || r.high <= -t.Info().Max }

func (r reach) union(s reach) reach { return reach{math.Min(r.low, s.low), math.Max(r.high, s.high)} }

// reaches finds the reach of expressions over a graph's values.
type reaches struct {
	facts  ir.Facts
	exprs  map[*ir.Expr]reach
	values map[*ir.Value]reach
	needs  map[*ir.Value][]*ir.Range // ranges that must have points for a value's reach to hold
}

func newReaches(g *ir.Graph) *reaches {
	return &reaches{facts: g.Facts(), exprs: map[*ir.Expr]reach{}, values: map[*ir.Value]reach{}, needs: map[*ir.Value][]*ir.Range{}}
}

// safe reports whether a factor of a sum's terms may multiply the sum of v instead, because it is never
// infinite. Ranges that this depends on must have the same extents as some of v's own: where these have no
// points, v has no elements or no terms.
func (rs *reaches) safe(v *ir.Value, f factor) bool {
	r := rs.expr(f.e)
	if f.divide && !r.nonzero() || !f.divide && !r.finite() {
		return false
	}
	if r.low == 0 && r.high == 0 || f.divide && r.infinite(f.e.Type) {
		return false // terms of 0 are 0, but their sum without the factor may leave the range of its type
	}
	own := algebra.AllRanges(v)
	for _, l := range ir.Loads(f.e) {
		for _, need := range rs.needs[l.From] {
			if !longer(need.Extent, 0) && !sameExtent(need, own) {
				return false
			}
		}
	}
	return true
}

func longer(extent *ir.Expr, n int64) bool { return extent.Op == ir.OpConst && extent.Int > n }

func sameExtent(r *ir.Range, list []*ir.Range) bool {
	for _, s := range list {
		if ir.SameSize(r.Extent, s.Extent) {
			return true
		}
	}
	return false
}

// expr is the reach of an expression, rounded to its type: beyond the largest number is infinity, and what
// is below the smallest normal number may become 0.
func (rs *reaches) expr(e *ir.Expr) reach {
	r, known := rs.exprs[e]
	if !known {
		r = withinType(rs.node(e), e.Type)
		rs.exprs[e] = r
	}
	return r
}

func withinType(r reach, t ir.DType) reach {
	if r.low != r.low || r.high != r.high { // the operation was on an infinity and 0, or on two infinities
		return anywhere
	}
	info := t.Info()
	if !t.IsFloat() || t == ir.F8E4M3 { // F8E4M3 has no infinity
		r = reach{math.Max(r.low, -info.Max-1), math.Min(r.high, info.Max)}
	}
	if !t.IsFloat() {
		return r
	}
	least := 4 / info.Max
	switch {
	case r.low > info.Max:
		r.low = info.Max
	case r.low < -info.Max:
		r.low = math.Inf(-1)
	case r.low > 0 && r.low < least:
		r.low = 0
	}
	switch {
	case r.high < -info.Max:
		r.high = -info.Max
	case r.high > info.Max:
		r.high = math.Inf(1)
	case r.high < 0 && -r.high < least:
		r.high = 0
	}
	return r
}

func (rs *reaches) node(e *ir.Expr) reach {
	switch e.Op {
	case ir.OpConst:
		switch {
		case !e.Type.IsFloat():
			return reach{float64(e.Int), float64(e.Int)}
		case e.Val != e.Val:
			return anywhere
		}
		return reach{e.Val, e.Val}
	case ir.OpLoad:
		r := rs.value(e.From)
		if e.Fill != nil {
			r = r.union(rs.expr(e.Fill))
		}
		return r
	case ir.OpSym, ir.OpRange:
		return reach{0, math.Inf(1)}
	case ir.OpSelect:
		return rs.expr(e.Args[1]).union(rs.expr(e.Args[2]))
	case ir.OpCast:
		r := rs.expr(e.Args[0])
		if e.Type.IsFloat() || !e.Args[0].Type.IsFloat() && r == withinType(r, e.Type) {
			return r
		}
		return anywhere
	}
	if !e.Type.IsFloat() && e.Op != ir.OpMin && e.Op != ir.OpMax { // because integers wrap
		return anywhere
	}
	args := make([]reach, len(e.Args))
	for i, a := range e.Args {
		args[i] = rs.expr(a)
	}
	return rs.operation(e, args)
}

// operation is the reach of an operation on floats.
func (rs *reaches) operation(e *ir.Expr, args []reach) reach {
	x := args[0]
	switch e.Op {
	case ir.OpTanh, ir.OpErf, ir.OpSin, ir.OpCos, ir.OpSign:
		return reach{-1, 1}
	case ir.OpErfc:
		return reach{0, 2}
	case ir.OpNeg:
		return reach{-x.high, -x.low}
	case ir.OpAbs:
		return x.magnitude()
	case ir.OpExp:
		return reach{math.Exp(x.low), math.Exp(x.high)}
	case ir.OpExp2:
		return reach{math.Exp2(x.low), math.Exp2(x.high)}
	case ir.OpSqrt:
		return reach{math.Sqrt(math.Max(x.low, 0)), math.Sqrt(math.Max(x.high, 0))}
	case ir.OpRsqrt:
		return over(reach{1, 1}, reach{math.Sqrt(math.Max(x.low, 0)), math.Sqrt(math.Max(x.high, 0))})
	case ir.OpRecip:
		return over(reach{1, 1}, x)
	}
	if len(args) != 2 {
		return anywhere
	}
	y := args[1]
	switch e.Op {
	case ir.OpAdd:
		return reach{x.low + y.low, x.high + y.high}
	case ir.OpSub:
		return reach{x.low - y.high, x.high - y.low}
	case ir.OpMul:
		r := times2(x, y)
		if ir.Equal(e.Args[0], e.Args[1]) {
			r.low = math.Max(r.low, 0)
		}
		return r
	case ir.OpDiv:
		return over(x, y)
	case ir.OpMin:
		return reach{math.Min(x.low, y.low), math.Min(x.high, y.high)}
	case ir.OpMax:
		return reach{math.Max(x.low, y.low), math.Max(x.high, y.high)}
	}
	return anywhere
}

// magnitude is the reach of absolute values.
func (r reach) magnitude() reach {
	low := 0.0
	if r.nonzero() {
		low = math.Min(math.Abs(r.low), math.Abs(r.high))
	}
	return reach{low, math.Max(math.Abs(r.low), math.Abs(r.high))}
}

// times2 is the reach of products. 0 times infinity is NaN, so it adds nothing.
func times2(x, y reach) reach {
	out := reach{math.Inf(1), math.Inf(-1)}
	for _, a := range []float64{x.low, x.high} {
		for _, b := range []float64{y.low, y.high} {
			p := a * b
			if p != p {
				p = 0
			}
			out = out.union(reach{p, p})
		}
	}
	return out
}

// over is the reach of quotients.
func over(x, y reach) reach {
	switch {
	case y.nonzero():
		return times2(x, reach{1 / y.high, 1 / y.low})
	case x.low >= 0 && y.low >= 0:
		return reach{0, math.Inf(1)}
	}
	return anywhere
}

// value is the reach of a value's elements.
func (rs *reaches) value(v *ir.Value) reach {
	if r, ok := rs.values[v]; ok {
		return r
	}
	r := anywhere
	if v.Body != nil {
		r = rs.expr(v.Body)
		if v.Reduce != nil {
			r = rs.reduction(v, r)
		}
		for _, l := range v.Loads() {
			for _, need := range rs.needs[l.From] {
				if !slices.Contains(rs.needs[v], need) {
					rs.needs[v] = append(rs.needs[v], need)
				}
			}
		}
	}
	if len(rs.needs[v]) > mostNeeds {
		r, rs.needs[v] = anywhere, nil
	}
	rs.values[v] = withinType(r, v.Type)
	return rs.values[v]
}

// mostNeeds is the most ranges that a reach may depend on.
const mostNeeds = 8

// mostTerms is above the number of terms that any reduction has.
const mostTerms = 1 << 63

// reduction is the reach of a reduction of elements with the given reach.
func (rs *reaches) reduction(v *ir.Value, of reach) reach {
	switch v.Reduce.Op {
	case ir.Sum:
		if rs.sumsWeights(v) {
			rs.needs[v] = slices.Clone(v.Reduce.Ranges)
			return reach{1, mostTerms}
		}
		all := times2(of, reach{0, mostTerms})
		return reach{0, 0}.union(all)
	case ir.Max:
		return reach{math.Inf(-1), of.high}
	case ir.Min:
		return reach{of.low, math.Inf(1)}
	case ir.Prod:
		return anywhere
	}
	return of
}

// sumsWeights reports whether v sums exp(c*(x - m)) with c > 0, where m is the largest x over the same
// ranges. Then one term is 1 and none is larger. A row whose largest x is infinite gives NaN.
func (rs *reaches) sumsWeights(v *ir.Value) bool {
	e := unnamed(v.Body)
	if v.Reduce.Where != nil || e.Op != ir.OpExp {
		return false
	}
	gap := unnamed(e.Args[0])
	for (gap.Op == ir.OpMul || gap.Op == ir.OpDiv) && gap.Args[1].Op == ir.OpConst && gap.Args[1].Val > 0 {
		gap = unnamed(gap.Args[0])
	}
	if gap.Op != ir.OpSub {
		return false
	}
	m := unnamed(gap.Args[1])
	if m.Op != ir.OpLoad || m.From.Reduce == nil || m.From.Reduce.Op != ir.Max || m.From.Reduce.Where != nil ||
		m.From.Reduce.Rank != nil || m.Fill != nil || algebra.DependsOnAny(m, algebra.RangeSet(v.Reduce.Ranges)) {
		return false
	}
	return form.SameAt(form.Stripped(gap.Args[0]), form.Stripped(m.From.Body), m, v.Reduce.Ranges, rs.facts)
}

// unnamed is e without float conversions. Where it loads a value that is computed point by point, it is
// that value's definition.
func unnamed(e *ir.Expr) *ir.Expr {
	for {
		e = form.Stripped(e)
		if e.Op != ir.OpLoad || e.From.Body == nil || e.From.Reduce != nil || e.Fill != nil {
			return e
		}
		e = form.BodyAt(e)
	}
}
