package fuse

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// variantAt is the first variant of the only kernel whose condition holds.
func variantAt(t *testing.T, p *ir.Plan, sizes map[string]int64) *ir.Variant {
	t.Helper()
	require.Len(t, p.Kernels, 1)
	for _, v := range p.Kernels[0].Variants {
		if holds, ok := ir.EvalSize(algebra.OrTrue(v.When), sizes); ok && holds != 0 {
			return v
		}
	}
	t.Fatal("no variant for these sizes")
	return nil
}

// TestTilesOfProducts: by size, the shape of tile that was measured to be the best or
// within 3 % of it, and the other mappings where tiles do not pay or do not apply.
func TestTilesOfProducts(t *testing.T) {
	const plain = "graph g(x: bf16[B, M, K], w: bf16[B, K, N]) -> (y: bf16[B, M, N]) { y = x @ w }"
	p := planOf(t, plain)
	for _, test := range []struct {
		b, m, n, k int64
		want       string
	}{
		{1, 4096, 4096, 4096, "warpgroup 128x256 turns 1 cluster 2 vector 8"},
		{1, 8192, 8192, 8192, "warpgroup 128x256 turns 1 cluster 2 vector 8"},
		{1, 4096, 4096, 14336, "warpgroup 128x256 turns 1 cluster 2 vector 8"},
		{1, 16384, 4096, 1024, "warpgroup 128x128 turns 2 cluster 0 vector 8"},
		{1, 1024, 1024, 1024, "warpgroup 128x64 turns 1 cluster 0 vector 8"},
		{64, 512, 512, 512, "warpgroup 128x128 turns 2 cluster 0 vector 8"},
		{1, 65536, 65536, 4096, "warpgroup 128x128 turns 2 cluster 0 vector 8, 64 bits"},
		{1, 1024, 768, 1024, "warpgroup 128x64 turns 1 cluster 0 vector 8"},
		{1, 129, 264, 72, "split-k"},
		{1, 256, 256, 256, "split-k"},
		{1, 512, 512, 512, "warpgroup 128x64 turns 1 cluster 0 vector 8"},
		{1, 128, 2048, 2048, "2 splits warpgroup 64x64 turns 1 cluster 2 vector 8"},
		{1, 64, 4096, 4096, "2 splits warpgroup 64x64 turns 1 cluster 2 vector 8"},
		{1, 64, 8192, 8192, "2 splits warpgroup 64x128 turns 1 cluster 2 vector 8"},
		{1, 1, 8192, 8192, "2 splits warpgroup 64x128 turns 1 cluster 2 vector 8"},
		{1, 512, 512, 8192, "2 splits warpgroup 64x64 turns 1 cluster 2 vector 8"},
		{1, 64, 2048, 8192, "4 splits warpgroup 64x128 turns 1 cluster 4 vector 8"},
		{1, 256, 256, 4096, "8 splits warpgroup 64x64 turns 1 cluster 8 vector 8"},
		{1, 128, 128, 4096, "8 splits warpgroup 64x64 turns 1 cluster 8 vector 8"},
		{1, 31, 4096, 4096, "2 splits warpgroup 64x64 turns 1 cluster 2 vector 8"},
		{1, 128, 128, 65536, "8 splits warpgroup 64x64 turns 1 cluster 8 vector 8"},
		{1, 129, 264, 0, "flat"},
		{1, 16, 4096, 4096, "2 splits warpgroup 64x128 turns 1 cluster 2 vector 8"},
		{1, 16, 2048, 2048, "2 splits warpgroup 64x128 turns 1 cluster 2 vector 8"},
		{1, 4096, 16, 4096, "2 splits warpgroup 64x128 turns 1 cluster 2 vector 1"},
		{1, 7, 7, 4096, "flat"},
		{1, 4096, 4096, 4095, "contract"},
		{1, 4096, 4095, 4096, "contract"},
	} {
		v := variantAt(t, p, map[string]int64{"B": test.b, "M": test.m, "N": test.n, "K": test.k})
		s := v.Schedule
		got := s.Mapping.String()
		if s.Mapping == ir.WarpgroupMapping {
			if s.SplitK > 1 {
				got = fmt.Sprintf("%d splits ", s.SplitK) + got
			}
			got = fmt.Sprintf("%s %dx%d turns %d cluster %d vector %d", got, s.TileM, s.TileN, s.Turns, s.Cluster, s.Vector)
		}
		if s.Index64 {
			got += ", 64 bits"
		}
		assert.Equal(t, test.want, got, "%+v", test)
	}
}

