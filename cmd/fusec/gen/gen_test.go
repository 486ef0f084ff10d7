package gen

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
	fuseparser "github.com/fusec/fusec/parser"
)

func graphs(t *testing.T, src string, read func(string) ([]byte, error)) []*ir.Graph {
	t.Helper()
	file, err := fuseparser.Parse("a.fuse", []byte(src), fuseparser.Options{ReadFile: read})
	require.NoError(t, err)
	return file.Graphs
}

func options(src string) Options {
	return Options{File: "a_fuse.go", Command: "fusec gen a.fuse", Package: "p", Type: "Graphs", Source: "a.fuse",
		Text: []byte(src)}
}

// The example is what the program writes for it today.
func TestExampleIsCurrent(t *testing.T) {
	const folder = "../../../examples/norms/"
	read := func(name string) []byte {
		text, err := os.ReadFile(folder + name)
		require.NoError(t, err)
		return text
	}
	src := read("norms.fuse")
	imports := map[string][]byte{"parts.fuse": read("parts.fuse")}
	list := graphs(t, string(src), func(name string) ([]byte, error) { return imports[name], nil })
	o := Options{File: "norms_fuse.go", Command: "fusec gen norms.fuse", Package: "norms", Type: "Graphs",
		Source: "norms.fuse", Text: src, Imports: imports}
	got, err := Go(list, o)
	require.NoError(t, err)
	assert.Equal(t, string(read("norms_fuse.go")), string(got), "run go generate ./examples/norms")
}

// declared are the fields of the structs of a generated file, and the parameters of its
// methods, by name.
func declared(t *testing.T, src string) map[string]string {
	t.Helper()
	code, err := Go(graphs(t, src, nil), options(src))
	require.NoError(t, err)
	file, err := parser.ParseFile(token.NewFileSet(), "a_fuse.go", code, parser.SkipObjectResolution|parser.ParseComments)
	require.NoError(t, err)
	list := func(fields *ast.FieldList) string {
		var names []string
		for _, p := range fields.List {
			for _, n := range p.Names {
				names = append(names, n.Name+" "+string(code[p.Type.Pos()-1:p.Type.End()-1]))
			}
		}
		return strings.Join(names, ", ")
	}
	out := map[string]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		switch d := n.(type) {
		case *ast.FuncDecl:
			out[d.Name.Name+"()"] = list(d.Type.Params)
			out[d.Name.Name+" doc"] = d.Doc.Text()
		case *ast.TypeSpec:
			if s, ok := d.Type.(*ast.StructType); ok {
				out[d.Name.Name] = list(s.Fields)
			}
		}
		return true
	})
	return out
}

func TestEveryDTypeHasAGoType(t *testing.T) {
	var params []string
	for _, d := range ir.DTypes() {
		params = append(params, "x_"+d.String()+": "+d.String()+"[N]")
	}
	got := declared(t, "graph all("+strings.Join(params, ", ")+") -> (y: f32[N]) { y = f32(x_f32) }")
	for _, want := range []string{"XF64 []float64", "XF32 []float32", "XF16 []tensor.F16", "XBf16 []tensor.BF16",
		"XF8e4m3 []tensor.F8E4M3", "XF8e5m2 []tensor.F8E5M2", "XI64 []int64", "XI32 []int32", "XI16 []int16", "XI8 []int8",
		"XU8 []uint8", "XU32 []uint32", "XBool []bool", "Y []float32"} {
		assert.Contains(t, got["AllArgs"], want)
	}
	assert.Equal(t, "ctx context.Context, sizes AllSizes, t AllArgs", got["All()"])
	assert.Equal(t, "ctx context.Context, s *runtime.Stream, t AllBuffers", got["QueueAll()"])
}

// Names that mean something in Go are fields like others, and what is above a graph is the
// comment of its method.
func TestNamesAndComments(t *testing.T) {
	got := declared(t, "# not this\n\n# Adds three.\n# All of them.\n@strict\ngraph layer_2d(type: f32[3], err: f32[3], tensor: f32[3]) -> (G: f32[3]) {\n"+
		"    G = type + err + tensor\n}")
	assert.Equal(t, "Type []float32, Err []float32, Tensor []float32, G []float32", got["Layer2dArgs"])
	assert.Equal(t, "ctx context.Context, t Layer2dArgs", got["Layer2d()"])
	assert.Equal(t, "Layer2d runs graph layer_2d on tensors in host memory:\n\nAdds three.\nAll of them.\n", got["Layer2d doc"])
	for src, want := range map[string]string{
		"graph a_b(x: f32[N]) -> (y: f32[N]) { y = x }\n" +
			"graph aB(x: f32[N]) -> (y: f32[N]) { y = x }": "taken by graph a_b",
		"graph close(x: f32[N]) -> (y: f32[N]) { y = x }":                  "taken by Close",
		"graph s(x: f32[n, N]) -> (y: f32[n]) { y = sum(x, axis=-1) }":     "size N makes no Go name of its own",
		"graph s(a_b: f32[N], aB: f32[N]) -> (y: f32[N]) { y = a_b + aB }": "tensor aB makes no Go name of its own",
		"graph a(x: f32[N]) -> (y: f32[N]) { y = x }\n" +
			"graph queue_a(x: f32[N]) -> (y: f32[N]) { y = x }": "taken by graph a",
	} {
		_, err := Go(graphs(t, src, nil), options(src))
		assert.ErrorContains(t, err, want)
	}
}

func TestTextsAreQuoted(t *testing.T) {
	assert.Equal(t, "`a\n\tb`", quote("a\n\tb"))
	assert.Equal(t, `"a`+"`"+`b\n"`, quote([]byte("a`b\n")))
	assert.Equal(t, `"a\rb"`, quote("a\rb"))
}
