package cuda

import (
	"fmt"
	"runtime"
	"unsafe"
)

// A LaunchConfig is the shape of a launch.
type LaunchConfig struct {
	Grid   [3]uint32 // blocks
	Block  [3]uint32 // threads
	Shared uint32    // bytes of dynamic shared memory in a block

	// Cluster is the number of blocks of a cluster along each axis, which must divide
	// the grid; all 0 for none.
	Cluster [3]uint32
	// Cooperative: all blocks run at once and may synchronise with each other.
	Cooperative bool
	// Programmatic: the kernel may start before the one queued ahead of it has ended,
	// and itself waits (griddepcontrol.wait) before it reads what that one writes.
	Programmatic bool
}

// A Launch is a kernel with its shape, checked and laid out once. It is immutable
// and safe for concurrent use; each goroutine brings Params of its own.
type Launch struct {
	function *Function
	config   LaunchConfig
	attrs    []launchAttribute // pinned; empty where cuLaunchKernel does
}

// launchAttribute is CUlaunchAttribute: an id, padding, and a union of 64 bytes.
type launchAttribute struct {
	id    uint32
	_     uint32
	value [16]uint32
}

// launchConfig is CUlaunchConfig.
type launchConfig struct {
	grid, block [3]uint32
	shared      uint32
	_           uint32
	stream      uintptr
	attrs       uintptr
	numAttrs    uint32
	_           uint32
}

// CUlaunchAttributeID.
const (
	attrCooperative  = 2
	attrCluster      = 4
	attrProgrammatic = 6
)

// Launch prepares launches of the function. It opts the function into the shared
// memory and cluster size that the configuration asks for.
func (f *Function) Launch(config LaunchConfig) (*Launch, error) {
	if err := config.check(); err != nil {
		return nil, fmt.Errorf("kernel %s: %w", f.name, err)
	}
	if err := f.allowShared(config.Shared); err != nil {
		return nil, err
	}
	if err := f.allowCluster(volume(config.Cluster)); err != nil {
		return nil, err
	}
	l := &Launch{function: f, config: config, attrs: config.attributes()}
	if len(l.attrs) > 0 {
		pin(l, unsafe.Pointer(&l.attrs[0]))
	}
	return l, nil
}

func volume(dims [3]uint32) uint64 { return uint64(dims[0]) * uint64(dims[1]) * uint64(dims[2]) }

// check refuses what the driver would refuse with less to say.
func (c *LaunchConfig) check() error {
	if volume(c.Grid) == 0 || volume(c.Block) == 0 {
		return fmt.Errorf("%w: grid %v of blocks %v: each dimension must be at least 1; "+
			"launch nothing where there is nothing to do", ErrInvalidValue, c.Grid, c.Block)
	}
	if c.Cluster == [3]uint32{} {
		return nil
	}
	for axis, n := range c.Cluster {
		if n == 0 || c.Grid[axis]%n != 0 {
			return fmt.Errorf("%w: clusters of %v blocks: each dimension must be at least 1 and "+
				"divide that of the grid, %v", ErrInvalidValue, c.Cluster, c.Grid)
		}
	}
	return nil
}

func (c *LaunchConfig) attributes() []launchAttribute {
	var attrs []launchAttribute
	if c.Cluster != [3]uint32{} {
		attrs = append(attrs, launchAttribute{id: attrCluster, value: [16]uint32{
			c.Cluster[0], c.Cluster[1], c.Cluster[2]}})
	}
	if c.Cooperative {
		attrs = append(attrs, launchAttribute{id: attrCooperative, value: [16]uint32{1}})
	}
	if c.Programmatic {
		attrs = append(attrs, launchAttribute{id: attrProgrammatic, value: [16]uint32{1}})
	}
	return attrs
}

// Function is what is launched.
func (l *Launch) Function() *Function { return l.function }

// Config is the shape it is launched in.
func (l *Launch) Config() LaunchConfig { return l.config }

// Run queues the kernel on s with the given arguments (nil for none) and returns
// at once, without allocating. A fault of the kernel shows in a later call.
func (l *Launch) Run(s *Stream, params *Params) error {
	ctx := l.function.module.ctx
	if err := ctx.enter(); err != nil {
		return err
	}
	defer ctx.leave()
	return l.RunCurrent(s, params)
}

// RunCurrent is Run inside Context.Do, where the context is already current: it
// saves a call of the driver for each launch.
func (l *Launch) RunCurrent(s *Stream, params *Params) error {
	if b := l.function.module.ctx.driver.backend; b != nil {
		if err, ok := l.launchVia(b, s, params); ok {
			return l.explainIf(err)
		}
	}
	var pointers uintptr
	if params != nil {
		pointers = address(params.pointers)
	}
	err := l.queue(s.handle, pointers)
	runtime.KeepAlive(params)
	runtime.KeepAlive(l)
	return l.explainIf(err)
}

func (l *Launch) explainIf(err error) error {
	if err != nil {
		return l.explain(err)
	}
	return nil
}

// queue passes the launch to the driver. pointers is the address of memory that
// the caller keeps alive and the collector does not move.
func (l *Launch) queue(stream, pointers uintptr) error {
	driver, c := l.function.module.ctx.driver, &l.config
	if len(l.attrs) == 0 {
		return driver.invoke(symLaunchKernel, l.function.handle,
			uintptr(c.Grid[0]), uintptr(c.Grid[1]), uintptr(c.Grid[2]),
			uintptr(c.Block[0]), uintptr(c.Block[1]), uintptr(c.Block[2]),
			uintptr(c.Shared), stream, pointers, 0)
	}
	config := driver.configs.Get().(*launchConfig)
	l.fill(config, stream)
	err := driver.invoke(symLaunchKernelEx, uintptr(unsafe.Pointer(config)), l.function.handle, pointers, 0)
	driver.configs.Put(config) // which keeps it alive until here
	return err
}

func (l *Launch) fill(config *launchConfig, stream uintptr) {
	*config = launchConfig{
		grid: l.config.Grid, block: l.config.Block, shared: l.config.Shared,
		stream: stream, attrs: address(l.attrs), numAttrs: uint32(len(l.attrs)),
	}
}

func (l *Launch) explain(err error) error {
	return withDetail(err, fmt.Sprintf("launching kernel %s with grid %v, block %v, %d bytes of shared memory",
		l.function.name, l.config.Grid, l.config.Block, l.config.Shared))
}

// MaxActiveClusters is how many clusters of the launch's shape the device holds at
// once; 0 if not even one fits. The launch must have clusters.
func (l *Launch) MaxActiveClusters() (int, error) {
	var n int32
	config := new(launchConfig)
	l.fill(config, 0)
	err := l.function.module.ctx.call(symMaxActiveClusters, uintptr(unsafe.Pointer(&n)), l.function.handle,
		uintptr(unsafe.Pointer(config)))
	runtime.KeepAlive(l)
	return int(n), err
}
