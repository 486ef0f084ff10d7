//go:build linux && !nocuda

package runtime

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime/cuda"
)

// mappedProgram is tripleProgram whose first kernel also takes a map of x, from its
// fifth element, as two rows.
func mappedProgram() *ir.Program {
	p := tripleProgram()
	half := apply(ir.OpFloorDiv, symbol(0), constant(2))
	p.TensorMaps = []ir.TensorMap{
		{Of: ir.LaunchArg{Kind: ir.ArgTemp, Index: 1}, DType: ir.F32, Dims: []ir.Size{symbol(0)}, Box: []int{8}},
		{Of: ir.LaunchArg{Kind: ir.ArgParam}, DType: ir.F32, Offset: constant(4), Dims: []ir.Size{half, constant(2)},
			Strides: []ir.Size{half}, Box: []int{32, 2}, Swizzle: 128},
	}
	v := &p.Launches[0].Variants[0]
	v.Args = append(v.Args, ir.LaunchArg{Kind: ir.ArgTensorMap, Index: 1})
	return p
}

func TestTensorMapsAreEncodedOnceForAnAddress(t *testing.T) {
	requireNVRTC(t)
	f := fakeDriver(t)
	fn, err := f.open(t, Options{}).Load(context.Background(), mappedProgram())
	require.NoError(t, err)
	d := fn.Device()
	args := Args{}
	for _, name := range []string{"x", "y"} {
		b, err := d.NewBuffer(ir.F32, 100)
		require.NoError(t, err)
		defer b.Close()
		args[name] = b
	}
	require.NoError(t, args["x"].(*Buffer).Upload(ramp(t, 100)))
	for range 3 {
		require.NoError(t, fn.Run(context.Background(), args))
	}
	got, err := args["y"].(*Buffer).Tensor()
	require.NoError(t, err)
	requireTripled(t, ramp(t, 100), got)
	assert.EqualValues(t, 1, f.Calls("cuTensorMapEncodeTiled"), "the map of the temporary is not taken")
	require.NoError(t, fn.Run(context.Background(), Args{"x": args["y"], "y": args["x"]}))
	assert.EqualValues(t, 2, f.Calls("cuTensorMapEncodeTiled"), "x lies elsewhere")
	f.Fail("cuTensorMapEncodeTiled", 1, 0)
	assert.ErrorIs(t, fn.Run(context.Background(), args), cuda.ErrInvalidValue)
}

func TestBindMap(t *testing.T) {
	m, err := bindMap(&mappedProgram().TensorMaps[1], []int64{100})
	require.NoError(t, err)
	assert.EqualValues(t, 16, m.offset)
	assert.Equal(t, cuda.TensorMapConfig{Type: cuda.TensorMapFloat32, Dims: []uint64{50, 2}, Strides: []uint64{200},
		Box: []uint32{32, 2}, Swizzle: cuda.Swizzle128B, L2: cuda.L2Promotion256B}, m.config)
	m, err = bindMap(&mappedProgram().TensorMaps[0], []int64{100})
	require.NoError(t, err)
	assert.Zero(t, m.offset, "a map without one")
	rounded := mappedProgram().TensorMaps[1]
	rounded.TF32 = true
	m, err = bindMap(&rounded, []int64{100})
	require.NoError(t, err)
	assert.Equal(t, cuda.TensorMapTFloat32, m.config.Type)
	assert.Equal(t, []uint64{200}, m.config.Strides, "elements of 32 bits")
	_, err = bindMap(&mappedProgram().TensorMaps[1], []int64{-100})
	assert.ErrorContains(t, err, "64 bits")
}

// TestBoundsOfTensorMaps: the least and the most of what a map may have is taken, and one more or less is refused.
func TestBoundsOfTensorMaps(t *testing.T) {
	for name, of := range map[string]struct {
		most int
		set  func(m *ir.TensorMap, n int)
	}{
		"dims": {5, func(m *ir.TensorMap, n int) {
			one := slices.Repeat([]ir.Size{constant(1)}, n)
			m.Dims, m.Strides, m.Box = one, one[:max(n-1, 0)], slices.Repeat([]int{1}, n)
		}},
		"a box":      {256, func(m *ir.TensorMap, n int) { m.Box = []int{32, n} }},
		"steps":      {8, func(m *ir.TensorMap, n int) { m.Steps = []int{1, n} }},
		"first step": {8, func(m *ir.TensorMap, n int) { m.Steps = []int{n, 1} }},
	} {
		for n, ok := range map[int]bool{0: false, 1: true, of.most: true, of.most + 1: false} {
			p := mappedProgram()
			of.set(&p.TensorMaps[1], n)
			assert.Equal(t, ok, checkProgram(p) == nil, "%s of %d", name, n)
		}
	}
}

func TestMalformedTensorMaps(t *testing.T) {
	require.NoError(t, checkProgram(mappedProgram()))
	for want, change := range map[string]func(*ir.TensorMap){
		"of no tensor":      func(m *ir.TensorMap) { m.Of.Kind = ir.ArgSize },
		"an unknown tensor": func(m *ir.TensorMap) { m.Of.Index = 7 },
		"a box of 1":        func(m *ir.TensorMap) { m.Box = m.Box[:1] },
		"0 dims":            func(m *ir.TensorMap) { m.Dims = nil },
		"a box of [0 2]":    func(m *ir.TensorMap) { m.Box[0] = 0 },
		"no map for":        func(m *ir.TensorMap) { m.DType = ir.Invalid },
		"rounds bf16":       func(m *ir.TensorMap) { m.DType, m.TF32 = ir.BF16, true },
		"swizzle of 48":     func(m *ir.TensorMap) { m.Swizzle = 48 },
		"names no symbol":   func(m *ir.TensorMap) { m.Strides[0] = symbol(1) },
	} {
		p := mappedProgram()
		change(&p.TensorMaps[1])
		assert.ErrorContains(t, checkProgram(p), want)
	}
	p := mappedProgram()
	p.Launches[0].Variants[0].Args[3].Index = 2
	assert.ErrorContains(t, checkProgram(p), "unknown argument")
}
