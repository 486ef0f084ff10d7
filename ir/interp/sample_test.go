package interp

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/diag"
)

// matmul is y[m, n] = sum[k] a[m, k] * b[k, n].
func matmul() builder {
	b := build("M", "K", "N")
	m, k, n := ir.Sym("M"), ir.Sym("K"), ir.Sym("N")
	x, y := b.in("a", ir.F32, m, k), b.in("b", ir.F32, k, n)
	b.out([]*ir.Expr{m, n}, func(at []*ir.Expr) *ir.Expr {
		r := b.NewRange("k", k)
		return ir.Reduce(&ir.Reduction{Op: ir.Sum, Ranges: []*ir.Range{r}}, ir.Apply(ir.OpMul,
			ir.Load(x, []*ir.Expr{at[0], r.At()}, nil), ir.Load(y, []*ir.Expr{r.At(), at[1]}, nil)))
	})
	return b
}

// softmax over the last axis, of two.
func softmax(t ir.DType) builder {
	b := build("N", "M")
	n, m := ir.Sym("N"), ir.Sym("M")
	x := b.in("x", t, n, m)
	over := func(op ir.Monoid, row *ir.Expr, body func(at []*ir.Expr) *ir.Expr) *ir.Expr {
		r := b.NewRange("r", m)
		return ir.Reduce(&ir.Reduction{Op: op, Ranges: []*ir.Range{r}}, body([]*ir.Expr{row, r.At()}))
	}
	rows := b.NewAxes([]*ir.Expr{n})
	row := func(at []*ir.Expr) *ir.Expr { return ir.Load(x, at, nil) }
	top := b.Define("m", rows, over(ir.Max, rows[0].At(), row), ir.Origin{})
	axes := b.NewAxes([]*ir.Expr{n, m})
	e := b.Define("e", axes, ir.Apply(ir.OpExp, ir.Apply(ir.OpSub,
		ir.Load(x, ir.Indices(axes), nil), ir.Load(top, ir.Indices(axes[:1]), nil))), ir.Origin{})
	b.out([]*ir.Expr{n, m}, func(at []*ir.Expr) *ir.Expr {
		sum := over(ir.Sum, at[0], func(at []*ir.Expr) *ir.Expr { return ir.Load(e, at, nil) })
		return ir.Apply(ir.OpDiv, ir.Load(e, at, nil), sum)
	})
	return b
}

func drawMatrix(t *rapid.T, name string, dtype ir.DType, rows, cols int) *Tensor {
	out := New(dtype, rows, cols)
	for i := range out.F {
		out.F[i] = rapid.Float64Range(-4, 4).Draw(t, name)
	}
	return out.rounded()
}

func TestMatmul(t *testing.T) {
	have := run(t, matmul(), Options{}, floats(ir.F32, []int{2, 3}, 1, 2, 3, 4, 5, 6),
		floats(ir.F32, []int{3, 2}, 7, 8, 9, 10, 11, 12))
	same(t, floats(ir.F32, []int{2, 2}, 58, 64, 139, 154), have)
	same(t, floats(ir.F32, []int{1, 1}, 0), run(t, matmul(), Options{}, New(ir.F32, 1, 0), New(ir.F32, 0, 1)))
}

// Sampled elements are those of the full evaluation, in both modes.
func TestSampleIsRun(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		opts := Options{Mode: rapid.SampledFrom([]Mode{Exact, Strict}).Draw(t, "mode")}
		n, m := rapid.IntRange(1, 5).Draw(t, "n"), rapid.IntRange(1, 7).Draw(t, "m")
		b, x := softmax(ir.BF16), drawMatrix(t, "x", ir.BF16, n, m)
		full, err := Run(b.Graph, []*Tensor{x}, opts)
		require.NoError(t, err)
		var points []Point
		for range 4 {
			i, j := rapid.IntRange(0, n-1).Draw(t, "i"), rapid.IntRange(0, m-1).Draw(t, "j")
			points = append(points, Point{0, []int{i, j}})
		}
		have, err := Sample(b.Graph, []*Tensor{x}, points, opts)
		require.NoError(t, err)
		for i, p := range points {
			assert.Equal(t, full[0].F[p.Index[0]*m+p.Index[1]], have[i].F)
		}
	})
}

