package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/interp"
	"github.com/fusec/fusec/parser"
	"github.com/fusec/fusec/runtime"
	"github.com/fusec/fusec/runtime/tensor"
)

func floats(t *testing.T, dtype ir.DType, values ...float32) *tensor.Tensor {
	t.Helper()
	x, err := tensor.FromFloats(dtype, values)
	require.NoError(t, err)
	return x
}

func TestCompareFindsWhatIsWrong(t *testing.T) {
	inf := math.Inf(1)
	for _, c := range []struct {
		name   string
		dtype  ir.DType
		exact  []float64
		strict []float64
		got    []float32
		bad    int
		index  []int
	}{
		{"equal", ir.F32, []float64{1, 2, 3}, nil, []float32{1, 2, 3}, 0, nil},
		{"a rounding of f32", ir.F32, []float64{1, 2, 3}, nil, []float32{1, 2.000001, 3}, 0, nil},
		{"a thousandth", ir.F32, []float64{1, 2, 3}, nil, []float32{1, 2.002, 3}, 1, []int{1}},
		{"a thousandth of bf16", ir.BF16, []float64{1, 2, 3}, nil, []float32{1, 2.002, 3}, 0, nil},
		{"a tenth of bf16", ir.BF16, []float64{1, 2, 3}, nil, []float32{1, 2.2, 3.3}, 2, []int{1}},
		{"a neighbour's place", ir.F32, []float64{1, 2, 3}, nil, []float32{2, 1, 3}, 2, []int{0}},
		{"NaN for a number", ir.F32, []float64{1}, nil, []float32{float32(math.NaN())}, 1, []int{0}},
		{"NaN for NaN", ir.F32, []float64{math.NaN()}, nil, []float32{float32(math.NaN())}, 0, nil},
		{"infinity for infinity", ir.F32, []float64{inf, 1}, nil, []float32{float32(inf), 1}, 0, nil},
		{"the other infinity", ir.F32, []float64{inf, 1}, nil, []float32{float32(-inf), 1}, 1, []int{0}},
		{"as far off as strict", ir.F32, []float64{1, 2}, []float64{1.01, 2}, []float32{1.01, 2}, 0, nil},
		{"further off", ir.F32, []float64{1, 2}, []float64{1.01, 2}, []float32{1.05, 2}, 1, []int{0}},
		{"an integer off by one", ir.I32, []float64{100, 7}, []float64{100, 7}, []float32{101, 7}, 1, []int{0}},
		{"an integer as strict has it", ir.I32, []float64{100, 7}, []float64{101, 7}, []float32{101, 7}, 0, nil},
	} {
		r := &reference{exact: c.exact, strict: c.strict}
		out := r.compare(floats(t, c.dtype, c.got...), 1)
		assert.Equal(t, c.bad, out.bad, c.name)
		assert.Equal(t, c.index, out.index, c.name)
	}
}

func TestCompareSampledPoints(t *testing.T) {
	got, err := tensor.FromFloats(ir.F32, []float32{0, 1, 2, 3, 4, 5}, 2, 3)
	require.NoError(t, err)
	r := &reference{points: [][]int{{0, 2}, {1, 1}}, exact: []float64{2, 40}}
	c := r.compare(got, 1)
	assert.Equal(t, 1, c.bad)
	assert.Equal(t, []int{1, 1}, c.index)
	assert.Equal(t, 40.0, c.want)
	assert.Equal(t, 4.0, c.got)
}

func graphOf(t *testing.T, src string) *ir.Graph {
	t.Helper()
	file, err := parser.Parse("t.fuse", []byte(src), parser.Options{})
	require.NoError(t, err)
	return file.Graphs[0]
}

// One element of a product of matrices takes a row and a column, not the matrices;
// one element of the sum of everything takes everything.
func TestSampleCost(t *testing.T) {
	g := graphOf(t, `graph g(a: f32[N, N], b: f32[N, N]) -> (c: f32[N, N], total: f32[]) {
    c = relu(a) @ b
    total = sum(c)
}
`)
	sizes := map[string]int64{"N": 1000}
	one := sampleCost(g, 0, 1, sizes)
	assert.Greater(t, one, 1000.0)
	assert.Less(t, one, 20_000.0)
	assert.Equal(t, 64*one, sampleCost(g, 0, 64, sizes))
	assert.Greater(t, sampleCost(g, 1, 1, sizes), 1e9)
	points, _ := samplePoints(g, 1, map[string]int64{"N": 10_000}, nil, rand.New(rand.NewPCG(1, 1)))
	assert.Nil(t, points, "out of reach")
	points, _ = samplePoints(g, 0, sizes, []int{1000, 1000}, rand.New(rand.NewPCG(1, 1)))
	assert.Len(t, points, samples)
}

