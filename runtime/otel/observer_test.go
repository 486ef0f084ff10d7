package otel

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/fusec/fusec"
	"github.com/fusec/fusec/runtime"
	"github.com/fusec/fusec/runtime/cache"
	"github.com/fusec/fusec/runtime/tensor"
)

var _ runtime.Observer = (*Observer)(nil)

func recorded() (*sdk.TracerProvider, *tracetest.InMemoryExporter) {
	spans := tracetest.NewInMemoryExporter()
	return sdk.NewTracerProvider(sdk.WithSyncer(spans)), spans
}

func valueOf(t *testing.T, s tracetest.SpanStub, key string) attribute.Value {
	t.Helper()
	for _, a := range s.Attributes {
		if string(a.Key) == key {
			return a.Value
		}
	}
	require.Fail(t, "no attribute "+key)
	return attribute.Value{}
}

func TestEventsBecomeSpans(t *testing.T) {
	provider, spans := recorded()
	o := NewObserver(provider)
	ctx, request := provider.Tracer("service").Start(t.Context(), "request")
	start := time.Unix(1000, 0)
	o.Ran(runtime.RunEvent{Context: ctx, Graph: "g", Device: "d", Start: start, Took: 10 * time.Millisecond, Kernels: 2, Bytes: 100,
		Timed: []runtime.KernelEvent{{Graph: "g", Device: "d", Kernel: "a", Took: 2 * time.Millisecond, Bytes: 60},
			{Graph: "g", Device: "d", Kernel: "b", Took: 3 * time.Millisecond, Bytes: 40}}})
	request.End()
	list := spans.GetSpans()
	require.Len(t, list, 4)
	a, b, run := list[0], list[1], list[2]
	assert.Equal(t, "kernel a", a.Name)
	assert.Equal(t, "kernel b", b.Name)
	assert.Equal(t, "run g", run.Name)
	assert.Equal(t, list[3].SpanContext.SpanID(), run.Parent.SpanID(), "below the request")
	assert.Equal(t, run.SpanContext.SpanID(), a.Parent.SpanID())
	assert.Equal(t, run.SpanContext.SpanID(), b.Parent.SpanID())
	assert.Equal(t, start, run.StartTime.Local())
	assert.Equal(t, 10*time.Millisecond, run.EndTime.Sub(run.StartTime))
	assert.Equal(t, 2*time.Millisecond, a.EndTime.Sub(a.StartTime))
	assert.Equal(t, a.EndTime, b.StartTime)
	assert.Equal(t, run.EndTime, b.EndTime)
	assert.EqualValues(t, 2, valueOf(t, run, "fusec.kernels").AsInt64())
	assert.EqualValues(t, 40, valueOf(t, b, "fusec.bytes").AsInt64())
	assert.Equal(t, codes.Unset, run.Status.Code)
}

func TestFailuresAndLoads(t *testing.T) {
	provider, spans := recorded()
	o := NewObserver(provider)
	o.Ran(runtime.RunEvent{Graph: "g", Device: "d", Start: time.Now(), Err: errors.New("no memory")})
	o.Loaded(runtime.LoadEvent{Graph: "g", Device: "d", Kernel: "k", Outcome: cache.Created, Took: time.Second})
	list := spans.GetSpans()
	require.Len(t, list, 2)
	assert.Equal(t, codes.Error, list[0].Status.Code)
	assert.Equal(t, "no memory", list[0].Status.Description)
	assert.False(t, list[0].Parent.IsValid())
	assert.Equal(t, "load k", list[1].Name)
	assert.Equal(t, time.Second, list[1].EndTime.Sub(list[1].StartTime))
	assert.Equal(t, "created", valueOf(t, list[1], "fusec.cache").AsString())
}

// Runs of a device stand below the caller's span; one in two has its kernels below it.
func TestRunsOfADevice(t *testing.T) {
	provider, spans := recorded()
	device, err := runtime.Open("cpu", runtime.Options{Observer: NewObserver(provider), SampleKernels: 2,
		Cache: cache.Open(cache.Options{Off: true})})
	require.NoError(t, err)
	defer device.Close()
	src := fusec.Source{Name: "s.fuse", Text: []byte("graph twice(x: f32[N]) -> (y: f32[N]) { y = x + x }")}
	f, err := fusec.Load(t.Context(), device, src, fusec.Options{})
	require.NoError(t, err)
	x, err := tensor.FromSlice([]float32{1, 2, 3})
	require.NoError(t, err)
	ctx, request := provider.Tracer("service").Start(t.Context(), "request")
	for range 4 {
		y, err := tensor.New(x.DType, 3)
		require.NoError(t, err)
		require.NoError(t, f.Run(ctx, runtime.Args{"x": x, "y": y}))
	}
	runs, kernels := 0, 0
	byID := map[string]tracetest.SpanStub{}
	for _, s := range spans.GetSpans() {
		byID[s.SpanContext.SpanID().String()] = s
	}
	for _, s := range spans.GetSpans() {
		switch s.Name {
		case "run twice":
			runs++
			assert.Equal(t, request.SpanContext().SpanID(), s.Parent.SpanID())
			assert.EqualValues(t, 24, valueOf(t, s, "fusec.bytes").AsInt64())
		default:
			kernels++
			run := byID[s.Parent.SpanID().String()]
			assert.Equal(t, "run twice", run.Name)
			assert.False(t, s.StartTime.Before(run.StartTime), "a kernel is within its run")
		}
	}
	assert.Equal(t, 4, runs)
	assert.Equal(t, 2, kernels)
}
