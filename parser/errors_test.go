package parser

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/tools/txtar"

	"github.com/fusec/fusec/ir/diag"
)

// TestErrors compares what is reported for each file of testdata/errors with its
// errors section. A file's other sections can be imported. UPDATE=1 writes the sections.
func TestErrors(t *testing.T) {
	files, err := filepath.Glob("../testdata/errors/*.txtar")
	require.NoError(t, err)
	require.Greater(t, len(files), 60)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			require.NoError(t, err)
			sections := map[string]string{}
			for _, f := range archive.Files {
				sections[f.Name] = string(f.Data)
			}
			got := reported(t, sections)
			if os.Getenv("UPDATE") != "" {
				update(t, file, archive, got)
				return
			}
			assert.Equal(t, sections["errors"], got)
		})
	}
}

func reported(t *testing.T, files map[string]string) string {
	read := func(name string) ([]byte, error) {
		if text, ok := files[name]; ok {
			return []byte(text), nil
		}
		return nil, fs.ErrNotExist
	}
	_, err := Parse("in.fuse", []byte(files["in.fuse"]), Options{ReadFile: read})
	require.Error(t, err)
	var list diag.List
	require.True(t, errors.As(err, &list), "%T", err)
	return diag.Render(err, func(name string) (string, bool) {
		if text, ok := Source(name); ok {
			return text, true
		}
		text, ok := files[name]
		return text, ok
	})
}

func update(t *testing.T, file string, archive *txtar.Archive, got string) {
	var kept []txtar.File
	for _, f := range archive.Files {
		if f.Name != "errors" {
			kept = append(kept, f)
		}
	}
	archive.Files = append(kept, txtar.File{Name: "errors", Data: []byte(got)})
	require.NoError(t, os.WriteFile(file, txtar.Format(archive), 0o644))
}
