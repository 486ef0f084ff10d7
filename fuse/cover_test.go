package fuse

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
)

// classPrograms have kernels of every mapping that is chosen by size.
var classPrograms = []struct{ name, src string }{
	{"norm of rows", `graph g(x: f32[N, M]) -> (y: f32[N, M]) { y = layer_norm(x) }`},
	{"norm of half rows", `graph g(x: bf16[N, M]) -> (y: bf16[N, M]) { y = rms_norm(x) }`},
	{"softmax", `graph g(x: f16[N, M]) -> (y: f16[N, M]) { y = softmax(x) }`},
	{"softmax over columns", `graph g(x: f32[N, M]) -> (y: f32[N, M]) { y = softmax(x, axis=0) }`},
	{"sums of rows", `graph g(x: f32[N, M]) -> (y: f32[N]) { y = sum(x, axis=1) }`},
	{"largest of rows, and where", `graph g(x: f32[N, M]) -> (y: f32[N], i: i64[N]) {
		y = max(x, axis=1)
		i = argmax(x, axis=1)
	}`},
	{"sums of columns", `graph g(x: bf16[N, M]) -> (y: f32[M]) { y = sum(f32(x), axis=0) }`},
	{"mean of all", `graph g(x: f32[N, M]) -> (y: f32[]) { y = mean(x) }`},
	{"loss", `graph g(x: bf16[N, M], t: i32[N]) -> (y: f32[]) { y = mean(cross_entropy(f32(x), t)) }`},
	{"groups", `graph g(x: f32[N, 8, M]) -> (y: f32[N, 8, M]) { y = group_norm(x, 2) }`},
	{"all in one group", `graph g(x: f32[N, 8, M]) -> (y: f32[N, 8, M]) { y = group_norm(x, 1) }`},
	{"statistics of a batch", `graph g(x: f32[N, 2, M]) -> (y: f32[N, 2, M]) {
		m = mean(x, axis=(0, 2), keep=true)
		y = (x - m) * rsqrt(mean((x - m) * (x - m), axis=(0, 2), keep=true) + 0.00001)
	}`},
	{"scan of rows", `graph g(x: f32[N, M]) -> (y: f32[N, M]) { y = cumsum(x, axis=1) }`},
	{"scan of columns", `graph g(x: f32[N, M]) -> (y: f32[N, M]) { y = cumsum(x, axis=0) }`},
	{"sort", `graph g(x: f32[N, M]) -> (y: f32[N, M]) { y = sort(x, axis=1) }`},
	{"points", `graph g(x: bf16[N, M], b: bf16[M]) -> (y: bf16[N, M]) { y = gelu(x + b) }`},
	{"transposed", `graph g(x: bf16[N, M]) -> (y: bf16[M, N]) { y = transpose(x) * 2 }`},
	{"gather", `graph g(x: f32[N, M], at: i32[N]) -> (y: f32[N, M]) { y = x[at] }`},
	{"scatter", `graph g(x: f32[N, M], at: i32[N]) -> (y: f32[64, M]) { y[k: 64, j: M] = sum[i: N where at[i] == k] x[i, j] }`},
	{"product of floats", `graph g(a: f32[N, M], b: f32[M, N]) -> (y: f32[N, N]) { y = a @ b }`},
	{"product of halves", `graph g(a: bf16[N, M], b: bf16[M, N]) -> (y: bf16[N, N]) { y = relu(a @ b) }`},
	{"matrix times vector", `graph g(a: bf16[N, M], b: bf16[M]) -> (y: bf16[N]) { y = a @ b }`},
	{"softmax times matrix", `graph g(a: f32[N, M], b: f32[M, N]) -> (y: f32[N, N]) { y = softmax(a) @ b }`},
	{"attention", `graph g(q: bf16[N, 64], k: bf16[M, 64], v: bf16[M, 64]) -> (y: bf16[N, 64]) { y = softmax(q @ transpose(k)) @ v }`},
	{"sums beside rows", `graph g(x: f32[N, M], d: f32[N, M]) -> (y: f32[N, M], s: f32[M]) {
		y = d * x - mean(d * x, axis=1, keep=true)
		s = sum(d * x, axis=0)
	}`},
}

