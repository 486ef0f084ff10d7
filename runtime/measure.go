package runtime

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fusec/fusec/runtime/cache"
)

// Measure says how to measure a run. The zero value runs once.
type Measure struct {
	Warmup  int  // runs before those that count
	Repeat  int  // runs that count; 0 for 1
	FlushL2 bool // overwrite the device's L2 cache before each
	// Clean makes the times on a GPU those of the kernels and nothing else, as the hardware's own
	// counters have them. With FlushL2 the cache is emptied by reading, not by writing: what is
	// written waits there, and kernels are slowed down by its way to memory. Every launch is queued
	// before its turn comes. What events take is subtracted (Report.Events). The CPU engine ignores
	// it.
	Clean bool
	// FlushKernels, with FlushL2, empties the cache before each kernel that is timed apart, not
	// only before each run, in which kernels find what those before them have left.
	FlushKernels bool
}

// A Report is what a run did.
type Report struct {
	Kernels []KernelReport  // in launch order
	Loaded  []UnitReport    // kernels brought to the device for these sizes; told once, to their first Measure
	Total   []time.Duration // of each repetition: from the first kernel's start to the last one's end
	Upload  time.Duration   // copying inputs to the device
	Wall    time.Duration   // the whole call
	// Events is what was subtracted from each time, because events around a launch take so much
	// more than the launch itself; but never more than half of the time.
	Events time.Duration
	// Unclean is why times are not as Measure.Clean asks; nil where they are, or where it does not.
	Unclean error
}

// A KernelReport is one kernel of a run.
type KernelReport struct {
	Name string
	Unit int // in ir.Program.Units; on the CPU engine, in ir.Plan.Kernels
	// Skipped: the kernel does not run at these sizes, because other kernels do.
	Skipped bool
	// A grid of 0: nothing to do, and not launched. On the CPU engine a grid is 1, and there
	// is no Block.
	Grid, Block   [3]uint32
	Reads, Writes int64 // bytes of device memory it has to move
	// Times are measured with the kernel launched separately from the others. Kernels overlap
	// in a run, so the times of several add up to more than the run's time. Of many repetitions
	// only the first few have such times.
	Times []time.Duration
	// Counters are the values of the metrics that Count was given, in their order: NaN for one that the
	// chip does not have. Kernels that are not launched have none.
	Counters []float64
}

// A UnitReport is how a kernel came to the device.
type UnitReport struct {
	Entry     string
	Outcome   cache.Outcome
	Took      time.Duration // to read or compile it
	Registers int           // in a thread
	Stack     int           // bytes of local memory in a thread
	Spills    int           // bytes
	Log       string        // the compiler's warnings
}

// Launches is the number of kernels launched.
func (r *Report) Launches() int {
	n := 0
	for _, k := range r.Kernels {
		if k.Grid != [3]uint32{} {
			n++
		}
	}
	return n
}

// Bytes is what the kernels together have to move.
func (r *Report) Bytes() int64 {
	var n int64
	for _, k := range r.Kernels {
		n += k.Reads + k.Writes
	}
	return n
}

// Time is the median of Total.
func (r *Report) Time() time.Duration { return Median(r.Total) }

// Median is the median of durations, the lower one of two; 0 for none.
func Median(times []time.Duration) time.Duration {
	if len(times) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(times))
	return sorted[(len(sorted)-1)/2]
}

// measurement is what a measured run carries along.
type measurement struct {
	Measure
	metrics []string // that the hardware is to count
	report  Report
}

// Measure runs the graph as Run does, as often as asked, and reports. On a GPU,
// times are those of the kernels alone, on the device's clock; on the CPU engine
// those of the whole run, and of each kernel from its start to its end.
func (f *Function) Measure(ctx context.Context, args Args, how Measure) (*Report, error) {
	return f.Count(ctx, args, how)
}

// Count is Measure that then runs each kernel again, as often as the hardware needs to count metrics of
// CUPTI (dram__bytes_read.sum) while it runs: KernelReport.Counters. Where CUPTI is not found the error is
// cuda.ErrNoCUPTI, and where this user may not count, cuda.ErrCountersDenied. The CPU engine counts nothing.
func (f *Function) Count(ctx context.Context, args Args, how Measure, metrics ...string) (*Report, error) {
	how.Repeat = max(how.Repeat, 1)
	m := &measurement{Measure: how, metrics: metrics}
	start := time.Now()
	if err := f.run(ctx, args, m); err != nil {
		return nil, err
	}
	m.report.Wall = time.Since(start)
	return &m.report, nil
}

// String is a table of the kernels: the median time of each, and what it has to move.
func (r *Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v a run, %v the call\n", r.Time(), r.Wall)
	width := 0
	for _, k := range r.Kernels {
		width = max(width, len(k.Name))
	}
	for _, k := range r.Kernels {
		fmt.Fprintf(&b, "%-*s  %10v  %12d bytes\n", width, k.Name, Median(k.Times), k.Reads+k.Writes)
	}
	return b.String()
}
