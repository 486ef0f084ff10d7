package cpu

import (
	"bytes"
	"context"
	goruntime "runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
)

// TestHelpersEnd soon after what they have helped with.
func TestHelpersEnd(t *testing.T) {
	before := goruntime.NumGoroutine()
	var done atomic.Int64
	for range 100 {
		new(call).together(8, func() { done.Add(1) })
	}
	assert.EqualValues(t, 800, done.Load())
	require.Eventually(t, func() bool { return goruntime.NumGoroutine() <= before+1 }, 10*time.Second, time.Millisecond) // Eventually's own
	// A goroutine of another test may have ended in place of a helper.
	for i := range crew {
		require.Eventually(t, func() bool { return crew[i].Load() == nil }, 10*time.Second, time.Millisecond, "nobody is left at place %d", i)
	}
}

// TestHelpersEndWhereTimeStandsStill: goroutines that run in a test of testing/synctest keep its time from passing.
func TestHelpersEndWhereTimeStandsStill(t *testing.T) {
	synctest.Test(t, func(*testing.T) {
		var done atomic.Int64
		new(call).together(3, func() { done.Add(1) })
		assert.EqualValues(t, 3, done.Load())
	}) // waits for all goroutines
}

// TestErrandGoesToWhoLooksOut rather than to a new goroutine.
func TestErrandGoesToWhoLooksOut(t *testing.T) {
	place := &crew[len(crew)-1]
	place.Store(lookingOut)
	defer place.Store(nil)
	e := &errand{do: func() {}}
	require.Eventually(t, func() bool { // helpers of tests before this one may take some
		hire(e)
		return place.Load() == e
	}, 10*time.Second, time.Microsecond)
}

// TestPanelsAreOfTheirRun: the panels of the right factor that a goroutine keeps from block to block are not those of an
// earlier run, or of another point of the batch.
func TestPanelsAreOfTheirRun(t *testing.T) {
	p := productPlan(ir.F32, false, false)
	symbols := map[string]int64{"M": 256, "N": 128, "K": runSteps}
	buffers := benchBuffers(p, symbols)
	run := New(p, Options{Threads: 2})
	right, result := buffers[1], buffers[2]
	for round := range 3 {
		for i := range right {
			if i%4 == 0 {
				right[i] ^= byte(round + 1) // the lowest bits of each element
			}
		}
		require.NoError(t, run.Run(context.Background(), symbols, buffers))
		got := append([]byte(nil), result...)
		clear(result)
		require.NoError(t, New(p, Options{Threads: 2}).Run(context.Background(), symbols, buffers))
		assert.True(t, bytes.Equal(result, got), "round %d", round)
	}
}
