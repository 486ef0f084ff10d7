package simtest_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/runtime/cuda"
	"github.com/fusec/fusec/runtime/internal/fakecuda"
	"github.com/fusec/fusec/runtime/internal/ptxsim"
	"github.com/fusec/fusec/runtime/simtest"
)

func TestMain(m *testing.M) { fakecuda.Main(m) }

// text is a module of kernels with one thread that writes, to where its first argument
// points, 16 bytes: its second argument twice; the shape it runs in; or what is read
// where its second argument points.
const text = `.version 8.4
.target sm_90a
.address_size 64
.visible .entry say(.param .u64 to, .param .u64 what) {
	.reg .b64 %rd<3>;
	ld.param.u64 %rd1, [to];
	ld.param.u64 %rd2, [what];
	st.global.u64 [%rd1], %rd2;
	st.global.u64 [%rd1+8], %rd2;
	ret;
}
.visible .entry shape(.param .u64 to, .param .align 64 .b8 unused[128]) {
	.reg .b64 %rd<2>;
	.reg .b32 %r<5>;
	ld.param.u64 %rd1, [to];
	mov.u32 %r1, %nctaid.x;
	mov.u32 %r2, %ntid.y;
	mov.u32 %r3, %cluster_nctaid.x;
	mov.u32 %r4, %dynamic_smem_size;
	st.global.v4.u32 [%rd1], {%r1, %r2, %r3, %r4};
	ret;
}
.visible .entry fetch(.param .u64 to, .param .u64 from) {
	.reg .b64 %rd<5>;
	ld.param.u64 %rd1, [to];
	ld.param.u64 %rd2, [from];
	ld.global.v2.u64 {%rd3, %rd4}, [%rd2];
	st.global.v2.u64 [%rd1], {%rd3, %rd4};
	ret;
}
`

// bench is a context on a simulated device, with the module and 16 bytes to write to.
type bench struct {
	*simtest.Simulator
	context *cuda.Context
	module  *cuda.Module
	stream  *cuda.Stream
	to      cuda.DevicePtr
}

func newBench(t *testing.T, c simtest.Config) *bench {
	b := &bench{Simulator: simtest.New(t, c)}
	driver, err := cuda.OpenPath(b.Path)
	require.NoError(t, err)
	dev, err := driver.Device(0)
	require.NoError(t, err)
	b.context, err = dev.Context()
	require.NoError(t, err)
	b.module, err = b.context.LoadModule([]byte(text))
	require.NoError(t, err)
	b.stream, err = b.context.NewStream()
	require.NoError(t, err)
	b.to, err = b.context.Alloc(16)
	require.NoError(t, err)
	return b
}

func (b *bench) launch(t *testing.T, kernel string, c cuda.LaunchConfig) *cuda.Launch {
	f, err := b.module.Function(kernel)
	require.NoError(t, err)
	l, err := f.Launch(c)
	require.NoError(t, err)
	return l
}

func (b *bench) params(values ...uint64) *cuda.Params {
	p := cuda.NewParams(8, 8)
	for i, v := range values {
		p.SetUint64(i, v)
	}
	return p
}

// written is what the kernels wrote.
func (b *bench) written(t *testing.T) []byte {
	out := make([]byte, 16)
	require.NoError(t, b.stream.CopyDtoH(out, b.to))
	require.NoError(t, b.stream.Synchronize())
	return out
}

func twice(v byte) []byte { return bytes.Repeat([]byte{v, 0, 0, 0, 0, 0, 0, 0}, 2) }

var single = cuda.LaunchConfig{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1}}

func TestMemoryIsUndefinedAtFirst(t *testing.T) {
	b := newBench(t, simtest.Config{})
	require.Equal(t, bytes.Repeat([]byte{0xFF}, 16), b.written(t))
}

