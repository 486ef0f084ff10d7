//go:build unix

package fusec

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	importable = "const SECRET = 1\n"
	importing  = "import %q\ngraph g(x: f32[N]) -> (y: f32[N]) { y = x + SECRET }\n"
)

// TestImportsStayInTheirFolders tries every way out of a program's folder.
func TestImportsStayInTheirFolders(t *testing.T) {
	top := t.TempDir()
	in := func(parts ...string) string { return filepath.Join(append([]string{top}, parts...)...) }
	require.NoError(t, os.MkdirAll(in("prog", "lib"), 0o700))
	require.NoError(t, os.MkdirAll(in("shared"), 0o700))
	require.NoError(t, os.MkdirAll(in("program"), 0o700)) // a longer name is another folder
	for _, path := range []string{in("prog", "lib", "in.fuse"), in("shared", "in.fuse"), in("out.fuse"),
		in("program", "out.fuse")} {
		require.NoError(t, os.WriteFile(path, []byte(importable), 0o600))
	}
	require.NoError(t, os.WriteFile(in("prog", "back.fuse"), []byte("import \"lib/in.fuse\"\n"), 0o600))
	require.NoError(t, os.WriteFile(in("prog", "lib", "up.fuse"), []byte("import \"../back.fuse\"\n"+importable), 0o600))
	require.NoError(t, os.WriteFile(in("prog", "lib", "over.fuse"), []byte("import \"../../out.fuse\"\n"), 0o600))
	require.NoError(t, syscall.Mkfifo(in("prog", "pipe"), 0o600))
	for name, target := range map[string]string{"inlink.fuse": "lib/in.fuse", "outlink.fuse": "../out.fuse",
		"abslink.fuse": in("out.fuse"), "outdir": "..", "etc.fuse": "/etc/passwd", "loop.fuse": "loop.fuse"} {
		require.NoError(t, os.Symlink(target, in("prog", name)))
	}
	const isOutside = "it is outside the folders that imports may come from"
	for _, c := range []struct {
		path  string
		roots []string
		want  string // part of the error; "" where it compiles
	}{
		{"lib/in.fuse", nil, ""},
		{"lib/../lib/in.fuse", nil, ""},
		{"../prog/lib/in.fuse", nil, ""},
		{"lib/up.fuse", nil, ""},
		{"inlink.fuse", nil, ""},
		{"../out.fuse", nil, isOutside},
		{"lib/over.fuse", nil, isOutside},
		{"../shared/in.fuse", nil, isOutside},
		{"../shared/in.fuse", []string{in("shared")}, ""},
		{"../shared/in.fuse", []string{in("none"), in("shared")}, ""},
		{"../out.fuse", []string{in("shared")}, isOutside},
		{"../program/out.fuse", nil, isOutside},
		{"outlink.fuse", nil, isOutside},
		{"abslink.fuse", nil, isOutside},
		{"etc.fuse", nil, isOutside},
		{"outdir/out.fuse", nil, isOutside},
		{strings.Repeat("../", 30) + "etc/passwd", nil, isOutside},
		{"pipe", nil, "not a regular file"},
		{"lib", nil, "not a regular file"},
		{"loop.fuse", nil, "cannot import"},
		{"none.fuse", nil, "no such file"},
	} {
		main := in("prog", "main.fuse")
		require.NoError(t, os.WriteFile(main, []byte(strings.Replace(importing, "%q", `"`+c.path+`"`, 1)), 0o600))
		source, err := ReadSource(main, c.roots...)
		require.NoError(t, err)
		_, err = CompileSource(source, Options{})
		if c.want == "" {
			assert.NoError(t, err, c.path)
			continue
		}
		require.ErrorContains(t, err, c.want, c.path)
		assert.Contains(t, err.Error(), ".fuse:1:1: cannot import", "the place of the import")
		assert.NotContains(t, err.Error(), "root:", "nothing of a file outside is shown")
	}
}

// The folder of a program may be named in any way.
func TestImportsWhereverTheProgramIs(t *testing.T) {
	top := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(top, "prog"), 0o700))
	require.NoError(t, os.Symlink("prog", filepath.Join(top, "link")))
	main := []byte(strings.Replace(importing, "%q", `"in.fuse"`, 1))
	require.NoError(t, os.WriteFile(filepath.Join(top, "prog", "main.fuse"), main, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(top, "prog", "in.fuse"), []byte(importable), 0o600))
	t.Chdir(filepath.Join(top, "prog"))
	for _, name := range []string{"main.fuse", "./main.fuse", "../prog/main.fuse", "../link/main.fuse",
		filepath.Join(top, "link", "main.fuse")} {
		source, err := ReadSource(name)
		require.NoError(t, err)
		_, err = CompileSource(source, Options{})
		assert.NoError(t, err, name)
	}
	_, err := ReadSource("/dev/zero")
	assert.ErrorContains(t, err, "not a regular file")
}
