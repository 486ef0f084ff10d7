package runtime

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime/cache"
)

// A Device runs functions. It is safe for concurrent use; Close waits for the calls under
// way, and later ones get ErrClosed.
type Device struct {
	kind     Kind
	name     string
	arch     string
	figures  ir.Device
	opts     Options
	fallback error
	engine   engine

	// calls are those on the device itself, copies of buffers, and closing what is of the
	// device. Runs are counted by their function, what is queued by its stream.
	calls   gate
	mu      sync.Mutex
	members [ranks]map[member]struct{}
}

// A member is something of a device that the device's Close closes.
type member interface {
	// finish closes it, once the calls on it have ended; a second one does nothing.
	finish() error
}

// A rank says when Device.Close closes a member: members that use others are closed first.
type rank int

const (
	streamRank   rank = iota // streams first: they wait for queued work, which uses all other members
	functionRank             // then functions, whose code no longer runs
	memoryRank               // then memory that runs and copies have used, on the device and the host
	ranks
)

// An engine is the part of a device that depends on its kind.
type engine interface {
	// load prepares a program, or the plan if there is one, to be run. kernels is the source of
	// the program's code; nil for the device's own compiler.
	load(p *ir.Program, plan *ir.Plan, kernels KernelSource) (executable, error)
	alloc(bytes int64) (storage, error)
	// hostMemory allocates host memory that copies need not wait for.
	hostMemory(bytes int64) (data []byte, free func() error, err error)
	queue() (queue, error)
	// expect prepares for kernels to be compiled.
	expect()
	memInfo() (free, total uint64, err error)
	// close is called when nothing uses the engine any more.
	close() error
}

// An executable is a program on an engine.
type executable interface {
	// bind prepares what all later runs with the sizes of b share.
	bind(ctx context.Context, b *binding) error
	// run runs with arguments that fit b; m is nil if the run is not measured.
	run(ctx context.Context, b *binding, args []argument, m *measurement) error
	// enqueue queues a run; the arguments are buffers.
	enqueue(ctx context.Context, q queue, b *binding, args []argument) error
	// footprint is what a run with b needs between its inputs and outputs.
	footprint(b *binding) (Footprint, error)
	// retire frees what bind made for b, once runs with it have ended.
	retire(b *binding) error
	close() error
}

// storage is the memory of a Buffer.
type storage interface {
	upload(src []byte) error
	download(dst []byte) error
	close() error
}

func newDevice(kind Kind, name, arch string, figures ir.Device, opts Options, e engine) *Device {
	d := &Device{kind: kind, name: name, arch: arch, figures: figures, opts: opts, engine: e, calls: newGate()}
	for i := range d.members {
		d.members[i] = map[member]struct{}{}
	}
	return d
}

// String is the device's name and what it is: NVIDIA H200 (cuda, sm_90a).
func (d *Device) String() string {
	switch {
	case d.engine == nil:
		return "no device"
	case d.arch == "":
		return d.name
	}
	return fmt.Sprintf("%s (%s, %s)", d.name, d.kind, d.arch)
}

// Kind is CUDA or CPU.
func (d *Device) Kind() Kind { return d.kind }

// Name is the device's name as its maker gives it: "NVIDIA H200".
func (d *Device) Name() string { return d.name }

// Arch is the architecture that kernels are compiled for, sm_90a; "" for the CPU
// engine.
func (d *Device) Arch() string { return d.arch }

// Figures describes the device for planning. For the CPU engine they are those of
// the default GPU: it takes any plan.
func (d *Device) Figures() ir.Device { return d.figures }

// Fallback is why there is no GPU, where Open was left to choose and took the CPU
// engine; else nil.
func (d *Device) Fallback() error { return d.fallback }

// Cache is where kernels, and programs (NewPlanCache), are kept.
func (d *Device) Cache() *cache.Cache { return d.opts.Cache }

// Trace records what takes time; it may be nil.
func (d *Device) Trace() *Trace { return d.opts.Trace }

