package conformance

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime"
	"github.com/fusec/fusec/runtime/simtest"
	"github.com/fusec/fusec/runtime/tensor"
)

// TestManyPersistentRowsOnGPU runs so many rows that every block has several and its shared memory
// goes round, by blocks and by clusters, and compares them with sums in f64: of values
// about 0, and of values far from it, whose squares cancel.
func TestManyPersistentRowsOnGPU(t *testing.T) {
	dev := openGPU(t, runtime.Options{})
	for _, dtype := range []string{"f32", "bf16"} {
		src := fmt.Sprintf(`@bench(N=64, C=256, L=3136) graph g(x: %[1]s[N, C, L]) -> (y: %[1]s[N, C, L], m: f32[C], v: f32[C]) {
			y, m, v = batch_norm_train(x) }`, dtype)
		f, err := fusec.Load(context.Background(), dev.Device, fusec.Source{Name: "persistent.fuse", Text: []byte(src)}, fusec.Options{})
		require.NoError(t, err)
		for i, shape := range [][]int{{20, 1400, 1000}, {45, 300, 1536}, {100, 110, 1000}, {50, 70, 4000}} {
			t.Run(fmt.Sprint(dtype, shape), func(t *testing.T) {
				x, err := tensor.Random(map[string]ir.DType{"f32": ir.F32, "bf16": ir.BF16}[dtype], 1, shape...)
				require.NoError(t, err)
				if data, ok := tensor.View[float32](x); ok && i%2 == 1 {
					for k := range data {
						data[k] += 100
					}
				}
				got, err := f.Call(context.Background(), runtime.Args{"x": x})
				require.NoError(t, err)
				checkBatchNorm(t, x, got, shape)
			})
		}
	}
}

func checkBatchNorm(t *testing.T, x *tensor.Tensor, got map[string]*tensor.Tensor, shape []int) {
	data, y, m, v := x.Float32s(), got["y"].Float32s(), got["m"].Float32s(), got["v"].Float32s()
	n, channels, run := shape[0], shape[1], shape[2]
	within := 3e-4
	if x.DType == ir.BF16 {
		within = 1.0 / 64 // half a unit in the last place of what is below 8
	}
	for c := range channels {
		each := func(do func(at int)) {
			for i := range n {
				for k := range run {
					do((i*channels+c)*run + k)
				}
			}
		}
		count, mean, squares := float64(n*run), 0.0, 0.0
		each(func(at int) { mean += float64(data[at]) / count })
		each(func(at int) { squares += (float64(data[at]) - mean) * (float64(data[at]) - mean) })
		require.InDelta(t, mean, m[c], 1e-4, "mean of channel %d", c)
		require.InDelta(t, squares/(count-1), v[c], 1e-4, "variance of channel %d", c)
		factor, worst := 1/math.Sqrt(squares/count+1e-5), 0.0
		each(func(at int) { worst = max(worst, math.Abs((float64(data[at])-mean)*factor-float64(y[at]))) })
		require.LessOrEqual(t, worst, within, "channel %d", c)
	}
}

