//go:build linux && !nocuda

package runtime

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime/cuda"
	"github.com/fusec/fusec/runtime/tensor"
)

// soon is how long a test gives something to happen that should not: too short a time lets a
// mistake pass, and never fails what is right.
const soon = 30 * time.Millisecond

// under waits until so many calls of the driver have begun.
func (f *fake) under(t testing.TB, call string, n int) {
	t.Helper()
	require.Eventually(t, func() bool { return f.Calls(call) >= n }, 10*time.Second, time.Millisecond, call)
}

// stored are kernels that need not be compiled.
var stored = compiled{[]byte(".version 8.4")}

// running is a call on a goroutine of its own.
type running struct{ done chan error }

func start(fn func() error) running {
	r := running{make(chan error, 1)}
	go func() { r.done <- fn() }()
	return r
}

// waits checks that the call does not return for a while.
func (r running) waits(t testing.TB, what string) {
	t.Helper()
	select {
	case err := <-r.done:
		require.Fail(t, what+" returned", "%v", err)
	case <-time.After(soon):
	}
}

// err is what the call returned.
func (r running) err(t testing.TB) error {
	t.Helper()
	select {
	case err := <-r.done:
		return err
	case <-time.After(20 * time.Second):
		require.Fail(t, "a call does not return")
		return nil
	}
}

// held is a stream of a driver that holds its work, with a run and a copy to pinned memory
// queued.
type held struct {
	*fake
	fn     *Function
	s      *Stream
	x, y   *Buffer
	pinned *HostBuffer
}

func holdRun(t *testing.T) *held {
	f, fn := loadTriple(t, Options{Kernels: stored})
	f.Defer(true)
	d, err := fn.Device(), error(nil)
	h := &held{fake: f, fn: fn, s: newStream(t, d), x: uploaded(t, d, ramp(t, 64)), y: newBuffer(t, d, 64)}
	h.pinned, err = d.NewHostBuffer(ir.F32, 64)
	require.NoError(t, err)
	require.NoError(t, fn.Prepare(context.Background(), map[string]int64{"N": 64}))
	f.Hold(true)
	t.Cleanup(func() { f.Hold(false) })
	require.NoError(t, fn.Queue(context.Background(), h.s, Args{"x": h.x, "y": h.y}))
	require.NoError(t, h.s.Download(h.pinned.Tensor(), h.y))
	return h
}

// TestClosingWaitsForWhatIsQueued: what queued work uses stays until it is done. The driver
// tells of what goes too early.
func TestClosingWaitsForWhatIsQueued(t *testing.T) {
	for name, closes := range map[string]func(h *held) error{
		"input":    func(h *held) error { return h.x.Close() },
		"output":   func(h *held) error { return h.y.Close() },
		"function": func(h *held) error { return h.fn.Close() },
		"pinned":   func(h *held) error { return h.pinned.Close() },
		"stream":   func(h *held) error { return h.s.Close() },
		"device":   func(h *held) error { return h.fn.Device().Close() },
	} {
		t.Run(name, func(t *testing.T) {
			h := holdRun(t)
			closing := start(func() error { return closes(h) })
			closing.waits(t, "Close")
			h.Hold(false)
			require.NoError(t, closing.err(t))
		})
	}
}

// TestClosingBesideAStreamThatIsClosed: that a stream is being closed does not mean that its
// work is done.
func TestClosingBesideAStreamThatIsClosed(t *testing.T) {
	for name, closes := range map[string]func(h *held) error{
		"input":    func(h *held) error { return h.x.Close() },
		"function": func(h *held) error { return h.fn.Close() },
		"pinned":   func(h *held) error { return h.pinned.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			h := holdRun(t)
			syncs := h.Calls("cuStreamSynchronize")
			stream := start(h.s.Close)
			h.under(t, "cuStreamSynchronize", syncs+1)
			other := start(func() error { return closes(h) })
			other.waits(t, "Close")
			stream.waits(t, "Stream.Close")
			h.Hold(false)
			require.NoError(t, stream.err(t))
			require.NoError(t, other.err(t))
		})
	}
}

