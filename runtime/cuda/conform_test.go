package cuda

import (
	"encoding/binary"
	"errors"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// conform checks what every driver must do, the fake one and that of a GPU. image
// holds the kernel of scaleSource.
func conform(t *testing.T, c *Context, image []byte) {
	t.Run("copies", func(t *testing.T) { conformCopies(t, c) })
	t.Run("empty", func(t *testing.T) { conformEmpty(t, c) })
	t.Run("stream memory", func(t *testing.T) { conformStreamMemory(t, c) })
	t.Run("events", func(t *testing.T) { conformEvents(t, c) })
	t.Run("launch", func(t *testing.T) { conformLaunch(t, c, image) })
	t.Run("graph", func(t *testing.T) { conformGraph(t, c, image) })
	t.Run("graph update", func(t *testing.T) { conformGraphUpdate(t, c, image) })
	t.Run("built graph", func(t *testing.T) { conformBuiltGraph(t, c, image) })
	t.Run("failed capture", func(t *testing.T) { conformFailedCapture(t, c) })
	t.Run("bad modules", func(t *testing.T) { conformBadModules(t, c, image) })
	t.Run("out of memory", func(t *testing.T) { conformOutOfMemory(t, c) })
}

func floats(values ...float32) []byte {
	var data []byte
	for _, v := range values {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(v))
	}
	return data
}

// deviceFloats puts values on the device until the test ends.
func deviceFloats(t *testing.T, c *Context, values ...float32) DevicePtr {
	p := must(c.Alloc(uint64(4 * len(values))))(t)
	t.Cleanup(func() { require.NoError(t, c.Free(p)) })
	require.NoError(t, c.CopyHtoD(p, floats(values...)))
	require.NoError(t, c.Synchronize()) // the copy is staged: no other stream waits for it
	return p
}

// fetch waits for the context and reads back n values.
func fetch(t *testing.T, c *Context, p DevicePtr, n int) []byte {
	require.NoError(t, c.Synchronize())
	data := make([]byte, 4*n)
	require.NoError(t, c.CopyDtoH(data, p))
	return data
}

