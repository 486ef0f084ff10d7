package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec"
	"github.com/fusec/fusec/examples/train/traintest"
)

func TestResumes(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	m, err := model(makeText(200))
	require.NoError(t, err)
	traintest.Resumes(t, m, 2)
}

// TestKernels: a step of AdamW over all parameters takes few launches, and updates them all in place. The number
// of the step, which every kernel reads and one of the first writes, has a second buffer.
func TestKernels(t *testing.T) {
	p, err := fusec.Compile("gpt.fuse", source, fusec.Options{Graph: "update"})
	require.NoError(t, err)
	assert.LessOrEqual(t, len(p.Plan().Launched()), 14)
	states := 0
	for _, b := range p.Plan().Buffers {
		if b.Updates != nil && b.Updates.Name != "step" {
			states++
			assert.Empty(t, b.Apart, b.Updates.Name)
		}
	}
	assert.Equal(t, 3*15, states)
}

func TestShortText(t *testing.T) {
	_, err := model("too short")
	assert.ErrorContains(t, err, "expected more than 64")
}
