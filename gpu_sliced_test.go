package fusec

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime"
)

// slicedSizes are slices, M, N and K at which warpgroups cut the columns of a product in
// so many, with tiles and slices that end inside: of many rows, then of few.
var slicedSizes = [][4]int64{
	{8, 72, 136, 2056}, {2, 17, 1096, 2048}, {2, 2, 4360, 4104},
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
		for _, s := range slicedSizes {
			slices, sizes := int(s[0]), map[string]int64{"M": s[1], "N": s[2], "K": s[3]}
			switch {
			case name == "batched" && s[0] > 4: // three of them
				sizes["M"], sizes["N"] = 17, (s[2]/3+7)/8*8
			case name != "plain" && name != "b transposed" && s[0] <= 4:
				continue // single rows of what lies along M cannot be copied, and the rest takes long
			}
			t.Run(fmt.Sprint(name, s), func(t *testing.T) {
				assert.Equal(t, slices, slicesAt(p.Plan(), sizes))
				compareProduct(t, p.Graph(), f, sizes, -2, 3)
			})
		}
	}
}
