package codegen

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
)

// TestClustersOfOneBlock: rows that a block has alone are written as if there were no clusters, also where the schedule counts the
// block as a cluster of one. It would wait for others that there are not.
func TestClustersOfOneBlock(t *testing.T) {
	met := map[string]bool{}
	for _, src := range []string{
		`graph g(x: bf16[4000, 1000]) -> (y: bf16[4000, 1000]) { y = softmax(x) }`,
		`graph g(x: bf16[3, 5000]) -> (y: bf16[3, 5000]) { y = softmax(x) }`,
		`graph g(x: bf16[4000, 16384]) -> (y: bf16[4000, 16384]) { y = softmax(x) }`,
		`graph g(x: bf16[N, M]) -> (y: bf16[N, M]) { y = rms_norm(x) }`,
		`graph g(x: bf16[N, 8 * M]) -> (y: bf16[N, 8 * M]) { y = softmax(x) }`,
		`graph g(a: f16[100, 4096], b: f16[4096, 64]) -> (y: f16[100, 64]) { y = a @ b }`,
	} {
		plan, p := generate(t, src)
		for _, k := range plan.Kernels {
			for _, v := range k.Variants {
				if v.Schedule.Cluster > 0 {
					continue
				}
				if m := v.Schedule.Mapping; m == ir.RowMapping || m == ir.SplitKMapping {
					v.Schedule.Cluster = 1
					met[ir.StrategyOf(k, v.Schedule).String()] = true
				}
			}
		}
		alone := Generate(plan)
		require.Len(t, alone.Units, len(p.Units))
		for i := range p.Units {
			assert.Equal(t, p.Units[i].Defines, alone.Units[i].Defines)
			assert.Equal(t, p.Sources[p.Units[i].Source], alone.Sources[alone.Units[i].Source], "%s", p.Units[i].Defines)
		}
	}
	assert.GreaterOrEqual(t, len(met), 4, "%v", met)
}
