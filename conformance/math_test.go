package conformance

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime"
	"github.com/fusec/fusec/runtime/simtest"
	"github.com/fusec/fusec/runtime/tensor"
)

// TestFastLog1p compares the form of log(1 + x) that 16-bit results take with the exact one: to
// half a unit in the last place of an f16, and an eighth for the form.
func TestFastLog1p(t *testing.T) {
	t.Parallel()
	compareLog1p(t, "graph g(x: f32[N]) -> (y: f16[N]) {\n    y = f16(log1p(x))\n}", -14, 16, 0x1p-11+0x1p-13)
}

// TestLog1p compares the form that others take, to 1.25 units in the last place of an f32, over
// all of its numbers. The small ones give themselves, with their sign.
func TestLog1p(t *testing.T) {
	t.Parallel()
	f := compareLog1p(t, "graph g(x: f32[N]) -> (y: f32[N]) {\n    y = log1p(x)\n}", -126, 127, 1.25*0x1p-23)
	small := []float32{0, float32(math.Copysign(0, -1)), 1e-42, -1e-42, 0x1p-126, 3e-9, -3e-9}
	got := valuesOf(t, f, small)
	for i, x := range small {
		require.Equal(t, math.Float32bits(x), math.Float32bits(got[i]), "log(1 + %g)", x)
	}
}

// compareLog1p loads a graph of log(1 + x) and compares it with the logarithm between 2^from and 2^to,
// to a relative error, and at the ends of its domain.
func compareLog1p(t *testing.T, program string, from, to int, within float64) *runtime.Function {
	dev := openSimulated(t, simtest.Config{})
	_, f := loaded(t, dev, program)
	var at []float32
	for e := from; e <= to; e++ {
		for m := 1.0; m < 2; m += 1.0 / 16 {
			v := math.Ldexp(m, e)
			at = append(at, float32(v))
			if v < 1 {
				at = append(at, float32(-v))
			}
		}
	}
	for i, y := range valuesOf(t, f, at) {
		require.InEpsilon(t, math.Log1p(float64(at[i])), float64(y), within, "log(1 + %g)", at[i])
	}
	y := valuesOf(t, f, []float32{0, -1, -2, float32(math.Inf(1)), float32(math.NaN())})
	require.Equal(t, []float32{0, float32(math.Inf(-1))}, y[:2])
	require.True(t, math.IsNaN(float64(y[2])) && math.IsInf(float64(y[3]), 1) && math.IsNaN(float64(y[4])))
	return f
}

// TestTanh compares the form of tanh that results of 32 bits take with the exact one, to 2.5 units in the last place. Signs of
// zeros stay, and numbers so small that their squares vanish.
func TestTanh(t *testing.T) {
	t.Parallel()
	dev := openSimulated(t, simtest.Config{})
	_, f := loaded(t, dev, "graph g(x: f32[N]) -> (y: f32[N]) {\n    y = tanh(x)\n}")
	var at []float32
	for e := -126; e < 7; e++ {
		for m := 1.0; m < 2; m += 1.0 / 64 {
			at = append(at, float32(math.Ldexp(m, e)), float32(-math.Ldexp(m, e)))
		}
	}
	for i, y := range valuesOf(t, f, at) {
		require.InEpsilon(t, math.Tanh(float64(at[i])), float64(y), 2.5*0x1p-23, "tanh(%g)", at[i])
	}
	zero := float32(math.Copysign(0, -1))
	for _, x := range []float32{0, zero, 1e-42, -1e-42} {
		require.Equal(t, math.Float32bits(x), math.Float32bits(valuesOf(t, f, []float32{x})[0]), "tanh(%g)", x)
	}
	y := valuesOf(t, f, []float32{float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN())})
	require.Equal(t, []float32{1, -1}, y[:2])
	require.True(t, math.IsNaN(float64(y[2])))
}

func valuesOf(t *testing.T, f *runtime.Function, at []float32) []float32 {
	x, err := tensor.FromFloats(ir.F32, at, len(at))
	require.NoError(t, err)
	got, err := f.Call(t.Context(), runtime.Args{"x": x})
	require.NoError(t, err)
	return got["y"].Float32s()
}

// TestErfOfEveryFloat takes erf in kernels that store 16 bits of every float of 16 bits: what its fast form
// adds to the rounding is small beside erf near zero, and beside 1 where 1 is added to it.
func TestErfOfEveryFloat(t *testing.T) {
	t.Parallel()
	const count = 1 << 16
	const beside0, beside1 = 0x1p-14, 4e-7
	dev := openSimulated(t, simtest.Config{Arch: "sm_90a"})
	for typ, bits := range map[ir.DType]int{ir.F16: 10, ir.BF16: 7} {
		_, f := loaded(t, dev, fmt.Sprintf("graph g(x: %[1]s[N]) -> (y: %[1]s[N], z: %[1]s[N]) { y = erf(x)\nz = erf(x) + 1 }", typ))
		x, err := tensor.New(typ, count)
		require.NoError(t, err)
		for i := range count {
			binary.LittleEndian.PutUint16(x.Data[2*i:], uint16(i))
		}
		got, err := f.Call(context.Background(), runtime.Args{"x": x})
		require.NoError(t, err)
		half := math.Ldexp(1, -bits-1) // of the last bit, relative
		for i := range count {
			v, y, z := x.At(i), got["y"].At(i), got["z"].At(i)
			if math.IsNaN(v) {
				require.True(t, math.IsNaN(y) && math.IsNaN(z), "%s 0x%04x", typ, i)
				continue
			}
			want := math.Erf(v)
			require.InDelta(t, want, y, math.Abs(want)*(half+beside0)+0x1p-25, "erf(%g) in %s", v, typ)
			require.InDelta(t, 1+want, z, (1+want)*half+beside1, "1 + erf(%g) in %s", v, typ)
		}
	}
}
