//go:build linux && !nocuda

package runtime

import (
	"path/filepath"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
)

// TestCallsHoldTheirLock: every method of what is safe for concurrent use waits while another call holds the lock, and gives it
// back. The race detector would see a lock that is missing only where two calls meet.
func TestCallsHoldTheirLock(t *testing.T) {
	_, fn := loadTriple(t, Options{Kernels: stored})
	s, file := fn.Device().NewState(), filepath.Join(t.TempDir(), "s.safetensors")
	require.NoError(t, s.Set("x", ramp(t, 4)))
	require.NoError(t, s.Save(file, nil))
	stream, err := fn.Device().NewStream()
	require.NoError(t, err)
	y, err := fn.Device().NewBuffer(ir.F32, 4)
	require.NoError(t, err)
	trace, counters := NewTrace(), new(Counters)
	for _, of := range []struct {
		value any
		mu    *sync.Mutex
		calls map[string]func() error
	}{
		{s, &s.mu, map[string]func() error{
			"Names":  func() error { s.Names(); return nil },
			"Set":    func() error { return s.Set("x", ramp(t, 4)) },
			"Get":    func() error { _, err := s.Get("x"); return err },
			"Buffer": func() error { _, err := s.Buffer("x"); return err },
			"Run":    func() error { return s.Run(t.Context(), fn, Args{"y": ramp(t, 4)}) },
			"Queue":  func() error { return s.Queue(t.Context(), stream, fn, Args{"y": y}) },
			"Save":   func() error { return s.Save(file, nil) },
			"Load":   func() error { _, err := s.Load(file); return err },
			"Close":  func() error { return s.Close() },
		}},
		{trace, &trace.mu, map[string]func() error{
			"Steps": func() error { trace.Steps(); return nil },
			"Note":  func() error { trace.Note("n", time.Now()); return nil },
			"Step":  func() error { trace.Step("s", "")(); return nil },
		}},
		{counters, &counters.mu, map[string]func() error{
			"Timed":  func() error { counters.Timed(KernelEvent{}); return nil },
			"Totals": func() error { counters.Totals(); return nil },
		}},
	} {
		for i := range reflect.TypeOf(of.value).NumMethod() {
			name := reflect.TypeOf(of.value).Method(i).Name
			if call, ok := of.calls[name]; ok && name != "Close" {
				requireLocks(t, of.mu, name, call)
			} else {
				assert.True(t, ok || of.value == any(counters), "%s is not in the table", name)
			}
		}
		if call, ok := of.calls["Close"]; ok {
			requireLocks(t, of.mu, "Close", call)
		}
	}
}

func requireLocks(t *testing.T, mu *sync.Mutex, name string, call func() error) {
	t.Helper()
	for range 2 { // a call that keeps the lock stops the next one
		mu.Lock()
		under := start(call)
		under.waits(t, name)
		mu.Unlock()
		require.NoError(t, under.err(t), name)
	}
}
