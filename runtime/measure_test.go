//go:build linux && !nocuda

package runtime

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/interp/plantest"
	"github.com/fusec/fusec/runtime/tensor"
)

// matrix is a host tensor of n rows of m ones.
func matrix(t testing.TB, n, m int) *tensor.Tensor {
	x, err := tensor.FromSlice(slices.Repeat([]float32{1}, n*m), n, m)
	require.NoError(t, err)
	return x
}

func TestMedian(t *testing.T) {
	var times []time.Duration
	for n := range 6 {
		assert.Equal(t, time.Duration(max(0, (n-1)/2)), Median(times), "of %d: the lower one of two", n)
		times = append([]time.Duration{time.Duration(n)}, times...)
	}
}

// TestMeasuredRunsAreCounted: a report has a time for each run but those that warm up, and the observer hears of one run.
func TestMeasuredRunsAreCounted(t *testing.T) {
	cpu, err := Open("cpu", Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, cpu.Close()) }()
	softmax, err := cpu.LoadPlan(t.Context(), plantest.Softmax(ir.F32))
	require.NoError(t, err)
	_, triple := loadTriple(t, Options{Kernels: stored})
	for _, of := range []struct {
		fn   *Function
		args Args
	}{
		{softmax, Args{"x": matrix(t, 3, 4), "y": matrix(t, 3, 4)}},
		{triple, Args{"x": ramp(t, 100), "y": ramp(t, 100)}},
	} {
		for _, how := range []Measure{{}, {Repeat: 1}, {Repeat: 3}, {Warmup: 1}, {Warmup: 2, Repeat: 3}, {Repeat: 2}} {
			r, err := of.fn.Measure(t.Context(), of.args, how)
			require.NoError(t, err)
			assert.Len(t, r.Total, max(1, how.Repeat), "%s, %+v", of.fn.Name(), how)
			for _, k := range r.Kernels {
				assert.Len(t, k.Times, max(1, how.Repeat), "%s, kernel %s, %+v", of.fn.Name(), k.Name, how)
			}
			assert.Positive(t, r.Wall)
		}
	}
}

// TestOneMeasuredRunLiesAsARunDoes: only launches that are queued again need their inputs as they were.
func TestOneMeasuredRunLiesAsARunDoes(t *testing.T) {
	for how, again := range map[Measure]bool{{}: false, {Repeat: 1}: false, {Warmup: 1}: true, {Repeat: 2}: true} {
		t.Run(fmt.Sprintf("%+v", how), func(t *testing.T) {
			_, fn := loadTriple(t, Options{Kernels: stored})
			_, err := fn.Measure(t.Context(), Args{"x": ramp(t, 100), "y": ramp(t, 100)}, how)
			require.NoError(t, err)
			layouts := fn.recent[0].binding.work.(*gpuWork).layouts
			require.Len(t, layouts, 1)
			assert.Equal(t, again, layouts[0].again)
		})
	}
}

// TestRunsAreToldOfTheirKernels: as many as the plan has, on the processor too.
func TestRunsAreToldOfTheirKernels(t *testing.T) {
	for _, plan := range []*ir.Plan{plantest.Softmax(ir.F32), plantest.Unfused(plantest.Softmax(ir.F32).Graph)} {
		var counters Counters
		cpu, err := Open("cpu", Options{Observer: &counters})
		require.NoError(t, err)
		fn, err := cpu.LoadPlan(t.Context(), plan)
		require.NoError(t, err)
		args := Args{}
		for _, p := range fn.Params() {
			args[p.Name] = matrix(t, 3, 4)
		}
		require.NoError(t, fn.Run(t.Context(), args))
		assert.EqualValues(t, len(plan.Kernels), counters.Totals().Kernels)
		require.NoError(t, cpu.Close())
	}
}
