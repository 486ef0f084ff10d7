package cuda

import (
	"bytes"
	"runtime"
	"sync"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestLaunchPassesItsShape(t *testing.T) {
	f := fakeDriver(t)
	c := f.context()
	function := loadScale(t, c, fakeImage())
	s := newStream(t, c)
	l := must(function.Launch(LaunchConfig{
		Grid: [3]uint32{4, 5, 6}, Block: [3]uint32{32, 2, 3}, Shared: 100}))(t)
	assert.Equal(t, uint32(5), l.Config().Grid[1])
	assert.Same(t, function, l.Function())
	require.NoError(t, l.Run(s, nil))
	assert.Equal(t, []uint64{4, 5, 6, 32, 2, 3, 100, uint64(s.Handle()), 0}, f.Launched()[:9])
	assert.Equal(t, 1, f.Calls("cuLaunchKernel"))
	assert.Zero(t, f.Calls("cuLaunchKernelEx"))

	require.NoError(t, l.Run(c.BorrowStream(0), nil))
	assert.Zero(t, f.Launched()[7], "the default stream")
	require.NoError(t, c.Synchronize())
}

func TestLaunchPassesAttributes(t *testing.T) {
	f := fakeDriver(t)
	c := f.context()
	function := loadScale(t, c, fakeImage())
	s := newStream(t, c)
	l := must(function.Launch(LaunchConfig{Grid: [3]uint32{8, 6, 4}, Block: [3]uint32{64, 1, 1},
		Shared: 1024, Cluster: [3]uint32{4, 3, 1}, Cooperative: true, Programmatic: true}))(t)
	x := deviceFloats(t, c, 1, 1)
	require.NoError(t, l.Run(s, scaleParams(x, 7, 2)))
	got := f.Launched()
	assert.Equal(t, []uint64{8, 6, 4, 64, 1, 1, 1024, uint64(s.Handle()), 3}, got[:9])
	assert.Equal(t, []uint64{attrCluster, 4, 3, 1, attrCooperative, 1, 0, 0, attrProgrammatic, 1, 0, 0},
		got[9:21])
	assert.Equal(t, floats(7, 7), fetch(t, c, x, 2))
	assert.Equal(t, 132/4, must(l.MaxActiveClusters())(t))
	assert.Equal(t, 1, f.FunctionCluster(), "12 blocks are more than every device allows a cluster")
}

func TestLaunchChecksItsShape(t *testing.T) {
	f := fakeDriver(t)
	function := loadScale(t, f.context(), fakeImage())
	for _, config := range []LaunchConfig{
		{},
		{Grid: [3]uint32{1, 0, 1}, Block: [3]uint32{1, 1, 1}},
		{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 0}},
		{Grid: [3]uint32{5, 1, 1}, Block: [3]uint32{1, 1, 1}, Cluster: [3]uint32{2, 1, 1}},
		{Grid: [3]uint32{4, 1, 1}, Block: [3]uint32{1, 1, 1}, Cluster: [3]uint32{2, 0, 1}},
	} {
		_, err := function.Launch(config)
		assert.ErrorIs(t, err, ErrInvalidValue, "%+v", config)
		assert.ErrorContains(t, err, "kernel scale")
	}
}

func TestLaunchOptsIntoSharedMemoryAndNeverOut(t *testing.T) {
	f := fakeDriver(t)
	function := loadScale(t, f.context(), fakeImage())
	config := oneBlock
	for _, row := range []struct{ ask, want int }{{0, 0}, {100 << 10, 100 << 10}, {60 << 10, 100 << 10},
		{200 << 10, 200 << 10}} {
		config.Shared = uint32(row.ask)
		must(function.Launch(config))(t)
		assert.Equal(t, row.want, f.FunctionShared())
	}
	assert.Zero(t, f.FunctionCluster())
}

func TestLaunchErrorsNameTheKernel(t *testing.T) {
	f := fakeDriver(t)
	c := f.context()
	l := must(loadScale(t, c, fakeImage()).Launch(oneBlock))(t)
	s := newStream(t, c)
	f.Fail("cuLaunchKernel", 701, 0)
	err := l.Run(s, nil)
	assert.ErrorIs(t, err, ErrLaunchResources)
	assert.ErrorContains(t, err, "kernel scale with grid [1 1 1], block [32 1 1]")
	f.Fail("cuCtxSetCurrent", 709, 0)
	assert.ErrorIs(t, l.Run(s, nil), ErrDeviceLost)
	f.Fail("cuFuncSetAttribute", 1, 0)
	_, err = l.Function().Launch(LaunchConfig{Grid: [3]uint32{16, 1, 1}, Block: [3]uint32{1, 1, 1},
		Cluster: [3]uint32{16, 1, 1}})
	assert.ErrorIs(t, err, ErrInvalidValue)
}

