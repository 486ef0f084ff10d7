package lsp

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/textproto"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// client is an editor by script: it speaks the protocol over two pipes.
type client struct {
	t       *testing.T
	out     io.Writer
	mu      sync.Mutex
	next    int
	version int
	replies map[int]chan reply
	notes   chan publishParams
	asked   chan string // methods that the server asked for
	done    chan error
}

type reply struct {
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Message string `json:"message"`
	} `json:"error"`
}

type pipes struct {
	io.Reader
	io.WriteCloser
	in io.Closer
}

func (p pipes) Close() error {
	p.in.Close()
	return p.WriteCloser.Close()
}

// dial starts a server, and greets it as an editor that counts in UTF-16 would.
func dial(t *testing.T, opts Options, root string) *client {
	serverIn, clientOut, err := os.Pipe()
	require.NoError(t, err)
	clientIn, serverOut, err := os.Pipe()
	require.NoError(t, err)
	c := &client{t: t, out: clientOut, replies: map[int]chan reply{}, notes: make(chan publishParams, 10000),
		asked: make(chan string, 1000), done: make(chan error, 1)}
	go func() { c.done <- Serve(t.Context(), pipes{serverIn, serverOut, serverIn}, opts) }()
	go c.read(clientIn)
	t.Cleanup(func() {
		clientOut.Close()
		select {
		case <-c.done:
		case <-time.After(10 * time.Second):
			t.Error("the server does not end")
		}
		clientIn.Close()
	})
	folders := []map[string]string{{"uri": uriOf(root)}}
	c.call("initialize", map[string]any{"workspaceFolders": folders, "capabilities": map[string]any{
		"workspace": map[string]any{"codeLens": map[string]any{"refreshSupport": true}}}}, nil)
	c.notify("initialized", map[string]any{})
	return c
}

func (c *client) read(in io.Reader) {
	r := textproto.NewReader(bufio.NewReader(in))
	for {
		header, err := r.ReadMIMEHeader()
		if err != nil {
			return
		}
		n, _ := strconv.Atoi(header.Get("Content-Length"))
		body := make([]byte, n)
		if _, err := io.ReadFull(r.R, body); err != nil {
			return
		}
		var m struct {
			ID     *json.RawMessage `json:"id"`
			Method string           `json:"method"`
			Params json.RawMessage  `json:"params"`
			reply
		}
		if json.Unmarshal(body, &m) != nil {
			c.t.Errorf("not JSON: %s", body)
			return
		}
		switch {
		case m.Method == "textDocument/publishDiagnostics":
			var p publishParams
			if json.Unmarshal(m.Params, &p) != nil {
				c.t.Errorf("not diagnostics: %s", m.Params)
			}
			c.notes <- p
		case m.Method == "window/logMessage":
			c.t.Errorf("the server logs: %s", m.Params)
		case m.Method != "" && m.ID != nil:
			c.send(map[string]any{"jsonrpc": "2.0", "id": m.ID, "result": nil})
			c.asked <- m.Method
		case m.ID != nil:
			id, _ := strconv.Atoi(string(*m.ID))
			c.mu.Lock()
			ch := c.replies[id]
			c.mu.Unlock()
			ch <- m.reply
		}
	}
}

func (c *client) send(m any) {
	body, err := json.Marshal(m)
	if err != nil {
		panic(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	fmt.Fprintf(c.out, "Content-Length: %d\r\n\r\n%s", len(body), body)
}

func (c *client) notify(method string, params any) {
	c.send(map[string]any{"jsonrpc": "2.0", "method": method, "params": params})
}

// ask sends a request and waits for what comes back.
func (c *client) ask(method string, params any) reply {
	ch := make(chan reply, 1)
	c.mu.Lock()
	c.next++
	id := c.next
	c.replies[id] = ch
	c.mu.Unlock()
	c.send(map[string]any{"jsonrpc": "2.0", "id": id, "method": method, "params": params})
	select {
	case r := <-ch:
		return r
	case <-time.After(30 * time.Second):
		require.FailNow(c.t, "no answer to "+method)
		return reply{}
	}
}

func (c *client) call(method string, params, result any) {
	c.t.Helper()
	r := c.ask(method, params)
	require.Nil(c.t, r.Error, method)
	if result != nil {
		require.NoError(c.t, json.Unmarshal(r.Result, result))
	}
}

func (c *client) open(path, text string) {
	c.version++
	c.notify("textDocument/didOpen", map[string]any{"textDocument": map[string]any{"uri": uriOf(path), "languageId": "fuse",
		"version": c.version, "text": text}})
}

// change replaces a range, or all of the text where there is none.
func (c *client) change(path string, at *textRange, text string) {
	c.version++
	change := map[string]any{"text": text}
	if at != nil {
		change["range"] = at
	}
	c.notify("textDocument/didChange", map[string]any{"textDocument": documentID{uriOf(path), c.version}, "contentChanges": []any{change}})
}

// mistakes waits for the diagnostics of the last version of a document.
func (c *client) mistakes(path string) []diagnostic {
	c.t.Helper()
	for {
		select {
		case p := <-c.notes:
			if p.URI == uriOf(path) && p.Version == c.version {
				return p.Diagnostics
			}
		case <-time.After(30 * time.Second):
			require.FailNow(c.t, "no diagnostics")
		}
	}
}

func messages(list []diagnostic) []string {
	out := []string{}
	for _, d := range list {
		out = append(out, fmt.Sprintf("%d:%d-%d:%d %s", d.Range.Start.Line, d.Range.Start.Character, d.Range.End.Line,
			d.Range.End.Character, d.Message))
	}
	return out
}

// at is the place of a mark in a text: behind the n-th time that it stands there.
func at(path, text, mark string) map[string]any {
	i := strings.Index(text, mark)
	if i < 0 {
		panic("no " + mark)
	}
	return map[string]any{"textDocument": documentID{URI: uriOf(path)}, "position": newText(text, true).position(i + len(mark))}
}

func readFile(path, _ string, _ []string) ([]byte, error) { return os.ReadFile(path) }

func findPrograms(roots []string) []string {
	var out []string
	for _, root := range roots {
		found, _ := filepath.Glob(filepath.Join(root, "*.fuse"))
		out = append(out, found...)
	}
	return out
}
