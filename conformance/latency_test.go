package conformance

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/bench"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime"
	"github.com/fusec/fusec/runtime/cuda"
)

// BenchmarkGPULatency is what one run costs its caller, on tensors of the device: "wall"
// with the wait for the result, "host" without. "launch" is an empty kernel through the
// driver alone. The metric is the median; scripts/service-table prints it.
func BenchmarkGPULatency(b *testing.B) {
	b.Run("launch", benchmarkLaunch)
	for _, g := range []struct{ name, text string }{
		{"add", "graph add(x: f32[256, 256], y: f32[256, 256]) -> (z: f32[256, 256]) { z = x + y }"},
		{"softmax", "graph rows(x: f32[256, 256]) -> (y: f32[256, 256]) { y = softmax(x) }"},
		{"layers", string(bench.Layers(30))},
	} {
		b.Run(g.name, func(b *testing.B) { benchmarkGraph(b, g.text) })
	}
}

func benchmarkGraph(b *testing.B, text string) {
	dev := openGPU(b, runtime.Options{})
	f, ctx := loadOn(b, dev, text), context.Background()
	shapes, err := f.Shapes(nil)
	require.NoError(b, err)
	args := runtime.Args{}
	for _, p := range f.Params() {
		args[p.Name], err = dev.NewBuffer(ir.F32, shapes[p.Name]...)
		require.NoError(b, err)
	}
	s, err := dev.NewStream()
	require.NoError(b, err)
	b.Run("wall", func(b *testing.B) {
		reportMedian(b, func() error { return f.Run(ctx, args) }, func() error { return nil })
	})
	b.Run("host", func(b *testing.B) {
		reportMedian(b, func() error { return f.Queue(ctx, s, args) }, func() error { return s.Wait(ctx) })
	})
}

// benchmarkLaunch launches a kernel that does nothing.
func benchmarkLaunch(b *testing.B) {
	d, err := cuda.Open()
	if err != nil {
		b.Skipf("no GPU to test on: %v", err)
	}
	dev, err := d.Device(0)
	require.NoError(b, err)
	c, err := dev.Context()
	require.NoError(b, err)
	defer c.Close()
	code, err := openNVRTC(b).Compile(b.Context(), cuda.Request{Name: "empty.cu",
		Source:  `extern "C" __global__ void empty(const float *, const float *, float *) {}`,
		Options: []string{"--gpu-architecture=" + dev.Arch()}})
	require.NoError(b, err)
	m, err := c.LoadModule(code.CUBIN)
	require.NoError(b, err)
	defer m.Close()
	f, err := m.Function("empty")
	require.NoError(b, err)
	l, err := f.Launch(cuda.LaunchConfig{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{32, 1, 1}})
	require.NoError(b, err)
	s, err := c.NewStream()
	require.NoError(b, err)
	defer s.Close()
	params := cuda.NewParams(8, 8, 8)
	b.Run("wall", func(b *testing.B) {
		reportMedian(b, func() error {
			if err := l.Run(s, params); err != nil {
				return err
			}
			return s.Synchronize()
		}, func() error { return nil })
	})
	b.Run("host", func(b *testing.B) {
		reportMedian(b, func() error { return l.Run(s, params) }, s.Synchronize)
	})
}

// reportMedian reports the median time of a call, in microseconds; settle waits for the
// device between calls, out of the time that counts.
func reportMedian(b *testing.B, call, settle func() error) {
	b.Helper()
	const warmup, together = 3, 8 // so many calls are queued before the device is waited for
	for range warmup {
		require.NoError(b, call())
	}
	require.NoError(b, settle())
	times := make([]time.Duration, b.N)
	b.ReportAllocs()
	b.ResetTimer()
	for i := range times {
		start := time.Now()
		err := call()
		times[i] = time.Since(start)
		if err == nil && i%together == 0 {
			err = settle()
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	require.NoError(b, settle())
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)/2].Nanoseconds())/1e3, "median-us")
}
