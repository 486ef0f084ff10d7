// Package lsp is a language server for .fuse programs: an editor runs it and speaks
// the Language Server Protocol with it over a stream.
//
// What it says comes from parser.Analyze, which understands programs with mistakes and
// keeps what did not change, and from plans, which are made in the background: nothing
// that an editor waits for waits for a plan.
package lsp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"go.lsp.dev/jsonrpc2"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/parser"
)

// Options are what the server needs from its surroundings.
type Options struct {
	Version string
	// ReadFile returns the text of a file that is not open, by its path, for a program
	// in the given folder; roots are the folders that are open.
	ReadFile func(path, folder string, roots []string) ([]byte, error)
	// Find lists the programs below the folders that are open.
	Find   func(roots []string) []string
	Device ir.Device // whose times are estimated; the zero value is an H200
	// Library puts a file of the standard library where an editor can open it, and returns
	// its path. With nil functions of the library have no definition to go to.
	Library func(name, text string) (path string, err error)
	// View makes a page of a program, and returns its URI. With nil there is no such page.
	View func(path string, text []byte, graph string) (uri string, err error)
	// Wait is the time without a change after which plans are made, Deadline how long
	// those of one program may take. Zero means 300 ms and 20 s.
	Wait, Deadline time.Duration
}

// server is one session with an editor.
type server struct {
	opts    Options
	conn    jsonrpc2.Conn
	planner *planner

	mu       sync.Mutex // of all below
	docs     map[string]*document
	roots    []string
	wide     bool // positions count units of UTF-16
	lenses   bool // the editor asks again for code lenses when told to
	hints    bool
	shutdown bool
	ended    chan bool // whether the editor, which wants the end, has asked for shutdown before
	dirty    map[string]bool
	wake     chan struct{}
}

