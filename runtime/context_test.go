//go:build linux && !nocuda

package runtime

import (
	"context"
	"errors"
	goruntime "runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
)

// slowKernels is a source whose kernels take until they are let go, or their context ends
// where it heeds it.
type slowKernels struct {
	heeds    bool
	begun    chan struct{} // is sent to by each compile
	let      chan struct{} // closed to let them go
	compiles atomic.Int32
	ended    atomic.Int32 // by their context
}

func newSlowKernels(heeds bool) *slowKernels {
	return &slowKernels{heeds: heeds, begun: make(chan struct{}, 100), let: make(chan struct{})}
}

func (s *slowKernels) Compile(ctx context.Context, p *ir.Program, unit int, arch string) (Kernel, error) {
	s.compiles.Add(1)
	s.begun <- struct{}{}
	ends := ctx.Done()
	if !s.heeds {
		ends = nil
	}
	select {
	case <-s.let:
	case <-ends:
		s.ended.Add(1)
		return Kernel{}, ctx.Err()
	}
	return stored.Compile(ctx, p, unit, arch)
}

// deadline is a context that ends soon.
func deadline(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), soon)
	t.Cleanup(cancel)
	return ctx
}

// promptly checks that a call returned the end of its context; what it waited for is still
// under way then, or the test would not get here.
func promptly(t testing.TB, r running) {
	t.Helper()
	assert.ErrorIs(t, r.err(t), context.DeadlineExceeded)
}

// loadedBy waits until as many units are being loaded as are at a time, each for n calls.
func loadedBy(t testing.TB, fn *Function, n int) {
	t.Helper()
	units := fn.executable.(*gpuProgram).units
	require.Eventually(t, func() bool {
		loading := 0
		for i := range units {
			u := &units[i].loading
			u.mu.Lock()
			if u.call != nil && u.call.waiters == n {
				loading++
			}
			u.mu.Unlock()
		}
		return loading == min(2, goruntime.GOMAXPROCS(0))
	}, 10*time.Second, time.Millisecond)
}

// abandon begins a run and leaves it while it waits for a compile.
func abandon(t testing.TB, source *slowKernels, fn *Function, args Args) {
	ctx, cancel := context.WithCancel(context.Background())
	run := start(func() error { return fn.Run(ctx, args) })
	<-source.begun
	cancel()
	require.ErrorIs(t, run.err(t), context.Canceled)
}

// TestCallersLeaveASharedCompile: the one whose deadline passes returns, and the compile goes on
// for the others, whoever of them began it.
func TestCallersLeaveASharedCompile(t *testing.T) {
	for name, first := range map[string]bool{"who began it": true, "who joined it": false} {
		t.Run(name, func(t *testing.T) {
			source := newSlowKernels(true)
			_, fn := loadTriple(t, Options{Kernels: source})
			run := func(ctx context.Context) running {
				return start(func() error { return fn.Run(ctx, Args{"x": ramp(t, 9), "y": ramp(t, 9)}) })
			}
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			var short, long running
			if first {
				short = run(ctx)
				<-source.begun
				long = run(context.Background())
			} else {
				long = run(context.Background())
				<-source.begun
				short = run(ctx)
			}
			loadedBy(t, fn, 2)
			prepare := start(func() error { return fn.Prepare(deadline(t), map[string]int64{"N": 9}) })
			promptly(t, prepare)
			cancel()
			assert.ErrorIs(t, short.err(t), context.Canceled)
			long.waits(t, "the other run")
			close(source.let)
			require.NoError(t, long.err(t))
			assert.EqualValues(t, 2, source.compiles.Load(), "one of each unit")
			assert.Zero(t, source.ended.Load())
		})
	}
}

// TestAbandonedCompilesEnd when the last who wanted them has left, and can be begun again.
func TestAbandonedCompilesEnd(t *testing.T) {
	source := newSlowKernels(true)
	_, fn := loadTriple(t, Options{Kernels: source})
	args := Args{"x": ramp(t, 9), "y": ramp(t, 9)}
	for range 3 {
		abandon(t, source, fn, args)
	}
	require.Eventually(t, func() bool { return source.ended.Load() == source.compiles.Load() }, 10*time.Second,
		time.Millisecond)
	close(source.let)
	require.NoError(t, fn.Run(context.Background(), args))
}

// TestFunctionsWaitForAbandonedLoads: what a source that heeds no context still brings to the
// device is given back.
func TestFunctionsWaitForAbandonedLoads(t *testing.T) {
	source := newSlowKernels(false)
	f, fn := loadTriple(t, Options{Kernels: source})
	abandon(t, source, fn, Args{"x": ramp(t, 9), "y": ramp(t, 9)})
	closing := start(fn.Close)
	closing.waits(t, "Function.Close")
	close(source.let)
	require.NoError(t, closing.err(t))
	assert.Equal(t, f.Calls("cuModuleLoadDataEx"), f.Calls("cuModuleUnload"))
}

