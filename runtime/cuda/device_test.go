package cuda

import (
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// requireDevice gives a context on the first GPU, or skips where there is none.
func requireDevice(t testing.TB) *Context {
	t.Helper()
	d, err := Open()
	if errors.Is(err, ErrNoDriver) || errors.Is(err, ErrNoDevice) {
		t.Skipf("this test needs a GPU: %v", err)
	}
	require.NoError(t, err)
	dev, err := d.Device(0)
	if errors.Is(err, ErrNoDevice) {
		t.Skipf("this test needs a GPU: %v", err)
	}
	require.NoError(t, err)
	c, err := dev.Context()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

// archFor is the architecture to compile for: with the features of its own where
// there are such.
func archFor(dev *Device) string {
	if dev.Major == 9 {
		return "sm_90a"
	}
	return dev.Arch()
}

// compileFor compiles for the device, or skips where no NVRTC knows it.
func compileFor(t testing.TB, dev *Device, source string) Result {
	t.Helper()
	result, err := requireNVRTC(t).Compile(t.Context(), Request{Name: "test.cu", Source: source,
		Options: []string{"--gpu-architecture=" + archFor(dev)}})
	if errors.Is(err, ErrUnsupportedArch) {
		t.Skip(err)
	}
	require.NoError(t, err)
	return result
}

func TestDeviceConforms(t *testing.T) {
	c := requireDevice(t)
	conform(t, c, compileFor(t, c.Device(), scaleSource).CUBIN)
}

func TestDeviceDescribesItself(t *testing.T) {
	dev := requireDevice(t).Device()
	t.Logf("%+v", *dev)
	l := dev.Limits
	assert.NotEmpty(t, dev.Name)
	assert.NotZero(t, dev.UUID)
	assert.Equal(t, 32, l.WarpSize)
	assert.Equal(t, 1024, l.MaxThreadsPerBlock)
	assert.Equal(t, 65536, l.RegistersPerSM)
	assert.GreaterOrEqual(t, l.SharedPerBlockMax, l.SharedPerBlock)
	assert.GreaterOrEqual(t, l.SharedPerSM, l.SharedPerBlockMax)
	assert.Greater(t, dev.TotalMemory, uint64(1)<<30)
	assert.Equal(t, dev.Major >= 9, l.Clusters)
}

func TestDeviceCompilesPTX(t *testing.T) {
	c := requireDevice(t)
	result := compileFor(t, c.Device(), scaleSource)
	m, err := c.LoadModule(result.PTX)
	const jitCompilerNotFound = 221
	if errors.Is(err, ErrUnsupportedPTX) || isCode(err, jitCompilerNotFound) {
		t.Skipf("the driver cannot compile this PTX, which is what cubins are for: %v", err)
	}
	require.NoError(t, err)
	require.NoError(t, m.Close())
	_, err = c.LoadModule([]byte(".version 7.0\n.target sm_80\n.address_size 64\n" +
		".visible .entry k() { nonsense; }"))
	var failed *Error
	require.ErrorAs(t, err, &failed)
	assert.Contains(t, failed.Detail, "nonsense", "the log of the driver's compiler")
}

func TestDeviceRefusesForeignCubin(t *testing.T) {
	c := requireDevice(t)
	arch := "sm_80"
	if c.Device().Major == 8 {
		arch = "sm_90a"
	}
	result, err := requireNVRTC(t).Compile(t.Context(), Request{Source: scaleSource,
		Options: []string{"--gpu-architecture=" + arch}})
	require.NoError(t, err)
	_, err = c.LoadModule(result.CUBIN)
	assert.ErrorIs(t, err, ErrNoBinaryForGPU)
}

const argumentsSource = `
struct alignas(64) Map { char bytes[128]; };
__device__ int table[3] = {7, 8, 9};
extern "C" __global__ void arguments(int* out, unsigned char a, short b, int c, long long d, float e,
                                     double f, const __grid_constant__ Map m) {
    out[0] = a; out[1] = b; out[2] = c; out[3] = (int)d; out[4] = (int)e; out[5] = (int)f;
    out[6] = m.bytes[0]; out[7] = m.bytes[127]; out[8] = table[2];
}`

func TestDeviceArgumentsOfEverySize(t *testing.T) {
	c := requireDevice(t)
	m := must(c.LoadModule(compileFor(t, c.Device(), argumentsSource).CUBIN))(t)
	f := must(m.Function("arguments"))(t)
	out := deviceFloats(t, c, make([]float32, 9)...)
	p := NewParams(8, 1, 2, 4, 8, 4, 8, 128)
	p.SetPointer(0, out)
	p.SetBytes(1, []byte{200})
	p.SetBytes(2, binary.LittleEndian.AppendUint16(nil, 30000))
	p.SetInt32(3, -5)
	p.SetInt64(4, 123456)
	p.SetFloat32(5, 42)
	p.SetFloat64(6, -43)
	p.SetTensorMap(7, &TensorMap{0: 11, 127: 12})
	one := LaunchConfig{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1}}
	require.NoError(t, must(f.Launch(one))(t).Run(c.BorrowStream(0), p))
	data := fetch(t, c, out, 9)
	var got []int32
	for i := range 9 {
		got = append(got, int32(binary.LittleEndian.Uint32(data[4*i:])))
	}
	assert.Equal(t, []int32{200, 30000, -5, 123456, 42, -43, 11, 12, 9}, got)
	_, size, err := m.Global("table")
	require.NoError(t, err)
	assert.EqualValues(t, 12, size)
	require.NoError(t, m.Close())
}

const clusterSource = `
extern "C" __global__ void clusters(unsigned* out) {
    extern __shared__ unsigned scratch[];
    scratch[0] = 0;
    unsigned size, rank;
    asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(size));
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    asm volatile("griddepcontrol.wait;");
    out[blockIdx.x] = size * 100 + rank + scratch[0];
}`

func TestDeviceClusters(t *testing.T) {
	c := requireDevice(t)
	if !c.Device().Limits.Clusters {
		t.Skip("this GPU has no thread-block clusters")
	}
	m := must(c.LoadModule(compileFor(t, c.Device(), clusterSource).CUBIN))(t)
	f := must(m.Function("clusters"))(t)
	for _, blocks := range []uint32{1, 2, 8, 16} {
		l := must(f.Launch(LaunchConfig{Grid: [3]uint32{16, 1, 1}, Block: [3]uint32{32, 1, 1}, Shared: 100 << 10,
			Cluster: [3]uint32{blocks, 1, 1}, Programmatic: true}))(t)
		assert.Positive(t, must(l.MaxActiveClusters())(t))
		out := deviceFloats(t, c, make([]float32, 16)...)
		p := NewParams(8)
		p.SetPointer(0, out)
		require.NoError(t, l.Run(c.BorrowStream(0), p))
		data := fetch(t, c, out, 16)
		for i := range uint32(16) {
			assert.Equal(t, blocks*100+i%blocks, binary.LittleEndian.Uint32(data[4*i:]))
		}
	}
	require.NoError(t, m.Close())
}

func TestDeviceTensorMaps(t *testing.T) {
	c := requireDevice(t)
	if !c.Device().Limits.TensorMaps {
		t.Skip("this GPU has no tensor maps")
	}
	p := must(c.Alloc(64 * 64 * 2))(t)
	config := TensorMapConfig{Type: TensorMapBFloat16, Address: p, Dims: []uint64{64, 64},
		Strides: []uint64{128}, Box: []uint32{64, 8}, Swizzle: Swizzle128B, L2: L2Promotion128B}
	first := must(c.Driver().EncodeTiled(config))(t)
	assert.NotZero(t, *first)
	config.Strides = []uint64{100} // not a multiple of 16
	_, err := c.Driver().EncodeTiled(config)
	assert.ErrorIs(t, err, ErrInvalidValue)
	require.NoError(t, c.Free(p))
}

func TestDeviceLaunchFailures(t *testing.T) {
	c := requireDevice(t)
	f := loadScale(t, c, compileFor(t, c.Device(), scaleSource).CUBIN)
	l := must(f.Launch(LaunchConfig{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{2048, 1, 1}}))(t)
	err := l.Run(c.BorrowStream(0), scaleParams(0, 1, 0))
	assert.ErrorIs(t, err, ErrInvalidValue)
	assert.ErrorContains(t, err, "block [2048 1 1]")
	require.NoError(t, c.Synchronize(), "a refused launch does no harm")
}

// TestDeviceLost runs in a process of its own: a kernel that faults takes the
// primary context, and with it all other tests, along.
func TestDeviceLost(t *testing.T) {
	if os.Getenv("FUSEC_TEST_DEVICE_LOST") == "" {
		requireDevice(t)
		cmd := exec.Command(os.Args[0], "-test.run=^TestDeviceLost$", "-test.v")
		cmd.Env = append(os.Environ(), "FUSEC_TEST_DEVICE_LOST=1")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		return
	}
	d := must(Open())(t)
	dev := must(d.Device(0))(t)
	c := must(dev.Context())(t)
	m := must(c.LoadModule(compileFor(t, dev, scaleSource).CUBIN))(t)
	l := must(must(m.Function("scale"))(t).Launch(oneBlock))(t)
	require.NoError(t, l.Run(c.BorrowStream(0), scaleParams(8, 1, 32)))
	assert.ErrorIs(t, c.Synchronize(), ErrDeviceLost)
	_, err := c.Alloc(4)
	assert.ErrorIs(t, err, ErrDeviceLost, "and it stays lost")
}

func BenchmarkDeviceLaunch(b *testing.B) {
	c := requireDevice(b)
	m := must(c.LoadModule(compileFor(b, c.Device(), scaleSource).CUBIN))(b)
	defer m.Close()
	l := must(must(m.Function("scale"))(b).Launch(oneBlock))(b)
	s := must(c.NewStream())(b)
	defer s.Close()
	params := scaleParams(0, 1, 0)
	for name, run := range map[string]func(*Stream, *Params) error{"Run": l.Run, "RunCurrent": l.RunCurrent} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			require.NoError(b, c.Do(func() error {
				for b.Loop() {
					if err := run(s, params); err != nil {
						return err
					}
				}
				return s.Synchronize()
			}))
		})
	}
}

// TestDeviceStart logs what a warm start cannot avoid.
func TestDeviceStart(t *testing.T) {
	start := time.Now()
	d, err := Open()
	if err != nil {
		t.Skipf("this test needs a GPU: %v", err)
	}
	opened := time.Since(start)
	dev := must(d.Device(0))(t)
	described := time.Since(start)
	c := must(dev.Context())(t)
	t.Logf("driver open %v, device described %v, context %v", opened, described-opened,
		time.Since(start)-described)
	require.NoError(t, c.Close())
}
