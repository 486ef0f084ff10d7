package main

import (
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/fusec/fusec/internal/regular"
)

// A repro is a folder, or one Go file that holds the files of such a folder. The Go file is a program that needs the standard
// library and fusec's own program; fusec reads it without running it.

// mostReproFile bounds the files that a Go file holds, all together; larger inputs belong into a folder.
const mostReproFile = 16 << 20

// reproFiles is the name of the files in a Go file.
const reproFiles = "files"

// isGoFile reports whether a repro is, or is to be, a Go file.
func isGoFile(name string) bool { return filepath.Ext(name) == ".go" }

// writeReproGo makes a Go file.
func (a *app) writeReproGo(name string, c runCmd, found outcome) error {
	dir, err := os.MkdirTemp("", "fusec-repro-*")
	if err != nil {
		return plainPathError(err)
	}
	defer os.RemoveAll(dir)
	if err := a.writeRepro(dir, c, found); err != nil {
		return err
	}
	text, err := packedRepro(dir)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return replaceFile(name, text)
}

// packedRepro is the Go file of a folder.
func packedRepro(dir string) ([]byte, error) {
	var b strings.Builder
	b.WriteString(reproGoHead)
	total := 0
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := regular.ReadFile(filepath.Join(dir, filepath.FromSlash(name)), mostReproFile)
		if err != nil {
			return err
		}
		if total += len(text); total > mostReproFile {
			return fmt.Errorf("all files together have more than %s: make a folder", byteText(mostReproFile))
		}
		fmt.Fprintf(&b, "%q: %s,\n", name, goText(string(text)))
		return nil
	})
	if err != nil {
		return nil, plainPathError(err)
	}
	b.WriteString("}\n")
	return format.Source([]byte(b.String()))
}

// goText spells a text in Go: as it is, where that can be.
func goText(text string) string {
	if utf8.ValidString(text) && !strings.ContainsAny(text, "`\r\ufeff\x00") {
		return "`" + text + "`"
	}
	return strconv.Quote(text)
}

// unpackRepro writes what a Go file holds into a folder.
func unpackRepro(name, dir string) error {
	const most = 8 * mostReproFile // \x00 for a byte, and more than enough
	text, err := regular.ReadFile(name, most)
	if err != nil {
		return plainPathError(err)
	}
	file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	held := heldFiles(file)
	if held[reproName] == "" {
		return fmt.Errorf("%s: expected what fusec repro -o %s writes", name, filepath.Base(name))
	}
	for _, at := range sortedNames(held) {
		if !filepath.IsLocal(filepath.FromSlash(at)) {
			return fmt.Errorf("%s: a file %q lies outside of the folder", name, at)
		}
		to := filepath.Join(dir, filepath.FromSlash(at))
		if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
			return plainPathError(err)
		}
		if err := os.WriteFile(to, []byte(held[at]), 0o666); err != nil {
			return plainPathError(err)
		}
	}
	return nil
}

// heldFiles are the texts in var files = map[string]string{...}.
func heldFiles(file *ast.File) map[string]string {
	out := map[string]string{}
	for _, d := range file.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.VAR {
			continue
		}
		for _, s := range g.Specs {
			v := s.(*ast.ValueSpec) // of a var declaration
			if v.Names[0].Name != reproFiles || len(v.Values) != 1 {
				continue
			}
			list, _ := v.Values[0].(*ast.CompositeLit)
			for i := 0; list != nil && i < len(list.Elts); i++ {
				if pair, ok := list.Elts[i].(*ast.KeyValueExpr); ok {
					out[literal(pair.Key)] = literal(pair.Value)
				}
			}
		}
	}
	return out
}

func literal(e ast.Expr) string {
	l, ok := e.(*ast.BasicLit)
	if !ok {
		return ""
	}
	text, err := strconv.Unquote(l.Value)
	if err != nil {
		return ""
	}
	return text
}

// runReproGo runs what a Go file holds and says whether it fails as it did.
func (a *app) runReproGo(name string) error {
	dir, err := os.MkdirTemp("", "fusec-repro-*")
	if err != nil {
		return plainPathError(err)
	}
	defer os.RemoveAll(dir)
	if err := unpackRepro(name, dir); err != nil {
		return err
	}
	return a.runRepro(dir)
}

const reproGoHead = `//go:build ignore

// A run of a program in the .fuse language, with all that it takes to run it again, made by fusec repro. It says whether the
// failure is still there, and exits with 1 where it is:
//
//	go run THIS_FILE      # with fusec in PATH, or where FUSEC says
//	fusec repro THIS_FILE
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

func main() {
	code, err := run()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}

// run puts the files into a folder and has fusec run that.
func run() (code int, err error) {
	dir, err := os.MkdirTemp("", "repro-*")
	if err != nil {
		return 3, err
	}
	defer os.RemoveAll(dir)
	for name, text := range files {
		to := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
			return 3, err
		}
		if err := os.WriteFile(to, []byte(text), 0o666); err != nil {
			return 3, err
		}
	}
	fusec := os.Getenv("FUSEC")
	if fusec == "" {
		fusec = "fusec"
	}
	again := exec.Command(fusec, "repro", dir)
	again.Stdout, again.Stderr = os.Stdout, os.Stderr
	err = again.Run()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		return exit.ExitCode(), nil
	case err != nil:
		return 3, fmt.Errorf("%w: go install github.com/fusec/fusec/cmd/fusec@latest makes it", err)
	}
	return 0, nil
}

var files = map[string]string{
`
