//go:build linux && !nocuda

package runtime

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/ebitengine/purego"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime/cache"
	"github.com/fusec/fusec/runtime/cuda"
	"github.com/fusec/fusec/runtime/tensor"
)

// fakeFolder holds the fake driver that tests compile.
var fakeFolder string

func TestMain(m *testing.M) {
	folder, err := os.MkdirTemp("", "fakecuda")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fakeFolder = folder
	code := m.Run()
	os.RemoveAll(folder)
	os.Exit(code)
}

// fake is the driver of package cuda's tests (testdata/fakecuda.c) and the means to
// steer it. There is one in the process: tests that use it do not run in parallel.
type fake struct {
	path    string
	leaked  int32 // resources that the test expects to be lost
	reset   func()
	fail    func(call string, code, after int32)
	calls   func(call string) int32
	live    func() int32
	devices func(n int32)
}

var buildFake = sync.OnceValues(func() (string, error) {
	for _, name := range []string{"fakecuda.c", "fakecuda.h", "fakework.h"} {
		// Read for nothing but the test cache, which then runs anew when they change.
		if _, err := os.ReadFile("cuda/testdata/" + name); err != nil {
			return "", err
		}
	}
	path := filepath.Join(fakeFolder, "fakecuda.so")
	out, err := exec.Command("cc", "-shared", "-fPIC", "-O1", "-o", path, "cuda/testdata/fakecuda.c",
		"-pthread").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return path, nil
})

func fakeDriver(t testing.TB) *fake {
	t.Helper()
	if _, err := exec.LookPath("cc"); err != nil {
		t.Skip("no C compiler (cc) here to build the fake driver with")
	}
	if _, err := os.Stat("cuda/testdata/fakecuda.c"); err != nil {
		t.Skip("the test runs away from the fake driver's source")
	}
	path, err := buildFake()
	require.NoError(t, err)
	lib, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_GLOBAL)
	require.NoError(t, err)
	f := &fake{path: path}
	purego.RegisterLibFunc(&f.reset, lib, "fake_reset")
	purego.RegisterLibFunc(&f.fail, lib, "fake_fail")
	purego.RegisterLibFunc(&f.calls, lib, "fake_calls")
	purego.RegisterLibFunc(&f.live, lib, "fake_live")
	purego.RegisterLibFunc(&f.devices, lib, "fake_devices")
	f.reset()
	t.Cleanup(func() { require.Equal(t, f.leaked, f.live(), "resources that were not given back") })
	return f
}

// open opens a device on the fake, closed when the test ends.
func (f *fake) open(t testing.TB, opts Options) *Device {
	t.Helper()
	if opts.Cache == nil {
		opts.Cache = newCache(t, t.TempDir())
	}
	opts.Driver = f.path
	d, err := Open("cuda", opts)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	return d
}

func newCache(t testing.TB, dir string) *cache.Cache {
	return cache.Open(cache.Options{Dir: dir, OnWarning: func(err error) { t.Log("cache:", err) }})
}

// needNVRTC skips where there is none; continuous integration fails instead.
func needNVRTC(t testing.TB) {
	t.Helper()
	if _, err := cuda.Locate(cuda.FindOptions{}); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip(err)
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
	twiceArgs, plusArgs := []ir.LaunchArg{param(0), temp, size}, []ir.LaunchArg{temp, param(0), param(1), size}
	block := [3]int{128, 1, 1}
	return &ir.Program{
		Name: "triple", Symbols: []string{"N"},
		Params: []ir.Param{{Name: "x", DType: ir.F32, Shape: []ir.Size{n}},
			{Name: "y", DType: ir.F32, Shape: []ir.Size{n}, Output: true}},
		Temps:   []ir.Temp{{Bytes: constant(4), Slot: 3}, {Bytes: bytes, Slot: 7}, {Bytes: constant(8), Slot: 7}},
		Sources: []string{twiceText, plusText},
		Units: []ir.Unit{
			{Entry: "twice", Source: 0, Defines: "#define THREADS 128\n", Block: block},
			{Entry: "plus", Source: 1, Defines: "#define THREADS 128\n", Block: block, Strict: true},
			{Entry: "plus", Source: 1, Defines: "#define THREADS 128\n#define ALIGNED\n", Block: block},
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
