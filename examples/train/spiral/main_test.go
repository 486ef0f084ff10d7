package main

import (
	"bytes"
	"encoding/xml"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/examples/train"
	"github.com/fusec/fusec/examples/train/traintest"
)

func TestResumes(t *testing.T) {
	m, err := model()
	require.NoError(t, err)
	traintest.Resumes(t, m, 40)
}

// TestRun: a run that is started again goes on, and both leave a state and a chart.
func TestRun(t *testing.T) {
	m, err := model()
	require.NoError(t, err)
	dir := t.TempDir()
	o := train.Options{Device: "cpu", Steps: 4, Every: 2, State: filepath.Join(dir, "a.safetensors"), Chart: filepath.Join(dir, "loss.svg")}
	var first, second bytes.Buffer
	require.NoError(t, train.Run(t.Context(), m, o, &first))
	assert.Contains(t, first.String(), "step     2  loss ")
	o.Steps, o.Initial, o.Beside = 6, filepath.Join(dir, "first.safetensors"), filepath.Join(dir, "other.json")
	require.NoError(t, os.WriteFile(o.Beside, []byte(`{"losses": [1, 0.5, 0.25]}`), 0o644))
	require.NoError(t, train.Run(t.Context(), m, o, &second))
	assert.Contains(t, second.String(), "goes on behind step 4 of "+o.State)
	assert.Contains(t, second.String(), "step     6  loss ")
	chart, err := os.ReadFile(o.Chart)
	require.NoError(t, err)
	assert.NoError(t, xml.Unmarshal(chart, new(struct{})))
	assert.Equal(t, 2, strings.Count(string(chart), "<polyline"))
	assert.FileExists(t, o.Initial)
}
