package cuda

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestFailuresPassThrough makes each call fail once: the error comes back, names
// the call, and nothing leaks (the context's cleanup counts what is left).
func TestFailuresPassThrough(t *testing.T) {
	f := fakeDriver(t)
	c := f.context()
	function := loadScale(t, c, fakeImage())
	m, s := function.Module(), newStream(t, c)
	x := deviceFloats(t, c, 1)
	e := must(c.NewEvent(true))(t)
	graph := must(s.Capture(func() error { return s.Memset8(x, 0, 1) }))(t)
	exec := must(graph.Instantiate())(t)
	data := make([]byte, 4)
	clusters := must(function.Launch(LaunchConfig{Grid: [3]uint32{2, 1, 1}, Block: [3]uint32{1, 1, 1},
		Cluster: [3]uint32{2, 1, 1}}))(t)
	last := func(_ any, err error) error { return err }
	for name, call := range map[string]func() error{
		"cuCtxSynchronize":            c.Synchronize,
		"cuCtxResetPersistingL2Cache": c.ResetPersistingL2,
		"cuCtxGetDevice":              func() error { return last(c.Driver().BorrowContext(c.Handle())) },
		"cuMemAlloc_v2":               func() error { return last(c.Alloc(4)) },
		"cuMemAllocAsync":             func() error { return last(s.Alloc(4)) },
		"cuMemHostAlloc":              func() error { return last(c.AllocHost(4)) },
		"cuMemGetInfo_v2":             func() error { _, _, err := c.MemInfo(); return err },
		"cuDeviceGetDefaultMemPool":   func() error { return errors.Join(c.SetPoolThreshold(1)) },
		"cuMemPoolSetAttribute":       func() error { return c.SetPoolThreshold(1) },
		"cuMemPoolTrimTo":             func() error { return c.TrimPool(1) },
		"cuMemcpyHtoD_v2":             func() error { return c.CopyHtoD(x, data) },
		"cuMemcpyDtoH_v2":             func() error { return c.CopyDtoH(data, x) },
		"cuMemcpyDtoD_v2":             func() error { return c.CopyDtoD(x, x, 4) },
		"cuMemcpyHtoDAsync_v2":        func() error { return s.CopyHtoD(x, data) },
		"cuMemcpyDtoHAsync_v2":        func() error { return s.CopyDtoH(data, x) },
		"cuMemcpyDtoDAsync_v2":        func() error { return s.CopyDtoD(x, x, 4) },
		"cuMemsetD8Async":             func() error { return s.Memset8(x, 0, 4) },
		"cuMemsetD32Async":            func() error { return s.Memset32(x, 0, 1) },
		"cuStreamCreate":              func() error { return last(c.NewStream()) },
		"cuStreamSynchronize":         s.Synchronize,
		"cuStreamQuery":               func() error { return last(s.Done()) },
		"cuStreamWaitEvent":           func() error { return s.Wait(e) },
		"cuStreamBeginCapture_v2":     func() error { return last(s.Capture(func() error { return nil })) },
		"cuStreamEndCapture":          func() error { return last(s.Capture(func() error { return nil })) },
		"cuEventCreate":               func() error { return last(c.NewEvent(false)) },
		"cuEventRecord":               func() error { return e.Record(s) },
		"cuEventSynchronize":          e.Synchronize,
		"cuEventQuery":                func() error { return last(e.Done()) },
		"cuEventElapsedTime":          func() error { return last(e.Since(e)) },
		"cuModuleLoadDataEx":          func() error { return last(c.LoadModule(fakeImage())) },
		"cuModuleGetFunction":         func() error { return last(m.Function("scale")) },
		"cuModuleGetGlobal_v2":        func() error { _, _, err := m.Global("table"); return err },
		"cuFuncGetAttribute":          func() error { return last(function.Attributes()) },
		"cuGraphGetNodes":             func() error { return last(graph.Nodes()) },
		"cuGraphInstantiateWithFlags": func() error { return last(graph.Instantiate()) },
		"cuGraphUpload":               func() error { return exec.Upload(s) },
		"cuGraphLaunch":               func() error { return exec.Launch(s) },
		"cuGraphExecUpdate_v2":        func() error { return exec.Update(graph) },
		"cuLaunchKernelEx":            func() error { return clusters.Run(s, nil) },
		"cuOccupancyMaxActiveBlocksPerMultiprocessor": func() error {
			return last(function.MaxActiveBlocks(32, 0))
		},
		"cuOccupancyMaxActiveClusters": func() error { return last(clusters.MaxActiveClusters()) },
	} {
		f.Fail(name, 700, 0)
		err := call()
		assert.ErrorIs(t, err, ErrDeviceLost, name)
		assert.ErrorContains(t, err, name+": CUDA_ERROR_ILLEGAL_ADDRESS (700)")
	}
	for _, closer := range []interface{ Close() error }{e, graph, exec} {
		require.NoError(t, closer.Close())
	}
}

