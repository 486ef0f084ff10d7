package main

import (
	"bytes"
	"fmt"
	"html"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/fusec/fusec/ir/diag"
)

// live is the newest page of a program that is being edited.
type live struct {
	mu      sync.Mutex
	page    []byte
	version int
	changed chan struct{} // closed when there is a newer version
}

func (l *live) set(page []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.page = page
	l.version++
	close(l.changed)
	l.changed = make(chan struct{})
}

func (l *live) get() (page []byte, version string, changed chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.page, fmt.Sprint(l.version), l.changed
}

// ServeHTTP answers with the page, or with its version; that, once it is another than the
// one that is named, or after a while.
func (l *live) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	page, version, changed := l.get()
	w.Header().Set("Cache-Control", "no-store")
	switch r.URL.Path {
	case "/":
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write(page) // the reader may be gone
	case "/version":
		const patience = 25 * time.Second
		if r.URL.Query().Get("after") == version {
			select {
			case <-changed:
			case <-r.Context().Done():
			case <-time.After(patience):
			}
			_, version, _ = l.get()
		}
		fmt.Fprint(w, version)
	default:
		http.NotFound(w, r)
	}
}

// serve answers browsers until the user ends it, and looks for changes of the program.
func (c *viewCmd) serve(a *app) error {
	listener, err := net.Listen("tcp", c.Serve)
	if err != nil {
		return usagef("--serve: %s", err)
	}
	l := &live{changed: make(chan struct{})}
	l.set(c.render(a))
	a.ui.printf("http://%s/\n", listener.Addr())
	go c.watch(a, l)
	return serveUntil(a.ctx, listener, l)
}

// render is the page, or one that shows the mistakes of the program.
func (c *viewCmd) render(a *app) []byte {
	var page bytes.Buffer
	err := guarded(func() error { return c.page(a, &page) })
	if err == nil {
		return page.Bytes()
	}
	const wrong = `<!DOCTYPE html><meta charset="utf-8"><title>mistakes</title><body style="font: 14px monospace; margin: 24px; ` +
		`color-scheme: light dark"><pre>%s</pre><script>(async () => { let v = await (await fetch("version")).text(); ` +
		`for (;;) { const n = await (await fetch("version?after=" + v)).text(); if (n !== v) location.reload(); } })()</script>`
	return fmt.Appendf(nil, wrong, html.EscapeString(diag.Render(err, a.files.text)))
}

// guarded makes an error of a broken invariant: who serves goes on.
func guarded(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("internal error: %v", v)
		}
	}()
	return f()
}

// watch makes a new page when a file of the program has changed.
func (c *viewCmd) watch(a *app, l *live) {
	const interval = 300 * time.Millisecond
	last := a.files.stamps()
	for {
		select {
		case <-a.ctx.Done():
			return
		case <-time.After(interval):
		}
		if now := a.files.stamps(); now != last {
			l.set(c.render(a))
			last = a.files.stamps()
		}
	}
}

// stamps says when the files that were read have changed last.
func (s *sources) stamps() string {
	text := ""
	for _, name := range sortedNames(s.texts) {
		if info, err := os.Stat(name); err == nil {
			text += fmt.Sprintln(name, info.Size(), info.ModTime().UnixNano())
		}
	}
	return text
}
