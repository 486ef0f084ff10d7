package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/fusec/fusec/parser"
)

type fmtCmd struct {
	Write bool     `short:"w" help:"Write the files instead of printing them."`
	Diff  bool     `short:"d" help:"Print what would change; exits with 1 where something would."`
	Files []string `arg:"" name:"file" help:"Programs to lay out."`
}

// Help is the long help text.
func (*fmtCmd) Help() string {
	return `Examples:

    fusec fmt -w examples/*.fuse
    fusec fmt -d examples/*.fuse`
}

// Run lays out every file, whatever is wrong with the ones before it.
func (c *fmtCmd) Run(a *app) error {
	failed := false
	for _, name := range c.Files {
		same, err := c.file(a, name)
		if err != nil {
			a.report(err)
		}
		failed = failed || err != nil || c.Diff && !same
	}
	if failed {
		return errFailed
	}
	return nil
}

// file lays out one file, and reports whether it was so already.
func (c *fmtCmd) file(a *app, name string) (same bool, err error) {
	src, err := a.files.read(name)
	if err != nil {
		return false, err
	}
	out, err := parser.Format(name, src)
	if err != nil {
		return false, err
	}
	same = bytes.Equal(src, out)
	switch {
	case c.Diff:
		a.ui.diff(string(diff.Diff(name, src, name+" laid out", out)))
	case !c.Write:
		a.ui.printf("%s", out)
	}
	if c.Write && !same {
		return same, replaceFile(name, out)
	}
	return same, nil
}

// replaceFile writes the new content of a file to a file beside it, and renames that. So a full disk
// destroys no program. A file that does not exist yet is made.
func replaceFile(name string, content []byte) error {
	mode := os.FileMode(0o644)
	switch info, err := os.Stat(name); {
	case err == nil:
		mode = info.Mode().Perm()
	case !os.IsNotExist(err):
		return plainPathError(err)
	}
	f, err := os.CreateTemp(filepath.Dir(name), ".fusec-*")
	if os.IsNotExist(err) {
		return fmt.Errorf("%s: there is no folder %s", name, filepath.Dir(name))
	}
	if err != nil {
		return plainPathError(err)
	}
	defer os.Remove(f.Name()) // gone already where all went well
	_, err = f.Write(content)
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Chmod(f.Name(), mode)
	}
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", name, plainPathError(err))
	}
	return nil
}

// diff prints a unified diff.
func (u *ui) diff(text string) {
	for line := range strings.Lines(text) {
		body := strings.TrimSuffix(line, "\n")
		switch {
		case strings.HasPrefix(body, "+"):
			body = u.style(green, body)
		case strings.HasPrefix(body, "-"):
			body = u.style(red, body)
		}
		u.printf("%s\n", body)
	}
}