// TestTilesOfOddRows: where no result can be written in vectors, threads take single elements, though operands and
// what is added to the sums are read in vectors.
func TestTilesOfOddRows(t *testing.T) {
	for body, want := range map[string]int{
		"b: bf16[264, 1021]) -> (y: bf16[M, 1021]) { y = a @ b }":                          1,
		"b: bf16[264, 1021], c: f32[1021]) -> (y: bf16[M, 1021]) { y = bf16(a @ b + c) }":  1,
		"b: bf16[264, 1024], c: bf16[1024]) -> (y: bf16[M, 1024]) { y = relu(a @ b + c) }": 8,
	} {
		kernels := planOf(t, "@bench(M=4096) graph g(a: bf16[M, 264], "+body).Kernels
		found := 0
		for _, v := range kernels[len(kernels)-1].Variants {
			if v.Schedule.Mapping == ir.WarpgroupMapping {
				assert.Equal(t, want, v.Schedule.Vector, body)
				found++
			}
		}
		assert.Positive(t, found, body)
	}
}

// TestTilesWhereMuchFollows: what follows the sums, where it is much, is computed by one
// warpgroup while another multiplies, in tiles as wide as registers allow where that takes
// fewer cycles; blocks share such a tile's right operand by whole TMA tiles, in either order.
func TestTilesWhereMuchFollows(t *testing.T) {
	for w, box := range map[string][]int{"w: bf16[K, N]": {64, 32}, "w: bf16[N, K]": {64, 96}} {
		product := map[string]string{"w: bf16[K, N]": "x @ w", "w: bf16[N, K]": "x @ transpose(w)"}[w]
		p := planOf(t, fmt.Sprintf(`graph g(x: bf16[M, K], %s, b: bf16[N], r: bf16[M, N]) -> (y: bf16[M, N]) {
			y = gelu(%s + b) + r }`, w, product))
		for _, test := range []struct {
			m, n, k int64
			want    string
		}{
			{8192, 8192, 8192, "128x192 turns 2 cluster 2"},
			{8192, 4096, 4096, "128x128 turns 2 cluster 0"},
			{8192, 8192, 1024, "128x128 turns 2 cluster 0"},
			{4096, 4096, 4096, "128x128 turns 2 cluster 0"},
			{1024, 1024, 1024, "128x64 turns 1 cluster 0"},
		} {
			v := variantAt(t, p, map[string]int64{"M": test.m, "N": test.n, "K": test.k})
			s := v.Schedule
			assert.Equal(t, test.want, fmt.Sprintf("%dx%d turns %d cluster %d", s.TileM, s.TileN, s.Turns, s.Cluster), "%s, %+v", w, test)
			if s.Cluster > 1 {
				assert.Equal(t, box, v.Contract.B[0].View.Box, w)
			}
		}
	}
}

// TestTilesWhereMuchIsShared: a value that what follows the sums reads in several places counts once, and never against the
// rest.
func TestTilesWhereMuchIsShared(t *testing.T) {
	p := planOf(t, `graph g(x: bf16[M, 768], w: bf16[768, 3072], r: bf16[M, 3072]) -> (y: bf16[M, 3072]) {
		t = f32(r)
		for i in 0..6 {
			t = tanh(t) + t * t
		}
		y = bf16(f32(x @ w) * t)
	}`)
	s := variantAt(t, p, map[string]int64{"M": 32768}).Schedule
	assert.Equal(t, "128x128 turns 2", fmt.Sprintf("%dx%d turns %d", s.TileM, s.TileN, s.Turns))
}

