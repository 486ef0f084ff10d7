//go:build linux && !nocuda

package runtime

import (
	"context"
	"errors"
	"sync"
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

// TestStreamsWaitForWhoWaits: nobody asks a stream for its work that has been closed meanwhile,
// and whose owner has destroyed it.
func TestStreamsWaitForWhoWaits(t *testing.T) {
	h := holdRun(t)
	d := h.fn.Device()
	owned, err := d.engine.(*gpu).context.NewStream()
	require.NoError(t, err)
	s, err := d.BorrowStream(owned.Handle())
	require.NoError(t, err)
	require.NoError(t, s.Upload(h.x, ramp(t, 64)))
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute) // with which it asks again and again
	defer cancel()
	var waiters []running
	for range 8 {
		waiters = append(waiters, start(func() error { return s.Wait(ctx) }))
	}
	for _, w := range waiters {
		w.waits(t, "Wait")
	}
	h.Hold(false)
	require.NoError(t, s.Close())
	require.NoError(t, owned.Close())
	for _, w := range waiters {
		require.NoError(t, w.err(t))
	}
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

// TestLargeArenasAreKept: a loop of runs that take much of the device keeps its arena, unless the program's caller said
// how much is kept; beside the arenas of others it is kept only where there is room.
func TestLargeArenasAreKept(t *testing.T) {
	const gibi = 1 << 30
	m := func(keep uint64) *memory {
		g := &gpu{opts: Options{KeepMemory: keep}, device: &cuda.Device{}}
		g.device.TotalMemory = 80 * gibi
		return &memory{gpu: g}
	}
	assert.True(t, m(0).keeps(10*gibi, gibi))
	assert.True(t, m(0).keeps(40*gibi, 40*gibi))
	assert.False(t, m(0).keeps(41*gibi, 40*gibi))
	assert.True(t, m(gibi).keeps(gibi, gibi))
	assert.False(t, m(gibi).keeps(2*gibi, 2*gibi))
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