// TestDevicesCloseInOrder: whatever is left when a device closes, and in whichever order it was
// made, goes after what uses it.
func TestDevicesCloseInOrder(t *testing.T) {
	f := fakeDriver(t)
	for range 10 {
		d := f.open(t, Options{Kernels: stored})
		fn, err := d.Load(context.Background(), tripleProgram())
		require.NoError(t, err)
		for range 3 {
			pinned, err := d.NewHostBuffer(ir.F32, 64)
			require.NoError(t, err)
			s, x, y := newStream(t, d), newBuffer(t, d, 64), newBuffer(t, d, 64)
			require.NoError(t, s.Upload(x, pinned.Tensor()))
			require.NoError(t, fn.Queue(context.Background(), s, Args{"x": x, "y": y}))
			require.NoError(t, s.Download(pinned.Tensor(), y))
		}
		require.NoError(t, d.Close())
	}
}

// TestDevicesWaitForCallsUnderWay: each of these waits for the device, which is held, while the
// device is closed.
func TestDevicesWaitForCallsUnderWay(t *testing.T) {
	for name, call := range map[string]func(h *held) error{
		"upload":     func(h *held) error { return h.x.Upload(ramp(t, 64)) },
		"download":   func(h *held) error { _, err := h.x.Tensor(); return err },
		"new buffer": func(h *held) error { _, err := h.fn.Device().NewBuffer(ir.F32, 5); return err },
		"run":        func(h *held) error { return h.fn.Run(context.Background(), Args{"x": h.x, "y": ramp(t, 64)}) },
		"run to pinned memory": func(h *held) error {
			return h.fn.Run(context.Background(), Args{"x": h.x, "y": h.pinned.Tensor()})
		},
		"stream upload":   func(h *held) error { return h.s.Upload(h.x, ramp(t, 64)) },
		"stream download": func(h *held) error { return h.s.Download(ramp(t, 64), h.y) },
		"wait": func(h *held) error {
			return errors.Join(h.s.Upload(h.x, ramp(t, 64)), h.s.Wait(context.Background()))
		},
		"close a buffer": func(h *held) error { return h.x.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			h := holdRun(t)
			h.Hold(false)
			require.NoError(t, h.s.Wait(context.Background()))
			h.fn.Device().engine.(*gpu).memory.plain.Add(firstPlain) // others are allocated in the order of a stream
			require.NoError(t, h.x.Close())
			h.x = uploaded(t, h.fn.Device(), ramp(t, 64))
			require.NoError(t, h.y.Upload(ramp(t, 64)))
			h.Hold(true)
			waits := []string{"cuStreamSynchronize", "cuMemcpyDtoHAsync_v2", "cuMemcpyHtoDAsync_v2"}
			began := func() (n int) {
				for _, call := range waits {
					n += h.Calls(call)
				}
				return n
			}
			before := began()
			under := start(func() error { return call(h) })
			require.Eventually(t, func() bool { return began() > before }, 10*time.Second, time.Millisecond)
			closing := start(h.fn.Device().Close)
			closing.waits(t, "Device.Close")
			h.Hold(false)
			require.NoError(t, under.err(t))
			require.NoError(t, closing.err(t))
			assert.NoError(t, h.x.Close(), "the device has closed it")
			assert.NoError(t, h.s.Close())
			assert.NoError(t, h.fn.Close())
			assert.NoError(t, h.pinned.Close())
		})
	}
}

// TestClosingWaitsForCallsThatWaitForTheirTurn on a stream: they are under way, though nothing of
// them is queued.
func TestClosingWaitsForCallsThatWaitForTheirTurn(t *testing.T) {
	for name, row := range map[string]struct {
		call   func(h *held, s *Stream) error
		closes func(h *held, s *Stream) error
	}{
		"the function of a run": {(*held).queue, func(h *held, s *Stream) error { return h.fn.Close() }},
		"the stream of a run":   {(*held).queue, func(h *held, s *Stream) error { return s.Close() }},
		"the stream of a copy": {func(h *held, s *Stream) error { return s.Upload(h.x, ramp(t, 64)) },
			func(h *held, s *Stream) error { return s.Close() }},
		"the stream that comes after": {func(h *held, s *Stream) error { return s.After(h.s) },
			func(h *held, s *Stream) error { return s.Close() }},
		"the stream ahead": {func(h *held, s *Stream) error { return s.After(h.s) },
			func(h *held, s *Stream) error { return h.s.Close() }},
	} {
		t.Run(name, func(t *testing.T) {
			h := holdRun(t)
			h.Hold(false)
			require.NoError(t, h.s.Wait(context.Background()))
			s := newStream(t, h.fn.Device())
			require.NoError(t, s.lock(context.Background()))
			under := start(func() error { return row.call(h, s) })
			under.waits(t, "the call")
			closing := start(func() error { return row.closes(h, s) })
			closing.waits(t, "Close")
			s.unlock()
			require.NoError(t, under.err(t))
			require.NoError(t, closing.err(t))
		})
	}
}