// One element of a product that could not be run in full.
func TestSampleLarge(t *testing.T) {
	const n = 4096
	a, b := New(ir.F32, n, n), New(ir.F32, n, n)
	for k := range n {
		a.F[7*n+k], b.F[k*n+9] = 1, float64(k)
	}
	have, err := Sample(matmul().Graph, []*Tensor{a, b}, []Point{{0, []int{7, 9}}}, Options{})
	require.NoError(t, err)
	assert.Equal(t, float64(n*(n-1)/2), have[0].F)
}

// TestSampleStops: an evaluation ends soon after it is told to, also within the reductions of one element, and stays ended.
func TestSampleStops(t *testing.T) {
	x, asked := New(ir.F32, 1, 1<<14), 0
	s, err := NewSampler(softmax(ir.F32).Graph, []*Tensor{x}, Options{Stop: func() bool { asked++; return asked > 3 }})
	require.NoError(t, err)
	for range 2 {
		_, err = s.At(Point{0, []int{0, 0}})
		require.ErrorIs(t, err, ErrStopped)
	}
	assert.Equal(t, 4, asked)
	assert.LessOrEqual(t, s.kept, int64(4*mostLanes))
}

func TestSampleErrors(t *testing.T) {
	in := []*Tensor{New(ir.F32, 2, 2)}
	for want, p := range map[string]Point{
		"sample of output 1: the graph has 1":                  {1, nil},
		"sample of y: expected 2 indices, found [0]":           {0, []int{0}},
		"sample of y: index [0 2] is outside shape [2 2]":      {0, []int{0, 2}},
		"sample of y: index [-1 0] is outside shape [2 2]":     {0, []int{-1, 0}},
		"sample of y: expected 2 indices, found [0 0 0 0 0 0]": {0, make([]int, 6)},
	} {
		_, err := Sample(softmax(ir.F32).Graph, in, []Point{p}, Options{})
		assert.EqualError(t, err, want)
	}
	_, err := Sample(softmax(ir.F32).Graph, in, []Point{{0, []int{0, 0}}}, Options{MaxBytes: 128})
	assert.ErrorContains(t, err, "the samples need more memory than the limit of 128 bytes")
}

func TestSoftmax(t *testing.T) {
	have := run(t, softmax(ir.F64), Options{}, floats(ir.F64, []int{1, 3}, 0, math.Log(2), math.Log(5)))
	for i, want := range []float64{1. / 8, 2. / 8, 5. / 8} {
		assert.InDelta(t, want, have.F[i], 1e-15)
	}
}

// A chain in which each step uses the last twice takes time linear in its length.
func TestSharedNodesRunOnce(t *testing.T) {
	b := build()
	x := b.in("x", ir.F64, dims(1)...)
	e := ir.Load(x, dims(0), nil)
	for range 200 {
		e = ir.Apply(ir.OpMul, ir.Apply(ir.OpAdd, e, e), ir.Num(ir.F64, 0.5))
	}
	b.Output("y", b.Define("y", nil, e, ir.Origin{}), diag.Span{})
	assert.Equal(t, 3.0, run(t, b, Options{}, floats(ir.F64, []int{1}, 3)).F[0])
}

func TestCost(t *testing.T) {
	cost := Cost(matmul().Graph, map[string]int64{"M": 10, "K": 20, "N": 30})
	assert.InDelta(t, 10*20*30*7, cost, 10*20*30*3)
}

// TestCostOfOrders: a row is sorted once for all places that are picked from it.
func TestCostOfOrders(t *testing.T) {
	b := build("N", "M")
	x := b.in("x", ir.F32, ir.Sym("N"), ir.Sym("M"))
	b.out([]*ir.Expr{ir.Sym("N"), ir.Sym("M")}, func(at []*ir.Expr) *ir.Expr {
		r := b.NewRange("r", ir.Sym("M"))
		return ir.Reduce(&ir.Reduction{Op: ir.Min, Ranges: []*ir.Range{r}, Rank: at[1]}, ir.Load(x, []*ir.Expr{at[0], r.At()}, nil))
	})
	const n, m = 10, 1 << 20
	cost := Cost(b.Graph, map[string]int64{"N": n, "M": m})
	assert.Greater(t, cost, float64(n*m*20))
	assert.Less(t, cost, float64(n*m*40))
}

