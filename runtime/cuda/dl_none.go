//go:build !linux || nocuda

package cuda

import "errors"

// dlOpen refuses: this build carries no loader, so nothing can be opened.
func dlOpen(string) (uintptr, error) {
	return 0, errors.New("this program was built without the CUDA loader (build tag nocuda, or not Linux)")
}

func dlSymbol(uintptr, string) uintptr { return 0 }

func dlCall(uintptr, []uintptr) uint32 {
	panic("BUG: a C function is called in a build that can open no library")
}
