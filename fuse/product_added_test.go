package fuse

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
)

// TestDifferencesOfProducts: a difference of two products is one product, as their sum is, and one kernel more writes the smaller operand with
// the other sign; but not where that is as large as the results.
func TestDifferencesOfProducts(t *testing.T) {
	device, err := ir.DeviceNamed("sm_90a")
	require.NoError(t, err)
	for _, row := range []struct {
		rows, depth int
		body        string
		products    int
	}{
		{65536, 256, "a @ w + b @ v", 1},
		{65536, 256, "a @ w - b @ v", 1},
		{65536, 264, "relu(a @ w - b @ v)", 1},
		{65536, 256, "c + a @ w - b @ v", 1},
		{100, 256, "a @ w - b @ v", 2},
	} {
		src := fmt.Sprintf(`graph g(a: bf16[%[1]d, 512], b: bf16[%[1]d, %[2]d], w: bf16[512, 256], v: bf16[%[2]d, 256], c: bf16[256]) -> (y: bf16[%[1]d, 256]) { y = %[3]s }`,
			row.rows, row.depth, row.body)
		p, err := Plan(parse(t, src), Options{Device: device})
		require.NoError(t, err, src)
		products := 0
		for _, k := range p.Kernels {
			if k.Template == ir.ContractTemplate {
				products++
			}
		}
		assert.Equal(t, row.products, products, src)
	}
}
