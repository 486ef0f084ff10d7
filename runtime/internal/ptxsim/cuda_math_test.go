package ptxsim_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/runtime/cuda"
	"github.com/fusec/fusec/runtime/internal/ptxsim"
)

// cudaMath is functions of CUDA's library and the same of Go's. Behind their names are
// thousands of instructions that depend on each other's last bit: fused products whose
// rounding errors are used, exponents put together from bits, 64-bit integer products,
// tables and calls.
func cudaMath() map[string]func(x, y float64) float64 {
	one := func(f func(float64) float64) func(x, y float64) float64 {
		return func(x, _ float64) float64 { return f(x) }
	}
	return map[string]func(x, y float64) float64{
		"sqrt": one(math.Sqrt), "cbrt": one(math.Cbrt), "exp": one(math.Exp), "exp2": one(math.Exp2),
		"expm1": one(math.Expm1), "log": one(math.Log), "log2": one(math.Log2), "log10": one(math.Log10),
		"log1p": one(math.Log1p), "sin": one(math.Sin), "cos": one(math.Cos), "tan": one(math.Tan),
		"asin": one(math.Asin), "acos": one(math.Acos), "atan": one(math.Atan), "sinh": one(math.Sinh),
		"cosh": one(math.Cosh), "tanh": one(math.Tanh), "asinh": one(math.Asinh), "acosh": one(math.Acosh),
		"atanh": one(math.Atanh), "erf": one(math.Erf), "erfinv": one(math.Erfinv), "tgamma": one(math.Gamma),
		"floor": one(math.Floor), "ceil": one(math.Ceil), "trunc": one(math.Trunc), "round": one(math.Round),
		"rint": one(math.RoundToEven), "fabs": one(math.Abs), "pow": math.Pow, "fmod": math.Mod,
		"remainder": math.Remainder, "atan2": math.Atan2, "hypot": math.Hypot, "copysign": math.Copysign,
	}
}

// cudaSources are the arguments of a warp's lanes: of all magnitudes, and special.
func cudaSources() (xs, ys [32]float64) {
	inf := math.Inf(1)
	xs = [32]float64{0.5, -0.5, 0, 1, -1, 2.5, 3.7, -7.25, 10, 100.5, 1e6, 12345678.5, -3e10, 1e-10, 0.99, 1.5,
		inf, -inf, math.NaN(), 1e30, 33.3, 5, 2, 80, -80, 0.1, 0.3, 0.7, 1e-40, 1e35, 6.28, math.Copysign(0, -1)}
	ys = [32]float64{0.5, 2, 3, -1, -0.5, 2, 3.7, 7.25, 1, -2, 3, 0.1, 2, 5, 99, 0,
		1, 2, 1, -2, 33.3, 5, 2, 2, -3, 0.1, 0.3, 0.7, 1, 1, 6.28, -1}
	return xs, ys
}

// TestMathOfCUDA compiles CUDA's functions and compares what they give here with Go's.
func TestMathOfCUDA(t *testing.T) {
	nvrtc, err := cuda.FindNVRTC(cuda.FindOptions{})
	if errors.Is(err, cuda.ErrNoNVRTC) && os.Getenv("CI") != "true" {
		t.Skipf("no NVRTC here: run scripts/get-nvrtc to have this test run: %v", err)
	}
	require.NoError(t, err)
	functions := cudaMath()
	for typ, suffix := range map[string]string{"float": "f", "double": ""} {
		var source strings.Builder
		for name := range functions {
			args := "x[i]"
			switch name {
			case "pow", "fmod", "remainder", "atan2", "hypot", "copysign":
				args += ", y[i]"
			}
			fmt.Fprintf(&source, "extern \"C\" __global__ void k_%s(%s* d, const %s* x, const %s* y) { "+
				"int i = threadIdx.x; d[i] = %s%s(%s); }\n", name, typ, typ, typ, name, suffix, args)
		}
		result, err := nvrtc.Compile(context.Background(), cuda.Request{
			Source: source.String(), Options: []string{"--gpu-architecture=compute_80"}})
		require.NoError(t, err)
		module, err := ptxsim.Parse(string(result.PTX))
		require.NoError(t, err)
		for name, f := range functions {
			entry, err := module.Lookup("k_" + name)
			require.NoError(t, err)
			compareMath(t, name+suffix, entry, f, typ == "float")
		}
	}
}

// window is one piece of memory at an address.
type window []byte

const windowAt = 0x10000

func (m window) Bytes(addr uint64, n int) []byte {
	if addr < windowAt || addr-windowAt+uint64(n) > uint64(len(m)) {
		return nil
	}
	return m[addr-windowAt:][:n]
}

// compareMath runs a function on a warp. CUDA's are within a few units of the last place.
func compareMath(t *testing.T, name string, entry *ptxsim.Entry, f func(x, y float64) float64, single bool) {
	memory := make(window, 3*256)
	xs, ys := cudaSources()
	size, close := 8, 1e-14
	if single {
		size, close = 4, 6e-7
	}
	put := func(at int, v float64) {
		if single {
			binary.LittleEndian.PutUint32(memory[at:], math.Float32bits(float32(v)))
			return
		}
		binary.LittleEndian.PutUint64(memory[at:], math.Float64bits(v))
	}
	get := func(at int) float64 {
		if single {
			return float64(math.Float32frombits(binary.LittleEndian.Uint32(memory[at:])))
		}
		return math.Float64frombits(binary.LittleEndian.Uint64(memory[at:]))
	}
	for i := range xs {
		put(256+i*size, xs[i])
		put(512+i*size, ys[i])
	}
	var params []byte
	for i := range uint64(3) {
		params = binary.LittleEndian.AppendUint64(params, windowAt+256*i)
	}
	l := ptxsim.Launch{Entry: entry, Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{32, 1, 1}, Params: params,
		Memory: memory}
	require.NoError(t, l.Run(), name)
	for i := range xs {
		x, y, got := get(256+i*size), get(512+i*size), get(i*size)
		want := f(x, y)
		if single {
			want = float64(float32(want))
		}
		if want != want {
			require.True(t, got != got, "%s(%v, %v) = %v, not NaN", name, x, y, got)
			continue
		}
		near := got == want || math.Abs(got-want) <= close*math.Abs(want)
		require.True(t, near, "%s(%v, %v) = %v, not %v", name, x, y, got, want)
	}
}
