//go:build gorgonia

package gocu

import (
	"reflect"
	"unsafe"

	"gorgonia.org/cu"
)

// Calls are the calls of the driver that gorgonia.org/cu has, by the names that the
// driver exports them under; it implements cuda.Backend. Everything else (memory
// pools, graphs, tensor maps, clusters, the logs of the linker) it does not have.
type Calls struct {
	table map[string]func(args []uintptr) error
}

// New returns the calls. There is a driver, because otherwise cu's init would have ended the
// program.
func New() *Calls {
	return &Calls{table: map[string]func(args []uintptr) error{
		"cuInit":                   func([]uintptr) error { return nil }, // cu has done it
		"cuDriverGetVersion":       func(a []uintptr) error { return store(a[0], int32(cu.Version()), nil) },
		"cuDeviceGetCount":         deviceCount,
		"cuDeviceGet":              deviceGet,
		"cuDeviceTotalMem_v2":      totalMemory,
		"cuDeviceGetAttribute":     deviceAttribute,
		"cuDevicePrimaryCtxRetain": retain,
		"cuCtxSetCurrent":          func(a []uintptr) error { return cu.SetCurrentContext(from[cu.CUContext](a[0])) },
		"cuCtxGetDevice":           currentDevice,
		"cuCtxSynchronize":         func([]uintptr) error { return cu.Synchronize() },
		"cuMemAlloc_v2":            alloc,
		"cuMemFree_v2":             func(a []uintptr) error { return cu.MemFree(cu.DevicePtr(a[0])) },
		"cuMemGetInfo_v2":          memInfo,
		"cuMemcpyHtoD_v2":          copyHtoD,
		"cuMemcpyDtoH_v2":          copyDtoH,
		"cuMemcpyDtoD_v2":          copyDtoD,
		"cuMemcpyHtoDAsync_v2":     copyHtoDAsync,
		"cuMemcpyDtoHAsync_v2":     copyDtoHAsync,
		"cuMemcpyDtoDAsync_v2":     copyDtoDAsync,
		"cuMemsetD8Async":          memset8,
		"cuMemsetD32Async":         memset32,
		"cuStreamCreate":           streamCreate,
		"cuStreamSynchronize":      func(a []uintptr) error { return from[cu.Stream](a[0]).Synchronize() },
		"cuStreamQuery":            func(a []uintptr) error { return from[cu.Stream](a[0]).Query() },
		"cuStreamWaitEvent":        streamWait,
		"cuEventCreate":            eventCreate,
		"cuEventRecord":            eventRecord,
		"cuEventSynchronize":       func(a []uintptr) error { return from[cu.Event](a[0]).Synchronize() },
		"cuEventQuery":             func(a []uintptr) error { return from[cu.Event](a[0]).Query() },
		"cuEventElapsedTime":       elapsed,
		"cuModuleUnload":           func(a []uintptr) error { return from[cu.Module](a[0]).Unload() },
		"cuFuncGetAttribute":       functionAttribute,
		"cuOccupancyMaxActiveBlocksPerMultiprocessor": activeBlocks,
	}}
}

// Call makes a call with the arguments that C takes; ok is false where cu does not
// have it.
func (c *Calls) Call(name string, args []uintptr) (status uint32, ok bool) {
	call := c.table[name]
	if call == nil {
		return 0, false
	}
	return code(call(args)), true
}

// Launch queues a kernel. Each argument must have eight bytes, which is all that cu
// copies; args are their addresses.
func (c *Calls) Launch(
	function uintptr, grid, block [3]uint32, shared uint32, stream uintptr, args []uintptr,
) (status uint32) {
	pointers := make([]unsafe.Pointer, len(args))
	for i, a := range args {
		pointers[i] = at(a)
	}
	return code(from[cu.Function](function).Launch(int(grid[0]), int(grid[1]), int(grid[2]),
		int(block[0]), int(block[1]), int(block[2]), int(shared), from[cu.Stream](stream), pointers))
}

// code is the CUresult in an error of cu, whose type is not exported.
func code(err error) uint32 {
	if err == nil {
		return 0
	}
	const unknown = 999
	if v := reflect.ValueOf(err); v.CanInt() {
		return uint32(v.Int())
	}
	return unknown
}

// from makes a handle of cu, a struct with the C handle as its only field.
func from[T cu.CUContext | cu.Stream | cu.Event | cu.Module | cu.Function](handle uintptr) T {
	return *(*T)(unsafe.Pointer(&handle))
}

