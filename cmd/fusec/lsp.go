package main

import (
	"bytes"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"runtime/debug"
	"sort"
	"strings"

	"github.com/fusec/fusec"
	"github.com/fusec/fusec/internal/lsp"
	"github.com/fusec/fusec/internal/regular"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/parser"
)

type lspCmd struct {
	DeviceFigures string `default:"H200" help:"Estimate for this GPU: ${devices}."`
	Stdio         bool   `help:"Speak over standard input and output, as always: editors say so."`
}

// Help is the long help text.
func (*lspCmd) Help() string {
	return `An editor runs this and speaks the Language Server Protocol with it. docs/editors.md says
how to set up VS Code, Neovim and Helix.`
}

// Run serves one editor.
func (c *lspCmd) Run(a *app) error {
	device, err := ir.DeviceNamed(c.DeviceFigures)
	if err != nil {
		return usagef("%s: there are %s", err, deviceNames())
	}
	const garbage = 400 // an editor waits for an answer, and the heap is small
	debug.SetGCPercent(garbage)
	return lsp.Serve(a.ctx, stdio{os.Stdin, os.Stdout}, lsp.Options{
		Version: buildVersion(), Device: device, Find: findPrograms,
		ReadFile: func(path, folder string, roots []string) ([]byte, error) {
			if folder == "" || folder == filepath.Dir(path) {
				return regular.ReadFile(path, int64(parser.DefaultLimits.Bytes))
			}
			allowed := append([]string{folder}, roots...)
			return fusec.ImportsFrom(append(allowed, a.files.roots...)...)(path)
		},
		View: func(path string, text []byte, graph string) (string, error) { return c.view(a, path, text, graph) },
	})
}

// view makes the page of a program as it stands in the editor, and returns its URI.
func (c *lspCmd) view(a *app, path string, text []byte, graph string) (string, error) {
	mine := &app{ctx: a.ctx, ui: a.ui, getenv: a.getenv, files: newSources(append([]string{filepath.Dir(path)}, a.files.roots...))}
	mine.files.texts[path] = string(text)
	file, err := mine.parseAs(path, text, mine.files.imports(path))
	if err != nil {
		return "", err
	}
	var page bytes.Buffer
	v := &viewCmd{DeviceFigures: c.DeviceFigures}
	if err := guarded(func() error { return v.pageOf(mine, file.Graphs, &page) }); err != nil {
		return "", err
	}
	folder, err := os.MkdirTemp("", "fusec-view-")
	if err != nil {
		return "", err
	}
	out := filepath.Join(folder, strings.TrimSuffix(filepath.Base(path), ".fuse")+".html")
	if err := os.WriteFile(out, page.Bytes(), 0o600); err != nil {
		return "", err
	}
	at := url.URL{Scheme: "file", Path: filepath.ToSlash(out), Fragment: "graph=" + url.QueryEscape(graph)}
	return at.String(), nil
}

// stdio is the two standard streams as one.
type stdio struct {
	io.Reader
	io.WriteCloser
}

// Close closes the output; the input ends when the editor says so.
func (s stdio) Close() error { return s.WriteCloser.Close() }

// findPrograms lists the programs below folders, as many as may be searched for a name.
func findPrograms(roots []string) []string {
	const most = 2000
	var out []string
	for _, root := range roots {
		_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return nil // what cannot be read is not searched
			case len(out) >= most:
				return filepath.SkipAll
			case d.IsDir() && path != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "node_modules"):
				return filepath.SkipDir
			case d.Type().IsRegular() && filepath.Ext(path) == ".fuse":
				out = append(out, path)
			}
			return nil
		})
	}
	sort.Strings(out)
	return out
}