func TestInputErrors(t *testing.T) {
	g := matmul().Graph
	a, b, one := New(ir.F32, 2, 3), New(ir.F32, 3, 1), New(ir.F32, 1, 1)
	cases := []struct {
		want string
		in   []*Tensor
	}{
		{"expected 2 inputs, found 1", []*Tensor{a}},
		{"input a: expected f32, found f64", []*Tensor{New(ir.F64, 2, 3), b}},
		{"input b: expected 2 dimensions, found 1: shape [3]", []*Tensor{a, New(ir.F32, 3)}},
		{"input b: dimension 0 should be K = 3 (K is 3 in dimension 1 of a), found 4",
			[]*Tensor{a, New(ir.F32, 4, 5)}},
		{"input a: expected 6 elements of f32 for shape [2 3], found 1 floats and 0 integers",
			[]*Tensor{floats(ir.F32, []int{2, 3}, 1), b}},
		{"input a: expected 1 elements of f32 for shape [1 1], found 0 floats and 1 integers",
			[]*Tensor{ints(ir.F32, []int{1, 1}, 1), one}},
	}
	for _, c := range cases {
		_, err := Run(g, c.in, Options{})
		assert.EqualError(t, err, c.want)
	}
}

func BenchmarkMatmul(b *testing.B) {
	const n = 64
	g, x := matmul().Graph, New(ir.F32, n, n)
	for b.Loop() {
		_, err := Run(g, []*Tensor{x, x}, Options{})
		require.NoError(b, err)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/(2*n*n*n), "ns/flop")
}

// TestFactorsInAnyOrder: two factors of three may overflow before a zero is multiplied by, in some order that an
// engine may have; written the other way round, too. Where every part fits there is one result.
func TestFactorsInAnyOrder(t *testing.T) {
	values := map[[3]float64]bool{{3e38, 0, 4}: true, {3e38, 4, 0}: true, {3, 0, 4}: false}
	for factors, mayBeNaN := range values {
		b := build("N")
		x := b.in("x", ir.F32, ir.Sym("N"), ir.IntConst(3))
		b.out([]*ir.Expr{ir.Sym("N")}, func(at []*ir.Expr) *ir.Expr {
			load := func(i int64) *ir.Expr { return ir.Load(x, []*ir.Expr{at[0], ir.IntConst(i)}, nil) }
			return ir.Apply(ir.OpMul, ir.Apply(ir.OpMul, load(0), load(1)), load(2))
		})
		in := New(ir.F32, 1, 3)
		copy(in.F, factors[:])
		nan, zero := false, false
		for seed := range uint64(40) {
			out, err := Run(b.Graph, []*Tensor{in}, Options{Mode: Sampled, Seed: seed})
			require.NoError(t, err)
			nan, zero = nan || math.IsNaN(out[0].F[0]), zero || out[0].F[0] == 0
		}
		assert.Equal(t, mayBeNaN, nan, "%v", factors)
		assert.True(t, zero, "%v", factors)
	}
}

// TestLargestNumberStaysFinite: a rounding does not make an infinity of the largest number of f64. Engines compute in
// the same type, so that no order of roundings would.
func TestLargestNumberStaysFinite(t *testing.T) {
	b := build("N")
	x := b.in("x", ir.F64, ir.Sym("N"))
	b.out([]*ir.Expr{ir.Sym("N")}, func(at []*ir.Expr) *ir.Expr {
		return ir.Apply(ir.OpAdd, ir.Load(x, at, nil), ir.Num(ir.F64, -3))
	})
	for seed := range uint64(40) {
		out, err := Run(b.Graph, []*Tensor{floats(ir.F64, []int{1}, math.MaxFloat64)}, Options{Mode: Sampled, Seed: seed})
		require.NoError(t, err)
		require.Less(t, out[0].F[0], math.Inf(1))
	}
}

