package runtime

import (
	"context"
	"errors"
	"fmt"
	"math"
	goruntime "runtime"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime/cuda"
)

// gpuProgram is a program on a GPU. Units are loaded when sizes first need them.
type gpuProgram struct {
	gpu     *gpu
	program *ir.Program
	kernels KernelSource
	arch    string
	units   []gpuUnit

	graphless atomic.Bool    // the driver cannot build graphs of kernels
	loads     sync.WaitGroup // of units, under way
}

// gpuUnit is a unit, once it is loaded.
type gpuUnit struct {
	loading  shared
	mu       sync.Mutex // held to load it
	module   *cuda.Module
	function *cuda.Function
	report   UnitReport
	ready    atomic.Bool // all of these are set
	told     atomic.Bool // the observer was told that it was loaded
}

// gpuLaunch is one kernel launch.
type gpuLaunch struct {
	launch *cuda.Launch // nil: an empty grid, or a kernel that does not run at these sizes
	waits  bool         // may be launched while the kernel before it still runs
	args   []ir.LaunchArg
}

// bind chooses the variants for the sizes of b and loads them.
func (x *gpuProgram) bind(ctx context.Context, b *binding) error {
	w, variants, err := x.newWork(b)
	if err != nil {
		return err
	}
	if w.loaded, err = x.loadUnits(ctx, w.reports); err != nil {
		return x.gpu.noteLoss(err)
	}
	x.tell(ctx, w.loaded)
	first := true
	for i, v := range variants {
		if err := x.prepare(&w.launches[i], v, &w.reports[i], first); err != nil {
			return err
		}
		first = first && w.launches[i].launch == nil
	}
	b.work = w
	return nil
}

// newWork does the part of bind that does not need the device.
func (x *gpuProgram) newWork(b *binding) (*gpuWork, []*ir.LaunchVariant, error) {
	w := &gpuWork{program: x, binding: b, temps: make([]int64, len(x.program.Temps)),
		launches: make([]gpuLaunch, len(x.program.Launches))}
	variants := make([]*ir.LaunchVariant, len(x.program.Launches))
	for i := range x.program.Launches {
		v, report, err := x.choose(&x.program.Launches[i], b.symbols)
		if err != nil {
			return nil, nil, err
		}
		variants[i] = v
		w.reports = append(w.reports, report)
		if report.Grid != [3]uint32{} {
			b.kernels, b.moved = b.kernels+1, b.moved+report.Reads+report.Writes
			w.launches[i].args = v.Args
		}
	}
	if err := w.count(b.symbols); err != nil {
		return nil, nil, err
	}
	if err := x.bindMaps(w, variants, b.symbols); err != nil {
		return nil, nil, err
	}
	w.lives()
	if err := w.measure(b.symbols); err != nil {
		return nil, nil, err
	}
	return w, variants, nil
}

func (x *gpuProgram) footprint(b *binding) (Footprint, error) {
	w, _, err := x.newWork(b)
	if err != nil {
		return Footprint{}, err
	}
	hosts := make([]bool, len(b.bytes))
	list, _ := w.residents(hosts, false)
	return Footprint{Arena: w.layoutFor(hosts, false).bytes, Least: peak(list)}, nil
}

// tell informs the observer of kernels that were loaded.
func (x *gpuProgram) tell(ctx context.Context, loaded []UnitReport) {
	o := x.gpu.opts.Observer
	if o == nil {
		return
	}
	for _, u := range loaded {
		o.Loaded(LoadEvent{Context: ctx, Graph: x.program.Name, Device: x.gpu.device.Name, Kernel: u.Entry,
			Outcome: u.Outcome, Took: u.Took})
	}
}

// choose finds the variant of a launch for the sizes, and its grid; nil and an empty grid where the kernel
// does not run.
func (x *gpuProgram) choose(l *ir.Launch, symbols []int64) (*ir.LaunchVariant, KernelReport, error) {
	if !l.Runs(symbols) {
		return nil, KernelReport{Name: l.Kernel, Skipped: true}, nil
	}
	v := l.Choose(symbols)
	if v == nil {
		return nil, KernelReport{}, fmt.Errorf("BUG: kernel %s has no variant for these sizes", l.Kernel)
	}
	report, err := x.shape(l, v, symbols)
	return v, report, err
}

// maxGrid is CUDA's limit on blocks along each axis.
var maxGrid = [3]int64{math.MaxInt32, math.MaxUint16, math.MaxUint16}

