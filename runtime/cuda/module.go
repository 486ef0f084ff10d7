package cuda

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"runtime"
	"sync"
	"unsafe"
)

// A Module is code loaded into a context. Safe for concurrent use; no launch of
// its functions may be in flight when it is closed.
type Module struct {
	ctx    *Context
	handle uintptr
	closed bool
}

// LoadModule loads a cubin or PTX. PTX is compiled by the driver, which takes far
// longer and fails with ErrUnsupportedPTX where the PTX is newer than the driver;
// the compiler's log is the *Error's detail. Close the module.
func (c *Context) LoadModule(image []byte) (*Module, error) {
	image, err := loadable(image)
	if err != nil {
		return nil, err
	}
	m := &Module{ctx: c}
	log := newJITLog()
	defer log.close()
	err = c.call(symModuleLoadDataEx, uintptr(unsafe.Pointer(&m.handle)), uintptr(unsafe.Pointer(&image[0])),
		uintptr(len(log.options)), uintptr(unsafe.Pointer(&log.options[0])),
		uintptr(unsafe.Pointer(&log.values[0])))
	if err != nil {
		return nil, withDetail(err, goString(log.text))
	}
	return m, nil
}

const elfMagic = "\x7fELF"

// loadable checks what the driver does not check, because it does not know the length: an ELF
// image must reach to the end of its section table, and text must end in a NUL.
func loadable(image []byte) ([]byte, error) {
	const headerSize = 64
	switch {
	case len(image) == 0:
		return nil, fmt.Errorf("%w: it is empty: compile the kernel again", ErrInvalidImage)
	case !bytes.HasPrefix(image, []byte(elfMagic)):
		return append(image[:len(image):len(image)], 0), nil
	case len(image) < headerSize:
		return nil, fmt.Errorf("%w: a cubin of %d bytes has no whole ELF header: compile the kernel again",
			ErrInvalidImage, len(image))
	}
	offset := binary.LittleEndian.Uint64(image[40:])
	size := uint64(binary.LittleEndian.Uint16(image[58:])) * uint64(binary.LittleEndian.Uint16(image[60:]))
	if whole := uint64(len(image)); offset > whole || size > whole-offset {
		return nil, fmt.Errorf("%w: a cubin of %d bytes should hold a section table of %d at %d: "+
			"it is cut short, compile the kernel again", ErrInvalidImage, whole, size, offset)
	}
	return image, nil
}

// A jitLog is where the driver's compiler writes why it refused an image, in the
// form of options (CUjit_option) and their values.
type jitLog struct {
	text    []byte
	options []uint32
	values  []uintptr
	pinner  runtime.Pinner
}

func newJITLog() *jitLog {
	const errorLogBuffer, errorLogBufferSize = 5, 6
	log := &jitLog{text: make([]byte, 16<<10), options: []uint32{errorLogBuffer, errorLogBufferSize}}
	log.pinner.Pin(&log.text[0])
	log.values = []uintptr{uintptr(unsafe.Pointer(&log.text[0])), uintptr(len(log.text))}
	return log
}

func (l *jitLog) close() { l.pinner.Unpin() }

// Close unloads the module. A second Close does nothing.
func (m *Module) Close() error {
	if m.closed {
		return nil
	}
	m.closed = true
	return m.ctx.invoke(symModuleUnload, m.handle)
}

// Function finds a kernel by its name in the object code: plain for extern "C".
func (m *Module) Function(name string) (*Function, error) {
	f := &Function{module: m, name: name}
	text := nulTerminated(name)
	err := m.ctx.call(symModuleGetFunction, uintptr(unsafe.Pointer(&f.handle)), m.handle,
		uintptr(unsafe.Pointer(&text[0])))
	if err != nil {
		return nil, withDetail(err, fmt.Sprintf("the module has no usable kernel %q", name))
	}
	return f, nil
}

