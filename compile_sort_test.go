package fusec_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/fusec/fusec/ir"
)

// TestSortsFitDevices: no block that sorts or selects wants more shared memory than a
// device has for it, or more blocks beside it than a multiprocessor runs, and on the largest device rows of 32768 words are sorted by one block.
func TestSortsFitDevices(t *testing.T) {
	for _, d := range ir.Devices() {
		for _, dtype := range []string{"bf16", "f32", "f64"} {
			for _, result := range []string{"y: %[1]s[N, M]) { y = sort(x) }", "y: i64[N, M]) { y = argsort(x) }",
				"y: %[1]s[N, 3], i: i64[N, 3]) { y, i = topk(x, 3) }", "y: %[1]s[N, 256]) { y, i = topk(x, 256) }"} {
				src := fmt.Sprintf("graph g(x: %[1]s[N, M]) -> ("+result, dtype)
				_, plan, p := program(t, "sort.fuse", src, d.Name)
				for _, u := range p.Units {
					assert.LessOrEqual(t, u.Shared, d.SharedBlock, "%s on %s", src, d.Name)
				}
				for _, v := range plan.Kernels[0].Variants {
					assert.LessOrEqual(t, v.Schedule.MinBlocks, d.Blocks(), "%s on %s", src, d.Name)
				}
			}
		}
	}
	_, plan, _ := program(t, "sort.fuse", "graph g(x: f32[N, M]) -> (y: f32[N, M]) { y = sort(x) }", "H200")
	longest := 0
	for _, v := range plan.Kernels[0].Variants {
		if s := v.Schedule; s.Mapping == ir.SortMapping {
			longest = max(longest, s.Threads*s.Items)
		}
	}
	assert.Equal(t, 32768, longest)
}