// TestLaunchDoesNotAllocate: nothing that is done for each kernel or each run of a
// program may feed the collector.
func TestLaunchDoesNotAllocate(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector makes sync.Pool drop what it holds")
	}
	c := fakeDriver(t).context()
	function := loadScale(t, c, fakeImage())
	s, x := newStream(t, c), deviceFloats(t, c, 1, 2)
	plain := must(function.Launch(oneBlock))(t)
	extended := must(function.Launch(LaunchConfig{Grid: [3]uint32{2, 1, 1}, Block: [3]uint32{32, 1, 1},
		Cluster: [3]uint32{2, 1, 1}}))(t)
	params := scaleParams(x, 1, 2)
	e := must(c.NewEvent(false))(t)
	graph := must(s.Capture(func() error { return plain.RunCurrent(s, params) }))(t)
	exec := must(graph.Instantiate())(t)
	for name, call := range map[string]func() error{
		"launch":          func() error { return plain.Run(s, params) },
		"launch extended": func() error { return extended.Run(s, params) },
		"set argument":    func() error { params.SetPointer(0, x); return nil },
		"copy":            func() error { return s.CopyDtoD(x, x, 4) },
		"memset":          func() error { return s.Memset32(x, 0, 2) },
		"record":          func() error { return e.Record(s) },
		"wait":            func() error { return s.Wait(e) },
		"graph":           func() error { return exec.Launch(s) },
		"synchronise":     func() error { return s.Synchronize() },
	} {
		allocs := testing.AllocsPerRun(200, func() {
			if err := call(); err != nil {
				t.Error(err)
			}
		})
		assert.Zero(t, allocs, name)
	}
	require.NoError(t, s.Synchronize())
	for _, closer := range []interface{ Close() error }{e, graph, exec} {
		require.NoError(t, closer.Close())
	}
}

func TestLaunchFromManyGoroutinesWhileTheCollectorRuns(t *testing.T) {
	c := fakeDriver(t).context()
	function := loadScale(t, c, fakeImage())
	l := must(function.Launch(LaunchConfig{Grid: [3]uint32{2, 1, 1}, Block: [3]uint32{32, 1, 1},
		Cluster: [3]uint32{2, 1, 1}}))(t)
	var group sync.WaitGroup
	for range 8 {
		s, x := newStream(t, c), deviceFloats(t, c, 1)
		group.Go(func() {
			for range 10 {
				if !assert.NoError(t, l.Run(s, scaleParams(x, 2, 1))) {
					return
				}
				runtime.GC()
			}
			got := make([]byte, 4)
			assert.NoError(t, s.Synchronize())
			assert.NoError(t, c.CopyDtoH(got, x))
			assert.Equal(t, floats(1024), got)
		})
	}
	group.Wait()
}

func TestParamsAreLaidOutAligned(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sizes := rapid.SliceOfN(rapid.SampledFrom([]int{1, 2, 4, 8, 12, 16, 64, 128}), 1, 20).Draw(t, "sizes")
		p := NewParams(sizes...)
		for i, size := range sizes {
			p.SetBytes(i, bytes.Repeat([]byte{byte(i + 1)}, size))
		}
		for i, size := range sizes {
			value := p.block[p.offsets[i]:][:size]
			if !bytes.Equal(value, bytes.Repeat([]byte{byte(i + 1)}, size)) {
				t.Fatalf("argument %d was overwritten", i)
			}
			if p.pointers[i] != uintptr(unsafe.Pointer(&value[0])) {
				t.Fatalf("pointer %d does not lead to its value", i)
			}
			if align := min(size&-size, 64); p.pointers[i]%uintptr(align) != 0 {
				t.Fatalf("argument %d of %d bytes lies at %#x", i, size, p.pointers[i])
			}
		}
	})
}

func TestParamsRefuseValuesOfOtherSizes(t *testing.T) {
	p := NewParams(4, 8)
	assert.Equal(t, 2, p.Len())
	p.SetInt32(0, -1)
	p.SetInt64(1, -2)
	p.SetFloat64(1, 0.5)
	assert.PanicsWithValue(t, "BUG: kernel argument 0 has 4 bytes and is set to a value of 8",
		func() { p.SetUint64(0, 1) })
	assert.Panics(t, func() { p.SetUint32(2, 1) })
	assert.Panics(t, func() { NewParams(0) })
	assert.Zero(t, NewParams().Len())
}

func BenchmarkLaunch(b *testing.B) {
	c := fakeDriver(b).context()
	m := must(c.LoadModule(fakeImage()))(b)
	defer m.Close()
	l := must(must(m.Function("scale"))(b).Launch(oneBlock))(b)
	s := c.BorrowStream(0)
	b.Run("Run", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_ = l.Run(s, nil)
		}
	})
	b.Run("RunCurrent", func(b *testing.B) {
		b.ReportAllocs()
		_ = c.Do(func() error {
			for b.Loop() {
				_ = l.RunCurrent(s, nil)
			}
			return nil
		})
	})
}

// TestArgumentsLieTight: each argument lies at the first place behind the one ahead that is aligned for it.
func TestArgumentsLieTight(t *testing.T) {
	for _, sizes := range [][]int{{1}, {8, 8}, {4, 8}, {8, 4, 4, 8}, {1, 2, 4, 8, 1, 8}, {8, 128, 8}, {1, 128, 3, 1, 128}, {64, 64, 1, 65}} {
		end := 0
		for i, at := range NewParams(sizes...).offsets {
			align := argumentAlignment(sizes[i])
			assert.GreaterOrEqual(t, at, end, sizes)
			assert.Zero(t, at%align, sizes)
			assert.Less(t, at-end, align, "no gap is wider than it has to be: %v", sizes)
			end = at + sizes[i]
		}
	}
	for size, want := range map[int]int{1: 1, 2: 2, 3: 4, 4: 4, 5: 8, 8: 8, 9: 16, 64: 64, 65: 64, 128: 64, 200: 64} {
		assert.Equal(t, min(want, tensorMapAlign), argumentAlignment(size), size)
	}
}