// Global finds a __device__ or __constant__ variable: its address and size in bytes.
func (m *Module) Global(name string) (p DevicePtr, size uint64, err error) {
	var where DevicePtr
	var bytes uint64
	text := nulTerminated(name)
	err = m.ctx.call(symModuleGetGlobal, uintptr(unsafe.Pointer(&where)), uintptr(unsafe.Pointer(&bytes)),
		m.handle, uintptr(unsafe.Pointer(&text[0])))
	if err != nil {
		return 0, 0, withDetail(err, fmt.Sprintf("the module has no variable %q", name))
	}
	return where, bytes, nil
}

// A Function is a kernel of a loaded module. Safe for concurrent use.
type Function struct {
	module *Module
	name   string
	handle uintptr

	mu      sync.Mutex
	shared  uint32 // bytes of dynamic shared memory opted into so far
	anySize bool   // cluster sizes above the portable ones are allowed
}

// Attributes of a Function that tests look at to see what the compiler made.
type Attributes struct {
	MaxThreads    int // in a block, given the registers the kernel takes
	Registers     int // of 32 bits, in a thread
	LocalBytes    int // in a thread; more than the kernel's own arrays means spills
	SharedBytes   int // static, in a block
	ConstantBytes int
	BinaryVersion int // 90 for sm_90
}

// Name is the name the function was looked up by.
func (f *Function) Name() string { return f.name }

// Module is where the function was found.
func (f *Function) Module() *Module { return f.module }

// Attributes asks the driver for the function's attributes.
func (f *Function) Attributes() (Attributes, error) {
	var a Attributes
	rows := []struct { // CU_FUNC_ATTRIBUTE_...
		id   int
		into *int
	}{{0, &a.MaxThreads}, {1, &a.SharedBytes}, {2, &a.ConstantBytes}, {3, &a.LocalBytes},
		{4, &a.Registers}, {6, &a.BinaryVersion}}
	for _, row := range rows {
		value, err := f.attribute(row.id)
		if err != nil {
			return Attributes{}, err
		}
		*row.into = value
	}
	return a, nil
}

func (f *Function) attribute(id int) (int, error) {
	var value int32
	err := f.module.ctx.call(symFuncGetAttribute, uintptr(unsafe.Pointer(&value)), uintptr(id), f.handle)
	return int(value), err
}

func (f *Function) setAttribute(id, value int) error {
	return f.module.ctx.invoke(symFuncSetAttribute, f.handle, uintptr(id), uintptr(value))
}

// allowShared opts into bytes of dynamic shared memory: without it a block has 48
// KiB less what the kernel declares itself. It never lowers what an earlier launch
// opted into.
func (f *Function) allowShared(bytes uint32) error {
	const maxDynamicSharedSize = 8
	f.mu.Lock()
	defer f.mu.Unlock()
	if bytes <= f.shared {
		return nil
	}
	if err := f.setAttribute(maxDynamicSharedSize, int(bytes)); err != nil {
		return withDetail(err, fmt.Sprintf("kernel %s asks for %d bytes of dynamic shared memory; "+
			"this device allows a block %d", f.name, bytes, f.module.ctx.device.Limits.SharedPerBlockMax))
	}
	f.shared = bytes
	return nil
}

// portableCluster is the most blocks in a cluster on every device with clusters.
const portableCluster = 8

// allowCluster opts into clusters of so many blocks.
func (f *Function) allowCluster(blocks uint64) error {
	const nonPortableClusterSizeAllowed = 14
	f.mu.Lock()
	defer f.mu.Unlock()
	if blocks <= portableCluster || f.anySize {
		return nil
	}
	if err := f.setAttribute(nonPortableClusterSizeAllowed, 1); err != nil {
		return err
	}
	f.anySize = true
	return nil
}

// MaxActiveBlocks is how many blocks of so many threads and bytes of dynamic shared
// memory an SM holds at once; 0 if not even one fits.
func (f *Function) MaxActiveBlocks(threads int, shared uint32) (int, error) {
	if err := f.allowShared(shared); err != nil {
		return 0, err
	}
	var n int32
	err := f.module.ctx.call(symMaxActiveBlocks, uintptr(unsafe.Pointer(&n)), f.handle, uintptr(threads),
		uintptr(shared))
	return int(n), err
}
