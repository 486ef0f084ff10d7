package hunt

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/fusec/fusec/conformance/gen"
	"github.com/fusec/fusec/ir"
)

// TestGradients tries the gradients of the first programs that are drawn: their delta form,
// and the CPU engine. TestHunt -hunt.grad draws others.
func TestGradients(t *testing.T) {
	engines := open(t, []string{"cpu"})
	for seed := range uint64(60) {
		p := gen.Draw(seed)
		p.Gradient = true
		if f := try(p, engines); f != nil {
			assert.Fail(t, f.Error())
		}
	}
}

// TestTangents tries the derivatives along a direction of the first programs that are drawn:
// beside their gradients, and on the CPU engine. TestHunt -hunt.jvp draws others.
func TestTangents(t *testing.T) {
	engines := open(t, []string{"cpu"})
	for seed := range uint64(60) {
		p := gen.Draw(seed)
		p.Tangent = true
		if f := try(p, engines); f != nil {
			assert.Fail(t, f.Error())
		}
	}
}

// TestGradientIsRead: what is run is the gradient's text as it is printed.
func TestGradientIsRead(t *testing.T) {
	p := &gen.Program{Gradient: true, Inputs: []gen.Value{{Name: "x", Type: ir.F32, Dims: []string{"N"}}},
		Outputs: []gen.Value{{Name: "y", Type: ir.F32, Dims: []string{"N"}}}, Lines: []gen.Line{{Text: "y = x * x"}},
		Sizes: map[string]int64{"N": 3}}
	source, err := sourceOf(p)
	assert.NoError(t, err)
	assert.Contains(t, source, "-> (d_x: f32[N])")
}

// TestGradientsOfWhatIsNotRead: an element that no term reads has a derivative of 0, also where every factor is
// infinite; and where an index is outside in a strict graph there is no gradient to compare.
func TestGradientsOfWhatIsNotRead(t *testing.T) {
	x := gen.Value{Name: "x", Type: ir.F32, Dims: []string{"3"}}
	y := gen.Value{Name: "y", Type: ir.F32, Dims: []string{"2"}}
	at := gen.Value{Name: "at", Type: ir.I32, Dims: []string{"2"}}
	for _, p := range []*gen.Program{
		{Inputs: []gen.Value{x}, Lines: []gen.Line{{Text: "y[i: 2] = x[i] * inf"}}},
		{Inputs: []gen.Value{x}, Lines: []gen.Line{{Text: "y[i: 2] = sum[j: 1] x[i] * (x[-j - 2] else 0.1)"}}},
		{Inputs: []gen.Value{x, at}, Lines: []gen.Line{{Text: "y = x[2:][at]"}}, Annotations: "@strict", Seed: 1},
	} {
		p.Gradient, p.Outputs = true, []gen.Value{y}
		if f := try(p, open(t, []string{"cpu"})); f != nil {
			assert.Fail(t, f.Error())
		}
	}
}

// TestTwoIndicesOfTheSameRanges: equations that could take each other's ranges apart for ever are solved.
func TestTwoIndicesOfTheSameRanges(t *testing.T) {
	for _, line := range []string{"y[i: N] = sum[k: N] x[2 * i + k, i + k]", "y[i: N] = sum[k: N] x[3 * i + k, i + 2 * k]"} {
		p := &gen.Program{Gradient: true, Lines: []gen.Line{{Text: line}}, Sizes: map[string]int64{"N": 5},
			Inputs:  []gen.Value{{Name: "x", Type: ir.F32, Dims: []string{"N", "N"}}},
			Outputs: []gen.Value{{Name: "y", Type: ir.F32, Dims: []string{"N"}}}}
		if f := try(p, open(t, []string{"cpu"})); f != nil {
			assert.Fail(t, f.Error())
		}
		source, err := sourceOf(p)
		assert.NoError(t, err)
		assert.Less(t, len(source), 1000)
	}
}