func (h *held) queue(s *Stream) error {
	return h.fn.Queue(context.Background(), s, Args{"x": h.x, "y": h.y})
}

// slowEngine is an engine whose calls take until they are let go.
type slowEngine struct {
	processor
	begun, let chan struct{}
	closed     atomic.Bool
}

func (e *slowEngine) wait() {
	e.begun <- struct{}{}
	<-e.let
}

func (e *slowEngine) load(p *ir.Program, plan *ir.Plan, k KernelSource) (executable, error) {
	e.wait()
	return &cpuProgram{}, nil
}

func (e *slowEngine) alloc(bytes int64) (storage, error) {
	e.wait()
	return e.processor.alloc(bytes)
}

func (e *slowEngine) hostMemory(bytes int64) ([]byte, func() error, error) {
	e.wait()
	return e.processor.hostMemory(bytes)
}

func (e *slowEngine) queue() (queue, error) {
	e.wait()
	return e.processor.queue()
}

func (e *slowEngine) expect() { e.wait() }

func (e *slowEngine) memInfo() (free, total uint64, err error) {
	e.wait()
	return 0, 0, nil
}

func (e *slowEngine) close() error {
	e.closed.Store(true)
	return nil
}

// TestDevicesWaitForTheirEngine: its Close comes after every call of it, and after the Close of
// what the calls made.
func TestDevicesWaitForTheirEngine(t *testing.T) {
	for name, call := range map[string]func(d *Device) error{
		"Load":          func(d *Device) error { _, err := d.Load(context.Background(), tripleProgram()); return err },
		"NewBuffer":     func(d *Device) error { _, err := d.NewBuffer(ir.F32, 5); return err },
		"NewHostBuffer": func(d *Device) error { _, err := d.NewHostBuffer(ir.F32, 5); return err },
		"NewStream":     func(d *Device) error { _, err := d.NewStream(); return err },
		"MemInfo":       func(d *Device) error { _, _, err := d.MemInfo(); return err },
		"ExpectCompile": func(d *Device) error { d.ExpectCompile(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			e := &slowEngine{begun: make(chan struct{}, 1), let: make(chan struct{})}
			d := newDevice(CUDA, "slow", "sm_90a", ir.Device{}, Options{Cache: newCache(t, t.TempDir())}, e)
			under := start(func() error { return call(d) })
			<-e.begun
			closing := start(d.Close)
			closing.waits(t, "Device.Close")
			assert.False(t, e.closed.Load())
			close(e.let)
			require.NoError(t, under.err(t))
			require.NoError(t, closing.err(t))
			assert.True(t, e.closed.Load())
			for r := range ranks {
				assert.Empty(t, d.membersOf(r), "what was made is closed")
			}
		})
	}
}

// TestDevicesWaitForFunctionsThatAreClosed by their user, who waits for a kernel that nobody
// wants any more.
func TestDevicesWaitForFunctionsThatAreClosed(t *testing.T) {
	source := newSlowKernels(false)
	_, fn := loadTriple(t, Options{Kernels: source})
	abandon(t, source, fn, Args{"x": ramp(t, 9), "y": ramp(t, 9)})
	function := start(fn.Close)
	function.waits(t, "Function.Close")
	closing := start(fn.Device().Close)
	closing.waits(t, "Device.Close")
	close(source.let)
	require.NoError(t, function.err(t))
	require.NoError(t, closing.err(t))
}

// TestDevicesCloseBesideCalls: a call either counts, and the device waits for it, or is refused.
// The calls wait for the device's context, which is made when it is already being closed.
func TestDevicesCloseBesideCalls(t *testing.T) {
	f := fakeDriver(t)
	for round := range 8 {
		f.Hold(true)
		d := f.open(t, Options{Kernels: stored})
		fn, err := d.Load(context.Background(), tripleProgram())
		require.NoError(t, err)
		var calls []running
		for _, call := range []func() error{
			func() error { _, err := d.NewBuffer(ir.F32, 5); return err },
			func() error { _, err := d.NewHostBuffer(ir.F32, 5); return err },
			func() error { _, err := d.NewStream(); return err },
			func() error { _, err := d.BorrowStream(0); return err },
			func() error { _, _, err := d.MemInfo(); return err },
			func() error { return fn.Prepare(context.Background(), map[string]int64{"N": 9}) },
			func() error { _, err := fn.Call(context.Background(), Args{"x": ramp(t, 9)}); return err },
			func() error { _, err := d.Load(context.Background(), tripleProgram()); return err },
		} {
			for range 3 {
				calls = append(calls, start(call))
			}
		}
		time.Sleep(time.Duration(round) * time.Millisecond / 2)
		closing := start(d.Close)
		time.Sleep(time.Millisecond)
		f.Hold(false)
		require.NoError(t, closing.err(t))
		for _, c := range calls {
			if err := c.err(t); err != nil {
				assert.ErrorIs(t, err, ErrClosed)
			}
		}
	}
}

