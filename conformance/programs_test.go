package conformance

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/parser"
	"github.com/fusec/fusec/runtime/tensor"
)

// sizeSets are sizes for the symbols of a graph, in turn: single elements, rests of
// warps and vectors, more than a block, and nothing.
var sizeSets = [][]int64{{1}, {31, 33}, {3, 70, 33, 130, 2, 17}, {64}, {257, 1025}, {0, 5}}

// programSizes leave rests of vectors, warps, blocks and pieces of a row.
var programSizes = [][]int64{{1, 1}, {3, 0}, {0, 5}, {2, 31}, {5, 33}, {33, 128}, {3, 1023}, {130, 1025}, {2, 4099}, {3, 16384}}

// layered are programs whose layers share kernels: what differs from one launch to the
// next is tensors, tensor maps among them.
var layered = map[string]string{
	"products": `graph g(x: bf16[N, 256], u: bf16[256, 256], v: bf16[256, 256], w: bf16[256, 256], b: bf16[256], c: bf16[256]) -> (y: bf16[N, 256]) {
		p = rms_norm(gelu(x @ u + b), c)
		q = rms_norm(gelu(p @ v + c), b)
		y = rms_norm(gelu(q @ w + b), b)
	}`,
	"attention": `graph g(q: bf16[2, N, 64], r: bf16[2, N, 64], k: bf16[2, M, 64], l: bf16[2, M, 64], v: bf16[2, M, 64]) -> (x: bf16[2, N, 64], y: bf16[2, N, 64]) {
		x = attention(q, k, v)
		y = attention(r, l, v)
	}`,
	"rows": `@bench(N=64, M=64) graph g(x: f32[N, M], s: f32[M], t: f32[M]) -> (y: f32[N, M]) {
		p = cumsum(softmax(x * s), axis=0)
		q = cumsum(softmax(p * t), axis=0)
		r = cumsum(softmax(q * s), axis=0)
		y = cumsum(softmax(r * t), axis=0)
	}`,
}

// programFamilies are the examples, the programs of testdata, and programs of several layers.
func programFamilies(t testing.TB) []family {
	examples := family{name: "examples", rows: fileRows(t, "examples/*.fuse"), sizes: sizeSets, fill: exampleInput, variants: all,
		on: []pass{{engine: "gpu", most: 1 << 24}}, compile: onAll(true, "sm_90a", "sm_80")}
	if inFull() {
		examples.compile = onAll(true, "sm_90a", "sm_80", "sm_89", "sm_75")
	}
	examples.compile[0] = compiling{archs: []string{"sm_90a"}, short: true}
	for _, arch := range []string{"sm_80", "sm_90a"} {
		examples.on = append(examples.on, pass{engine: arch, rows: []string{"softmax", "gelu_chain"},
			sizes: [][]int64{{3, 70}, {2, 1025}, {5, 64}}})
	}
	return []family{examples,
		{name: "testdata", rows: fileRows(t, "testdata/programs/*.fuse"), sizes: programSizes, variants: all,
			on:      []pass{{engine: "gpu", most: 1 << 26}},
			compile: []compiling{{archs: []string{"sm_90a", "sm_80"}, ends: true, short: true}}},
		{name: "layers", rows: rowsOf(layered, verbatim), sizes: [][]int64{{1, 8}, {33, 40}, {130, 137}}, variants: all,
			on: []pass{{engine: "gpu"}}},
		{name: "library", rows: libraryRows(t), compile: inTurn(true, "sm_80", "sm_89", "sm_90a", "sm_75")},
	}
}

func verbatim(_, program string) string { return program }

// fileRows are the programs of files.
func fileRows(t testing.TB, pattern string) (out []row) {
	for _, src := range sourceFiles(t, pattern) {
		out = append(out, row{name: strings.TrimSuffix(src.Name, ".fuse"), src: string(src.Text)})
	}
	return out
}

// exampleInput is Random but for the pixels of a detector, which are a ruler: with some of them a metre
// off axis, its lattice factors are sines of so many turns that an f32 holds no digit of them.
func exampleInput(v *ir.Value, place int, shape []int) (*tensor.Tensor, error) {
	if v.Name != "pixel" {
		return Random(v, place, shape)
	}
	at := make([]float32, shape[0])
	for i := range at {
		at[i] = float32(i-len(at)/2) * 1e-4
	}
	return tensor.FromSlice(at, shape...)
}

// libraryRows are the first reference program of every library function, in f32.
func libraryRows(t testing.TB) (out []row) {
	docs, err := parser.Library()
	require.NoError(t, err)
	programs := referencePrograms(t)
	for _, d := range docs {
		at := slices.IndexFunc(programs, func(src string) bool { return strings.Contains(src, " "+d.Name+"(") })
		if at >= 0 { // else it is part of another function
			out = append(out, row{name: d.Name, src: strings.ReplaceAll(programs[at], "f64", "f32")})
		}
	}
	assert.Greater(t, len(out), len(docs)*9/10, "functions with a program")
	return out
}

// referencePrograms returns the programs of testdata/reference.
func referencePrograms(t testing.TB) []string {
	t.Helper()
	files, err := filepath.Glob("../testdata/reference/*.json")
	require.NoError(t, err)
	var out []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		var cases []struct{ Program string }
		require.NoError(t, json.Unmarshal(text, &cases))
		for _, c := range cases {
			if !strings.HasSuffix(c.Program, ".fuse") {
				out = append(out, c.Program)
			}
		}
	}
	return out
}

// TestLayersShareKernels counts the compiled kernels of layered programs.
func TestLayersShareKernels(t *testing.T) {
	for name, src := range layered {
		p, err := fusec.Compile("layers.fuse", src, fusec.Options{Arch: "sm_90a"})
		require.NoError(t, err, name)
		cuda, err := p.CUDA()
		require.NoError(t, err, name)
		entries := map[string]bool{}
		for _, u := range cuda.Units {
			entries[u.Entry] = true
		}
		assert.Greater(t, len(cuda.Launches), len(entries), name)
	}
}
