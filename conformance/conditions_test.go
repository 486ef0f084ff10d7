package conformance

import (
	"testing"

	"github.com/fusec/fusec/ir"
)

// dividingConditions are rows under conditions of their own that divide indices, which are computed once for the row.
var dividingConditions = []row{
	{name: "a remainder", src: `graph g(x: f32[N, M], z: f32[P]) -> (y: f32[N, M], w: f32[P]) {
		a = where(iota(N)[:, none] > 0 && iota(N)[:, none] % P < 3, x, 0)
		y = a / sum(a, keep=true, axis=1)
		w = z }`, sizes: [][]int64{{20, 33, 7}, {11, 132, 4}, {3, 5, 1}}},
	{name: "a quotient, beside a read that it guards", src: `graph g(x: f32[N, M], z: f32[P, M]) -> (y: f32[N, M]) {
		a[i, j] = x[i, j] + (z[i / 3, j] else 0)
		y = where(iota(N)[:, none] / 3 < P, a, 1) * max(a, keep=true, axis=1) }`, sizes: [][]int64{{20, 33, 4}, {11, 132, 9}, {3, 5, 1}}},
}

// TestDividingConditions runs them on simulated devices.
func TestDividingConditions(t *testing.T) {
	t.Parallel()
	onSimulators(t, ir.RowPersistent, dividingConditions, 5)
}
