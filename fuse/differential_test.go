package fuse

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/interp"
)

// The sizes at which plans are compared with their graphs: nothing, one, below,
// at and above a vector, more than a warp, and more than a chunk of a split reduction.
var testSizes = []int64{0, 1, 2, 7, 8, 33, 130}

// affordable is the work, in evaluations, that one comparison may take.
const affordable = 300_000

// holds reports whether a variant may run for the sizes.
func holds(v *ir.Variant, sizes map[string]int64) bool {
	if v.When != nil {
		if yes, ok := ir.EvalSize(v.When, sizes); !ok || yes == 0 {
			return false
		}
	}
	for name, by := range v.Facts.Divisible {
		if by > 1 && sizes[name]%by != 0 {
			return false
		}
	}
	for _, m := range v.Facts.Multiples {
		if !m.Holds(sizes) {
			return false
		}
	}
	return true
}

// comparePlan runs every variant that may run for the inputs and compares the
// results with the graph's. It returns the number of runs.
func comparePlan(t rapid.TB, g *ir.Graph, p *ir.Plan, inputs []*interp.Tensor, sizes map[string]int64, about string) int {
	t.Helper()
	opts := interp.Options{}
	if g.Numerics == ir.Strict {
		opts.Mode = interp.Strict
	}
	want, err := interp.Run(g, inputs, opts)
	if errors.As(err, new(*ir.IndexError)) {
		runs := compareFaults(t, p, err, inputs, opts, sizes, about)
		if f := withLastBlocks(p); f != nil {
			runs += compareFaults(t, f, err, inputs, opts, sizes, about+"\nin last blocks")
		}
		return runs
	}
	require.NoError(t, err, about)
	runs := compareVariants(t, g, p, want, inputs, opts, sizes, about)
	if f := withLastBlocks(p); f != nil {
		runs += compareVariants(t, g, f, want, inputs, opts, sizes, about+"\nin last blocks")
	}
	return runs
}

// compareFaults runs every variant on inputs with an index outside: the error is the
// graph's.
func compareFaults(t rapid.TB, p *ir.Plan, want error, inputs []*interp.Tensor, opts interp.Options,
	sizes map[string]int64, about string) int {
	t.Helper()
	runs := 0
	for label, force := range forced(p, sizes) {
		_, err := interp.RunPlan(p, inputs, interp.PlanOptions{Options: opts, Force: force})
		require.Equal(t, want, err, about+"\n"+label)
		runs++
	}
	return runs
}

// withLastBlocks is a plan in which kernels that last blocks of others run have the bodies that
// those have for them, variant by variant; nil where there are none.
func withLastBlocks(p *ir.Plan) *ir.Plan {
	out := *p
	out.Kernels = nil
	bodies := map[*ir.Kernel][]*ir.Variant{}
	for _, k := range p.Kernels {
		if k.LastBlock != nil {
			for _, v := range k.Variants {
				body := *v.LastBlock
				body.When = v.When
				bodies[k.LastBlock.Kernel] = append(bodies[k.LastBlock.Kernel], &body)
			}
		}
		own := *k
		if b := bodies[k]; b != nil {
			own.Variants = b
		}
		out.Kernels = append(out.Kernels, &own)
	}
	if len(bodies) == 0 {
		return nil
	}
	return &out
}

// forced gives each variant of each kernel that may run for the sizes in turn.
func forced(p *ir.Plan, sizes map[string]int64) iter.Seq2[string, map[string]int] {
	return func(yield func(string, map[string]int) bool) {
		for n, more := 0, true; more; n++ {
			more = false
			force := map[string]int{}
			for _, k := range p.Kernels {
				alone := k.Alone(sizes)
				if n < len(k.Variants) && holds(k.Variants[n], sizes) && (alone == nil || alone == k.Variants[n]) {
					force[k.Name] = n
				}
				more = more || n+1 < len(k.Variants)
			}
			if len(force) > 0 && !yield(fmt.Sprintf("sizes %v, variants %v", sizes, force), force) {
				return
			}
		}
	}
}

