package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/parser"
)

// sources reads programs and remembers their text, for carets.
type sources struct{ texts map[string]string }

func newSources() *sources { return &sources{map[string]string{}} }

// read returns a file's text. Its size is looked at first: a source that no
// parser would take is not worth its memory.
func (s *sources) read(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, plainPathError(err)
	}
	defer f.Close()
	limit := int64(parser.DefaultLimits.Bytes)
	if info, err := f.Stat(); err == nil && info.Size() > limit {
		return nil, fmt.Errorf("%s has %d bytes, a source may have %d at most", name, info.Size(), limit)
	}
	// A pipe has no size; the parser refuses the one byte more.
	text, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, plainPathError(err)
	}
	s.texts[name] = string(text)
	return text, nil
}

// plainPathError says of which file something is true, without the system call.
func plainPathError(err error) error {
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		return fmt.Errorf("%s: %w", pathErr.Path, pathErr.Err)
	}
	return err
}

// text is a diag.Sources over what was read and the embedded library.
func (s *sources) text(name string) (string, bool) {
	if t, ok := s.texts[name]; ok {
		return t, true
	}
	return parser.Source(name)
}

func (a *app) parse(name string) (*parser.File, error) {
	src, err := a.files.read(name)
	if err != nil {
		return nil, err
	}
	return parser.Parse(name, src, parser.Options{ReadFile: a.files.read})
}

// parseAs reads a text under a name other than its file's.
func (a *app) parseAs(name string, text []byte, read func(string) ([]byte, error)) (*parser.File, error) {
	return parser.Parse(name, text, parser.Options{ReadFile: read})
}

// graphs returns the graph of the given name, or all of them for "".
func (a *app) graphs(name, graph string) ([]*ir.Graph, error) {
	file, err := a.parse(name)
	if err != nil {
		return nil, err
	}
	if graph != "" {
		g, err := file.Graph(graph)
		return []*ir.Graph{g}, err
	}
	if len(file.Graphs) == 0 {
		return nil, fmt.Errorf("%s holds no graph", name)
	}
	return file.Graphs, nil
}
