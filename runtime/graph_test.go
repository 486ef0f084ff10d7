//go:build linux && !nocuda

package runtime

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime/cuda"
	"github.com/fusec/fusec/runtime/tensor"
)

func newBuffer(t testing.TB, d *Device, n int) *Buffer {
	t.Helper()
	b, err := d.NewBuffer(ir.F32, n)
	require.NoError(t, err)
	return b
}

func uploaded(t testing.TB, d *Device, x *tensor.Tensor) *Buffer {
	t.Helper()
	b := newBuffer(t, d, x.Len())
	require.NoError(t, b.Upload(x))
	return b
}

func downloaded(t testing.TB, b *Buffer) *tensor.Tensor {
	t.Helper()
	x, err := b.Tensor()
	require.NoError(t, err)
	return x
}

func TestLaterRunsReplayAGraph(t *testing.T) {
	f, fn := loadTriple(t, Options{})
	for range 3 {
		x, y := ramp(t, 100), ramp(t, 100)
		require.NoError(t, fn.Run(context.Background(), Args{"x": x, "y": y}))
		requireTripled(t, x, y)
	}
	assert.Equal(t, 1, f.Calls("cuGraphInstantiateWithFlags"))
	assert.Equal(t, 2, f.Calls("cuGraphLaunch"))
	assert.Equal(t, 1, f.Calls("cuLaunchKernel"), "the first run's first kernel")
	assert.Equal(t, 1, f.Calls("cuLaunchKernelEx"), "and its second, programmatic")
	assert.Equal(t, 1, f.Edges())
	assert.Equal(t, 1, f.ProgrammaticEdges())
	assert.Zero(t, f.Calls("cuGraphExecKernelNodeSetParams_v2"), "nothing has moved")
}

// TestGraphsFollowTheirTensors runs on other buffers each time, in host memory and in
// the device's.
func TestGraphsFollowTheirTensors(t *testing.T) {
	f, fn := loadTriple(t, Options{})
	d := fn.Device()
	for n := range 6 {
		values := make([]float32, 50)
		for i := range values {
			values[i] = float32(i * (n + 1))
		}
		x := uploaded(t, d, vector(t, values...))
		y := newBuffer(t, d, 50)
		require.NoError(t, fn.Run(context.Background(), Args{"x": x, "y": y}))
		requireTripled(t, vector(t, values...), downloaded(t, y))
		host := ramp(t, 50)
		if n%2 == 1 {
			require.NoError(t, fn.Run(context.Background(), Args{"x": x, "y": host}))
			requireTripled(t, vector(t, values...), host)
		}
	}
	assert.Positive(t, f.Calls("cuGraphExecKernelNodeSetParams_v2"))
}

// TestBranchesAreIndependent: kernels that share nothing but an input are not ordered.
func TestBranchesAreIndependent(t *testing.T) {
	requireNVRTC(t)
	f := fakeDriver(t)
	p := tripleProgram()
	p.Params = append(p.Params, ir.Param{Name: "z", DType: ir.F32, Shape: p.Params[0].Shape, Output: true})
	second := p.Launches[0]
	second.Variants = []ir.LaunchVariant{second.Variants[0]}
	second.Variants[0].Args = []ir.LaunchArg{{Kind: ir.ArgParam}, {Kind: ir.ArgParam, Index: 2, Write: true},
		{Kind: ir.ArgSize}}
	p.Launches = append(p.Launches, second)
	fn, err := f.open(t, Options{}).Load(context.Background(), p)
	require.NoError(t, err)
	for range 2 {
		x, y, z := ramp(t, 9), ramp(t, 9), ramp(t, 9)
		require.NoError(t, fn.Run(context.Background(), Args{"x": x, "y": y, "z": z}))
		requireTripled(t, x, y)
		assert.Equal(t, 18.0, z.Floats()[8])
	}
	assert.Equal(t, 1, f.Edges())
}

func TestGraphsThatFail(t *testing.T) {
	for _, call := range []string{"cuGraphCreate", "cuGraphAddKernelNode_v2", "cuGraphAddDependencies_v2",
		"cuGraphInstantiateWithFlags", "cuGraphLaunch", "cuGraphExecKernelNodeSetParams_v2"} {
		t.Run(call, func(t *testing.T) {
			f, fn := loadTriple(t, Options{})
			run := func() error {
				x := uploaded(t, fn.Device(), ramp(t, 8)) // elsewhere each time
				y := newBuffer(t, fn.Device(), 8)
				if err := fn.Run(context.Background(), Args{"x": x, "y": y}); err != nil {
					return err
				}
				requireTripled(t, ramp(t, 8), downloaded(t, y))
				return nil
			}
			require.NoError(t, run())
			if call == "cuGraphExecKernelNodeSetParams_v2" {
				require.NoError(t, run())
			}
			f.Fail(call, 1, 0)
			require.ErrorIs(t, run(), cuda.ErrInvalidValue)
			require.NoError(t, run())
		})
	}
}

// TestDriversWithoutGraphs: what cannot be replayed is launched.
func TestDriversWithoutGraphs(t *testing.T) {
	const notSupported = 801
	f, fn := loadTriple(t, Options{})
	f.Fail("cuGraphAddDependencies_v2", notSupported, 0)
	for range 4 {
		x, y := ramp(t, 8), ramp(t, 8)
		require.NoError(t, fn.Run(context.Background(), Args{"x": x, "y": y}))
		requireTripled(t, x, y)
	}
	assert.Equal(t, 1, f.Calls("cuGraphCreate"), "tried once")
	assert.Zero(t, f.Calls("cuGraphLaunch"))
}

// TestForgottenSizesGiveTheirGraphsBack runs twice what each of many sizes makes a graph
// of; fakeDriver checks that none is left.
func TestForgottenSizesGiveTheirGraphsBack(t *testing.T) {
	f, fn := loadTriple(t, Options{})
	for n := 14; n < 14+2*maxBindings; n++ {
		for range 2 {
			require.NoError(t, fn.Run(context.Background(), Args{"x": ramp(t, n), "y": ramp(t, n)}))
		}
	}
	assert.Equal(t, 2*maxBindings, f.Calls("cuGraphInstantiateWithFlags"))
	assert.Equal(t, maxBindings, f.Calls("cuGraphExecDestroy"))
}

// TestForgottenSizesOfRunsUnderWay: the graph of a run whose sizes are forgotten meanwhile is
// given back when the run is over; fakeDriver checks that none is left.
func TestForgottenSizesOfRunsUnderWay(t *testing.T) {
	f, fn := loadTriple(t, Options{Kernels: stored})
	f.Defer(true)
	x, y := ramp(t, 9), ramp(t, 9)
	run := func() error { return fn.Run(context.Background(), Args{"x": x, "y": y}) }
	require.NoError(t, run())
	require.NoError(t, run())
	require.Equal(t, 1, f.Calls("cuGraphLaunch"))
	f.Hold(true)
	under := start(run)
	f.under(t, "cuGraphLaunch", 2)
	for n := range maxBindings {
		require.NoError(t, fn.Prepare(context.Background(), map[string]int64{"N": int64(100 + n)}))
	}
	f.Hold(false)
	require.NoError(t, under.err(t))
	require.Equal(t, 1, f.Calls("cuGraphExecDestroy"))
}
