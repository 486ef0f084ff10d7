package cuda

// A Backend makes calls of the driver instead of the library that Open opens. It is for a
// program that has linked the driver itself. It must be safe for concurrent use.
type Backend interface {
	// Call makes the call that the driver's library exports under a name
	// (cuMemAlloc_v2), with the arguments that C takes, and returns its CUresult; ok is
	// false where the backend does not have it: then the library makes it.
	Call(name string, args []uintptr) (status uint32, ok bool)
	// Launch queues a kernel whose arguments have eight bytes each and lie at the
	// addresses args, and returns the CUresult.
	Launch(function uintptr, grid, block [3]uint32, shared uint32, stream uintptr, args []uintptr) (status uint32)
}

// OpenBackend is Open with calls made by b where it has them. Launches with arguments
// of other sizes (tensor maps have 128 bytes), with clusters or with other attributes
// are made by the library.
func OpenBackend(b Backend) (*Driver, error) {
	driver, err := openFirst(driverPaths)
	if err != nil {
		return nil, err
	}
	driver.backend = b
	return driver.init()
}

// viaBackend is invoke where there is a backend. The arguments are copied, so that
// those of invoke stay on the stack.
func (d *Driver) viaBackend(symbol int, args []uintptr) (status Code, ok bool) {
	code, ok := d.backend.Call(driverSymbols[symbol], append([]uintptr(nil), args...))
	return Code(code), ok
}

// launchVia launches through the backend where it can; ok is false where it cannot.
func (l *Launch) launchVia(b Backend, s *Stream, params *Params) (err error, ok bool) {
	if len(l.attrs) > 0 {
		return nil, false
	}
	var args []uintptr
	if params != nil {
		for _, size := range params.sizes {
			if size != 8 {
				return nil, false
			}
		}
		args = params.pointers
	}
	c, driver := &l.config, l.function.module.ctx.driver
	if code := Code(b.Launch(l.function.handle, c.Grid, c.Block, c.Shared, s.handle, args)); code != codeSuccess {
		return driver.failure(symLaunchKernel, code), true
	}
	return nil, true
}