func compareVariants(t rapid.TB, g *ir.Graph, p *ir.Plan, want, inputs []*interp.Tensor, opts interp.Options,
	sizes map[string]int64, about string) int {
	t.Helper()
	runs := 0
	for label, force := range forced(p, sizes) {
		label = about + "\n" + label
		got, err := interp.RunPlan(p, inputs, interp.PlanOptions{Options: opts, Force: force})
		require.NoError(t, err, label)
		if g.Numerics == ir.Strict {
			requireBits(t, want, got, label)
		} else {
			requireSame(t, want, got, 1e-12, label)
		}
		runs++
	}
	return runs
}

// compareAtSizes compares a program's plan with its graph at the test sizes: at half of them, which its text draws, unless
// FUSEC_TEST_FULL is set or none of these suits the program.
func compareAtSizes(t rapid.TB, src string) {
	t.Helper()
	var first, others []int64
	for _, n := range testSizes {
		if draws(src+fmt.Sprint(n), 2) {
			first = append(first, n)
		} else {
			others = append(others, n)
		}
	}
	if compareRuns(t, src, first) == 0 {
		compareAt(t, src, others...)
	}
}

// compareAt compares a program's plan with its graph at sizes, of which one at least suits the program.
func compareAt(t rapid.TB, src string, at ...int64) {
	t.Helper()
	require.Positive(t, compareRuns(t, src, at), "no sizes suit the program\n%s", src)
}

// compareRuns compares a program's plan with its graph at sizes, and returns how many runs that were. A program too costly at
// a size is tried with that size for its last symbol alone.
func compareRuns(t rapid.TB, src string, at []int64) (runs int) {
	t.Helper()
	g := parse(t, src)
	p, err := Plan(g, Options{})
	require.NoError(t, err, src)
	for _, n := range at {
		for _, sizes := range candidates(g, n) {
			if !accepts(g, sizes) || interp.Cost(g, sizes) > affordable {
				continue
			}
			inputs, err := drawInputs(g, sizes, uint64(n))
			if err != nil {
				continue
			}
			runs += comparePlan(t, g, p, inputs, sizes, src)
		}
	}
	return runs
}

func candidates(g *ir.Graph, n int64) []map[string]int64 {
	all := sizesOf(g, n)
	out := []map[string]int64{all}
	if len(g.Symbols) > 1 {
		mixed := sizesOf(g, 2)
		mixed[g.Symbols[len(g.Symbols)-1].Name] = n
		bench := sizesOf(g, n)
		for _, s := range g.Symbols {
			if s.Default > 0 && s.Default < 64 {
				bench[s.Name] = s.Default
			}
		}
		for _, other := range []map[string]int64{mixed, bench} {
			if !slices.ContainsFunc(out, func(o map[string]int64) bool { return maps.Equal(o, other) }) {
				out = append(out, other)
			}
		}
	}
	return out
}

func TestPlanIsGraphForExamples(t *testing.T) {
	for name, src := range examplePrograms(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name == "group_norm.fuse" { // 32 groups of channels: no test size is a multiple
				src = strings.Replace(src, "x, 32", "x, 2", 1)
			}
			compareAtSizes(t, src)
		})
	}
}

// referenceCase is a program of testdata/reference with its inputs.
type referenceCase struct {
	Name    string
	Program string
	Inputs  []struct {
		DType string
		Shape []int
		Data  []json.RawMessage
	}
}

// TestPlanIsGraphForReferencePrograms plans every program of the reference values:
// each library function and each construct of the language is among them. One in three, which its text draws,
// unless FUSEC_TEST_FULL is set.
func TestPlanIsGraphForReferencePrograms(t *testing.T) {
	files, err := filepath.Glob("../testdata/reference/*.json")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			var cases []referenceCase
			require.NoError(t, json.Unmarshal(text, &cases))
			for i, c := range cases {
				if testing.Short() && i%8 != 0 || !testing.Short() && !draws(c.Program, 3) || strings.HasSuffix(c.Program, ".fuse") {
					continue
				}
				t.Run(c.Name, func(t *testing.T) { compareReference(t, c) })
			}
		})
	}
}

