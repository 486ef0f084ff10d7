//go:build linux && !nocuda

package runtime

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime/cuda"
)

// Another program's context, stream and memory: a function runs on them without a
// copy, and closing gives none of them away.
func TestRunsOnBorrowedThings(t *testing.T) {
	requireNVRTC(t)
	f := fakeDriver(t)
	driver, err := cuda.OpenPath(f.Path)
	require.NoError(t, err)
	dev, err := driver.Device(0)
	require.NoError(t, err)
	owner, err := dev.Context()
	require.NoError(t, err)
	defer owner.Close()
	stream, err := owner.NewStream()
	require.NoError(t, err)
	defer stream.Close()
	x, err := owner.Alloc(400)
	require.NoError(t, err)
	defer owner.Free(x)
	y, err := owner.Alloc(400)
	require.NoError(t, err)
	defer owner.Free(y)
	require.NoError(t, owner.CopyHtoD(x, ramp(t, 100).Data))
	require.NoError(t, owner.Synchronize(), "the copy is staged: no other stream waits for it")

	borrowed, err := driver.BorrowContext(owner.Handle())
	require.NoError(t, err)
	d := OpenContext(borrowed, Options{Cache: newCache(t, t.TempDir())})
	fn, err := d.Load(context.Background(), tripleProgram())
	require.NoError(t, err)
	s, err := d.BorrowStream(stream.Handle())
	require.NoError(t, err)
	in, err := d.BorrowBuffer(x, ir.F32, 100)
	require.NoError(t, err)
	out, err := d.BorrowBuffer(y, ir.F32, 100)
	require.NoError(t, err)
	require.NoError(t, fn.Queue(context.Background(), s, Args{"x": in, "y": out}))
	require.NoError(t, s.Wait(context.Background()))
	got := ramp(t, 100)
	require.NoError(t, owner.CopyDtoH(got.Data, y))
	requireTripled(t, ramp(t, 100), got)
	require.NoError(t, d.Close())

	require.NoError(t, stream.Synchronize(), "the stream is still there")
	require.NoError(t, owner.CopyDtoH(got.Data, x), "and so is the memory")
	assert.Equal(t, ramp(t, 100).Floats(), got.Floats())
}

func TestWhatCannotBeBorrowed(t *testing.T) {
	d, err := Open("cpu", Options{Cache: newCache(t, t.TempDir())})
	require.NoError(t, err)
	defer d.Close()
	_, err = d.BorrowStream(0)
	assert.ErrorIs(t, err, errNoGPU)
	_, err = d.BorrowBuffer(16, ir.F32, 1)
	assert.ErrorIs(t, err, errNoGPU)
	gpu := fakeDriver(t).open(t, Options{})
	_, err = gpu.BorrowBuffer(8, ir.F32, 1)
	assert.ErrorContains(t, err, "a multiple of 16")
	_, err = gpu.BorrowBuffer(0, ir.F32, 1)
	assert.ErrorContains(t, err, "a multiple of 16")
	_, err = gpu.BorrowBuffer(16, ir.F32, -1)
	assert.ErrorContains(t, err, "negative")
	b, err := gpu.BorrowBuffer(0, ir.F32, 0)
	require.NoError(t, err)
	assert.NoError(t, b.Close())
}
