//go:build linux && !nocuda

package runtime

import (
	"bytes"
	"context"
	"expvar"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/runtime/cache"
)

func TestCountersCountRunsAndKernels(t *testing.T) {
	store := newCache(t, t.TempDir())
	for pass, name := range []string{"cold", "warm"} {
		t.Run(name, func(t *testing.T) { countRuns(t, store, int64(pass)) })
	}
}

// countRuns runs with a cache that is empty in pass 0.
func countRuns(t *testing.T, store *cache.Cache, pass int64) {
	var counters Counters
	_, fn := loadTriple(t, Options{Cache: store, Observer: &counters, SampleKernels: 3})
	for range 6 {
		require.NoError(t, fn.Run(context.Background(), Args{"x": ramp(t, 100), "y": ramp(t, 100)}))
	}
	d := fn.Device()
	s := newStream(t, d)
	require.NoError(t, fn.Queue(context.Background(), s, Args{"x": newBuffer(t, d, 100), "y": newBuffer(t, d, 100)}))
	require.Error(t, fn.Run(context.Background(), Args{"x": ramp(t, 13), "y": ramp(t, 13)}))
	got := counters.Totals()
	assert.Contains(t, got.String(), "8 runs (1 failed) in ")
	assert.Contains(t, got.String(), fmt.Sprintf("14 kernels that moved %d bytes", 7*5*400))
	assert.EqualValues(t, 8, got.Runs)
	assert.EqualValues(t, 1, got.Failures)
	assert.EqualValues(t, 7*2, got.Kernels)
	assert.EqualValues(t, 7*5*400, got.Bytes)
	assert.Positive(t, got.RunTime)
	assert.EqualValues(t, 2*(1-pass), got.Compiles)
	assert.EqualValues(t, 2*pass, got.Hits)
	require.Len(t, got.Timed, 2)
	assert.EqualValues(t, 2, got.Timed["triple/plus"].Count, "one run in three")
	assert.EqualValues(t, 2*3*400, got.Timed["triple/plus"].Bytes)
	assert.Positive(t, got.Timed["triple/twice"].Took)
}

// TestCountersCountLoads: those that were compiled, with the time of it, and those that were found.
func TestCountersCountLoads(t *testing.T) {
	var c Counters
	for n, outcome := range []cache.Outcome{cache.Created, cache.Hit, cache.Created, cache.Hit, cache.Hit} {
		c.Loaded(LoadEvent{Outcome: outcome, Took: time.Duration(1 << n)})
	}
	got := c.Totals()
	assert.EqualValues(t, 2, got.Compiles)
	assert.EqualValues(t, 3, got.Hits)
	assert.EqualValues(t, 1+4, got.CompileTime)
}

// published makes names that no earlier run of a test has taken.
var published atomic.Int64

func TestCountersAreExpvars(t *testing.T) {
	var counters Counters
	counters.Ran(RunEvent{Kernels: 3, Bytes: 5, Took: time.Second})
	name := fmt.Sprintf("%s %d", t.Name(), published.Add(1))
	require.NoError(t, counters.Publish(name))
	assert.ErrorContains(t, counters.Publish(name), "is taken")
	assert.JSONEq(t, `{"Runs":1,"Failures":0,"Kernels":3,"Bytes":5,"RunTime":1000000000,"Compiles":0,"Hits":0,
		"CompileTime":0,"Timed":null}`, expvar.Get(name).String())
}

func TestLogObserver(t *testing.T) {
	var text bytes.Buffer
	log := slog.New(slog.NewTextHandler(&text, &slog.HandlerOptions{Level: slog.LevelInfo}))
	o := Observers(LogObserver(log), &Counters{})
	o.Ran(RunEvent{Graph: "quiet"})
	o.Timed(KernelEvent{Kernel: "quiet"})
	o.Loaded(LoadEvent{Kernel: "quiet", Outcome: cache.Hit})
	assert.Empty(t, text.String())
	o.Loaded(LoadEvent{Kernel: "fresh", Outcome: cache.Created})
	o.Ran(RunEvent{Graph: "broken", Err: errClosed})
	assert.Contains(t, text.String(), "level=INFO msg=\"kernel loaded\" graph=\"\" device=\"\" kernel=fresh")
	assert.Contains(t, text.String(), "level=ERROR msg=run graph=broken")
	assert.Contains(t, text.String(), errClosed.Error())
}
