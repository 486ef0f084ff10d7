package fusec_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/fusec/fusec"
)

// TestTileFoldsCompile compiles the products that are folded a tile at a time: for each
// one architecture, the first and the last size class.
func TestTileFoldsCompile(t *testing.T) {
	if testing.Short() {
		t.Skip("the examples do")
	}
	n := fusec.RequireNVRTC(t)
	var units []unit
	for i, name := range slices.Sorted(maps.Keys(fusec.TileFolds)) {
		arch := []string{"sm_90a", "sm_90a", "sm_80"}[i%3]
		_, plan, p := program(t, name+".fuse", fusec.TileFoldProgram(name), arch)
		units = append(units, unitsOf(name, plan, p, arch, true)...)
	}
	compileAll(t, n, units)
}