// TestSharedWorkCountsOnce: elements that share reductions take no more than all elements do, however many they are, and more of them take no less.
func TestSharedWorkCountsOnce(t *testing.T) {
	for _, y := range []string{"attention(x @ w, x @ w, x @ w)", "softmax(x) @ w", "sort(x)", "x[argsort(x[:, 0])]", "cumsum(x, axis=0)"} {
		g := graphOf(t, "graph g(x: f32[N, 64], w: f32[64, 64]) -> (y: f32[N, 64]) { y = "+y+" }")
		sizes := map[string]int64{"N": 500}
		all, before := interp.Cost(g, sizes), 0.0
		for _, n := range []int{1, 10, 256, 500 * 64, 1 << 30} {
			cost := sampleCost(g, 0, n, sizes)
			assert.LessOrEqual(t, cost, all, "%s of %d", y, n)
			assert.GreaterOrEqual(t, cost, before, "%s of %d", y, n)
			before = cost
		}
		assert.Greater(t, before, all/2, y)
	}
}

// TestSamplesEndWithTime: what is computed before the time is over is the same as what is computed without a limit, and checked; where nothing is, there is
// no reference.
func TestSamplesEndWithTime(t *testing.T) {
	g := graphOf(t, "graph g(x: f32[64, 200]) -> (y: f32[64, 200], z: f32[64]) { y = softmax(x)\nz = sum(x, axis=1) }")
	x := interp.New(ir.F32, 64, 200)
	for i := range x.F {
		x.F[i] = float64(i % 7)
	}
	points, _ := samplePoints(g, 0, nil, []int{64, 200}, rand.New(rand.NewPCG(1, 1)))
	var whole *reference
	partial := 0
	for _, asked := range []int{1 << 30, 0, 1, 20, 60} {
		calls := 0
		s := &sampling{graph: g, inputs: []*interp.Tensor{x}, over: func() bool { calls++; return calls > asked }}
		ref, err := s.reference(0, points, roundings())
		require.NoError(t, err)
		if whole == nil {
			whole = ref
			require.Equal(t, len(points), ref.len())
			continue
		}
		if asked == 0 {
			require.Nil(t, ref)
		} else if ref != nil {
			partial++
			assert.True(t, ref.plain || ref.len() < len(points))
			assert.Equal(t, whole.exact[:ref.len()], ref.exact)
			assert.Equal(t, whole.strict[:ref.len()], ref.strict)
			if assert.Equal(t, ref.plain, ref.sampled == nil); !ref.plain {
				assert.Len(t, ref.sampled[0], ref.len())
			}
			assert.Equal(t, len(points), ref.chosen)
		}
		s.over = func() bool { return false } // the next output has its own time
		next, err := s.reference(1, [][]int{{3}}, roundings())
		require.NoError(t, err)
		assert.Equal(t, 1, next.len())
	}
	assert.Positive(t, partial)
}

func TestIndexBounds(t *testing.T) {
	g := graphOf(t, `graph g(t: f32[V, W], i: i64[N], j: i32[N], k: i64[N]) -> (y: f32[N], z: i64[N]) {
    row = i + 0
    y[n] = t[row[n], j[n]]
    z = k * 2
}
`)
	bounds := indexBounds(g, map[string]int64{"V": 5, "W": 9, "N": 3})
	assert.Equal(t, map[string]int64{"i": 5, "j": 9}, bounds, "k indexes nothing")
}

func TestByteText(t *testing.T) {
	texts := map[int64]string{0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 3 << 30: "3.0 GiB", 1 << 62: "4.0 EiB"}
	for n, want := range texts {
		assert.Equal(t, want, byteText(n))
	}
}

// Whatever the roundings do, an element that is off by more than half of its size and its
// neighbours' is either refused or told not to have been decided: no tolerance is vacuous.
func TestNoToleranceIsVacuous(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	for range 500 {
		n := 1 + random.IntN(40)
		r := &reference{}
		noise := math.Exp(random.NormFloat64()*8 - 10)
		around := func() []float64 {
			out := make([]float64, n)
			for i := range out {
				out[i] = r.exact[i] + noise*random.NormFloat64()*math.Exp(3*random.NormFloat64())
			}
			return out
		}
		r.exact = make([]float64, n)
		for i := range r.exact {
			r.exact[i] = random.NormFloat64()
		}
		r.strict, r.sampled = around(), [][]float64{around(), around()}
		got := make([]float32, n)
		for i := range got {
			got[i] = float32(r.exact[i])
		}
		at := random.IntN(n)
		got[at] += float32(0.6 * (math.Abs(r.exact[at]) + rootMeanSquare(r.exact)))
		c := r.compare(floats(t, ir.F32, got...), 1)
		assert.True(t, c.bad == 1 || c.undecided > 0, "noise %v", noise)
		if noise < 1e-6 {
			assert.Equal(t, 1, c.bad)
		}
	}
}

