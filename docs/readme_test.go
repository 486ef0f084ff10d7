package docs

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestKernelCounts compares the table of the examples with their plans.
func TestKernelCounts(t *testing.T) {
	const start, end = "<!-- kernels -->\n", "<!-- /kernels -->\n"
	page := readPage(t, "../README.md")
	before, rest, ok := strings.Cut(page, start)
	require.True(t, ok, "README.md has no %s", start)
	_, after, ok := strings.Cut(rest, end)
	require.True(t, ok, "README.md has no %s", end)
	check(t, "../README.md", page, before+start+kernelTable(t)+end+after)
}

func kernelTable(t *testing.T) string {
	fusec := build(t)
	files, err := filepath.Glob("../examples/*.fuse")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	var b strings.Builder
	b.WriteString("| example | operations as written | kernels |\n|---|---|---|\n")
	for _, f := range files {
		var out struct {
			Graphs []struct {
				Graph   string
				Kernels []any
				Unfused struct{ Kernels int }
			}
		}
		text := printed(t, fusec, "fusec explain --json examples/"+filepath.Base(f))
		require.NoError(t, json.Unmarshal([]byte(text), &out))
		for _, g := range out.Graphs {
			fmt.Fprintf(&b, "| [%s](examples/%s) | %d | %d |\n", g.Graph, filepath.Base(f), g.Unfused.Kernels, len(g.Kernels))
		}
	}
	return b.String()
}

var (
	commandRow  = regexp.MustCompile("(?m)^\\| `fusec (\\w+)[^`]*` \\| (.*) \\|$")
	commandName = regexp.MustCompile(`(?m)^  (\w+) `)
	flagName    = regexp.MustCompile("`(-[\\w-]+)")
)

// TestCommands compares the table of commands with the help: every command has a
// row, and every flag in a row is one of its command's.
func TestCommands(t *testing.T) {
	fusec := build(t)
	_, list, ok := strings.Cut(printed(t, fusec, "fusec --help"), "Commands:\n")
	require.True(t, ok, "the help lists no commands")
	var want, have []string
	for _, m := range commandName.FindAllStringSubmatch(list, -1) {
		want = append(want, m[1])
	}
	for _, m := range commandRow.FindAllStringSubmatch(readPage(t, "../README.md"), -1) {
		have = append(have, m[1])
		help := printed(t, fusec, "fusec "+m[1]+" --help")
		for _, flag := range flagName.FindAllStringSubmatch(m[2], -1) {
			assert.Contains(t, help, flag[1], "fusec %s", m[1])
		}
	}
	assert.ElementsMatch(t, want, have)
}

var (
	folderRow = regexp.MustCompile("(?m)^\\| `([\\w/]+)` \\| (.*) \\|$")
	pathName  = regexp.MustCompile("`([\\w]+/[\\w/]+)[`/]")
	link      = regexp.MustCompile(`\]\(([^)#:]+)(?:#[^)]*)?\)`)
)

// TestFolders compares the map of folders with the folders.
func TestFolders(t *testing.T) {
	entries, err := os.ReadDir("..")
	require.NoError(t, err)
	var want, have []string
	for _, e := range entries {
		if e.IsDir() && !strings.HasPrefix(e.Name(), ".") && e.Name() != "build" {
			want = append(want, e.Name())
		}
	}
	for _, m := range folderRow.FindAllStringSubmatch(readPage(t, "../README.md"), -1) {
		have = append(have, m[1])
		for _, inner := range pathName.FindAllStringSubmatch(m[2], -1) {
			assert.DirExists(t, filepath.Join("..", inner[1]))
		}
	}
	assert.ElementsMatch(t, want, have)
}

// TestLinks follows the links between pages.
func TestLinks(t *testing.T) {
	for _, page := range pages(t) {
		for _, m := range link.FindAllStringSubmatch(readPage(t, page), -1) {
			_, err := os.Stat(filepath.Join(filepath.Dir(page), m[1]))
			assert.NoError(t, err, "%s links to %s", page, m[1])
		}
	}
}
