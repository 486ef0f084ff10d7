package conformance

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime"
	"github.com/fusec/fusec/runtime/simtest"
	"github.com/fusec/fusec/runtime/tensor"
)

// longScans are scans of rows that the interpreter has no time for.
const longScans = `graph g(x: f32[N, M]) -> (total: f32[N, M], back: f32[N, M], top: f32[N, M]) {
    total = cumsum(x)
    back = cumsum(x, reverse=true, exclusive=true)
    top = cummax(x)
}`

// TestLongScansOnGPU compares rows of many pieces with loops over them, and two
// runs with each other, bit by bit.
func TestLongScansOnGPU(t *testing.T) {
	dev := openGPU(t, runtime.Options{})
	f, err := fusec.Load(context.Background(), dev.Device, fusec.Source{Name: "long.fuse", Text: []byte(longScans)}, fusec.Options{})
	require.NoError(t, err)
	for _, shape := range [][2]int{{3, 16384}, {2, 70001}, {1, 1 << 20}, {300, 5000}} {
		t.Run(fmt.Sprint(shape), func(t *testing.T) {
			x, err := tensor.Random(ir.F32, 1, shape[0], shape[1])
			require.NoError(t, err)
			got, err := f.Call(context.Background(), runtime.Args{"x": x})
			require.NoError(t, err)
			again, err := f.Call(context.Background(), runtime.Args{"x": x})
			require.NoError(t, err)
			for name, y := range got {
				assert.Equal(t, y.Data, again[name].Data, name)
			}
			of := func(y *tensor.Tensor, row int) []float32 { return y.Float32s()[row*shape[1]:][:shape[1]] }
			for row := range shape[0] {
				checkScans(t, of(x, row), of(got["total"], row), of(got["back"], row), of(got["top"], row))
			}
		})
	}
}

// TestLongColumnScansOnGPU does so for scans along an axis that memory does not run along.
func TestLongColumnScansOnGPU(t *testing.T) {
	dev := openGPU(t, runtime.Options{})
	src := strings.NewReplacer("(x)", "(x, axis=0)", "(x, ", "(x, axis=0, ").Replace(longScans)
	f, err := fusec.Load(context.Background(), dev.Device, fusec.Source{Name: "columns.fuse", Text: []byte(src)}, fusec.Options{})
	require.NoError(t, err)
	for _, shape := range [][2]int{{16384, 3}, {512, 64}, {513, 72}, {20000, 40}, {1000, 1001}} {
		t.Run(fmt.Sprint(shape), func(t *testing.T) {
			x, err := tensor.Random(ir.F32, 1, shape[0], shape[1])
			require.NoError(t, err)
			got, err := f.Call(context.Background(), runtime.Args{"x": x})
			require.NoError(t, err)
			of := func(y *tensor.Tensor, column int) []float32 {
				out := make([]float32, shape[0])
				for i := range out {
					out[i] = y.Float32s()[i*shape[1]+column]
				}
				return out
			}
			for column := range shape[1] {
				checkScans(t, of(x, column), of(got["total"], column), of(got["back"], column), of(got["top"], column))
			}
		})
	}
}

// scansAtOnce are scans of much work, whose rows threads have at once, and what they are of a prefix
// sum of terms.
var scansAtOnce = []struct {
	program string
	term    func(x float64) float64
	back    bool
	of      func(sum float64) float64
}{
	{"exp(-cumsum(softplus(x)) / 2048)", func(x float64) float64 { return math.Log1p(math.Exp(x)) }, false, func(s float64) float64 { return math.Exp(-s / 2048) }},
	{"sqrt(cumsum(exp(log1p(exp(x)) / 2), reverse=true, exclusive=true))", func(x float64) float64 { return math.Exp(math.Log1p(math.Exp(x)) / 2) }, true, math.Sqrt},
}

