package bench

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const source = `# A program.
# torch: F.relu(x)
# small: N=1 M=2; N=3 M=4
# keep: scale other
# dtypes: f32 f16
# skip: it is a test
# unchecked: of no kind
@bench(N=5, M=6)
graph first(x: f32[N, M], scale: f32[N]) -> (y: f32[N, M]) {
    s: f32 = 1
}

fn helper(x: f32[N]) -> f32[N] = x

@onekernel @bench(N=5) graph second(x: bf16[N],
    i: i64[N]) -> (y: bf16[N]) {
}
graph third(x: f32[N]) -> (y: f32[N]) { y = x }
`

func TestParse(t *testing.T) {
	p, err := Parse("a.fuse", source)
	require.NoError(t, err)
	assert.Equal(t, []Case{
		{
			Graph: "first", Torch: "F.relu(x)", Sizes: map[string][]Sizes{Small: {{"N": 1, "M": 2}, {"N": 3, "M": 4}}},
			Keep: []string{"scale", "other"}, DTypes: []string{"f32", "f16"}, Skip: "it is a test", Unchecked: "of no kind",
		},
		{Graph: "second", Sizes: map[string][]Sizes{}},
		{Graph: "third", Sizes: map[string][]Sizes{}},
	}, p.Cases)
	assert.Equal(t, "M=2 N=1", p.Cases[0].Sizes[Small][0].String())
}

// The peer of a graph may be a function of several lines.
func TestParseFunctions(t *testing.T) {
	p, err := Parse("a.fuse", `# A program.
# torch:
#     a = x + 1
#     def twice(x):
#         return x + x
#     return twice(a)
# check: N=3
graph fourth(x: f32[N]) -> (y: f32[N]) { y = 2 * (x + 1) }
`)
	require.NoError(t, err)
	assert.Equal(t, []Case{{Graph: "fourth", Torch: "a = x + 1\ndef twice(x):\n    return x + x\nreturn twice(a)\n",
		Sizes: map[string][]Sizes{Check: {{"N": 3}}}}}, p.Cases)
}

func TestParseMistakes(t *testing.T) {
	for text, want := range map[string]string{
		"# small: N":         `a.fuse:2: small: expected sizes like N=256 M=1024; N=1 M=4096, found "N"`,
		"# batch: N=1; M=-1": `a.fuse:2: batch: expected sizes like N=256 M=1024; N=1 M=4096, found "M=-1"`,
		"# large: =1":        `a.fuse:2: large: expected sizes like N=256 M=1024; N=1 M=4096, found "=1"`,
		"# skip:":            "a.fuse:2: skip: expected something after the colon",
		"# torch:":           "a.fuse:2: torch: expected something after the colon",
		"# large: N=99999999999999999999": `a.fuse:2: large: expected sizes like N=256 M=1024; N=1 M=4096, ` +
			`found "N=99999999999999999999"`,
	} {
		_, err := Parse("a.fuse", "# A program.\n"+text+"\n")
		assert.EqualError(t, err, want)
	}
}

// Retype touches the floats in the signature of one graph, and no line moves.
func TestRetype(t *testing.T) {
	p, err := Parse("a.fuse", source)
	require.NoError(t, err)
	assert.Contains(t, p.Retype(p.Cases[0], "bf16"), `
graph first(x: bf16[N, M], scale: f32[N]) -> (y: bf16[N, M]) {
    s: f32 = 1
}

fn helper(x: f32[N]) -> f32[N] = x

@onekernel @bench(N=5) graph second(x: bf16[N],
    i: i64[N]) -> (y: bf16[N]) {
}
graph third(x: f32[N]) -> (y: f32[N]) { y = x }
`)
	assert.Contains(t, p.Retype(p.Cases[1], "f64"), `graph second(x: f64[N],
    i: i64[N]) -> (y: f64[N]) {`)
	assert.Equal(t, source, p.Retype(p.Cases[1], "bf16"))
	assert.Equal(t, source, p.Retype(Case{Graph: "fourth"}, "bf16"))
}

// Graphs are found by their words: however annotations and lines lie, and derived ones among them.
func TestDerivedGraphs(t *testing.T) {
	text := `
# torch: x
@bench(N=64)
graph f(x: f32[N], w: f32[N]) -> (y: f32[]) { y = sum(x * w) }
  @bench(N=64)graph g = grad(f, wrt=[w])
# graph not_this(x: f32[N])
@bench(
  N=64) graph k(x: f32[N]) -> (y: f32[N]) { y = x }
# keep: d_x
@bench(N=32) # a comment
  graph m = jvp(g)

@onekernel @bench(N=8) graph n = grad(f); @bench(N=8) graph o = grad(o)
`
	p, err := Parse("a.fuse", text)
	require.NoError(t, err)
	var names []string
	for _, c := range p.Cases {
		names = append(names, c.Graph)
	}
	assert.Equal(t, []string{"f", "g", "k", "m", "n", "o"}, names)
	assert.Equal(t, "x", p.Cases[0].Torch)
	assert.Empty(t, p.Cases[1].Torch)
	retyped := p.Retype(p.Cases[0], "bf16")
	assert.Contains(t, retyped, "graph f(x: bf16[N], w: bf16[N]) -> (y: bf16[])")
	assert.Contains(t, retyped, "graph k(x: f32[N])")
	assert.Equal(t, retyped, p.Retype(p.Cases[1], "bf16"), "a gradient is retyped where its graph is")
	assert.Equal(t, retyped, p.Retype(p.Cases[3], "bf16"))
	assert.Equal(t, text, p.Retype(p.Cases[5], "bf16"), "a graph of itself")
	p.Cases[0].Keep = []string{"w"}
	assert.Contains(t, p.Retype(p.Cases[3], "bf16"), "graph f(x: bf16[N], w: f32[N]) -> (y: bf16[])")
}

func TestSuites(t *testing.T) {
	seen, programs := map[string]bool{}, 0
	for _, name := range Suites() {
		suite, err := Suite(name)
		require.NoError(t, err)
		programs += len(suite)
		for _, p := range suite {
			for _, c := range p.Cases {
				assert.False(t, seen[c.Graph], "%s is there twice: --op could not tell them apart", c.Graph)
				seen[c.Graph] = true
				assert.NotEmpty(t, c.Torch, c.Graph)
				assert.NotEmpty(t, c.Sizes[Large], c.Graph)
				assert.True(t, name != Operators || c.Sizes[Small] != nil, c.Graph)
			}
		}
	}
	all := 0
	for _, dir := range []string{".", "suite"} {
		entries, err := files.ReadDir(dir)
		require.NoError(t, err)
		for _, e := range entries {
			if strings.HasSuffix(e.Name(), ".fuse") && e.Name() != "start.fuse" { // which nothing measures by itself
				all++
			}
		}
	}
	assert.Equal(t, all, programs, "programs that are in no suite")
	_, err := Suite("seed")
	assert.EqualError(t, err, "there is no suite seed: there are operators, products, attention, convolutions, seeds")
}

// TestDrawn: the programs that no suite has are cases too, each with its peer, or there for the gradient that is one.
func TestDrawn(t *testing.T) {
	paths, err := filepath.Glob("drawn/*.fuse")
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	for _, path := range paths {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		p, err := Parse(path, string(text))
		require.NoError(t, err)
		for _, c := range p.Cases {
			derived := strings.Contains(string(text), "= grad("+c.Graph+",")
			assert.True(t, c.Torch != "" || derived, c.Graph)
		}
	}
}