// Serve answers an editor until it closes the stream or asks for the end.
func Serve(ctx context.Context, stream io.ReadWriteCloser, opts Options) error {
	if opts.Wait == 0 {
		opts.Wait = 300 * time.Millisecond
	}
	if opts.Deadline == 0 {
		opts.Deadline = 20 * time.Second
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	s := &server{opts: opts, docs: map[string]*document{}, wide: true, dirty: map[string]bool{}, wake: make(chan struct{}, 1),
		ended: make(chan bool, 1)}
	s.planner = newPlanner(s)
	s.conn = jsonrpc2.NewConn(jsonrpc2.NewHeaderStream(stream))
	go s.publisher(ctx)
	go s.planner.run(ctx)
	s.conn.Go(ctx, func(ctx context.Context, r *jsonrpc2.Request) (any, error) { return s.handle(ctx, r) })
	select {
	case <-s.conn.Done():
	case orderly := <-s.ended: // the stream may not be closed: a read of standard input does not end by that
		if !orderly {
			return errors.New("the editor has ended the session without a shutdown")
		}
		return nil
	case <-ctx.Done():
		stream.Close()
	}
	return s.conn.Err()
}

// handlers are the requests and notifications that have parameters about a place.
var handlers = map[string]func(s *server, p placeParams) (any, error){
	"textDocument/hover":               (*server).hover,
	"textDocument/definition":          (*server).definition,
	"textDocument/references":          (*server).references,
	"textDocument/documentHighlight":   (*server).highlight,
	"textDocument/prepareRename":       (*server).prepareRename,
	"textDocument/rename":              (*server).rename,
	"textDocument/completion":          (*server).completion,
	"textDocument/signatureHelp":       (*server).signatureHelp,
	"textDocument/inlayHint":           (*server).inlayHints,
	"textDocument/semanticTokens/full": (*server).semanticTokens,
	"textDocument/formatting":          (*server).formatting,
	"textDocument/codeAction":          (*server).codeActions,
	"textDocument/documentSymbol":      (*server).documentSymbols,
	"textDocument/codeLens":            (*server).codeLenses,
	"textDocument/foldingRange":        (*server).foldingRanges,
}

// handle answers one message. A broken invariant is an answer too: the session goes on.
func (s *server) handle(ctx context.Context, r *jsonrpc2.Request) (result any, err error) {
	defer func() {
		if v := recover(); v != nil {
			s.log("internal error in %s: %v\n%s", r.Method(), v, debug.Stack())
			result, err = nil, nil
			if r.IsCall() {
				err = jsonrpc2.NewError(jsonrpc2.InternalError, fmt.Sprint("internal error: ", v))
			}
		}
	}()
	if f, ok := handlers[r.Method()]; ok {
		var p placeParams
		if err := json.Unmarshal(r.Params(), &p); err != nil {
			return nil, jsonrpc2.NewError(jsonrpc2.InvalidParams, err.Error())
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		return f(s, p)
	}
	switch r.Method() {
	case "initialize":
		return s.initialize(r.Params())
	case "shutdown":
		s.shutdown = true
		return nil, nil
	case "exit":
		select {
		case s.ended <- s.shutdown:
		default: // it has been asked before
		}
		return nil, nil
	case "textDocument/didOpen", "textDocument/didChange", "textDocument/didClose", "textDocument/didSave":
		return nil, s.sync(r.Method(), r.Params())
	case "workspace/executeCommand":
		return s.execute(ctx, r.Params())
	}
	if r.IsCall() {
		return nil, jsonrpc2.ErrMethodNotFound
	}
	return nil, nil
}

func (s *server) initialize(raw []byte) (any, error) {
	var p initializeParams
	if err := json.Unmarshal(raw, &p); err != nil {
		return nil, jsonrpc2.NewError(jsonrpc2.InvalidParams, err.Error())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range p.WorkspaceFolders {
		s.roots = append(s.roots, pathOf(f.URI))
	}
	if len(s.roots) == 0 && p.RootURI != "" {
		s.roots = append(s.roots, pathOf(p.RootURI))
	}
	encoding := "utf-16"
	for _, e := range p.Capabilities.General.PositionEncodings {
		if e == "utf-8" {
			encoding, s.wide = e, false
		}
	}
	s.lenses = p.Capabilities.Workspace.CodeLens.RefreshSupport
	s.hints = p.Capabilities.Workspace.InlayHint.RefreshSupport
	provides := map[string]any{
		"positionEncoding":           encoding,
		"textDocumentSync":           map[string]any{"openClose": true, "change": 2, "save": true},
		"hoverProvider":              true,
		"definitionProvider":         true,
		"referencesProvider":         true,
		"documentHighlightProvider":  true,
		"renameProvider":             map[string]any{"prepareProvider": true},
		"completionProvider":         map[string]any{"triggerCharacters": []string{"@", "(", "["}},
		"signatureHelpProvider":      map[string]any{"triggerCharacters": []string{"(", ","}},
		"inlayHintProvider":          true,
		"semanticTokensProvider":     map[string]any{"legend": legend, "full": true},
		"documentFormattingProvider": true,
		"codeActionProvider":         map[string]any{"codeActionKinds": []string{"quickfix", "refactor.rewrite"}},
		"documentSymbolProvider":     true,
		"codeLensProvider":           map[string]any{},
		"foldingRangeProvider":       true,
	}
	if s.opts.View != nil {
		provides["executeCommandProvider"] = map[string]any{"commands": []string{viewCommand}}
	}
	return map[string]any{"capabilities": provides,
		"serverInfo": map[string]any{"name": "fusec", "version": s.opts.Version}}, nil
}

// sync keeps the text of open documents.
func (s *server) sync(method string, raw []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch method {
	case "textDocument/didOpen":
		var p openParams
		if json.Unmarshal(raw, &p) == nil {
			path := pathOf(p.TextDocument.URI)
			s.docs[path] = s.newDocument(path, p.TextDocument.Text, p.TextDocument.Version)
			s.changed(path)
		}
	case "textDocument/didChange":
		var p changeParams
		if json.Unmarshal(raw, &p) == nil {
			if d := s.docs[pathOf(p.TextDocument.URI)]; d != nil {
				d.text, d.version = d.text.edited(p.ContentChanges), p.TextDocument.Version
				s.changed(d.path)
			}
		}
	case "textDocument/didClose":
		var p placeParams
		if json.Unmarshal(raw, &p) == nil {
			path := pathOf(p.TextDocument.URI)
			delete(s.docs, path)
			s.changed(path)
		}
	}
	return nil
}

func (s *server) newDocument(path, src string, version int) *document {
	d := &document{path: path, version: version, text: newText(src, s.wide), plans: map[string]*planned{}}
	read := func(name string) ([]byte, error) {
		if open := s.docs[filepath.Clean(name)]; open != nil {
			return []byte(open.text.src), nil
		}
		if s.opts.ReadFile == nil {
			return nil, fmt.Errorf("no files are at hand here")
		}
		return s.opts.ReadFile(name, filepath.Dir(path), s.roots)
	}
	d.analyzer = parser.NewAnalyzer(path, parser.Options{ReadFile: read})
	return d
}

// changed makes diagnostics follow: those of the document, and of documents that import it.
func (s *server) changed(path string) {
	s.dirty[path] = true
	for _, d := range s.docs {
		importing := d.path == path
		if d.found != nil {
			for _, i := range d.found.Imports {
				importing = importing || filepath.Clean(i.Name) == path
			}
		}
		if importing {
			d.found = nil
			s.dirty[d.path] = true
		}
	}
	select {
	case s.wake <- struct{}{}:
	default:
	}
	s.planner.changed()
}

// analysis is what is known of a document now. The lock is held.
func (s *server) analysis(d *document) *parser.Analysis {
	if d.found == nil {
		found, err := d.analyzer.Analyze([]byte(d.text.src))
		if err != nil {
			panic("BUG: " + err.Error())
		}
		d.found = found
	}
	return d.found
}

// open returns the document of a request with its analysis.
func (s *server) open(p placeParams) (*document, *parser.Analysis, error) {
	d := s.docs[pathOf(p.TextDocument.URI)]
	if d == nil {
		return nil, nil, jsonrpc2.NewError(jsonrpc2.InvalidParams, "the document is not open: "+p.TextDocument.URI)
	}
	return d, s.analysis(d), nil
}

// file returns an open document, or one that is read for the moment; nil where there is none.
func (s *server) file(path, folder string) *document {
	if d := s.docs[path]; d != nil {
		return d
	}
	if s.opts.ReadFile == nil {
		return nil
	}
	src, err := s.opts.ReadFile(path, folder, s.roots)
	if err != nil {
		return nil
	}
	return s.newDocument(path, string(src), 0)
}

func (s *server) log(format string, args ...any) {
	_ = s.conn.Notify(context.Background(), "window/logMessage",
		map[string]any{"type": 1, "message": fmt.Sprintf(format, args...)})
}

// pathOf is the path of a file: URI; what has another scheme names itself.
func pathOf(uri string) string {
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != "file" {
		return uri
	}
	return filepath.Clean(filepath.FromSlash(u.Path))
}

func uriOf(path string) string {
	if strings.Contains(path, ":") && !filepath.IsAbs(path) {
		return path // a scheme of its own
	}
	u := url.URL{Scheme: "file", Path: filepath.ToSlash(path)}
	return u.String()
}