// The shape of a launch, with attributes and without, reaches the kernel.
func TestShapes(t *testing.T) {
	b := newBench(t, simtest.Config{})
	params := cuda.NewParams(8, 128)
	params.SetPointer(0, b.to)
	for _, c := range []cuda.LaunchConfig{
		{Grid: [3]uint32{6, 1, 2}, Block: [3]uint32{3, 5, 1}, Shared: 60 << 10},
		{Grid: [3]uint32{6, 1, 2}, Block: [3]uint32{3, 7, 1}, Cluster: [3]uint32{3, 1, 1}, Programmatic: true},
		{Grid: [3]uint32{16, 1, 1}, Block: [3]uint32{1, 1, 1}, Cluster: [3]uint32{16, 1, 1}},
	} {
		require.NoError(t, b.launch(t, "shape", c).Run(b.stream, params))
		out := b.written(t)
		cluster := max(c.Cluster[0], 1)
		require.Equal(t, []byte{byte(c.Grid[0]), byte(c.Block[1]), byte(cluster)}, []byte{out[0], out[4], out[8]})
		require.Equal(t, []byte{0, byte(c.Shared >> 8), 0, 0}, out[12:])
	}
	require.Equal(t, []string{"shape", "shape", "shape"}, b.Ran())
}

// Arguments are copied when a launch is captured, or made a node, and exchanged by
// updates of both kinds; clusters stay.
func TestGraphs(t *testing.T) {
	b := newBench(t, simtest.Config{})
	l, params := b.launch(t, "say", single), b.params(uint64(b.to), 1)
	captured, err := b.stream.Capture(func() error { return l.RunCurrent(b.stream, params) })
	require.NoError(t, err)
	params.SetUint64(1, 2)
	run, err := captured.Instantiate()
	require.NoError(t, err)
	require.NoError(t, run.Launch(b.stream))
	require.Equal(t, twice(1), b.written(t))

	built, err := b.context.NewGraph()
	require.NoError(t, err)
	node, err := built.AddKernel(l, params)
	require.NoError(t, err)
	require.NoError(t, run.Update(built))
	require.NoError(t, run.Launch(b.stream))
	require.Equal(t, twice(2), b.written(t))

	params.SetUint64(1, 3)
	require.NoError(t, run.SetParams(node, params))
	require.NoError(t, run.Launch(b.stream))
	require.Equal(t, twice(3), b.written(t))
}

func TestGraphKeepsClusters(t *testing.T) {
	b := newBench(t, simtest.Config{})
	c := cuda.LaunchConfig{Grid: [3]uint32{8, 1, 1}, Block: [3]uint32{1, 1, 1}, Cluster: [3]uint32{4, 1, 1}}
	params := cuda.NewParams(8, 128)
	params.SetPointer(0, b.to)
	g, err := b.context.NewGraph()
	require.NoError(t, err)
	node, err := g.AddKernel(b.launch(t, "shape", c), params)
	require.NoError(t, err)
	run, err := g.Instantiate()
	require.NoError(t, err)
	require.NoError(t, run.SetParams(node, params))
	require.NoError(t, run.Launch(b.stream))
	require.EqualValues(t, 4, b.written(t)[8])
}

// A fault names what the kernel did, in the driver's error and in the simulator's; all
// later calls fail with it.
func TestFaults(t *testing.T) {
	for name, from := range map[string]func(b *bench) cuda.DevicePtr{
		"beyond an allocation": func(b *bench) cuda.DevicePtr { return b.to + 16 },
		"across its end": func(b *bench) cuda.DevicePtr {
			p, err := b.context.Alloc(24)
			require.NoError(t, err)
			return p + 16
		},
		"freed": func(b *bench) cuda.DevicePtr {
			p, err := b.context.Alloc(16)
			require.NoError(t, err)
			require.NoError(t, b.context.Free(p))
			return p
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, simtest.Config{})
			l := b.launch(t, "fetch", single)
			require.NoError(t, l.Run(b.stream, b.params(uint64(b.to), uint64(b.to))))
			require.NoError(t, b.stream.Synchronize())
			require.NoError(t, l.Run(b.stream, b.params(uint64(b.to), uint64(from(b)))))
			err := b.stream.Synchronize()
			require.ErrorIs(t, err, cuda.ErrDeviceLost)
			require.ErrorContains(t, err, "fetch: ptx line 27, block [0 0 0], thread 0")
			require.ErrorContains(t, b.Fault(), "fetch: ptx line 27, block [0 0 0], thread 0")
			require.ErrorIs(t, l.Run(b.stream, b.params(uint64(b.to), uint64(b.to))), cuda.ErrDeviceLost)
		})
	}
}

