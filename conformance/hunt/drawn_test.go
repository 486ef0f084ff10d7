package hunt

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/fusec/fusec/conformance"
	"github.com/fusec/fusec/conformance/gen"
	"github.com/fusec/fusec/ir/interp/plantest"
)

// openKept opens an engine whose kernels are kept, so that those of a fixed seed are compiled once on a machine.
func openKept(t *testing.T, name string) []Engine {
	return []Engine{{name, conformance.Open(t, name, conformance.Options{}).Device}}
}

// A drawnCase is a program of a test that draws its own.
type drawnCase struct {
	text    string
	sizes   map[string]int64
	hostile bool // inputs hold NaN, infinities and extremes
}

// compareDrawn draws programs for each engine and compares them with the interpreter. Each engine has programs of its own,
// and the same in each run.
func compareDrawn(t *testing.T, counts map[string]uint64, draw func(*rand.Rand) drawnCase) {
	for name, count := range counts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			engines := openKept(t, name)
			for n := range count {
				seed := n*uint64(len(name)*len(name)) + uint64(len(name)) // others for each engine
				c := draw(rand.New(rand.NewPCG(seed, 17)))
				t.Run(fmt.Sprint(n), func(test *testing.T) {
					test.Log(c.sizes, "\n"+c.text)
					runCase(test, t, &Case{Text: c.text, seed: seed, hostile: c.hostile}, c.sizes, engines)
				})
			}
		})
	}
}

// comparePrograms is compareDrawn of programs that know what they bind.
func comparePrograms(t *testing.T, counts map[string]uint64, draw func(*rand.Rand) *gen.Program) {
	compareDrawn(t, counts, func(r *rand.Rand) drawnCase {
		p := draw(r)
		return drawnCase{p.Source(), p.Sizes, p.Hostile}
	})
}

// TestRangesLeftAloneSimulated runs the programs of runtime/cpu's TestRangesLeftAlone as they are generated for GPUs.
func TestRangesLeftAloneSimulated(t *testing.T) {
	t.Parallel()
	few := fullOr[uint64](40, 10)
	compareDrawn(t, map[string]uint64{"sm_80": few, "sm_90a": few}, func(r *rand.Rand) drawnCase {
		text := rapid.Custom(plantest.RangesLeftAlone).Example(int(r.Uint32()))
		return drawnCase{text: text, sizes: map[string]int64{"N": pick[int64](r, 3, 1, 2, 8), "M": pick[int64](r, 3, 1, 2, 17, 40)}}
	})
}

// pick is one of some things.
func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }
