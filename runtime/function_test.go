//go:build linux && !nocuda

package runtime

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime/cache"
	"github.com/fusec/fusec/runtime/cuda"
	"github.com/fusec/fusec/runtime/tensor"
)

// loadTriple loads tripleProgram on a fake device.
func loadTriple(t testing.TB, opts Options) (*fake, *Function) {
	t.Helper()
	requireNVRTC(t)
	f := fakeDriver(t)
	fn, err := f.open(t, opts).Load(context.Background(), tripleProgram())
	require.NoError(t, err)
	return f, fn
}

func requireTripled(t testing.TB, x, y *tensor.Tensor) {
	t.Helper()
	got := y.Floats()
	for i, v := range x.Floats() {
		if got[i] != 3*v {
			require.Equal(t, 3*v, got[i], "at %d", i)
		}
	}
}

func TestRunOnHostTensors(t *testing.T) {
	_, fn := loadTriple(t, Options{})
	for _, n := range []int{1, 5, 256, 1000, 5} {
		x, y := ramp(t, n), ramp(t, n)
		require.NoError(t, fn.Run(context.Background(), Args{"x": x, "y": y}))
		requireTripled(t, x, y)
	}
	out, err := fn.Call(context.Background(), Args{"x": ramp(t, 7)})
	require.NoError(t, err)
	requireTripled(t, ramp(t, 7), out["y"])
}

func TestRunOnDeviceTensors(t *testing.T) {
	_, fn := loadTriple(t, Options{})
	d := fn.Device()
	x, err := d.NewBuffer(ir.F32, 100)
	require.NoError(t, err)
	y, err := d.NewBuffer(ir.F32, 100)
	require.NoError(t, err)
	require.NoError(t, x.Upload(ramp(t, 100)))
	require.NoError(t, fn.Run(context.Background(), Args{"x": x, "y": y}))
	got, err := y.Tensor()
	require.NoError(t, err)
	requireTripled(t, ramp(t, 100), got)
	require.NoError(t, x.Close())
	require.NoError(t, x.Close()) // y is left to Device.Close
	assert.ErrorContains(t, fn.Run(context.Background(), Args{"x": x, "y": y}), "input x: the buffer is closed")
	_, err = x.Tensor()
	assert.ErrorIs(t, err, errBufferClosed)
}

func TestEmptyTensorsLaunchNothing(t *testing.T) {
	f, fn := loadTriple(t, Options{})
	report, err := fn.Measure(context.Background(), Args{"x": ramp(t, 0), "y": ramp(t, 0)}, Measure{})
	require.NoError(t, err)
	assert.Zero(t, report.Launches())
	assert.Zero(t, report.Bytes())
	assert.Zero(t, f.Calls("cuLaunchKernel"))
	assert.Zero(t, f.Calls("cuModuleLoadDataEx"), "nothing to launch, nothing to compile")
}

