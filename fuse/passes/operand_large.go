package passes

import (
	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// A largeProduct says how large a product has to be for something: the least rows of each side, terms of a sum, results and
// multiplications; 0 for any number.
type largeProduct struct{ rows, depth, points, work int64 }

// holds reports whether a product of two sides is so large at some sizes.
func (l largeProduct) holds(v *ir.Value, a, b *ir.Expr, sizes map[string]int64) bool {
	rows, columns, batch := productAxes(v, form.AxesIn(v, a), form.AxesIn(v, b))
	m, n, k := algebra.PointsAt(rows, sizes), algebra.PointsAt(columns, sizes), algebra.PointsAt(v.Reduce.Ranges, sizes)
	points := algebra.PointsAt(batch, sizes) * m * n
	return min(m, n) >= float64(l.rows) && points >= float64(l.points) && k >= float64(l.depth) && points*k >= float64(l.work)
}

// at is the condition on the sizes that a product of two sides is so large; nil where it always is.
func (l largeProduct) at(v *ir.Value, a, b *ir.Expr) (when *ir.Expr) {
	rows, columns, batch := productAxes(v, form.AxesIn(v, a), form.AxesIn(v, b))
	least := func(n *ir.Expr, least int64) {
		if least > 0 {
			when = algebra.And(when, ir.Simplify(ir.Apply(ir.OpLe, ir.IntConst(least), ir.Simplify(n, ir.Facts{})), ir.Facts{}))
		}
	}
	m, n, k := algebra.Product(rows), algebra.Product(columns), algebra.Product(v.Reduce.Ranges)
	points := ir.Apply(ir.OpMul, algebra.Product(batch), ir.Apply(ir.OpMul, m, n))
	least(m, l.rows)
	least(n, l.rows)
	least(points, l.points)
	least(k, l.depth)
	least(ir.Apply(ir.OpMul, points, k), l.work)
	return when
}