func compareReference(t *testing.T, c referenceCase) {
	g := parse(t, c.Program)
	p, err := Plan(g, Options{})
	require.NoError(t, err, c.Program)
	inputs := make([]*interp.Tensor, len(c.Inputs))
	for i, in := range c.Inputs {
		dtype, ok := ir.DTypeNamed(in.DType)
		require.True(t, ok, in.DType)
		inputs[i] = interp.New(dtype, in.Shape...)
		for n, e := range in.Data {
			text := strings.Trim(string(e), `"`)
			var err error
			if dtype.IsFloat() {
				inputs[i].F[n], err = strconv.ParseFloat(text, 64)
			} else {
				inputs[i].I[n], err = strconv.ParseInt(text, 10, 64)
			}
			require.NoError(t, err)
		}
	}
	shapes := make([][]int, len(inputs))
	for i, in := range inputs {
		shapes[i] = in.Shape
	}
	sizes, err := ir.BindGraph(g, shapes)
	require.NoError(t, err)
	if interp.Cost(g, sizes) > affordable {
		t.Skip("too costly to interpret")
	}
	comparePlan(t, g, p, inputs, sizes, c.Program)
}

// programs are small and each shows one thing that a plan might get wrong.
var programs = []struct{ name, src string }{
	{"sizes beside a result may be zero although its rows are not",
		`graph g(x: f32[N, M]) -> (y: f32[N]) { y = sum(x, axis=1) / max(M - 1, 0) }`},
	{"results that are equal", `graph g(x: f32[N, M]) -> (a: f32[N, M], b: f32[N, M], c: f32[N], d: f32[N], e: f32[N]) {
    a = x + 1
    b = x + 1
    c = sum(x, axis=1)
    d = sum(x, axis=1)
    e = c
}`},
	{"checks of rows", `@strict @bench(N=1048576) graph g(x: f32[V, 2], at: u8[N], m: bool[N]) -> (y: f32[N, 2]) {
    y = where(m[:, none], x[at], 0)
}`},
	{"checks of a matrix", `@strict @bench(N=4096, M=4096) graph g(x: f32[V], at: i64[N, M]) -> (y: f32[M, N], s: f32[N]) {
    y[i, j] = x[at[j, i] + j] * 2
    s = sum(x[abs(at) % 4], axis=1)
}`},
	{"checks of an index that is folded", `@strict graph g(x: f32[K, V], w: f32[N, M]) -> (y: f32[N, V], z: f32[N]) {
    at = argmax(w, axis=1)
    y = exp(x[at]) * 2
    z[n] = sum[v: V where v <= at[n]] x[at[n] / 2, at[n] - v]
}`},
	{"reductions of reductions of one element", `graph g(x: f32[1, 1, N, M]) -> (y: f32[1], z: f32[1, 1]) { y = sum(max(x, axis=(2, 3)), axis=1); z = max(sum(x, axis=3), axis=2) }`},
	{"last blocks whose results lie in another order", `@bench(B=2, N=4096, M=512) graph g(x: f32[B, N, M]) -> (y: f32[M, B]) { y[m, b] = sum[n: N] x[b, n, m] }`},
	{"last blocks of three axes in another order", `@bench(B=2, C=3, N=4096, M=64) graph g(x: f32[B, C, N, M]) -> (y: f32[M, C, B]) { y[m, c, b] = sum[n: N] x[b, c, n, m] }`},
	{"strict constants have their own type", `@strict graph g(x: f16[N]) -> (y: f16[N]) { y = x * 0.70710678 + 0.1 }`},
}

func TestPlanIsGraphForPrograms(t *testing.T) {
	for _, c := range programs {
		t.Run(c.name, func(t *testing.T) { compareAtSizes(t, c.src) })
	}
}

// TestPlanIsGraphForSpecialValues puts infinities, NaN and zeros of either sign into
// rows of reductions: rows of them alone, and rows with one among ordinary values. It takes one program in three, which its
// text draws, unless FUSEC_TEST_FULL is set.
func TestPlanIsGraphForSpecialValues(t *testing.T) {
	for _, c := range kernelTable {
		if !draws(c.src, 3) {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			g := parse(t, c.src)
			p, err := Plan(g, Options{})
			require.NoError(t, err)
			sizes := sizesOf(g, 9)
			for n, rare := range []float64{math.Inf(-1), math.Inf(1), math.NaN(), math.Copysign(0, -1)} {
				inputs, err := drawInputs(g, sizes, uint64(n))
				require.NoError(t, err)
				for _, in := range inputs {
					for i := range in.F {
						if row := i / 9 % 4; row == 0 || row == 1 && i%9 == n || row == 2 && i%9 > 0 {
							in.F[i] = rare
						}
					}
				}
				comparePlan(t, g, p, inputs, sizes, fmt.Sprintf("%s\nwith %v", c.src, rare))
			}
		})
	}
}