func (x *gpuProgram) shape(l *ir.Launch, v *ir.LaunchVariant, symbols []int64) (KernelReport, error) {
	u := x.program.Units[v.Unit]
	r := KernelReport{Name: l.Kernel, Unit: v.Unit}
	if written, ok := l.Writes.Eval(symbols); ok && written == 0 && len(l.Writes) > 0 {
		return r, nil // there may be more rows, without columns, than a launch can have blocks
	}
	empty := false
	for axis, size := range v.Grid {
		n, ok := size.Eval(symbols)
		if !ok || n < 0 || n > maxGrid[axis] {
			return r, fmt.Errorf("kernel %s needs %d blocks along axis %d, more than the %d that a launch may have: "+
				"use smaller sizes", l.Kernel, n, axis, maxGrid[axis])
		}
		empty = empty || n == 0
		r.Grid[axis], r.Block[axis] = uint32(n), uint32(u.Block[axis])
	}
	if empty {
		r.Grid = [3]uint32{}
		return r, nil
	}
	// Amounts beyond 64 bits are of tensors that fit nowhere; they are only for reports.
	r.Reads, _ = l.Reads.Eval(symbols)
	r.Writes, _ = l.Writes.Eval(symbols)
	return r, nil
}

// loadUnits loads the units of non-empty launches, in parallel, and reports on those that were
// not loaded yet.
func (x *gpuProgram) loadUnits(ctx context.Context, kernels []KernelReport) ([]UnitReport, error) {
	needed := map[int]bool{}
	for _, k := range kernels {
		if k.Grid != [3]uint32{} {
			needed[k.Unit] = true
		}
	}
	var mu sync.Mutex
	var loaded []UnitReport
	done := 0
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(goruntime.GOMAXPROCS(0))
	for unit := range needed {
		group.Go(func() error {
			fresh, err := x.loadUnit(ctx, unit)
			if err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			if fresh {
				loaded = append(loaded, x.units[unit].report)
			}
			if done++; x.gpu.opts.OnLoad != nil {
				x.gpu.opts.OnLoad(done, len(needed))
			}
			return nil
		})
	}
	return loaded, group.Wait()
}

// loadUnit loads one unit; fresh is true for the first call that finds it loaded. Calls at the
// same time share the work, and wait no longer than their contexts.
func (x *gpuProgram) loadUnit(ctx context.Context, unit int) (fresh bool, err error) {
	u := &x.units[unit]
	if !u.ready.Load() {
		err := u.loading.do(ctx, x.loads.Go, func(ctx context.Context) error { return x.makeUnit(ctx, unit) })
		if err != nil {
			return false, err
		}
	}
	return !u.told.Swap(true), nil
}

// makeUnit gets the code of a unit and loads it. The code is read or compiled even while the
// context is still being made.
func (x *gpuProgram) makeUnit(ctx context.Context, unit int) error {
	u := &x.units[unit]
	u.mu.Lock() // another call may have been abandoned in the middle
	defer u.mu.Unlock()
	if u.ready.Load() {
		return nil
	}
	k, err := x.kernels.Compile(ctx, x.program, unit, x.arch)
	if err != nil {
		return err
	}
	if err := x.gpu.enter(ctx); err != nil {
		return err
	}
	if u.module, k, err = x.loadModule(ctx, unit, k); err != nil {
		return fmt.Errorf("kernel %s: %w", k.Entry, err)
	}
	if u.function, err = u.module.Function(k.Entry); err != nil {
		err = errors.Join(fmt.Errorf("kernel %s: %w", k.Entry, err), u.module.Close())
		u.module = nil
		return err
	}
	u.report = UnitReport{Entry: k.Entry, Outcome: k.Outcome, Took: k.Took, Registers: k.Registers, Stack: k.Stack,
		Spills: k.Spills, Log: k.Log}
	u.ready.Store(true)
	return nil
}