func newStream(t *testing.T, c *Context) *Stream {
	s := must(c.NewStream())(t)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func loadScale(t *testing.T, c *Context, image []byte) *Function {
	m := must(c.LoadModule(image))(t)
	t.Cleanup(func() { require.NoError(t, m.Close()) })
	f := must(m.Function("scale"))(t)
	assert.Equal(t, "scale", f.Name())
	assert.Same(t, m, f.Module())
	return f
}

// scaleParams are the arguments of scaleSource's kernel.
func scaleParams(x DevicePtr, by float32, n uint32) *Params {
	p := NewParams(8, 4, 4)
	p.SetPointer(0, x)
	p.SetFloat32(1, by)
	p.SetUint32(2, n)
	return p
}

var oneBlock = LaunchConfig{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{32, 1, 1}}

func conformCopies(t *testing.T, c *Context) {
	s := newStream(t, c)
	host := must(c.AllocHost(12))(t)
	copy(host.Bytes(), floats(1, 2, 3))
	a := deviceFloats(t, c, 0, 0, 0)
	b := deviceFloats(t, c, 0, 0, 0)
	require.NoError(t, s.CopyHtoD(a, host.Bytes()))
	require.NoError(t, s.CopyDtoD(b, a, 12))
	clear := make([]byte, 12)
	require.NoError(t, s.Synchronize())
	copy(host.Bytes(), clear)
	require.NoError(t, s.CopyToPinned(host, 0, 1, b))
	require.NoError(t, s.CopyToPinned(host, 1, len(host.Bytes())-1, b+1))
	require.NoError(t, s.CopyToPinned(host, 0, 0, 0))
	require.NoError(t, s.Synchronize())
	assert.Equal(t, floats(1, 2, 3), host.Bytes())
	require.NoError(t, c.CopyDtoD(a, b+4, 8))
	assert.Equal(t, floats(2, 3, 3), fetch(t, c, a, 3))
	require.NoError(t, host.Close())
	require.NoError(t, host.Close())
	assert.Empty(t, host.Bytes())
}

// conformEmpty: nothing is copied, set, allocated or freed where there is nothing.
func conformEmpty(t *testing.T, c *Context) {
	s := newStream(t, c)
	assert.Zero(t, must(c.Alloc(0))(t))
	assert.Zero(t, must(s.Alloc(0))(t))
	host := must(c.AllocHost(0))(t)
	for _, err := range []error{c.Free(0), s.Free(0), host.Close(), c.CopyHtoD(0, nil), c.CopyDtoH(nil, 0),
		c.CopyDtoD(0, 0, 0), s.CopyHtoD(0, nil), s.CopyDtoH(nil, 0), s.CopyDtoD(0, 0, 0),
		s.Memset8(0, 1, 0), s.Memset32(0, 1, 0)} {
		assert.NoError(t, err)
	}
}

func conformStreamMemory(t *testing.T, c *Context) {
	require.NoError(t, c.SetPoolThreshold(KeepAll))
	s := newStream(t, c)
	p := must(s.Alloc(16))(t)
	require.NoError(t, s.Memset32(p, math.Float32bits(1.5), 4))
	require.NoError(t, s.Memset8(p+12, 0, 4))
	got := make([]byte, 16)
	require.NoError(t, s.CopyDtoH(got, p))
	require.NoError(t, s.Free(p))
	require.NoError(t, s.Synchronize())
	assert.Equal(t, floats(1.5, 1.5, 1.5, 0), got)
	require.NoError(t, c.TrimPool(0))
	require.NoError(t, c.SetPoolThreshold(0))
}

func conformEvents(t *testing.T, c *Context) {
	s, other := newStream(t, c), newStream(t, c)
	start, end := must(c.NewEvent(true))(t), must(c.NewEvent(true))(t)
	plain := must(c.NewEvent(false))(t)
	p := deviceFloats(t, c, make([]float32, 1<<20)...)
	require.NoError(t, start.Record(s))
	require.NoError(t, s.Memset8(p, 1, 4<<20))
	require.NoError(t, end.Record(s))
	require.NoError(t, other.Wait(end))
	require.NoError(t, plain.Record(other))
	require.NoError(t, plain.Synchronize())
	assert.True(t, must(end.Done())(t), "what a later event waited for is done")
	assert.True(t, must(s.Done())(t))
	assert.Positive(t, must(end.Since(start))(t))
	_, err := end.Since(plain)
	assert.Error(t, err, "an event without timing tells no time")
	for _, e := range []*Event{start, end, plain, plain} {
		require.NoError(t, e.Close())
	}
}

func conformLaunch(t *testing.T, c *Context, image []byte) {
	f := loadScale(t, c, image)
	attrs := must(f.Attributes())(t)
	assert.Positive(t, attrs.Registers)
	assert.Positive(t, attrs.MaxThreads)
	assert.Positive(t, must(f.MaxActiveBlocks(32, 0))(t))
	s, x := newStream(t, c), deviceFloats(t, c, 1, 2, 3, 4)
	l := must(f.Launch(oneBlock))(t)
	params := scaleParams(x, 2, 3)
	require.NoError(t, l.Run(s, params))
	params.SetFloat32(1, 0.5) // the driver has copied the arguments already
	params.SetUint32(2, 1)
	require.NoError(t, c.Do(func() error { return l.RunCurrent(s, params) }))
	assert.Equal(t, floats(1, 4, 6, 4), fetch(t, c, x, 4))
	_, err := f.Launch(LaunchConfig{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{32, 1, 1}, Shared: 1 << 20})
	assert.ErrorIs(t, err, ErrInvalidValue)
	assert.ErrorContains(t, err, "1048576 bytes of dynamic shared memory")
}

func conformGraph(t *testing.T, c *Context, image []byte) {
	f := loadScale(t, c, image)
	s, x := newStream(t, c), deviceFloats(t, c, 1, 2)
	l := must(f.Launch(oneBlock))(t)
	graph, err := s.Capture(func() error {
		return errors.Join(s.Memset32(x, math.Float32bits(3), 1), l.RunCurrent(s, scaleParams(x, 2, 2)))
	})
	require.NoError(t, err)
	assert.Equal(t, 2, must(graph.Nodes())(t))
	assert.Equal(t, floats(1, 2), fetch(t, c, x, 2), "capturing runs nothing")
	exec := must(graph.Instantiate())(t)
	require.NoError(t, graph.Close())
	require.NoError(t, graph.Close())
	require.NoError(t, exec.Upload(s))
	require.NoError(t, exec.Launch(s))
	require.NoError(t, exec.Launch(s))
	assert.Equal(t, floats(6, 8), fetch(t, c, x, 2))
	require.NoError(t, exec.Close())
	require.NoError(t, exec.Close())
}

func conformGraphUpdate(t *testing.T, c *Context, image []byte) {
	f := loadScale(t, c, image)
	s, x := newStream(t, c), deviceFloats(t, c, 1)
	l := must(f.Launch(oneBlock))(t)
	capture := func(times int, by float32) *Graph {
		graph, err := s.Capture(func() error {
			for range times {
				if err := l.RunCurrent(s, scaleParams(x, by, 1)); err != nil {
					return err
				}
			}
			return nil
		})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, graph.Close()) })
		return graph
	}
	exec := must(capture(1, 2).Instantiate())(t)
	require.NoError(t, exec.Update(capture(1, 10)))
	require.NoError(t, exec.Launch(s))
	assert.Equal(t, floats(10), fetch(t, c, x, 1))
	err := exec.Update(capture(2, 10))
	assert.ErrorIs(t, err, ErrGraphUpdate)
	assert.ErrorContains(t, err, "topology")
	require.NoError(t, exec.Close())
}

