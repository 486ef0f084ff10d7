package parser

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/tools/txtar"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/diag"
)

// FuzzParse: no source makes Parse or Format panic or hang; every graph is
// well-formed and means the same after printing; formatting keeps the words of a source.
func FuzzParse(f *testing.F) {
	for _, src := range referencePrograms(f) {
		f.Add(src)
	}
	files, err := filepath.Glob("../testdata/errors/*.txtar")
	require.NoError(f, err)
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		require.NoError(f, err)
		f.Add(string(archive.Files[0].Data))
	}
	limits := Limits{Bytes: 1 << 16, Tokens: 5000, Steps: 2000}
	f.Fuzz(func(t *testing.T, src string) {
		if _, err := Format("t.fuse", []byte(src)); err == nil {
			checkFormat(t, src)
		}
		file, err := Parse("t.fuse", []byte(src), Options{Limits: limits})
		if err != nil {
			assert.NotEmpty(t, diag.All(err))
			assert.NotEmpty(t, diag.Render(err, sourceOf(src)))
			return
		}
		for _, g := range file.Graphs {
			checkGraph(t, g)
		}
	})
}

// checkGraph verifies a graph, and that its printed text means the same.
func checkGraph(t *testing.T, g *ir.Graph) {
	t.Helper()
	require.NoError(t, ir.Verify(g))
	text := ir.Print(g)
	again, err := Parse("printed.fuse", []byte(text), Options{})
	if err != nil {
		require.FailNow(t, diag.Render(err, sourceOf(text)), text)
	}
	require.NoError(t, ir.Verify(again.Graphs[0]))
	assert.Equal(t, text, ir.Print(again.Graphs[0]))
}
