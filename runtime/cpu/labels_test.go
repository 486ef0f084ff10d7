package cpu

import (
	"bytes"
	"compress/gzip"
	"io"
	"runtime/pprof"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/interp/plantest"
)

// TestProfileLabels: a profile of the processor says which kernel of which graph the time went to, and whose call it was.
func TestProfileLabels(t *testing.T) {
	const rows, columns = 64, 4096
	p := New(plantest.Softmax(ir.F32), Options{Threads: 2})
	x, y := make([]byte, 4*rows*columns), make([]byte, 4*rows*columns)
	var out bytes.Buffer
	if err := pprof.StartCPUProfile(&out); err != nil {
		t.Skip(err) // the test itself is being profiled
	}
	sizes := map[string]int64{"N": rows, "M": columns}
	ctx := pprof.WithLabels(t.Context(), pprof.Labels("caller", "whoever"))
	for end := time.Now().Add(400 * time.Millisecond); time.Now().Before(end); {
		require.NoError(t, p.Run(ctx, sizes, [][]byte{x, y}))
	}
	pprof.StopCPUProfile()
	r, err := gzip.NewReader(&out)
	require.NoError(t, err)
	text, err := io.ReadAll(r)
	require.NoError(t, err)
	for _, word := range []string{"kernel", p.plan.Kernels[0].Name, "graph", p.plan.Graph.Name, "whoever"} {
		assert.Contains(t, string(text), word)
	}
}