// TestWeightsOfZero: what a weight of zero multiplies need not be read, where the weight is made of exponentials as
// those of a softmax are; a zero from elsewhere makes NaN of infinity.
func TestWeightsOfZero(t *testing.T) {
	for op, left := range map[ir.Op]bool{ir.OpExp: true, ir.OpNeg: false} {
		b := build("N")
		x, y := b.in("x", ir.F32, ir.Sym("N")), b.in("y", ir.F32, ir.Sym("N"))
		axes := b.NewAxes([]*ir.Expr{ir.Sym("N")})
		w := b.Define("w", axes, ir.Apply(op, ir.Load(x, ir.Indices(axes), nil)), ir.Origin{})
		b.out([]*ir.Expr{ir.Sym("N")}, func(at []*ir.Expr) *ir.Expr {
			return ir.Apply(ir.OpMul, ir.Load(w, at, nil), ir.Load(y, at, nil))
		})
		inputs := []*Tensor{floats(ir.F32, []int{1}, map[ir.Op]float64{ir.OpExp: math.Inf(-1)}[op]), floats(ir.F32, []int{1}, math.Inf(1))}
		nan, zero := false, false
		for seed := range uint64(40) {
			out, err := Run(b.Graph, inputs, Options{Mode: Sampled, Seed: seed})
			require.NoError(t, err)
			nan, zero = nan || math.IsNaN(out[0].F[0]), zero || out[0].F[0] == 0
		}
		assert.True(t, nan, op)
		assert.Equal(t, left, zero, op)
	}
}

// TestWeightsOfMaskedKeys: a key whose score is -infinity may have a weight of zero in a softmax of which the others are NaN;
// a key whose score is a number has NaN.
func TestWeightsOfMaskedKeys(t *testing.T) {
	in := floats(ir.F32, []int{1, 3}, math.NaN(), math.Inf(-1), 1)
	zeros, nans := [3]bool{}, [3]bool{}
	for seed := range uint64(40) {
		out, err := Run(softmax(ir.F32).Graph, []*Tensor{in}, Options{Mode: Sampled, Seed: seed})
		require.NoError(t, err)
		for i, v := range out[0].F {
			zeros[i], nans[i] = zeros[i] || v == 0, nans[i] || math.IsNaN(v)
		}
	}
	assert.Equal(t, [3]bool{false, true, false}, zeros)
	assert.Equal(t, [3]bool{true, true, true}, nans)
}

// TestProductsOfTF32: a factor of 1 leaves the other to be rounded to tf32; what tf32 holds stays.
func TestProductsOfTF32(t *testing.T) {
	for v, rounds := range map[float64]bool{1 + 0x1p-20: true, 1 + 0x1p-10: false} {
		b := build("N")
		b.Graph.TF32 = true
		x, y := b.in("x", ir.F32, ir.Sym("N")), b.in("y", ir.F32, ir.Sym("N"))
		b.out([]*ir.Expr{ir.Sym("N")}, func(at []*ir.Expr) *ir.Expr {
			return ir.Apply(ir.OpMul, ir.Load(x, at, nil), ir.Load(y, at, nil))
		})
		spread := 0.0
		for seed := range uint64(40) {
			out, err := Run(b.Graph, []*Tensor{floats(ir.F32, []int{1}, 1), floats(ir.F32, []int{1}, v)}, Options{Mode: Sampled, Seed: seed})
			require.NoError(t, err)
			spread = max(spread, math.Abs(out[0].F[0]-v))
		}
		assert.Equal(t, rounds, spread > 0x1p-13, v)
	}
}

// TestSumsThatCancel: a sum of which only roundings are left may be zero, so that a quotient by it may be NaN; one
// that is larger than its roundings is not.
func TestSumsThatCancel(t *testing.T) {
	for last, cancels := range map[float64]bool{-0.3 + 0x1p-26: true, -0.2: false} {
		b := build("N")
		x := b.in("x", ir.F32, ir.Sym("N"))
		r := b.NewRange("k", ir.Sym("N"))
		b.out(nil, func([]*ir.Expr) *ir.Expr {
			return ir.Reduce(&ir.Reduction{Op: ir.Sum, Ranges: []*ir.Range{r}}, ir.Load(x, []*ir.Expr{r.At()}, nil))
		})
		zeros, others := 0, 0
		for seed := range uint64(40) {
			out, err := Run(b.Graph, []*Tensor{floats(ir.F32, []int{3}, 0.1, 0.2, last)}, Options{Mode: Sampled, Seed: seed})
			require.NoError(t, err)
			if out[0].F[0] == 0 {
				zeros++
			} else {
				others++
			}
		}
		assert.Equal(t, cancels, zeros > 0, last)
		assert.NotZero(t, others, last)
	}
}
