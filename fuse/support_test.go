package fuse

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/diag"
	"github.com/fusec/fusec/ir/interp"
	"github.com/fusec/fusec/parser"
)

// parse returns the only graph of a program.
func parse(t rapid.TB, src string) *ir.Graph {
	t.Helper()
	return parseGraph(t, src, "")
}

// parseGraph is the graph of a name in a program that holds several.
func parseGraph(t rapid.TB, src, name string) *ir.Graph {
	t.Helper()
	f, err := parser.Parse("test.fuse", []byte(src), parser.Options{})
	if err != nil {
		t.Fatalf("%s\n%s", src, diag.Render(err, func(n string) (string, bool) { return src, n == "test.fuse" }))
	}
	g, err := f.Graph(name)
	require.NoError(t, err)
	return g
}

// planOf plans a program that has nothing to complain about, and returns what runs at its usual sizes.
func planOf(t rapid.TB, src string) *ir.Plan {
	t.Helper()
	p, err := Plan(parse(t, src), Options{})
	require.NoError(t, err, src)
	return p.At(nil)
}

// examplePrograms returns the text of every example by name.
func examplePrograms(t rapid.TB) map[string]string {
	t.Helper()
	return textsOf(t, "../examples/*.fuse")
}

// textsOf returns the text of every program that the pattern matches, by the name of its
// file.
func textsOf(t rapid.TB, pattern string) map[string]string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	require.NoError(t, err)
	require.NotEmpty(t, files)
	out := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		out[filepath.Base(file)] = string(text)
	}
	return out
}

// sizesOf gives every symbol of g the size n.
func sizesOf(g *ir.Graph, n int64) map[string]int64 {
	out := map[string]int64{}
	for _, s := range g.Symbols {
		out[s.Name] = n
	}
	return out
}

// accepts reports whether the sizes satisfy the graph's constraints.
func accepts(g *ir.Graph, sizes map[string]int64) bool {
	for _, c := range g.Constraints {
		if v, ok := ir.EvalSize(c.Cond, sizes); !ok || v == 0 {
			return false
		}
	}
	return true
}

// drawInputs makes inputs of the given sizes: floats about 1 in magnitude, small
// integers of either sign.
func drawInputs(g *ir.Graph, sizes map[string]int64, seed uint64) ([]*interp.Tensor, error) {
	rng := rand.New(rand.NewPCG(seed, 1))
	out := make([]*interp.Tensor, len(g.Inputs))
	for i, v := range g.Inputs {
		shape := make([]int, len(v.Axes))
		for d, e := range v.Shape() {
			n, ok := ir.EvalSize(e, sizes)
			if !ok || n < 0 {
				return nil, fmt.Errorf("input %s has no shape at %v", v.Name, sizes)
			}
			shape[d] = int(n)
		}
		out[i] = interp.New(v.Type, shape...)
		for n := range out[i].F {
			out[i].F[n] = rng.NormFloat64()
		}
		for n := range out[i].I {
			out[i].I[n] = drawInteger(v.Type, rng)
		}
	}
	return out, nil
}

func drawInteger(t ir.DType, rng *rand.Rand) int64 {
	switch {
	case t == ir.Bool:
		return rng.Int64N(2)
	case t.Info().Signed:
		return rng.Int64N(6) - 2
	}
	return rng.Int64N(4)
}

// requireSame compares results: integers and bools are equal, floats agree within
// tol relative to the largest, and to one unit in the last place of their type.
func requireSame(t rapid.TB, want, got []*interp.Tensor, tol float64, about string) {
	t.Helper()
	require.Len(t, got, len(want), about)
	for o := range want {
		require.Equal(t, want[o].Shape, got[o].Shape, about)
		require.Equal(t, want[o].I, got[o].I, about)
		eps := 0.0
		if want[o].Type != ir.F64 {
			eps = want[o].Type.Info().Epsilon
		}
		for n, a := range want[o].F {
			b := got[o].F[n]
			if math.Float64bits(a) == math.Float64bits(b) || a != a && b != b || a == b {
				continue
			}
			limit := tol*(1+math.Abs(a)) + eps*math.Abs(a)
			if eps > 0 {
				limit += smallestStep(want[o].Type)
			}
			if !(math.Abs(a-b) <= limit) {
				assert.Failf(t, "results differ", "output %d element %d: graph %v, plan %v\n%s", o, n, a, b, about)
				t.FailNow()
			}
		}
	}
}

// smallestStep is a bound on the distance between subnormal numbers of a type.
func smallestStep(t ir.DType) float64 {
	switch t {
	case ir.F32, ir.BF16:
		return 0x1p-126
	case ir.F16:
		return 0x1p-24
	}
	return 0x1p-9
}

// requireBits compares results bit for bit; any NaN is any other.
func requireBits(t rapid.TB, want, got []*interp.Tensor, about string) {
	t.Helper()
	require.Len(t, got, len(want), about)
	for o := range want {
		require.Equal(t, want[o].I, got[o].I, about)
		for n, a := range want[o].F {
			b := got[o].F[n]
			if math.Float64bits(a) != math.Float64bits(b) && !(a != a && b != b) {
				assert.Failf(t, "results differ", "output %d element %d: %v (%x) and %v (%x)\n%s", o, n, a, a, b, b, about)
				t.FailNow()
			}
		}
	}
}
