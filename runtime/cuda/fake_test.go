package cuda

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// fakeFolder holds the fake drivers that tests compile.
var fakeFolder string

func TestMain(m *testing.M) {
	folder, err := os.MkdirTemp("", "fakecuda")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fakeFolder = folder
	code := m.Run()
	os.RemoveAll(folder)
	os.Exit(code)
}

// buildFake compiles testdata/fakecuda.c once per set of flags.
var buildFake = func() func(flag string) (string, error) {
	var mu sync.Mutex
	built := map[string]func() (string, error){}
	return func(flag string) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		if built[flag] == nil {
			built[flag] = sync.OnceValues(func() (string, error) { return compileFake(flag) })
		}
		return built[flag]()
	}
}()

func compileFake(flag string) (string, error) {
	for _, name := range []string{"fakecuda.c", "fakecuda.h", "fakework.h"} {
		// Read for nothing but the test cache, which then runs anew when they change.
		if _, err := os.ReadFile("testdata/" + name); err != nil {
			return "", err
		}
	}
	path := filepath.Join(fakeFolder, "fakecuda"+flag+".so")
	args := []string{"-shared", "-fPIC", "-O1", flag, "-o", path, "testdata/fakecuda.c", "-pthread"}
	out, err := exec.Command("cc", args...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return path, nil
}

// fakeControls are what tests steer a fake driver with.
const (
	ctlReset = iota
	ctlFail
	ctlCalls
	ctlLive
	ctlDevices
	ctlLaunched
	ctlPoolThreshold
	ctlPoolKept
	ctlFunctionShared
	ctlFunctionCluster
)

var fakeControls = []string{"fake_reset", "fake_fail", "fake_calls", "fake_live", "fake_devices",
	"fake_launched", "fake_pool_threshold", "fake_pool_kept", "fake_function_shared", "fake_function_cluster"}

// A fake is the driver of testdata/fakecuda.c and the means to steer it. There is
// one in the process: tests that use it do not run in parallel.
type fake struct {
	t    testing.TB
	path string
	lib  *library
}

// fakeDriver builds and resets the fake, or skips where there is no C compiler.
func fakeDriver(t testing.TB) *fake { return fakeDriverWith(t, "-DFAKE") }

func fakeDriverWith(t testing.TB, flag string) *fake {
	t.Helper()
	if noLoader != "" {
		t.Skip("this build cannot open libraries, a fake driver neither")
	}
	if _, err := exec.LookPath("cc"); err != nil {
		t.Skip("no C compiler (cc) here to build the fake driver with")
	}
	if _, err := os.Stat("testdata/fakecuda.c"); err != nil {
		t.Skip("the test runs away from its testdata, which holds the fake driver's source")
	}
	path, err := buildFake(flag)
	require.NoError(t, err)
	lib, err := openLibrary(path, fakeControls)
	require.NoError(t, err)
	f := &fake{t: t, path: path, lib: lib}
	lib.call(ctlReset)
	return f
}

// open opens the fake as a driver.
func (f *fake) open() *Driver {
	f.t.Helper()
	d, err := OpenPath(f.path)
	require.NoError(f.t, err)
	return d
}

// context gives a context on device 0, closed when the test ends; nothing made from
// it may be left then.
func (f *fake) context() *Context {
	f.t.Helper()
	dev, err := f.open().Device(0)
	require.NoError(f.t, err)
	c, err := dev.Context()
	require.NoError(f.t, err)
	f.t.Cleanup(func() {
		require.NoError(f.t, c.Close())
		require.Zero(f.t, f.get(ctlLive), "resources that were not given back")
	})
	return c
}

// fail makes the next call of a C function fail, after so many that succeed.
func (f *fake) fail(name string, code Code, after int) {
	text := nulTerminated(name)
	f.lib.call(ctlFail, uintptr(unsafe.Pointer(&text[0])), uintptr(code), uintptr(after))
}

// calls is how often a C function was called.
func (f *fake) calls(name string) int {
	text := nulTerminated(name)
	return int(f.lib.call(ctlCalls, uintptr(unsafe.Pointer(&text[0]))))
}

func (f *fake) get(control int) int { return int(f.lib.call(control)) }

// launched is what the last launch was given: see record in the C file.
func (f *fake) launched() []uint64 {
	words := make([]uint64, 64)
	f.lib.call(ctlLaunched, uintptr(unsafe.Pointer(&words[0])))
	return words
}

// fakeImage is the least that passes for a cubin.
func fakeImage() []byte { return append([]byte(elfMagic), make([]byte, 60)...) }

// must gives a value that came without an error.
func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		require.NoError(t, err)
		return v
	}
}