func TestArgumentsThatDoNotFit(t *testing.T) {
	f, fn := loadTriple(t, Options{})
	other := f.open(t, Options{})
	foreign, err := other.NewBuffer(ir.F32, 4)
	require.NoError(t, err)
	four, bytes := ramp(t, 4), &tensor.Tensor{DType: ir.F32, Shape: []int{4}, Data: make([]byte, 3)}
	half, err := tensor.New(ir.F16, 4)
	require.NoError(t, err)
	square, err := tensor.New(ir.F32, 2, 2)
	require.NoError(t, err)
	for want, args := range map[string]Args{
		"input x is missing: expected a tensor of f32":                       {"y": four},
		"output y is missing":                                                {"x": four},
		"has no input or output z: it has x, y":                              {"x": four, "y": ramp(t, 4), "z": four},
		"has no input or output xs: did you mean x? It has x, y":             {"xs": four, "y": ramp(t, 4)},
		"input x: expected elements of f32, found f16":                       {"x": half, "y": four},
		"input x: expected 1 dimensions, found 2":                            {"x": square, "y": four},
		"output y: expected f32[4], found f32[5]":                            {"x": four, "y": ramp(t, 5)},
		"output y: expected elements of f32, found f16":                      {"x": four, "y": half},
		"output y and input x share memory":                                  {"x": four, "y": four},
		"input x: expected a *tensor.Tensor or *runtime.Buffer, foun":        {"x": 3, "y": four},
		"input x: the tensor is nil":                                         {"x": (*tensor.Tensor)(nil), "y": four},
		"input x: the buffer is in the memory of another device":             {"x": foreign, "y": four},
		"sizes do not fit: N must not be 13; found N=13 in dimension 0 of x": {"x": ramp(t, 13), "y": ramp(t, 13)},
		"12 bytes": {"x": bytes, "y": four},
	} {
		y, before := args["y"], ""
		if y, ok := y.(*tensor.Tensor); ok {
			before = string(y.Data)
		}
		err := fn.Run(context.Background(), args)
		if want == "12 bytes" {
			assert.Error(t, err)
		} else {
			assert.ErrorContains(t, err, want)
		}
		assert.ErrorContains(t, err, "graph triple")
		if y, ok := y.(*tensor.Tensor); ok {
			assert.Equal(t, before, string(y.Data), "outputs are untouched")
		}
	}
}

func TestOutOfDeviceMemoryNamesTheTensor(t *testing.T) {
	f, fn := loadTriple(t, Options{})
	args := Args{"x": ramp(t, 1000), "y": ramp(t, 1000)}
	require.NoError(t, fn.Run(context.Background(), args))
	small := f.Live()
	for n := range 2 {
		f.Fail("cuMemAlloc_v2", 2, 0)
		n = 500001 * (n + 1) // of which three do not fit the arena so far
		require.NoError(t, fn.Run(context.Background(), Args{"x": ramp(t, n), "y": ramp(t, n)}),
			"memory that is kept is given back first")
	}
	assert.LessOrEqual(t, f.Live(), small+1)
	_, err := fn.Device().NewBuffer(ir.F32, 1<<40)
	require.ErrorIs(t, err, cuda.ErrOutOfMemory)
	assert.ErrorContains(t, err, "tensor f32[1099511627776] takes 4.0 TiB: ")
	var refused *ir.MemoryError
	require.ErrorAs(t, err, &refused)
	free, total, err := fn.Device().MemInfo()
	require.NoError(t, err)
	assert.Equal(t, []int64{4 << 40, int64(free), int64(total)}, []int64{refused.Bytes, refused.Free, refused.Total})
	assert.True(t, refused.NeverFits())
	assert.Equal(t, fn.Device().Name(), refused.Place)

	p := tripleProgram()
	p.Temps[1].Bytes = constant(1 << 40)
	unused := p.Temps[1] // by the variants that are launched
	unused.Bytes = constant(1 << 41)
	p.Temps = append(p.Temps, unused)
	big, err := fn.Device().Load(context.Background(), p)
	require.NoError(t, err)
	err = big.Run(context.Background(), args)
	require.ErrorIs(t, err, cuda.ErrOutOfMemory)
	assert.ErrorContains(t, err, "the run, most of it for intermediate tensor 1 (1.0 TiB), takes 1.0 TiB: ")
	p.Temps[2].Bytes = p.Temps[1].Bytes
	twice := p.Launches[0]
	twice.Variants = slices.Clone(twice.Variants)
	twice.Variants[0].Args = slices.Clone(twice.Variants[0].Args)
	twice.Variants[0].Args[1].Index = 2
	p.Launches = append(p.Launches, twice)
	big, err = fn.Device().Load(context.Background(), p)
	require.NoError(t, err)
	assert.ErrorContains(t, big.Run(context.Background(), args), "most of it for intermediate tensor 1 (", "the first of the largest")
}

