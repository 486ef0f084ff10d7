package hunt

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/conformance/gen"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/interp"
	"github.com/fusec/fusec/parser"
	"github.com/fusec/fusec/runtime/tensor"
)

func graph(t *testing.T, text string) *ir.Graph {
	t.Helper()
	file, err := parser.Parse("g.fuse", []byte(text), parser.Options{})
	require.NoError(t, err)
	g, err := file.Graph("")
	require.NoError(t, err)
	return g
}

// TestSampledAgreesWhereNothingRounds: what roundings do not touch is the same in every sample,
// and what they touch is not.
func TestSampledAgreesWhereNothingRounds(t *testing.T) {
	g := graph(t, `graph g(x: f32[N]) -> (a: f32[], b: i64[], c: f32[]) {
    a = sum(x * x)
    b = argmax(x)
    c = sum(exp(x))
}`)
	x := interp.New(ir.F32, 5)
	copy(x.F, []float64{3, -1, 4, 0, 4})
	seen := map[float64]bool{}
	for seed := range uint64(8) {
		got, err := interp.Run(g, []*interp.Tensor{x}, interp.Options{Mode: interp.Sampled, Seed: seed})
		require.NoError(t, err)
		require.Equal(t, 42.0, got[0].F[0])
		require.Equal(t, int64(2), got[1].I[0])
		require.InEpsilon(t, math.Exp(3)+math.Exp(-1)+2*math.Exp(4)+1, got[2].F[0], 1e-5)
		seen[got[2].F[0]] = true
	}
	require.Greater(t, len(seen), 1)
}

// TestReferenceSeesMistakes: the least change of an exact result is a difference, and so is one
// of a rounded result beyond a few roundings, or of a class of numbers.
func TestReferenceSeesMistakes(t *testing.T) {
	g := graph(t, `graph g(x: f32[N]) -> (exact: f32[N], rounded: f32[N], place: i64[]) {
    exact = x * 2
    rounded = exp(x)
    place = argmax(x)
}`)
	inputs, err := gen.Inputs(g, map[string]int64{"N": 9}, 1, false)
	require.NoError(t, err)
	r, err := NewReference(g, inputs)
	require.NoError(t, err)
	for _, c := range []struct {
		output int
		change func(x *interp.Tensor)
		right  bool
	}{
		{0, func(*interp.Tensor) {}, true},
		{0, func(x *interp.Tensor) { x.F[3] *= 1 + 0x1p-23 }, false},
		{0, func(x *interp.Tensor) { x.F[8] = math.NaN() }, false},
		{1, func(x *interp.Tensor) { x.F[3] *= 1 + 0x1p-22 }, true},
		{1, func(x *interp.Tensor) { x.F[3] *= 1 + 0x1p-14 }, false},
		{1, func(x *interp.Tensor) { x.F[0] = math.Inf(1) }, false},
		{2, func(x *interp.Tensor) { x.I[0]++ }, false},
	} {
		got := map[string]*tensor.Tensor{}
		for i, w := range r.Want {
			x := interp.FromBytes(w.Type, w.Shape, w.Bytes())
			if i == c.output {
				c.change(x)
			}
			got[g.Outputs[i].Name], err = tensor.FromBytes(x.Type, x.Bytes(), x.Shape...)
			require.NoError(t, err)
		}
		require.Equal(t, c.right, r.Check(got) == nil, "output %d", c.output)
	}
}

// TestShapesBeyondTheAddressSpace: an empty result that no tensor can be is an error of every engine, not
// a difference.
func TestShapesBeyondTheAddressSpace(t *testing.T) {
	text := `graph g(x: f32[N, 0]) -> (y: f32[N * 2000, N * 2000, N * 2000, 0]) {
    y[i: N * 2000, j: N * 2000, l: N * 2000, p: 0] = x[i / 2000, p] else 0
}`
	g := graph(t, text)
	engines := open(t, []string{"cpu"})
	for n, wrong := range map[int64]bool{3: false, 3000: true} {
		inputs, err := gen.Inputs(g, map[string]int64{"N": n}, 1, false)
		require.NoError(t, err)
		r, err := NewReference(g, inputs)
		require.NoError(t, err)
		require.NoError(t, r.Run(t.Context(), text, engines[0].Device))
		require.Equal(t, wrong, beyond(r.Want) != nil)
	}
}

