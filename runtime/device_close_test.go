//go:build linux && !nocuda

package runtime

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime/cuda"
)

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
