package fusec

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime"
)

// rowsAhead are programs whose blocks go from row to row, the next rows on their way to
// shared memory: rows too long for a block, and rows that sums over them are taken beside.
var rowsAhead = map[string]struct {
	src   string
	sizes [][]int64
}{
	"softmax": {`graph g(x: %[1]s[N, M]) -> (y: %[1]s[N, M]) { y = softmax(x) }`,
		[][]int64{{1, 131072}, {70, 70016}, {3, 65544}, {2, 262144}}},
	"rms norm": {`graph g(x: %[1]s[N, M], w: %[1]s[M]) -> (y: %[1]s[N, M]) {
		y = %[1]s(wide(x) * rsqrt(mean(wide(x) * x, axis=-1, keep=true) + 1e-6) * w) }`,
		[][]int64{{2, 131072}, {5, 100000}, {140, 33000}}},
	"gradients of a norm": {`graph g(dy: %[1]s[N, M], x: %[1]s[N, M], w: %[1]s[M]) -> (dx: %[1]s[N, M], dw: f32[M], db: %[1]s[M]) {
		h = wide(x) * rsqrt(mean(wide(x) * x, axis=-1, keep=true) + 1e-6)
		g = wide(dy) * w
		dx = %[1]s(g - h * mean(g * h, axis=-1, keep=true))
		dw = sum(wide(dy) * h, axis=0)
		db = sum(dy, axis=0) }`,
		[][]int64{{1, 8192}, {140, 8184}, {700, 2048}, {300, 4104}, {133, 520}, {1500, 264}}},
	"a row's own value beside a sum": {`graph g(x: %[1]s[N, M]) -> (y: %[1]s[N, M], s: f32[M]) {
		y = tanh(x)
		s = sum(wide(x), axis=0) }`, [][]int64{{600, 4096}, {270, 1032}}},
}

// TestRowsAheadOnGPU compares them with the interpreter, rows of whole vectors that fill
// their blocks and that leave warps without a share, more rows than stages and fewer.
func TestRowsAheadOnGPU(t *testing.T) {
	dev := openGPU(t, runtime.Options{})
	for name, c := range rowsAhead {
		for _, dtype := range []ir.DType{ir.F32, ir.BF16} {
			p, f := loaded(t, dev, fmt.Sprintf(c.src, dtype))
			staged := 0
			for _, k := range p.Plan().Kernels {
				for _, v := range k.Variants {
					staged += len(v.Staged)
				}
			}
			assert.Positive(t, staged, "%s has no rows ahead", name)
			for _, set := range c.sizes {
				sizes := map[string]int64{"N": set[0], "M": set[1]}
				t.Run(fmt.Sprint(name, dtype, set), func(t *testing.T) { compareWithInterpreter(t, p.Graph(), f, sizes) })
			}
		}
	}
}