func TestSizesThatOverflow(t *testing.T) {
	_, fn := loadTriple(t, Options{})
	_, err := fn.Shapes(map[string]int64{"N": 1 << 62})
	assert.ErrorContains(t, err, "does not fit in 64 bits")
	_, err = fn.Shapes(map[string]int64{"N": -1})
	assert.ErrorContains(t, err, "input x: dimension 0 is -1")
	_, err = fn.Shapes(map[string]int64{"M": 1})
	assert.ErrorContains(t, err, "size N is missing")
	err = fn.Prepare(context.Background(), map[string]int64{"N": 1 << 40})
	assert.ErrorContains(t, err, "kernel twice needs 8589934592 blocks along axis 0")
}

// TestOverflowOfWhatIsNotUsed: an intermediate tensor beyond 64 bits refuses the sizes at which a kernel uses it, and no
// others.
func TestOverflowOfWhatIsNotUsed(t *testing.T) {
	_, fn := loadTriple(t, Options{})
	p := tripleProgram()
	large := apply(ir.OpMul, symbol(0), constant(1<<62))
	other := p.Launches[0]
	other.Kernel, other.When = "other", apply(ir.OpLt, constant(300), symbol(0))
	other.Variants = slices.Clone(other.Variants)
	other.Variants[0].Args = slices.Clone(other.Variants[0].Args)
	other.Variants[0].Args[1].Index = len(p.Temps)
	p.Temps, p.Launches = append(p.Temps, ir.Temp{Bytes: large}), append(p.Launches, other)
	fn, err := fn.Device().Load(context.Background(), p)
	require.NoError(t, err)
	got, err := fn.Footprint(map[string]int64{"N": 256})
	require.NoError(t, err)
	assert.Equal(t, int64(1024), got.Arena)
	_, err = fn.Footprint(map[string]int64{"N": 512})
	assert.ErrorContains(t, err, "an intermediate tensor's size in bytes does not fit in 64 bits")
}

func TestPreparedSizesNeedNoCompiler(t *testing.T) {
	trace := NewTrace()
	f, fn := loadTriple(t, Options{Trace: trace})
	for range 2 {
		require.NoError(t, fn.Prepare(context.Background(), map[string]int64{"N": 9}))
	}
	require.Len(t, fn.recent, 1)
	before := len(trace.Steps())
	require.NoError(t, fn.Run(context.Background(), Args{"x": ramp(t, 9), "y": ramp(t, 9)}))
	assert.Len(t, trace.Steps(), before)
	assert.Equal(t, 2, f.Calls("cuModuleLoadDataEx"))
}

// TestRememberedSizesAreBounded runs more sizes than are remembered, and the first
// again.
func TestRememberedSizesAreBounded(t *testing.T) {
	_, fn := loadTriple(t, Options{})
	for n := 14; n < 14+2*maxBindings; n++ {
		require.NoError(t, fn.Run(context.Background(), Args{"x": ramp(t, n), "y": ramp(t, n)}))
	}
	assert.Len(t, fn.recent, maxBindings)
	y := ramp(t, 14)
	require.NoError(t, fn.Run(context.Background(), Args{"x": ramp(t, 14), "y": y}))
	requireTripled(t, ramp(t, 14), y)
}

// TestSizesThatMeetAreRememberedOnce: goroutines that all meet a new size at once.
func TestSizesThatMeetAreRememberedOnce(t *testing.T) {
	_, fn := loadTriple(t, Options{})
	var group sync.WaitGroup
	for range 32 {
		group.Go(func() { assert.NoError(t, fn.Run(context.Background(), Args{"x": ramp(t, 9), "y": ramp(t, 9)})) })
	}
	group.Wait()
	assert.Len(t, fn.recent, 1)
}

func TestManyGoroutines(t *testing.T) {
	_, fn := loadTriple(t, Options{})
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			for n := range 20 {
				x, y := ramp(t, 1+n*(i+1)), ramp(t, 1+n*(i+1))
				if x.Len() == 13 {
					continue
				}
				if assert.NoError(t, fn.Run(context.Background(), Args{"x": x, "y": y})) {
					requireTripled(t, x, y)
				}
			}
		})
	}
	group.Wait()
}