// TestSampledKnowsWhatOrdersDo: sums and products whose parts leave the range of their type are finite in some
// samples and not in others, whole values at a time; those whose parts stay inside are as they are in all.
func TestSampledKnowsWhatOrdersDo(t *testing.T) {
	g := graph(t, `graph g(x: f64[N], y: f32[N], z: f64[3], w: f32[3]) -> (a: f64[], b: f32[], c: f64[], d: f32[2], e: f64[], f: f32[]) {
    a = prod(x)
    b = prod(y)
    c = sum(x) - x[1]
    d[i] = sum[k] y[k] * f32(i + 1)
    e = prod(z)
    f = sum(w)
}`)
	inputs, err := gen.Inputs(g, map[string]int64{"N": 4}, 1, false)
	require.NoError(t, err)
	copy(inputs[0].F, []float64{1e300, 1e100, 1e-200, -1e-100})
	copy(inputs[1].F, []float64{3e38, 3e38, -3e38, -2e38})
	copy(inputs[2].F, []float64{1e150, -3, 1e150})
	copy(inputs[3].F, []float64{1.5e37, 2, -1.5e37})
	kinds := make([]map[string]bool, len(g.Outputs))
	same := 0
	for seed := range uint64(200) {
		got, err := interp.Run(g, inputs, interp.Options{Mode: interp.Sampled, Seed: seed})
		require.NoError(t, err)
		for i, x := range got {
			if kinds[i] == nil {
				kinds[i] = map[string]bool{}
			}
			kinds[i][kindOfNumber(x.F[0])] = true
		}
		if class(got[3].F[0]) == 0 && class(got[3].F[1]) == 0 {
			same++
		}
	}
	all := map[string]bool{"number": true, "infinite": true, "NaN": true}
	require.Subset(t, kinds[0], map[string]bool{"number": true, "infinite": true}, "1e100")
	require.Subset(t, kinds[1], map[string]bool{"infinite": true}, "beyond the range in any order")
	require.Equal(t, map[string]bool{"number": true}, kinds[2])
	require.Equal(t, all, kinds[3])
	require.Greater(t, same, 4, "both elements in an order that keeps them finite")
	require.Equal(t, map[string]bool{"number": true}, kinds[4])
	require.Equal(t, map[string]bool{"number": true}, kinds[5])
}

func kindOfNumber(v float64) string {
	switch class(v) {
	case 0:
		return "number"
	case 1:
		return "NaN"
	}
	return "infinite"
}

// TestSampledTakesEitherZero: max and min of 0 and -0 are either, and of equal zeros they are what they are.
func TestSampledTakesEitherZero(t *testing.T) {
	g := graph(t, `graph g(x: f32[2], y: f32[2]) -> (a: f32[2], b: f32[]) {
    a = atan2(max(x, y), -1)
    b = atan2(min(x), -1)
}`)
	zero, less := interp.New(ir.F32, 2), interp.New(ir.F32, 2)
	less.F[0], less.F[1] = math.Copysign(0, -1), 0
	seen := map[string]int{}
	for seed := range uint64(40) {
		got, err := interp.Run(g, []*interp.Tensor{less, zero}, interp.Options{Mode: interp.Sampled, Seed: seed})
		require.NoError(t, err)
		require.InDelta(t, math.Pi, got[0].F[1], 1e-5)
		for i, x := range got {
			seen[fmt.Sprint(i, x.F[0] > 0)]++
		}
	}
	require.Len(t, seen, 4, seen)
}

