package tensor_test

import (
	"archive/zip"
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/internal/fuzztest"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime/tensor"
)

// FuzzNPZ: no archive makes the reader panic, or allocate more than deflate can pack into
// so many bytes.
func FuzzNPZ(f *testing.F) {
	for _, deflate := range []bool{false, true} {
		var b bytes.Buffer
		arrays := map[string]*tensor.Tensor{"a": must(tensor.Random(ir.F32, 1, 2, 3)), "b": must(tensor.New(ir.F64, 100))}
		if err := tensor.WriteNPZ(&b, arrays, deflate); err != nil {
			f.Fatal(err)
		}
		f.Add(b.Bytes())
	}
	path := filepath.Join(f.TempDir(), "x.npz")
	f.Fuzz(func(t *testing.T, b []byte) {
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		const most = 1032 // that a byte of deflate stands for
		n := fuzztest.Allocated(func() {
			arrays, err := tensor.ReadNPZFile(path, nil)
			for name, x := range arrays {
				if err != nil || x.Check() != nil {
					t.Fatalf("read an impossible tensor %q: %v %v", name, x, err)
				}
			}
		})
		if n > int64(2*most*len(b)+maxOverhead) {
			t.Fatalf("%d bytes were allocated for an archive of %d", n, len(b))
		}
	})
}

func TestNPZRoundTrip(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.npz")
	arrays := map[string]*tensor.Tensor{
		"w": must(tensor.Random(ir.BF16, 1, 8, 8)), "b": must(tensor.Random(ir.F32, 2, 8)),
		"s": must(tensor.Scalar(ir.I64, 3)), "zeros": must(tensor.New(ir.F64, 100000)),
	}
	want := func(name string) (ir.DType, bool) { return arrays[name].DType, true }
	sizes := map[bool]int64{}
	for _, deflate := range []bool{false, true} {
		require.NoError(t, tensor.WriteNPZFile(path, arrays, deflate))
		got, err := tensor.ReadNPZFile(path, want)
		require.NoError(t, err)
		assert.Equal(t, arrays, got)
		info, _ := os.Stat(path)
		sizes[deflate] = info.Size()
	}
	assert.Less(t, sizes[true], sizes[false]/100)

	_, err := tensor.ReadNPZFile(path, nil)
	assert.ErrorContains(t, err, path+`: array "w": elements of descr "<V2" are raw bytes`)
	only, err := tensor.ReadNPZFile(path, func(name string) (ir.DType, bool) { return ir.Invalid, name == "b" })
	require.NoError(t, err)
	assert.Len(t, only, 1)
	assert.True(t, tensor.Equal(arrays["b"], only["b"]))
}

func archive(t *testing.T, members ...string) string {
	path := filepath.Join(t.TempDir(), "x.npz")
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for i := 0; i < len(members); i += 2 {
		w, err := z.Create(members[i])
		require.NoError(t, err)
		_, err = w.Write([]byte(members[i+1]))
		require.NoError(t, err)
	}
	require.NoError(t, z.Close())
	require.NoError(t, os.WriteFile(path, b.Bytes(), 0o600))
	return path
}

func TestBadNPZ(t *testing.T) {
	one := string(npy(1, dict("|u1", "(1,)"), 1))
	_, err := tensor.ReadNPZFile(archive(t, "a.npy", one, "a.npy", one), nil)
	assert.ErrorContains(t, err, `array "a" is there twice`)
	_, err = tensor.ReadNPZFile(archive(t, "a.npy", one[:20]), nil)
	assert.ErrorContains(t, err, `array "a": truncated`)
	_, err = tensor.ReadNPZFile(archive(t, "a.txt", "some text file"), nil)
	assert.ErrorContains(t, err, `array "a.txt": not an .npy file`)

	path := archive(t, "a", one)
	x, err := tensor.ReadNPZFile(path, nil)
	require.NoError(t, err)
	assert.Contains(t, x, "a", "a name without .npy")
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	for n := range len(b) {
		require.NoError(t, os.WriteFile(path, b[:n], 0o600))
		_, err = tensor.ReadNPZFile(path, nil)
		require.ErrorContains(t, err, path, "%d bytes", n)
	}
}

// A flipped bit in the elements is found by the archive's checksum; a lie about
// sizes does not allocate.
func TestCorruptNPZ(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.npz")
	x := must(tensor.Random(ir.U8, 1, 1000))
	require.NoError(t, tensor.WriteNPZFile(path, map[string]*tensor.Tensor{"x": x}, false))
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	at := bytes.Index(b, x.Data)
	b[at+10] ^= 1
	require.NoError(t, os.WriteFile(path, b, 0o600))
	_, err = tensor.ReadNPZFile(path, nil)
	assert.ErrorContains(t, err, "checksum")

	central := bytes.LastIndex(b, []byte("PK\x01\x02"))
	copy(b[central+24:], "\xff\xff\xff\x7f") // uncompressed size
	require.NoError(t, os.WriteFile(path, b, 0o600))
	_, err = tensor.ReadNPZFile(path, nil)
	assert.ErrorContains(t, err, "corrupt archive")
}
