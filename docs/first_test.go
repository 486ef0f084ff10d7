package docs

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec"
)

// firstFile matches a file of the first program in the page about services.
var firstFile = regexp.MustCompile("(?ms)^<!-- first (\\S+) -->\n```\\w*\n(.*?)^```\n")

// firstTest asks the first program what the page says it answers.
const firstTest = `package main

import (
	"context"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/fusec/fusec"
)

func TestAnswer(t *testing.T) {
	device, err := fusec.Open("cpu")
	if err != nil {
		t.Fatal(err)
	}
	defer device.Close()
	s, err := start(context.Background(), device)
	if err != nil {
		t.Fatal(err)
	}
	for i, body := range []string{` + "`" + `{"query": [1, 0, 0], "temperature": 0.5}` + "`, `" + `{"query": [1, 0], "temperature": 0.5}` + "`" + `} {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest("POST", "/", strings.NewReader(body)))
		if err := os.WriteFile([]string{"right", "wrong"}[i], []byte(w.Result().Status+"\n"+w.Body.String()), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}
`

// TestFirstProgram follows the page about services in an empty folder: another module, which needs this one.
func TestFirstProgram(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("no go command here")
	}
	dir := t.TempDir()
	files := firstFile.FindAllStringSubmatch(readPage(t, "service.md"), -1)
	require.Len(t, files, 2)
	for _, m := range files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, m[1]), []byte(m[2]), 0o666))
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "main_test.go"), []byte(firstTest), 0o666))
	root, err := filepath.Abs("..")
	require.NoError(t, err)
	goes := func(args ...string) {
		t.Helper()
		cmd := exec.Command("go", args...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "go %v\n%s", args, out)
	}
	program, err := fusec.Compile("scores.fuse", []byte(files[0][2]), fusec.Options{})
	require.NoError(t, err)
	assert.Len(t, program.Plan().At(map[string]int64{"N": 1000, "D": 64}).Kernels, 2, "as the page says")
	goes("mod", "init", "example.com/scores")
	goes("mod", "edit", "-require", "github.com/fusec/fusec@v0.0.0", "-replace", "github.com/fusec/fusec="+root)
	sums, err := os.ReadFile("../go.sum") // what go mod tidy would ask a network for
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go.sum"), sums, 0o666))
	goes("vet", "-mod=mod", ".")
	goes("test", "-mod=mod", ".")

	status, answer, _ := strings.Cut(readPage(t, filepath.Join(dir, "right")), "\n")
	assert.Equal(t, "200 OK", status)
	var p []float64
	require.NoError(t, json.Unmarshal([]byte(answer), &p))
	require.Len(t, p, 4)
	assert.InDelta(t, 1, p[0]+p[1]+p[2]+p[3], 1e-6)
	assert.Contains(t, readPage(t, "service.md"), answer[:6]+"..")
	status, answer, _ = strings.Cut(readPage(t, filepath.Join(dir, "wrong")), "\n")
	assert.Contains(t, status, "400")
	assert.Contains(t, answer, "query")
}
