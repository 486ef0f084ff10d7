//go:build linux && !nocuda

package runtime

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime/cache"
	"github.com/fusec/fusec/runtime/cuda"
	"github.com/fusec/fusec/runtime/internal/fakecuda"
	"github.com/fusec/fusec/runtime/tensor"
)

func TestMain(m *testing.M) { fakecuda.Main(m) }

// fake is the driver without a GPU, and the means to steer it.
type fake struct {
	*fakecuda.Driver
	leaked int // resources that the test expects to be lost
}

func fakeDriver(t testing.TB) *fake {
	t.Helper()
	f := &fake{Driver: fakecuda.New(t, "-DFAKE")}
	t.Cleanup(func() { require.Equal(t, f.leaked, f.Live(), "resources that were not given back") })
	return f
}

// open opens a device on the fake, closed when the test ends.
func (f *fake) open(t testing.TB, opts Options) *Device {
	t.Helper()
	if opts.Cache == nil {
		opts.Cache = newCache(t, fakecuda.Folder(t)) // what one test has compiled the others find
	}
	opts.Driver = f.Path
	d, err := Open("cuda", opts)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	return d
}

func newCache(t testing.TB, dir string) *cache.Cache {
	return cache.Open(cache.Options{Dir: dir, OnWarning: func(err error) { t.Log("cache:", err) }})
}

// requireNVRTC skips where there is none, except in continuous integration. It opens
// nothing: tests look at who does.
func requireNVRTC(t testing.TB) {
	t.Helper()
	_, err := cuda.Locate(cuda.FindOptions{})
	if err != nil && os.Getenv("CI") == "true" {
		t.Fatalf("continuous integration needs NVRTC: run scripts/get-nvrtc: %v", err)
	}
	if err != nil {
		t.Skipf("no NVRTC here: run scripts/get-nvrtc to have these tests run: %v", err)
	}
}

// The kernels that the fake driver runs, as CUDA C.
const (
	twiceText = `extern "C" __global__ void twice(const float *x, float *y, long long n) {
    long long i = blockIdx.x * (long long)THREADS + threadIdx.x;
    if (i < n) y[i] = 2 * x[i];
}
`
	plusText = `extern "C" __global__ void plus(const float *a, const float *b, float *y, long long n) {
    long long i = blockIdx.x * (long long)THREADS + threadIdx.x;
    if (i < n) y[i] = a[i] + b[i];
}
`
)

func constant(v int64) ir.Size { return ir.Size{{Op: ir.OpConst, Val: v}} }

func symbol(i int64) ir.Size { return ir.Size{{Op: ir.OpSym, Val: i}} }

// apply is op(a, b) as a size.
func apply(op ir.Op, a, b ir.Size) ir.Size {
	return append(append(append(ir.Size{}, a...), b...), ir.SizeStep{Op: op})
}

// tripleProgram computes y = 2x + x, with 2x in a temporary; N is a multiple of
// 256 or not, which are two classes.
func tripleProgram() *ir.Program {
	n, threads := symbol(0), constant(128)
	blocks := apply(ir.OpFloorDiv, apply(ir.OpAdd, n, constant(127)), threads)
	bytes := apply(ir.OpMul, n, constant(4))
	grid := [3]ir.Size{blocks, constant(1), constant(1)}
	aligned := apply(ir.OpEq, apply(ir.OpMod, n, constant(256)), constant(0))
	param, size := func(i int) ir.LaunchArg { return ir.LaunchArg{Kind: ir.ArgParam, Index: i} },
		ir.LaunchArg{Kind: ir.ArgSize}
	temp := ir.LaunchArg{Kind: ir.ArgTemp, Index: 1}
	written := func(a ir.LaunchArg) ir.LaunchArg { a.Write = true; return a }
	twiceArgs := []ir.LaunchArg{param(0), written(temp), size}
	plusArgs := []ir.LaunchArg{temp, param(0), written(param(1)), size}
	block := [3]int{128, 1, 1}
	return &ir.Program{
		Name: "triple", Symbols: []string{"N"},
		Params: []ir.Param{{Name: "x", DType: ir.F32, Shape: []ir.Size{n}},
			{Name: "y", DType: ir.F32, Shape: []ir.Size{n}, Output: true}},
		Temps:   []ir.Temp{{Bytes: constant(4)}, {Bytes: bytes}, {Bytes: constant(8)}},
		Sources: []string{twiceText, plusText},
		Units: []ir.Unit{
			{Entry: "twice", Source: 0, Defines: "#define THREADS 128\n", Block: block, Waits: true},
			{Entry: "plus", Source: 1, Defines: "#define THREADS 128\n", Block: block, Strict: true, Waits: true},
			{Entry: "plus", Source: 1, Defines: "#define THREADS 128\n#define ALIGNED\n", Block: block, Waits: true},
		},
		Launches: []ir.Launch{
			{Kernel: "twice", Reads: bytes, Writes: bytes,
				Variants: []ir.LaunchVariant{{Unit: 0, Grid: grid, Args: twiceArgs}}},
			{Kernel: "plus", Reads: apply(ir.OpAdd, bytes, bytes), Writes: bytes, Variants: []ir.LaunchVariant{
				{When: aligned, Unit: 2, Grid: grid, Args: plusArgs}, {Unit: 1, Grid: grid, Args: plusArgs}}},
		},
		Constraints: []ir.SizeCheck{{Cond: apply(ir.OpNe, n, constant(13)), Why: "N must not be 13"}},
	}
}

// vector is a host tensor of the given values.
func vector(t testing.TB, values ...float32) *tensor.Tensor {
	t.Helper()
	x, err := tensor.FromSlice(values)
	require.NoError(t, err)
	return x
}

// ramp is 1, 2, ..., n.
func ramp(t testing.TB, n int) *tensor.Tensor {
	values := make([]float32, n)
	for i := range values {
		values[i] = float32(i + 1)
	}
	return vector(t, values...)
}