// TestSampledMovesSharedFactors: what the terms of a sum share may multiply the sum. The terms of a are beyond the range of
// their type at both ends and are NaN together, the sum without their factor is a number beyond it; a factor that is infinite makes NaN
// of a term that is zero, wherever it stands. Terms that are all alike are as many times one of them, in any order: c.
func TestSampledMovesSharedFactors(t *testing.T) {
	g := graph(t, `graph g(x: f64[N], s: f64[], z: f64[N], inf: f64[]) -> (a: f64[], b: f64[], c: f64[]) {
    a = sum[k] x[k] * s
    b = sum[k] z[k] * inf
    c = sum[k: N] x[0] * (s - s) * 1e10
}`)
	inputs, err := gen.Inputs(g, map[string]int64{"N": 3}, 1, false)
	require.NoError(t, err)
	copy(inputs[0].F, []float64{1e300, -1e300, 1e300})
	inputs[1].F[0] = 1e200
	copy(inputs[2].F, []float64{0, 1, 2})
	inputs[3].F[0] = math.Inf(1)
	seen := map[string]bool{}
	for seed := range uint64(60) {
		got, err := interp.Run(g, inputs, interp.Options{Mode: interp.Sampled, Seed: seed})
		require.NoError(t, err)
		seen[kindOfNumber(got[0].F[0])] = true
		seen["zero, or "+kindOfNumber(got[2].F[0])] = true
		require.True(t, math.IsNaN(got[1].F[0]))
	}
	require.True(t, seen["NaN"] && seen["infinite"] && seen["zero, or NaN"] && seen["zero, or number"], seen)
}

// TestFaultsThatDependOnRoundings: the index that a strict graph reports may be another where it is made of a sum whose
// order shows, and must be the same where it is exact.
func TestFaultsThatDependOnRoundings(t *testing.T) {
	for sum, exact := range map[string]bool{"i32(sum(f32(x)))": false, "sum(x)": true} {
		g := graph(t, `@strict
graph g(x: i32[N], y: f32[N]) -> (z: f32[]) {
    at = `+sum+`
    z = y[at]
}`)
		inputs, err := gen.Inputs(g, map[string]int64{"N": 40}, 1, false)
		require.NoError(t, err)
		for i := range inputs[0].I {
			inputs[0].I[i] = int64(16777217 + 3*i)
		}
		r, err := NewReference(g, inputs)
		require.NoError(t, err)
		require.NotNil(t, r.Fault)
		require.NoError(t, r.checkFault(r.Fault))
		other := *r.Fault
		other.Index++
		require.Equal(t, exact, r.checkFault(&other) != nil)
		require.Error(t, r.checkFault(errors.New("another")))
	}
}

// TestEqualTermsLean: sums of equal terms round to one side, all alike, and a product of them is as far away as all together.
func TestEqualTermsLean(t *testing.T) {
	g := graph(t, `graph g(w: f32[1]) -> (y: f32[]) {
    s[i: 1, j: 82] = sum[k: 82] w[i]
    y = prod(s)
}`)
	w := interp.New(ir.F32, 1)
	w.F[0] = 0.0087
	r, err := NewReference(g, []*interp.Tensor{w})
	require.NoError(t, err)
	for off, right := range map[float64]bool{1e-4: true, 1e-2: false} {
		got := holding(t, ir.F32, r.Want[0].F[0]*(1+off))
		require.Equal(t, right, r.checkOutput(0, got) == nil, off)
	}
}

// TestOverflowNextToTheLargestNumber: a result that roundings move is infinite or not where it is next to the largest
// number of its type, with the sign of that number, and nowhere else.
func TestOverflowNextToTheLargestNumber(t *testing.T) {
	g := graph(t, `graph g(x: f16[N]) -> (y: f16[N]) {
    y = exp(x) / exp(x) * 65504 * sign(x)
}`)
	for _, c := range []struct {
		x, shrink float64
		got       float64
		right     bool
	}{
		{3, 1, math.Inf(1), true},
		{3, 1, math.Inf(-1), false},
		{3, 1, math.NaN(), false},
		{-3, 1, math.Inf(-1), true},
		{3, 0.9, math.Inf(1), false},
	} {
		x := interp.New(ir.F16, 1)
		x.F[0] = c.x
		r, err := NewReference(g, []*interp.Tensor{x})
		require.NoError(t, err)
		for _, s := range append(r.samples, r.Want) {
			s[0].F[0] *= c.shrink
		}
		err = r.output(0, holding(t, ir.F16, c.got, 1))
		require.Equal(t, c.right, err == nil, "%+v: %v", c, err)
	}
}

// holding is a tensor with one number.
func holding(t *testing.T, dtype ir.DType, v float64, shape ...int) *tensor.Tensor {
	t.Helper()
	x := interp.New(dtype, shape...)
	x.F[0] = v
	out, err := tensor.FromBytes(dtype, x.Bytes(), shape...)
	require.NoError(t, err)
	return out
}
