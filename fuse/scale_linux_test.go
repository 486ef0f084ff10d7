package fuse

import (
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// processorTime is what this thread has taken of processors so far: it does not count what other
// processes take.
func processorTime(t *testing.T) time.Duration {
	const thread = 1 // RUSAGE_THREAD
	var use syscall.Rusage
	require.NoError(t, syscall.Getrusage(thread, &use))
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}
