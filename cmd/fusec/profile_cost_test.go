package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec"
	"github.com/fusec/fusec/bench"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime"
	"github.com/fusec/fusec/runtime/cuda"
)

// What profiling may cost: see docs/profile.md.
const (
	costLimit    = 0.02                   // of a run without
	costJudged   = 100 * time.Microsecond // runs from this length on are judged, shorter ones printed
	costTurns    = 7
	costTurn     = 40 * time.Millisecond
	costSampled  = 100 // one run in so many is timed by kernel
	costPrograms = "softmax layer_norm layer_norm_backward cumsum_rows sort_rows"
)

// A costCase is a graph on a device, with its tensors there.
type costCase struct {
	stream *runtime.Stream
	fn     *runtime.Function
	args   runtime.Args
}

// TestProfilingCostsLittle measures on a GPU, where there is one, how much longer runs take while they are
// observed, and how far the run that a profile tells is from runs that nobody measures.
func TestProfilingCostsLittle(t *testing.T) {
	probe, err := runtime.Open("cuda", runtime.Options{})
	if errors.Is(err, cuda.ErrNoDriver) || errors.Is(err, cuda.ErrNoDevice) {
		t.Skipf("this test needs a GPU: %v", err)
	}
	require.NoError(t, err)
	require.NoError(t, probe.Close())
	programs, err := bench.Suite(bench.Operators)
	require.NoError(t, err)
	t.Logf("%-24s %10s %18s %10s %18s", "graph", "calls us", "observed", "queued us", "run in a profile")
	for _, p := range programs {
		for _, c := range p.Cases {
			if strings.Contains(" "+costPrograms+" ", " "+c.Graph+" ") {
				costOf(t, p, c.Graph)
			}
		}
	}
}

// costOf measures one graph, plain and observed in turns.
func costOf(t *testing.T, p bench.Program, graph string) {
	plain := newCostCase(t, p, graph, runtime.Options{})
	observed := newCostCase(t, p, graph, runtime.Options{Observer: &runtime.Counters{}, SampleKernels: costSampled})
	var calls, watched, queued []time.Duration
	for turn := range costTurns + 1 {
		a, b, c := plain.called(t), observed.called(t), plain.queued(t)
		if turn > 0 { // the first warms up
			calls, watched, queued = append(calls, a), append(watched, b), append(queued, c)
		}
	}
	r, err := plain.fn.Measure(t.Context(), plain.args, runtime.Measure{Warmup: 2, Repeat: 101, Clean: true})
	require.NoError(t, err)
	require.NoError(t, r.Unclean)
	call, run := runtime.Median(calls), runtime.Median(queued)
	slower, off := part(runtime.Median(watched), call), part(r.Time(), run)
	t.Logf("%-24s %10s %10s %+6.2f%% %10s %10s %+6.2f%%", graph, micros(call), micros(runtime.Median(watched)), 100*slower,
		micros(run), micros(r.Time()), 100*off)
	if run >= costJudged {
		assert.Less(t, slower, costLimit, "%s: observed calls", graph)
		assert.InDelta(t, 0, off, costLimit, "%s: the run that a profile tells", graph)
	}
}

func part(with, without time.Duration) float64 { return float64(with)/float64(without) - 1 }

func micros(d time.Duration) string { return fmt.Sprintf("%.2f", float64(d)/float64(time.Microsecond)) }

// newCostCase loads a graph, and makes its tensors at the sizes of @bench.
func newCostCase(t *testing.T, p bench.Program, graph string, opts runtime.Options) *costCase {
	d, err := runtime.Open("cuda", opts)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	source, options := fusec.Source{Name: p.Name, Text: []byte(p.Text)}, fusec.Options{Graph: graph}
	f, err := fusec.Load(t.Context(), d, source, options)
	require.NoError(t, err)
	read, err := fusec.CompileSource(source, options)
	require.NoError(t, err)
	sig := signatureOf(f, func() (*ir.Graph, error) { return read.Graph(), nil })
	given, err := inputSpec{seed: 1}.arguments(sig)
	require.NoError(t, err)
	shapes, err := f.Shapes(given.sizes)
	require.NoError(t, err)
	c := &costCase{fn: f, args: runtime.Args{}}
	for i, p := range append(append([]ir.Param(nil), sig.inputs...), sig.outputs...) {
		b, err := d.NewBuffer(p.DType, shapes[p.Name]...)
		require.NoError(t, err)
		c.args[p.Name] = b
		if i < len(sig.inputs) {
			require.NoError(t, b.Upload(given.inputs[i]))
		}
	}
	c.stream, err = d.NewStream()
	require.NoError(t, err)
	return c
}

// called is the time of a call that waits for its run, of as many as take a turn.
func (c *costCase) called(t *testing.T) time.Duration {
	start, n := time.Now(), 0
	for ; n == 0 || time.Since(start) < costTurn; n++ {
		require.NoError(t, c.fn.Run(t.Context(), c.args))
	}
	return time.Since(start) / time.Duration(n)
}

// queued is the time of a run of many that are queued one behind the other, so that the device is
// never without work.
func (c *costCase) queued(t *testing.T) time.Duration {
	const runs = 200
	require.NoError(t, c.fn.Queue(t.Context(), c.stream, c.args))
	require.NoError(t, c.stream.Wait(context.Background()))
	start := time.Now()
	for range runs {
		require.NoError(t, c.fn.Queue(t.Context(), c.stream, c.args))
	}
	require.NoError(t, c.stream.Wait(context.Background()))
	return time.Since(start) / runs
}
