package fusec

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
)

// TestGradientsPlanLikeByHand: what is derived is as few kernels as the gradients that are
// written by hand in bench/suite/backward.fuse, or as the formulae of the literature need.
func TestGradientsPlanLikeByHand(t *testing.T) {
	src, err := ReadSource("testdata/gradients.fuse")
	require.NoError(t, err)
	hand, err := ReadSource("bench/suite/backward.fuse")
	require.NoError(t, err)
	kernels := func(src Source, graph string) int {
		p, err := CompileSource(src, Options{Graph: graph})
		require.NoError(t, err, graph)
		return len(p.Plan().At(nil).Kernels)
	}
	for derived, written := range map[string]string{"layer_grad": "layer_norm_backward", "rms_grad": "rms_norm_backward",
		"weighted_grad": "weighted_sum_backward"} {
		assert.LessOrEqual(t, kernels(src, derived), kernels(hand, written), derived)
	}
	for derived, most := range map[string]int{"softmax_rows_grad": 1, "loss_grad": 2, "linear_relu_grad": 5,
		"convolution_grad": 7, "look_up_grad": 1, "gated_grad": 6} {
		assert.LessOrEqual(t, kernels(src, derived), most, derived)
	}
}

// TestGradientsOfStridedConvolutions: the gradient by the input sums over the taps that meet it, by warpgroups, whatever the
// stride and the window.
func TestGradientsOfStridedConvolutions(t *testing.T) {
	for _, of := range []struct{ window, stride, padding int }{{3, 2, 1}, {5, 2, 2}, {4, 3, 0}, {5, 3, 1}, {3, 3, 0}, {2, 2, 0}} {
		out := (56+2*of.padding-of.window)/of.stride + 1
		p, err := Compile("c.fuse", fmt.Appendf(nil, `@bench(N=32)
graph c(x: bf16[N, 128, 56, 56], w: bf16[128, 128, %[1]d, %[1]d]) -> (y: bf16[N, 128, %[4]d, %[4]d]) {
	y = conv2d(x, w, stride=%[2]d, padding=%[3]d)
}`, of.window, of.stride, of.padding, out), Options{Arch: "H100"})
		require.NoError(t, err)
		d, err := p.Grad("c", Wrt("x"))
		require.NoError(t, err)
		products, sizes := 0, map[string]int64{"N": 32}
		for _, k := range d.Plan().At(sizes).Kernels {
			if k.Template != ir.ContractTemplate {
				continue
			}
			products++
			at := slices.IndexFunc(k.Variants, func(v *ir.Variant) bool {
				holds, ok := ir.EvalSize(v.When, sizes)
				return v.When == nil || ok && holds != 0
			})
			require.GreaterOrEqual(t, at, 0, "%+v", of)
			assert.Equal(t, ir.WarpgroupMapping, k.Variants[at].Schedule.Mapping, "%+v", of)
		}
		assert.Positive(t, products, "%+v", of)
	}
}

func TestGradOfProgram(t *testing.T) {
	p, err := Compile("f.fuse", "graph f(x: f32[N], n: i32[N]) -> (y: f32[N]) {\n    y = x * x * x + n\n}\n", Options{})
	require.NoError(t, err)
	d, err := p.Grad("")
	require.NoError(t, err)
	assert.Equal(t, "f_grad", d.Name())
	second, err := d.Grad("", Wrt("x"))
	require.NoError(t, err)
	assert.Equal(t, "f_grad_grad", second.Name())
	_, err = p.Grad("f", Wrt("n"))
	require.ErrorContains(t, err, "only floats")
	_, err = p.Grad("g")
	require.ErrorContains(t, err, "no graph g")
}

func TestJVPOfProgram(t *testing.T) {
	p, err := Compile("f.fuse", "graph f(x: f32[N], w: f32[N]) -> (y: f32[]) {\n    y = sum(x * x * x * w)\n}\n", Options{})
	require.NoError(t, err)
	d, err := p.JVP("", Wrt("x"), WithValues())
	require.NoError(t, err)
	assert.Equal(t, "f_jvp", d.Name())
	var names []string
	for _, in := range d.Graph().Inputs {
		names = append(names, in.Name)
	}
	assert.Equal(t, []string{"x", "w", "t_x"}, names)
	_, err = p.JVP("f", Wrt("y"))
	require.ErrorContains(t, err, "f has no input y")
	_, err = p.JVP("g")
	require.ErrorContains(t, err, "no graph g")
}
