package fusec_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/fusec/fusec"
	"github.com/fusec/fusec/ir"
)

// TestRowProductsCompile compiles products that wait for folds over their rows: aligned,
// of odd length, and as long as a block holds.
func TestRowProductsCompile(t *testing.T) {
	if testing.Short() {
		t.Skip("the examples do")
	}
	n := fusec.RequireNVRTC(t)
	var units []unit
	for i, name := range slices.Sorted(maps.Keys(fusec.RowProducts)) {
		lengths := []int{[]int{67, 256}[i%2], 1000}
		switch name {
		case "rows transposed", "on the right": // longer folds across rows are split
			lengths = []int{67}
		case "no folds", "batches, no folds": // longer ones are the slice mapping's
			lengths = []int{67, 256}
		case "two axes": // more than a block holds
			lengths = []int{256}
		}
		for j, columns := range lengths {
			arch := []string{"sm_90a", "sm_80"}[(i/2+j)%2]
			if columns == 1000 {
				arch = "sm_90a"
			}
			_, plan, p := program(t, name+".fuse", fusec.RowProduct(name, columns), arch)
			mapping := plan.Launched()[0].Variants[0].Schedule.Mapping
			assert.Equal(t, ir.RowProductMapping, mapping, "%s, %d columns: %v", name, columns, mapping)
			units = append(units, unitsOf(name, plan, p, arch, true)...)
		}
	}
	compileAll(t, n, units)
}
