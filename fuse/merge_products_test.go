package fuse

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestProductsShareAKernel: two products with the same left side are one kernel where their tiles fill the device or their
// sums are short; else each divides its sums among more blocks.
func TestProductsShareAKernel(t *testing.T) {
	for _, c := range []struct{ m, n, k, kernels int }{
		{4096, 4096, 4096, 1}, {512, 1000, 1000, 1}, {2048, 1024, 16384, 1}, {128, 14336, 4096, 1},
		{128, 1024, 4096, 2}, {128, 64, 32768, 2}, {384, 96, 8200, 2}, {17, 24, 16384, 2},
	} {
		for m, bench := range map[string]string{"M": fmt.Sprintf("@bench(M=%d) ", c.m), fmt.Sprint(c.m): ""} {
			p := planOf(t, fmt.Sprintf("%sgraph g(a: bf16[%s, %[3]d], b: bf16[%[3]d, %[4]d], s: bf16[%[3]d, %[4]d]) -> (y: bf16[%[2]s, %[4]d]) {"+
				" y = silu(a @ b) * (a @ s) }", bench, m, c.k, c.n))
			assert.Len(t, p.Launched(), c.kernels, "%+v", c)
		}
	}
}
