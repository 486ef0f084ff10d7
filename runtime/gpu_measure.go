package runtime

import (
	"errors"
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
	flush, err := f.flusher()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.gpu.memory.give(f.stream.Stream, flush)) }()
	events, err := f.events()
	defer func() { err = errors.Join(err, closeEvents(events)) }()
	if err != nil {
		return err
	}
	for i := range f.m.Repeat {
		if err := f.repetition(i, events, flush); err != nil {
			return err
		}
	}
	return nil
}

// apartRuns is how many repetitions also time each of several kernels separately. That takes
// extra launches, because events between kernels keep them from overlapping.
const apartRuns = 9

// flusher is memory to overwrite, and thereby everything else in the L2 cache.
func (f *gpuFrame) flusher() (block, error) {
	if !f.m.FlushL2 {
		return block{}, nil
	}
	const times = 2 // of the cache's size, because it is not known what the cache replaces first
	return f.gpu.memory.take(f.stream.Stream, int64(times*f.gpu.device.Limits.L2))
}

// overwrite overwrites the L2 cache, including the lines that kernels asked it to keep.
func (f *gpuFrame) overwrite(flush block) error {
	if flush.bytes > 0 {
		if err := f.gpu.context.ResetPersistingL2(); err != nil {
			return err
		}
	}
	return f.stream.Memset8(flush.at, 0, uint64(flush.bytes))
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
	if err := f.overwrite(flush); err != nil {
		return err
	}
	last := events[len(events)-1]
	err := errors.Join(events[0].Record(f.stream.Stream), f.replay(), last.Record(f.stream.Stream), last.Synchronize())
	if err != nil {
		return err
	}
	total, err := between(events[0], last)
	f.m.report.Total = append(f.m.report.Total, total)
	if err != nil || i >= apartRuns {
		return err
	}
	return f.apart(events, flush, false)
}

// apart runs the kernels one by one, with an event after each.
func (f *gpuFrame) apart(events []*cuda.Event, flush block, counts bool) error {
	if err := f.overwrite(flush); err != nil {
		return err
	}
	if err := f.launchAll(events); err != nil {
		return err
	}
	last := events[len(events)-1]
	if err := last.Synchronize(); err != nil {
		return err
	}
	for i, l := range f.work.launches {
		if l.launch == nil {
			continue // there is nothing between its events
		}
		took, err := between(events[i], events[i+1])
		if err != nil {
			return err
		}
		f.m.report.Kernels[i].Times = append(f.m.report.Kernels[i].Times, took)
	}
	if !counts {
		return nil
	}
	total, err := between(events[0], last)
	f.m.report.Total = append(f.m.report.Total, total)
	return err
}

func between(start, end *cuda.Event) (time.Duration, error) {
	ms, err := end.Since(start)
	return time.Duration(float64(ms) * float64(time.Millisecond)), err
}