// TestBorrowedBuffersWait: their owner may free the memory when they are closed.
func TestBorrowedBuffersWait(t *testing.T) {
	h := holdRun(t)
	d := h.fn.Device()
	y, err := d.BorrowBuffer(h.y.memory.(*gpuStorage).at, ir.F32, 64)
	require.NoError(t, err)
	require.NoError(t, h.fn.Queue(context.Background(), h.s, Args{"x": h.x, "y": y}))
	closing := start(y.Close)
	closing.waits(t, "Close of a borrowed buffer")
	h.Hold(false)
	require.NoError(t, closing.err(t))
}

// TestBorrowedStreamsAreWaitedFor: what is queued on them is waited for until they are closed, and no longer:
// their owner may destroy them then.
func TestBorrowedStreamsAreWaitedFor(t *testing.T) {
	h := holdRun(t)
	d := h.fn.Device()
	owned, err := d.engine.(*gpu).context.NewStream()
	require.NoError(t, err)
	s, err := d.BorrowStream(owned.Handle())
	require.NoError(t, err)
	x, y := newBufferOf(d, 256), newBufferOf(d, 256)
	require.NoError(t, s.Upload(x, bytesOf(t, 256)))
	h.Hold(false)
	require.NoError(t, h.s.Wait(context.Background()))
	h.Hold(true)
	closing := start(x.Close)
	closing.waits(t, "Buffer.Close")
	h.Hold(false)
	require.NoError(t, closing.err(t))
	require.NoError(t, s.Close())
	require.NoError(t, owned.Close())
	require.NoError(t, y.Close())
}

// bytesOf is a host tensor of n bytes.
func bytesOf(t testing.TB, n int) *tensor.Tensor {
	x, err := tensor.New(ir.U8, n)
	require.NoError(t, err)
	return x
}

// TestStreamsComeAfterEachOther: what is queued behind After finds what was queued ahead of it.
func TestStreamsComeAfterEachOther(t *testing.T) {
	h := holdRun(t)
	d := h.fn.Device()
	other, z := newStream(t, d), newBuffer(t, d, 64)
	require.NoError(t, other.After(h.s))
	require.NoError(t, h.fn.Queue(context.Background(), other, Args{"x": h.y, "y": z}))
	h.Hold(false)
	require.NoError(t, other.Wait(context.Background()))
	want := make([]float32, 64)
	for i := range want {
		want[i] = 9 * float32(i+1)
	}
	assert.Equal(t, want, downloaded(t, z).Float32s())
}

// TestDevicesWaitForTheirErrands: a compiler that is being opened is not left behind.
func TestDevicesWaitForTheirErrands(t *testing.T) {
	d := fakeDriver(t).open(t, Options{})
	opening, let := make(chan struct{}), make(chan struct{})
	d.engine.(*gpu).compiler.nvrtc = func() (*cuda.NVRTC, error) {
		close(opening)
		<-let
		return nil, cuda.ErrNoNVRTC
	}
	d.ExpectCompile()
	<-opening
	closing := start(d.Close)
	closing.waits(t, "Device.Close")
	close(let)
	require.NoError(t, closing.err(t))
}

