package parser

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir/diag"
)

// TestLibrary parses every file as a whole: it must be legal as a program, and
// hold the functions that are found without parsing.
func TestLibrary(t *testing.T) {
	lib, err := library()
	require.NoError(t, err)
	entries, err := stdFiles.ReadDir("std")
	require.NoError(t, err)
	var names []string
	for _, e := range entries {
		src, ok := Source("std/" + e.Name())
		require.True(t, ok)
		tree, err := parseSource("std/"+e.Name(), []byte(src), DefaultLimits)
		require.NoError(t, err)
		l := &loader{}
		for _, d := range tree.Decls {
			require.NotNil(t, d.Fn, "%s holds something else than functions", e.Name())
			l.function(newModule("", tree), d.Fn)
			names = append(names, d.Fn.Name.Text)
			fn, _ := lib.function(d.Fn.Name.Text)
			require.NotNil(t, fn, d.Fn.Name.Text)
			assert.Equal(t, d.Fn.span(), fn.span(), "position of %s", d.Fn.Name.Text)
		}
		require.NoError(t, l.errs.Err())
	}
	assert.Equal(t, lib.order, names)
	assert.Len(t, lib.lazy, len(names), "a name stands twice in the library")
}

// TestLibraryNames looks up the names in every function, called or not.
func TestLibraryNames(t *testing.T) {
	lib, err := library()
	require.NoError(t, err)
	l := &loader{opts: Options{Limits: DefaultLimits}}
	for _, name := range lib.order {
		fn, _ := lib.function(name)
		l.checkNames(lib, fn)
	}
	if err := l.errs.Err(); err != nil {
		require.FailNow(t, diag.Render(err, Source))
	}
}

func TestFunctionDocs(t *testing.T) {
	docs, err := Library()
	require.NoError(t, err)
	docs = append(docs, Builtins()...)
	seen := map[string]string{}
	for _, d := range docs {
		assert.NotEmpty(t, d.Doc, d.Name)
		assert.Contains(t, d.Signature, d.Name+"(")
		assert.NotContains(t, d.Signature, "{")
		seen[d.Name] = d.Signature
	}
	assert.Equal(t, "relu(x: T[...]) -> T[...]", seen["relu"])
	assert.Equal(t, "reshape(x, dims...) -> tensor", seen["reshape"])
	assert.Equal(t, "add(a, b), a + b", seen["add"])
	assert.Equal(t, "neg(x), -x", seen["neg"])
	assert.Equal(t, "sum(x, axis = none, keep = false) -> tensor", seen["sum"])
}

// TestGrammarWords keeps the names of Go types out of the documented grammar.
func TestGrammarWords(t *testing.T) {
	text := Grammar()
	assert.NotContains(t, text, "Node")
	for _, rule := range []string{"File = ", "Graph = ", "Fn = ", "Expr = ", "Reduce = ", "Index = "} {
		assert.Contains(t, "\n"+text, "\n"+rule)
	}
	assert.Greater(t, strings.Count(text, "\n"), 20)
}

// TestLibraryTakesSymbols: calls whose sizes are symbols are as right as those of numbers, where a function
// computes with the size itself.
func TestLibraryTakesSymbols(t *testing.T) {
	for _, call := range []string{
		"grid_sample(x, g)", `grid_sample(x, g, padding_mode="border")`,
		`grid_sample(x, g, mode="nearest", padding_mode="reflection", align_corners=true)`,
		"soft_cross_entropy(x, x)", "soft_cross_entropy(x, x, label_smoothing=0.1)",
		"cross_entropy(x, at, label_smoothing=0.1)", "layer_norm(x)", "var(x)", "adaptive_avg_pool2d(x, 3)", "upsample_bilinear(x, 2)",
	} {
		source := "graph f(x: f32[N, C, H, W], g: f32[N, P, Q, 2], at: i32[N, C, H]) -> (y: f32[]) {\n    y = sum(" + call + ")\n}"
		_, err := Parse("in.fuse", []byte(source), Options{})
		assert.NoError(t, err, call)
	}
}
