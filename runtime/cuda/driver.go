package cuda

import (
	"fmt"
	"strings"
	"sync"
	"unsafe"
)

// A Driver is the opened CUDA driver library. It stays open as long as the
// process lives: the driver does not survive being unloaded. Safe for concurrent
// use.
type Driver struct {
	lib     *library
	path    string
	version int
	backend Backend   // nil: lib makes all calls
	configs sync.Pool // of *launchConfig: one for each launch under way
	nodes   sync.Pool // of *kernelNodeParams: one for each update under way
}

// driverPaths are tried in order. The plain name asks the loader; the folders are
// where containers and WSL put a driver that the loader was not told of.
var driverPaths = []string{
	"libcuda.so.1",
	"/usr/lib/wsl/lib/libcuda.so.1",
	"/usr/local/nvidia/lib64/libcuda.so.1",
	"/run/opengl-driver/lib/libcuda.so.1",
}

// Open opens and initialises the driver. Where there is none, or it cannot be
// used, the error matches ErrNoDriver; a driver that sees no GPU gives ErrNoDevice.
func Open() (*Driver, error) { return openFirst(driverPaths) }

func openFirst(paths []string) (*Driver, error) {
	if noLoader != "" {
		return nil, fmt.Errorf("%w: %s", ErrNoDriver, noLoader)
	}
	var reasons []string
	for _, path := range paths {
		driver, err := loadDriver(path)
		if err == nil {
			return driver.init()
		}
		// A file that does not exist is not reported; one that exists and does not open is.
		if reason := err.Error(); !strings.HasPrefix(reason, path+": cannot open") {
			reasons = append(reasons, reason)
		}
	}
	reasons = append(reasons, "install the NVIDIA driver for GPU runs")
	return nil, fmt.Errorf("%w: %s", ErrNoDriver, strings.Join(reasons, "; "))
}

// OpenPath opens one driver library and no other.
func OpenPath(path string) (*Driver, error) {
	driver, err := loadDriver(path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoDriver, err)
	}
	return driver.init()
}

func loadDriver(path string) (*Driver, error) {
	lib, err := openLibrary(path, driverSymbols[:])
	if err != nil {
		return nil, err
	}
	d := &Driver{lib: lib, path: path}
	d.configs.New = func() any { return new(launchConfig) }
	d.nodes.New = func() any { return new(kernelNodeParams) }
	return d, nil
}

// init makes the driver ready and gives it back.
func (d *Driver) init() (*Driver, error) {
	if err := d.invoke(symInit, 0); err != nil {
		return nil, err
	}
	var version int32
	if err := d.call(symDriverGetVersion, uintptr(unsafe.Pointer(&version))); err != nil {
		return nil, err
	}
	d.version = int(version)
	return d, nil
}

// Path is the name the library was opened by.
func (d *Driver) Path() string { return d.path }

// Version is the newest CUDA version that the driver supports, 12.4 as (12, 4).
func (d *Driver) Version() (major, minor int) {
	return d.version / 1000, d.version % 1000 / 10
}

// call calls an entry point and turns its status into an error. Pointers may be
// converted to uintptr in the argument list and nowhere earlier: see library.call.
//
//go:uintptrescapes
func (d *Driver) call(symbol int, args ...uintptr) error { return d.invoke(symbol, args...) }

// invoke is call without an allocation, for arguments that the compiler need not
// keep alive: see library.invoke.
func (d *Driver) invoke(symbol int, args ...uintptr) error {
	if d.backend != nil {
		if code, ok := d.viaBackend(symbol, args); ok {
			return d.check(symbol, code)
		}
	}
	if !d.lib.has(symbol) {
		return d.missing(symbol)
	}
	return d.check(symbol, Code(d.lib.invoke(symbol, args...)))
}

// check turns a status into an error.
func (d *Driver) check(symbol int, code Code) error {
	if code != codeSuccess {
		return d.failure(symbol, code)
	}
	return nil
}

func (d *Driver) missing(symbol int) error {
	major, minor := d.Version()
	return fmt.Errorf("%w: the driver (CUDA %d.%d) has no %s: install a newer driver",
		ErrMissingSymbol, major, minor, driverSymbols[symbol])
}

func (d *Driver) failure(symbol int, code Code) *Error {
	return &Error{
		Call:    driverSymbols[symbol],
		Code:    code,
		Name:    d.describe(symGetErrorName, code),
		Message: d.describe(symGetErrorString, code),
	}
}

// describe asks the driver for a code's name or meaning; "" if it knows none.
func (d *Driver) describe(symbol int, code Code) string {
	if !d.lib.has(symbol) {
		return ""
	}
	var text *byte // the driver's own memory, never freed
	d.lib.call(symbol, uintptr(code), uintptr(unsafe.Pointer(&text)))
	return cString(text)
}
