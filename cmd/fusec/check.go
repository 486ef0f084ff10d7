package main

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
)

type checkCmd struct {
	Files []string `arg:"" name:"file" help:"Programs to check, and DIR/... for all below a folder."`
}

// Help is the long help text.
func (*checkCmd) Help() string {
	return `Prints every mistake with its place in the program, and exits with 1 where there is one.
DIR/... stands for the .fuse files below a folder, and for the programs that its Go files hand
to fusec.Compile and fusec.MustCompile as constants.

Examples:

    fusec check examples/*.fuse
    fusec check ./...`
}

// Run checks every file, whatever is wrong with the ones before it.
func (c *checkCmd) Run(a *app) error {
	files, err := expand(c.Files)
	if err != nil {
		return err
	}
	failed := false
	for _, name := range files {
		for _, err := range a.check(name) {
			a.report(err)
			failed = true
		}
	}
	if failed {
		return errFailed
	}
	return nil
}

// check checks one file and returns what is wrong with each program in it.
func (a *app) check(name string) (errs []error) {
	if filepath.Ext(name) != ".go" {
		file, err := a.parse(name)
		a.warn(file, "")
		if err != nil {
			return []error{err}
		}
		return nil
	}
	programs, err := programsIn(name)
	if err != nil {
		return []error{err}
	}
	for _, p := range programs {
		a.files.texts[p.name] = p.text
		if _, err := a.parseAs(p.name, []byte(p.text), a.files.imports(name)); err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

// expand replaces DIR/... by the files below DIR, sorted. Folders that go commands
// pass over are passed over.
func expand(patterns []string) ([]string, error) {
	var out []string
	for _, p := range patterns {
		root, all := strings.CutSuffix(filepath.ToSlash(p), "/...")
		if !all && isFolder(p) {
			return nil, usagef("%s is a folder: %s means all programs below it", p, strings.TrimSuffix(filepath.ToSlash(p), "/")+"/...")
		}
		if !all {
			out = append(out, p)
			continue
		}
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return plainPathError(err)
			case d.IsDir() && path != root && skipped(d.Name()):
				return filepath.SkipDir
			case d.Type().IsRegular() && slices.Contains([]string{".fuse", ".go"}, filepath.Ext(path)):
				out = append(out, path)
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p, err)
		}
	}
	return out, nil
}

func skipped(folder string) bool {
	return strings.HasPrefix(folder, ".") || strings.HasPrefix(folder, "_") ||
		slices.Contains([]string{"testdata", "vendor"}, folder)
}
