//go:build linux && !nocuda

package cuda

import (
	"runtime"

	"github.com/ebitengine/purego"
)

// noLoader says why this build can open no library; "" where it can.
const noLoader = ""

// dlOpen loads a shared library and makes its symbols visible to libraries
// loaded later: NVRTC finds its builtins that way.
func dlOpen(path string) (uintptr, error) {
	runtime.LockOSThread() // each thread has an error message of its own, which a second call asks for
	defer runtime.UnlockOSThread()
	return purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_GLOBAL)
}

// dlSymbol gives the address of a symbol, or 0.
func dlSymbol(handle uintptr, name string) uintptr {
	address, err := purego.Dlsym(handle, name)
	if err != nil {
		return 0
	}
	return address
}

// dlCallback gives the address of a C function that calls fn, for as long as the process lives.
func dlCallback(fn any) uintptr { return purego.NewCallback(fn) }

// dlCall calls a C function of integer and pointer arguments (at most 32) and
// gives the low 32 bits of what it returned. It keeps nothing alive: see
// library.call.
func dlCall(address uintptr, args []uintptr) uint32 {
	result, _, _ := purego.SyscallN(address, args...)
	return uint32(result)
}
