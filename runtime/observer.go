package runtime

import (
	"context"
	"log/slog"
	"time"

	"github.com/fusec/fusec/runtime/cache"
)

// An Observer is told what devices do: Options.Observer. Its methods are called from
// many goroutines, in the middle of runs: they must be safe for that, and quick.
type Observer interface {
	// Ran is told of every run that has ended, whether it went well or not.
	Ran(RunEvent)
	// Loaded is told of every kernel that comes to a device.
	Loaded(LoadEvent)
	// Timed is told the device's own time of every kernel of a measured run: Measure, and
	// one run in Options.SampleKernels.
	Timed(KernelEvent)
}

// A RunEvent is a run that has ended.
type RunEvent struct {
	Context       context.Context // of the call: its values may say what the run is a part of
	Graph, Device string
	Queued        bool // on a Stream: the work itself may still be under way
	Start         time.Time
	Took          time.Duration // the call
	Kernels       int           // launched
	Bytes         int64         // bytes that the kernels have to move, as far as the plan knows
	Timed         []KernelEvent // of a measured run, in launch order: what Observer.Timed is told
	Err           error
}

// A LoadEvent is a kernel that was brought to a device.
type LoadEvent struct {
	Context               context.Context // of the call that needed it first
	Graph, Device, Kernel string
	Outcome               cache.Outcome // compiled, or from where in the cache
	Took                  time.Duration // to read or compile it
}

// A KernelEvent is one kernel of a measured run.
type KernelEvent struct {
	Graph, Device, Kernel string
	Took                  time.Duration // on the device's clock
	Bytes                 int64         // that it has to move
}

// Observers tells several observers, in their order.
func Observers(list ...Observer) Observer { return observers(list) }

type observers []Observer

func (list observers) Ran(e RunEvent) {
	for _, o := range list {
		o.Ran(e)
	}
}

func (list observers) Loaded(e LoadEvent) {
	for _, o := range list {
		o.Loaded(e)
	}
}

func (list observers) Timed(e KernelEvent) {
	for _, o := range list {
		o.Timed(e)
	}
}

// LogObserver logs: runs that fail as errors, kernels that are compiled as information,
// everything else for debugging.
func LogObserver(log *slog.Logger) Observer { return logObserver{log} }

type logObserver struct{ log *slog.Logger }

func (o logObserver) Ran(e RunEvent) {
	level, ctx := slog.LevelDebug, orBackground(e.Context)
	if e.Err != nil {
		level = slog.LevelError
	}
	if !o.log.Enabled(ctx, level) {
		return // building the attributes takes time
	}
	attrs := []slog.Attr{slog.String("graph", e.Graph), slog.String("device", e.Device), slog.Duration("took", e.Took),
		slog.Int("kernels", e.Kernels), slog.Int64("bytes", e.Bytes), slog.Bool("queued", e.Queued)}
	if e.Err != nil {
		attrs = append(attrs, slog.String("error", e.Err.Error()))
	}
	o.log.LogAttrs(ctx, level, "run", attrs...)
}

func (o logObserver) Loaded(e LoadEvent) {
	level := slog.LevelDebug
	if !e.Outcome.IsHit() {
		level = slog.LevelInfo
	}
	o.log.LogAttrs(orBackground(e.Context), level, "kernel loaded", slog.String("graph", e.Graph),
		slog.String("device", e.Device), slog.String("kernel", e.Kernel), slog.String("cache", e.Outcome.String()),
		slog.Duration("took", e.Took))
}

// orBackground is a context for events that were made without one.
func orBackground(ctx context.Context) context.Context {
	if ctx == nil {
		return context.Background()
	}
	return ctx
}

func (o logObserver) Timed(e KernelEvent) {
	o.log.LogAttrs(context.Background(), slog.LevelDebug, "kernel timed", slog.String("graph", e.Graph),
		slog.String("device", e.Device), slog.String("kernel", e.Kernel), slog.Duration("took", e.Took),
		slog.Int64("bytes", e.Bytes))
}
