package site

import (
	"html"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/docs"
	"github.com/fusec/fusec/examples"
	"github.com/fusec/fusec/internal/browser"
)

const source = "https://example.com/source"

func build(t *testing.T) *Site {
	t.Helper()
	s, err := Build(Options{Pages: docs.Pages, Examples: examples.Files, Source: source})
	require.NoError(t, err)
	return s
}

var (
	address = regexp.MustCompile(` (?:src|href)="([^"]*)"`)
	id      = regexp.MustCompile(` id="([^"]*)"`)
	loaded  = regexp.MustCompile(`(<script|<img|<link)[^>]* (src|href)="https?:`)
)

// TestLinks: whatever a page loads or leads to is there, down to the heading, and nothing is loaded from elsewhere.
func TestLinks(t *testing.T) {
	s := build(t)
	places := map[string]map[string]bool{}
	for _, name := range s.Names() {
		places[name] = map[string]bool{"": true}
		for _, m := range id.FindAllStringSubmatch(string(s.File(name)), -1) {
			places[name][m[1]] = true
		}
	}
	for _, name := range s.Names() {
		if path.Ext(name) != ".html" {
			continue
		}
		text := string(s.File(name))
		assert.NotRegexp(t, loaded, text, name)
		for _, m := range address.FindAllStringSubmatch(text, -1) {
			to := html.UnescapeString(m[1])
			if file, ok := strings.CutPrefix(to, source+"/"); ok {
				file, _, _ = strings.Cut(file, "#")
				_, err := os.Stat("../../" + file)
				assert.NoError(t, err, "%s leads to %s", name, to)
				continue
			}
			if strings.Contains(to, "://") {
				continue
			}
			file, anchor, _ := strings.Cut(to, "#")
			if file == "" {
				file = path.Base(name)
			}
			at := path.Join(path.Dir(name), file)
			if assert.Contains(t, places, at, "%s leads to %s", name, to) {
				assert.True(t, places[at][anchor], "%s leads to %s: no such heading", name, to)
			}
		}
	}
}

// TestServer: the site is served as it is exported.
func TestServer(t *testing.T) {
	s := build(t)
	dir := t.TempDir()
	require.NoError(t, s.Export(dir))
	for name, want := range map[string]string{"/": "index.html", "/tutorial.html": "tutorial.html", "/examples/": "examples/index.html",
		"/images/tutorial-6-fused.svg": "images/tutorial-6-fused.svg"} {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest(http.MethodGet, name, nil))
		onDisk, err := os.ReadFile(dir + "/" + want)
		require.NoError(t, err)
		assert.Equal(t, string(onDisk), w.Body.String(), name)
		assert.Equal(t, http.StatusOK, w.Code, name)
		assert.NotEmpty(t, w.Header().Get("Content-Type"), name)
	}
	for _, name := range []string{"/no.html", "/../site.go", "/images/"} {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest(http.MethodGet, name, nil))
		assert.Equal(t, http.StatusNotFound, w.Code, name)
	}
}

// TestBrowser: the search finds headings of other pages, and programs are coloured.
func TestBrowser(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, build(t).Export(dir))
	document := browser.Document(t, "file://"+dir+"/tutorial.html?q=softmax")
	assert.Contains(t, document, `<a href="cookbook.html#softmax">`)
	assert.NotContains(t, document, `<ul id="found" hidden`)
	assert.Contains(t, document, `<span class="word">graph</span>`)
}
