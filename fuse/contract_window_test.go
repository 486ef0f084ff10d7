package fuse

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
)

// TestMappingsOfWindows: what multiplies in large convolutions of several kinds. Padded, strided, grouped and
// transposed windows come through the tensor copy engine; exact f32 is multiplied by threads.
func TestMappingsOfWindows(t *testing.T) {
	for _, test := range []struct {
		src  string
		want ir.Mapping
		rows int // of a tile along the channels of the result
	}{
		{`graph g(x: bf16[32, 256, 28, 28], w: bf16[256, 256, 3, 3]) -> (y: bf16[32, 256, 28, 28]) { y = conv2d(x, w, padding=1) }`, ir.WarpgroupMapping, 128},
		{`graph g(x: f16[32, 64, 56, 56], w: f16[64, 64, 3, 3]) -> (y: f16[32, 64, 28, 28]) { y = conv2d(x, w, padding=1, stride=2) }`, ir.WarpgroupMapping, 64},
		{`graph g(x: bf16[32, 256, 8192], w: bf16[256, 256, 3]) -> (y: bf16[32, 256, 8192]) { y = conv1d(x, w, padding=1) }`, ir.WarpgroupMapping, 64},
		{`@tf32 graph g(x: f32[8, 64, 16, 28, 28], w: f32[64, 64, 3, 3, 3]) -> (y: f32[8, 64, 16, 28, 28]) { y = conv3d(x, w, padding=1) }`, ir.WarpgroupMapping, 64},
		{`@tf32 graph g(x: f32[32, 128, 28, 28], w: f32[128, 64, 4, 4]) -> (y: f32[32, 64, 56, 56]) { y = conv_transpose2d(x, w, stride=2, padding=1) }`, ir.WarpgroupMapping, 64},
		{`@tf32 graph g(x: f32[32, 128, 28, 28], w: f32[128, 64, 4, 4]) -> (y: f32[32, 64, 58, 58]) { y = conv_transpose2d(x, w, stride=2) }`, ir.WarpgroupMapping, 128},
		{`@tf32 graph g(x: f32[16, 64, 64, 64], w: f32[64, 64, 3, 3]) -> (y: f32[16, 64, 129, 129]) { y = conv_transpose2d(x, w, stride=2) }`, ir.WarpgroupMapping, 64},
		{`graph g(x: bf16[32, 256, 56, 56], w: bf16[256, 64, 3, 3]) -> (y: bf16[32, 256, 56, 56]) { y = conv2d(x, w, padding=1, groups=4) }`, ir.WarpgroupMapping, 64},
		{`graph g(x: f32[16, 256, 56, 56], w: f32[256, 32, 3, 3]) -> (y: f32[16, 256, 56, 56]) { y = conv2d(x, w, padding=1, groups=8) }`, ir.SplitKMapping, 32},
		{`graph g(x: f32[32, 64, 56, 56], w: f32[64, 16, 3, 3]) -> (y: f32[32, 64, 56, 56]) { y = conv2d(x, w, padding=1, groups=4) }`, ir.SplitKMapping, 16},
		{`graph g(x: f32[32, 64, 56, 56], w: f32[64, 8, 3, 3]) -> (y: f32[32, 64, 56, 56]) { y = conv2d(x, w, padding=1, groups=8) }`, ir.SplitKMapping, 8},
	} {
		var found []*ir.Variant
		for _, k := range planOf(t, test.src).Kernels {
			if k.Variants[0].Contract != nil {
				found = append(found, k.Variants[0])
			}
		}
		if assert.Len(t, found, 1, test.src) {
			assert.Equal(t, test.want, found[0].Schedule.Mapping, test.src)
			assert.Equal(t, test.rows, found[0].Schedule.TileM, test.src)
		}
	}
}

