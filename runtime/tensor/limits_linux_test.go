package tensor

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/internal/regular"
	"github.com/fusec/fusec/ir"
)

// tooLarge is a shape of f32 that takes 64 TiB: less than an address space has, and more
// than the memory of any machine that runs this.
var tooLarge = []int{1 << 22, 1 << 22}

func TestTensorsLargerThanMemoryAreRefused(t *testing.T) {
	for name, make := range map[string]func() error{
		"new":     func() error { _, err := New(ir.F32, tooLarge...); return err },
		"random":  func() error { _, err := Random(ir.F32, 1, tooLarge...); return err },
		"indices": func() error { _, err := RandomInts(ir.I32, 1, 0, 4, tooLarge...); return err },
	} {
		err := make()
		var refused *ir.MemoryError
		require.ErrorAs(t, err, &refused, name)
		assert.Equal(t, int64(1)<<46, refused.Bytes)
		assert.Positive(t, refused.Total)
		assert.ErrorContains(t, err, "32[4194304, 4194304] takes 64.0 TiB: this machine has ")
	}
	for _, shape := range [][]int{{1 << 62, 2}, {1 << 31, 1 << 31, 1 << 31}, {0, 1 << 62, 1 << 62}} {
		_, err := New(ir.F32, shape...)
		assert.ErrorContains(t, err, "larger than the address space")
	}
}

// sparse writes the header of an array and as much room as its elements take, which the
// file does not take on the disk.
func sparse(t *testing.T, fortran bool, shape ...int) string {
	path := filepath.Join(t.TempDir(), "sparse.npy")
	header := headerText(ir.F32, shape)
	if fortran {
		header = []byte(string(header[:10]) + strings.Replace(string(header[10:]), "False", "True ", 1))
	}
	require.NoError(t, os.WriteFile(path, header, 0o600))
	n, err := byteSize(ir.F32, shape)
	require.NoError(t, err)
	if err := os.Truncate(path, int64(len(header)+n)); err != nil {
		t.Skipf("no sparse files of this size here: %v", err)
	}
	return path
}

func TestFilesLargerThanMemoryAreRefused(t *testing.T) {
	for _, fortran := range []bool{false, true} {
		path := sparse(t, fortran, 1<<20, 1<<20) // 4 TiB
		_, err := ReadNPYFile(path, ir.F32)
		var refused *ir.MemoryError
		require.ErrorAs(t, err, &refused)
		assert.ErrorContains(t, err, path)
		if fortran {
			assert.Equal(t, int64(2)<<42, refused.Bytes, "what comes in another order is held twice")
		}
	}
	// A mapped file need not fit, unless its elements change places.
	if m, err := MapNPYFile(sparse(t, false, 1<<20, 1<<18), ir.F32); err == nil {
		require.NoError(t, m.Close())
	} else {
		var refused *ir.MemoryError
		assert.NotErrorAs(t, err, &refused)
	}
	_, err := MapNPYFile(sparse(t, true, 1<<20, 1<<18), ir.F32)
	var refused *ir.MemoryError
	assert.ErrorAs(t, err, &refused)
}

func TestOnlyRegularFilesAreRead(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	for _, path := range []string{pipe, "/dev/zero", t.TempDir()} {
		_, err := ReadNPYFile(path, ir.F32)
		assert.ErrorIs(t, err, regular.ErrKind)
		_, err = ReadNPZFile(path, nil)
		assert.ErrorIs(t, err, regular.ErrKind)
		_, err = MapNPYFile(path, ir.F32)
		assert.ErrorIs(t, err, regular.ErrKind)
	}
}
