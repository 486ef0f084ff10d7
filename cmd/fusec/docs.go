package main

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/fusec/fusec/docs"
	"github.com/fusec/fusec/examples"
	"github.com/fusec/fusec/internal/site"
)

type docsCmd struct {
	Addr       string `default:"localhost:8081" placeholder:"ADDRESS" help:"Serve at this address of the machine itself; ${default} by default."`
	Export     string `placeholder:"DIR" help:"Write the site into this folder instead: files that need no server."`
	Playground string `placeholder:"DIR" help:"Lead to the playground in this folder, which scripts/build-playground has made."`
}

// Help is the long help text.
func (*docsCmd) Help() string {
	return `Shows the documentation of this very version. It is part of the program and needs no network.

Examples:

    fusec docs
    fusec docs --addr localhost:9000
    fusec docs --export site`
}

// moduleFiles is where files lie that the site does not hold.
const moduleFiles = "https://github.com/fusec/fusec/blob/main"

// Run serves or writes the site.
func (c *docsCmd) Run(a *app) error {
	if c.Playground != "" {
		if _, err := os.Stat(filepath.Join(c.Playground, "index.html")); err != nil {
			return usagef("--playground %s: no page there: scripts/build-playground makes one", c.Playground)
		}
	}
	s, err := site.Build(site.Options{Pages: docs.Pages, Examples: examples.Files, Source: moduleFiles, Playground: c.Playground != ""})
	if err != nil {
		return err
	}
	if c.Export != "" {
		return c.export(a, s)
	}
	return c.serve(a, s)
}

func (c *docsCmd) export(a *app, s *site.Site) error {
	if err := s.Export(c.Export); err != nil {
		return plainPathError(err)
	}
	if c.Playground != "" {
		if err := os.CopyFS(filepath.Join(c.Export, "playground"), os.DirFS(c.Playground)); err != nil {
			return plainPathError(err)
		}
	}
	a.ui.printf("%s: %s\n", c.Export, countOf(len(s.Names()), "file"))
	return nil
}

// serve answers browsers of this machine until the user ends it.
func (c *docsCmd) serve(a *app, s *site.Site) error {
	address, err := net.ResolveTCPAddr("tcp", c.Addr)
	if err != nil {
		return usagef("--addr: %s", err)
	}
	if !address.IP.IsLoopback() {
		return usagef("--addr %s: expected an address of the machine itself, such as localhost:8081; --export writes files for a web server", c.Addr)
	}
	listener, err := net.ListenTCP("tcp", address)
	if err != nil {
		return usagef("--addr: %s", err)
	}
	mux := http.NewServeMux()
	mux.Handle("/", s)
	if c.Playground != "" {
		mux.Handle("/playground/", http.StripPrefix("/playground/", http.FileServer(http.Dir(c.Playground))))
	}
	a.ui.printf("http://%s/\n", listener.Addr())
	return serveUntil(a.ctx, listener, mux)
}

// serveUntil answers browsers until ctx ends. What is open a second later is cut off.
func serveUntil(ctx context.Context, listener net.Listener, handler http.Handler) error {
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		<-ctx.Done()
		end, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = server.Shutdown(end)
	}()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
