package fuse

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/interp"
)

// planes are programs whose innermost loop is over pixels: the product of two symbols.
var planes = map[string]string{
	"scale":    `graph g(x: f32[N, C, H, W], w: f32[C]) -> (y: f32[N, C, H, W]) { y = x * w[:, none, none] }`,
	"narrow":   `graph g(x: bf16[N, C, H, W], w: bf16[C]) -> (y: bf16[N, C, H, W]) { y = x + w[:, none, none] }`,
	"rows":     `graph g(x: f32[N, C, H, W]) -> (y: f32[N, C, H, W]) { y = x / sum(x, axis=(2, 3), keep=true) }`,
	"channels": `graph g(x: f32[N, C, H, W]) -> (y: f32[N, H, W]) { y = sum(x, axis=1) }`,
	"volume":   `graph g(x: bf16[N, C, 2, H, W], w: bf16[C]) -> (y: bf16[N, C, 2, H, W]) { y = x + w[:, none, none, none] }`,
	"norm": `graph g(x: f32[N, C, H, W]) -> (y: f32[N, C, H, W]) { m = sum(x, axis=(0, 2, 3), keep=true) / (N * H * W)
		y = (x - m) * rsqrt(sum(x * x, axis=(0, 2, 3), keep=true)) }`,
	"turned": `graph g(x: f32[N, C, H, W]) -> (y: f32[N, H, W, C]) { y = permute(x, (0, 2, 3, 1)) }`,
	"noisy":  `graph g(x: f32[N, C, H, W], s: i64[], w: f32[C]) -> (y: f32[N, C, H, W]) { y = dropout(x * w[:, none, none], 0.5, s) }`,
}

// Vectors along pixels ask that their number be a multiple of the vector, not that the
// height and the width be: every class whose condition holds reads aligned vectors, and
// its body computes what the program says.
func TestVectorsAlongProducts(t *testing.T) {
	for name, src := range planes {
		t.Run(name, func(t *testing.T) {
			g := parse(t, src)
			p, err := Plan(g, Options{})
			require.NoError(t, err)
			for _, size := range [][3]int64{{3, 2, 4}, {5, 6, 6}, {3, 14, 14}, {2, 1, 8}, {3, 16, 1}, {1, 3, 5}, {4, 7, 7}, {16, 4, 12}, {20, 2, 24}} {
				sizes := map[string]int64{"N": 2, "C": size[0], "H": size[1], "W": size[2]}
				inputs, err := drawInputs(g, sizes, 3)
				require.NoError(t, err)
				want, err := interp.Run(g, inputs, interp.Options{})
				require.NoError(t, err)
				compareVariants(t, g, p, want, inputs, interp.Options{}, sizes, name)
				for _, k := range p.Kernels {
					for n, v := range k.Variants {
						if holds(v, sizes) {
							assertAligned(t, k, v, sizes, n)
						}
					}
				}
			}
		})
	}
}

// assertAligned checks that wide accesses of a body are vectors that start at multiples of
// their length, wherever the innermost range does.
func assertAligned(t *testing.T, k *ir.Kernel, v *ir.Variant, sizes map[string]int64, n int) {
	t.Helper()
	vector := int64(v.Schedule.Vector)
	check := func(offset *ir.Expr, lane *ir.Range) {
		t.Helper()
		ranges := append(append([]*ir.Range{}, k.Rows...), k.Cols...)
		length, ok := ir.EvalSize(lane.Extent, sizes)
		require.True(t, ok)
		for first := int64(0); first+vector <= length; first += vector {
			for pick := range int64(7) {
				at := map[*ir.Range]*ir.Expr{}
				for i, r := range ranges {
					extent, _ := ir.EvalSize(r.Extent, sizes)
					at[r] = ir.IntConst(pick * int64(i+3) % max(extent, 1))
				}
				for lanes := range vector {
					at[lane] = ir.IntConst(first + lanes)
					place, ok := ir.EvalSize(ir.Substitute(offset, at), sizes)
					require.True(t, ok)
					require.Equal(t, lanes, place%vector, "%s, variant %d, %v: lane %d of %s", k.Name, n, sizes, lanes, offset)
				}
			}
		}
	}
	lane := algebra.Innermost(k.Rows)
	switch v.Schedule.Mapping {
	case ir.RowMapping:
		lane = algebra.Innermost(k.Cols)
	case ir.FlattenedMapping: // vectors begin at multiples of their length among all points, at any place in a row
		check = func(offset *ir.Expr, _ *ir.Range) {
			t.Helper()
			for point := range vector * 64 {
				at, rest := map[*ir.Range]*ir.Expr{}, point
				for _, r := range slices.Backward(k.Rows) {
					extent, _ := ir.EvalSize(r.Extent, sizes)
					at[r] = ir.IntConst(rest % max(extent, 1))
					rest /= max(extent, 1)
				}
				if rest > 0 {
					return
				}
				place, ok := ir.EvalSize(ir.Substitute(offset, at), sizes)
				require.True(t, ok)
				require.Equal(t, point%vector, place%vector, "%s, variant %d, %v: point %d of %s", k.Name, n, sizes, point, offset)
			}
		}
	}
	for _, l := range v.Locals {
		if r := algebra.ReadIn(l.Def); r != nil && l.Wide {
			along := lane
			for _, staged := range v.Staged {
				if staged == l && v.Across != nil {
					along = v.Across
				}
			}
			check(r.Args[0], along)
		}
	}
	for _, s := range v.Sections {
		for _, st := range s.Stores {
			if st.Wide {
				check(st.Offset, lane)
			}
		}
	}
}

// The class with vectors of pixels takes exactly the sizes whose number of pixels is a multiple; in the other, vectors run
// across planes.
func TestProductsChooseVectors(t *testing.T) {
	k := planOf(t, planes["scale"]).Kernels[0]
	for h := int64(1); h < 20; h++ {
		for w := int64(1); w < 20; w++ {
			v := k.Variants[chosen(t, k, map[string]int64{"N": 3, "C": 5, "H": h, "W": w})]
			assert.Equal(t, 4, v.Schedule.Vector, "%d x %d", h, w)
			assert.Equal(t, h*w%4 == 0, v.Strategy == ir.Pointwise, "%d x %d", h, w)
		}
	}
}

// TestVectorsOfOddRows: rows of odd length take single elements, whether their length is a number or a symbol, though
// weights and statistics that all rows share could be read in vectors. Of pointwise programs, vectors run across the ends
// of rows.
func TestVectorsOfOddRows(t *testing.T) {
	for name, body := range map[string]string{
		"bias":        "(x: bf16[M, N], b: bf16[N]) -> (y: bf16[M, N]) { y = relu(x + b) }",
		"layer norm":  "(x: bf16[M, N], w: bf16[N], b: bf16[N]) -> (y: bf16[M, N]) { y = layer_norm(x, w, b) }",
		"sum of rows": "(x: bf16[M, N], b: f32[N]) -> (y: f32[N]) { y = sum(f32(x), axis=0) + b }",
	} {
		for n, single := range map[string]bool{"4099": true, "4096": false} {
			numbers := strings.NewReplacer("M", "515", "N", n).Replace(body)
			for _, program := range []string{"graph g" + numbers, "@bench(M=515, N=" + n + ") graph g" + body} {
				p := planOf(t, program)
				size, err := strconv.ParseInt(n, 10, 64)
				require.NoError(t, err)
				for _, k := range p.Kernels {
					assert.Equal(t, single && name != "bias", k.Variants[chosen(t, k, map[string]int64{"M": 515, "N": size})].Schedule.Vector == 1, "%s, %s", name, program)
				}
			}
		}
	}
}