// TestCallsAfterCloseAreRefused: with one error that callers can tell.
func TestCallsAfterCloseAreRefused(t *testing.T) {
	f, fn := loadTriple(t, Options{Kernels: stored})
	d, ctx := fn.Device(), context.Background()
	s, x, y := newStream(t, d), newBuffer(t, d, 4), newBuffer(t, d, 4)
	borrowed, err := d.BorrowStream(0)
	require.NoError(t, err)
	cpu, err := Open("cpu", Options{Cache: newCache(t, t.TempDir())})
	require.NoError(t, err)
	onCPU := newBuffer(t, cpu, 4)
	require.NoError(t, cpu.Close())
	require.NoError(t, d.Close())
	calls := f.Calls("cuCtxSetCurrent")
	last := func(_ any, err error) error { return err }
	for name, err := range map[string]error{
		"Load":            last(d.Load(ctx, tripleProgram())),
		"LoadCompiled":    last(d.LoadCompiled(ctx, tripleProgram(), compiled{})),
		"NewBuffer":       last(d.NewBuffer(ir.F32, 4)),
		"NewHostBuffer":   last(d.NewHostBuffer(ir.F32, 4)),
		"NewStream":       last(d.NewStream()),
		"BorrowStream":    last(d.BorrowStream(0)),
		"BorrowBuffer":    last(d.BorrowBuffer(16, ir.F32, 4)),
		"MemInfo":         func() error { _, _, err := d.MemInfo(); return err }(),
		"Run":             fn.Run(ctx, Args{"x": x, "y": y}),
		"Call":            last(fn.Call(ctx, Args{"x": x})),
		"Measure":         last(fn.Measure(ctx, Args{"x": x, "y": y}, Measure{})),
		"Prepare":         fn.Prepare(ctx, map[string]int64{"N": 4}),
		"Queue":           fn.Queue(ctx, s, Args{"x": x, "y": y}),
		"Stream.Upload":   s.Upload(x, ramp(t, 4)),
		"Stream.Download": s.Download(ramp(t, 4), x),
		"Stream.Wait":     s.Wait(ctx),
		"Stream.After":    s.After(borrowed),
		"Buffer.Upload":   x.Upload(ramp(t, 4)),
		"Buffer.Download": x.Download(ramp(t, 4)),
		"Buffer.Tensor":   last(x.Tensor()),
		"CPU Upload":      onCPU.Upload(ramp(t, 4)),
		"CPU NewBuffer":   last(cpu.NewBuffer(ir.F32, 4)),
		"CPU NewStream":   last(cpu.NewStream()),
	} {
		assert.ErrorIs(t, err, ErrClosed, name)
	}
	d.ExpectCompile()
	assert.Equal(t, calls, f.Calls("cuCtxSetCurrent"), "the driver is left alone")
}

// TestStreamsStayWhileTheyAreWaitedFor: a buffer that is freed waits for streams, and one that
// is closed meanwhile stays what it is until then.
func TestStreamsStayWhileTheyAreWaitedFor(t *testing.T) {
	h := holdRun(t)
	d := h.fn.Device()
	idle, err := d.BorrowStream(0) // nothing keeps it once it is closed
	require.NoError(t, err)
	free := start(h.x.Close)
	free.waits(t, "Buffer.Close")
	closing := start(idle.Close)
	closing.waits(t, "Stream.Close") // though nothing is queued on it
	var streams []*Stream
	for range 3 { // which does not have to wait
		streams = append(streams, newStream(t, d))
	}
	h.Hold(false)
	require.NoError(t, free.err(t))
	require.NoError(t, closing.err(t))
	for _, s := range streams {
		require.NoError(t, s.Close())
	}
}

// TestRunsLeaveBuffersToTheBackground: a run that is the last to use a buffer does not wait for
// what others have queued.
func TestRunsLeaveBuffersToTheBackground(t *testing.T) {
	h := holdRun(t)
	h.Hold(false)
	require.NoError(t, h.s.Wait(context.Background()))
	h.fn.Device().engine.(*gpu).memory.plain.Add(firstPlain)
	b := newBuffer(t, h.fn.Device(), 5)
	require.NoError(t, b.acquire())
	require.NoError(t, b.Close())
	h.Hold(true) // so that freeing waits, as it does for what is queued
	b.done()
	closing := start(h.fn.Device().Close)
	closing.waits(t, "Device.Close")
	h.Hold(false)
	require.NoError(t, closing.err(t))
}

// newBufferOf is a buffer of n bytes, which the device allocates at once.
func newBufferOf(d *Device, n int64) *Buffer {
	at, err := d.engine.(*gpu).context.Alloc(uint64(n))
	if err != nil {
		panic(err)
	}
	return d.newBuffer(ir.U8, []int{int(n)}, n, &gpuStorage{gpu: d.engine.(*gpu), block: block{at: at, bytes: n}})
}

// TestPoolIsGivenBack: memory that is freed in the order of a stream is the pool's only when
// the stream gets there.
func TestPoolIsGivenBack(t *testing.T) {
	f := fakeDriver(t)
	d := f.open(t, Options{Kernels: stored})
	fn, err := d.Load(context.Background(), countedProgram())
	require.NoError(t, err)
	d.engine.(*gpu).memory.plain.Add(firstPlain)
	require.NoError(t, fn.Run(context.Background(), Args{"x": ramp(t, 1000), "y": ramp(t, 1000)}))
	newBuffer(t, d, 1000)
	require.NoError(t, d.Close())
	const arena, counters, buffer = 1, 1, 1
	assert.Equal(t, arena+counters+buffer, f.Calls("cuMemFreeAsync"))
	assert.Zero(t, f.PoolHeld())
}

