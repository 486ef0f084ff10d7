package docs

import (
	"context"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec"
	"github.com/fusec/fusec/conformance"
	"github.com/fusec/fusec/fuse"
	"github.com/fusec/fusec/fuse/explain"
	"github.com/fusec/fusec/internal/view"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/parser"
)

// TestPictures compares the tutorial's pictures with what its programs become.
func TestPictures(t *testing.T) {
	files, err := filepath.Glob("../examples/tutorial/?-*.fuse")
	require.NoError(t, err)
	require.Len(t, files, 6)
	for _, name := range files {
		file, err := parser.Parse(name, []byte(readPage(t, name)), parser.Options{})
		require.NoError(t, err)
		g, err := file.Graph("")
		require.NoError(t, err)
		plan, err := fuse.Plan(g, fuse.Options{})
		require.NoError(t, err)
		var b strings.Builder
		in := view.Graph{Graph: g, Plan: plan, Explain: explain.Explain(g, plan, explain.Options{})}
		require.NoError(t, view.WriteSVG(&b, in, ir.Devices()[0]))
		picture := "images/tutorial-" + strings.TrimSuffix(filepath.Base(name), ".fuse") + ".svg"
		check(t, picture, readPage(t, picture), b.String())
		assert.Contains(t, readPage(t, "tutorial.md"), "]("+picture+")")
	}
}

// sizeSets are tried in turn, for a program's conditions on its sizes: 64 lets products share tiles.
var sizeSets = [][]int64{{3, 5, 7, 2, 4}, {4, 6, 3}, {2, 64, 16}, {2, 4}, {4}}

// agrees runs a graph on the CPU engine and compares its results with the interpreter's.
func agrees(t *testing.T, e *conformance.Engine, text, graph string) {
	t.Helper()
	p, err := e.Load(fusec.Source{Name: "example.fuse", Text: []byte(text)}, fusec.Options{Graph: graph})
	if !assert.NoError(t, err, text) {
		return
	}
	defer func() { assert.NoError(t, p.Function.Close()) }()
	for _, set := range sizeSets {
		sizes, fit := conformance.Sizes(p.Graph(), set)
		if !fit {
			continue
		}
		args, err := conformance.Inputs(p.Graph(), sizes)
		require.NoError(t, err)
		assert.NoError(t, p.Check(context.Background(), args), "%s\nat %v", text, sizes)
		return
	}
	assert.Fail(t, "no sizes fit", text)
}

// TestCookbook runs every recipe.
func TestCookbook(t *testing.T) {
	e := conformance.Open(t, "cpu", conformance.Options{})
	recipes := fuseBlock.FindAllStringSubmatch(readPage(t, "cookbook.md"), -1)
	require.NotEmpty(t, recipes)
	for _, m := range recipes {
		file, err := parser.Parse("example.fuse", []byte(m[2]), parser.Options{})
		if !assert.NoError(t, err) {
			continue
		}
		for _, g := range file.Graphs {
			agrees(t, e, m[2], g.Name)
		}
	}
}

var (
	inputsBlock = regexp.MustCompile("(?s)<!-- inputs -->\n```fuse\n(.*?)\n```")
	spelling    = regexp.MustCompile("(?m)^\\| .* \\| [^`|]*`([^`]+)`[^`|]* \\| `([^`]+)` \\|$")
	result      = regexp.MustCompile(`^out\b`)
)

// TestSpellings runs what the tables for those who come from elsewhere say, each as a graph.
func TestSpellings(t *testing.T) {
	e := conformance.Open(t, "cpu", conformance.Options{})
	page := readPage(t, "coming-from.md")
	declared := inputsBlock.FindStringSubmatch(page)
	require.NotNil(t, declared)
	rows := spelling.FindAllStringSubmatch(page, -1)
	require.Greater(t, len(rows), 80)
	assert.Len(t, rows, strings.Count(page, "]` |\n"), "rows with a type that are not read")
	for _, m := range rows {
		expr := m[1]
		if !result.MatchString(expr) {
			expr = "out = " + expr
		}
		agrees(t, e, "graph g("+declared[1]+") -> (out: "+m[2]+") { "+expr+" }\n", "")
	}
}

// TestStartPage: the start page leads to every page.
func TestStartPage(t *testing.T) {
	index := readPage(t, "index.md")
	for _, page := range pages(t) {
		if page != "index.md" && !strings.HasPrefix(page, "..") {
			assert.Contains(t, index, "("+page+")")
		}
	}
}