// TestUnitsAreLoadedOnce: an abandoned load and the one that follows it do not both count.
func TestUnitsAreLoadedOnce(t *testing.T) {
	source := newSlowKernels(false)
	f, fn := loadTriple(t, Options{Kernels: source})
	args := Args{"x": ramp(t, 9), "y": ramp(t, 9)}
	abandon(t, source, fn, args)
	again := start(func() error { return fn.Run(context.Background(), args) })
	again.waits(t, "Run")
	close(source.let)
	require.NoError(t, again.err(t))
	assert.Equal(t, 2, f.Calls("cuModuleLoadDataEx"))
}

// failing is a source that panics, or ends the goroutine it is called on.
type failing struct{ fail func() }

func (s failing) Compile(context.Context, *ir.Program, int, string) (Kernel, error) {
	s.fail()
	return Kernel{}, nil
}

func TestSharedWorkThatDoesNotReturn(t *testing.T) {
	var s shared
	begin := func(fn func()) { go fn() }
	do := func(fail func()) error {
		return s.do(context.Background(), begin, func(context.Context) error { fail(); return nil })
	}
	assert.PanicsWithValue(t, "in the middle", func() { _ = do(func() { panic("in the middle") }) })
	assert.ErrorIs(t, do(goruntime.Goexit), errEnded)
	want := errors.New("an error of its own")
	assert.ErrorIs(t, s.do(context.Background(), begin, func(context.Context) error { return want }), want)
	assert.NoError(t, do(func() {}))
	assert.Nil(t, s.call)
	_, fn := loadTriple(t, Options{Kernels: failing{goruntime.Goexit}})
	assert.ErrorIs(t, fn.Run(context.Background(), Args{"x": ramp(t, 9), "y": ramp(t, 9)}), errEnded)
}

// TestCacheHints, to whoever comes first.
func TestCacheHints(t *testing.T) {
	var counters Counters
	_, fn := loadTriple(t, Options{Kernels: stored, Observer: &counters})
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() { assert.NoError(t, fn.Run(context.Background(), Args{"x": ramp(t, 9), "y": ramp(t, 9)})) })
	}
	group.Wait()
	assert.EqualValues(t, 2, counters.Totals().Compiles+counters.Totals().Hits)
}

// TestRunsDoNotWaitForTheContext of a device longer than their own.
func TestRunsDoNotWaitForTheContext(t *testing.T) {
	_, fn := loadTriple(t, Options{Kernels: stored})
	g := fn.Device().engine.(*gpu)
	require.NoError(t, g.enter(context.Background()))
	slow := makeGPU(g.device, g.opts)
	assert.ErrorIs(t, slow.enter(deadline(t)), context.DeadlineExceeded)
	_, err := slow.takeStream(deadline(t))
	assert.ErrorIs(t, err, context.DeadlineExceeded)
	x := &gpuProgram{gpu: slow, program: tripleProgram(), kernels: stored, units: make([]gpuUnit, 3)}
	_, err = x.loadUnit(deadline(t), 0)
	assert.ErrorIs(t, err, context.DeadlineExceeded)
	x.loads.Wait()
}

// TestEmptyRunsDoNotWaitForTheContext either, which they need though they load nothing.
func TestEmptyRunsDoNotWaitForTheContext(t *testing.T) {
	f := fakeDriver(t)
	f.Hold(true)
	fn, err := f.open(t, Options{Kernels: stored}).Load(context.Background(), tripleProgram())
	require.NoError(t, err)
	promptly(t, start(func() error { return fn.Run(deadline(t), Args{"x": ramp(t, 0), "y": ramp(t, 0)}) }))
	f.Hold(false)
	require.NoError(t, fn.Run(context.Background(), Args{"x": ramp(t, 0), "y": ramp(t, 0)}))
}

// TestClosingTurnsRunsAway at once, though it waits itself.
func TestClosingTurnsRunsAway(t *testing.T) {
	h := holdRun(t)
	run := start(func() error { return h.fn.Run(context.Background(), Args{"x": h.x, "y": ramp(t, 64)}) })
	h.under(t, "cuMemcpyDtoHAsync_v2", 2)
	closing := start(h.fn.Close)
	closing.waits(t, "Function.Close")
	assert.ErrorIs(t, h.fn.Run(context.Background(), Args{"x": h.x, "y": ramp(t, 64)}), ErrClosed)
	h.Hold(false)
	require.NoError(t, run.err(t))
	require.NoError(t, closing.err(t))
}

