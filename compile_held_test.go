package fusec_test

import (
	"testing"

	"github.com/fusec/fusec"
	"github.com/fusec/fusec/ir"
)

// TestHeldRowsCompile compiles the rungs whose blocks have several rows.
func TestHeldRowsCompile(t *testing.T) {
	n := fusec.RequireNVRTC(t)
	var units []unit
	for _, c := range fusec.HeldRows {
		_, plan, p := program(t, c.Name, c.Source, "sm_90a")
		for i, k := range plan.Launched() {
			var kept []*ir.Variant
			var launched []ir.LaunchVariant
			for j, v := range k.Variants {
				if v.Schedule.Stages > 0 && !v.Schedule.Index64 {
					kept, launched = append(kept, v), append(launched, p.Launches[i].Variants[j])
				}
			}
			k.Variants, p.Launches[i].Variants = kept, launched
		}
		if testing.Short() {
			p.Launches[0].Variants = p.Launches[0].Variants[:1]
		}
		units = append(units, unitsOf(c.Name, plan, p, "sm_90a", false)...)
	}
	compileAll(t, n, units)
}
