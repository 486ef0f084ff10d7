package conformance

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	goruntime "runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime"
	"github.com/fusec/fusec/runtime/cache"
	"github.com/fusec/fusec/runtime/cuda"
	"github.com/fusec/fusec/runtime/tensor"
)

const scaled = "graph scaled(x: f32[N, M], w: f32[M]) -> (y: f32[N, M]) { y = x * w }"

const branched = `graph branched(x: f32[N, 64]) -> (y: f32[N, 64], z: f32[64]) {
    s = softmax(x)
    y = s - sum(s, axis=0) / 2
    z = max(s * 3, axis=0)
}`

// loadOn loads a source on a device.
func loadOn(t testing.TB, dev *Engine, text string) *runtime.Function {
	t.Helper()
	f, err := fusec.Load(context.Background(), dev.Device, fusec.Source{Name: "service.fuse", Text: []byte(text)}, fusec.Options{})
	require.NoError(t, err)
	return f
}

// arguments are inputs of scaled.
func arguments(t *testing.T, n, m int) runtime.Args {
	t.Helper()
	x, err := tensor.Random(ir.F32, 1, n, m)
	require.NoError(t, err)
	w, err := tensor.Random(ir.F32, 2, m)
	require.NoError(t, err)
	return runtime.Args{"x": x, "w": w}
}

// TestGPUSizesShareTheirKernels: a hundred sizes compile no more kernels than the first
// of each class do.
func TestGPUSizesShareTheirKernels(t *testing.T) {
	var counters runtime.Counters
	dev := openGPU(t, runtime.Options{Observer: &counters, Cache: cache.Open(cache.Options{Dir: t.TempDir()})})
	f := loadOn(t, dev, `graph rows(x: bf16[N, M]) -> (y: bf16[N, M]) { y = softmax(x) }`)
	run := func(n, m int) {
		x, err := tensor.Random(ir.BF16, 1, n, m)
		require.NoError(t, err)
		_, err = f.Call(context.Background(), runtime.Args{"x": x})
		require.NoError(t, err)
	}
	for _, m := range []int{8, 9, 511, 512, 1023, 1024} {
		run(3, m)
	}
	first := counters.Totals().Compiles
	for i := range 100 {
		run(1+i*7, 8+i*10)
	}
	assert.Positive(t, first)
	t.Logf("%d kernels compiled for the first 6 sizes, %d for 100 more", first, counters.Totals().Compiles-first)
	assert.Equal(t, first, counters.Totals().Compiles)
}

// TestGPUGraphsGiveWhatLaunchesGive: later runs replay a CUDA graph with programmatic
// edges and side branches, on tensors that move.
func TestGPUGraphsGiveWhatLaunchesGive(t *testing.T) {
	dev := openGPU(t, runtime.Options{})
	f, ctx := loadOn(t, dev, branched), context.Background()
	for round := range 6 {
		x, err := tensor.Random(ir.F32, uint64(round+1), 300, 64)
		require.NoError(t, err)
		fresh := loadOn(t, dev, branched) // whose first run is launches
		want, err := fresh.Call(ctx, runtime.Args{"x": x})
		require.NoError(t, err)
		require.NoError(t, fresh.Close())
		got, err := f.Call(ctx, runtime.Args{"x": x})
		require.NoError(t, err)
		for name := range want {
			assert.True(t, tensor.Equal(want[name], got[name]), "round %d, %s", round, name)
		}
	}
}

// TestGPUStreams queues copies and runs without waiting in between.
func TestGPUStreams(t *testing.T) {
	dev := openGPU(t, runtime.Options{})
	f, ctx := loadOn(t, dev, scaled), context.Background()
	s, err := dev.NewStream()
	require.NoError(t, err)
	args := runtime.Args{}
	for name, shape := range map[string][]int{"x": {512, 256}, "w": {256}, "y": {512, 256}} {
		args[name], err = dev.NewBuffer(ir.F32, shape...)
		require.NoError(t, err)
	}
	var pinned []*runtime.HostBuffer
	host := arguments(t, 512, 256)
	require.NoError(t, s.Upload(args["w"].(*runtime.Buffer), host["w"].(*tensor.Tensor)))
	for range 4 {
		in, err := dev.NewHostBuffer(ir.F32, 512, 256)
		require.NoError(t, err)
		out, err := dev.NewHostBuffer(ir.F32, 512, 256)
		require.NoError(t, err)
		copy(in.Tensor().Data, host["x"].(*tensor.Tensor).Data)
		in.Tensor().Float32s()[7] = float32(len(pinned))
		require.NoError(t, s.Upload(args["x"].(*runtime.Buffer), in.Tensor()))
		require.NoError(t, f.Queue(ctx, s, args))
		require.NoError(t, s.Download(out.Tensor(), args["y"].(*runtime.Buffer)))
		pinned = append(pinned, in, out)
	}
	patient, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	require.NoError(t, s.Wait(patient))
	for i := 0; i < len(pinned); i += 2 {
		x, y, w := pinned[i].Tensor(), pinned[i+1].Tensor(), host["w"].(*tensor.Tensor)
		assert.Equal(t, float32(i)*w.Float32s()[7], y.Float32s()[7])
		assert.Equal(t, x.Float32s()[1000]*w.Float32s()[1000%256], y.Float32s()[1000])
	}
}