// Handle is the C handle in one of cu's.
func Handle[T cu.CUContext | cu.Stream | cu.Event | cu.Module | cu.Function](x T) uintptr {
	return *(*uintptr)(unsafe.Pointer(&x))
}

// at is the memory at an address that the caller keeps alive.
func at(address uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&address)) }

// store writes a result to where C would.
func store[T any](address uintptr, v T, err error) error {
	if err == nil {
		*(*T)(at(address)) = v
	}
	return err
}

func deviceCount(a []uintptr) error {
	n, err := cu.NumDevices()
	return store(a[0], int32(n), err)
}

func deviceGet(a []uintptr) error {
	d, err := cu.GetDevice(int(int32(a[1])))
	return store(a[0], int32(d), err)
}

func totalMemory(a []uintptr) error {
	n, err := cu.Device(int32(a[1])).TotalMem()
	return store(a[0], uint64(n), err)
}

func deviceAttribute(a []uintptr) error {
	v, err := cu.Device(int32(a[2])).Attribute(cu.DeviceAttribute(a[1]))
	return store(a[0], int32(v), err)
}

func retain(a []uintptr) error {
	c, err := cu.Device(int32(a[1])).RetainPrimaryCtx()
	return store(a[0], Handle(c), err)
}

func currentDevice(a []uintptr) error {
	d, err := cu.CurrentDevice()
	return store(a[0], int32(d), err)
}

func alloc(a []uintptr) error {
	p, err := cu.MemAlloc(int64(a[1]))
	return store(a[0], uint64(p), err)
}

func memInfo(a []uintptr) error {
	free, total, err := cu.MemInfo()
	if err := store(a[0], uint64(free), err); err != nil {
		return err
	}
	return store(a[1], uint64(total), nil)
}

func copyHtoD(a []uintptr) error { return cu.MemcpyHtoD(cu.DevicePtr(a[0]), at(a[1]), int64(a[2])) }

func copyDtoH(a []uintptr) error { return cu.MemcpyDtoH(at(a[0]), cu.DevicePtr(a[1]), int64(a[2])) }

func copyDtoD(a []uintptr) error {
	return cu.MemcpyDtoD(cu.DevicePtr(a[0]), cu.DevicePtr(a[1]), int64(a[2]))
}

func copyHtoDAsync(a []uintptr) error {
	return cu.MemcpyHtoDAsync(cu.DevicePtr(a[0]), at(a[1]), int64(a[2]), from[cu.Stream](a[3]))
}

func copyDtoHAsync(a []uintptr) error {
	return cu.MemcpyDtoHAsync(at(a[0]), cu.DevicePtr(a[1]), int64(a[2]), from[cu.Stream](a[3]))
}

func copyDtoDAsync(a []uintptr) error {
	return cu.MemcpyDtoDAsync(cu.DevicePtr(a[0]), cu.DevicePtr(a[1]), int64(a[2]), from[cu.Stream](a[3]))
}

func memset8(a []uintptr) error {
	return cu.MemsetD8Async(cu.DevicePtr(a[0]), byte(a[1]), int64(a[2]), from[cu.Stream](a[3]))
}

func memset32(a []uintptr) error {
	return cu.MemsetD32Async(cu.DevicePtr(a[0]), uint(uint32(a[1])), int64(a[2]), from[cu.Stream](a[3]))
}

func streamCreate(a []uintptr) error {
	s, err := cu.MakeStream(cu.StreamFlags(a[1]))
	return store(a[0], Handle(s), err)
}

func streamWait(a []uintptr) error {
	return from[cu.Stream](a[0]).Wait(from[cu.Event](a[1]), uint(a[2]))
}

func eventCreate(a []uintptr) error {
	e, err := cu.MakeEvent(cu.EventFlags(a[1]))
	return store(a[0], Handle(e), err)
}

func eventRecord(a []uintptr) error { return from[cu.Event](a[0]).Record(from[cu.Stream](a[1])) }

func elapsed(a []uintptr) error {
	ms, err := from[cu.Event](a[1]).Elapsed(from[cu.Event](a[2]))
	return store(a[0], float32(ms), err)
}

func functionAttribute(a []uintptr) error {
	v, err := from[cu.Function](a[2]).Attribute(cu.FunctionAttribute(a[1]))
	return store(a[0], int32(v), err)
}

func activeBlocks(a []uintptr) error {
	n, err := from[cu.Function](a[1]).MaxActiveBlocksPerMultiProcessor(int(int32(a[2])), int64(a[3]))
	return store(a[0], int32(n), err)
}
