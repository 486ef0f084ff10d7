package cuda

import (
	"bytes"
	"runtime"
	"unsafe"
)

// address is the address of the first element, 0 for a nil slice. The slice must be
// on the heap and kept alive by other means for as long as the address is in use:
// unlike a conversion in the argument list of a call, this holds on to nothing.
func address[T any](s []T) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(s))) }

// nulTerminated gives the bytes of s and a NUL: what C takes for a string.
func nulTerminated(s string) []byte { return append([]byte(s), 0) }

// goString gives the text before the first NUL.
func goString(b []byte) string {
	text, _, _ := bytes.Cut(b, []byte{0})
	return string(text)
}

// cString gives the text of a NUL-terminated C string, "" for a null pointer.
func cString(p *byte) string {
	if p == nil {
		return ""
	}
	n := 0
	for *(*byte)(unsafe.Add(unsafe.Pointer(p), n)) != 0 {
		n++
	}
	return string(unsafe.Slice(p, n))
}

// pin fixes memory in place for as long as owner lives, so that its address may be
// stored in memory that C reads. owner must keep the memory reachable itself, and
// the memory must not lead back to owner.
func pin[T any](owner *T, memory ...unsafe.Pointer) {
	pinner := new(runtime.Pinner)
	for _, p := range memory {
		pinner.Pin(p)
	}
	runtime.AddCleanup(owner, (*runtime.Pinner).Unpin, pinner)
}

// aligned gives n zero bytes that begin at a multiple of align, a power of two.
func aligned(n, align int) []byte {
	raw := make([]byte, n+align-1)
	skip := -int(address(raw)) & (align - 1)
	return raw[skip : skip+n : skip+n]
}