// TestLayoutsOfWindows: a convolution is multiplied alike in whichever order its tensors lie, and where they lie as tensor cores
// read them, nothing is copied.
func TestLayoutsOfWindows(t *testing.T) {
	images := map[string]string{"N, C, H, W": "x", "N, H, W, C": "permute(x, (0, 3, 1, 2))"}
	weights := map[string]string{"O, C, I, J": "w", "O, I, J, C": "permute(w, (0, 3, 1, 2))", "I, J, C, O": "permute(w, (3, 2, 0, 1))"}
	results := map[string]string{"N, O, P, Q": "%s", "N, P, Q, O": "permute(%s, (0, 2, 3, 1))"}
	for _, c := range []struct{ mode, dtype, sizes, args string }{
		{"", "bf16", "C=64 O=64 H=56 W=56 I=3 J=3 P=56 Q=56", "padding=1"},
		{"", "f16", "C=128 O=128 H=56 W=56 I=3 J=3 P=28 Q=28", "padding=1, stride=2"},
		{"", "bf16", "C=512 O=512 H=7 W=7 I=3 J=3 P=7 Q=7", "padding=1"},
		{"@tf32 ", "f32", "C=96 O=200 H=33 W=31 I=5 J=5 P=29 Q=27", ""},
		{"", "bf16", "C=64 O=128 H=40 W=56 I=3 J=2 P=36 Q=54", "dilation=2"},
	} {
		shape := strings.NewReplacer(strings.Split(strings.ReplaceAll("N=16 "+c.sizes, "=", " "), " ")...).Replace
		for image, x := range images {
			for weight, w := range weights {
				for result, y := range results {
					conv := fmt.Sprintf(y, strings.TrimSuffix("conv2d("+x+", "+w+", "+c.args, ", ")+")")
					src := fmt.Sprintf("%sgraph g(x: T[%s], w: T[%s]) -> (y: T[%s]) { y = %s }", c.mode, shape(image), shape(weight), shape(result), conv)
					kernels := planOf(t, strings.ReplaceAll(src, "T[", c.dtype+"[")).Kernels
					product := kernels[len(kernels)-1].Variants[0]
					assert.Contains(t, []ir.Strategy{ir.ContractWarpgroup, ir.ContractWarpgroupSplitK}, product.Strategy, src)
					copies := 0
					if !strings.HasSuffix(image, "C") {
						copies++
					}
					if weight != "O, I, J, C" {
						copies++
					}
					assert.Len(t, kernels, 1+copies, src)
				}
			}
		}
	}
}

// TestLayoutsOfFewChannels: products of few channels or few results, which are read from planes, are computed alike in whichever
// order images and results lie, behind a copy of those with their channels last.
func TestLayoutsOfFewChannels(t *testing.T) {
	for _, c := range []struct{ src, turned string }{
		{`graph g(x: bf16[16, 3, 224, 224], w: bf16[64, 3, 7, 7]) -> (y: bf16[16, 64, 112, 112]) { y = conv2d(x, w, stride=2, padding=3) }`,
			`graph g(x: bf16[16, 224, 224, 3], w: bf16[7, 7, 3, 64]) -> (y: bf16[16, 64, 112, 112]) { y = conv2d(permute(x, (0, 3, 1, 2)), permute(w, (3, 2, 0, 1)), stride=2, padding=3) }`},
		{`graph g(x: bf16[32, 128, 56, 56], w: bf16[128, 4, 3, 3]) -> (y: bf16[32, 128, 56, 56]) { y = conv2d(x, w, padding=1, groups=32) }`,
			`graph g(x: bf16[32, 56, 56, 128], w: bf16[128, 4, 3, 3]) -> (y: bf16[32, 128, 56, 56]) { y = conv2d(permute(x, (0, 3, 1, 2)), w, padding=1, groups=32) }`},
		{`graph g(x: f32[32, 64, 56, 56], w: f32[64, 8, 3, 3]) -> (y: f32[32, 64, 56, 56]) { y = conv2d(x, w, padding=1, groups=8) }`,
			`graph g(x: f32[32, 56, 56, 64], w: f32[64, 8, 3, 3]) -> (y: f32[32, 56, 56, 64]) { y = permute(conv2d(permute(x, (0, 3, 1, 2)), w, padding=1, groups=8), (0, 2, 3, 1)) }`},
		{`graph g(x: f16[64, 100, 8808], w: f16[3, 100, 3]) -> (y: f16[64, 3, 8804]) { y = conv1d(x, w, dilation=2) }`,
			`graph g(x: f16[64, 8808, 100], w: f16[3, 3, 100]) -> (y: f16[64, 3, 8804]) { y = conv1d(permute(x, (0, 2, 1)), permute(w, (0, 2, 1)), dilation=2) }`},
		{`graph g(x: bf16[64, 16, 33, 19, 48], w: bf16[2, 16, 5, 1, 3]) -> (y: bf16[64, 2, 21, 19, 42]) { y = conv3d(x, w, dilation=3) }`,
			`graph g(x: bf16[64, 33, 19, 48, 16], w: bf16[16, 2, 5, 1, 3]) -> (y: bf16[64, 2, 21, 19, 42]) { y = conv3d(permute(x, (0, 4, 1, 2, 3)), permute(w, (1, 0, 2, 3, 4)), dilation=3) }`},
		{`graph g(x: f16[16, 32, 256, 256], w: f16[9, 32, 3, 3], b: f16[9]) -> (y: f16[16, 9, 256, 256]) { y = conv2d(x, w, b, padding=1) }`,
			`graph g(x: f16[16, 32, 256, 256], w: f16[9, 32, 3, 3], b: f16[9]) -> (y: f16[16, 256, 256, 9]) { y = permute(conv2d(x, w, b, padding=1), (0, 2, 3, 1)) }`},
	} {
		product := func(src string) *ir.Variant {
			kernels := planOf(t, src).Kernels
			return kernels[len(kernels)-1].Variants[0]
		}
		planes, turned := product(c.src), product(c.turned)
		assert.Equal(t, planes.Strategy, turned.Strategy, c.turned)
		halo := func(v *ir.Variant) bool {
			return v.Contract != nil && v.Contract.B[0].Window != nil && v.Contract.B[0].Window.Halo != nil
		}
		assert.Equal(t, halo(planes), halo(turned), c.turned)
	}
}

