package tensor_test

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/internal/fuzztest"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime/tensor"
)

// safetensors builds a file by hand, as the format's specification lays it out.
func safetensors(header string, data ...byte) []byte {
	return append(append(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), header...), data...)
}

func readSafetensors(t *testing.T, b []byte, want tensor.Want) (map[string]*tensor.Tensor, error) {
	path := filepath.Join(t.TempDir(), "x.safetensors")
	require.NoError(t, os.WriteFile(path, b, 0o600))
	return tensor.ReadSafetensorsFile(path, want)
}

func TestSafetensorsRoundTripOfEveryType(t *testing.T) {
	arrays := map[string]*tensor.Tensor{"scalar": must(tensor.Scalar(ir.I64, 3)), "none": must(tensor.New(ir.F32, 0, 4))}
	for _, dt := range ir.DTypes() {
		arrays["layers.0."+dt.String()] = must(tensor.Random(dt, 1, 3, 5))
	}
	path := filepath.Join(t.TempDir(), "x.safetensors")
	require.NoError(t, tensor.WriteSafetensorsFile(path, arrays))
	got, err := tensor.ReadSafetensorsFile(path, nil)
	require.NoError(t, err)
	assert.Equal(t, arrays, got)
	only, err := tensor.ReadSafetensorsFile(path, func(name string) (ir.DType, bool) { return ir.I64, name == "scalar" })
	require.NoError(t, err)
	assert.Len(t, only, 1)
}

// What the format's own writer makes of one array.
func TestSafetensorsText(t *testing.T) {
	var b bytes.Buffer
	x := must(tensor.FromFloats(ir.F32, []float32{1, 2}, 2))
	require.NoError(t, tensor.WriteSafetensors(&b, map[string]*tensor.Tensor{"x": x}))
	const header = `{"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}  `
	assert.Equal(t, string(safetensors(header, 0, 0, 0x80, 0x3f, 0, 0, 0, 0x40)), b.String())
	got, err := readSafetensors(t, safetensors(`{"__metadata__":{"format":"pt"},`+header[1:], b.Bytes()[8+len(header):]...), nil)
	require.NoError(t, err)
	assert.True(t, tensor.Equal(x, got["x"]))
}

func TestSafetensorsThatAreWrong(t *testing.T) {
	two := []byte{0, 0, 0, 0, 0, 0, 0, 0}
	for want, b := range map[string][]byte{
		"ends within the length of the header":         {1, 2, 3},
		"found one of 99":                              append([]byte{99, 0, 0, 0, 0, 0, 0, 0}, "{}"...),
		"found one of 18446744073709551615":            bytes.Repeat([]byte{255}, 64),
		"expected a JSON object":                       safetensors(`[]`),
		"malformed header":                             safetensors(`{"x":`),
		`array "x" is there twice`:                     safetensors(`{"x":{},"x":{}}`),
		`element type "C64" is not supported`:          safetensors(`{"x":{"dtype":"C64","shape":[1],"data_offsets":[0,8]}}`, two...),
		"expected data_offsets":                        safetensors(`{"x":{"dtype":"F32","shape":[2]}}`, two...),
		"from byte 0 to 16, and the file has 8":        safetensors(`{"x":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}}`, two...),
		"from byte -4 to 4":                            safetensors(`{"x":{"dtype":"F32","shape":[2],"data_offsets":[-4,4]}}`, two...),
		"from byte 8 to 0":                             safetensors(`{"x":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}}`, two...),
		"expected 12 bytes of elements for f32[3]":     safetensors(`{"x":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}}`, two...),
		"larger than the address space":                safetensors(`{"x":{"dtype":"F32","shape":[4611686018427387904,2],"data_offsets":[0,8]}}`, two...),
		"are those of other arrays":                    safetensors(`{"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"y":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}`, two...),
		"dimensions are at least 0":                    safetensors(`{"x":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}}`, two...),
		"cannot unmarshal number 2.5":                  safetensors(`{"x":{"dtype":"F32","shape":[2.5],"data_offsets":[0,8]}}`, two...),
		"cannot unmarshal number 99999999999999999999": safetensors(`{"x":{"dtype":"F32","shape":[2],"data_offsets":[0,99999999999999999999]}}`, two...),
	} {
		_, err := readSafetensors(t, b, nil)
		assert.ErrorContains(t, err, want)
		assert.ErrorContains(t, err, "x.safetensors: ")
	}
	_, err := readSafetensors(t, safetensors(`{"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}`, two...),
		func(string) (ir.DType, bool) { return ir.F64, true })
	assert.ErrorContains(t, err, `array "x": expected elements of type f64, found f32`)
	_, err = tensor.ReadSafetensorsFile("/dev/zero", nil)
	assert.ErrorContains(t, err, "not a regular file")
}

// FuzzSafetensors: no file makes the reader panic, or allocate out of proportion.
func FuzzSafetensors(f *testing.F) {
	f.Add(safetensors(`{"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"y":{"dtype":"U8","shape":[],"data_offsets":[0,1]}}`,
		1, 2, 3, 4, 5, 6, 7, 8))
	path := filepath.Join(f.TempDir(), "x.safetensors")
	f.Fuzz(func(t *testing.T, b []byte) {
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		n := fuzztest.Allocated(func() {
			arrays, err := tensor.ReadSafetensorsFile(path, nil)
			for name, x := range arrays {
				if err != nil || x.Check() != nil {
					t.Fatalf("read an impossible tensor %q: %v %v", name, x, err)
				}
			}
		})
		if n > int64(64*len(b)+maxOverhead) {
			t.Fatalf("%d bytes were allocated for a file of %d", n, len(b))
		}
	})
}