// TestViewsOfProducts: operands as the copy engine sees them, in every order, from
// splits, with batches that one of them has not.
func TestViewsOfProducts(t *testing.T) {
	for _, test := range []struct{ src, a, b string }{
		{"(x: bf16[M, K], w: bf16[K, N]) -> (y: bf16[M, N]) { y = x @ w }",
			"x[K, M] by [K] box [64 128]", "w[N, K] by [N] box [64 64]"},
		{`(x: bf16[K, M], w: bf16[N, K]) -> (y: bf16[M, N]) { y = einsum("km,nk->mn", x, w) }`,
			"x[M, K] by [M] box [64 64]", "w[K, N] by [K] box [64 64]"},
		{`(x: bf16[M, K], w: bf16[K, N]) -> (y: bf16[N, M]) { y = einsum("mk,kn->nm", x, w) }`,
			"w[N, K] by [N] box [64 64]", "x[K, M] by [K] box [64 64]"},
		{"(x: f16[B, M, K], w: f16[K, N]) -> (y: f16[B, M, N]) { y = x @ w }",
			"x[K, B * M] by [K] box [64 128]", "w[N, K] by [N] box [64 64]"},
		{`(x: f16[M, 4, K], w: f16[N, 4, K]) -> (y: f16[4, M, N]) { y = einsum("mhk,nhk->hmn", x, w) }`,
			"x[K, M, 4] by [K * 4, K] box [64 128 1]", "w[K, N, 4] by [K * 4, K] box [64 64 1]"},
		{"(x: bf16[M, 256], w: bf16[K, N]) -> (y: bf16[M, N]) { y = x[:, 64:] @ w[0:192, :] }",
			"x[192, M] by [256] from 64 box [64 128]", "w[N, 192] by [N] box [64 64]"},
	} {
		p := planOf(t, "graph g"+test.src)
		var v *ir.Variant
		for _, each := range p.Kernels[0].Variants { // the smallest tile
			if each.Schedule.Mapping == ir.WarpgroupMapping && each.Schedule.TileN == 64 && each.Schedule.Vector > 1 {
				v = each
			}
		}
		require.NotNil(t, v, test.src)
		require.Len(t, v.TensorMaps, 2)
		assert.Equal(t, test.a, viewText(v.TensorMaps[0]), test.src)
		assert.Equal(t, test.b, viewText(v.TensorMaps[1]), test.src)
	}
}

func viewText(w *ir.TMAView) string {
	from := ""
	if w.Offset != nil {
		from = fmt.Sprintf(" from %s", w.Offset)
	}
	list := func(sizes []*ir.Expr) string {
		parts := make([]string, len(sizes))
		for i, e := range sizes {
			parts[i] = e.String()
		}
		return strings.Join(parts, ", ")
	}
	return fmt.Sprintf("%s[%s] by [%s]%s box %v", w.Arg.Name, list(w.Dims), list(w.Strides), from, w.Box)
}

// TestOperandsWithoutViews: what the copy engine cannot bring stays with mma.sync.
func TestOperandsWithoutViews(t *testing.T) {
	for name, src := range map[string]string{
		"wider prologue":  "(x: bf16[512, 512], w: bf16[512, 512]) -> (y: f32[512, 512]) { y = exp(f32(x)) @ f32(w) }",
		"odd stride":      "(x: bf16[512, 511], w: bf16[511, 512]) -> (y: bf16[512, 512]) { y = x @ w }",
		"odd offset":      "(x: bf16[512, 512], w: bf16[504, 512]) -> (y: bf16[512, 512]) { y = x[:, 1:505] @ w }",
		"every other one": "(x: bf16[512, 1024], w: bf16[512, 512]) -> (y: bf16[512, 512]) { y = x[:, ::2] @ w }",
		"backwards":       "(x: bf16[512, 512], w: bf16[512, 512]) -> (y: bf16[512, 512]) { y = flip(x, axis=0) @ w }",
	} {
		for _, v := range planOf(t, "graph g"+src).Kernels[0].Variants {
			assert.NotEqual(t, ir.WarpgroupMapping, v.Schedule.Mapping, name)
		}
	}
}