// TestFailedCopiesLeaveNothingUnderWay: a pinned buffer of a copy that failed half-way goes to the
// next copy when what it did has ended.
func TestFailedCopiesLeaveNothingUnderWay(t *testing.T) {
	h := holdRun(t)
	g, q := h.fn.Device().engine.(*gpu), h.s.queue.(*gpuStream)
	h.Hold(false)
	failed := errors.New("the piece failed")
	h.Hold(true)
	copying := start(func() error {
		return g.staged(q.Stream, stagedCopy, func(st *stage, _, _ int) error {
			return errors.Join(q.CopyDtoH(st.buffer.Bytes()[:256], h.x.memory.(*gpuStorage).at), failed)
		})
	})
	copying.waits(t, "the copy")
	h.Hold(false)
	require.ErrorIs(t, copying.err(t), failed)
}

// TestFailedMeasurementsFreeNothingInUse: memory that a measurement overwrites is freed when that
// has ended, measured or not.
func TestFailedMeasurementsFreeNothingInUse(t *testing.T) {
	f, fn := loadTriple(t, Options{Kernels: stored})
	args := Args{"x": ramp(t, 64), "y": ramp(t, 64)}
	f.Fail("cuLaunchKernel", 1, 0)
	_, err := fn.Measure(context.Background(), args, Measure{Repeat: 1, FlushL2: true})
	require.ErrorIs(t, err, cuda.ErrInvalidValue)
	require.NoError(t, fn.Run(context.Background(), args))
}

// TestMemoryThatIsKeptMakesRoom: arenas of idle streams, and what the pool holds, are given back
// before there is too little.
func TestMemoryThatIsKeptMakesRoom(t *testing.T) {
	const mebi = 1 << 20
	f, fn := loadTriple(t, Options{Kernels: stored})
	d := fn.Device()
	for range firstPlain {
		newBuffer(t, d, 1)
	}
	x, y := newBuffer(t, d, mebi), newBuffer(t, d, mebi)
	require.NoError(t, x.Upload(ramp(t, mebi)))
	require.NoError(t, fn.Run(context.Background(), Args{"x": x, "y": y})) // in an arena of 4 MiB and more
	require.NoError(t, newBuffer(t, d, 3*mebi).Close())
	require.GreaterOrEqual(t, f.PoolHeld(), 12*mebi)
	f.Limit(29 * mebi) // 8 in use, 6 of the arena, 12 of the pool
	b, err := d.NewBuffer(ir.F32, 5*mebi)
	require.NoError(t, err)
	require.NoError(t, b.Close())
	_, err = d.NewBuffer(ir.F32, 6*mebi)
	require.ErrorIs(t, err, cuda.ErrOutOfMemory)
	require.NoError(t, fn.Run(context.Background(), Args{"x": x, "y": y}))
	requireTripled(t, ramp(t, mebi), downloaded(t, y))
}

// TestGate: closing waits for all that have entered, however many are turned away meanwhile.
func TestGate(t *testing.T) {
	g := newGate()
	require.True(t, g.enter())
	require.True(t, g.enter())
	closing := start(func() error { g.close(); return nil })
	closing.waits(t, "close")
	for range 100 {
		require.False(t, g.enter())
	}
	require.False(t, g.close(), "at once")
	g.leave()
	closing.waits(t, "close")
	require.False(t, g.enter())
	g.leave()
	require.NoError(t, closing.err(t))
	require.False(t, g.enter())
	idle := newGate()
	require.True(t, idle.close())
	require.False(t, idle.close())

	busy := newGate()
	var under, group = sync.WaitGroup{}, sync.WaitGroup{}
	var most int
	var mu sync.Mutex
	for range 8 {
		under.Add(1)
		group.Go(func() {
			for first := true; busy.enter(); first = false {
				if first {
					under.Done()
				}
				mu.Lock()
				most++
				mu.Unlock()
				busy.leave()
			}
		})
	}
	under.Wait()
	require.True(t, busy.close())
	mu.Lock()
	at := most
	mu.Unlock()
	group.Wait()
	assert.Equal(t, at, most, "nobody is inside after close")
}
