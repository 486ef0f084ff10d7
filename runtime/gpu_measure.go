package runtime

import (
	"errors"
	"fmt"
	"time"

	"github.com/fusec/fusec/runtime/cuda"
)

// measure queues the warm-up and the repetitions, and reads their times.
func (f *gpuFrame) measure() (err error) {
	for range f.m.Warmup {
		if err := f.replay(); err != nil {
			return err
		}
	}
	f.m.report.Kernels = append([]KernelReport(nil), f.work.reports...)
	events, err := f.events()
	defer func() { err = errors.Join(err, closeEvents(events)) }()
	if err != nil {
		return err
	}
	if f.m.Clean {
		if f.m.report.Unclean = f.gpu.probe.ready(f.ctx, f.gpu); f.m.report.Unclean == nil {
			f.probe = &f.gpu.probe
			defer func() { f.probe = nil }()
		}
	}
	flush, err := f.flusher()
	defer func() { err = errors.Join(err, f.gpu.memory.give(f.stream.Stream, flush)) }()
	if err != nil {
		return err
	}
	if f.probe != nil && len(events) > 1 {
		if f.m.report.Events, err = f.probe.eventTime(f.stream.Stream, events[0], events[1]); err != nil {
			return err
		}
	}
	for i := range f.m.Repeat {
		if err := f.repetition(i, events, flush); err != nil {
			return err
		}
	}
	if len(f.m.metrics) == 0 {
		return nil
	}
	if err := f.count(flush); err != nil {
		return fmt.Errorf("counters of the hardware: %w", err)
	}
	return nil
}

// apartRuns is how many repetitions also time each of several kernels separately. That takes
// extra launches, because events between kernels keep them from overlapping.
const apartRuns = 9

// The bytes that empty the L2 cache, in times of its size: more than one, because it is not known
// what the cache replaces first. Reading twice as many costs less than overwriting does, and leaves
// fewer lines of the run before that are still to be written back.
const (
	overwriteTimes = 2
	readTimes      = 4
)

// flusher is memory to empty the L2 cache with.
func (f *gpuFrame) flusher() (block, error) {
	if !f.m.FlushL2 {
		return block{}, nil
	}
	times := overwriteTimes
	if f.probe != nil {
		times = readTimes
	}
	flush, err := f.gpu.memory.take(f.stream.Stream, int64(times*f.gpu.device.Limits.L2))
	if err != nil || f.probe == nil {
		return flush, err
	}
	return flush, f.stream.Memset8(flush.at, 0, uint64(flush.bytes)) // the kernel that reads expects zeros
}

// begin queues what comes ahead of launches whose time is taken: the emptying of the L2 cache, with
// the lines that kernels asked it to keep, and ahead of that a time in which the host queues them.
func (f *gpuFrame) begin(flush block, launches int) error {
	if flush.bytes > 0 {
		if err := f.gpu.context.ResetPersistingL2(); err != nil {
			return err
		}
	}
	if f.probe == nil {
		return f.stream.Memset8(flush.at, 0, uint64(flush.bytes))
	}
	err := f.probe.wait(f.stream.Stream, queueRun+time.Duration(launches)*queueLaunch)
	if err != nil || flush.bytes == 0 {
		return err
	}
	return f.probe.read(f.stream.Stream, flush)
}

// events makes one event more than there are kernels.
func (f *gpuFrame) events() ([]*cuda.Event, error) {
	var events []*cuda.Event
	for range len(f.work.launches) + 1 {
		e, err := f.gpu.context.NewEvent(true)
		if err != nil {
			return events, err
		}
		events = append(events, e)
	}
	return events, nil
}

func closeEvents(events []*cuda.Event) error {
	var errs []error
	for _, e := range events {
		errs = append(errs, e.Close())
	}
	return errors.Join(errs...)
}

// repetition runs the kernels as any run does, and waits for them.
func (f *gpuFrame) repetition(i int, events []*cuda.Event, flush block) error {
	once := f.m.Warmup == 0 && f.m.Repeat == 1 // may be the first run: see launch
	if once || len(f.work.launches) < graphFrom {
		return f.apart(events, flush, true)
	}
	if err := f.begin(flush, 1); err != nil {
		return err
	}
	last := events[len(events)-1]
	err := errors.Join(events[0].Record(f.stream.Stream), f.replay(), last.Record(f.stream.Stream), last.Synchronize())
	if err != nil {
		return err
	}
	if err := f.tellTotal(events[0], last); err != nil || i >= apartRuns {
		return err
	}
	if f.m.FlushL2 && f.m.FlushKernels {
		return f.alone(events, flush)
	}
	return f.apart(events, flush, false)
}

// apart runs the kernels one by one, with an event after each.
func (f *gpuFrame) apart(events []*cuda.Event, flush block, counts bool) error {
	if err := f.begin(flush, len(f.work.launches)); err != nil {
		return err
	}
	if err := f.launchAll(events); err != nil {
		return err
	}
	last := events[len(events)-1]
	if err := last.Synchronize(); err != nil {
		return err
	}
	for i := range f.work.launches {
		if err := f.tellKernel(i, events[i], events[i+1]); err != nil {
			return err
		}
	}
	if !counts {
		return nil
	}
	return f.tellTotal(events[0], last)
}

// alone runs each kernel by itself, with an empty cache.
func (f *gpuFrame) alone(events []*cuda.Event, flush block) error {
	start, end := events[0], events[1]
	for i, l := range f.work.launches {
		if l.launch == nil {
			continue
		}
		if err := errors.Join(f.ctx.Err(), f.begin(flush, 1)); err != nil {
			return err
		}
		err := errors.Join(start.Record(f.stream.Stream), l.launch.RunCurrent(f.stream.Stream, f.params[i]),
			end.Record(f.stream.Stream), end.Synchronize())
		if err == nil {
			err = f.tellKernel(i, start, end)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// tellKernel reports the time of a launch between two events.
func (f *gpuFrame) tellKernel(i int, start, end *cuda.Event) error {
	if f.work.launches[i].launch == nil {
		return nil // there is nothing between the events
	}
	took, err := between(start, end)
	if err == nil {
		k := &f.m.report.Kernels[i]
		k.Times = append(k.Times, f.m.report.less(took))
	}
	return err
}

// tellTotal reports the time of a run between two events.
func (f *gpuFrame) tellTotal(start, end *cuda.Event) error {
	took, err := between(start, end)
	f.m.report.Total = append(f.m.report.Total, f.m.report.less(took))
	return err
}

// less is a time between two events without what they take themselves.
func (r *Report) less(took time.Duration) time.Duration { return took - min(r.Events, took/2) }

func between(start, end *cuda.Event) (time.Duration, error) {
	ms, err := end.Since(start)
	return time.Duration(float64(ms) * float64(time.Millisecond)), err
}
