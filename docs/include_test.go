package docs

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/tools/txtar"
)

// included matches a block of a page that is made from something else: a comment
// that says from what, and the block.
var included = regexp.MustCompile("(?ms)^<!-- (file|command|example|golden) (\\S[^\n]*?) -->\n```(\\w*)\n.*?^```\n")

// TestIncluded compares every block that says where it comes from with that.
func TestIncluded(t *testing.T) {
	fusec := build(t)
	for _, name := range pages(t) {
		page := readPage(t, name)
		got := included.ReplaceAllStringFunc(page, func(block string) string {
			m := included.FindStringSubmatch(block)
			text := strings.TrimRight(source(t, fusec, m[1], m[2]), "\n")
			return fmt.Sprintf("<!-- %s %s -->\n```%s\n%s\n```\n", m[1], m[2], m[3], text)
		})
		check(t, name, page, got)
	}
}

// pages lists the documentation.
func pages(t *testing.T) []string {
	t.Helper()
	list, err := filepath.Glob("*.md")
	require.NoError(t, err)
	require.NotEmpty(t, list)
	return append(list, "../README.md")
}

// source returns what a block shows: a file, what a command prints, the statements
// of an example, or a section of a golden file.
func source(t *testing.T, fusec, kind, arg string) string {
	t.Helper()
	switch kind {
	case "file":
		return readPage(t, filepath.Join("..", arg))
	case "command":
		return printed(t, fusec, arg)
	}
	file, part, ok := strings.Cut(arg, " ")
	require.True(t, ok, "%s %s: expected a file and the name of a part", kind, arg)
	if kind == "example" {
		return exampleBody(t, file, part)
	}
	return goldenSection(t, file, part)
}

// exampleBody returns the statements of an example in the root package, without
// the output that it may have.
func exampleBody(t *testing.T, file, name string) string {
	t.Helper()
	_, rest, ok := strings.Cut(readPage(t, filepath.Join("..", file)), "\nfunc "+name+"() {\n")
	require.True(t, ok, "%s has no %s", file, name)
	body, _, ok := strings.Cut(rest, "\n}\n")
	require.True(t, ok, "%s does not end", name)
	body, _, _ = strings.Cut(body, "\t// Output:")
	return strings.ReplaceAll(strings.TrimPrefix(body, "\t"), "\n\t", "\n")
}

func goldenSection(t *testing.T, file, section string) string {
	t.Helper()
	for _, f := range txtar.Parse([]byte(readPage(t, filepath.Join("..", file)))).Files {
		if f.Name == section {
			return string(f.Data)
		}
	}
	require.Failf(t, "no such section", "%s has no section %s", file, section)
	return ""
}

// build builds the command line.
func build(t *testing.T) string {
	t.Helper()
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("no go command here")
	}
	built.Do(func() {
		built.path = filepath.Join(built.folder, "fusec")
		out, err := exec.Command("go", "build", "-o", built.path, "../cmd/fusec").CombinedOutput()
		require.NoError(t, err, string(out))
	})
	return built.path
}

// built is the command, once for all tests.
var built struct {
	sync.Once
	folder, path string
}

func TestMain(m *testing.M) {
	var err error
	if built.folder, err = os.MkdirTemp("", "fusec"); err != nil {
		panic(err)
	}
	code := m.Run()
	os.RemoveAll(built.folder)
	os.Exit(code)
}

// printed is what a command line, "fusec ARGS", prints in the root folder.
func printed(t *testing.T, fusec, line string) string {
	t.Helper()
	args := strings.Fields(line)
	require.Equal(t, "fusec", args[0])
	cmd := exec.Command(fusec, args[1:]...)
	cmd.Dir = ".."
	cmd.Env = append(os.Environ(), "NO_COLOR=1", "FUSEC_CACHE=off")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	require.NoError(t, cmd.Run(), "%s\n%s", line, stderr.String())
	assert.Empty(t, stderr.String())
	return stdout.String()
}
