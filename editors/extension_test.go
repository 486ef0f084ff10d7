package editors

import (
	"encoding/json"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestExtension runs the extension for VS Code, with a stand-in for the editor, against
// the server.
func TestExtension(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("no node here")
	}
	dir := t.TempDir()
	fusec := filepath.Join(dir, "fusec")
	out, err := exec.Command("go", "build", "-o", fusec, "../cmd/fusec").CombinedOutput()
	require.NoError(t, err, string(out))
	text, err := os.ReadFile("../examples/softmax.fuse")
	require.NoError(t, err)
	program := filepath.Join(dir, "softmax.fuse")
	require.NoError(t, os.WriteFile(program, text, 0o644))
	cmd := exec.Command(node, "testdata/play.js", fusec, program)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	cmd.Env = append(os.Environ(), "TMPDIR="+dir)
	out, err = cmd.Output()
	require.NoError(t, err, stderr.String())
	var got struct {
		Lenses, Hints, Symbols, Diagnostics, Edits, Opened, Errors []string
		Hover                                                      string
		Tokens, Rename, Completion                                 int
		Definition                                                 struct{ Line, Character int }
		Actions                                                    [][2]string
	}
	require.NoError(t, json.Unmarshal(out, &got), string(out))
	require.Len(t, got.Lenses, 1)
	assert.Regexp(t, `^1 kernel, 0\.\d+ ms on H200$`, got.Lenses[0])
	assert.Contains(t, got.Hints, ": bf16[N, M]")
	assert.Contains(t, got.Hints, "kernel 1, writes 128.0 MiB")
	assert.Contains(t, got.Hover, "exp(x)")
	assert.Equal(t, []string{"softmax"}, got.Symbols)
	assert.Equal(t, 5, got.Definition.Line)
	assert.Equal(t, 3, got.Rename)
	assert.Greater(t, got.Tokens, 100)
	assert.Equal(t, []string{"unknown function epx: did you mean exp?"}, got.Diagnostics)
	assert.Equal(t, [][2]string{{"Change to exp", "exp"}}, got.Actions)
	require.Len(t, got.Edits, 1)
	assert.Equal(t, "    y = e / sum(e, axis=-1, keep=true)\n", got.Edits[0])
	assert.Greater(t, got.Completion, 100)
	require.Len(t, got.Opened, 1)
	page, err := url.Parse(got.Opened[0])
	require.NoError(t, err)
	content, err := os.ReadFile(page.Path)
	require.NoError(t, err)
	assert.Contains(t, string(content), `"name":"softmax_y"`)
	assert.Empty(t, got.Errors)
}
