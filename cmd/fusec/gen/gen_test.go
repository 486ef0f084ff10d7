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

// methods are the parameters of the methods of a generated file, by name.
func methods(t *testing.T, src string) map[string]string {
	t.Helper()
	code, err := Go(graphs(t, src, nil), options(src))
	require.NoError(t, err)
	file, err := parser.ParseFile(token.NewFileSet(), "a_fuse.go", code, parser.SkipObjectResolution)
	require.NoError(t, err)
	out := map[string]string{}
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		var names []string
		for _, p := range f.Type.Params.List {
			for _, n := range p.Names {
				at, end := p.Type.Pos(), p.Type.End()
				names = append(names, n.Name+" "+string(code[at-1:end-1]))
			}
		}
		out[f.Name.Name] = strings.Join(names, ", ")
	}
	return out
}

func TestEveryDTypeHasAGoType(t *testing.T) {
	var params []string
	for _, d := range ir.DTypes() {
		params = append(params, "x_"+d.String()+": "+d.String()+"[N]")
	}
	got := methods(t, "graph all("+strings.Join(params, ", ")+") -> (y: f32[N]) { y = f32(x_f32) }")["All"]
	for _, want := range []string{"xF64 []float64", "xF32 []float32", "xF16 []uint16", "xBf16 []uint16",
		"xF8e4m3 []uint8", "xF8e5m2 []uint8", "xI64 []int64", "xI32 []int32", "xI16 []int16", "xI8 []int8",
		"xU8 []uint8", "xU32 []uint32", "xBool []bool", "y []float32", "sizes AllSizes"} {
		assert.Contains(t, got, want)
	}
	assert.Len(t, constants, 4, "a dtype without a Go type needs its constant here")
}

// Names that mean something in Go, or in the generated code, are moved out of the way.
func TestNamesThatAreTaken(t *testing.T) {
	got := methods(t, "graph layer_2d(type: f32[3], err: f32[3], tensor: f32[3]) -> (G: f32[3]) {\n"+
		"    G = type + err + tensor\n}")
	assert.Equal(t, "ctx context.Context, type_ []float32, err_ []float32, tensor_ []float32, g_ []float32",
		got["Layer2d"])
	assert.Contains(t, got, "Layer2dBuffers")
	for src, want := range map[string]string{
		"graph a_b(x: f32[N]) -> (y: f32[N]) { y = x }\n" +
			"graph aB(x: f32[N]) -> (y: f32[N]) { y = x }": "taken by graph a_b",
		"graph close(x: f32[N]) -> (y: f32[N]) { y = x }":              "taken by Close",
		"graph s(x: f32[n, N]) -> (y: f32[n]) { y = sum(x, axis=-1) }": "size N makes no Go name of its own",
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
