// Package otel exports what devices do as OpenTelemetry spans. It is a module of its own, so
// that programs which do not use it do not depend on OpenTelemetry. It must not know how graphs
// run.
//
//	spans := otel.NewObserver(tracerProvider)
//	device, err := runtime.Open("auto", runtime.Options{Observer: spans, SampleKernels: 100})
//
// A run is a span below the one that the context of its call carries, so it stands in the trace
// of the request that it is a part of.
package otel

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/fusec/fusec/runtime"
)

// An Observer makes spans. It is safe for concurrent use; one may observe any number of devices.
//
//	run GRAPH      fusec.graph, fusec.device, fusec.kernels, fusec.bytes, fusec.queued
//	kernel NAME    fusec.graph, fusec.device, fusec.kernel, fusec.bytes
//	load NAME      fusec.graph, fusec.device, fusec.kernel, fusec.cache
//
// The span of a queued run is the queueing. Kernels are below the span of a measured run
// (runtime.Function.Measure, and one run in runtime.Options.SampleKernels). Each is as long as
// it took on the device; the device's clock is another one, so where a kernel begins is not
// known: they stand one behind the other, and end with the run.
type Observer struct{ tracer trace.Tracer }

// NewObserver returns an observer to be set as runtime.Options.Observer.
func NewObserver(provider trace.TracerProvider) *Observer {
	return &Observer{provider.Tracer("github.com/fusec/fusec/runtime")}
}

// Ran implements runtime.Observer.
func (o *Observer) Ran(e runtime.RunEvent) {
	ctx, span := o.tracer.Start(contextOf(e.Context), "run "+e.Graph, trace.WithTimestamp(e.Start),
		trace.WithAttributes(attribute.String("fusec.graph", e.Graph), attribute.String("fusec.device", e.Device),
			attribute.Int("fusec.kernels", e.Kernels), attribute.Int64("fusec.bytes", e.Bytes),
			attribute.Bool("fusec.queued", e.Queued)))
	end := e.Start.Add(e.Took)
	if span.IsRecording() {
		o.kernels(ctx, e, end)
	}
	if e.Err != nil {
		span.RecordError(e.Err, trace.WithTimestamp(end))
		span.SetStatus(codes.Error, e.Err.Error())
	}
	span.End(trace.WithTimestamp(end))
}

// kernels makes the spans of a measured run's kernels, which end with the run.
func (o *Observer) kernels(ctx context.Context, e runtime.RunEvent, end time.Time) {
	at := end
	for _, k := range e.Timed {
		at = at.Add(-k.Took)
	}
	for _, k := range e.Timed {
		_, span := o.tracer.Start(ctx, "kernel "+k.Kernel, trace.WithTimestamp(at),
			trace.WithAttributes(attribute.String("fusec.graph", k.Graph), attribute.String("fusec.device", k.Device),
				attribute.String("fusec.kernel", k.Kernel), attribute.Int64("fusec.bytes", k.Bytes)))
		at = at.Add(k.Took)
		span.End(trace.WithTimestamp(at))
	}
}

// Loaded implements runtime.Observer.
func (o *Observer) Loaded(e runtime.LoadEvent) {
	end := time.Now()
	_, span := o.tracer.Start(contextOf(e.Context), "load "+e.Kernel, trace.WithTimestamp(end.Add(-e.Took)),
		trace.WithAttributes(attribute.String("fusec.graph", e.Graph), attribute.String("fusec.device", e.Device),
			attribute.String("fusec.kernel", e.Kernel), attribute.String("fusec.cache", e.Outcome.String())))
	span.End(trace.WithTimestamp(end))
}

// Timed implements runtime.Observer: a kernel's span is made with that of its run.
func (o *Observer) Timed(runtime.KernelEvent) {}

// contextOf is a context for events that were made without one.
func contextOf(ctx context.Context) context.Context {
	if ctx == nil {
		return context.Background()
	}
	return ctx
}
