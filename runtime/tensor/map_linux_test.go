package tensor_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime/tensor"
)

func TestMappedFilesReadAsOthersDo(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.npy")
	for _, shape := range [][]int{{3, 5}, {0}, {}, {100, 1000}} {
		x, err := tensor.Random(ir.F32, 1, shape...)
		require.NoError(t, err)
		require.NoError(t, tensor.WriteNPYFile(path, x))
		m, err := tensor.MapNPYFile(path, ir.Invalid)
		require.NoError(t, err)
		assert.True(t, tensor.Equal(x, m.Tensor))
		if m.Len() > 0 { // writing changes the memory, not the file
			m.Data[0]++
			again, err := tensor.ReadNPYFile(path, ir.F32)
			require.NoError(t, err)
			assert.True(t, tensor.Equal(x, again))
		}
		require.NoError(t, m.Close())
		require.NoError(t, m.Close())
	}
}

// TestMappedFilesOfOtherOrders maps what is stored in another order.
func TestMappedFilesOfOtherOrders(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.npy")
	for _, header := range []string{"{'descr': '>i2', 'fortran_order': False, 'shape': (2, 3)}",
		"{'descr': '<i2', 'fortran_order': True, 'shape': (2, 3)}", "{'descr': '|b1', 'fortran_order': False, 'shape': (12,)}"} {
		require.NoError(t, os.WriteFile(path, npy(1, header, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11), 0o600))
		want, err := tensor.ReadNPYFile(path, ir.Invalid)
		require.NoError(t, err)
		m, err := tensor.MapNPYFile(path, ir.Invalid)
		if err != nil { // headers of an odd length
			assert.ErrorContains(t, err, "read the file")
			continue
		}
		assert.True(t, tensor.Equal(want, m.Tensor), header)
		require.NoError(t, m.Close())
	}
}

func TestCreatedFilesHoldWhatIsWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "y.npy")
	m, err := tensor.CreateNPYFile(path, ir.F32, 2, 300)
	require.NoError(t, err)
	x, err := tensor.Random(ir.F32, 2, 2, 300)
	require.NoError(t, err)
	copy(m.Data, x.Data)
	require.NoError(t, m.Close())
	got, err := tensor.ReadNPYFile(path, ir.F32)
	require.NoError(t, err)
	assert.True(t, tensor.Equal(x, got))
	empty, err := tensor.CreateNPYFile(path, ir.F32, 0, 4)
	require.NoError(t, err)
	assert.Empty(t, empty.Data)
	require.NoError(t, empty.Close())
	_, err = tensor.CreateNPYFile(path, ir.F32, -1)
	assert.Error(t, err)
}

func TestFilesThatCannotBeMapped(t *testing.T) {
	dir := t.TempDir()
	_, err := tensor.MapNPYFile(filepath.Join(dir, "none.npy"), ir.Invalid)
	assert.ErrorIs(t, err, os.ErrNotExist)
	_, err = tensor.MapNPYFile(dir, ir.Invalid)
	assert.ErrorContains(t, err, "regular file")
	path := filepath.Join(dir, "short.npy")
	x, err := tensor.Random(ir.F32, 1, 10)
	require.NoError(t, err)
	require.NoError(t, tensor.WriteNPYFile(path, x))
	require.NoError(t, os.Truncate(path, 140))
	_, err = tensor.MapNPYFile(path, ir.Invalid)
	assert.ErrorContains(t, err, "truncated")
	odd := append([]byte("\x93NUMPY\x01\x00\x3d\x00"), []byte("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }    \n")...)
	odd = append(odd[:10+61], 1, 2, 3, 4)
	require.NoError(t, os.WriteFile(path, odd, 0o600))
	_, err = tensor.MapNPYFile(path, ir.Invalid)
	assert.ErrorContains(t, err, "read the file")
}
