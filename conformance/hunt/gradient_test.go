package hunt

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/fusec/fusec/conformance/gen"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/interp"
)

// TestGradients tries the gradients of the first programs that are drawn: their delta form,
// and the CPU engine: of 60, or of 20 unless FUSEC_TEST_FULL is set. TestHunt -hunt.grad draws others.
func TestGradients(t *testing.T) {
	engines := open(t, []string{"cpu"})
	for seed := range fullOr[uint64](60, 20) {
		p := gen.Draw(seed)
		p.Gradient = true
		if f := try(p, engines); f != nil {
			assert.Fail(t, f.Error())
		}
	}
}

// TestTangents tries the derivatives along a direction of the first programs that are drawn:
// beside their gradients, and on the CPU engine, as many as of gradients. TestHunt -hunt.jvp draws others.
func TestTangents(t *testing.T) {
	engines := open(t, []string{"cpu"})
	for seed := range fullOr[uint64](60, 20) {
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

// TestTangentsOfPadding: a graph that reads a number of the padding prints as what it is, and a derivative that is 0
// as a difference of equals is 0 but for roundings.
func TestTangentsOfPadding(t *testing.T) {
	x, y := gen.Value{Name: "x", Type: ir.F64, Dims: []string{"3"}}, gen.Value{Name: "y", Type: ir.F64, Dims: []string{"3"}}
	z := gen.Value{Name: "z", Type: ir.F64, Dims: []string{"2", "1", "1"}}
	for _, p := range []*gen.Program{
		{Inputs: []gen.Value{x}, Outputs: []gen.Value{y}, Lines: []gen.Line{{Text: "p = pad(x, 2, value=1)"}, {Text: "y[i: 3] = min[k: 3] (p[0] * p[-1] * x[k] + x[i])"}}},
		{Inputs: []gen.Value{{Name: "m", Type: ir.F32, Dims: []string{"1", "1", "N", "1"}}, {Name: "w", Type: ir.F32, Dims: []string{"2", "1", "1", "1"}}},
			Outputs: []gen.Value{{Name: "y", Type: ir.F32, Dims: []string{"2"}}}, Sizes: map[string]int64{"N": 1},
			Lines: []gen.Line{{Text: "v[b: 1, o: 2, p: 1, q: 1] = sum[c: 1, i: 1, j: 1] m[b, c, p + i, q + j - 2] else 1 * w[o, c, i, j]"},
				{Text: "y[i: 2] = max(v[0, i, 0, 0], 0.5 * v[0, i, 0, 0])"}}},
		{Inputs: []gen.Value{z}, Outputs: []gen.Value{{Name: "y", Type: ir.F64, Dims: []string{"1", "1"}}}, Seed: 5,
			Lines: []gen.Line{{Text: "y = cosine_similarity(z, z, axis=0)"}}},
	} {
		for _, gradient := range []bool{false, true} {
			p.Gradient, p.Tangent = gradient, !gradient
			if f := try(p, open(t, []string{"cpu"})); f != nil {
				assert.Fail(t, f.Error())
			}
		}
	}
}

// TestGradientsOfWhatIsInfinite: what is read outside, or by nothing, may be 0 times an infinite number in one of
// the two forms, and then there is nothing to compare; in what is finite, a NaN is wrong.
func TestGradientsOfWhatIsInfinite(t *testing.T) {
	x, w := gen.Value{Name: "x", Type: ir.F32, Dims: []string{"1"}}, gen.Value{Name: "w", Type: ir.F32, Dims: []string{"2", "2", "3"}}
	m := gen.Value{Name: "m", Type: ir.F32, Dims: []string{"2", "2", "8"}}
	for _, p := range []*gen.Program{
		{Inputs: []gen.Value{x}, Outputs: []gen.Value{{Name: "y", Type: ir.F32}},
			Lines: []gen.Line{{Text: "v[i: 2, j: 2] = prod[k: 2] (where(i == j, 1, inf) + x[0])"}, {Text: "y = prod[k: 2] v[k, k]"}}},
		{Inputs: []gen.Value{m, w}, Outputs: []gen.Value{{Name: "y", Type: ir.F32, Dims: []string{"2", "2", "6"}}},
			Lines: []gen.Line{{Text: "v = conv1d(m + 1, w, padding=1, dilation=2)"}, {Text: "y = pow(v, v)"}}, Annotations: "@strict"},
	} {
		p.Gradient = true
		if f := try(p, open(t, []string{"cpu"})); f != nil {
			assert.Fail(t, f.Error())
		}
	}
	number, nan := interp.New(ir.F32, 2), interp.New(ir.F32, 2)
	number.F[0], number.F[1], nan.F[0] = 1, 2, math.NaN()
	nan.F[1] = 2
	assert.NoError(t, close("y", nan, nan, true))
	assert.NoError(t, close("y", nan, number, false))
	assert.Error(t, close("y", nan, number, true))
	assert.Error(t, close("y", number, nan, true))
	nan.F[1] = 3
	assert.Error(t, close("y", nan, number, false))
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

// TestGradientsPastGroups: a gradient that reads past the groups of an index i / n prints it with what is read there, also
// where the index is such a one only without an element that is known to be 0.
func TestGradientsPastGroups(t *testing.T) {
	for _, line := range []string{"y[i: 8, j: 2] = x[(none_of[i] + j) * 2] * m[i, j]", "y[i: 8, j: 2] = x[j * 2 + none_of[i]] * m[i, j]"} {
		p := &gen.Program{Gradient: true, Lines: []gen.Line{{Text: "none_of = z[2:1]"}, {Text: line}},
			Inputs:  []gen.Value{{Name: "x", Type: ir.F32, Dims: []string{"8"}}, {Name: "m", Type: ir.F32, Dims: []string{"8", "2"}}, {Name: "z", Type: ir.I32, Dims: []string{"2"}}},
			Outputs: []gen.Value{{Name: "y", Type: ir.F32, Dims: []string{"8", "2"}}}}
		if f := try(p, open(t, []string{"cpu"})); f != nil {
			assert.Fail(t, f.Error())
		}
	}
}
