package docs

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/tools/txtar"

	"github.com/fusec/fusec/codegen"
	"github.com/fusec/fusec/fuse"
	"github.com/fusec/fusec/fuse/explain"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/parser"
)

// goldenComment heads a golden file.
const goldenComment = "Softmax at every level, as docs/architecture.md shows it. Made by go test ./docs -update.\n"

// TestGolden compares the levels of one program with the golden file that the
// architecture page shows.
func TestGolden(t *testing.T) {
	const file = "../testdata/golden/softmax.txtar"
	archive := &txtar.Archive{Comment: []byte(goldenComment)}
	add := func(name, text string) {
		archive.Files = append(archive.Files, txtar.File{Name: name, Data: []byte(text)})
	}
	src := readPage(t, "../examples/softmax.fuse")
	add("softmax.fuse", src)
	parsed, err := parser.Parse("softmax.fuse", []byte(src), parser.Options{})
	require.NoError(t, err)
	graph, err := parsed.Graph("")
	require.NoError(t, err)
	last := ir.Print(graph)
	add("graph", last)
	var effects strings.Builder
	plan, err := fuse.Plan(graph, fuse.Options{Observe: func(pass string, g *ir.Graph) error {
		text := ir.Print(g)
		if text == last {
			fmt.Fprintf(&effects, "%-15s nothing to do\n", pass)
			return nil
		}
		fmt.Fprintf(&effects, "%-15s changes the graph\n", pass)
		add("after "+pass, text)
		last = text
		return nil
	}})
	require.NoError(t, err)
	add("passes", effects.String())
	chosen := explain.Explain(graph, plan, explain.Options{}).Kernels[0].Class
	require.NotNil(t, chosen)
	add("plan", shortPlan(ir.PrintPlan(plan), *chosen+1))
	program := codegen.Generate(plan)
	add("cuda", shortCUDA(t, program.Text(program.Launches[0].Variants[*chosen].Unit)))
	if *update {
		require.NoError(t, os.MkdirAll("../testdata/golden", 0o777))
	}
	check(t, file, readPage(t, file), string(txtar.Format(archive)))
}

// TestPassesKeepGraphsValid verifies the graphs of the examples after every pass.
func TestPassesKeepGraphsValid(t *testing.T) {
	files, err := filepath.Glob("../examples/*.fuse")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, name := range files {
		parsed, err := parser.Parse(name, []byte(readPage(t, name)), parser.Options{})
		require.NoError(t, err)
		for _, g := range parsed.Graphs {
			_, err := fuse.Plan(g, fuse.Options{Observe: func(_ string, g *ir.Graph) error { return ir.Verify(g) }})
			assert.NoError(t, err)
		}
	}
}

// repeatedVariant is a variant whose body an earlier one has.
var repeatedVariant = regexp.MustCompile(`(?m)^  variant (\d+):.*\n(?:    when .*\n)?    body of variant \d+\n`)

// shortPlan leaves out the variants that repeat a body, but for the chosen one.
func shortPlan(text string, chosen int) string {
	left := 0
	text = repeatedVariant.ReplaceAllStringFunc(text, func(v string) string {
		if repeatedVariant.FindStringSubmatch(v)[1] == fmt.Sprint(chosen) {
			return v
		}
		left++
		return ""
	})
	return text + fmt.Sprintf("  and %d variants that repeat a body with other numbers\n", left)
}

// shortCUDA leaves out the prelude, which is the same for every kernel.
func shortCUDA(t *testing.T, text string) string {
	t.Helper()
	prelude := readPage(t, "../codegen/skeleton/prelude.cuh")
	require.Contains(t, text, prelude)
	return strings.Replace(text, prelude, "\n// prelude.cuh stands here.\n", 1)
}