// loadModule loads a kernel's code. Code that the driver refuses (stored by a machine with
// another chip, or damaged in a way that checksums do not detect) is replaced. First the driver
// compiles the PTX itself; if that fails too, and the kernels are this machine's own, they are
// compiled again.
func (x *gpuProgram) loadModule(ctx context.Context, unit int, k Kernel) (*cuda.Module, Kernel, error) {
	defer x.gpu.opts.Trace.Step("module load", k.Entry)()
	if len(k.Cubin) > 0 || len(k.PTX) == 0 {
		module, err := x.gpu.context.LoadModule(k.Cubin)
		if !refused(err) || len(k.PTX) == 0 && x.kernels != x.gpu.compiler {
			return module, k, err
		}
		x.gpu.opts.warn(fmt.Errorf("kernel %s: the driver refused the code (%w): compiling its PTX instead",
			k.Entry, err))
	}
	module, err := x.gpu.context.LoadModule(k.PTX)
	if !refused(err) || x.kernels != x.gpu.compiler {
		return module, k, err
	}
	x.gpu.opts.warn(fmt.Errorf("kernel %s: the driver refused the PTX (%w): compiling the kernel anew",
		k.Entry, err))
	fresh, err := x.gpu.compiler.get(ctx, x.program, unit, x.arch, true)
	if err != nil {
		return nil, k, err
	}
	module, err = x.gpu.context.LoadModule(fresh.Cubin)
	return module, fresh, err
}

// refused reports whether err is about the code, not the device.
func refused(err error) bool {
	return errors.Is(err, cuda.ErrNoBinaryForGPU) || errors.Is(err, cuda.ErrInvalidImage) ||
		errors.Is(err, cuda.ErrUnsupportedPTX)
}

// prepare makes a launch. The first launch of a program runs after everything that was queued
// on the stream before; the others may overlap with the end of the launch before them.
func (x *gpuProgram) prepare(l *gpuLaunch, v *ir.LaunchVariant, r *KernelReport, first bool) (err error) {
	if r.Grid == [3]uint32{} {
		return nil
	}
	const programmaticSince = 9 // major compute capability
	u := x.program.Units[v.Unit]
	l.waits = u.Waits && x.gpu.device.Major >= programmaticSince
	config := cuda.LaunchConfig{Grid: r.Grid, Block: r.Block, Shared: uint32(u.Shared), Programmatic: l.waits && !first}
	if u.Cluster > 0 {
		config.Cluster = [3]uint32{uint32(u.Cluster), 1, 1}
	}
	if l.launch, err = x.units[v.Unit].function.Launch(config); err != nil {
		return err
	}
	if u.Resident {
		l.launch = x.gpu.clamped(l.launch, config)
		r.Grid = l.launch.Config().Grid
	}
	return nil
}

// clamped is the launch with no more clusters than the device holds at once, in even turns; as it
// was where the driver cannot say, which is as correct.
func (g *gpu) clamped(l *cuda.Launch, config cuda.LaunchConfig) *cuda.Launch {
	blocks := max(config.Cluster[0], 1)
	n, err := g.activeClusters(l, &config)
	if err != nil || n == 0 || uint32(n)*blocks >= config.Grid[0] {
		return l
	}
	config.Grid[0] = evenTurns(config.Grid[0]/blocks, uint32(n)) * blocks
	fewer, err := l.Function().Launch(config)
	if err != nil {
		return l
	}
	return fewer
}

// activeClusters is how many clusters of a launch the device holds at once. Where it has clusters, a block is one too.
func (g *gpu) activeClusters(l *cuda.Launch, config *cuda.LaunchConfig) (int, error) {
	if !g.device.Limits.Clusters {
		n, err := l.Function().MaxActiveBlocks(int(config.Block[0]), config.Shared)
		return n * g.device.Limits.SMs, err
	}
	config.Cluster = [3]uint32{max(config.Cluster[0], 1), 1, 1}
	probe, err := l.Function().Launch(*config)
	if err != nil {
		return 0, err
	}
	return probe.MaxActiveClusters()
}

// manyTurns is from how many on a turn more or less of a few clusters is a small part of all.
const manyTurns = 4

// evenTurns is the least number of clusters, of the n that the device holds, that do the work in
// as many rounds as n would. With fewer clusters at the same time, memory serves each one sooner.
func evenTurns(work, n uint32) uint32 {
	turns := (work + n - 1) / n
	if turns < manyTurns {
		return n
	}
	return (work + turns - 1) / turns
}

func (x *gpuProgram) close() error {
	x.loads.Wait() // loads may have been abandoned
	if err := x.gpu.enter(context.Background()); err != nil {
		return nil // there is nothing to unload
	}
	errs := []error{x.gpu.drainQueues()} // queues may hold runs of the program
	for i := range x.units {
		if m := x.units[i].module; m != nil {
			errs = append(errs, m.Close())
		}
	}
	return x.gpu.closing(errors.Join(errs...))
}
