package tensor_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/internal/fuzztest"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime/tensor"
)

// npy builds a file of the given version by hand, as the format's specification
// lays it out.
func npy(version byte, dict string, data ...byte) []byte {
	out := append([]byte("\x93NUMPY"), version, 0)
	if version == 1 {
		out = binary.LittleEndian.AppendUint16(out, uint16(len(dict)))
	} else {
		out = binary.LittleEndian.AppendUint32(out, uint32(len(dict)))
	}
	return append(append(out, dict...), data...)
}

func dict(descr string, shape string) string {
	return fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': %s, }\n", descr, shape)
}

func read(b []byte, want ir.DType) (*tensor.Tensor, error) {
	return tensor.ReadNPY(bytes.NewReader(b), int64(len(b)), want)
}

// What numpy.save writes for float32 ones of shape (2, 3): 128 bytes of header.
func TestWriteIsWhatNumPyWrites(t *testing.T) {
	var b bytes.Buffer
	x := must(tensor.FromFloats(ir.F32, []float32{1, 1, 1, 1, 1, 1}, 2, 3))
	require.NoError(t, tensor.WriteNPY(&b, x))
	want := "\x93NUMPY\x01\x00v\x00{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }" +
		strings.Repeat(" ", 58) + "\n" + strings.Repeat("\x00\x00\x80\x3f", 6)
	assert.Equal(t, want, b.String())
	for shape, text := range map[string][]int{"()": {}, "(5,)": {5}, "(0, 7)": {0, 7}} {
		b.Reset()
		require.NoError(t, tensor.WriteNPY(&b, must(tensor.New(ir.U8, text...))))
		assert.Contains(t, b.String(), "{'descr': '|u1', 'fortran_order': False, 'shape': "+shape+", } ")
		assert.Zero(t, bytes.IndexByte(b.Bytes(), '\n')%64-63)
	}
}

func TestRoundTripOfEveryType(t *testing.T) {
	dir := t.TempDir()
	for _, dt := range ir.DTypes() {
		for _, shape := range [][]int{{}, {7}, {2, 3, 5}, {0, 4}} {
			path := filepath.Join(dir, "x.npy")
			x := must(tensor.Random(dt, 1, shape...))
			require.NoError(t, tensor.WriteNPYFile(path, x))
			y, err := tensor.ReadNPYFile(path, dt)
			require.NoError(t, err)
			assert.Equal(t, x, y)
		}
	}
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, left, 1, "no temporary files stay")
}

func TestReadVersionsOrdersAndNames(t *testing.T) {
	be := []byte{0x3f, 0x80, 0, 0, 0xc0, 0, 0, 0} // 1, -2 big-endian
	le := []byte{0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0}
	for _, c := range []struct {
		name string
		file []byte
		want ir.DType
		as   ir.DType
		vals []float64
	}{
		{"v1", npy(1, dict("<f4", "(2,)"), le...), ir.Invalid, ir.F32, []float64{1, -2}},
		{"v2", npy(2, dict("<f4", "(2,)"), le...), ir.F32, ir.F32, []float64{1, -2}},
		{"v3", npy(3, dict("=f4", "(2,)"), le...), ir.F32, ir.F32, []float64{1, -2}},
		{"big-endian", npy(1, dict(">f4", "(2,)"), be...), ir.F32, ir.F32, []float64{1, -2}},
		{"big-endian i2", npy(1, dict(">i2", "(2,)"), 1, 2, 255, 255), ir.I16, ir.I16, []float64{258, -1}},
		{"order of keys, quotes", npy(1, `{"shape": (2L,), "fortran_order":False,"descr":"<f4"}`, le...),
			ir.F32, ir.F32, []float64{1, -2}},
		{"bf16 V2", npy(1, dict("<V2", "(1,)"), 0x80, 0x3f), ir.BF16, ir.BF16, []float64{1}},
		{"bf16 |V2", npy(1, dict("|V2", "(1,)"), 0x80, 0x3f), ir.BF16, ir.BF16, []float64{1}},
		{"bf16 bits", npy(1, dict("<u2", "(1,)"), 0x80, 0x3f), ir.BF16, ir.BF16, []float64{1}},
		{"bf16 name", npy(1, dict("bfloat16", "(1,)"), 0x80, 0x3f), ir.Invalid, ir.BF16, []float64{1}},
		{"f8 V1", npy(1, dict("|V1", "(1,)"), 0x38), ir.F8E4M3, ir.F8E4M3, []float64{1}},
		{"f8 u1", npy(1, dict("|u1", "(1,)"), 0x3c), ir.F8E5M2, ir.F8E5M2, []float64{1}},
		{"f8 name", npy(1, dict("float8_e4m3fn", "(1,)"), 0x38), ir.Invalid, ir.F8E4M3, []float64{1}},
		{"0-d", npy(1, dict("<f8", "()"), 0, 0, 0, 0, 0, 0, 0xf0, 0x3f), ir.F64, ir.F64, []float64{1}},
		{"bool", npy(1, dict("|b1", "(3,)"), 0, 1, 7), ir.Bool, ir.Bool, []float64{0, 1, 1}},
	} {
		x, err := read(c.file, c.want)
		if assert.NoError(t, err, c.name) {
			assert.Equal(t, c.as, x.DType, c.name)
			assert.Equal(t, c.vals, x.Floats(), c.name)
		}
	}
}