// MemInfo is how much of the device's memory is free, for all processes together,
// and how much there is, in bytes; zeros for the CPU engine.
func (d *Device) MemInfo() (free, total uint64, err error) {
	if !d.calls.enter() {
		return 0, 0, errClosed
	}
	defer d.calls.leave()
	return d.engine.memInfo()
}

// Load readies a program of CUDA kernels. Kernels are compiled when sizes first
// need them: see Function.Prepare. The CPU engine takes plans: see LoadPlan.
func (d *Device) Load(ctx context.Context, p *ir.Program) (*Function, error) {
	if d.kind != CUDA {
		return nil, fmt.Errorf("graph %s: the CPU engine runs plans, not CUDA programs: use LoadPlan", p.Name)
	}
	if err := checkProgram(p); err != nil {
		return nil, err
	}
	return d.load(ctx, programSignature(p), p, nil, nil)
}

// ExpectCompile opens the kernel compiler in the background, if there is one. It is for a
// caller that knows that kernels will have to be compiled, and has other work to do first.
func (d *Device) ExpectCompile() {
	if d.calls.enter() {
		defer d.calls.leave()
		d.engine.expect()
	}
}

// LoadCompiled is Load for a program whose kernels are compiled already: nothing is
// compiled on this machine, and no compiler or cache is looked for.
func (d *Device) LoadCompiled(ctx context.Context, p *ir.Program, kernels KernelSource) (*Function, error) {
	if d.kind != CUDA {
		return nil, fmt.Errorf("graph %s: the CPU engine runs plans, not compiled kernels: use LoadPlan", p.Name)
	}
	if err := checkProgram(p); err != nil {
		return nil, err
	}
	return d.load(ctx, programSignature(p), p, nil, kernels)
}

// LoadPlan readies a plan on the CPU engine.
func (d *Device) LoadPlan(ctx context.Context, p *ir.Plan) (*Function, error) {
	if d.kind != CPU {
		return nil, fmt.Errorf("graph %s: %s runs CUDA programs, not plans: use Load", p.Graph.Name, d.name)
	}
	return d.load(ctx, planSignature(p), nil, p, nil)
}

func (d *Device) load(
	ctx context.Context, s signature, p *ir.Program, plan *ir.Plan, kernels KernelSource,
) (*Function, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if !d.calls.enter() {
		return nil, errClosed
	}
	defer d.calls.leave()
	x, err := d.engine.load(p, plan, kernels)
	if err != nil {
		return nil, fmt.Errorf("graph %s: %w", s.name, err)
	}
	f := newFunction(d, s, x)
	d.adopt(functionRank, f)
	return f, nil
}

// adopt makes m one of the things that Close closes. The caller has entered d.calls.
func (d *Device) adopt(r rank, m member) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.members[r][m] = struct{}{}
}

func (d *Device) disown(r rank, m member) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.members[r], m)
}

// closeMember is the Close of a member. It does nothing while the device is being closed,
// because that closes all members.
func (d *Device) closeMember(m member) error {
	if !d.calls.enter() {
		return nil
	}
	defer d.calls.leave()
	return m.finish()
}

// sendWait is how long Close waits for the shared store.
const sendWait = 3 * time.Second

// Close closes the device with all its streams, functions and buffers, once the calls under
// way have ended and what is queued is done. It then waits up to three seconds for kernels that were compiled to
// reach the shared store, where the cache has one; what is left is a warning. A second
// Close does nothing.
func (d *Device) Close() error {
	if !d.calls.close() {
		return nil
	}
	var errs []error
	for r := range ranks {
		for _, m := range d.membersOf(r) {
			errs = append(errs, m.finish())
		}
	}
	errs = append(errs, d.engine.close())
	d.flushCache()
	return errors.Join(errs...)
}

func (d *Device) membersOf(r rank) []member {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Collect(maps.Keys(d.members[r]))
}

// flushCache lets what was compiled reach the shared store.
func (d *Device) flushCache() {
	ctx, cancel := context.WithTimeout(context.Background(), sendWait)
	defer cancel()
	if err := d.opts.Cache.Flush(ctx); err != nil {
		d.opts.warn(fmt.Errorf("not everything was sent to the shared store within %v: %w", sendWait, err))
	}
}
