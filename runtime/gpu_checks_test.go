//go:build linux && !nocuda

package runtime

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime/cuda"
	"github.com/fusec/fusec/runtime/tensor"
)

// checkedProgram computes y = 2x in a first kernel and, in a second, has its checks find
// what its input says they find: two pairs of a place and an index. The fake driver adds
// floats, and a float keeps its bits where nothing is added.
func checkedProgram() *ir.Program {
	n := symbol(0)
	p := tripleProgram()
	p.Symbols = append(p.Symbols, "W")
	p.Params = []ir.Param{p.Params[0], {Name: "found", DType: ir.F32, Shape: []ir.Size{symbol(1)}},
		{Name: "zero", DType: ir.F32, Shape: []ir.Size{symbol(1)}}, p.Params[1]}
	p.Checks = []ir.IndexCheck{
		{Tensor: "x", Extent: n, Names: []string{"i", "j"}, Shape: []ir.Size{constant(3), n}, Where: "checked.fuse:1:2"},
		{Tensor: "w", Axis: 1, Extent: constant(7)},
	}
	param := func(i int) ir.LaunchArg { return ir.LaunchArg{Kind: ir.ArgParam, Index: i} }
	written := func(a ir.LaunchArg) ir.LaunchArg { a.Write = true; return a }
	grid := p.Launches[0].Variants[0].Grid
	one := [3]ir.Size{constant(1), constant(1), constant(1)}
	p.Launches[0].Variants = []ir.LaunchVariant{{Unit: 0, Grid: grid,
		Args: []ir.LaunchArg{param(0), written(param(3)), {Kind: ir.ArgSize}}}}
	p.Launches[1].Variants = []ir.LaunchVariant{{Unit: 1, Grid: one,
		Args: []ir.LaunchArg{param(1), param(2), written(ir.LaunchArg{Kind: ir.ArgCheck}), {Kind: ir.ArgSize, Index: 1}}}}
	return p
}

// finding is the input that makes the checks find two pairs.
func finding(t testing.TB, pairs ...int64) *tensor.Tensor {
	t.Helper()
	words, err := tensor.FromSlice(pairs)
	require.NoError(t, err)
	x, err := tensor.FromBytes(ir.F32, words.Data, 2*len(pairs))
	require.NoError(t, err)
	return x
}

func loadChecked(t testing.TB) (*fake, *Function) {
	t.Helper()
	requireNVRTC(t)
	f := fakeDriver(t)
	fn, err := f.open(t, Options{}).Load(context.Background(), checkedProgram())
	require.NoError(t, err)
	return f, fn
}

var inside = []int64{ir.AllInside, 0, ir.AllInside, 0}

func checkedArgs(t testing.TB, found ...int64) Args {
	return Args{"x": ramp(t, 4), "y": ramp(t, 4), "found": finding(t, found...), "zero": vector(t, make([]float32, 8)...)}
}

func TestRunsReportWhatChecksFind(t *testing.T) {
	_, fn := loadChecked(t)
	ctx := context.Background()
	for range 3 { // launches, then a graph
		require.NoError(t, fn.Run(ctx, checkedArgs(t, inside...)))
		err := fn.Run(ctx, checkedArgs(t, 6, -3, 0, 9))
		var found *ir.IndexError
		require.ErrorAs(t, err, &found)
		assert.Equal(t, &ir.IndexError{Graph: "triple", Tensor: "x", Extent: 4, Index: -3, Names: []string{"i", "j"},
			At: []int64{1, 2}, Where: "checked.fuse:1:2"}, found)
		assert.EqualError(t, err, "graph triple: checked.fuse:1:2: index -3 at i = 1, j = 2 is outside axis 0 of x, "+
			"which has 4 elements: guard it by where, or say by else what is read outside")
		require.ErrorAs(t, fn.Run(ctx, checkedArgs(t, ir.AllInside, 0, 0, 9)), &found)
		assert.Equal(t, &ir.IndexError{Graph: "triple", Tensor: "w", Axis: 1, Extent: 7, Index: 9, At: []int64{}}, found)
	}
	r, err := fn.Measure(ctx, checkedArgs(t, inside...), Measure{Repeat: 3})
	require.NoError(t, err)
	assert.Len(t, r.Kernels, 2)
	_, err = fn.Measure(ctx, checkedArgs(t, 0, 1, 2, 3), Measure{Repeat: 3})
	assert.ErrorAs(t, err, new(*ir.IndexError))
}

