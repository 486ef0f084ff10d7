//go:build !linux || nocuda

package cuda

import "errors"

// noLoader says why this build can open no library.
const noLoader = "this program was built without the CUDA loader (build tag nocuda, or not Linux)"

func dlOpen(string) (uintptr, error) { return 0, errors.New(noLoader) }

func dlSymbol(uintptr, string) uintptr { return 0 }

func dlCallback(any) uintptr {
	panic("BUG: C is to call a function in a build that can open no library")
}

func dlCall(uintptr, []uintptr) uint32 {
	panic("BUG: a C function is called in a build that can open no library")
}
