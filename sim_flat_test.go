package fusec

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/runtime/simtest"
)

// flatKernels are pointwise kernels whose last vector may be a part of one, of elements of
// several sizes, and gathers of such elements at places that may be outside.
var flatKernels = []struct {
	src   string
	sizes [][]int64
}{
	{"graph g(x: bf16[N], y: bf16[N]) -> (z: bf16[N]) {\n    z = x * y + x\n}", [][]int64{{1}, {7}, {8}, {9}, {1023}, {1025}}},
	{"graph g(x: f16[N, M], y: f32[N, M]) -> (z: f16[N, M], w: f32[N, M]) {\n    w = gelu_tanh(f32(x) + y)\n    z = f16(w) * x\n}", [][]int64{{3, 5}, {16, 8}, {31, 33}}},
	{"graph g(x: i8[N], y: bool[N]) -> (z: i8[N]) {\n    z = where(y, x, i8(3))\n}", [][]int64{{15}, {16}, {4097}}},
	{"graph g(x: bf16[N, M], b: bf16[M]) -> (z: bf16[N, M]) {\n    z = x + b\n}", [][]int64{{5, 24}, {5, 23}}},
	{"graph g(at: i64[N], table: bf16[V, D], w: bf16[D]) -> (y: bf16[N, D]) {\n    y = embedding(at, table) * w\n}", [][]int64{{24, 70, 9}, {16, 1, 5}, {23, 70, 9}}},
	{"graph g(at: i32[N], table: i8[V, D]) -> (y: i8[N, D]) {\n    y[i, j] = table[i64(at[i]) * 2 - 1, j] else 5\n}", [][]int64{{32, 70, 9}, {17, 33, 4}}},
}

// TestFlatSimulated compares them with the interpreter, at whole vectors and what is left.
func TestFlatSimulated(t *testing.T) {
	for _, arch := range []string{"sm_90a", "sm_80"} {
		_, dev := openSimulated(t, simtest.Config{Arch: arch})
		for _, k := range flatKernels {
			p, f := loaded(t, dev, k.src)
			for _, set := range k.sizes {
				sizes, fit := sizesOf(p.Graph(), set)
				require.True(t, fit)
				t.Run(fmt.Sprint(arch, k.src[:24], set), func(t *testing.T) { compareWithInterpreter(t, p.Graph(), f, sizes) })
			}
		}
	}
}