// TestScansAtOnceOnGPU compares rows that are whole for their blocks, and others, with loops.
func TestScansAtOnceOnGPU(t *testing.T) {
	shapes := [][2]int{{3, 1024}, {3, 2048}, {2, 2044}, {300, 4096}, {2, 4088}, {2, 3000}, {2, 3001}, {2, 8192}, {2, 8184}, {1, 12000}}
	compareScansAtOnce(t, openGPU(t, runtime.Options{}), shapes)
}

// TestScansAtOnceSimulated does so for few rows, with the races of a device.
func TestScansAtOnceSimulated(t *testing.T) {
	t.Parallel()
	dev := openSimulated(t, simtest.Config{Arch: "sm_80", Order: simtest.Order{Races: true}})
	compareScansAtOnce(t, dev, [][2]int{{2, 2048}, {1, 4096}, {2, 1800}})
}

func compareScansAtOnce(t *testing.T, dev *Engine, shapes [][2]int) {
	for _, c := range scansAtOnce {
		for typ, within := range map[ir.DType]float64{ir.F32: 2e-5, ir.BF16: 0x1p-8} {
			src := fmt.Sprintf("graph g(x: %[1]v[N, M]) -> (y: %[1]v[N, M]) { y = %[2]s }", typ, c.program)
			_, f := loaded(t, dev, src)
			for _, shape := range shapes {
				x, err := tensor.Random(typ, 1, shape[0], shape[1])
				require.NoError(t, err)
				got, err := f.Call(t.Context(), runtime.Args{"x": x})
				require.NoError(t, err)
				in, out := x.Floats(), got["y"].Floats()
				for row := range shape[0] {
					sum := 0.0
					for i := range shape[1] {
						at := row*shape[1] + i
						if c.back {
							at = row*shape[1] + shape[1] - 1 - i
						}
						want := c.of(sum + c.term(in[at]))
						if c.back { // which is without its own element
							want = c.of(sum)
						}
						sum += c.term(in[at])
						require.InDelta(t, want, out[at], within*math.Abs(want), "%s, %v, row %d, element %d", src, shape, row, at)
					}
				}
			}
		}
	}
}

func checkScans(t *testing.T, x, sums, backs, tops []float32) {
	sum, back, top := 0.0, 0.0, math.Inf(-1)
	limit := 1e-5 * math.Sqrt(float64(len(x)))
	for i := range x {
		sum, top = sum+float64(x[i]), max(top, float64(x[i]))
		j := len(x) - 1 - i
		if math.Abs(sum-float64(sums[i])) > limit || math.Abs(back-float64(backs[j])) > limit || float32(top) != tops[i] {
			t.Fatalf("element %d: want %v, %v, found %v, %v; element %d: want %v, found %v", i, sum, top, sums[i], tops[i], j, back, backs[j])
		}
		back += float64(x[j])
	}
}

// TestScanOfSpecialValues: from a NaN on everything is NaN, infinities stay until
// the other one comes.
func TestScanOfSpecialValues(t *testing.T) {
	dev := openGPU(t, runtime.Options{})
	f, err := fusec.Load(context.Background(), dev.Device, fusec.Source{Name: "long.fuse", Text: []byte(longScans)}, fusec.Options{})
	require.NoError(t, err)
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for at, want := range map[float32][2]string{nan: {"NaN", "NaN"}, inf: {"+Inf", "+Inf"}} {
		x := make([]float32, 5000)
		x[3000] = at
		in, err := tensor.FromSlice(x, 1, 5000)
		require.NoError(t, err)
		got, err := f.Call(context.Background(), runtime.Args{"x": in})
		require.NoError(t, err)
		assert.Equal(t, float32(0), got["total"].Float32s()[2999])
		assert.Equal(t, float32(0), got["back"].Float32s()[3000])
		for _, i := range []int{3000, 3001, 4999} {
			assert.Equal(t, want[0], fmt.Sprint(got["total"].Float32s()[i]))
			assert.Equal(t, want[1], fmt.Sprint(got["top"].Float32s()[i]))
		}
	}
}