// TestGPUOutOfMemory: the error names the tensor, and the device is as good as before.
func TestGPUOutOfMemory(t *testing.T) {
	dev := openGPU(t, runtime.Options{})
	f := loadOn(t, dev, branched)
	_, err := dev.NewBuffer(ir.F32, 1<<40)
	require.ErrorIs(t, err, cuda.ErrOutOfMemory)
	assert.ErrorContains(t, err, "f32[1099511627776] of 4.0 TiB")

	greedy := oneKernel(`extern "C" __global__ void greedy(float *y, float *t) { *y = *t; }`, "greedy",
		ir.LaunchArg{Kind: ir.ArgTemp, Write: true})
	greedy.Temps = []ir.Temp{{Bytes: ir.Size{{Op: ir.OpConst, Val: 1 << 42}}}}
	g, err := dev.Device.Load(context.Background(), greedy)
	require.NoError(t, err)
	_, err = g.Call(context.Background(), nil)
	require.ErrorIs(t, err, cuda.ErrOutOfMemory)
	assert.ErrorContains(t, err, "the run needs 4.0 TiB, most of it for intermediate tensor 0 (4.0 TiB)")
	if os.Getenv("FUSEC_TEST_FULL") != "" {
		fillDevice(t, dev)
	}
	small, err := tensor.Random(ir.F32, 1, 300, 64)
	require.NoError(t, err)
	_, err = f.Call(context.Background(), runtime.Args{"x": small})
	assert.NoError(t, err)
}

// fillDevice takes all of the device's memory, which other processes feel, and gives it
// back.
func fillDevice(t *testing.T, dev *Engine) {
	free, _, err := dev.MemInfo()
	require.NoError(t, err)
	hog, err := dev.NewBuffer(ir.U8, int(free-free/16)) // all but what one more tensor takes
	require.NoError(t, err)
	rows := int(free / 16 / 256)
	x, err := dev.NewBuffer(ir.F32, rows, 64)
	if err == nil {
		_, err = dev.NewBuffer(ir.F32, rows, 64)
	}
	require.ErrorIs(t, err, cuda.ErrOutOfMemory)
	require.NoError(t, hog.Close())
	if x != nil {
		require.NoError(t, x.Close())
	}
}

// oneKernel is a program of one kernel of one thread, whose arguments are an output y of
// one element, then more.
func oneKernel(text, entry string, more ...ir.LaunchArg) *ir.Program {
	one := ir.Size{{Op: ir.OpConst, Val: 1}}
	args := append([]ir.LaunchArg{{Kind: ir.ArgParam, Write: true}}, more...)
	return &ir.Program{Name: entry,
		Params:  []ir.Param{{Name: "y", DType: ir.F32, Shape: []ir.Size{one}, Output: true}},
		Sources: []string{text},
		Units:   []ir.Unit{{Entry: entry, Block: [3]int{1, 1, 1}}},
		Launches: []ir.Launch{{Kernel: entry, Reads: one, Writes: one, Variants: []ir.LaunchVariant{
			{Grid: [3]ir.Size{one, one, one}, Args: args}}}}}
}

// faultEnv makes TestGPULostDevice the process that loses its device.
const faultEnv = "FUSEC_TEST_FAULT"

// TestGPULostDevice runs itself in a process of its own: after a kernel has faulted the
// driver refuses the GPU to the process for good.
func TestGPULostDevice(t *testing.T) {
	if os.Getenv(faultEnv) != "" {
		loseDevice(t)
		return
	}
	openGPU(t, runtime.Options{})
	child := exec.Command(os.Args[0], "-test.run", "^TestGPULostDevice$")
	child.Env = append(os.Environ(), faultEnv+"=1")
	out, err := child.CombinedOutput()
	assert.NoError(t, err, "%s", out)
}

