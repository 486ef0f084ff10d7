//go:build linux && !nocuda

package runtime

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime/cuda"
)

// TestCleanTimes: the cache is emptied by reading, which a launch is for each time that is taken;
// memory is written once, for the reads to find zeros.
func TestCleanTimes(t *testing.T) {
	f, fn := loadTriple(t, Options{})
	x, y := ramp(t, 256), ramp(t, 256)
	args := Args{"x": x, "y": y}
	const repeat, kernels = 3, 2
	for _, each := range []bool{false, true} {
		_, err := fn.Measure(t.Context(), args, Measure{}) // loads the kernels
		require.NoError(t, err)
		launches, sets := f.Calls("cuLaunchKernel")+f.Calls("cuLaunchKernelEx"), f.Calls("cuMemsetD8Async")
		r, err := fn.Measure(t.Context(), args, Measure{Warmup: 1, Repeat: repeat, FlushL2: true, Clean: true, FlushKernels: each})
		require.NoError(t, err)
		require.NoError(t, r.Unclean)
		requireTripled(t, x, y)
		assert.Len(t, r.Total, repeat)
		for _, k := range r.Kernels {
			assert.Len(t, k.Times, repeat)
		}
		flushes := 2 // of a run as a whole, and of its kernels
		if each {
			flushes = 1 + kernels
		}
		const forEvents = 9 * (1 + 1 + 1 + 9) // rounds of a wait and one launch, and a wait and nine
		want := forEvents + repeat*(2*flushes+kernels)
		assert.Equal(t, want, f.Calls("cuLaunchKernel")+f.Calls("cuLaunchKernelEx")-launches, "flush each: %v", each)
		assert.Equal(t, 1, f.Calls("cuMemsetD8Async")-sets)
	}
}

// withoutProbe is kernels without those of the runtime's own.
type withoutProbe struct{ KernelSource }

var errNoProbe = errors.New("there is no such kernel")

func (k withoutProbe) Compile(ctx context.Context, p *ir.Program, unit int, arch string) (Kernel, error) {
	if strings.HasPrefix(p.Units[unit].Entry, "fusec_") {
		return Kernel{}, errNoProbe
	}
	return k.KernelSource.Compile(ctx, p, unit, arch)
}

// TestUncleanTimes: where the runtime's own kernels are not to be had, the cache is overwritten, and the report says so.
func TestUncleanTimes(t *testing.T) {
	f, fn := loadTriple(t, Options{Kernels: withoutProbe{stored}})
	r, err := fn.Measure(t.Context(), Args{"x": ramp(t, 8), "y": ramp(t, 8)}, Measure{Repeat: 2, FlushL2: true, Clean: true})
	require.NoError(t, err)
	require.ErrorIs(t, r.Unclean, errNoProbe)
	assert.ErrorContains(t, r.Unclean, "kernel fusec_read")
	assert.Zero(t, r.Events)
	assert.Equal(t, 4, f.Calls("cuMemsetD8Async"), "each run as a whole, and by kernels")
}

// TestEventsAreSubtracted: but a time never becomes nothing.
func TestEventsAreSubtracted(t *testing.T) {
	r := &Report{Events: 2 * time.Microsecond}
	for took, want := range map[time.Duration]time.Duration{10000: 8000, 4000: 2000, 3000: 1500, 0: 0} {
		assert.Equal(t, want, r.less(took))
	}
}

// TestProbeCompiles: for the oldest and the newest architecture here, and the reads are there.
func TestProbeCompiles(t *testing.T) {
	requireNVRTC(t)
	c := NewCompiler(Options{Cache: newCache(t, t.TempDir())})
	for _, arch := range []string{"sm_75", "sm_90a"} {
		p := probeProgram()
		for unit := range p.Units {
			k, err := c.Compile(t.Context(), p, unit, arch)
			require.NoError(t, err)
			assert.Zero(t, k.Spills)
			if unit == probeRead {
				assert.Contains(t, string(k.PTX), "ld.global.cg.v4.u32")
				assert.Contains(t, string(k.PTX), "st.global")
			}
		}
	}
}

// TestEventTimeOnGPU prints what events take on the GPU of this machine, if there is one, and by what it is known.
func TestEventTimeOnGPU(t *testing.T) {
	d, err := Open("cuda", Options{})
	if errors.Is(err, cuda.ErrNoDriver) || errors.Is(err, cuda.ErrNoDevice) {
		t.Skipf("this test needs a GPU: %v", err)
	}
	require.NoError(t, err)
	defer func() { require.NoError(t, d.Close()) }()
	g := d.engine.(*gpu)
	require.NoError(t, g.enter(t.Context()))
	require.NoError(t, g.probe.ready(t.Context(), g))
	require.NoError(t, g.withStream(func(s *gpuStream) error {
		start, err := g.context.NewEvent(true)
		require.NoError(t, err)
		end, err := g.context.NewEvent(true)
		require.NoError(t, err)
		return g.context.Do(func() error {
			for _, launches := range []int{0, 1, 2, 4, 9, 17} {
				var times []time.Duration
				for range 21 {
					took, err := g.probe.timeNothing(s.Stream, launches, start, end)
					require.NoError(t, err)
					times = append(times, took)
				}
				t.Logf("%2d empty launches between two events: %v", launches, Median(times))
			}
			for range 3 {
				took, err := g.probe.eventTime(s.Stream, start, end)
				require.NoError(t, err)
				t.Logf("events take %v", took)
			}
			return errors.Join(start.Close(), end.Close())
		})
	}))
}