// TestFewPlacesAreSplit: elements of windows are copied one by one, so where there are few places the blocks of a
// cluster share the columns, however few these are.
func TestFewPlacesAreSplit(t *testing.T) {
	for _, src := range []string{
		`@tf32 graph g(x: f32[8, 96, 49, 10], w: f32[40, 96, 1, 3]) -> (y: f32[8, 40, 17, 4]) { y = conv2d(x, w, stride=3, padding=(0, 1)) }`,
		`@tf32 graph g(x: f32[4, 128, 30, 7], w: f32[64, 128, 1, 3]) -> (y: f32[4, 64, 15, 4]) { y = conv2d(x, w, stride=2, padding=(0, 1)) }`,
	} {
		k := planOf(t, src).Kernels[0]
		assert.Greater(t, k.Variants[0].Schedule.Cluster, 1, src)
		assert.False(t, k.Variants[0].Contract.B[0].KLast, "%s: elements of a row are copied without waiting for each", src)
	}
}

// TestPointsOfOddPlanesAreLaidOut: where planes are no whole accesses, points of a few images are laid out with their channels
// last, so that the product reads both sides in whole accesses.
func TestPointsOfOddPlanesAreLaidOut(t *testing.T) {
	for _, src := range []string{
		`graph g(x: bf16[1, 2048, 7, 7], w: bf16[512, 2048, 1, 1]) -> (y: bf16[1, 512, 7, 7]) { y = conv2d(x, w) }`,
		`graph g(x: f16[1, 256, 14, 14], w: f16[1024, 256, 1, 1]) -> (y: f16[1, 1024, 14, 14]) { y = relu(conv2d(x, w)) }`,
		`graph g(x: bf16[4, 1000, 9, 11], w: bf16[200, 1000, 1, 1]) -> (y: bf16[4, 200, 9, 11]) { y = conv2d(x, w) }`,
	} {
		plan := planOf(t, src)
		require.Len(t, plan.Kernels, 2, src)
		c := plan.Kernels[1].Variants[0].Contract
		require.NotNil(t, c, src)
		for _, o := range []ir.Operand{c.A, c.B[0]} {
			assert.True(t, o.Wide || o.View != nil, src)
		}
	}
}
