package conformance

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime/simtest"
)

// inverses are programs that ask at which place of an order each element stands, by the order of the order: as results in either
// order of axes, read by what follows beside the order itself, taken three times, and of which only a part or the descending order
// is wanted, which is no inverse.
var inverses = rowsOf(map[string]string{
	"results":   `x: f32[N, M]) -> (at: i64[N, M], place: i64[N, M]) { at = argsort(x); place = argsort(at) }`,
	"alone":     `x: f16[N, M]) -> (place: i64[M, N]) { place = transpose(argsort(argsort(x * 2, descending=true)), 0, 1) }`,
	"back":      `x: f32[N, M]) -> (y: f32[N, M]) { at = argsort(x); y = gather(cumsum(gather(x, at)), argsort(at)) }`,
	"beside":    `x: i32[N, M], z: f32[N, M]) -> (y: f32[N, M]) { at = argsort(x, axis=0); y = gather(z, at, axis=0) * f32(argsort(at, axis=0)) }`,
	"thrice":    `x: i64[N, M]) -> (at: i64[N, M], y: f64[N, M]) { at = argsort(argsort(argsort(x))); y = f64(at) + f64(x) }`,
	"long keys": `x: f64[N, M]) -> (at: i64[N, M], y: i64[N, M]) { at = argsort(x); y = argsort(at) * 2 + 1 }`,
	"a part":    `x: f32[N, M]) -> (y: i64[N, 3], z: i64[N, M]) { at = argsort(x); y = argsort(at[:, :3]); z = argsort(at, descending=true) }`,
}, func(_, program string) string { return "graph g(" + program })

// inverseFamilies are inverses of orders, of elements of which many are equal.
func inverseFamilies() []family {
	return []family{{name: "inverses of orders", rows: inverses, symbols: []string{"N", "M"}, sizes: [][]int64{{2, 3}, {3, 33}, {2, 700}, {1, 9000}},
		fill: Integers(-40, 40), exact: identical, on: append(races([][]int64{{3, 33}, {2, 700}}), pass{engine: "cpu"}, pass{engine: "gpu"}),
		compile: onAll(true, "sm_90a", "sm_80")}}
}

// TestInversesOfLongRows runs rows that blocks sort in pieces and then merge on a simulated device.
func TestInversesOfLongRows(t *testing.T) {
	t.Parallel()
	dev := openSimulated(t, simtest.Config{Arch: "sm_90a"})
	merged := func(v *ir.Variant) bool { return v.Strategy == ir.SortMerge }
	var rows []row
	for _, r := range inverses {
		if r.name == "results" || r.name == "back" {
			r.sizes = [][]int64{{2, 16500}}
			rows = append(rows, r)
		}
	}
	require.Greater(t, forVariants(t, dev, merged, rows), 1)
}
