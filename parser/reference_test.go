package parser

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir/diag"
)

// referencePrograms are the programs of testdata/reference: at least one for each
// library function and each part of the language.
func referencePrograms(t testing.TB) map[string]string {
	files, err := filepath.Glob("../testdata/reference/*.json")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	out := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		var cases []struct{ Name, Program string }
		require.NoError(t, json.Unmarshal(text, &cases), file)
		for _, c := range cases {
			if filepath.Ext(c.Program) == ".fuse" {
				program, err := os.ReadFile("../" + c.Program)
				require.NoError(t, err)
				c.Program = string(program)
			}
			out[filepath.Base(file)+"/"+c.Name] = c.Program
		}
	}
	return out
}

// TestReferencePrograms expands every program, checks the graphs, and checks that
// their printed text means the same.
func TestReferencePrograms(t *testing.T) {
	for name, src := range referencePrograms(t) {
		t.Run(name, func(t *testing.T) { checkProgram(t, src) })
	}
}

func checkProgram(t *testing.T, src string) {
	f, err := Parse("t.fuse", []byte(src), Options{})
	if err != nil {
		require.FailNow(t, diag.Render(err, sourceOf(src)))
	}
	for _, g := range f.Graphs {
		checkGraph(t, g)
	}
}

func sourceOf(src string) diag.Sources {
	return func(name string) (string, bool) {
		if text, ok := Source(name); ok {
			return text, true
		}
		return src, true
	}
}
