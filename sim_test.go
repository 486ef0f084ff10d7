package fusec

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime"
	"github.com/fusec/fusec/runtime/cache"
	"github.com/fusec/fusec/runtime/simtest"
	"github.com/fusec/fusec/runtime/tensor"
)

// openSimulated opens a simulated device with a cache of the test's own.
func openSimulated(t testing.TB, c simtest.Config) (*simtest.Simulator, *runtime.Device) {
	t.Helper()
	RequireNVRTC(t)
	s := simtest.New(t, c)
	return s, s.Open(t, runtime.Options{Cache: cache.Open(cache.Options{Dir: t.TempDir()})})
}

// TestSimulatedDevice takes two examples through all of the runtime to kernels that run on
// the CPU.
func TestSimulatedDevice(t *testing.T) {
	for _, arch := range []string{"sm_80", "sm_90a"} {
		s, dev := openSimulated(t, simtest.Config{Arch: arch})
		require.Equal(t, arch, dev.Arch())
		for _, name := range []string{"softmax", "gelu_chain"} {
			text, err := examples.ReadFile("examples/" + name + ".fuse")
			require.NoError(t, err)
			p, f := loaded(t, dev, string(text))
			for _, set := range [][]int64{{3, 70}, {2, 1025}, {5, 64}} {
				sizes, fit := sizesOf(p.Graph(), set)
				require.True(t, fit)
				ran := len(s.Ran())
				t.Run(fmt.Sprint(arch, name, set), func(t *testing.T) { compareWithInterpreter(t, p.Graph(), f, sizes) })
				require.Greater(t, len(s.Ran()), ran)
			}
		}
	}
}

// TestFastLog1p compares the form of log(1 + x) that 16-bit results take with the exact one: to
// half a unit in the last place of an f16, and an eighth for the form.
func TestFastLog1p(t *testing.T) {
	_, dev := openSimulated(t, simtest.Config{})
	_, f := loaded(t, dev, "graph g(x: f32[N]) -> (y: f16[N]) {\n    y = f16(log1p(x))\n}")
	var at []float32
	for e := -14; e <= 16; e++ {
		for m := 1.0; m < 2; m += 1.0 / 16 {
			v := math.Ldexp(m, e)
			at = append(at, float32(v))
			if v < 1 {
				at = append(at, float32(-v))
			}
		}
	}
	x, err := tensor.FromFloats(ir.F32, at, len(at))
	require.NoError(t, err)
	got, err := f.Call(t.Context(), runtime.Args{"x": x})
	require.NoError(t, err)
	for i, v := range at {
		want := math.Log1p(float64(v))
		require.InEpsilon(t, want, float64(got["y"].Float32s()[i]), 0x1p-11+0x1p-13, "log(1 + %g)", v)
	}
	ends := []float32{0, -1, -2, float32(math.Inf(1)), float32(math.NaN())}
	x, err = tensor.FromFloats(ir.F32, ends, len(ends))
	require.NoError(t, err)
	got, err = f.Call(t.Context(), runtime.Args{"x": x})
	require.NoError(t, err)
	y := got["y"].Float32s()
	require.Equal(t, []float32{0, float32(math.Inf(-1))}, y[:2])
	require.True(t, math.IsNaN(float64(y[2])) && math.IsInf(float64(y[3]), 1) && math.IsNaN(float64(y[4])))
}
