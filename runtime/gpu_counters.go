package runtime

import (
	"errors"
	"fmt"

	"github.com/fusec/fusec/runtime/cuda"
)

// mostPasses bounds the passes of counting: a handful of metrics takes a handful.
const mostPasses = 1000

// openCUPTI opens the library that counts, of no newer version than the driver.
func (g *gpu) openCUPTI() (*cuda.CUPTI, error) {
	return cuda.FindCUPTI(cuda.FindOptions{MaxMajor: g.opts.NVRTC.MaxMajor})
}

// count runs the kernels as often as the hardware needs to count all that was asked for, each alone, and
// waits for it, so that nothing else is counted with it.
func (f *gpuFrame) count(flush block) (err error) {
	lib, err := f.gpu.cupti()
	if err != nil {
		return err
	}
	ranges := 0
	for _, l := range f.work.launches {
		if l.launch != nil {
			ranges++
		}
	}
	if ranges == 0 {
		return nil
	}
	counting, err := lib.Count(f.gpu.context, f.m.metrics, ranges)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, counting.Close()) }()
	for passes, done := 0, false; !done; passes++ {
		if passes == mostPasses {
			return fmt.Errorf("%s wants more than %d passes", lib.Path(), mostPasses)
		}
		if done, err = counting.Pass(func() error { return f.countPass(counting, flush) }); err != nil {
			return err
		}
	}
	values, err := counting.Values()
	if err != nil {
		return err
	}
	for i, l := range f.work.launches {
		if l.launch != nil {
			f.m.report.Kernels[i].Counters, values = values[0], values[1:]
		}
	}
	return nil
}

// countPass runs the kernels once, in order.
func (f *gpuFrame) countPass(counting *cuda.Counting, flush block) error {
	n := 0
	for i, l := range f.work.launches {
		if l.launch == nil {
			continue
		}
		if err := f.ctx.Err(); err != nil {
			return err
		}
		if n == 0 || f.m.FlushKernels {
			if err := errors.Join(f.begin(flush, 1), f.stream.Synchronize()); err != nil {
				return err
			}
		}
		err := counting.Range(n, func() error {
			return errors.Join(l.launch.RunCurrent(f.stream.Stream, f.params[i]), f.stream.Synchronize())
		})
		if err != nil {
			return err
		}
		n++
	}
	return nil
}