func TestFortranOrder(t *testing.T) {
	data := []byte{0, 3, 1, 4, 2, 5}
	x, err := read(npy(1, "{'descr': '|i1', 'fortran_order': True, 'shape': (2, 3)}", data...), ir.I8)
	require.NoError(t, err)
	assert.Equal(t, []float64{0, 1, 2, 3, 4, 5}, x.Floats())

	// Element (i, j, k) of shape (2, 3, 4) holds 100 i + 10 j + k.
	var file []byte
	for k := range 4 {
		for j := range 3 {
			for i := range 2 {
				file = binary.BigEndian.AppendUint16(file, uint16(100*i+10*j+k))
			}
		}
	}
	x, err = read(npy(1, "{'descr': '>i2', 'fortran_order': True, 'shape': (2, 3, 4)}", file...), ir.I16)
	require.NoError(t, err)
	for at, v := range x.Ints() {
		i := x.Index(at)
		assert.EqualValues(t, 100*i[0]+10*i[1]+i[2], v)
	}
}

func TestBadFiles(t *testing.T) {
	long := npy(2, "")
	binary.LittleEndian.PutUint32(long[8:], 1<<30)
	f4 := dict("<f4", "(2,)")
	for name, c := range map[string]struct {
		file []byte
		want ir.DType
		msg  string
	}{
		"empty":       {nil, 0, "truncated: the file ends within the 10-byte preamble"},
		"magic":       {[]byte("PK\x03\x04aaaaaaaaa"), 0, "not an .npy file"},
		"short text":  {[]byte("1,2\n"), 0, "not an .npy file"},
		"short magic": {[]byte("\x93NUM"), 0, "truncated"},
		"version":     {npy(4, f4), 0, "expected .npy version 1, 2 or 3, found 4.0"},
		"header":      {npy(1, f4)[:40], 0, "ends within the 58-byte header"},
		"long header": {long, 0, "expected a header of at most 1048576 bytes, found 1073741824"},
		"elements":    {npy(1, f4, 1, 2, 3), 0, "truncated: expected 8 bytes of elements for f32[2], found 3"},
		"surplus":     {npy(1, f4, make([]byte, 9)...), 0, "expected 8 bytes of elements for f32[2], found 9"},
		"overflow":    {npy(1, dict("<f8", "(4294967296, 4294967296)")), 0, "larger than the address space"},
		"huge":        {npy(1, dict("<f8", "(99999999999,)")), 0, "truncated: expected 799999999992 bytes"},
		"dim range": {npy(1, dict("<f8", "(99999999999999999999,)")), 0,
			"malformed header: expected a dimension"},
		"negative dim": {npy(1, dict("<f8", "(-1,)")), 0, `malformed header: expected a dimension, found "-1,)`},
		"rank":         {npy(1, dict("<f8", "("+strings.Repeat("1,", 65)+")")), 0, "at most 64 dimensions"},
		"object":       {npy(1, dict("|O", "(1,)")), 0, "pickled Python objects, which are never loaded"},
		"structured": {npy(1, "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}"), 0,
			"structured elements are not supported"},
		"complex": {npy(1, dict("<c8", "(1,)"), make([]byte, 8)...), 0, `element type "<c8" is not supported`},
		"no name": {npy(1, dict("", "(1,)")), 0, `element type "" is not supported`},
		"raw":     {npy(1, dict("|V2", "(1,)"), 1, 2), 0, "can be bf16 or f16: say which is expected"},
		"other type": {npy(1, f4, make([]byte, 8)...), ir.BF16,
			`expected elements of type bf16 (descr "<V2"), found descr "<f4" (f32)`},
		"doubles": {npy(1, dict("<f8", "(1,)"), make([]byte, 8)...), ir.F32,
			`expected elements of type f32 (descr "<f4"), found descr "<f8" (f64): in NumPy, save x.astype("float32")`},
		"flags":      {npy(1, dict("|u1", "(1,)"), 0), ir.Bool, `save x.astype("bool")`},
		"key":        {npy(1, "{'foo': 1}"), 0, `found key "foo"`},
		"few keys":   {npy(1, "{'shape': (1,)}"), 0, "expected the keys descr, fortran_order and shape, found 1"},
		"two keys":   {npy(1, "{'shape': (1,), 'shape': (2,)}"), 0, `key "shape" is there twice`},
		"not a dict": {npy(1, "hello"), 0, `expected "{"`},
		"after dict": {npy(1, "{'descr': '<f4', 'fortran_order': False, 'shape': ()} x", 0, 0, 0, 0), 0,
			"expected the end"},
	} {
		x, err := read(c.file, c.want)
		assert.Nil(t, x, name)
		assert.ErrorContains(t, err, c.msg, name)
	}
}

