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
