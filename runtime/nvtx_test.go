//go:build linux && !nocuda

package runtime

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/runtime/internal/faketool"
)

// Where a tool is in the process, it sees each run by the name of its graph.
func TestRunsAreRanges(t *testing.T) {
	library, log := faketool.New(t, false)
	t.Setenv("NVTX_INJECTION64_PATH", library)
	_, fn := loadTriple(t, Options{})
	for range 2 {
		require.NoError(t, fn.Run(t.Context(), Args{"x": ramp(t, 100), "y": ramp(t, 100)}))
	}
	s := newStream(t, fn.Device())
	require.NoError(t, fn.Queue(t.Context(), s, Args{"x": newBuffer(t, fn.Device(), 100), "y": newBuffer(t, fn.Device(), 100)}))
	text, err := os.ReadFile(log)
	require.NoError(t, err)
	assert.Equal(t, "fusec triple\nfusec triple\nfusec triple\n", string(text))
}

// A tool that cannot be called is a warning.
func TestToolsThatFailAreWarnings(t *testing.T) {
	t.Setenv("NVTX_INJECTION64_PATH", "/missing/tool.so")
	var warned []error
	_, fn := loadTriple(t, Options{OnWarning: func(err error) { warned = append(warned, err) }})
	require.NoError(t, fn.Run(t.Context(), Args{"x": ramp(t, 100), "y": ramp(t, 100)}))
	require.Len(t, warned, 1)
	assert.ErrorContains(t, warned[0], "NVTX: ")
}
