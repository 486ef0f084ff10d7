package fuse

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
)

// TestRepeatedRows: a row along which a tensor is repeated has a range for the repetitions, if what is repeated fills vectors and all
// that depends on the row is read so.
func TestRepeatedRows(t *testing.T) {
	for src, split := range map[string]bool{
		`graph g(x: f32[N, 64], s: f32[6]) -> (y: f32[N, 384]) { y[i: N, l: 384] = x[i, l % 64] * f32(l / 64) }`:           true,
		`graph g(x: f32[N, 64], z: f32[64]) -> (y: f32[N, 384]) { y[i: N, l: 384] = x[i, l % 64] * z[l % 64] }`:            true,
		`graph g(x: f32[N, 64], z: f32[N, 384]) -> (y: f32[N, 384]) { y[i: N, l: 384] = x[i, l % 64] * z[i, l] }`:          false,
		`graph g(x: f32[N, 12]) -> (y: f32[N, 72]) { y[i: N, l: 72] = exp(x[i, l % 12]) }`:                                 false,
		`graph g(x: f32[N, 64], z: i32[N]) -> (y: f32[N, 384]) { y[i: N, l: 384] = x[i, l % 64] + x[i, (z[i] + l) % 64] }`: false,
	} {
		kernels := planOf(t, src).Kernels
		require.Len(t, kernels, 1, src)
		low := false
		for _, r := range kernels[0].Rows {
			low = low || strings.HasSuffix(r.Name, lowSuffix)
		}
		assert.Equal(t, split, low, src)
	}
}

// TestFewRowsKeepTheirTile: convolutions of few channels have the tile for these also where offsets have 64 bits.
func TestFewRowsKeepTheirTile(t *testing.T) {
	for _, mode := range []string{"", "@tf32 "} {
		p := planOf(t, mode+`@bench(N=128) graph g(x: f32[N, 64, 256, 256], w: f32[64, 64, 3, 3]) -> (y: f32[N, 64, 258, 258]) { y = conv_transpose2d(x, w) }`)
		k := p.Kernels[len(p.Kernels)-1]
		wide := 0
		for _, v := range k.Variants {
			if v.Schedule.Index64 && v.Schedule.Mapping == ir.WarpgroupMapping && v.Schedule.Vector > 1 {
				wide++
				assert.Equal(t, 64, v.Schedule.TileM, "%s%v", mode, v.Schedule)
			}
		}
		assert.NotZero(t, wide, mode)
	}
}
