package cuda

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// deferred is a context on a fake that defers its work.
func deferred(t *testing.T) (*fake, *Context) {
	f := fakeDriver(t)
	f.Defer(true)
	return f, f.context()
}

// TestDeferredWorkWaits: what is queued runs when somebody waits for it and no sooner; a
// query lets one piece of it run.
func TestDeferredWorkWaits(t *testing.T) {
	_, c := deferred(t)
	s, other, x := newStream(t, c), newStream(t, c), deviceFloats(t, c, 1, 2)
	host := must(c.AllocHost(8))(t)
	e := must(c.NewEvent(false))(t)
	require.NoError(t, s.Memset32(x, math.Float32bits(3), 1))
	require.NoError(t, e.Record(s))
	require.NoError(t, s.Memset32(x+4, math.Float32bits(4), 1))
	require.NoError(t, other.Wait(e))
	require.NoError(t, other.CopyDtoH(host.Bytes(), x))
	assert.Equal(t, floats(0, 0), host.Bytes(), "nothing has run")
	require.NoError(t, other.Synchronize())
	assert.Equal(t, floats(3, 2), host.Bytes(), "what was ahead of the event")
	assert.False(t, must(s.Done())(t))
	assert.True(t, must(s.Done())(t))
	assert.True(t, must(e.Done())(t))
	require.NoError(t, s.CopyToPinned(host, 0, 8, x))
	require.NoError(t, s.Synchronize())
	assert.Equal(t, floats(3, 4), host.Bytes())
	require.NoError(t, host.Close())
	require.NoError(t, e.Close())
}

// TestDeferredCopiesReadPinnedMemoryLate, and memory that is not pinned as they are queued;
// to such memory they return when it is filled.
func TestDeferredCopiesReadPinnedMemoryLate(t *testing.T) {
	_, c := deferred(t)
	s, x := newStream(t, c), deviceFloats(t, c, 0, 0)
	host, plain := must(c.AllocHost(4))(t), floats(1)
	copy(host.Bytes(), floats(1))
	require.NoError(t, s.CopyHtoD(x, host.Bytes()))
	require.NoError(t, s.CopyHtoD(x+4, plain))
	copy(host.Bytes(), floats(2))
	copy(plain, floats(2))
	got := make([]byte, 8)
	require.NoError(t, s.CopyDtoH(got, x))
	assert.Equal(t, floats(2, 1), got)
	require.NoError(t, host.Close())
}

func TestEventsTellNoTimeBeforeTheyHavePassed(t *testing.T) {
	_, c := deferred(t)
	s := newStream(t, c)
	start, end := must(c.NewEvent(true))(t), must(c.NewEvent(true))(t)
	require.NoError(t, start.Record(s))
	require.NoError(t, end.Record(s))
	require.NoError(t, start.Synchronize())
	_, err := end.Since(start)
	assert.True(t, isCode(err, codeNotReady))
	assert.False(t, must(end.Done())(t))
	assert.True(t, must(end.Done())(t))
	assert.Zero(t, must(end.Since(start))(t))
	require.NoError(t, start.Close())
	require.NoError(t, end.Close())
}

