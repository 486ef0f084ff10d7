package main

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec"
	"github.com/fusec/fusec/examples/train"
)

// TestStepsRepeat: two runs from the same parameters have the same losses to the last bit, near that of a model that
// knows nothing.
func TestStepsRepeat(t *testing.T) {
	s := shape{"test", 1, 32, 2, 128, 8}
	device, err := fusec.Open("cpu")
	require.NoError(t, err)
	defer func() { require.NoError(t, device.Close()) }()
	losses := func() []float32 {
		m, err := s.model(2)
		require.NoError(t, err)
		trainer, err := train.New(t.Context(), device, m)
		require.NoError(t, err)
		defer func() { require.NoError(t, trainer.Close()) }()
		for range 2 {
			require.NoError(t, trainer.Step(t.Context()))
		}
		return trainer.Losses
	}
	first := losses()
	assert.Equal(t, first, losses())
	assert.InDelta(t, math.Log(128), float64(first[0]), 0.1)
}

// TestKernels: each layer of the 124M model adds the same few kernels to a step, and the optimizer updates
// all parameters in few launches, in place.
func TestKernels(t *testing.T) {
	launches := func(layers int) int {
		s, err := shapeNamed("124M")
		require.NoError(t, err)
		s.layers = layers
		p, err := fusec.Compile("gpt2.fuse", []byte(s.program()), fusec.Options{Graph: "gradient"})
		require.NoError(t, err)
		return len(p.Plan().Launched())
	}
	one, two := launches(1), launches(2)
	assert.LessOrEqual(t, two-one, 25)

	s, err := shapeNamed("124M")
	require.NoError(t, err)
	s.layers = 3
	p, err := fusec.Compile("gpt2.fuse", []byte(s.program()), fusec.Options{Graph: "update"})
	require.NoError(t, err)
	assert.LessOrEqual(t, len(p.Plan().Launched()), len(s.parameters())*3/4)
	for _, b := range p.Plan().Buffers {
		if b.Updates != nil && b.Updates.Name != "step" {
			assert.Empty(t, b.Apart, b.Updates.Name)
		}
	}
}

func TestUnknownSize(t *testing.T) {
	_, err := shapeNamed("125M")
	assert.ErrorContains(t, err, "124M")
}