// classConstants are the numbers that conditions compare sizes with.
func classConstants(p *ir.Plan) []int64 {
	found := map[int64]bool{}
	for _, k := range p.Kernels {
		for _, v := range k.Variants {
			if v.When == nil {
				continue
			}
			ir.Walk(v.When, func(e *ir.Expr) bool {
				if e.Op == ir.OpLe || e.Op == ir.OpLt {
					for _, a := range e.Args {
						if a.Op == ir.OpConst {
							found[a.Int] = true
						}
					}
				}
				return true
			})
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// TestLiteralSizesAroundClasses plans each program with each size baked in that is at a bound of a size
// class, one below or one above it, and with none and one: every other of them in one of four ways, in turn, unless FUSEC_TEST_FULL
// is set. Every kernel then has a variant that holds.
func TestLiteralSizesAroundClasses(t *testing.T) {
	for _, c := range classPrograms {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			g, devices := parse(t, c.src), []string{"sm_90a", "sm_80"}
			if !inFull() { // the lists of candidates of the other are shorter
				devices = devices[:1]
			}
			for _, device := range devices {
				if testing.Short() && device != "sm_90a" {
					continue
				}
				d, err := ir.DeviceNamed(device)
				require.NoError(t, err)
				p, err := Plan(g, Options{Device: d})
				require.NoError(t, err)
				tried := map[int64]bool{0: true, 1: true}
				for _, n := range classConstants(p) {
					tried[max(0, n-1)], tried[n], tried[n+1] = true, true, true
				}
				for at, n := range slices.Sorted(maps.Keys(tried)) {
					for way, sizes := range []map[string]int64{{"M": n}, {"N": n}, {"N": 256, "M": n}, {"N": n, "M": 256}} {
						if inFull() || at%8 == 2*way {
							requireCovered(t, g, d, sizes)
						}
					}
				}
			}
		})
	}
}

func requireCovered(t *testing.T, g *ir.Graph, d ir.Device, sizes map[string]int64) {
	t.Helper()
	about := fmt.Sprint(sizes)
	var p *ir.Plan
	var err error
	require.NotPanics(t, func() { p, err = Plan(g, Options{Device: d, Specialize: sizes}) }, about)
	require.NoError(t, err, about)
	for _, k := range p.Kernels {
		require.True(t, ir.Covers(k.Variants, p.Graph.Facts()), "%s, kernel %s", about, k.Name)
	}
}

// TestLiteralProgramsPlan plans programs of literal sizes that were too much for the planner once, in
// which a step left nothing of a list of variants.
func TestLiteralProgramsPlan(t *testing.T) {
	for _, src := range []string{
		`graph g(x: f32[256, 65536]) -> (y: f32[256, 65536]) { y = layer_norm(x) }`,
		`graph g(x: f32[1024, 49152]) -> (y: f32[1024, 49152]) { y = layer_norm(x) }`,
		`graph g(x: f32[1024, 262144]) -> (y: f32[1024, 262144]) { y = layer_norm(x) }`,
		`graph g(x: f32[1, 8, 256, 256]) -> (y: f32[1, 8, 256, 256]) { y = group_norm(x, 1) }`,
		`graph g(x: f32[16, 2, 256, 256]) -> (y: f32[16, 2, 256, 256], m: f32[2], v: f32[2]) { y, m, v = batch_norm_train(x) }`,
		`graph g(x: f32[128, 3, 24, 32, 32], w: f32[24, 3, 3, 3, 3]) -> (y: f32[128]) {
			y = mean(group_norm(conv3d(x, w), 8), axis=(1, 2, 3, 4))
		}`,
	} {
		for _, d := range ir.Devices() {
			_, err := Plan(parse(t, src), Options{Device: d})
			require.NoError(t, err, src)
		}
	}
}

// TestVariantsComeFromOnePlace: a list of variants that was not checked cannot become a kernel's.
func TestVariantsComeFromOnePlace(t *testing.T) {
	var found []string
	files := token.NewFileSet()
	packages, err := parser.ParseDir(files, ".", func(f fs.FileInfo) bool { return !strings.HasSuffix(f.Name(), "_test.go") }, 0)
	require.NoError(t, err)
	for _, p := range packages {
		ast.Inspect(p, func(n ast.Node) bool {
			if a, ok := n.(*ast.AssignStmt); ok {
				for _, to := range a.Lhs {
					if s, ok := to.(*ast.SelectorExpr); ok && s.Sel.Name == "Variants" {
						found = append(found, files.Position(n.Pos()).Filename)
					}
				}
			}
			return true
		})
	}
	assert.Equal(t, []string{"program.go"}, found)
}
