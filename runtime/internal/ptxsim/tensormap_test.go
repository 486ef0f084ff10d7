package ptxsim

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func someTensorMap() TensorMap {
	return TensorMap{Type: 9, Rank: 3, Address: 0x7f0000000100, Dims: [5]uint64{1 << 32, 7, 5},
		Strides: [5]uint64{2, 1<<40 - 16, 4096}, Box: [5]uint32{64, 256, 1}, Steps: [5]uint32{1, 8, 1}, Swizzle: 128}
}

func TestTensorMapRoundTrip(t *testing.T) {
	five := TensorMap{Type: 7, Rank: 5, Dims: [5]uint64{1, 2, 3, 4, 5}, Strides: [5]uint64{4, 16, 32, 48, 64},
		Box: [5]uint32{4, 1, 2, 3, 4}, Steps: [5]uint32{1, 2, 3, 4, 5}, NaNFill: true}
	for _, m := range []TensorMap{someTensorMap(), five} {
		encoded, err := m.Encode()
		require.NoError(t, err)
		back, err := DecodeTensorMap(encoded[:])
		require.NoError(t, err)
		require.Equal(t, m, back)
	}
	_, err := DecodeTensorMap(make([]byte, TensorMapBytes))
	require.ErrorContains(t, err, "no tensor map")
}

// Each change breaks one rule of the driver.
func TestTensorMapRules(t *testing.T) {
	for want, change := range map[string]func(m *TensorMap){
		"type 13":           func(m *TensorMap) { m.Type = 13 },
		"0 dimensions":      func(m *TensorMap) { m.Rank = 0 },
		"multiple of 16":    func(m *TensorMap) { m.Address += 8 },
		"fills with NaN":    func(m *TensorMap) { m.Type, m.NaNFill = 1, true },
		"bytes apart":       func(m *TensorMap) { m.Strides[0] = 4 },
		"0 elements":        func(m *TensorMap) { m.Dims[2] = 0 },
		"a box of 257":      func(m *TensorMap) { m.Box[1] = 257 },
		"every 9-th":        func(m *TensorMap) { m.Steps[1] = 9 },
		"below 2^40":        func(m *TensorMap) { m.Strides[2] = 24 },
		"expected all":      func(m *TensorMap) { m.Steps[0] = 2 },
		"a box of 24 bytes": func(m *TensorMap) { m.Box[0] = 12 },
		"a swizzle of 16":   func(m *TensorMap) { m.Swizzle = 16 },
		"do not fit":        func(m *TensorMap) { m.Swizzle = 64 },
	} {
		m := someTensorMap()
		change(&m)
		_, err := m.Encode()
		require.ErrorContains(t, err, want)
	}
}
