package fuse

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
)

// Products in f32 take the tiles and splits that cost the least, and add up their sums in
// runs where shared memory holds totals beside the tiles.
func TestTilesOfMultiplyAdds(t *testing.T) {
	const src = "@onekernel graph g(a: f32[M, K], b: f32[K, N]) -> (y: f32[M, N]) { y = a @ b }"
	for _, test := range []struct {
		device  string
		m, n, k int64
		want    string
	}{
		{"sm_90a", 4096, 4096, 4096, "128x128, splits 0, run 0"},
		{"sm_90a", 4096, 4096, 4100, "128x128, splits 0, run 1024"},
		{"sm_90a", 2047, 2047, 8191, "128x128, splits 0, run 1024"},
		{"sm_90a", 2048, 1024, 4096, "128x128, splits 2, run 1024"},
		{"sm_90a", 1024, 1024, 8192, "64x128, splits 2, run 128"},
		{"sm_90a", 1536, 1536, 4096, "64x128, splits 2, run 128"},
		{"sm_90a", 512, 512, 8192, "64x128, splits 6, run 128"},
		{"sm_90a", 128, 4096, 4096, "64x128, splits 8, run 128"},
		{"sm_90a", 32, 4096, 4096, "32x128, splits 8, run 128"},
		{"sm_90a", 16, 8192, 8192, "16x128, splits 4, run 128"},
		{"sm_90a", 8192, 16, 8192, "128x16, splits 4, run 128"},
		{"sm_90a", 256, 256, 4096, "64x128, slices 33, run 128"},
		{"sm_90a", 256, 256, 2048, "32x64, splits 8, run 128"},
		{"sm_90a", 256, 256, 65536, "128x128, slices 66, run 1024"},
		{"sm_90a", 1025, 971, 2949, "128x128, slices 7, run 1024"},
		{"sm_90a", 64, 1000, 20000, "64x128, slices 33, run 128"},
		{"sm_90a", 1000, 64, 20000, "128x64, slices 33, run 128"},
		{"sm_90a", 130, 256, 30000, "64x128, slices 44, run 128"}, // large tiles would be mostly padding
		{"sm_90a", 16, 64, 1000000, "16x128, slices 396, run 128"},
		{"sm_90a", 32, 64, 20000, "32x64, slices 156, run 128"},
		{"sm_90a", 204800, 48, 512, "128x64, splits 0, run 128"},
		{"sm_90a", 204800, 32, 512, "128x32, splits 0, run 128"},
		{"sm_90a", 17, 204800, 512, "32x128, splits 0, run 128"},
		{"sm_90a", 204800, 65, 512, "128x128, splits 0, run 0"},
		{"sm_90a", 204801, 43, 383, "128x64, splits 0, run 128"}, // elements are copied one by one
		{"sm_90a", 204801, 31, 383, "128x32, splits 0, run 128"},
		{"sm_90a", 204801, 67, 383, "128x128, splits 0, run 0"},
		{"sm_90a", 204801, 11, 129, "128x16, splits 4, run 128"},
		{"sm_90a", 204801, 11, 127, "128x16, splits 0, run 128"}, // no split has a whole stage
		{"sm_80", 4096, 4096, 8192, "128x128, splits 0, run 0"},
		{"sm_80", 1024, 1024, 8192, "128x128, slices 4, run 0"},
	} {
		d, err := ir.DeviceNamed(test.device)
		require.NoError(t, err)
		plan, err := Plan(parse(t, src), Options{Device: d})
		require.NoError(t, err)
		sizes := map[string]int64{"M": test.m, "N": test.n, "K": test.k}
		v := variantAt(t, plan, sizes)
		s := v.Schedule
		got := fmt.Sprintf("%dx%d, splits %d, run %d", s.TileM, s.TileN, s.Cluster, s.Run)
		if v.Contract.Slices != nil {
			slices, _ := ir.EvalSize(v.Contract.Slices, sizes)
			got = fmt.Sprintf("%dx%d, slices %d, run %d", s.TileM, s.TileN, slices, s.Run)
		}
		assert.Equal(t, test.want, got, "%+v", test)
	}
	for _, s := range append(largeFMA[:2:2], mediumFMA, lowFMA, smallFMA, skinnyFMA) {
		assert.Zero(t, s.run%s.k)
	}
}

// A product in f32 with few results and a long sum is one kernel, whose blocks share the sum, and numbers choose what
// symbols do.
func TestSlicesOfMultiplyAdds(t *testing.T) {
	for _, test := range []struct {
		m, n, k int64
		slices  string
	}{
		{8, 64, 1000000, "396"}, {32, 64, 20000, "156"}, {256, 256, 65536, "66"}, {1025, 971, 2949, "7"},
	} {
		device, err := ir.DeviceNamed("sm_90a")
		require.NoError(t, err)
		plan, err := Plan(parse(t, fmt.Sprintf("@onekernel graph g(a: f32[%d, %d], b: f32[%[2]d, %[3]d]) -> (y: f32[%[1]d, %[3]d]) { y = a @ b }", test.m, test.k, test.n)), Options{Device: device})
		require.NoError(t, err)
		numbers := variantAt(t, plan, nil)
		plan, err = Plan(parse(t, "@onekernel graph g(a: f32[M, K], b: f32[K, N]) -> (y: f32[M, N]) { y = a @ b }"), Options{Device: device})
		require.NoError(t, err)
		symbols := variantAt(t, plan, map[string]int64{"M": test.m, "N": test.n, "K": test.k})
		require.NotNil(t, numbers.Contract.Slices, "%+v", test)
		assert.Equal(t, test.slices, numbers.Contract.Slices.String())
		assert.Equal(t, symbols.Schedule, numbers.Schedule)
	}
}

// The blocks of slices run at the same time: a kernel promises that a multiprocessor holds as many as the number of slices counts on, also
// where elements are copied one by one or computed on the way, which takes registers.
func TestSlicesRunTogether(t *testing.T) {
	device, err := ir.DeviceNamed("sm_90a")
	require.NoError(t, err)
	draw, sliced := rand.New(rand.NewPCG(5, 0)), 0
	operand := []string{"transpose(a)", "transpose(a * d[:, none])", "transpose(relu(a))"}
	for range 60 {
		m, n, k := 5+draw.Int64N(300), 5+draw.Int64N(300), 5000+draw.Int64N(100000)
		src := fmt.Sprintf("@onekernel graph g(a: f32[%d, %d], b: f32[%[1]d, %[3]d], d: f32[%[1]d]) -> (y: f32[%[2]d, %[3]d]) { y = %s @ b }", k, m, n, operand[draw.IntN(3)])
		plan, err := Plan(parse(t, src), Options{Device: device})
		require.NoError(t, err)
		v := variantAt(t, plan, nil)
		if v.Contract == nil || v.Contract.Slices == nil {
			continue
		}
		slices, known := ir.EvalSize(v.Contract.Slices, nil)
		require.True(t, known, src)
		if s := v.Schedule; slices > 2*fewSlices+1 { // an odd number of few slices may take two rounds
			tiles, known := ir.EvalSize(tilesIn(v.Contract, splitShape{m: s.TileM, n: s.TileN}), nil)
			require.True(t, known, src)
			assert.LessOrEqual(t, tiles*slices, int64(s.MinBlocks)*ir.ReferenceSMs, src)
			sliced++
		}
	}
	assert.Greater(t, sliced, 30)
}