// loseDevice: everything fails, with an error that says what to do, and Close does not.
func loseDevice(t *testing.T) {
	dev := openGPU(t, runtime.Options{})
	f, err := dev.Device.Load(context.Background(),
		oneKernel(`extern "C" __global__ void fault(float *y) { *(volatile int *)16 = 1; }`, "fault"))
	require.NoError(t, err)
	_, err = f.Call(context.Background(), nil)
	require.ErrorIs(t, err, cuda.ErrDeviceLost)
	assert.ErrorContains(t, err, "is lost: close the device")
	_, err = dev.NewBuffer(ir.F32, 5)
	assert.ErrorIs(t, err, cuda.ErrDeviceLost)
	require.NoError(t, dev.Close())
}

// TestGPUCloseGivesEverythingBack looks at the driver's own figures, while another
// device keeps the context.
func TestGPUCloseGivesEverythingBack(t *testing.T) {
	keeper := openGPU(t, runtime.Options{})
	goroutines := 0
	round := func() {
		dev := openGPU(t, runtime.Options{})
		f := loadOn(t, dev, branched)
		var group sync.WaitGroup
		for worker := range 8 {
			group.Go(func() {
				for n := range 6 {
					x, err := tensor.Random(ir.F32, 1, 20000+worker+n, 64)
					if assert.NoError(t, err) {
						_, err = f.Call(context.Background(), runtime.Args{"x": x})
						assert.NoError(t, err)
					}
				}
			})
		}
		group.Wait()
		_, err := dev.NewBuffer(ir.F32, 1<<20) // left to Close
		require.NoError(t, err)
		require.NoError(t, dev.Close())
		if goroutines == 0 {
			goroutines = goruntime.NumGoroutine()
		}
		assert.LessOrEqual(t, goruntime.NumGoroutine(), goroutines)
	}
	round() // the driver keeps what the first rounds made it allocate
	requireSettledMemory(t, keeper, round)
}

// requireSettledMemory requires that doing something again takes no more of the device's
// memory. The figure is that of the whole device, in which other processes come and go: a
// leak shows in every round, what others take does not.
func requireSettledMemory(t *testing.T, dev *Engine, round func()) {
	t.Helper()
	const attempts = 8
	round()
	before, _, err := dev.MemInfo()
	require.NoError(t, err)
	lost := make([]uint64, 0, attempts)
	for len(lost) < attempts {
		round()
		free, _, err := dev.MemInfo()
		require.NoError(t, err)
		if free >= before {
			return
		}
		lost, before = append(lost, before-free), free
	}
	t.Errorf("every round took more of the device's memory, in bytes: %d", lost)
}

// TestGPUManyRuns is the habit of a service: many goroutines, many runs, flat memory.
func TestGPUManyRuns(t *testing.T) {
	const workers = 64
	runs := 1000
	if os.Getenv("FUSEC_TEST_FULL") != "" {
		runs = 15625 // a million in all
	}
	dev := openGPU(t, runtime.Options{})
	f := loadOn(t, dev, branched)
	x, err := tensor.Random(ir.F32, 1, 64, 64)
	require.NoError(t, err)
	want, err := f.Call(context.Background(), runtime.Args{"x": x})
	require.NoError(t, err)
	requireSettledMemory(t, dev, func() {
		var group sync.WaitGroup
		for range workers {
			group.Go(func() { assert.NoError(t, runsOf(dev, f, x, want, runs)) })
		}
		group.Wait()
	})
}

// runsOf runs on buffers of its own and compares the last result.
func runsOf(dev *Engine, f *runtime.Function, x *tensor.Tensor, want map[string]*tensor.Tensor, n int) error {
	args := runtime.Args{}
	for name, shape := range map[string][]int{"x": {64, 64}, "y": {64, 64}, "z": {64}} {
		b, err := dev.NewBuffer(ir.F32, shape...)
		if err != nil {
			return err
		}
		defer b.Close()
		args[name] = b
	}
	if err := args["x"].(*runtime.Buffer).Upload(x); err != nil {
		return err
	}
	for range n {
		if err := f.Run(context.Background(), args); err != nil {
			return err
		}
	}
	for name, w := range want {
		got, err := args[name].(*runtime.Buffer).Tensor()
		if err != nil {
			return err
		}
		if !tensor.Equal(got, w) {
			return fmt.Errorf("%s differs", name)
		}
	}
	return nil
}
