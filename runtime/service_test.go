//go:build linux && !nocuda

package runtime

import (
	"context"
	"io/fs"
	goruntime "runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime/cache"
	"github.com/fusec/fusec/runtime/cuda"
	"github.com/fusec/fusec/runtime/sign"
	"github.com/fusec/fusec/runtime/tensor"
)

// heap is what the collector leaves.
func heap() uint64 {
	var m goruntime.MemStats
	goruntime.GC()
	goruntime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestManyRunsNeedNoMoreMemory: what runs hold is settled by how many go on at a time.
func TestManyRunsNeedNoMoreMemory(t *testing.T) {
	const workers, runs = 64, 300
	f, fn := loadTriple(t, Options{})
	d := fn.Device()
	x := uploaded(t, d, ramp(t, 64))
	var outputs []*Buffer
	for range workers {
		outputs = append(outputs, newBuffer(t, d, 64))
	}
	round := func() {
		var group sync.WaitGroup
		for _, y := range outputs {
			group.Go(func() {
				for range runs {
					if !assert.NoError(t, fn.Run(context.Background(), Args{"x": x, "y": y})) {
						return
					}
				}
			})
		}
		group.Wait()
	}
	round()
	held, live := heap(), f.Live()
	round()
	const perWorker = 4 // a stream, its arena, a graph and its executable
	assert.LessOrEqual(t, f.Live(), live+perWorker*workers)
	assert.LessOrEqual(t, heap(), held+held/2)
	for _, y := range outputs {
		requireTripled(t, ramp(t, 64), downloaded(t, y))
	}
}

// TestDevicesSideBySide: several devices of one process know nothing of each other.
func TestDevicesSideBySide(t *testing.T) {
	requireNVRTC(t)
	f := fakeDriver(t)
	f.Devices(2)
	var group sync.WaitGroup
	for _, spec := range []string{"cuda:0", "cuda:1", "cuda:0"} {
		d, err := Open(spec, Options{Driver: f.Path, Cache: newCache(t, t.TempDir())})
		require.NoError(t, err)
		fn, err := d.Load(context.Background(), tripleProgram())
		require.NoError(t, err)
		group.Go(func() {
			x, y := ramp(t, 40), ramp(t, 40)
			if assert.NoError(t, fn.Run(context.Background(), Args{"x": x, "y": y})) {
				requireTripled(t, x, y)
			}
			assert.NoError(t, d.Close())
		})
	}
	group.Wait()
}

// TestContextThatCannotBeMade: Open does not wait for the context; whoever needs it is
// told.
func TestContextThatCannotBeMade(t *testing.T) {
	kept := newCache(t, t.TempDir())
	f, compiled := loadTriple(t, Options{Cache: kept}) // a compile that goes on would write behind the test's end
	require.NoError(t, compiled.Run(context.Background(), Args{"x": ramp(t, 4), "y": ramp(t, 4)}))
	require.NoError(t, compiled.Device().Close())
	f.Fail("cuDevicePrimaryCtxRetain", 2, 0)
	d, err := Open("cuda", Options{Driver: f.Path, Cache: kept})
	require.NoError(t, err)
	fn, err := d.Load(context.Background(), tripleProgram())
	require.NoError(t, err)
	assert.ErrorIs(t, fn.Run(context.Background(), Args{"x": ramp(t, 4), "y": ramp(t, 4)}), cuda.ErrOutOfMemory)
	_, err = d.NewBuffer(ir.F32, 3)
	assert.ErrorIs(t, err, cuda.ErrOutOfMemory)
	_, err = d.NewHostBuffer(ir.F32, 3)
	assert.ErrorIs(t, err, cuda.ErrOutOfMemory)
	_, err = d.NewStream()
	assert.ErrorIs(t, err, cuda.ErrOutOfMemory)
	_, _, err = d.MemInfo()
	assert.ErrorIs(t, err, cuda.ErrOutOfMemory)
	assert.ErrorContains(t, err, d.Name()+": ")
	require.NoError(t, d.Close())
}

// TestLostDevicesCloseQuietly: the driver refuses every call, and what it held is gone
// with the context.
func TestLostDevicesCloseQuietly(t *testing.T) {
	const destroyed = 709
	f, fn := loadTriple(t, Options{})
	d := fn.Device()
	newBuffer(t, d, 5)
	f.Fail("cuCtxSetCurrent", destroyed, 0)
	require.ErrorIs(t, fn.Run(context.Background(), Args{"x": ramp(t, 4), "y": ramp(t, 4)}), cuda.ErrDeviceLost)
	f.Fail("cuStreamDestroy_v2", destroyed, 0)
	f.leaked++
	require.NoError(t, d.Close())
	again := f.open(t, Options{})
	fn, err := again.Load(context.Background(), tripleProgram())
	require.NoError(t, err)
	require.NoError(t, fn.Run(context.Background(), Args{"x": ramp(t, 4), "y": ramp(t, 4)}))
}

// slowStore keeps what it is given, after a while.
type slowStore struct {
	mu   sync.Mutex
	kept int
}

func (*slowStore) Get(context.Context, string) ([]byte, error) { return nil, fs.ErrNotExist }

func (s *slowStore) Put(context.Context, string, []byte) error {
	time.Sleep(20 * time.Millisecond)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept++
	return nil
}

// TestCloseWaitsForWhatIsSent: kernels compiled by a process that ends right after Close
// are in the shared store all the same.
func TestCloseWaitsForWhatIsSent(t *testing.T) {
	requireNVRTC(t)
	key, err := sign.NewKey()
	require.NoError(t, err)
	store := &slowStore{}
	shared := cache.Open(cache.Options{Dir: t.TempDir(), Shared: &cache.Shared{Store: store, Key: key}})
	d := fakeDriver(t).open(t, Options{Cache: shared})
	fn, err := d.Load(context.Background(), tripleProgram())
	require.NoError(t, err)
	require.NoError(t, fn.Run(context.Background(), Args{"x": ramp(t, 4), "y": ramp(t, 4)}))
	require.NoError(t, d.Close())
	const kernels, compilers = 2, 1
	assert.Equal(t, kernels+compilers, store.kept)
}

// hangingStore answers when its caller gives up.
type hangingStore struct{ slowStore }

func (*hangingStore) Put(ctx context.Context, _ string, _ []byte) error {
	<-ctx.Done()
	return ctx.Err()
}

// TestCloseWaitsNoLongerThanItSays for a store that does not answer.
func TestCloseWaitsNoLongerThanItSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		key, err := sign.NewKey()
		require.NoError(t, err)
		shared := cache.Open(cache.Options{Dir: t.TempDir(), Shared: &cache.Shared{Store: &hangingStore{}, Key: key}})
		var warnings []error
		d, err := Open("cpu", Options{Cache: shared, OnWarning: func(err error) { warnings = append(warnings, err) }})
		require.NoError(t, err)
		shared.Put(cache.NewKey(cache.Kernel).Int("n", 1).Sum(),
			cache.Entry{Sections: []cache.Section{{Name: cache.PTX, Data: []byte("text")}}})
		start := time.Now()
		require.NoError(t, d.Close())
		assert.Equal(t, sendWait, time.Since(start))
		require.Len(t, warnings, 1)
		assert.ErrorContains(t, warnings[0], "not everything was sent to the shared store within 3s")
		require.NoError(t, shared.Flush(t.Context())) // the store's own limit ends what is left
	})
}

