package passes

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// A largeProduct says how large a product has to be for something: the least rows of each side, terms of a sum, results and
// multiplications; 0 for any number.
type largeProduct struct{ rows, depth, points, work int64 }

// A least is the least points of some ranges of a product.
type least struct {
	what   string // the ranges, in words
	ranges []*ir.Range
	n      int64
}

// limits are what a product of two sides has to have at least.
func (l largeProduct) limits(v *ir.Value, a, b *ir.Expr) (out []least) {
	rows, columns, batch := productAxes(v, form.AxesIn(v, a), form.AxesIn(v, b))
	points := slices.Concat(batch, rows, columns)
	for _, limit := range []least{
		{"rows and columns", rows, l.rows},
		{"rows and columns", columns, l.rows},
		{"results", points, l.points},
		{"terms of a sum", v.Reduce.Ranges, l.depth},
		{"multiplications", slices.Concat(points, v.Reduce.Ranges), l.work},
	} {
		if limit.n > 0 {
			out = append(out, limit)
		}
	}
	return out
}

// holds reports whether a product of two sides is so large at some sizes.
func (l largeProduct) holds(v *ir.Value, a, b *ir.Expr, sizes map[string]int64) bool {
	_, lacks := l.lacks(v, a, b, sizes)
	return !lacks
}

// lacks is the first limit that a product of two sides does not reach at some sizes.
func (l largeProduct) lacks(v *ir.Value, a, b *ir.Expr, sizes map[string]int64) (limit least, lacks bool) {
	limits := l.limits(v, a, b)
	i := slices.IndexFunc(limits, func(o least) bool { return algebra.PointsAt(o.ranges, sizes) < float64(o.n) })
	if i < 0 {
		return least{}, false
	}
	return limits[i], true
}

// at is the condition on the sizes that a product of two sides is so large; nil where it always is.
func (l largeProduct) at(v *ir.Value, a, b *ir.Expr) (when *ir.Expr) {
	for _, limit := range l.limits(v, a, b) {
		n := ir.Simplify(algebra.Product(limit.ranges), ir.Facts{})
		when = algebra.And(when, ir.Simplify(ir.Apply(ir.OpLe, ir.IntConst(limit.n), n), ir.Facts{}))
	}
	return when
}
