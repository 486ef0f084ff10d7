package fusec_test

import (
	"fmt"
	"testing"

	"github.com/fusec/fusec"
)

// TestChecksCompile compiles kernels of checks, and those beside them.
func TestChecksCompile(t *testing.T) {
	n := fusec.RequireNVRTC(t)
	var units []unit
	for i, text := range fusec.CheckedGraphs {
		for _, arch := range []string{"sm_90a", "sm_80"} {
			label := fmt.Sprint("graph ", i)
			_, plan, p := program(t, label, text, arch)
			units = append(units, unitsOf(label, plan, p, arch, true)...)
		}
	}
	compileAll(t, n, units)
}
