package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/fusec/fusec"
	"github.com/fusec/fusec/internal/regular"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/diag"
	"github.com/fusec/fusec/parser"
	"github.com/fusec/fusec/runtime/sign"
)

// sources reads programs and remembers their text, for carets.
type sources struct {
	texts   map[string]string
	roots   []string          // folders that programs may import from, beside their own
	instead map[string]string // texts to be read in place of those of files
}

func newSources(roots []string) *sources { return &sources{texts: map[string]string{}, roots: roots} }

// read returns the text of a program that the user names.
func (s *sources) read(name string) ([]byte, error) {
	if text, ok := s.instead[name]; ok {
		s.texts[name] = text
		return []byte(text), nil
	}
	text, err := regular.ReadFile(name, int64(parser.DefaultLimits.Bytes))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w%s", plainPathError(err), nearestFile(name))
	}
	if err != nil {
		return nil, plainPathError(err)
	}
	if fusec.IsBundle(name) {
		return nil, fmt.Errorf("%s is a bundle: expected the program it was made from (fusec run takes bundles, with --public-key)", name)
	}
	if what := noProgram(name, text); what != "" {
		return nil, fmt.Errorf("%s %s: expected the text of a program, .fuse", name, what)
	}
	s.texts[name] = string(text)
	return text, nil
}

// noProgram says what is certainly no program: nothing of it belongs into a message, secret keys least.
func noProgram(name string, text []byte) string {
	if secret, err := sign.IsSecret(name); err == nil && secret {
		return "is a secret key"
	}
	if bytes.IndexByte(text, 0) >= 0 {
		return "is no text"
	}
	return ""
}

// nearestFile suggests the program whose name is most like one that there is none of.
func nearestFile(name string) string {
	there, err := filepath.Glob(filepath.Join(filepath.Dir(name), "*"+filepath.Ext(name)))
	if err != nil {
		return ""
	}
	if filepath.Ext(name) != ".fuse" {
		programs, _ := filepath.Glob(filepath.Join(filepath.Dir(name), "*.fuse"))
		there = append(there, programs...)
	}
	for i := range there {
		there[i] = filepath.Base(there[i])
	}
	near := diag.Nearest(filepath.Base(name), there)
	if near == "" {
		return ""
	}
	return ": did you mean " + filepath.Join(filepath.Dir(name), near) + "?"
}

// imports returns what reads the imports of a program.
func (s *sources) imports(program string) func(name string) ([]byte, error) {
	read := fusec.ImportsFrom(append([]string{filepath.Dir(program)}, s.roots...)...)
	return func(name string) ([]byte, error) {
		text, err := read(name)
		if errors.Is(err, fusec.ErrOutside) {
			return nil, fmt.Errorf("%w (--import-root DIR adds one)", err)
		}
		if err != nil {
			return nil, plainPathError(err)
		}
		s.texts[name] = string(text)
		return text, nil
	}
}

// source reads a program that may import others.
func (s *sources) source(name string) (fusec.Source, error) {
	text, err := s.read(name)
	return fusec.Source{Name: name, Text: text, ReadFile: s.imports(name)}, err
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
	file, err := parser.Parse(name, src, parser.Options{ReadFile: a.files.imports(name)})
	return file, err
}

// warn prints the warnings of a graph of a program that was read, of all of them for ""; file is nil where it was not.
func (a *app) warn(file *parser.File, graph string) {
	if file == nil {
		return
	}
	if warnings := file.WarningsOf(graph); len(warnings) > 0 {
		a.ui.diagnostics(diag.Render(warnings, a.files.text))
	}
}

// parseAs reads a text under a name other than its file's.
func (a *app) parseAs(name string, text []byte, read func(string) ([]byte, error)) (*parser.File, error) {
	file, err := parseText(name, text, read)
	a.warn(file, "")
	return file, err
}

func parseText(name string, text []byte, read func(string) ([]byte, error)) (*parser.File, error) {
	return parser.Parse(name, text, parser.Options{ReadFile: read})
}

// graphs returns the graph of the given name, or all of them for "".
func (a *app) graphs(name, graph string) ([]*ir.Graph, error) {
	file, err := a.parse(name)
	a.warn(file, graph)
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