func TestRefusals(t *testing.T) {
	b := newBench(t, simtest.Config{Arch: "sm_80"})
	_, err := b.context.LoadModule(append([]byte("\x7fELF"), make([]byte, 60)...))
	require.ErrorIs(t, err, cuda.ErrNoBinaryForGPU)
	_, err = b.context.LoadModule([]byte(".version 8.4\n.entry f() { frobnicate.u32 a, b; }"))
	require.ErrorIs(t, err, cuda.ErrInvalidImage)
	require.ErrorContains(t, err, "frobnicate.u32")
	_, err = b.module.Function("none")
	require.ErrorIs(t, err, cuda.ErrNotFound)
	f, err := b.module.Function("shape")
	require.NoError(t, err)
	_, err = f.Launch(cuda.LaunchConfig{Grid: single.Grid, Block: single.Block, Shared: 164 << 10})
	require.ErrorContains(t, err, "allows a block 166912")
	clustered := single
	clustered.Cluster = [3]uint32{1, 1, 1}
	params := cuda.NewParams(8, 128)
	require.ErrorIs(t, b.launch(t, "shape", clustered).Run(b.stream, params), cuda.ErrInvalidValue)
	wide := single
	wide.Block = [3]uint32{1025, 1, 1}
	require.ErrorIs(t, b.launch(t, "shape", wide).Run(b.stream, params), cuda.ErrInvalidValue)
}

// What the driver encodes is what the simulator's copies read; its rules are told.
func TestTensorMaps(t *testing.T) {
	b := newBench(t, simtest.Config{})
	config := cuda.TensorMapConfig{Type: cuda.TensorMapBFloat16, Address: b.to, Dims: []uint64{64, 7, 5},
		Strides: []uint64{128, 1024}, Box: []uint32{32, 4, 1}, Steps: []uint32{1, 2, 1}, Swizzle: cuda.Swizzle64B,
		NaNFill: true}
	encoded, err := b.context.Driver().EncodeTiled(config)
	require.NoError(t, err)
	m, err := ptxsim.DecodeTensorMap(encoded[:])
	require.NoError(t, err)
	require.Equal(t, ptxsim.TensorMap{Type: 9, Rank: 3, Address: uint64(b.to), Dims: [5]uint64{64, 7, 5},
		Strides: [5]uint64{2, 128, 1024}, Box: [5]uint32{32, 4, 1}, Steps: [5]uint32{1, 2, 1}, Swizzle: 64,
		NaNFill: true}, m)
	config.Box[0] = 64
	_, err = b.context.Driver().EncodeTiled(config)
	require.ErrorIs(t, err, cuda.ErrInvalidValue)
	require.ErrorContains(t, err, "do not fit a swizzle of 64")
}

func TestDevices(t *testing.T) {
	for _, c := range []simtest.Config{{}, {Arch: "sm_80", Multiprocessors: 132, BlocksPerMultiprocessor: 1}} {
		b := newBench(t, c)
		dev := b.context.Device()
		f, err := b.module.Function("shape")
		require.NoError(t, err)
		n, err := f.MaxActiveBlocks(1024, 0)
		require.NoError(t, err)
		l, err := f.Launch(cuda.LaunchConfig{Grid: single.Grid, Block: [3]uint32{1024, 1, 1}, Cluster: [3]uint32{1, 1, 1}})
		require.NoError(t, err)
		clusters, err := l.MaxActiveClusters()
		require.NoError(t, err)
		if c.Arch == "" {
			require.Equal(t, []any{9, 4, 2, 8, true}, []any{dev.Major, dev.Limits.SMs, n, clusters, dev.Limits.Clusters})
		} else {
			require.Equal(t, []any{8, 132, 1, 132, false}, []any{dev.Major, dev.Limits.SMs, n, clusters, dev.Limits.Clusters})
		}
	}
}
