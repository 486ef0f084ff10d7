package fuse

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/fusec/fusec/ir"
)

// TestByteMappings: by size, type and order of the operands, which kernels a product of
// 8-bit operands becomes; and that what they compute is what the program says.
func TestByteMappings(t *testing.T) {
	const f8 = "graph g(x: f8e4m3[M, K], w: f8e4m3[N, K]) -> (y: f32[M, N]) { y = f32(x) @ transpose(f32(w)) }"
	const i8 = "graph g(x: i8[M, K], w: i8[N, K]) -> (y: i64[M, N]) { y = i32(x) @ transpose(i32(w)) }"
	const plain = "graph g(x: f8e5m2[M, K], w: f8e5m2[K, N]) -> (y: f32[M, N]) { y = f32(x) @ f32(w) }"
	for _, test := range []struct {
		src     string
		m, n, k int64
		want    string
	}{
		{f8, 4096, 4096, 4096, "warpgroup"},
		{f8, 4096, 4096, 4095, "split-k"},
		{f8, 16, 4096, 4096, "split-k"},
		{strings.Replace(f8, "w: f8e4m3", "w: f8e5m2", 1), 4096, 4096, 4096, "split-k"},
		{strings.Replace(f8, "graph", "@strict graph", 1), 4096, 4096, 4096, "split-k"},
		{plain, 4096, 4096, 4096, "tile warpgroup"},
		{"@bench(M=16) " + plain, 4096, 4096, 4096, "split-k"},
		{i8, 4096, 4096, 4096, "warpgroup"},
		{i8, 64, 64, 131056, "warpgroup"},
		{i8, 64, 64, 131072, "split-k"},
		{strings.ReplaceAll(i8, "i32(", "i16("), 4096, 4096, 4096, "warpgroup"},
		{strings.ReplaceAll(i8, "i32(", "("), 4096, 4096, 4096, "row"}, // which wraps
		{strings.Replace(i8, "x: i8", "x: u8", 1), 4096, 4096, 4096, "split-k"},
	} {
		var got []string
		for _, k := range planOf(t, test.src).Kernels {
			v := variantAt(t, &ir.Plan{Kernels: []*ir.Kernel{k}}, map[string]int64{"M": test.m, "N": test.n, "K": test.k})
			got = append(got, v.Schedule.Mapping.String())
		}
		assert.Equal(t, test.want, strings.Join(got, " "), "%+v", test)
	}
	for _, src := range []string{f8, i8, plain} {
		compareAtSizes(t, src)
	}
}