func TestMeasureReportsKernels(t *testing.T) {
	_, fn := loadTriple(t, Options{Cache: newCache(t, t.TempDir())})
	args := Args{"x": ramp(t, 256), "y": ramp(t, 256)}
	r, err := fn.Measure(context.Background(), args, Measure{Warmup: 2, Repeat: 3, FlushL2: true})
	require.NoError(t, err)
	require.Len(t, r.Kernels, 2)
	assert.Equal(t, 2, r.Launches())
	assert.Equal(t, int64(5*4*256), r.Bytes())
	assert.Equal(t, [3]uint32{2, 1, 1}, r.Kernels[1].Grid)
	assert.Equal(t, 2, r.Kernels[1].Unit, "the class of aligned sizes")
	assert.Len(t, r.Kernels[0].Times, 3)
	assert.Len(t, r.Total, 3)
	assert.Positive(t, r.Time())
	require.Len(t, r.Loaded, 2)
	assert.Equal(t, cache.Created, r.Loaded[0].Outcome)
	assert.Positive(t, r.Loaded[0].Registers)

	assert.Regexp(t, `^\S+ a run, \S+ the call\ntwice +\S+ +\d+ bytes\nplus +\S+ +\d+ bytes\n$`, r.String())
	r, err = fn.Measure(context.Background(), args, Measure{})
	require.NoError(t, err)
	assert.Empty(t, r.Loaded, "told once")
}

// TestMeasuredRunsKeepTheirInputs: the launches are queued again and again, so nothing may
// take an input's place, not even in an arena as tight as those of large tensors are.
func TestMeasuredRunsKeepTheirInputs(t *testing.T) {
	requireNVRTC(t)
	p := tripleProgram()
	for i := range p.Launches[1].Variants { // 2x + 2x: x is not needed any more
		args := slices.Clone(p.Launches[1].Variants[i].Args)
		args[1] = args[0]
		p.Launches[1].Variants[i].Args = args
	}
	fn, err := fakeDriver(t).open(t, Options{}).Load(context.Background(), p)
	require.NoError(t, err)
	const n = roomyArena / 4
	x, y := ramp(t, n), ramp(t, n)
	for _, how := range []Measure{{}, {Warmup: 1}, {Repeat: 3}, {Warmup: 2, Repeat: 2, FlushL2: true}} {
		_, err := fn.Measure(context.Background(), Args{"x": x, "y": y}, how)
		require.NoError(t, err)
		got := y.Floats()
		assert.Equal(t, []float64{4, 8, 4 * n}, []float64{got[0], got[1], got[n-1]}, "%+v", how)
	}
}

func TestFailuresOfTheDriverLeakNothing(t *testing.T) {
	for _, call := range []string{"cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2", "cuLaunchKernel", "cuMemAlloc_v2",
		"cuStreamSynchronize", "cuModuleGetFunction"} {
		t.Run(call, func(t *testing.T) {
			f, fn := loadTriple(t, Options{})
			f.Fail(call, 1, 0)
			err := fn.Run(context.Background(), Args{"x": ramp(t, 8), "y": ramp(t, 8)})
			require.ErrorIs(t, err, cuda.ErrInvalidValue)
			require.NoError(t, fn.Run(context.Background(), Args{"x": ramp(t, 8), "y": ramp(t, 8)}))
		})
	}
}

func TestLostDevice(t *testing.T) {
	const illegalAddress = 700
	f, fn := loadTriple(t, Options{})
	f.Fail("cuStreamSynchronize", illegalAddress, 0)
	err := fn.Run(context.Background(), Args{"x": ramp(t, 8), "y": ramp(t, 8)})
	require.ErrorIs(t, err, cuda.ErrDeviceLost)
	assert.ErrorContains(t, err, "graph triple")
	assert.ErrorContains(t, err, "Fake GPU 0 is lost: close the device")
}

