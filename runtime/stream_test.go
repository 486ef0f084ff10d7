//go:build linux && !nocuda

package runtime

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/diag"
	"github.com/fusec/fusec/ir/interp/plantest"
	"github.com/fusec/fusec/runtime/tensor"
)

func newStream(t testing.TB, d *Device) *Stream {
	t.Helper()
	s, err := d.NewStream()
	require.NoError(t, err)
	return s
}

func TestStreamsQueueCopiesAndRuns(t *testing.T) {
	f, fn := loadTriple(t, Options{})
	d, ctx := fn.Device(), context.Background()
	s, x, y := newStream(t, d), newBuffer(t, d, 64), newBuffer(t, d, 64)
	pinned, err := d.NewHostBuffer(ir.F32, 64)
	require.NoError(t, err)
	syncs := f.Calls("cuStreamSynchronize")
	for n := range 4 {
		require.NoError(t, s.Upload(x, ramp(t, 64)))
		require.NoError(t, fn.Queue(ctx, s, Args{"x": x, "y": y}))
		require.NoError(t, s.Download(pinned.Tensor(), y))
		assert.Equal(t, syncs+n, f.Calls("cuStreamSynchronize"))
		require.NoError(t, s.Wait(ctx))
		requireTripled(t, ramp(t, 64), pinned.Tensor())
	}
	require.NoError(t, pinned.Close())
	require.NoError(t, pinned.Close())
	require.NoError(t, s.Close())
	require.NoError(t, s.Close())
	assert.ErrorIs(t, s.Wait(ctx), errStreamClosed)
	assert.ErrorIs(t, s.Upload(x, ramp(t, 64)), errStreamClosed)
	assert.ErrorIs(t, fn.Queue(ctx, s, Args{"x": x, "y": y}), errStreamClosed)
}

func TestStreamsOfTheCPU(t *testing.T) {
	d, err := Open("cpu", Options{Cache: newCache(t, t.TempDir())})
	require.NoError(t, err)
	s, b := newStream(t, d), newBuffer(t, d, 3)
	pinned, err := d.NewHostBuffer(ir.F32, 3)
	require.NoError(t, err)
	require.NoError(t, s.Upload(b, ramp(t, 3)))
	require.NoError(t, s.Download(pinned.Tensor(), b))
	require.NoError(t, s.After(newStream(t, d)))
	require.NoError(t, s.Wait(context.Background()))
	assert.True(t, tensor.Equal(ramp(t, 3), pinned.Tensor()))
	require.NoError(t, d.Close())
}

// gatherPlan is y[i] = x[at[i]] in strict numerics, which checks the indices.
func gatherPlan() *ir.Plan {
	g := ir.NewGraph("gather")
	g.Symbols, g.Numerics = []ir.Symbol{{Name: "N"}, {Name: "M"}}, ir.Strict
	x, at := g.Input("x", ir.F32, []*ir.Expr{ir.Sym("N")}, diag.Span{}), g.Input("at", ir.I64, []*ir.Expr{ir.Sym("M")}, diag.Span{})
	axes := g.NewAxes(at.Shape())
	read := ir.Load(x, []*ir.Expr{ir.Cast(ir.Load(at, ir.Indices(axes), nil), ir.Index)}, nil)
	read.NoElse = true
	g.Output("y", g.Define("y", axes, read, ir.Origin{}), diag.Span{})
	p := plantest.Unfused(ir.Checked(g))
	for _, o := range p.Graph.Outputs[len(p.Graph.Results()):] { // what checks find is for the engine
		at := slices.IndexFunc(p.Buffers, func(b *ir.Buffer) bool { return b.Value == o.Value })
		p.Buffers[at].Kind = ir.CheckBuffer
	}
	return p
}