func TestEveryTruncationIsAnError(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, tensor.WriteNPY(&b, must(tensor.Random(ir.F32, 1, 3, 3))))
	for n := range b.Len() {
		_, err := read(b.Bytes()[:n], ir.F32)
		require.Error(t, err, "%d bytes", n)
	}
}

func TestFileErrorsNameTheFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "in.npy")
	require.NoError(t, os.WriteFile(path, []byte("junk"), 0o600))
	_, err := tensor.ReadNPYFile(path, ir.F32)
	assert.ErrorContains(t, err, path+": not an .npy file")
	_, err = tensor.ReadNPYFile(dir, ir.F32)
	assert.ErrorContains(t, err, "not a regular file: it is a folder")
	_, err = tensor.ReadNPYFile(filepath.Join(dir, "none"), ir.F32)
	assert.ErrorIs(t, err, os.ErrNotExist)
	err = tensor.WriteNPYFile(filepath.Join(dir, "none", "x.npy"), must(tensor.New(ir.F32)))
	assert.ErrorIs(t, err, os.ErrNotExist)
}

func TestFailedWriteLeavesTheOldFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.npy")
	old := must(tensor.Random(ir.F32, 1, 4))
	require.NoError(t, tensor.WriteNPYFile(path, old))
	bad := &tensor.Tensor{DType: ir.F32, Shape: []int{5}, Data: make([]byte, 3)}
	require.Error(t, tensor.WriteNPYFile(path, bad))
	got, err := tensor.ReadNPYFile(path, ir.F32)
	require.NoError(t, err)
	assert.True(t, tensor.Equal(old, got))
	left, _ := os.ReadDir(filepath.Dir(path))
	assert.Len(t, left, 1)
}

func TestWriteThroughLinkAndToDevice(t *testing.T) {
	dir := t.TempDir()
	real, link := filepath.Join(dir, "real.npy"), filepath.Join(dir, "link.npy")
	require.NoError(t, os.WriteFile(real, nil, 0o644))
	require.NoError(t, os.Symlink(real, link))
	require.NoError(t, tensor.WriteNPYFile(link, must(tensor.Scalar(ir.F32, 1))))
	x, err := tensor.ReadNPYFile(real, ir.F32)
	require.NoError(t, err)
	assert.Equal(t, 1.0, x.At())
	require.NoError(t, tensor.WriteNPYFile(os.DevNull, x))
	info, err := os.Stat(os.DevNull)
	require.NoError(t, err)
	assert.False(t, info.Mode().IsRegular(), "the device is still a device")
}

// maxOverhead is what reading may allocate beside what the input's length allows.
const maxOverhead = 1 << 20

func FuzzNPY(f *testing.F) {
	for _, dt := range ir.DTypes() {
		var b bytes.Buffer
		if err := tensor.WriteNPY(&b, must(tensor.Random(dt, 1, 2, 3))); err != nil {
			f.Fatal(err)
		}
		f.Add(b.Bytes(), uint8(dt))
	}
	f.Add(npy(3, "{'descr': '>f4', 'fortran_order': True, 'shape': (1, 2)}", make([]byte, 8)...), uint8(0))
	f.Add(npy(2, dict("|O", "(1,)")), uint8(0))
	f.Add(npy(1, dict("<f8", "(4294967296, 4294967296)")), uint8(0))
	f.Fuzz(func(t *testing.T, b []byte, want uint8) {
		var x *tensor.Tensor
		var err error
		if n := fuzztest.Allocated(func() { x, err = read(b, ir.DType(want)) }); n > int64(8*len(b)+maxOverhead) {
			t.Fatalf("%d bytes were allocated for a file of %d", n, len(b))
		}
		if err != nil {
			return
		}
		if err := x.Check(); err != nil || len(x.Data) > len(b) {
			t.Fatalf("read an impossible tensor: %v %v", x, err)
		}
		var out bytes.Buffer
		if err := tensor.WriteNPY(&out, x); err != nil {
			t.Fatal(err)
		}
		y, err := read(out.Bytes(), x.DType)
		if err != nil || !bytes.Equal(x.Data, y.Data) {
			t.Fatalf("%v does not survive a round trip: %v", x, err)
		}
	})
}

func BenchmarkReadNPYFile(b *testing.B) {
	path := filepath.Join(b.TempDir(), "x.npy")
	x := must(tensor.New(ir.BF16, 16<<20))
	if err := tensor.WriteNPYFile(path, x); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(x.Data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := tensor.ReadNPYFile(path, ir.BF16); err != nil {
			b.Fatal(err)
		}
	}
}
