package fuse

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
)

func TestSortPlans(t *testing.T) {
	for name, src := range programsNamed(t, "sort_") {
		t.Run(name, func(t *testing.T) { compareAtSizes(t, src) })
	}
}

// TestSortKernels: what picks from one order shares its kernel, with what comes
// after at the same place; other orders do not.
func TestSortKernels(t *testing.T) {
	for src, want := range map[string]int{
		`graph g(x: f32[N, M]) -> (y: f32[N, 5], i: i64[N, 5]) { y, i = topk(x, 5) }`:                             1,
		`graph g(x: f32[N, M]) -> (y: f32[N, M], i: i64[N, M]) { y = exp(sort(x) * 2); i = argsort(x) + 1 }`:      1,
		`graph g(x: f32[N, M]) -> (y: f32[N, M], i: i64[N, M]) { y = sort(x); i = argsort(x, descending=true) }`:  2,
		`graph g(x: f32[N, M]) -> (y: f32[N, M], i: i64[N, M]) { y = sort(x); i = argsort(x * 2) }`:               2,
		`graph g(x: f32[N, M]) -> (y: f32[N, M], i: i64[N, 5]) { y = sort(x); v, i = topk(x, 5, largest=false) }`: 2,
		`graph g(x: f32[N, M], z: f32[N, M]) -> (y: f32[N, M]) { y = sort(x + z) * z }`:                           1,
		`graph g(x: f32[N, M]) -> (y: f32[N, M], z: f32[N, M]) { y = sort(x); z = x * 2 }`:                        2,
		`graph g(x: f32[N, M]) -> (y: f32[N]) { y = sum(sort(x)[:, :4], axis=-1) }`:                               2,
		`graph g(x: f32[N, M]) -> (y: f32[N]) { y = sum(sort(x) * 2, axis=-1) }`:                                  2,
	} {
		p := planOf(t, src)
		require.Len(t, p.Kernels, want, src)
		assert.Equal(t, ir.SortTemplate, p.Kernels[0].Template, src)
		compareAtSizes(t, src)
	}
}
