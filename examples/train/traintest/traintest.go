// Package traintest checks what every example of training promises.
package traintest

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec"
	"github.com/fusec/fusec/examples/train"
)

// Resumes trains a model for some steps, and again with an interruption after half of them: a loss must be
// lower in the end, and each the same to the last bit whether the run was interrupted or not.
func Resumes(t *testing.T, m *train.Model, steps int) {
	device, err := fusec.Open("cpu")
	require.NoError(t, err)
	defer func() { require.NoError(t, device.Close()) }()
	run := func(from string, until int, to string) []float32 {
		trainer, err := train.New(t.Context(), device, m)
		require.NoError(t, err)
		defer func() { require.NoError(t, trainer.Close()) }()
		if from != "" {
			require.NoError(t, trainer.Load(from))
		}
		for len(trainer.Losses) < until {
			require.NoError(t, trainer.Step(t.Context()))
		}
		if to != "" {
			require.NoError(t, trainer.Save(to))
		}
		return trainer.Losses
	}
	whole := run("", steps, "")
	assert.Less(t, whole[steps-1], whole[0])
	path := filepath.Join(t.TempDir(), "half.safetensors")
	half := run("", steps/2, path)
	assert.Equal(t, whole[:steps/2], half)
	assert.Equal(t, whole, run(path, steps, ""))
}