// TestSpecialValuesInChunksOnGPU: rows in chunks, whose maxima are folded two at a time, where
// a NaN, infinities or nothing but the least value are in one of them. The last warps have no
// last chunk, and blocks have several rows.
func TestSpecialValuesInChunksOnGPU(t *testing.T) {
	dev := openGPU(t, runtime.Options{})
	const rows, columns = 6, 66320
	for dtype, bits := range map[ir.DType]struct{ nan, inf, least uint16 }{
		ir.BF16: {0x7fc0, 0x7f80, 0xff80}, ir.F16: {0x7e00, 0x7c00, 0xfc00},
	} {
		t.Run(dtype.String(), func(t *testing.T) {
			p, f := loaded(t, dev, fmt.Sprintf(`graph g(x: %[1]s[N, M]) -> (y: %[1]s[N, M]) { y = softmax(x) }`, dtype))
			variants := p.Plan().Kernels[0].Variants
			at := slices.IndexFunc(variants, func(v *ir.Variant) bool { return v.Schedule.RegisterChunks > 0 })
			require.Positive(t, at, "no rows in chunks")
			x, err := tensor.Random(dtype, 1, rows, columns)
			require.NoError(t, err)
			set := func(row, column int, to uint16) { binary.LittleEndian.PutUint16(x.Data[2*(row*columns+column):], to) }
			set(0, columns-1, bits.nan)
			set(1, 33001, bits.inf)
			for c := range columns {
				set(2, c, bits.least)
				if c%3 > 0 {
					set(3, c, bits.least)
				}
				set(4, c, uint16(c%2)<<15) // zeros of both signs
			}
			r := interpreted(t, p.Graph(), runtime.Args{"x": x})
			got, err := f.Call(context.Background(), r.Args)
			require.NoError(t, err)
			require.NoError(t, r.Compare(got))
		})
	}
}

// TestClustersOfRowsSimulated: clusters of four and of eight that go from row to row, those that
// have a dynamic scheduler, of which a block has fewer warps than a power of two, and those that do not: one
// and two clusters, several rows for each, of which blocks have their share in full, in part and
// none. Unless FUSEC_TEST_FULL is set, the first variant of each kind is run, in every other way of running it.
func TestClustersOfRowsSimulated(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, src string
		sizes     []map[string]int64
	}{
		{"moments", "graph g(x: bf16[N, C, L], w: bf16[C], b: bf16[C]) -> (y: bf16[N, C, L]) { y, m, v = batch_norm_train(x, w, b) }",
			[]map[string]int64{{"N": 3, "C": 7, "L": 1272}, {"N": 3, "C": 5, "L": 36864}, {"N": 1, "C": 6, "L": 8}}},
		{"a sum behind a maximum", "graph g(x: bf16[N, M]) -> (y: bf16[N, M]) { p = softmax(f32(x))\n y = bf16(tanh(p * x) + p) }",
			[]map[string]int64{{"N": 7, "M": 3816}, {"N": 5, "M": 20008}}},
	} {
		f := newForcing(t, force{}, nil, planned(t, row{name: "g", src: c.src}, "sm_90a"))
		found := map[bool]int{} // by whether rows are scheduled dynamically
		kinds, ways := map[string]bool{}, 0
		for j, v := range f.plan.Kernels[0].Variants {
			s, orders := v.Schedule, []simtest.Order{{Races: true}}
			if s.Stages == 0 || s.Cluster < 2 || s.Unroll > 0 || s.Index64 {
				continue
			}
			kind := fmt.Sprint(s.Dynamic, s.Cluster)
			if kinds[kind] && !inFull() {
				continue
			}
			kinds[kind] = true
			if s.Dynamic {
				orders = append(orders, simtest.Order{Early: true, Backwards: true})
			}
			for _, order := range orders {
				dev := openSimulated(t, simtest.Config{Arch: "sm_90a", Multiprocessors: 8, BlocksPerMultiprocessor: 1, Order: order})
				for i, sizes := range c.sizes {
					if i == 1 && (!order.Races || found[s.Dynamic] > 0) && !inFull() {
						continue // these are the longest: the first of either kind has them
					}
					if ways++; i != 1 && ways%2 == 0 && !inFull() {
						continue
					}
					values := make([]int64, len(f.program.Symbols))
					for i, name := range f.program.Symbols {
						values[i] = sizes[name]
					}
					t.Run(fmt.Sprint(c.name, s.Dynamic, s.Cluster, order, sizes), func(t *testing.T) {
						assert.NoError(t, f.compare(t, dev, 0, j, values))
					})
				}
			}
			found[s.Dynamic]++
		}
		assert.Positive(t, found[true], "%s: no rows by the dynamic scheduler", c.name)
		assert.Positive(t, found[false], "%s: no rows in turns", c.name)
	}
}