// conformBuiltGraph: kernels run in the order of the edges, with new arguments once they
// are set.
func conformBuiltGraph(t *testing.T, c *Context, image []byte) {
	f := loadScale(t, c, image)
	s, x := newStream(t, c), deviceFloats(t, c, 1)
	y := deviceFloats(t, c, 1)
	l := must(f.Launch(oneBlock))(t)
	graph := must(c.NewGraph())(t)
	params := []*Params{scaleParams(x, 2, 1), scaleParams(x, 3, 1), scaleParams(y, 10, 1)}
	var nodes []Node
	for _, p := range params {
		nodes = append(nodes, must(graph.AddKernel(l, p))(t))
	}
	require.NoError(t, graph.AddEdge(nodes[0], nodes[1], false))
	require.NoError(t, graph.AddEdge(nodes[1], nodes[2], false))
	assert.Equal(t, 3, must(graph.Nodes())(t))
	exec := must(graph.Instantiate())(t)
	require.NoError(t, exec.Launch(s))
	assert.Equal(t, floats(6), fetch(t, c, x, 1))
	assert.Equal(t, floats(10), fetch(t, c, y, 1))
	params[1].SetPointer(0, y)
	require.NoError(t, exec.SetParams(nodes[1], params[1]))
	require.NoError(t, exec.Launch(s))
	assert.Equal(t, floats(12), fetch(t, c, x, 1))
	assert.Equal(t, floats(300), fetch(t, c, y, 1))
	require.NoError(t, exec.Close())
	require.NoError(t, graph.Close())
}

// conformFailedCapture: after a capture that failed the stream works as before.
func conformFailedCapture(t *testing.T, c *Context) {
	s, x := newStream(t, c), deviceFloats(t, c, 1)
	want := errors.New("from inside")
	graph, err := s.Capture(func() error {
		return errors.Join(s.Memset32(x, 0, 1), want)
	})
	assert.Nil(t, graph)
	assert.ErrorIs(t, err, want)
	assert.Panics(t, func() { _, _ = s.Capture(func() error { panic("in the middle") }) })
	require.NoError(t, s.Memset32(x, math.Float32bits(5), 1))
	assert.Equal(t, floats(5), fetch(t, c, x, 1))
}

func conformBadModules(t *testing.T, c *Context, image []byte) {
	for name, bad := range map[string][]byte{
		"nothing":   nil,
		"no header": image[:20],
		"text":      []byte("this is neither a cubin nor PTX"),
	} {
		m, err := c.LoadModule(bad)
		assert.Nil(t, m, name)
		assert.ErrorIs(t, err, ErrInvalidImage, name)
	}
	m := must(c.LoadModule(image))(t)
	_, err := m.Function("nosuch")
	assert.ErrorIs(t, err, ErrNotFound)
	assert.ErrorContains(t, err, `"nosuch"`)
	_, _, err = m.Global("nosuch")
	assert.ErrorIs(t, err, ErrNotFound)
	require.NoError(t, m.Close())
	require.NoError(t, m.Close())
}

func conformOutOfMemory(t *testing.T, c *Context) {
	const petabyte = 1 << 50
	_, err := c.Alloc(petabyte)
	assert.ErrorIs(t, err, ErrOutOfMemory)
	assert.ErrorContains(t, err, "1125899906842624 bytes were asked for")
	s := newStream(t, c)
	_, err = s.Alloc(petabyte)
	assert.ErrorIs(t, err, ErrOutOfMemory)
	free, total, err := c.MemInfo()
	require.NoError(t, err)
	assert.Less(t, free, total)
	_, err = c.AllocHost(-1)
	assert.ErrorIs(t, err, ErrInvalidValue)
}

func TestFakeConforms(t *testing.T) {
	conform(t, fakeDriver(t).context(), fakeImage())
}
