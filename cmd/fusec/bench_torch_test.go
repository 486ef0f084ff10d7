package main

import (
	"cmp"
	"context"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime/tensor"
)

// openTorch starts the real peer, or skips. The Python to use can be named by PYTHON.
func openTorch(t *testing.T) *peer {
	python := cmp.Or(os.Getenv("PYTHON"), "python3")
	if err := exec.Command(python, "-c", "import torch").Run(); err != nil {
		t.Skipf("%s has no PyTorch: %v", python, err)
	}
	p, err := startPeer(context.Background(), "torch", python)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, p.close())
		assert.NoDirExists(t, p.dir)
	})
	return p
}

// torchCase is a vector, a scalar and an index, and sizes by name.
func torchCase(t *testing.T) (arguments, []ir.Param) {
	x, err := tensor.FromFloats(ir.BF16, []float32{1, -2, 3}, 3)
	require.NoError(t, err)
	s, err := tensor.FromSlice([]float32{0.5})
	require.NoError(t, err)
	i, err := tensor.FromSlice([]int64{2, 0}, 2)
	require.NoError(t, err)
	return arguments{inputs: []*tensor.Tensor{x, s, i}, sizes: map[string]int64{"N": 3}},
		[]ir.Param{{Name: "x", DType: ir.BF16}, {Name: "s", DType: ir.F32}, {Name: "i", DType: ir.I64}}
}

func TestTorchPeer(t *testing.T) {
	p, ctx := openTorch(t), context.Background()
	assert.Contains(t, p.name, "PyTorch")
	assert.Contains(t, p.modes, "eager")
	args, params := torchCase(t)
	out := []ir.Param{{Name: "y", DType: ir.F32}, {Name: "n", DType: ir.I64}, {Name: "z", DType: ir.BF16}}
	shapes := map[string][]int{"y": {2}, "n": nil, "z": {0, 4}}
	load := func(code string) error { return p.load(ctx, code, f32Exact, args, params, out, shapes) }
	y, err := tensor.FromSlice([]float32{4.5, 2.5}, 2)
	require.NoError(t, err)
	n, err := tensor.FromSlice([]int64{6})
	require.NoError(t, err)
	z, err := tensor.New(ir.BF16, 0, 4)
	require.NoError(t, err)
	ours := []*tensor.Tensor{y, n, z}

	require.NoError(t, load("(x[i] + N * s, torch.tensor(2 * N), x[:0, None].expand(0, 4))"))
	got, err := p.prepare(ctx, "eager", out, ours)
	require.NoError(t, err)
	assert.NoError(t, got.err)
	assert.Zero(t, got.worst)
	times, err := p.time(ctx, "eager", block{warmup: 1, repeat: 3})
	require.NoError(t, err)
	assert.Len(t, times.MS, 3)

	var refused peerRefusal
	for code, want := range map[string]string{
		"(x, x, x)": "ValueError: output y: expected shape [2], found [3]",
		"x":         "ValueError: expected 3 results, found 1",
		"w":         "NameError: name 'w' is not defined",
	} {
		require.NoError(t, load(code))
		_, err = p.prepare(ctx, "eager", out, ours)
		require.ErrorAs(t, err, &refused, code)
		assert.EqualError(t, err, want)
	}
	require.ErrorAs(t, load("1 +"), &refused)
	require.NoError(t, p.unload(ctx))
	_, err = p.time(ctx, "eager", block{warmup: 1, repeat: 3, wall: true})
	assert.ErrorAs(t, err, &refused, "nothing is loaded")
}
