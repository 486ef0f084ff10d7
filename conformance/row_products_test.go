package conformance

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/interp"
	"github.com/fusec/fusec/runtime"
	"github.com/fusec/fusec/runtime/tensor"
)

// TestRowProductsOfSpecialValuesOnGPU puts infinities and NaN into rows: alone, among
// other values, and as whole rows. What they give is as in the interpreter, and no other
// row knows of them.
func TestRowProductsOfSpecialValuesOnGPU(t *testing.T) {
	dev := openGPU(t, runtime.Options{})
	const m, n, k = 37, 35, 67
	for _, name := range []string{"softmax", "layer_norm", "masked", "place of the largest"} {
		p, f := loaded(t, dev, rowProduct(name, k))
		for _, rare := range []float64{math.Inf(-1), math.Inf(1), math.NaN()} {
			t.Run(fmt.Sprint(name, rare), func(t *testing.T) {
				g, args, inputs := p.Graph(), runtime.Args{}, []*interp.Tensor(nil)
				shapes, err := f.Shapes(map[string]int64{"M": m, "N": n})
				require.NoError(t, err)
				for i, v := range g.Inputs {
					x, err := tensor.Random(v.Type, uint64(i+1), shapes[v.Name]...)
					require.NoError(t, err)
					if v.Name == "h" {
						x, err = tensor.FromSlice(withRare(x.Floats(), k, float32(rare)), x.Shape...)
						require.NoError(t, err)
					}
					args[v.Name] = x
					inputs = append(inputs, interp.FromBytes(v.Type, x.Shape, slices.Clone(x.Data)))
				}
				want, err := interp.Run(g, inputs, interp.Options{})
				require.NoError(t, err)
				got, err := f.Call(context.Background(), args)
				require.NoError(t, err)
				expected, err := tensor.FromBytes(ir.F32, want[0].Bytes(), want[0].Shape...)
				require.NoError(t, err)
				diff, err := tensor.Compare(got["y"], expected, Tolerance(expected, 0))
				require.NoError(t, err)
				assert.True(t, diff.OK(), "%v", diff)
			})
		}
	}
}

// withRare puts a value into some rows: one of it alone, one with it at a place, one with
// a single other value.
func withRare(x []float64, columns int, rare float32) []float32 {
	out := make([]float32, len(x))
	for i, v := range x {
		row, col := i/columns, i%columns
		out[i] = float32(v)
		if row%5 == 0 || row%5 == 1 && col == row || row%5 == 2 && col != 3 {
			out[i] = rare
		}
	}
	return out
}

// TestRowProductsReadFreshWeightsOnGPU runs a chain again and again with other weights in
// the same memory: a kernel that starts its copies early must not see the old ones. The
// bits of a repetition are those of the first run.
func TestRowProductsReadFreshWeightsOnGPU(t *testing.T) {
	dev := openGPU(t, runtime.Options{})
	_, f := loaded(t, dev, rowProduct("layers", 64))
	args := func(seed uint64) runtime.Args {
		out := runtime.Args{}
		for name, shape := range map[string][]int{"h": {100, 64}, "w": {64, 64}, "r": {100, 64}} {
			x, err := tensor.Random(ir.F32, seed+uint64(len(name)+int(name[0])), shape...)
			require.NoError(t, err)
			out[name] = x
		}
		return out
	}
	var first [2]*tensor.Tensor
	for turn := range 40 {
		out, err := f.Call(context.Background(), args(uint64(turn%2)))
		require.NoError(t, err)
		if turn < 2 {
			first[turn] = out["y"]
			continue
		}
		require.Equal(t, first[turn%2].Data, out["y"].Data, "turn %d", turn)
	}
	require.NotEqual(t, first[0].Data, first[1].Data)
}
