package hunt

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec"
	"github.com/fusec/fusec/conformance/gen"
	"github.com/fusec/fusec/ir"
)

// TestDrawnState runs drawn programs whose inputs are state, three steps each. Next values that take the
// place of present ones are among them, and such as must not: a plan in which these do is refused. They are 30, or 60 where
// FUSEC_TEST_FULL is set.
func TestDrawnState(t *testing.T) {
	programs := fullOr[uint64](60, 30)
	if testing.Short() {
		programs = 20
	}
	engines := open(t, []string{"cpu"})
	inPlace, apart := 0, 0
	for seed := range programs {
		p := gen.Draw(seed + 1).WithState()
		if f := try(p, engines); f != nil {
			t.Errorf("seed %d: %v", seed+1, f)
			continue
		}
		compiled, err := fusec.Compile("g.fuse", p.Source(), fusec.Options{})
		require.NoError(t, err)
		for _, b := range compiled.Plan().Buffers {
			if b.Updates != nil && b.InPlace {
				inPlace++
			} else if b.Updates != nil {
				apart++
				takePlace(compiled.Plan(), b)
				assert.Error(t, ir.VerifyPlan(compiled.Plan()), "seed %d: %s", seed+1, b.Apart)
				b.InPlace = false
			}
		}
	}
	t.Logf("%d in place, %d by a second buffer", inPlace, apart)
	assert.Greater(t, inPlace, 10)
	assert.Greater(t, apart, 10)
}

// takePlace makes a plan write a next value in place, whether it may or not.
func takePlace(p *ir.Plan, next *ir.Buffer) {
	next.InPlace = true
	for _, k := range p.Kernels {
		for i, a := range k.Args {
			if a.Buffer == next || a.Buffer == next.Updates {
				a.Shared = true
				if k.Like != nil {
					k.Like.Args[i].Shared = true
				}
			}
		}
	}
}
