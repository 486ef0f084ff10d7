package interp_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/diag"
	"github.com/fusec/fusec/ir/interp"
	"github.com/fusec/fusec/ir/interp/plantest"
)

func matrix(t ir.DType, rows, cols int, f func(i int) float64) *interp.Tensor {
	out := interp.New(t, rows, cols)
	for i := range out.F {
		out.F[i] = f(i)
	}
	return out
}

func softmaxRow(x []float64) []float64 {
	top, sum, out := math.Inf(-1), 0.0, make([]float64, len(x))
	for _, v := range x {
		top = max(top, v)
	}
	for _, v := range x {
		sum += math.Exp(v - top)
	}
	for i, v := range x {
		out[i] = math.Exp(v-top) / sum
	}
	return out
}

// Every variant of the softmax gives the same, the streamed one too.
func TestVariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, m := rapid.IntRange(0, 4).Draw(t, "n"), rapid.IntRange(0, 9).Draw(t, "m")
		value := rapid.OneOf(rapid.Float64Range(-9, 9), rapid.SampledFrom([]float64{math.Inf(-1), 0, 80}))
		x := matrix(ir.F64, n, m, func(int) float64 { return value.Draw(t, "x") })
		for variant := range 3 {
			opts := interp.PlanOptions{Force: map[string]int{"softmax": variant}}
			have, err := interp.RunPlan(plantest.Softmax(ir.F64), []*interp.Tensor{x}, opts)
			require.NoError(t, err)
			for i := range n {
				for j, want := range softmaxRow(x.F[i*m : (i+1)*m]) {
					got := have[0].F[i*m+j]
					ok := math.Abs(want-got) < 1e-14 || want != want && got != got
					assert.True(t, ok, "variant %d: %v, %v", variant, want, got)
				}
			}
		}
	})
}

func TestVariantChoice(t *testing.T) {
	x := []*interp.Tensor{matrix(ir.F32, 1, 3, func(int) float64 { return 1 })}
	opts := interp.PlanOptions{Force: map[string]int{"softmax": 3}}
	_, err := interp.RunPlan(plantest.Softmax(ir.F32), x, opts)
	assert.EqualError(t, err, "kernel softmax: variant 3 forced, there are 3")
	p := plantest.Softmax(ir.F32)
	p.Kernels[0].Variants[0].Facts.Divisible = map[string]int64{"M": 4}
	_, err = interp.RunPlan(p, x, interp.PlanOptions{})
	assert.EqualError(t, err, "kernel softmax: variant needs M divisible by 4, found 3")
	p.Kernels[0].Variants = p.Kernels[0].Variants[:1]
	p.Kernels[0].Variants[0].When = ir.IntNum(ir.Bool, 0)
	_, err = interp.RunPlan(p, x, interp.PlanOptions{})
	assert.EqualError(t, err, "kernel softmax: no variant takes the sizes map[M:3 N:1]")
}

// A plan with one kernel for each value is its graph, bit by bit in either mode.
func TestUnfusedPlanIsGraph(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := plantest.RandomGraph(t)
		n, m := rapid.IntRange(0, 4).Draw(t, "n"), rapid.IntRange(1, 5).Draw(t, "m")
		value := rapid.Float64Range(-3, 3)
		var in []*interp.Tensor
		for _, v := range g.Inputs {
			in = append(in, matrix(v.Type, n, m, func(int) float64 { return value.Draw(t, "x") }))
		}
		opts := interp.Options{Mode: rapid.SampledFrom([]interp.Mode{interp.Exact, interp.Strict}).Draw(t, "mode")}
		want, err := interp.Run(g, in, opts)
		require.NoError(t, err)
		have, err := interp.RunPlan(plantest.Unfused(g), in, interp.PlanOptions{Options: opts})
		require.NoError(t, err)
		assert.Equal(t, want, have)
	})
}

// Plans that no planner may make are told apart.
func TestBrokenPlans(t *testing.T) {
	x := []*interp.Tensor{matrix(ir.F32, 2, 3, func(i int) float64 { return float64(i) })}
	check := func(want string, breakIt func(p *ir.Plan, k *ir.Kernel)) {
		t.Helper()
		p := plantest.Norm(ir.F32)
		breakIt(p, p.Kernels[0])
		_, err := interp.RunPlan(p, x, interp.PlanOptions{})
		assert.EqualError(t, err, want)
	}
	store := func(k *ir.Kernel) *ir.Store { return k.Variants[0].Sections[2].Stores[0] }
	check("kernel norm: access to y at offset 6, it has 6 elements", func(p *ir.Plan, k *ir.Kernel) {
		store(k).Offset = ir.Apply(ir.OpAdd, store(k).Offset, ir.IntConst(1))
	})
	check("output y: element 0 was never written", func(p *ir.Plan, k *ir.Kernel) {
		store(k).Guard = ir.Apply(ir.OpLt, ir.IntConst(0), k.Cols[0].At())
	})
	check("kernel norm: read of y[0], which holds nothing yet", func(p *ir.Plan, k *ir.Kernel) {
		out := &ir.Arg{Index: 9, Name: "y", Type: ir.F32, Buffer: store(k).Arg.Buffer}
		store(k).Value = ir.Read(out, ir.IntConst(0), nil, nil)
	})
	check("kernel norm: access to x at offset -1, it has 6 elements", func(p *ir.Plan, k *ir.Kernel) {
		store(k).Value = ir.Read(k.Args[0], ir.IntConst(-1), nil, nil)
	})
}

// A temporary is lost when another takes its slot.
func TestSlots(t *testing.T) {
	g := ir.NewGraph("slots")
	x := g.Input("x", ir.F32, []*ir.Expr{ir.IntConst(2)}, diag.Span{})
	step := func(name string, v *ir.Value) *ir.Value {
		axes := g.NewAxes(v.Shape())
		body := ir.Apply(ir.OpAdd, ir.Load(v, ir.Indices(axes), nil), ir.Num(ir.F32, 1))
		return g.Define(name, axes, body, ir.Origin{})
	}
	a := step("a", x)
	b := step("b", a)
	g.Output("y", step("c", b), diag.Span{})
	in := []*interp.Tensor{{Type: ir.F32, Shape: []int{2}, F: []float64{1, 2}}}
	p := plantest.Unfused(g)
	have, err := interp.RunPlan(p, in, interp.PlanOptions{})
	require.NoError(t, err)
	assert.Equal(t, []float64{4, 5}, have[0].F)
	for _, buf := range p.Buffers {
		buf.Slot = 0
	}
	_, err = interp.RunPlan(p, in, interp.PlanOptions{})
	assert.EqualError(t, err, "kernel b: read of a[0], which holds nothing yet")
}