// TestProductsThatShareAnOperand become one kernel where the other operands are alike,
// and only then.
func TestProductsThatShareAnOperand(t *testing.T) {
	for src, kernels := range map[string]int{
		"(x: bf16[M, K], a: bf16[K, N], b: bf16[K, N]) -> (y: bf16[M, N]) { y = silu(x @ a) * (x @ b) }": 1,
		`(x: bf16[M, K], a: bf16[N, K], b: bf16[N, K]) -> (y: bf16[M, N]) {
			y = einsum("nk,mk->mn", a, x) + einsum("mk,nk->mn", x, b)
		}`: 1,
		"(x: bf16[M, K], z: bf16[M, K], b: bf16[K, N]) -> (y: bf16[M, N]) { y = (x @ b) * (z @ b) }":                      2,
		"(x: bf16[M, K], z: bf16[M, K], a: bf16[K, N], b: bf16[K, N]) -> (y: bf16[M, N]) { y = x @ a + z @ b }":           1,
		"(x: bf16[M, K], a: bf16[K, N], b: bf16[K, N], c: bf16[K, N]) -> (y: bf16[M, N]) { y = x @ a + x @ b * (x @ c) }": 2,
	} {
		p := planOf(t, "graph g"+src)
		assert.Len(t, p.Kernels, kernels, src)
		for _, k := range p.Kernels {
			assert.Equal(t, ir.ContractTemplate, k.Template, src)
		}
	}
}

// TestComputedOperands: what is computed ahead of a product is a kernel of its own, and
// the product reads its result through a view; a kernel that must be one computes it.
func TestComputedOperands(t *testing.T) {
	const src = "graph g(x: bf16[512, 512], s: bf16[512], w: bf16[512, 512]) -> (y: bf16[512, 512]) { y = (gelu(x) * s) @ w }"
	p := planOf(t, src)
	require.Len(t, p.Kernels, 2)
	assert.Equal(t, ir.WarpgroupMapping, p.Kernels[1].Variants[0].Schedule.Mapping)
	p = planOf(t, strings.Replace(src, "gelu(x) * s", "x * s", 1))
	require.Len(t, p.Kernels, 2)
	assert.Equal(t, ir.WarpgroupMapping, p.Kernels[1].Variants[0].Schedule.Mapping)
	p = planOf(t, "@onekernel "+strings.Replace(src, "gelu(x) * s", "x * s", 1))
	assert.Equal(t, ir.SplitKMapping, p.Kernels[0].Variants[0].Schedule.Mapping)
}

// mixedProducts have an operand that memory holds in another type than the 16-bit
// floats of its tiles: nothing may copy it as it is.
var mixedProducts = map[string]string{
	"integers on the right":  "(x: bf16[M, K], w: T[N, K]) -> (y: f32[M, N]) { y[m, n] = sum[k] f32(x[m, k]) * f32(w[n, k]) }",
	"integers on the left":   "(x: T[M, K], w: f16[K, N]) -> (y: f32[M, N]) { y[m, n] = sum[k] f32(x[m, k]) * f32(w[k, n]) }",
	"in the other's type":    "(x: bf16[M, K], w: T[K, N]) -> (y: bf16[M, N]) { y = x @ bf16(w) }",
	"known sizes":            "(x: bf16[512, 512], w: T[512, 512]) -> (y: bf16[512, 512]) { y = x @ bf16(w) }",
	"two that share a side":  "(x: bf16[M, K], a: T[K, N], b: bf16[K, N]) -> (y: bf16[M, N]) { y = (x @ bf16(a)) * (x @ b) }",
	"integers as keys":       "(q: bf16[2, S, 64], k: T[2, S, 64], v: bf16[2, S, 64]) -> (o: bf16[2, S, 64]) { o = attention(q, bf16(k), v) }",
	"integers as values":     "(q: bf16[2, S, 64], k: bf16[2, S, 64], v: T[2, S, 64]) -> (o: bf16[2, S, 64]) { o = attention(q, k, bf16(v)) }",
	"f16 beside bf16 values": "(q: f16[2, S, 64], k: f16[2, S, 64], v: bf16[2, S, 64], w: T[1]) -> (o: f32[2, S, 64]) { o = attention(f32(q), f32(k), f32(v)) + f32(w[0]) }",
}