// TestStreamsOfTheCPUReportWhatChecksFind: as on a GPU, whoever waits or closes the stream is told of the first run that found
// an index outside, once.
func TestStreamsOfTheCPUReportWhatChecksFind(t *testing.T) {
	d, err := Open("cpu", Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, d.Close()) }()
	ctx := t.Context()
	fn, err := d.LoadPlan(ctx, gatherPlan())
	require.NoError(t, err)
	s, x, y := newStream(t, d), newBuffer(t, d, 5), newBuffer(t, d, 3)
	require.NoError(t, x.Upload(ramp(t, 5)))
	queue := func(indices ...int64) {
		at, err := d.NewBuffer(ir.I64, 3)
		require.NoError(t, err)
		words, err := tensor.FromSlice(indices)
		require.NoError(t, err)
		require.NoError(t, at.Upload(words))
		require.NoError(t, fn.Queue(ctx, s, Args{"x": x, "at": at, "y": y}))
	}
	for range 2 {
		queue(4, 0, 2)
		require.NoError(t, s.Wait(ctx))
		assert.True(t, tensor.Equal(vector(t, 5, 1, 3), downloaded(t, y)))
		queue(4, 11, 2)
		queue(4, 12, 2)
		queue(4, 0, 2)
		var found *ir.IndexError
		require.ErrorAs(t, s.Wait(ctx), &found)
		assert.EqualValues(t, 11, found.Index)
		require.NoError(t, s.Wait(ctx))
	}
	queue(0, 0, 5)
	assert.ErrorAs(t, s.Close(), new(*ir.IndexError))
}

func TestQueueWantsBuffersOfItsDevice(t *testing.T) {
	f, fn := loadTriple(t, Options{})
	d, other, ctx := fn.Device(), f.open(t, Options{}), context.Background()
	x, y := newBuffer(t, d, 4), newBuffer(t, d, 4)
	s, foreign := newStream(t, d), newStream(t, other)
	assert.ErrorContains(t, fn.Queue(ctx, s, Args{"x": ramp(t, 4), "y": y}), "input x is in host memory")
	assert.ErrorContains(t, fn.Queue(ctx, foreign, Args{"x": x, "y": y}), "the stream is of another device")
	assert.ErrorContains(t, foreign.Upload(x, ramp(t, 4)), "expected that of the stream's device")
	assert.ErrorContains(t, s.After(foreign), "two devices")
	assert.ErrorContains(t, s.Upload(x, ramp(t, 5)), "both must be the same")
	ended, cancel := context.WithCancel(ctx)
	cancel()
	assert.ErrorIs(t, fn.Queue(ended, s, Args{"x": x, "y": y}), context.Canceled)
}

// TestWaitEndsWithItsContext: the work goes on, the caller too.
func TestWaitEndsWithItsContext(t *testing.T) {
	const notReady = 600
	f, fn := loadTriple(t, Options{})
	s := newStream(t, fn.Device())
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	f.Fail("cuStreamQuery", notReady, 0)
	require.NoError(t, s.Wait(ctx), "not ready is asked again")
	cancel()
	f.Fail("cuStreamQuery", notReady, 0)
	assert.ErrorIs(t, s.Wait(ctx), context.Canceled)
	require.NoError(t, s.Wait(context.Background()))
}

func TestStreamsWaitForEachOther(t *testing.T) {
	f, fn := loadTriple(t, Options{})
	a, b := newStream(t, fn.Device()), newStream(t, fn.Device())
	require.NoError(t, a.After(b))
	require.NoError(t, b.After(a))
	require.NoError(t, a.After(a))
	assert.Equal(t, 2, f.Calls("cuStreamWaitEvent"))
	require.NoError(t, b.Close())
	assert.ErrorIs(t, a.After(b), errStreamClosed)
}

// TestBuffersOutliveTheirOwner: a run under way keeps what it was given.
func TestBuffersOutliveTheirOwner(t *testing.T) {
	f, fn := loadTriple(t, Options{})
	b := newBuffer(t, fn.Device(), 4)
	before := f.Live()
	require.NoError(t, b.acquire())
	require.NoError(t, b.Close())
	assert.Equal(t, before, f.Live())
	assert.ErrorIs(t, b.acquire(), errBufferClosed)
	assert.ErrorContains(t, fn.Run(context.Background(), Args{"x": b, "y": ramp(t, 4)}), "the buffer is closed")
	b.done()
	assert.Eventually(t, func() bool { return f.Live() == before-1 }, 5*time.Second, time.Millisecond,
		"freed in the background: the run has its results")
}