// TestEachResultHasItsPlace: kernels of which each finds one of a check's two results write them side by side.
func TestEachResultHasItsPlace(t *testing.T) {
	requireNVRTC(t)
	p := checkedProgram()
	found := p.Launches[1]
	x, y, zero := p.Params[0], p.Params[3], p.Params[2]
	results := 2 * len(p.Checks)
	p.Launches, p.Params = p.Launches[:1], []ir.Param{x, zero}
	for i := range results {
		p.Params = append(p.Params, ir.Param{Name: fmt.Sprint("found", i), DType: ir.F32, Shape: zero.Shape})
		l := found
		l.Variants = slices.Clone(found.Variants)
		l.Variants[0].Args = []ir.LaunchArg{{Kind: ir.ArgParam, Index: 2 + i}, {Kind: ir.ArgParam, Index: 1},
			{Kind: ir.ArgCheck, Index: i, Write: true}, {Kind: ir.ArgSize, Index: 1}}
		p.Launches = append(p.Launches, l)
	}
	p.Launches[0].Variants[0].Args[1].Index = len(p.Params)
	p.Params = append(p.Params, y)
	fn, err := fakeDriver(t).open(t, Options{}).Load(t.Context(), p)
	require.NoError(t, err)
	run := func(found ...int64) error {
		args := Args{"x": ramp(t, 4), "y": ramp(t, 4), "zero": vector(t, 0, 0)}
		for i, word := range found {
			args[fmt.Sprint("found", i)] = finding(t, word)
		}
		return fn.Run(t.Context(), args)
	}
	for range 3 { // launches, then a graph
		require.NoError(t, run(inside...))
		for check := range p.Checks {
			words := slices.Clone(inside)
			words[2*check], words[2*check+1] = 0, int64(100+check)
			var outside *ir.IndexError
			require.ErrorAs(t, run(words...), &outside)
			assert.Equal(t, p.Checks[check].Tensor, outside.Tensor)
			assert.EqualValues(t, 100+check, outside.Index)
		}
	}
}

func TestFailuresWithChecksLeakNothing(t *testing.T) {
	for _, call := range []string{"cuMemcpyDtoHAsync_v2", "cuMemHostAlloc", "cuStreamSynchronize", "cuLaunchKernelEx"} {
		t.Run(call, func(t *testing.T) {
			f, fn := loadChecked(t)
			f.Fail(call, 1, 0)
			require.ErrorIs(t, fn.Run(context.Background(), checkedArgs(t, 0, 1, 2, 3)), cuda.ErrInvalidValue)
			require.NoError(t, fn.Run(context.Background(), checkedArgs(t, inside...)))
		})
	}
}

// checkedBuffers are the arguments on the device.
func checkedBuffers(t testing.TB, d *Device, found ...int64) Args {
	return Args{"x": uploaded(t, d, ramp(t, 4)), "y": newBuffer(t, d, 4), "found": uploaded(t, d, finding(t, found...)),
		"zero": uploaded(t, d, vector(t, make([]float32, 8)...))}
}

// TestStreamsReportWhatChecksFind queues more runs than what they find has room for.
func TestStreamsReportWhatChecksFind(t *testing.T) {
	f, fn := loadChecked(t)
	d, ctx := fn.Device(), context.Background()
	good, bad, worse := checkedBuffers(t, d, inside...), checkedBuffers(t, d, 1, 11, 0, 0), checkedBuffers(t, d, 2, 12, 0, 0)
	s := newStream(t, d)
	var found *ir.IndexError
	for _, runs := range []int{3, 1000} {
		syncs := f.Calls("cuStreamSynchronize")
		for i := range runs {
			args := good
			if i == 1 {
				args = bad
			} else if i > 1 {
				args = worse
			}
			require.NoError(t, fn.Queue(ctx, s, args))
		}
		const room = checkBuffer / (2 * ir.CheckBytes)
		assert.LessOrEqual(t, f.Calls("cuStreamSynchronize")-syncs, runs/room)
		require.ErrorAs(t, s.Wait(ctx), &found)
		assert.Equal(t, int64(11), found.Index)
		require.NoError(t, s.Wait(ctx))
		require.NoError(t, fn.Queue(ctx, s, good))
		require.NoError(t, s.Wait(ctx))
	}
	require.NoError(t, fn.Run(ctx, good), "another stream")
	require.NoError(t, fn.Queue(ctx, s, worse))
	require.ErrorAs(t, s.Close(), &found)
	assert.Equal(t, int64(12), found.Index)
	require.NoError(t, fn.Run(ctx, good))
}