// TestWhatIsPrintedIsApplied: a result passes exactly where the printed error is within the printed tolerance, both in units in the last place and
// relative to the element's size, though each element has a tolerance of its own.
func TestWhatIsPrintedIsApplied(t *testing.T) {
	random := rand.New(rand.NewPCG(2, 1))
	for range 500 {
		n := 1 + random.IntN(40)
		r, got, noise := &reference{}, make([]float32, n), math.Exp(random.NormFloat64()*4-12)
		for i := range got {
			exact, own := random.NormFloat64()*math.Exp(2*random.NormFloat64()), noise*math.Exp(3*random.NormFloat64())
			r.exact, r.strict = append(r.exact, exact), append(r.strict, exact+own*random.NormFloat64())
			got[i] = float32(exact + 2*own*random.NormFloat64())
		}
		c := r.compare(floats(t, ir.F32, got...), 1)
		assert.Equal(t, c.bad == 0, c.part <= 1, "noise %v", noise)
		assert.Equal(t, c.bad == 0, c.relative <= c.tolerance*(1+1e-12), "noise %v", noise)
		assert.Equal(t, c.bad == 0, c.worst <= (c.roundings+c.drift)*(1+1e-12), "noise %v", noise)
	}

	r := &reference{exact: slices.Repeat([]float64{1}, 20), strict: slices.Repeat([]float64{1}, 20)}
	r.strict[3] = 1.01
	got := slices.Repeat([]float32{1}, 20)
	got[3] = 1.02
	c := r.compare(floats(t, ir.F32, got...), 1)
	assert.Zero(t, c.bad)
	assert.InDelta(t, 0.04, c.tolerance, 1e-4)
	assert.Contains(t, c.toleranceText(ir.F32, 1), "4 times what rounding each operation does to this element")
}

// TestIllConditionedElementsAreCounted: what roundings move by their size tells nothing, be it few elements or most.
func TestIllConditionedElementsAreCounted(t *testing.T) {
	for ill, counted := range map[int]int{0: 0, 1: 1, 4: 20, 20: 20} { // beyond one in ten, all others are allowed as much
		r := &reference{exact: slices.Repeat([]float64{1}, 20), strict: slices.Repeat([]float64{1}, 20)}
		for i := range ill {
			r.strict[i] = 3
		}
		c := r.compare(floats(t, ir.F32, slices.Repeat([]float32{1}, 20)...), 1)
		assert.Zero(t, c.bad)
		assert.Equal(t, counted, c.illConditioned, "%d", ill)
	}
	c := comparison{illConditioned: 1}
	assert.Equal(t, "1 element is too ill-conditioned to check: rounding operations moves results so far that more than 10 % of its size is allowed", c.illText())
}

// The loss of a vocabulary of one is 0 in f64, and roundings move it by more than its size: a
// result of 0 is right all the same, and one that roundings may have made tells nothing.
func TestExactResultsAreDecided(t *testing.T) {
	r := &reference{exact: []float64{0, 0}, strict: []float64{1e-6, -1e-6}}
	assert.Zero(t, r.compare(floats(t, ir.F32, 0, 0), 1).undecided)
	c := r.compare(floats(t, ir.F32, 0, 2e-6), 1)
	assert.Equal(t, 1, c.undecided)
	assert.Zero(t, c.bad)
}

// An element that cancels may be nearly exact in every run of a reference, by chance: further roundings
// of that element decide. They excuse no element that they leave alone, and no result with many such elements.
func TestDoubtfulElementsAreSampledAgain(t *testing.T) {
	asked := 0
	r := &reference{exact: []float64{1, 1, 1}, strict: []float64{1, 1, 1}, sampled: [][]float64{{1, 1, 1}}}
	r.resample = func(points [][]int, how interp.Options) ([]float64, error) {
		asked += len(points)
		return slices.Repeat([]float64{1 + 1e-3*float64(how.Seed%2)}, len(points)), nil
	}
	got := floats(t, ir.F32, 1, 1.003, 1.1)
	assert.Equal(t, 2, r.compare(got, 1).bad)
	require.NoError(t, r.sampleDoubtful(got, 1))
	assert.Equal(t, 2*doubtfulRoundings, asked, "the elements outside the tolerance, and they alone")
	c := r.compare(got, 1)
	assert.Equal(t, 1, c.bad)
	assert.Equal(t, []int{2}, c.index)

	many := &reference{exact: make([]float64, mostDoubtful+1), resample: r.resample}
	wrong := floats(t, ir.F32, slices.Repeat([]float32{1}, mostDoubtful+1)...)
	require.NoError(t, many.sampleDoubtful(wrong, 1))
	assert.Equal(t, mostDoubtful+1, many.compare(wrong, 1).bad)
}

