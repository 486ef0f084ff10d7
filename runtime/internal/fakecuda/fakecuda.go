// Package fakecuda is a CUDA driver without a GPU, for tests: a C library with the
// entry points that package cuda calls, working on host memory, with every launch
// recorded and every call able to fail on demand. It must not know package cuda.
package fakecuda

import (
	"bytes"
	"embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

//go:embed driver
var sources embed.FS

// A Driver is the fake driver with its controls. All tests of a process share one, so they do
// not run in parallel; NewOwn makes others.
type Driver struct {
	Path string // of the library

	Reset             func()                               // forgets everything that happened; the mode stays
	Fail              func(call string, code, after int32) // makes one call fail, after so many that succeed
	Calls             func(call string) int                // so far
	Live              func() int                           // resources that were handed out and not freed
	Devices           func(n int32)                        // sets their number
	PoolThreshold     func() int
	PoolKept          func() int
	PoolHeld          func() int         // bytes that were freed to the pool and not trimmed
	Limit             func(bytes uint64) // sets the device's memory, 0 for no limit
	FunctionShared    func() int         // bytes of shared memory opted into last
	FunctionCluster   func() int
	Edges             func() int // of graphs that were built
	ProgrammaticEdges func() int
	launched          func(*uint64)
	deferring         func(on int32)
	hold              func(on int32)
	violation         func(out *byte, most int64)

	Name        func(string)          // sets that of the devices
	Attribute   func(id, value int32) // sets one of the devices' (CUdevice_attribute)
	execute     func(user uint64, load, find, launch, encode uintptr)
	allocations func(out *Allocation, most int64) int64
}

// folder holds the libraries that tests compile; building guards both.
var (
	building sync.Mutex
	folder   string
	built    = map[string]string{}
)

// New builds and resets the fake, or skips where there is no C compiler. flag goes to
// the compiler: "-DOLD_DRIVER" for one without tensor maps.
func New(t testing.TB, flag string) *Driver {
	t.Helper()
	return open(t, flag, func(path string) string { return path })
}

// NewOwn is New for a driver that shares nothing with others. Tests that have their own driver
// may run in parallel.
func NewOwn(t testing.TB, flag string) *Driver {
	t.Helper()
	return open(t, flag, func(path string) string {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		own := filepath.Join(t.TempDir(), "driver.so")
		require.NoError(t, os.WriteFile(own, text, 0o700))
		return own
	})
}

// open builds the library and opens the file that place makes of it.
func open(t testing.TB, flag string, place func(path string) string) *Driver {
	t.Helper()
	if noLoader != "" {
		t.Skip(noLoader)
	}
	if _, err := exec.LookPath("cc"); err != nil {
		t.Skip("no C compiler (cc) here to build the fake driver with")
	}
	path, err := build(flag)
	require.NoError(t, err)
	d := &Driver{Path: place(path)}
	err = bind(d.Path, map[string]any{"reset": &d.Reset, "fail": &d.Fail, "calls": &d.Calls, "live": &d.Live,
		"devices": &d.Devices, "pool_threshold": &d.PoolThreshold, "pool_kept": &d.PoolKept,
		"function_shared": &d.FunctionShared, "function_cluster": &d.FunctionCluster, "edges": &d.Edges,
		"programmatic_edges": &d.ProgrammaticEdges, "launched": &d.launched, "pool_held": &d.PoolHeld, "limit": &d.Limit,
		"defer": &d.deferring, "hold": &d.hold, "violation": &d.violation, "name": &d.Name, "attribute": &d.Attribute, "execute": &d.execute, "allocations": &d.allocations})
	require.NoError(t, err)
	d.Reset()
	d.Defer(defers())
	note(t)
	t.Cleanup(func() { require.Empty(t, d.Violation(), "the driver saw a misuse") })
	return d
}

// Defer makes queued work run only when somebody waits for it, as it may on a GPU, or as soon
// as it is queued. A new driver has the mode in which the tests of the process run: see Main.
func (d *Driver) Defer(on bool) { d.deferring(number(on)) }

// Hold makes deferred work, and the making of contexts, take as long as the test wants. Until
// Hold(false), calls that wait for such work block, and queries say that it is not ready.
func (d *Driver) Hold(on bool) { d.hold(number(on)) }

func number(on bool) int32 {
	if on {
		return 1
	}
	return 0
}

// Violation is the first misuse since the last call of Violation; "" for none. It covers misuse
// that a GPU may not report but that may corrupt results, such as freeing memory that queued
// work will use. A test that ends with a violation fails.
func (d *Driver) Violation() string {
	text := make([]byte, 512)
	d.violation(&text[0], int64(len(text)))
	text, _, _ = bytes.Cut(text, []byte{0})
	return string(text)
}

// Folder is a folder that all tests of the package share, and that Main removes.
func Folder(t testing.TB) string {
	t.Helper()
	building.Lock()
	defer building.Unlock()
	require.NoError(t, prepare())
	return filepath.Join(folder, "shared")
}

// prepare makes the folder, with the sources in it.
func prepare() (err error) {
	if folder != "" {
		return nil
	}
	if folder, err = os.MkdirTemp("", "fakecuda"); err != nil {
		return err
	}
	return os.CopyFS(folder, sources)
}

// build compiles the library, once for a flag.
func build(flag string) (path string, err error) {
	building.Lock()
	defer building.Unlock()
	if path := built[flag]; path != "" {
		return path, nil
	}
	if err := prepare(); err != nil {
		return "", err
	}
	path = filepath.Join(folder, "fakecuda"+flag+".so")
	out, err := exec.Command("cc", "-shared", "-fPIC", "-O1", "-DFAKE", flag, "-o", path,
		filepath.Join(folder, "driver", "fakecuda.c"), "-pthread").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	built[flag] = path
	return path, nil
}

// Launched is the arguments of the last launch: see record in the C file.
func (d *Driver) Launched() []uint64 {
	words := make([]uint64, 64)
	d.launched(&words[0])
	return words
}