// TestWaitingGoroutinesAreToldOfTheirRuns: whoever waits is told of what was queued
// before, while others queue.
func TestWaitingGoroutinesAreToldOfTheirRuns(t *testing.T) {
	_, fn := loadChecked(t)
	d, ctx := fn.Device(), context.Background()
	good, bad := checkedBuffers(t, d, inside...), checkedBuffers(t, d, 1, 11, 0, 0)
	s := newStream(t, d)
	var group sync.WaitGroup
	told := make([]int, 4)
	for i := range told {
		group.Go(func() {
			for n := range 200 {
				args := good
				if n%7 == i {
					args = bad
				}
				assert.NoError(t, fn.Queue(ctx, s, args))
				if s.Wait(ctx) != nil {
					told[i]++
				}
			}
		})
	}
	group.Wait()
	require.NoError(t, s.Wait(ctx))
	assert.Positive(t, told[0]+told[1]+told[2]+told[3])
}

// TestWaitLooksAtWhatHasPassed, and not at what was queued while it waited: nothing is there yet.
func TestWaitLooksAtWhatHasPassed(t *testing.T) {
	f, fn := loadChecked(t)
	f.Defer(true)
	d, ctx := fn.Device(), context.Background()
	good, bad := checkedBuffers(t, d, inside...), checkedBuffers(t, d, 1, 11, 0, 0)
	s := newStream(t, d)
	require.NoError(t, fn.Queue(ctx, s, good))
	f.Hold(true)
	syncs := f.Calls("cuStreamSynchronize")
	waiting := start(func() error { return s.Wait(ctx) })
	f.under(t, "cuStreamSynchronize", syncs+1)
	waiting.waits(t, "Wait")
	require.NoError(t, fn.Queue(ctx, s, bad))
	f.Hold(false)
	require.NoError(t, waiting.err(t))
	var found *ir.IndexError
	require.ErrorAs(t, s.Wait(ctx), &found)
	assert.EqualValues(t, 11, found.Index)
}

func TestCheckedRunsOnDeviceTensorsAllocateNothing(t *testing.T) {
	if slowness > 1 {
		t.Skip("the race detector allocates too")
	}
	_, fn := loadChecked(t)
	args, ctx := checkedBuffers(t, fn.Device(), inside...), context.Background()
	s := newStream(t, fn.Device())
	assert.Zero(t, testing.AllocsPerRun(300, func() {
		if err := fn.Queue(ctx, s, args); err != nil {
			t.Fatal(err)
		}
	}))
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		if err := fn.Run(ctx, args); err != nil {
			t.Fatal(err)
		}
	}))
}

// TestChecksOfManyIndices has more than the memory that a stream begins with.
func TestChecksOfManyIndices(t *testing.T) {
	p := checkedProgram()
	for range checkBuffer / ir.CheckBytes {
		p.Checks = append(p.Checks, p.Checks[1])
	}
	requireNVRTC(t)
	fn, err := fakeDriver(t).open(t, Options{}).Load(context.Background(), p)
	require.NoError(t, err)
	found := append([]int64(nil), inside...)
	for len(found) < 2*len(p.Checks) {
		found = append(found, ir.AllInside, 0)
	}
	args := Args{"x": ramp(t, 4), "y": ramp(t, 4), "found": finding(t, found...),
		"zero": vector(t, make([]float32, 2*len(found))...)}
	require.NoError(t, fn.Run(context.Background(), args))
	found[len(found)-2] = 0
	args["found"] = finding(t, found...)
	require.ErrorAs(t, fn.Run(context.Background(), args), new(*ir.IndexError))
}

// TestRoomOfChecksIsUsedAgain: once all that is pending has been looked at, and not before.
func TestRoomOfChecksIsUsedAgain(t *testing.T) {
	_, fn := loadChecked(t)
	s := newStream(t, fn.Device())
	c := &s.queue.(*gpuStream).checks
	args := checkedBuffers(t, fn.Device(), inside...)
	queue := func() { require.NoError(t, fn.Queue(t.Context(), s, args)) }
	for range 3 {
		queue()
		first := c.used
		assert.Equal(t, 2*ir.CheckBytes, first)
		queue()
		assert.Equal(t, 2*first, c.used)
		require.NoError(t, s.queue.(*gpuStream).Synchronize())
		c.mu.Lock()
		c.look(1)
		c.mu.Unlock()
		assert.Equal(t, 2*first, c.used, "one is pending")
		require.NoError(t, s.Wait(t.Context()))
		assert.Zero(t, c.used)
		assert.Empty(t, c.pending)
	}
}