func TestOperandsOfOtherTypes(t *testing.T) {
	for name, text := range mixedProducts {
		for _, dtype := range []string{"i8", "i32"} {
			for _, device := range []string{"H200", "A100"} {
				on, err := ir.DeviceNamed(device)
				require.NoError(t, err)
				src := "graph g" + strings.ReplaceAll(text, "T[", dtype+"[")
				p, err := Plan(parse(t, src), Options{Device: on})
				require.NoError(t, err, src)
				for _, k := range p.Kernels {
					for _, v := range k.Variants {
						copiesItsType(t, v, name+" "+dtype)
					}
				}
			}
		}
	}
}

// copiesItsType asserts that what a variant copies to tiles is of their type.
func copiesItsType(t *testing.T, v *ir.Variant, name string) {
	t.Helper()
	var operands []ir.Operand
	var tiles ir.DType
	switch {
	case v.Contract != nil:
		operands, tiles = append([]ir.Operand{v.Contract.A}, v.Contract.B...), v.Contract.Type
	case v.Attend != nil:
		operands, tiles = []ir.Operand{v.Attend.Q, v.Attend.K, v.Attend.V}, v.Attend.Type
	}
	for _, w := range v.TensorMaps {
		assert.Equal(t, tiles, w.Arg.Type, "%s: view %s", name, w.Name)
	}
	for _, o := range operands {
		if o.Wide || o.Async {
			assert.Equal(t, tiles, directRead(form.Stripped(o.Value)).Type, "%s: %v", name, v.Schedule)
		}
	}
}

// TestStridedOperands: operands that do not lie as tiles want them are copied, and then multiplied by warpgroups: those whose heads
// or batches are last, and weights whose rows are in another order than the result's.
func TestStridedOperands(t *testing.T) {
	for src, copies := range map[string]int{
		`graph g(a: bf16[512, 512, 64], b: bf16[64, 512, 512]) -> (y: bf16[64, 512, 512]) { y = permute(a, (2, 0, 1)) @ b }`:                                                              1,
		`graph g(a: f16[512, 300, 64], b: f16[300, 512, 64]) -> (y: f16[64, 512, 512]) { y = permute(a, (2, 0, 1)) @ permute(b, (2, 0, 1)) }`:                                             2,
		`graph g(x: bf16[16, 16, 16, 512], w: bf16[2, 2, 512, 256]) -> (y: bf16[16, 256, 32, 32]) { y = conv_transpose2d(permute(x, (0, 3, 1, 2)), permute(w, (2, 3, 0, 1)), stride=2) }`: 1,
		`graph g(a: bf16[512, 64, 512], b: bf16[64, 512, 512]) -> (y: bf16[64, 512, 512]) { y = permute(a, (1, 0, 2)) @ b }`:                                                              0,
	} {
		kernels := planOf(t, src).Kernels
		assert.Len(t, kernels, 1+copies, src)
		assert.Equal(t, ir.ContractWarpgroup, kernels[len(kernels)-1].Variants[0].Strategy, src)
	}
}
