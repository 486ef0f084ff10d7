package conformance

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/interp"
	"github.com/fusec/fusec/runtime"
	"github.com/fusec/fusec/runtime/simtest"
	"github.com/fusec/fusec/runtime/tensor"
)

// castNumbers lie at the ends of the types, between their numbers, and half way between those,
// where a rounding by way of another type would show.
var castNumbers = []float64{0, math.Copysign(0, -1), 1, -1, 0.5, 1.5, 2.5, -2.5, 127.5, 128, -128.9, 255, 256, 448, 464, 500, 57344, 65504, 65520,
	1e10, -1e10, 3e9, 1 << 32, 1e19, -1e19, 9.3e18, math.Inf(1), math.Inf(-1), math.NaN(), 1e-7, 3e-8, 6e-5, 1.0078125, 1.00390625, 1.01171875,
	1e-40, 33554433, 33685505, 1 << 31, -1<<31 - 1}

var castIntegers = []int64{0, 1, 2, -1, 17, 33, 100, 127, 128, 255, 256, -128, -129, 448, 464, 465, 2064, 2065, 32767, 32768, -32769, 65535, 65536,
	1<<24 + 1, 1<<25 + 1<<17, 1<<25 + 1<<17 + 1, 1<<25 + 3<<17 - 1, math.MaxInt32, math.MinInt32, 1 << 31, math.MaxUint32, 1<<40 + 1<<32 + 1,
	1<<53 + 1, 1<<55 + 1<<47 + 1, math.MaxInt64, math.MinInt64}

// castInput is what a type holds of the numbers.
func castInput(t *testing.T, from ir.DType) *tensor.Tensor {
	numbers := interp.New(from, len(castNumbers))
	copy(numbers.F, castNumbers)
	if !from.IsFloat() {
		numbers = interp.New(from, len(castIntegers))
		copy(numbers.I, castIntegers)
	}
	x, err := tensor.FromBytes(from, numbers.Bytes(), numbers.Shape...)
	require.NoError(t, err)
	return x
}

// castProgram casts to every type: what is read, and what is computed.
func castProgram(from ir.DType, numerics ir.Numerics) string {
	var outputs, body strings.Builder
	same := map[bool]string{true: "x * 1", false: "x + 0"}[from.IsFloat()]
	if from == ir.Bool {
		same = "!!x"
	}
	for i, to := range ir.DTypes() {
		fmt.Fprintf(&outputs, "a%[1]d: %[2]s[N], b%[1]d: %[2]s[N], ", i, to)
		fmt.Fprintf(&body, "    a%[1]d = %[2]s(x)\n    b%[1]d = %[2]s(%[3]s)\n", i, to, same)
	}
	return fmt.Sprintf("@%s\ngraph g(x: %s[N]) -> (%s) {\n%s}\n", numerics, from, strings.TrimSuffix(outputs.String(), ", "), body.String())
}

// TestCasts compares every cast, from every type to every type, with the interpreter: bit by bit
// in strict graphs. Unless FUSEC_TEST_FULL is set, each type is cast on one of the simulated devices.
func TestCasts(t *testing.T) {
	t.Parallel()
	ampere := openSimulated(t, simtest.Config{Arch: "sm_80"})
	hopper := openSimulated(t, simtest.Config{Arch: "sm_90a"})
	for _, dev := range []*Engine{openCPU(t), ampere, hopper} {
		for i, from := range ir.DTypes() {
			if dev.Sim != nil && (dev == ampere) != (i%3 == 0) && !inFull() {
				continue
			}
			for _, numerics := range []ir.Numerics{ir.Fast, ir.Strict} {
				t.Run(fmt.Sprint(dev.Arch(), " ", from, " ", numerics), func(t *testing.T) {
					compareCasts(t, dev, castProgram(from, numerics), castInput(t, from))
				})
			}
		}
	}
}

func compareCasts(t *testing.T, dev *Engine, src string, x *tensor.Tensor) {
	p, f := loaded(t, dev, src)
	got, err := f.Call(t.Context(), runtime.Args{"x": x})
	require.NoError(t, err)
	mode := interp.Exact
	if p.Graph().Numerics == ir.Strict {
		mode = interp.Strict
	}
	want, err := interp.Run(p.Graph(), []*interp.Tensor{interp.FromBytes(x.DType, x.Shape, x.Data)}, interp.Options{Mode: mode})
	require.NoError(t, err)
	for i, o := range p.Graph().Outputs {
		expected, err := tensor.FromBytes(want[i].Type, want[i].Bytes(), want[i].Shape...)
		require.NoError(t, err)
		within := tensor.Tolerance{}
		if mode == interp.Exact {
			within.Rel = 2 * expected.DType.Info().Epsilon
		}
		diff, err := tensor.Compare(got[o.Name], expected, within)
		require.NoError(t, err)
		require.True(t, diff.OK(), "%s: %v", o.Name, diff)
	}
}
