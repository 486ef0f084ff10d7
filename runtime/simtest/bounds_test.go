package simtest_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime"
	"github.com/fusec/fusec/runtime/cache"
	"github.com/fusec/fusec/runtime/cuda"
	"github.com/fusec/fusec/runtime/simtest"
	"github.com/fusec/fusec/runtime/tensor"
)

// copier is a program whose kernel copies 16 bytes, however many its tensors have.
type copier struct{}

func (copier) Compile(_ context.Context, p *ir.Program, unit int, arch string) (runtime.Kernel, error) {
	return runtime.Kernel{Entry: p.Units[unit].Entry, Arch: arch, PTX: []byte(`.version 8.4
.target sm_90a
.address_size 64
.visible .entry copy(.param .u64 from, .param .u64 to, .param .u64 n) {
	.reg .b64 %rd<5>;
	ld.param.u64 %rd1, [from];
	ld.param.u64 %rd2, [to];
	ld.global.v2.u64 {%rd3, %rd4}, [%rd1];
	st.global.v2.u64 [%rd2], {%rd3, %rd4};
	ret;
}
`)}, nil
}

func copyProgram() *ir.Program {
	n, one := ir.Size{{Op: ir.OpSym}}, ir.Size{{Op: ir.OpConst, Val: 1}}
	args := []ir.LaunchArg{{Kind: ir.ArgParam}, {Kind: ir.ArgParam, Index: 1, Write: true}, {Kind: ir.ArgSize}}
	return &ir.Program{Name: "copy", Symbols: []string{"N"},
		Params: []ir.Param{{Name: "x", DType: ir.F32, Shape: []ir.Size{n}},
			{Name: "y", DType: ir.F32, Shape: []ir.Size{n}, Output: true}},
		Sources: []string{""}, Units: []ir.Unit{{Entry: "copy", Block: [3]int{1, 1, 1}}},
		Launches: []ir.Launch{{Kernel: "copy", Reads: one, Writes: one,
			Variants: []ir.LaunchVariant{{Grid: [3]ir.Size{one, one, one}, Args: args}}}}}
}

// Tensors of one run lie in one piece of memory, and still a kernel may not leave those
// that it is given.
func TestKernelsStayInTheirTensors(t *testing.T) {
	s := simtest.New(t, simtest.Config{})
	dev := s.Open(t, runtime.Options{Kernels: copier{}, Cache: cache.Open(cache.Options{Dir: t.TempDir()})})
	f, err := dev.Load(t.Context(), copyProgram())
	require.NoError(t, err)
	x, err := tensor.FromSlice([]float32{1, 2, 3, 4})
	require.NoError(t, err)
	out, err := f.Call(t.Context(), runtime.Args{"x": x})
	require.NoError(t, err)
	require.Equal(t, []float32{1, 2, 3, 4}, out["y"].Float32s())

	x, err = tensor.FromSlice([]float32{1, 2, 3})
	require.NoError(t, err)
	_, err = f.Call(t.Context(), runtime.Args{"x": x})
	require.ErrorIs(t, err, cuda.ErrDeviceLost)
	require.ErrorContains(t, err, "16 bytes at")
	require.ErrorContains(t, s.Fault(), "\n  from: 12 bytes at")
}
