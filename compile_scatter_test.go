package fusec_test

import (
	"testing"

	"github.com/fusec/fusec"
)

// TestScattersCompile compiles the kernels of folds into rows that the columns name.
func TestScattersCompile(t *testing.T) {
	n := fusec.RequireNVRTC(t)
	var units []unit
	for _, arch := range []string{"sm_90a", "sm_80"} {
		_, plan, p := program(t, "scatter.fuse", fusec.ScatterGraph, arch)
		units = append(units, unitsOf("scatter", plan, p, arch, testing.Short())...)
		_, plan, p = program(t, "histogram.fuse", fusec.HistogramGraph, arch)
		units = append(units, unitsOf("histogram", plan, p, arch, true)...) // the others are as those above
	}
	compileAll(t, n, units)
}
