package fusec_test

import (
	"testing"

	"github.com/fusec/fusec"
)

// TestSharedColumnsCompile compiles every size class of the programs whose columns are
// shared, in turns for a device with clusters and for one without.
func TestSharedColumnsCompile(t *testing.T) { compileInTurns(t, fusec.SharedColumns()) }

// TestChainsCompile does so for the programs whose blocks post what they have folded.
func TestChainsCompile(t *testing.T) { compileInTurns(t, fusec.Chains()) }

func compileInTurns(t *testing.T, sources []string) {
	t.Helper()
	if testing.Short() {
		t.Skip("the examples do")
	}
	n := fusec.RequireNVRTC(t)
	var units []unit
	for i, src := range sources {
		arch := []string{"sm_90a", "sm_90a", "sm_80"}[i%3]
		_, plan, p := program(t, "share.fuse", src, arch)
		units = append(units, unitsOf(src, plan, p, arch, false)...)
	}
	compileAll(t, n, units)
}