// TestMisuseIsSeen does one thing too early each time: to memory, code or streams that queued
// work is still to use.
func TestMisuseIsSeen(t *testing.T) {
	for _, row := range []struct {
		want   string
		misuse func(t *testing.T, c *Context, s *Stream)
	}{
		{"memory is freed while a memset is queued on it", func(t *testing.T, c *Context, s *Stream) {
			x := must(c.Alloc(4))(t)
			require.NoError(t, s.Memset8(x, 0, 4))
			require.NoError(t, c.Free(x))
		}},
		{"memory is freed while kernel scale is queued on it", func(t *testing.T, c *Context, s *Stream) {
			x := must(c.Alloc(8))(t)
			f := loadScale(t, c, fakeImage())
			require.NoError(t, must(f.Launch(oneBlock))(t).Run(s, scaleParams(x+4, 1, 1)))
			require.NoError(t, c.Free(x))
		}},
		{"pinned memory is freed while a copy from the device is queued on it", func(t *testing.T, c *Context, s *Stream) {
			x, host := deviceFloats(t, c, 1, 2), must(c.AllocHost(8))(t)
			require.NoError(t, s.CopyDtoH(host.Bytes()[4:], x))
			require.NoError(t, host.Close())
		}},
		{"pinned memory is freed while a copy to the device is queued on it", func(t *testing.T, c *Context, s *Stream) {
			x, host := deviceFloats(t, c, 1), must(c.AllocHost(4))(t)
			require.NoError(t, s.CopyHtoD(x, host.Bytes()))
			require.NoError(t, host.Close())
		}},
		{"a module is unloaded while kernel scale of it is queued", func(t *testing.T, c *Context, s *Stream) {
			m := must(c.LoadModule(fakeImage()))(t)
			l := must(must(m.Function("scale"))(t).Launch(oneBlock))(t)
			require.NoError(t, l.Run(s, scaleParams(deviceFloats(t, c, 1), 1, 1)))
			require.NoError(t, m.Close())
		}},
		{"kernel scale is launched after its module was unloaded", func(t *testing.T, c *Context, s *Stream) {
			m := must(c.LoadModule(fakeImage()))(t)
			l := must(must(m.Function("scale"))(t).Launch(oneBlock))(t)
			require.NoError(t, m.Close())
			require.NoError(t, l.Run(s, scaleParams(deviceFloats(t, c, 1), 1, 1)))
		}},
		{"a memset uses memory that another stream is still to allocate", func(t *testing.T, c *Context, s *Stream) {
			other := newStream(t, c)
			x := must(other.Alloc(4))(t)
			require.NoError(t, s.Memset8(x, 0, 4))
			require.NoError(t, s.Synchronize())
			require.NoError(t, other.Free(x))
		}},
		{"a memset is queued on memory that was freed before", func(t *testing.T, c *Context, s *Stream) {
			x := must(s.Alloc(4))(t)
			require.NoError(t, s.Free(x))
			require.NoError(t, s.Memset8(x, 0, 4))
		}},
		{"memory is freed in the order of one stream while a memset on another is still to use it",
			func(t *testing.T, c *Context, s *Stream) {
				other, x := newStream(t, c), must(s.Alloc(4))(t)
				require.NoError(t, s.Synchronize())
				require.NoError(t, other.Memset8(x, 0, 4))
				require.NoError(t, s.Free(x))
				require.NoError(t, s.Synchronize())
			}},
		{"a memset uses memory that is not allocated", func(t *testing.T, c *Context, s *Stream) {
			x := must(c.Alloc(4))(t)
			require.NoError(t, s.Memset8(x, 0, 5))
			require.NoError(t, s.Synchronize())
			require.NoError(t, c.Free(x))
		}},
		{"a stream is used after it was destroyed", func(t *testing.T, c *Context, s *Stream) {
			gone := must(c.NewStream())(t)
			require.NoError(t, gone.Close())
			require.NoError(t, gone.Synchronize())
		}},
		{"an event is recorded after it was destroyed", func(t *testing.T, c *Context, s *Stream) {
			e := must(c.NewEvent(false))(t)
			require.NoError(t, e.Close())
			require.NoError(t, e.Record(s))
		}},
		{"the context ends with a memset queued", func(t *testing.T, c *Context, s *Stream) {
			x := deviceFloats(t, c, 1)
			require.NoError(t, s.Memset8(x, 0, 4))
			require.NoError(t, c.invoke(symPrimaryCtxRelease, 0))
			must(c.Device().Context())(t) // in place of the one that was released
		}},
	} {
		t.Run(row.want, func(t *testing.T) {
			f, c := deferred(t)
			s := newStream(t, c)
			require.Empty(t, f.Violation())
			row.misuse(t, c, s)
			assert.Equal(t, row.want, f.Violation())
			assert.Empty(t, f.Violation(), "told once")
			require.NoError(t, c.Synchronize())
			f.Violation() // of work that has lost its memory
		})
	}
}

// TestFreedMemoryIsPoisoned: work that outlives its memory does not find it as it was.
func TestFreedMemoryIsPoisoned(t *testing.T) {
	f, c := deferred(t)
	s, host := newStream(t, c), must(c.AllocHost(4))(t)
	x := deviceFloats(t, c, 1)
	copy(host.Bytes(), floats(1))
	require.NoError(t, s.CopyHtoD(x, host.Bytes()))
	require.NoError(t, host.Close())
	assert.Contains(t, f.Violation(), "pinned memory is freed")
	assert.Equal(t, []byte{0xDD, 0xDD, 0xDD, 0xDD}, fetch(t, c, x, 1))
}

// TestGraphLaunchesFollowEachOther: those of one executable graph, on whichever streams, with
// the arguments that it had when they were queued.
func TestGraphLaunchesFollowEachOther(t *testing.T) {
	_, c := deferred(t)
	f := loadScale(t, c, fakeImage())
	l := must(f.Launch(oneBlock))(t)
	s, other, x := newStream(t, c), newStream(t, c), deviceFloats(t, c, 1, 1)
	graph := must(c.NewGraph())(t)
	params := scaleParams(x, 3, 1)
	node := must(graph.AddKernel(l, params))(t)
	exec := must(graph.Instantiate())(t)
	require.NoError(t, exec.Launch(s))
	params.SetPointer(0, x+4)
	require.NoError(t, exec.SetParams(node, params))
	require.NoError(t, exec.Launch(other))
	require.NoError(t, exec.Close())
	require.NoError(t, graph.Close())
	require.NoError(t, other.Synchronize())
	assert.True(t, must(s.Done())(t))
	assert.Equal(t, floats(3, 3), fetch(t, c, x, 2))
}

// TestPoolHoldsWhatIsFreed until it is trimmed, once the stream gets to the free.
func TestPoolHoldsWhatIsFreed(t *testing.T) {
	f, c := deferred(t)
	s := newStream(t, c)
	require.NoError(t, s.Free(must(s.Alloc(64))(t)))
	require.NoError(t, c.TrimPool(0))
	require.NoError(t, s.Synchronize())
	assert.Equal(t, 64, f.PoolHeld())
	require.NoError(t, c.TrimPool(0))
	assert.Zero(t, f.PoolHeld())
}
