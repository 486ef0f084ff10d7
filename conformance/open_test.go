package conformance

import (
	"errors"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/runtime/cuda"
)

// openEngine opens an engine for as long as a test runs, or skips where the machine lacks what it
// needs. In continuous integration NVRTC is not allowed to be missing.
func openEngine(t testing.TB, name string, o Options) *Engine {
	t.Helper()
	e, err := Open(name, o)
	if errors.Is(err, ErrMissing) && errors.Is(err, cuda.ErrNoNVRTC) && os.Getenv("CI") == "true" {
		t.Fatalf("continuous integration needs NVRTC: run scripts/get-nvrtc: %v", err)
	}
	if errors.Is(err, ErrMissing) {
		t.Skip(err)
	}
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	return e
}
