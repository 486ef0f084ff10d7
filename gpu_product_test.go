package fusec

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime"
	"github.com/fusec/fusec/runtime/tensor"
)

// Products are contractions in every order of their operands, with what may stand
// around them; T is the type of the operands.
var Products = map[string]string{
	"plain":     "(a: T[M, K], b: T[K, N]) -> (y: T[M, N]) { y = a @ b }",
	"bt":        `(a: T[M, K], b: T[N, K]) -> (y: T[M, N]) { y = einsum("mk,nk->mn", a, b) }`,
	"at":        `(a: T[K, M], b: T[K, N]) -> (y: T[M, N]) { y = einsum("km,kn->mn", a, b) }`,
	"at_bt":     `(a: T[K, M], b: T[N, K]) -> (y: T[M, N]) { y = einsum("km,nk->mn", a, b) }`,
	"yt":        `(a: T[M, K], b: T[K, N]) -> (y: T[N, M]) { y = einsum("mk,kn->nm", a, b) }`,
	"wide":      "(a: T[M, K], b: T[K, N]) -> (y: f32[M, N]) { y = f32(a) @ f32(b) }",
	"batch":     `(a: T[3, M, K], b: T[3, K, N]) -> (y: T[3, M, N]) { y = a @ b }`,
	"broadcast": `(a: T[3, M, K], b: T[N, K]) -> (y: T[3, M, N]) { y = einsum("bmk,nk->bmn", a, b) }`,
	"heads":     `(a: T[M, 2, K], b: T[N, 2, K]) -> (y: T[2, M, N]) { y = einsum("mhk,nhk->hmn", a, b) }`,
	"slice":     "(a: T[M, K], b: T[K, N]) -> (y: T[M, N]) { y = a[:, 8:] @ b[8:, :] }",
	"gated":     `(a: T[M, K], b: T[K, N], c: T[K, N]) -> (y: T[M, N]) { y = silu(a @ b) * (a @ c) }`,
	"gated_bt": `(a: T[M, K], b: T[N, K], c: T[N, K], r: T[M, N]) -> (y: T[M, N], z: T[M, N]) {
		y = silu(einsum("mk,nk->mn", a, b)) * einsum("nk,mk->mn", c, a)
		z = r + y
	}`,
	"ffn": `(a: T[M, K], b: T[K, N], bias: T[N], r: T[M, N], s: f32[M]) -> (y: T[M, N], z: f32[M, N]) {
		t = a @ b + bias
		y = gelu(t) + r
		z = f32(t) * unsqueeze(s, 1)
	}`,
}

// productSizes are M, N and K: whole tiles, parts of them, odd sizes that the copy
// engine does not take, no columns, many tiles.
var productSizes = [][3]int64{{128, 256, 64}, {129, 264, 72}, {63, 40, 1000}, {33, 520, 16}, {127, 129, 96},
	{129, 65, 33}, {64, 64, 0}, {7, 129, 63}, {1, 1, 1}, {300, 520, 24}}

// TestProductsOnGPU compares every product with the interpreter, and asks for the
// same bits in repetitions.
func TestProductsOnGPU(t *testing.T) {
	dev := openGPU(t, runtime.Options{OnWarning: func(err error) { t.Log("warning:", err) }})
	for name, text := range Products {
		for _, half := range []string{"bf16", "f16"} {
			src := "graph product" + strings.ReplaceAll(text, "T[", half+"[")
			p, err := Compile("product.fuse", src, Options{Arch: dev.Arch()})
			require.NoError(t, err, src)
			f, err := p.Load(context.Background(), dev)
			require.NoError(t, err)
			for _, n := range productSizes {
				if name == "slice" && n[2] < 16 {
					continue
				}
				sizes := map[string]int64{"M": n[0], "N": n[1], "K": n[2]}
				t.Run(fmt.Sprint(name, "/", half, n), func(t *testing.T) {
					compareWithInterpreter(t, p.Graph(), f, sizes)
					sameBits(t, p.Graph(), f, sizes)
				})
			}
		}
	}
}

// sameBits runs a graph several times on the same inputs.
func sameBits(t *testing.T, g *ir.Graph, f *runtime.Function, sizes map[string]int64) {
	shapes, err := f.Shapes(sizes)
	require.NoError(t, err)
	args := runtime.Args{}
	for i, v := range g.Inputs {
		x, err := tensor.Random(v.Type, uint64(i+1), shapes[v.Name]...)
		if !v.Type.IsFloat() {
			x, err = tensor.RandomInts(v.Type, uint64(i+1), 0, 2, shapes[v.Name]...)
		}
		require.NoError(t, err)
		args[v.Name] = x
	}
	first, err := f.Call(context.Background(), args)
	require.NoError(t, err)
	for range 3 {
		again, err := f.Call(context.Background(), args)
		require.NoError(t, err)
		for name, x := range again {
			assert.Equal(t, first[name].Data, x.Data, name)
		}
	}
}
