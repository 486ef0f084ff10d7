package cuda

import "sync"

// maxArgs is the most arguments any function called here takes
// (cuTensorMapEncodeTiled takes 12).
const maxArgs = 12

// A library is an opened shared library with the addresses of the symbols that
// the package calls, in the order of a table of names.
type library struct {
	addresses []uintptr // 0 where the library lacks the symbol
	frames    sync.Pool // of *[maxArgs]uintptr
}

// openLibrary opens path and looks up every symbol. A missing symbol is an error only when it
// is used.
func openLibrary(path string, symbols []string) (*library, error) {
	handle, err := dlOpen(path)
	if err != nil {
		return nil, err
	}
	lib := &library{addresses: make([]uintptr, len(symbols))}
	lib.frames.New = func() any { return new([maxArgs]uintptr) }
	for i, name := range symbols {
		lib.addresses[i] = dlSymbol(handle, name)
	}
	return lib, nil
}

// has reports whether the library holds the symbol.
func (l *library) has(symbol int) bool { return l.addresses[symbol] != 0 }

// call calls the symbol, which must exist, and gives the status it returned.
//
// The directive below makes the compiler move to the heap, and keep alive until
// the call returns, whatever a caller converts to uintptr in the argument list. It
// costs an allocation for the list.
//
//go:uintptrescapes
func (l *library) call(symbol int, args ...uintptr) uint32 { return l.invoke(symbol, args...) }

// invoke is call for arguments that are numbers, or addresses of memory that is on
// the heap and that the caller keeps alive. It allocates nothing: the arguments
// are copied to a pooled frame, so that the caller's list stays on its stack.
func (l *library) invoke(symbol int, args ...uintptr) uint32 {
	frame := l.frames.Get().(*[maxArgs]uintptr)
	n := copy(frame[:], args)
	if n != len(args) {
		panic("BUG: maxArgs is smaller than the longest signature")
	}
	status := dlCall(l.addresses[symbol], frame[:n])
	l.frames.Put(frame)
	return status
}
