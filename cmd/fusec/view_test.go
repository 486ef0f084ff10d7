package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestLiveView: the page that is served follows the program, its mistakes included.
func TestLiveView(t *testing.T) {
	file := filepath.Join(t.TempDir(), "live.fuse")
	write := func(body string) {
		text := "graph f(x: f32[N]) -> (y: f32[N]) {\n    y = " + body + "\n}\n"
		require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
	}
	write("exp(x)")
	var out bytes.Buffer
	a := &app{ctx: t.Context(), ui: newUI(&out, &out, "never", os.Getenv), getenv: os.Getenv, files: newSources(nil)}
	c := &viewCmd{File: file, DeviceFigures: "H200", Serve: "here"}
	l := &live{changed: make(chan struct{})}
	l.set(c.render(a))
	go c.watch(a, l)
	server := httptest.NewServer(l)
	defer server.Close()
	get := func(path string) string {
		r, err := http.Get(server.URL + path)
		require.NoError(t, err)
		defer r.Body.Close()
		text, err := io.ReadAll(r.Body)
		require.NoError(t, err)
		return string(text)
	}
	assert.Contains(t, get("/"), `"live":true`)
	assert.Contains(t, get("/"), "exp(x)")
	for _, row := range []struct{ body, shown string }{{"tahn(x)", "did you mean tanh?"}, {"tanh(x)", "y = tanh(x)"}} {
		version := get("/version")
		time.Sleep(20 * time.Millisecond) // another time of change, where clocks are coarse
		write(row.body)
		require.NotEqual(t, version, get("/version?after="+version)) // waits
		assert.Contains(t, get("/"), row.shown)
	}
	r, err := http.Get(server.URL + "/else")
	require.NoError(t, err)
	r.Body.Close()
	assert.Equal(t, http.StatusNotFound, r.StatusCode)
}