func TestUnitsInTheLastPlace(t *testing.T) {
	assert.Equal(t, 0x1p-23, unitOf(ir.F32, 1))
	assert.Equal(t, 0x1p-23, unitOf(ir.F32, 1.999))
	assert.Equal(t, 0x1p-24, unitOf(ir.F32, 0.75))
	assert.Equal(t, 0x1p-7, unitOf(ir.BF16, 1))
	r := &reference{exact: []float64{1, 1}, strict: []float64{1, 1 + 0x1p-7}}
	c := r.compare(floats(t, ir.BF16, 1+0x1p-7, 1), 1)
	assert.Equal(t, 1.0, c.worst)
	assert.Equal(t, 1.0, c.strict)
	assert.Equal(t, 0x1p-7, c.relative)
	assert.Equal(t, "60,000", thousands(60000))
	assert.Equal(t, "-1,234,567", thousands(-1234567))
	assert.Equal(t, "999", thousands(999))
}

// TestSamplesShareReductions: elements that are dear alone are compared in groups that share what makes them so; all are
// elements of the output, none twice, and the whole stays within the budget.
func TestSamplesShareReductions(t *testing.T) {
	for _, c := range []struct {
		y       string
		n, m    int
		atLeast int // elements that are compared
	}{
		{"softmax(x, axis=1)", 16, 4 << 20, samples},                    // a row each
		{"softmax(x, axis=0)", 4 << 20, 16, samples},                    // a column each
		{"x / l2_norm(x)", 1 << 11, 1 << 11, samples},                   // all
		{"layer_norm(x, axis=(0, 1))", 1 << 10, 1 << 10, samples},       // all
		{"x * 2", 1 << 12, 1 << 12, samples},                            // cheap
		{"transpose(x @ transpose(x))[:, :1024]", 1 << 10, 1 << 10, 64}, // a row and a column each
	} {
		g := graphOf(t, fmt.Sprintf("graph g(x: f32[%d, %d]) -> (y: f32[%[1]d, %[2]d]) { y = %[3]s }", c.n, c.m, c.y))
		points, _ := samplePoints(g, 0, nil, []int{c.n, c.m}, rand.New(rand.NewPCG(1, 1)))
		assert.GreaterOrEqual(t, len(points), c.atLeast, c.y)
		seen := map[[2]int]bool{}
		for _, p := range points {
			assert.True(t, p[0] >= 0 && p[0] < c.n && p[1] >= 0 && p[1] < c.m, "%s: %v", c.y, p)
			assert.False(t, seen[[2]int{p[0], p[1]}], "%s: %v twice", c.y, p)
			seen[[2]int{p[0], p[1]}] = true
		}
		assert.True(t, seen[[2]int{0, 0}], c.y)
	}
}

// TestOnlyGPUsRoundToTF32: a run on the CPU is held to f32, and a GPU's to what tf32 does, which the message names.
func TestOnlyGPUsRoundToTF32(t *testing.T) {
	g := graphOf(t, "@tf32 graph g(a: f32[4, 4], b: f32[4, 4]) -> (y: f32[4, 4]) { y = a @ b }")
	assert.False(t, asRun(g, &result{kind: runtime.CPU}).TF32)
	assert.True(t, asRun(g, &result{kind: runtime.CUDA}).TF32)
	assert.True(t, g.TF32)
	r := &reference{exact: []float64{1, 1}, strict: []float64{1, 1}, sampled: [][]float64{{1.001, 1.001}}, tf32: true}
	c := r.compare(floats(t, ir.F32, 1, 1), 1)
	assert.InDelta(t, 0.004, c.tolerance, 1e-4)
	assert.Contains(t, c.toleranceText(ir.F32, 1), "allowed: 4.0e-03 of its size: ")
	assert.Contains(t, c.toleranceText(ir.F32, 1), "4 times what rounding each operation, and the factors of products to tf32, does to nine in ten elements")
}

// TestPlainReference: without the run whose roundings are drawn, twice as much is allowed for roundings of operations.
func TestPlainReference(t *testing.T) {
	got, err := tensor.New(ir.F32, 2)
	require.NoError(t, err)
	full := &reference{exact: []float64{1, 2}, strict: []float64{1.5, 2.5}}
	plain := &reference{exact: full.exact, strict: full.strict, plain: true}
	for i, gap := range full.gaps() {
		assert.Equal(t, drawnGap*gap, plain.gaps()[i])
	}
	c := plain.compare(got, 1)
	assert.Contains(t, c.toleranceText(ir.F32, 1), "8 times what rounding each operation does")
	c = full.compare(got, 1)
	assert.Contains(t, c.toleranceText(ir.F32, 1), "4 times what rounding each operation does")
}