func TestClosedFunctionsAndDevices(t *testing.T) {
	f := fakeDriver(t)
	d := f.open(t, Options{})
	fn, err := d.Load(context.Background(), tripleProgram())
	require.NoError(t, err)
	require.NoError(t, fn.Close())
	require.NoError(t, fn.Close())
	assert.ErrorContains(t, fn.Run(context.Background(), Args{}), "closed")
	require.NoError(t, d.Close())
	_, err = d.Load(context.Background(), tripleProgram())
	assert.ErrorIs(t, err, errClosed)
	_, err = d.NewBuffer(ir.F32, 3)
	assert.Error(t, err)
}

func TestContextThatHasEnded(t *testing.T) {
	_, fn := loadTriple(t, Options{})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	assert.ErrorIs(t, fn.Run(ctx, Args{"x": ramp(t, 8), "y": ramp(t, 8)}), context.Canceled)
}

// TestLargeCopiesAreStaged sends copies through pinned buffers: whole ones, and a
// rest.
func TestLargeCopiesAreStaged(t *testing.T) {
	f := fakeDriver(t)
	d := f.open(t, Options{})
	const n = stagedCopy + 3*stageBytes + 5
	b, err := d.NewBuffer(ir.U8, n)
	require.NoError(t, err)
	x, err := tensor.Random(ir.U8, 1, n)
	require.NoError(t, err)
	require.NoError(t, b.Upload(x))
	got, err := b.Tensor()
	require.NoError(t, err)
	assert.True(t, tensor.Equal(x, got))
	assert.Positive(t, f.Calls("cuMemHostAlloc"))
	assert.LessOrEqual(t, f.Calls("cuMemHostAlloc"), 2*stageCopies)
	for _, call := range []string{"cuMemcpyHtoDAsync_v2", "cuEventRecord", "cuEventSynchronize"} {
		f.Fail(call, 1, 2)
		assert.ErrorIs(t, b.Upload(x), cuda.ErrInvalidValue, call)
	}
	f.Fail("cuMemcpyDtoHAsync_v2", 1, 2)
	assert.ErrorIs(t, b.Download(got), cuda.ErrInvalidValue)
	small, err := tensor.New(ir.U8, 3)
	require.NoError(t, err)
	assert.ErrorContains(t, b.Upload(small), "both must be the same")
}

// TestRunsOnDeviceTensorsAllocateLittle guards the hot path.
func TestRunsOnDeviceTensorsAllocateNothing(t *testing.T) {
	if slowness > 1 {
		t.Skip("the race detector allocates too")
	}
	_, fn := loadTriple(t, Options{})
	x, err := fn.Device().NewBuffer(ir.F32, 100)
	require.NoError(t, err)
	y, err := fn.Device().NewBuffer(ir.F32, 100)
	require.NoError(t, err)
	s, err := fn.Device().NewStream()
	require.NoError(t, err)
	args, ctx := Args{"x": x, "y": y}, context.Background()
	queued := testing.AllocsPerRun(100, func() {
		if err := fn.Queue(ctx, s, args); err != nil {
			t.Fatal(err)
		}
	})
	assert.Zero(t, queued)
	allocs := testing.AllocsPerRun(100, func() {
		if err := fn.Run(ctx, args); err != nil {
			t.Fatal(err)
		}
	})
	assert.Zero(t, allocs)
}

func BenchmarkRunOnDeviceTensors(b *testing.B) {
	_, fn := loadTriple(b, Options{})
	x, err := fn.Device().NewBuffer(ir.F32, 1)
	require.NoError(b, err)
	y, err := fn.Device().NewBuffer(ir.F32, 1)
	require.NoError(b, err)
	args, ctx := Args{"x": x, "y": y}, context.Background()
	b.ReportAllocs()
	for b.Loop() {
		if err := fn.Run(ctx, args); err != nil {
			b.Fatal(err)
		}
	}
}