// TestNoGoroutineIsLeft after devices are closed.
func TestNoGoroutineIsLeft(t *testing.T) {
	f := fakeDriver(t)
	before := goruntime.NumGoroutine()
	for range 5 {
		d, err := Open("cuda", Options{Driver: f.Path, Cache: newCache(t, t.TempDir())})
		require.NoError(t, err)
		d.ExpectCompile()
		newStream(t, d)
		require.NoError(t, d.Close())
	}
	for deadline := time.Now().Add(time.Second); goruntime.NumGoroutine() > before && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	assert.LessOrEqual(t, goruntime.NumGoroutine(), before)
}

// TestFilesAsArguments: tensors in mapped files are tensors.
func TestFilesAsArguments(t *testing.T) {
	_, fn := loadTriple(t, Options{})
	dir := t.TempDir()
	require.NoError(t, tensor.WriteNPYFile(dir+"/x.npy", ramp(t, 50)))
	x, err := tensor.MapNPYFile(dir+"/x.npy", ir.F32)
	require.NoError(t, err)
	y, err := tensor.CreateNPYFile(dir+"/y.npy", ir.F32, 50)
	require.NoError(t, err)
	require.NoError(t, fn.Run(context.Background(), Args{"x": x.Tensor, "y": y.Tensor}))
	require.NoError(t, x.Close())
	require.NoError(t, y.Close())
	got, err := tensor.ReadNPYFile(dir+"/y.npy", ir.F32)
	require.NoError(t, err)
	requireTripled(t, ramp(t, 50), got)
}
