package fuse

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/fusec/fusec/ir"
)

// TestOperandsInDigits: a large product behind windows or merged heads, padded or not, reads a copy of them by the copy engine, but not where
// the product is small, nor where its rows are long lines of an image.
func TestOperandsInDigits(t *testing.T) {
	linear := func(x string) string {
		return "linear(reshape(permute(reshape(" + x + ", B, 4, 16, 4, 16, 768), (0, 1, 3, 2, 4, 5)), B * 16, 256, 768), w)"
	}
	for src, kernels := range map[string]int{
		"@bench(B=8) graph g(x: bf16[B, 64, 64, 768], w: bf16[2304, 768]) -> (y: bf16[B * 16, 256, 2304]) { y = " + linear("x") + " }":    2,
		"@tf32 @bench(B=8) graph g(x: f32[B, 64, 64, 768], w: f32[2304, 768]) -> (y: f32[B * 16, 256, 2304]) { y = " + linear("x") + " }": 2,
		"@bench(B=8) graph g(x: bf16[B, 64, 64, 768], w: bf16[96, 768]) -> (y: bf16[B * 16, 256, 96]) { y = " + linear("x") + " }":        1,
		"@bench(B=8) graph g(x: bf16[B, 60, 60, 768], w: bf16[768, 768]) -> (y: bf16[B * 16, 256, 768]) { y = " +
			linear("pad(pad(x, (0, 4), axis=1), (0, 4), axis=2)") + " }": 2,
		"@bench(B=100) graph g(x: bf16[B * 12, 196, 64], w: bf16[768, 768]) -> (y: bf16[B, 196, 768]) {\n" +
			"y = linear(reshape(permute(reshape(x, B, 12, 196, 64), (0, 2, 1, 3)), B, 196, 768), w) }": 2,
		"graph g(x: bf16[2, 768, 64, 80], w: bf16[2, 768, 64, 80]) -> (y: bf16[2, 5120, 5120]) {\n" +
			"y = transpose(reshape(x, 2, 768, 5120), 1, 2) @ reshape(w, 2, 768, 5120) }": 1,
	} {
		p := planOf(t, src)
		if !assert.Len(t, p.Kernels, kernels, src) {
			continue
		}
		if last := p.Kernels[kernels-1]; kernels == 2 {
			assert.Equal(t, ir.WarpgroupMapping, last.Variants[0].Schedule.Mapping, src)
		}
	}
}