// TestFailuresToCloseAreTold: what cannot be given back is an error once.
func TestFailuresToCloseAreTold(t *testing.T) {
	f := fakeDriver(t)
	dev := must(f.open().Device(0))(t)
	c := must(dev.Context())(t)
	s := must(c.NewStream())(t)
	graph := must(s.Capture(func() error { return nil }))(t)
	for _, row := range []struct {
		name   string
		closer interface{ Close() error }
	}{
		{"cuGraphExecDestroy", must(graph.Instantiate())(t)},
		{"cuGraphDestroy", graph},
		{"cuEventDestroy_v2", must(c.NewEvent(false))(t)},
		{"cuModuleUnload", must(c.LoadModule(fakeImage()))(t)},
		{"cuMemFreeHost", must(c.AllocHost(1))(t)},
		{"cuStreamDestroy_v2", s},
		{"cuDevicePrimaryCtxRelease_v2", c},
	} {
		f.Fail(row.name, 700, 0)
		assert.ErrorContains(t, row.closer.Close(), row.name)
		assert.NoError(t, row.closer.Close(), row.name)
		assert.Equal(t, 1, f.Calls(row.name), "closed once, whatever came of it")
	}
}

func TestQueriesAnswerNotReady(t *testing.T) {
	f := fakeDriver(t)
	c := f.context()
	s := newStream(t, c)
	f.Fail("cuStreamQuery", 600, 0)
	assert.False(t, must(s.Done())(t))
	assert.True(t, must(s.Done())(t))
}

func TestElapsedTimeIsAFloat(t *testing.T) {
	c := fakeDriver(t).context()
	s, x := newStream(t, c), deviceFloats(t, c, 1)
	start, end := must(c.NewEvent(true))(t), must(c.NewEvent(true))(t)
	require.NoError(t, start.Record(s))
	for range 3 { // the fake's clock advances by half a millisecond with each
		require.NoError(t, s.Memset8(x, 0, 4))
	}
	require.NoError(t, end.Record(s))
	require.NoError(t, end.Synchronize())
	assert.Equal(t, float32(1.5), must(end.Since(start))(t))
	require.NoError(t, errors.Join(start.Close(), end.Close()))
}

func TestPoolSettingsArrive(t *testing.T) {
	f := fakeDriver(t)
	c := f.context()
	require.NoError(t, c.SetPoolThreshold(12345))
	require.NoError(t, c.TrimPool(678))
	assert.Equal(t, 12345, f.PoolThreshold())
	assert.Equal(t, 678, f.PoolKept())
}

func TestBorrowedStreamIsNotDestroyed(t *testing.T) {
	f := fakeDriver(t)
	c := f.context()
	s := newStream(t, c)
	borrowed := c.BorrowStream(s.Handle())
	assert.Same(t, c, borrowed.Context())
	require.NoError(t, borrowed.Synchronize())
	require.NoError(t, borrowed.Close())
	assert.Zero(t, f.Calls("cuStreamDestroy_v2"))
}

func TestModuleExplainsWhatTheDriversCompilerSaid(t *testing.T) {
	c := fakeDriver(t).context()
	_, err := c.LoadModule([]byte("bad PTX"))
	assert.ErrorContains(t, err, "ptxas fatal: no .version directive")
	m := must(c.LoadModule([]byte(".version 8.4\n")))(t)
	p, size, err := m.Global("table")
	require.NoError(t, err)
	assert.NotZero(t, p)
	assert.EqualValues(t, 16, size)
	attrs := must(must(m.Function("scale"))(t).Attributes())(t)
	// The fake's value of an attribute is 100 and its number in the header.
	assert.Equal(t, Attributes{MaxThreads: 100, SharedBytes: 101, ConstantBytes: 102, LocalBytes: 103,
		Registers: 104, BinaryVersion: 106}, attrs)
	require.NoError(t, m.Close())
}

