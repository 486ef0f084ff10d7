package parser

import (
	"io/fs"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/diag"
)

func TestFile(t *testing.T) {
	files := map[string]string{
		"lib/norms.fuse": "import \"../consts.fuse\"\nfn scaled(x: T[...]) -> T[...] = half(x) * TWO\nfn half(x: T[...]) -> T[...] = x / TWO\n",
		"consts.fuse":    "const ONE = 1\nconst TWO = ONE + 1\n",
	}
	src := `
import "lib/norms.fuse"
const ONE = 10
fn relu(x: T[...]) -> T[...] = x + ONE  # hides the library's
@bench(N=4)
graph first(x: f32[N]) -> (y: f32[N]) { y = scaled(x) }
graph second(x: f32[2 * K + 1], w: f32[K]) -> (y: f32[2 * K + 1], z: f32[K]) { y = relu(x); z = w }
`
	var read []string
	f, err := Parse("dir/t.fuse", []byte(src), Options{ReadFile: func(name string) ([]byte, error) {
		read = append(read, name)
		if text, ok := files[strings.TrimPrefix(name, "dir/")]; ok {
			return []byte(text), nil
		}
		return nil, fs.ErrNotExist
	}})
	require.NoError(t, err)
	assert.Equal(t, []string{"dir/lib/norms.fuse", "dir/consts.fuse"}, read)
	require.Len(t, f.Graphs, 2)

	g, err := f.Graph("first")
	require.NoError(t, err)
	assert.Equal(t, int64(4), g.Symbol("N").Default)
	assert.Contains(t, ir.Print(g), "y[i] = x[i] / 2.0 * 2.0")
	g, err = f.Graph("second")
	require.NoError(t, err)
	assert.Contains(t, ir.Print(g), "y[i] = x[i] + 10.0")
	assert.Equal(t, "dir/t.fuse:7:7", g.Span.String())

	_, err = f.Graph("frist")
	assert.EqualError(t, err, "dir/t.fuse has no graph frist: did you mean first? It has first, second")
	_, err = f.Graph("")
	assert.EqualError(t, err, "dir/t.fuse holds 2 graphs: name one of first, second")
}

// TestOrigins: values expanded from the library carry the place of the call in
// the program and the path of functions.
func TestOrigins(t *testing.T) {
	g := parse(t, "graph f(x: f32[N, M]) -> (y: f32[N, M]) {\n    y = layer_norm(x * 2)\n}")
	paths := map[string]bool{}
	for _, v := range g.Values {
		if v.IsInput() {
			continue
		}
		paths[v.Origin.Call] = true
		assert.Equal(t, 2, v.Origin.Span.Start.Line, v.Name)
		assert.Equal(t, "t.fuse", v.Origin.Span.Start.Filename, v.Name)
		ir.Walk(v.Body, func(e *ir.Expr) bool {
			if !e.Span.IsZero() {
				assert.Equal(t, "t.fuse", e.Span.Start.Filename, "%s in %s", e, v.Name)
			}
			return true
		})
	}
	assert.True(t, paths["layer_norm"], "%v", paths)
	assert.True(t, paths["layer_norm/moments/mean"], "%v", paths)
}

// TestConcurrent parses from many goroutines: the library is shared.
func TestConcurrent(t *testing.T) {
	src := "graph f(x: f32[N, M]) -> (y: f32[N, M]) {\n    y = softmax(gelu(layer_norm(x)))\n}"
	want := ir.Print(parse(t, src))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			f, err := Parse("t.fuse", []byte(src), Options{})
			if assert.NoError(t, err) {
				assert.Equal(t, want, ir.Print(f.Graphs[0]))
			}
		})
	}
	wg.Wait()
}

func TestErrorLimit(t *testing.T) {
	src := "graph f(x: f32[N]) -> (y: f32[N]) {\n" + strings.Repeat("    a = b\n", 50) + "}"
	_, err := Parse("t.fuse", []byte(src), Options{Limits: Limits{Errors: 3}})
	assert.Len(t, diag.All(err), 3)
}
