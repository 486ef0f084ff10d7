package std

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/interp"
	"github.com/fusec/fusec/parser"
)

// TestNormsOverAxes: a norm over any axes is the norm over the last one of the tensor in which they have come together there.
func TestNormsOverAxes(t *testing.T) {
	for _, c := range []struct{ over, last string }{
		{"layer_norm(x, axis=1)", "transpose(layer_norm(transpose(x, 1, 3)), 1, 3)"},
		{"layer_norm(x, axis=-1)", "layer_norm(x)"},
		{"layer_norm(x, v, axis=-1)", "layer_norm(x, v)"},
		{"layer_norm(x, w, b, axis=(1, 2, 3))", "reshape(layer_norm(reshape(x, 2, 60), reshape(w, 60), reshape(b, 60)), 2, 3, 4, 5)"},
		{"layer_norm(x, w, bias=b, axis=(3, -2, 1), eps=0.1)", "reshape(layer_norm(reshape(x, 2, 60), reshape(w, 60), reshape(b, 60), 0.1), 2, 3, 4, 5)"},
		{"layer_norm(x, c, c, axis=1)", "transpose(layer_norm(transpose(x, 1, 3), c, c), 1, 3)"},
		{"layer_norm(x, e, axis=(3, 1))", "transpose(reshape(layer_norm(reshape(transpose(x, 1, 2), 2, 4, 15), reshape(e, 15)), 2, 4, 3, 5), 1, 2)"},
		{"layer_norm(x, axis=none)", "reshape(layer_norm(reshape(x, 120)), 2, 3, 4, 5)"},
		{"layer_norm(x, axis=(0, 2))", "permute(reshape(layer_norm(reshape(permute(x, (1, 3, 0, 2)), 3, 5, 8)), 3, 5, 2, 4), (2, 0, 3, 1))"},
		{"rms_norm(x, axis=1)", "transpose(rms_norm(transpose(x, 1, 3)), 1, 3)"},
		{"rms_norm(x, w, axis=(1, 2, 3))", "reshape(rms_norm(reshape(x, 2, 60), reshape(w, 60)), 2, 3, 4, 5)"},
	} {
		src := fmt.Sprintf("graph g(x: f64[2, 3, 4, 5], w: f64[3, 4, 5], b: f64[3, 4, 5], v: f64[5], c: f64[3], e: f64[3, 5]) -> (y: f64[2, 3, 4, 5], z: f64[2, 3, 4, 5]) {\n y = %s\n z = %s\n}", c.over, c.last)
		file, err := parser.Parse("axes.fuse", []byte(src), parser.Options{})
		require.NoError(t, err, c.over)
		r, inputs := rand.New(rand.NewPCG(3, 4)), []*interp.Tensor{}
		for _, shape := range [][]int{{2, 3, 4, 5}, {3, 4, 5}, {3, 4, 5}, {5}, {3}, {3, 5}} {
			x := interp.New(ir.F64, shape...)
			for i := range x.F {
				x.F[i] = r.NormFloat64()
			}
			inputs = append(inputs, x)
		}
		outputs, err := interp.Run(file.Graphs[0], inputs, interp.Options{})
		require.NoError(t, err, c.over)
		for i, y := range outputs[0].F {
			require.LessOrEqual(t, math.Abs(y-outputs[1].F[i]), 1e-12, "%s at %d", c.over, i)
		}
	}
}

// TestNormsOfOtherOrders: what other libraries write behind the tensor says how it is said here.
func TestNormsOfOtherOrders(t *testing.T) {
	for _, c := range []struct{ call, want string }{
		{"layer_norm(x, (3, 4, 5), w, w)", "must be a tensor, not a list: the parameters are (x, weight, bias, eps, axis); axes are named, and not their sizes, as in axis=(-3, -2, -1)"},
		{"layer_norm(x, 5, v, v)", "must be a tensor, not the integer 5: the parameters are (x, weight, bias, eps, axis); axes are named, and not their sizes, as in axis=-1"},
		{"layer_norm(x, 5)", "as in axis=-1"},
		{"rms_norm(x, (5), v)", "as in axis=-1"},
		{"rms_norm(x, (4, 5), v)", "as in axis=(-2, -1)"},
		{"layer_norm(x, w, w)", "weight and bias need an axis for each that axis=... normalises: found named = 1"},
		{"layer_norm(x, v, axis=1)", "3 and 5 differ"},
		{"layer_norm(x, c)", "5 and 3 differ"},
		{"attention(x, x, x, (1, 2))", "argument mask of attention must be a tensor, not a list: the parameters are (q, k, v, mask, bias, scale, causal)"},
	} {
		src := fmt.Sprintf("graph g(x: f32[2, 3, 4, 5], w: f32[3, 4, 5], v: f32[5], c: f32[3]) -> (y: f32[2, 3, 4, 5]) { y = %s }", c.call)
		_, err := parser.Parse("axes.fuse", []byte(src), parser.Options{})
		assert.ErrorContains(t, err, c.want, c.call)
	}
}