func TestTruncatedCubinsAreRefusedBeforeTheDriverSeesThem(t *testing.T) {
	whole := append([]byte(elfMagic), make([]byte, 196)...)
	binary.LittleEndian.PutUint64(whole[40:], 72) // section table at 72: 2 entries of 64 bytes
	binary.LittleEndian.PutUint16(whole[58:], 64)
	binary.LittleEndian.PutUint16(whole[60:], 2)
	_, err := loadable(whole)
	require.NoError(t, err)
	for n := range len(whole) {
		_, err := loadable(whole[:n])
		if n >= len(elfMagic) || n == 0 { // shorter, it counts as text, which the driver reads to its NUL
			assert.ErrorIs(t, err, ErrInvalidImage, "%d bytes", n)
		}
	}
	for at, ok := range map[uint64]bool{uint64(len(whole)): true, uint64(len(whole)) + 1: false, 1 << 63: false} { // no section
		binary.LittleEndian.PutUint64(whole[40:], at)
		binary.LittleEndian.PutUint16(whole[60:], 0)
		_, err = loadable(whole)
		assert.Equal(t, ok, err == nil, at)
	}
}

func TestLoadableEndsTextInNUL(t *testing.T) {
	backing := []byte("PTX and more")
	text, err := loadable(backing[:3])
	require.NoError(t, err)
	assert.Equal(t, "PTX\x00", string(text))
	assert.Equal(t, "PTX and more", string(backing), "the caller's memory is left alone")
}

func TestTensorMapArgumentsArrive(t *testing.T) {
	d := fakeDriver(t).open()
	m := must(d.EncodeTiled(TensorMapConfig{
		Type: TensorMapBFloat16, Address: 4096, Dims: []uint64{64, 128, 3}, Strides: []uint64{128, 16384},
		Box: []uint32{32, 16, 1}, Swizzle: Swizzle128B, L2: L2Promotion256B, Interleave: Interleave16B,
		NaNFill: true,
	}))(t)
	var words []uint64
	for i := range 13 {
		words = append(words, binary.NativeEndian.Uint64(m[8*i:]))
	}
	assert.Equal(t, []uint64{9, 3, 4096, 64, 3, 16384, 32, 1, 1, 1, 3, 3, 1}, words)

	p := NewParams(8, 128)
	p.SetTensorMap(1, m)
	assert.Zero(t, p.pointers[1]%tensorMapAlign)
	assert.Equal(t, m[:], p.block[p.offsets[1]:][:128])
}

// TestTensorMapsOfAnyRank: from 1 to 5 dims, with or without steps; lists of any other length are refused before the driver reads them.
func TestTensorMapsOfAnyRank(t *testing.T) {
	d := fakeDriver(t).open()
	for rank := range 8 {
		for list := range 4 { // which is one too long: strides, box, steps or none
			long := [4]int{}
			long[list] = 1
			config := TensorMapConfig{Address: 16, Dims: make([]uint64, rank), Strides: make([]uint64, max(rank-1, 0)+long[0]),
				Box: make([]uint32, rank+long[1])}
			if list >= 2 {
				config.Steps = make([]uint32, rank+long[2])
			}
			_, err := d.EncodeTiled(config)
			assert.Equal(t, rank >= 1 && rank <= 5 && list == 3, err == nil, "%+v", config)
		}
	}
}

func TestTensorMapOfOneDimensionHasNoStrides(t *testing.T) {
	d := fakeDriver(t).open()
	m := must(d.EncodeTiled(TensorMapConfig{Address: 16, Dims: []uint64{64}, Box: []uint32{8},
		Steps: []uint32{2}}))(t)
	assert.EqualValues(t, 2, binary.NativeEndian.Uint64(m[64:]), "element stride")
	_, err := d.EncodeTiled(TensorMapConfig{Address: 8, Dims: []uint64{64}, Box: []uint32{8}})
	assert.ErrorIs(t, err, ErrInvalidValue)
	assert.ErrorContains(t, err, "Address:8")
	for _, bad := range []TensorMapConfig{
		{}, {Dims: make([]uint64, 6), Strides: make([]uint64, 5), Box: make([]uint32, 6)},
		{Dims: make([]uint64, 2), Box: make([]uint32, 2)},
		{Dims: make([]uint64, 2), Strides: make([]uint64, 1), Box: make([]uint32, 1)},
		{Dims: make([]uint64, 1), Box: make([]uint32, 1), Steps: make([]uint32, 2)},
	} {
		_, err := d.EncodeTiled(bad)
		assert.ErrorIs(t, err, ErrInvalidValue)
		assert.ErrorContains(t, err, "expected 1 to 5 dims")
	}
}
