package simtest

import (
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/runtime"
	"github.com/fusec/fusec/runtime/internal/fakecuda"
	"github.com/fusec/fusec/runtime/internal/ptxsim"
)

// A Config says which device to simulate, and how.
type Config struct {
	Arch string // sm_90a, of an H200, which "" means; or sm_80, of an A100
	// Multiprocessors is how many the driver says there are, and BlocksPerMultiprocessor
	// how many blocks each holds at most: kernels whose blocks share the work out have
	// no more. 0 for 4 and for what the chip holds.
	Multiprocessors, BlocksPerMultiprocessor int
	Order                                    Order
	// Limit is the most instructions of warps in a launch; 0 for 2^32.
	Limit uint64
}

// An Order is what a GPU leaves open; results must not depend on it.
type Order struct {
	Early     bool // asynchronous copies land at once, not as late as they may
	Backwards bool // the last warp runs first, not the first
	// Races makes unordered accesses to shared memory a fault, whether or not they change
	// results in this order. Launches take several times as long.
	Races bool
}

// A Simulator is a driver whose kernels run on the CPU. It is safe for concurrent use.
type Simulator struct {
	*fakecuda.Driver
	limit uint64

	mu      sync.Mutex
	order   Order
	units   []unit                    // that were compiled
	parsed  map[string]*ptxsim.Module // by their text
	modules []module                  // that were loaded
	kernels []kernel                  // that were found in them
	ran     []string                  // names of kernels, in the order of launches
	fault   error
}

// A module is code, and the unit it was compiled from where that is known.
type module struct {
	*ptxsim.Module
	unit unit
}

// A kernel is one of a module.
type kernel struct {
	*ptxsim.Entry
	unit unit
}

// New makes a driver of its own for one device, for as long as the test runs.
func New(t testing.TB, c Config) *Simulator {
	t.Helper()
	if c.Arch == "" {
		c.Arch = "sm_90a"
	}
	if c.Multiprocessors == 0 {
		c.Multiprocessors = 4
	}
	s := &Simulator{Driver: fakecuda.NewOwn(t, "-DFAKE"), limit: c.Limit, order: c.Order,
		parsed: map[string]*ptxsim.Module{}}
	require.NoError(t, s.describe(c))
	s.Execute(executor{s})
	return s
}

// Open opens the device, closed when the test ends. Where opts has no source of kernels,
// they are compiled to PTX and no further. Its kernels may touch the tensors that they are
// given and nothing else.
func (s *Simulator) Open(t testing.TB, opts runtime.Options) *runtime.Device {
	t.Helper()
	opts.Driver = s.Path
	if opts.Kernels == nil {
		opts.Kernels = Virtual{runtime.NewCompiler(opts)}
	}
	opts.Kernels = marking{opts.Kernels, s}
	d, err := runtime.Open("cuda", opts)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	return d
}

// SetOrder sets the order of launches from now on.
func (s *Simulator) SetOrder(o Order) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.order = o
}

// Fault is what a kernel did wrong; nil where none has. The device is lost then.
func (s *Simulator) Fault() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fault
}

// Ran is the names of the kernels that were launched so far, in order.
func (s *Simulator) Ran() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.ran)
}

// note keeps the first fault.
func (s *Simulator) note(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fault == nil {
		s.fault = err
	}
	return err
}

var errUnknown = errors.New("no such module or kernel")
