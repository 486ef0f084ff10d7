package main

import (
	"encoding/json"
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/examples"
	"github.com/fusec/fusec/internal/browser"
)

const (
	right = "graph f(x: f32[N, M]) -> (y: f32[N]) { y = sum(x * 0 + 2, axis=1) }\n"
	wrong = "graph f(x: f32[N]) -> (y: f32[N]) {\n    y = tahn(x)\n}\n"
)

func answerTo(t *testing.T, text string, run bool) (a answer) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(analyse(text, run)), &a))
	return a
}

func TestAnalyse(t *testing.T) {
	a := answerTo(t, right, true)
	assert.Empty(t, a.Errors)
	require.Len(t, a.Graphs, 1)
	assert.Contains(t, a.Graphs[0].Kernels, "f: 1 kernel instead of")
	assert.Contains(t, a.Graphs[0].Plan, "template")
	assert.Contains(t, a.Graphs[0].CUDA, "__global__")
	assert.Contains(t, a.Graphs[0].Picture, "<svg")
	assert.Contains(t, a.Results, "8           8           8           8")

	a = answerTo(t, "@bench(N=8, M=4)\ngraph f(x: f32[N, M], s: f32[M]) -> (y: f32[N, M]) { y = x * s }\n", false)
	assert.Contains(t, a.Graphs[0].Kernels, "reads  s: M * 4 bytes", "each element counts once")
	assert.Regexp(t, `about 0\.\d+ ms on H200 at the sizes of @bench`, a.Graphs[0].Kernels)

	a = answerTo(t, wrong, true)
	assert.Contains(t, a.Errors, "program.fuse:2:9: error: unknown function tahn: did you mean tanh?")
	assert.Contains(t, a.Errors, "^^^^")
	a = answerTo(t, "@onekernel\ngraph f(x: f32[N, M]) -> (y: f32[N, M]) { y = x / (sum(x, axis=1)[:, none] * sum(x, axis=0)) }\n", false)
	assert.Contains(t, a.Errors, "@onekernel")
	assert.Len(t, a.Graphs, 1, "what was refused is shown")
}

// TestExamples: what the page offers compiles and runs.
func TestExamples(t *testing.T) {
	for _, name := range []string{"tutorial/6-fused.fuse", "tutorial/refused.fuse", "cross_entropy.fuse"} {
		text, err := examples.Files.ReadFile(name)
		require.NoError(t, err)
		a := answerTo(t, string(text), true)
		assert.Empty(t, a.Errors, name)
		assert.Contains(t, a.Results, "on random inputs", name)
	}
}

// patient serves the page with a picture that comes once the page has compiled what was typed: a page is loaded, and
// its document is final, when its pictures are there.
func patient(dir string) http.Handler {
	const waits = `<img src="wait"><script>const id = setInterval(() => {
    if (document.documentElement.dataset.compiled > 1) { clearInterval(id); fetch("done"); } }, 20)</script>`
	done := make(chan struct{}, 1)
	files := http.FileServer(http.Dir(dir))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/":
			text, _ := os.ReadFile(dir + "/index.html")
			_, _ = w.Write(append(text, waits...))
		case "/done":
			done <- struct{}{}
		case "/wait":
			select {
			case <-done:
			case <-time.After(time.Minute): // the page has failed: its document tells how
			}
		default:
			files.ServeHTTP(w, r)
		}
	})
}

// TestBrowser builds the page and types a program into it.
func TestBrowser(t *testing.T) {
	if os.Getenv("FUSEC_TEST_FULL") == "" {
		t.Skip("building for the browser takes a minute: FUSEC_TEST_FULL=1 does it")
	}
	dir := t.TempDir()
	out, err := exec.Command("../../scripts/build-playground", dir).CombinedOutput()
	require.NoError(t, err, string(out))
	server := httptest.NewServer(patient(dir))
	defer server.Close()
	typed := func(text, show string) string {
		return html.UnescapeString(browser.Document(t, server.URL+"/?show="+show+"&type="+url.QueryEscape(text)))
	}
	document := typed(right, "results")
	assert.Contains(t, document, "f, with 4 for every size, on random inputs")
	assert.Contains(t, document, "8           8           8           8")
	document = typed(wrong, "kernels")
	assert.Contains(t, document, "unknown function tahn: did you mean tanh?")
	assert.Contains(t, document, "^^^^")
}
