package grad_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/interp"
)

// A torchCase is a graph g with what PyTorch computes for it, as testdata/reference/torch_grads.py
// writes it. Gradients and products of the Hessian are by float inputs that are not constant.
type torchCase struct {
	Number             int
	Name, Program      string
	Single             bool // PyTorch computes the derivatives with constants in f32
	Inputs             []torchInput
	Value              []float64
	Gradients, Hessian [][]float64
}

// A torchInput has floats between Lo and Hi, or integers from 0 to Below - 1.
type torchInput struct {
	Name     string
	Shape    []int
	Lo, Hi   float64
	Below    int
	Constant bool
}

// Numbers of the tensors of a case behind its inputs: the adjoint of its result, and from
// torchDirection on the vector that the Hessian is multiplied with, by inputs.
const torchWeights, torchDirection = 100, 200

// unit is the script's number in [0, 1) for an element of a tensor of a case.
func unit(of, number, element int) float64 {
	h := uint32(of)*0x9E3779B1 + uint32(number)*0x85EBCA77 + uint32(element)*0xC2B2AE3D + 1
	h = (h ^ h>>16) * 0x7FEB352D
	h = (h ^ h>>15) * 0x846CA68B
	return float64(h^h>>16) / (1 << 32)
}

// between is a tensor of the script with floats from lo to hi.
func (c torchCase) between(number int, lo, hi float64, shape ...int) *interp.Tensor {
	x := interp.New(ir.F64, shape...)
	for i := range x.F {
		x.F[i] = lo + (hi-lo)*unit(c.Number, number, i)
	}
	return x
}

func (c torchCase) input(number int) *interp.Tensor {
	in := c.Inputs[number]
	if in.Below == 0 {
		return c.between(number, in.Lo, in.Hi, in.Shape...)
	}
	x := interp.New(ir.I64, in.Shape...)
	for i := range x.I {
		x.I[i] = int64(unit(c.Number, number, i) * float64(in.Below))
	}
	return x
}

// differentiable are the numbers of the inputs that gradients are by.
func (c torchCase) differentiable() []int {
	var out []int
	for i, in := range c.Inputs {
		if in.Below == 0 && !in.Constant {
			out = append(out, i)
		}
	}
	return out
}

// arguments are a graph's inputs: those of g, the adjoint d_y of its result, and for an input x of g
// the vector, whose names are prefix and x. By all else the vector is 0.
func (c torchCase) arguments(t *testing.T, g *ir.Graph, prefix string) []*interp.Tensor {
	known := map[string]*interp.Tensor{}
	for _, i := range c.differentiable() {
		known[prefix+c.Inputs[i].Name] = c.between(torchDirection+i, -1, 1, c.Inputs[i].Shape...)
	}
	for i, in := range c.Inputs {
		known[in.Name] = c.input(i)
	}
	var out []*interp.Tensor
	for _, v := range g.Inputs {
		x := known[v.Name]
		if x == nil {
			var shape []int
			for _, e := range v.Shape() {
				n, ok := ir.EvalSize(e, nil)
				require.True(t, ok)
				shape = append(shape, int(n))
			}
			x = interp.New(v.Type, shape...)
			if v.Name == "d_y" {
				x = c.between(torchWeights, -1, 1, shape...)
			}
		}
		out = append(out, x)
	}
	return out
}

// compare compares the results of a graph, whose names are prefix and the input they are by, with
// stored ones. What does not depend on an input has no result for it.
func (c torchCase) compare(t *testing.T, what string, g *ir.Graph, in []*interp.Tensor, prefix string, stored [][]float64) {
	got := map[string]*interp.Tensor{}
	for i, x := range run(t, g, in) {
		got[g.Outputs[i].Name] = x
	}
	wanted := c.differentiable()
	require.Len(t, stored, len(wanted))
	for k, i := range wanted {
		x := got[prefix+c.Inputs[i].Name]
		if x == nil {
			x = interp.New(ir.F64, c.Inputs[i].Shape...)
		}
		if !c.near(t, stored[k], x.F, fmt.Sprintf("%s by %s", what, c.Inputs[i].Name)) {
			t.Log(ir.Print(g))
			return
		}
	}
}

func (c torchCase) near(t *testing.T, want, got []float64, what string) bool {
	require.Len(t, got, len(want), what)
	allowed := 1e-12
	if c.Single {
		allowed = 0x1p-23
	}
	for k, w := range want {
		if !assert.InDelta(t, w, got[k], allowed*max(1, math.Abs(w)), "%s [%d]", what, k) {
			return false
		}
	}
	return true
}

// TestGradientsOfTorch compares gradients and products of Hessians, in both ways of computing
// them, with those that PyTorch computed.
func TestGradientsOfTorch(t *testing.T) {
	data, err := os.ReadFile("../../testdata/torch_grads.json")
	require.NoError(t, err)
	var cases []torchCase
	require.NoError(t, json.Unmarshal(data, &cases))
	require.NotEmpty(t, cases)
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			text := c.Program + "\ngraph gradient = grad(g)\n"
			if c.Hessian != nil {
				text += "graph second = grad(gradient)\ngraph along = jvp(gradient)\n"
			}
			all := graphs(t, text)
			require.True(t, c.near(t, c.Value, run(t, all["g"], c.arguments(t, all["g"], ""))[0].F, "value"), strings.TrimSpace(c.Program))
			c.compare(t, "gradient", all["gradient"], c.arguments(t, all["gradient"], ""), "d_", c.Gradients)
			if c.Hessian != nil {
				c.compare(t, "gradient of the gradient", all["second"], c.arguments(t, all["second"], "d_d_"), "d_", c.Hessian)
				c.compare(t, "gradient along the vector", all["along"], c.arguments(t, all["along"], "t_"), "t_d_", c.Hessian)
			}
		})
	}
}
