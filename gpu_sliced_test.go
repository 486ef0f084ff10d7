package fusec

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime"
)

// slicedSizes are M, N and K at which warpgroups cut the columns of a product in so many
// slices, with tiles and slices that end inside.
var slicedSizes = map[int][3]int64{
	16: {40, 72, 8200},
	8:  {72, 136, 2056},
	4:  {8, 1160, 2056},
	2:  {1, 4360, 2056},
}

// slicesAt is in how many slices the first variant that fits cuts the columns.
func slicesAt(plan *ir.Plan, sizes map[string]int64) int {
	for _, v := range plan.Kernels[0].Variants {
		if v.When == nil {
			return v.Schedule.Slices
		}
		if holds, ok := ir.EvalSize(v.When, sizes); ok && holds != 0 {
			return v.Schedule.Slices
		}
	}
	return 0
}

// TestSlicedColumnsOnGPU multiplies small integers, whose sums are exact in any order.
func TestSlicedColumnsOnGPU(t *testing.T) {
	mustEnd(t)
	dev := openGPU(t, runtime.Options{})
	for i, name := range []string{"plain", "b transposed", "batched", "two results", "a transposed", "both transposed", "result transposed"} {
		p, f := loaded(t, dev, strings.ReplaceAll(productBodies[name], "T[", []string{"bf16[", "f16["}[i%2]))
		for slices, s := range slicedSizes {
			sizes := map[string]int64{"M": s[0], "N": s[1], "K": s[2]}
			switch {
			case name == "batched": // three of them
				sizes["M"], sizes["N"] = min(s[0], 8), (s[1]/3+7)/8*8
			case s[0]%8 != 0 && strings.HasSuffix(name, " transposed") && name != "b transposed":
				continue // the copy engine cannot bring single rows of what lies along M
			}
			t.Run(fmt.Sprint(name, " ", slices, " slices"), func(t *testing.T) {
				assert.Equal(t, slices, slicesAt(p.Plan(), sizes))
				compareProduct(t, p.Graph(), f, sizes, -2, 3)
			})
		}
	}
}
