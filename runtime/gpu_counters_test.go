//go:build linux && !nocuda

package runtime

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/runtime/cuda"
	"github.com/fusec/fusec/runtime/internal/fakecupti"
)

// TestKernelsAreCounted: each kernel has counters of its own, whichever caches are emptied, and those that
// are not launched have none.
func TestKernelsAreCounted(t *testing.T) {
	t.Setenv("FUSEC_CUPTI", fakecupti.New(t, ""))
	_, fn := loadTriple(t, Options{})
	x, y := ramp(t, 100), ramp(t, 100)
	for _, how := range []Measure{{}, {FlushL2: true}, {Repeat: 2, FlushL2: true, Clean: true}, {FlushL2: true, Clean: true, FlushKernels: true}} {
		r, err := fn.Count(t.Context(), Args{"x": x, "y": y}, how, "dram__a", "lost__b")
		require.NoError(t, err)
		requireTripled(t, x, y)
		require.Len(t, r.Kernels, 2)
		for i, k := range r.Kernels {
			require.Len(t, k.Counters, 2)
			assert.Equal(t, float64(1000*i+7), k.Counters[0])
			assert.True(t, math.IsNaN(k.Counters[1]))
			assert.Len(t, k.Times, max(1, how.Repeat), "times are taken as without")
		}
	}
	r, err := fn.Count(t.Context(), Args{"x": ramp(t, 0), "y": ramp(t, 0)}, Measure{}, "dram__a")
	require.NoError(t, err)
	for _, k := range r.Kernels {
		assert.Empty(t, k.Counters)
	}
}

// TestCountingThatFails: the run fails, its memory is given back, and the next run is as any other.
func TestCountingThatFails(t *testing.T) {
	for flag, want := range map[string]error{"-DDENIED": cuda.ErrCountersDenied, "-DOLD": cuda.ErrNoCUPTI} {
		t.Run(flag, func(t *testing.T) {
			t.Setenv("FUSEC_CUPTI", fakecupti.New(t, flag))
			_, fn := loadTriple(t, Options{})
			x, y := ramp(t, 100), ramp(t, 100)
			_, err := fn.Count(t.Context(), Args{"x": x, "y": y}, Measure{FlushL2: true, Clean: true}, "dram__a")
			require.ErrorIs(t, err, want)
			require.ErrorContains(t, err, "counters of the hardware: ")
			require.NoError(t, fn.Run(t.Context(), Args{"x": x, "y": y}))
			requireTripled(t, x, y)
		})
	}
}
