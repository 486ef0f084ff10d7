//go:build unix

package regular

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestOnlyRegularFilesAreRead(t *testing.T) {
	dir := t.TempDir()
	pipe, link, file := filepath.Join(dir, "pipe"), filepath.Join(dir, "link"), filepath.Join(dir, "file")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	require.NoError(t, os.Symlink(pipe, link))
	require.NoError(t, os.WriteFile(file, []byte("12345"), 0o600))
	root, err := os.OpenRoot(dir)
	require.NoError(t, err)
	defer root.Close()
	start := time.Now()
	for path, want := range map[string]string{pipe: "pipe", link: "pipe", dir: "folder", "/dev/zero": "device"} {
		_, err := ReadFile(path, 100)
		var at *fs.PathError
		require.ErrorAs(t, err, &at)
		assert.Equal(t, path, at.Path)
		assert.ErrorIs(t, err, ErrKind)
		assert.ErrorContains(t, err, want)
	}
	_, _, err = OpenIn(root, "pipe")
	assert.ErrorIs(t, err, ErrKind)
	f, _, err := OpenIn(root, "file")
	require.NoError(t, err)
	require.NoError(t, f.Close())
	_, _, err = OpenIn(root, "../other")
	assert.Error(t, err)
	assert.Less(t, time.Since(start), 5*time.Second, "nothing waits")

	b, err := ReadFile(file, 5)
	require.NoError(t, err)
	assert.Equal(t, "12345", string(b))
	_, err = ReadFile(file, 4)
	assert.ErrorIs(t, err, ErrSize)
	_, err = ReadFile(filepath.Join(dir, "none"), 4)
	assert.ErrorIs(t, err, fs.ErrNotExist)
}

// A file that does not have the size it had is an error, whether more or less is there.
func TestFilesThatChangeAreRefused(t *testing.T) {
	for _, size := range []int64{0, 3, 10} {
		path := filepath.Join(t.TempDir(), "file")
		require.NoError(t, os.WriteFile(path, []byte("12345"), 0o600))
		f, info, err := Open(path)
		require.NoError(t, err)
		require.NoError(t, os.Truncate(path, size))
		_, err = Read(f, info, 100)
		assert.ErrorIs(t, err, ErrGrown, "%d", size)
		require.NoError(t, f.Close())
	}
	_, err := ReadFile("/proc/self/status", 1<<20) // says it has no bytes, and has some
	if !os.IsNotExist(err) {
		assert.ErrorIs(t, err, ErrGrown)
	}
}