// TestStreamCallsEndWithTheirContext while others of the stream wait for the device: for its
// turn, for memory, for room for what checks find.
func TestStreamCallsEndWithTheirContext(t *testing.T) {
	h := holdRun(t)
	args := Args{"x": h.x, "y": h.y}
	promptly(t, start(func() error { return h.s.Wait(deadline(t)) }))
	copies := h.Calls("cuMemcpyDtoHAsync_v2")
	download := start(func() error { return h.s.Download(ramp(t, 64), h.y) })
	h.under(t, "cuMemcpyDtoHAsync_v2", copies+1)
	promptly(t, start(func() error { return h.fn.Queue(deadline(t), h.s, args) }))
	promptly(t, start(func() error { return h.s.Wait(deadline(t)) }))
	h.Hold(false)
	require.NoError(t, download.err(t))
	require.NoError(t, h.fn.Queue(context.Background(), h.s, args))
}

// TestGrowingArenasEndWithTheirContext: memory that is not the pool's is freed when the work
// that uses it is done.
func TestGrowingArenasEndWithTheirContext(t *testing.T) {
	h := holdRun(t)
	const n = 3 << 20
	d := h.fn.Device()
	h.Hold(false)
	x, y := uploaded(t, d, ramp(t, n)), newBuffer(t, d, n)
	require.NoError(t, h.fn.Prepare(context.Background(), map[string]int64{"N": n}))
	q := h.s.queue.(*gpuStream)
	require.NotZero(t, q.arena.at)
	require.False(t, q.arena.pooled)
	h.Hold(true)
	require.NoError(t, h.fn.Queue(context.Background(), h.s, Args{"x": h.x, "y": h.y}))
	launched, before := h.Calls("cuLaunchKernel"), q.arena
	promptly(t, start(func() error { return h.fn.Queue(deadline(t), h.s, Args{"x": x, "y": y}) }))
	assert.Equal(t, launched, h.Calls("cuLaunchKernel"), "nothing of the run is queued")
	assert.Equal(t, before, q.arena)
	h.Hold(false)
	require.NoError(t, h.fn.Queue(context.Background(), h.s, Args{"x": x, "y": y}))
	require.NoError(t, h.s.Wait(context.Background()))
	requireTripled(t, ramp(t, n), downloaded(t, y))
}

// TestChecksWithoutRoomEndWithTheirContext: runs whose findings have no room wait for the
// stream; what such a run would do is not done.
func TestChecksWithoutRoomEndWithTheirContext(t *testing.T) {
	f, fn := loadChecked(t)
	f.Defer(true)
	d, ctx := fn.Device(), context.Background()
	good, bad := checkedBuffers(t, d, inside...), checkedBuffers(t, d, 1, 11, 0, 0)
	s := newStream(t, d)
	require.NoError(t, fn.Queue(ctx, s, bad))
	f.Hold(true)
	defer f.Hold(false)
	for range checkBuffer/(2*ir.CheckBytes) - 1 {
		require.NoError(t, fn.Queue(ctx, s, good))
	}
	graphs := f.Calls("cuGraphLaunch")
	promptly(t, start(func() error { return fn.Queue(deadline(t), s, good) }))
	assert.Equal(t, graphs, f.Calls("cuGraphLaunch"))
	waiting := start(func() error { return fn.Queue(ctx, s, good) })
	waiting.waits(t, "Queue")
	promptly(t, start(func() error { return s.Wait(deadline(t)) }))
	promptly(t, start(func() error { return fn.Queue(deadline(t), s, good) }))
	f.Hold(false)
	require.NoError(t, waiting.err(t))
	var found *ir.IndexError
	require.ErrorAs(t, s.Wait(ctx), &found)
	assert.EqualValues(t, 11, found.Index)
}

// TestGrowingCountersEndWithTheirContext, as arenas do.
func TestGrowingCountersEndWithTheirContext(t *testing.T) {
	f := fakeDriver(t)
	f.Defer(true)
	d := f.open(t, Options{Kernels: stored})
	fn, err := d.Load(context.Background(), countedProgram())
	require.NoError(t, err)
	const n = 5000
	small, large := Args{"x": newBuffer(t, d, 100), "y": newBuffer(t, d, 100)}, Args{"x": newBuffer(t, d, n), "y": newBuffer(t, d, n)}
	s := newStream(t, d)
	require.NoError(t, fn.Prepare(context.Background(), map[string]int64{"N": n}))
	require.NoError(t, fn.Queue(context.Background(), s, small))
	require.NoError(t, s.Wait(context.Background()))
	q := s.queue.(*gpuStream)
	require.False(t, q.counters.pooled)
	f.Hold(true)
	defer f.Hold(false)
	require.NoError(t, fn.Queue(context.Background(), s, small))
	launched, before := f.Calls("cuLaunchKernel"), q.counters
	promptly(t, start(func() error { return fn.Queue(deadline(t), s, large) }))
	assert.Equal(t, launched, f.Calls("cuLaunchKernel"))
	assert.Equal(t, before, q.counters)
	f.Hold(false)
	require.NoError(t, fn.Queue(context.Background(), s, large))
	require.NoError(t, s.Wait(context.Background()))
}
