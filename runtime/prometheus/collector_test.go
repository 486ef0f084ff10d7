package prometheus

import (
	"errors"
	"strings"
	"testing"
	"time"

	client "github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec"
	"github.com/fusec/fusec/runtime"
	"github.com/fusec/fusec/runtime/cache"
	"github.com/fusec/fusec/runtime/tensor"
)

var _ runtime.Observer = (*Collector)(nil)

func TestEventsBecomeMetrics(t *testing.T) {
	c, registry := NewCollector(), client.NewPedanticRegistry()
	require.NoError(t, registry.Register(c))
	c.Ran(runtime.RunEvent{Graph: "g", Device: "d", Took: time.Millisecond, Kernels: 2, Bytes: 100})
	c.Ran(runtime.RunEvent{Graph: "g", Device: "d", Took: time.Millisecond, Kernels: 2, Bytes: 100})
	c.Ran(runtime.RunEvent{Graph: "g", Device: "d", Err: errors.New("no memory"), Kernels: 2, Bytes: 100})
	c.Loaded(runtime.LoadEvent{Graph: "g", Device: "d", Kernel: "k", Outcome: cache.Created, Took: time.Second})
	c.Loaded(runtime.LoadEvent{Graph: "g", Device: "d", Kernel: "k", Outcome: cache.Hit, Took: time.Millisecond})
	c.Timed(runtime.KernelEvent{Graph: "g", Device: "d", Kernel: "k", Took: 5 * time.Microsecond})
	const want = `
# HELP fusec_kernel_launches_total Kernels launched.
# TYPE fusec_kernel_launches_total counter
fusec_kernel_launches_total{device="d",graph="g"} 4
# HELP fusec_kernels_loaded_total Kernels brought to a device, by where they came from.
# TYPE fusec_kernels_loaded_total counter
fusec_kernels_loaded_total{device="d",outcome="created"} 1
fusec_kernels_loaded_total{device="d",outcome="hit"} 1
# HELP fusec_run_bytes_total Bytes that the kernels of runs had to move.
# TYPE fusec_run_bytes_total counter
fusec_run_bytes_total{device="d",graph="g"} 200
# HELP fusec_runs_total Runs that have ended.
# TYPE fusec_runs_total counter
fusec_runs_total{device="d",graph="g",result="error"} 1
fusec_runs_total{device="d",graph="g",result="ok"} 2
`
	assert.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(want), "fusec_kernel_launches_total",
		"fusec_kernels_loaded_total", "fusec_run_bytes_total", "fusec_runs_total"))
	for name, samples := range map[string]int{"fusec_run_seconds": 1, "fusec_kernel_load_seconds": 2, "fusec_kernel_seconds": 1} {
		n, err := testutil.GatherAndCount(registry, name)
		require.NoError(t, err)
		assert.Equal(t, samples, n, name)
	}
	problems, err := testutil.GatherAndLint(registry)
	require.NoError(t, err)
	assert.Empty(t, problems, "names are as Prometheus wants them")
}

// A device that is observed reports its runs.
func TestRunsAreCounted(t *testing.T) {
	c := NewCollector()
	device, err := runtime.Open("cpu", runtime.Options{Observer: c, Cache: cache.Open(cache.Options{Off: true})})
	require.NoError(t, err)
	defer device.Close()
	src := fusec.Source{Name: "s.fuse", Text: []byte("graph twice(x: f32[N]) -> (y: f32[N]) { y = x + x }")}
	f, err := fusec.Load(t.Context(), device, src, fusec.Options{})
	require.NoError(t, err)
	x, err := tensor.FromSlice([]float32{1, 2, 3})
	require.NoError(t, err)
	for range 3 {
		_, err = f.Call(t.Context(), runtime.Args{"x": x})
		require.NoError(t, err)
	}
	assert.Equal(t, 3.0, testutil.ToFloat64(c.runs.WithLabelValues("twice", device.Name(), "ok")))
}
