package cuda

import (
	"fmt"
	"runtime"
	"sync"
	"unsafe"
)

// Ranges names stretches of time, by NVTX, for a tool in the process, such as Nsight Systems or
// Nsight Compute when they have started it. The tool's library is called with a function that
// returns tables of functions, and puts its own functions into them. Without a tool there are
// no Ranges; nil Ranges do nothing.
type Ranges struct {
	slots     [nvtxModules][nvtxSlots]uintptr  // the functions that the tool has put in
	tables    [nvtxModules][nvtxSlots]*uintptr // where they are, which is what it asks for
	callbacks nvtxCallbacks
	version   nvtxVersion
}

// NVTX's tables: the modules of functions that there are, and those of the core module that
// are called here, by number. Version 3 of the interface; later ones add numbers at the end.
const (
	nvtxModules = 7  // none, core, CUDA, OpenCL, CUDA runtime, core 2, synchronisation
	nvtxSlots   = 17 // numbers from 1 to 15, the most that a module has, and an end

	nvtxCore      = 1
	nvtxRangePush = 9 // int (const char *)
	nvtxRangePop  = 11

	nvtxTableOfCallbacks = 1
	nvtxTableOfVersion   = 3
	nvtxInterface        = 3
)

// nvtxCallbacks and nvtxVersion are structs of C that a tool may ask for.
type nvtxCallbacks struct {
	size  uintptr
	table uintptr // int (module, NvtxFunctionTable *, unsigned *)
}

type nvtxVersion struct {
	size              uintptr
	version, reserved uint32
	set               uintptr // void (uint32_t)
}

// tools are the tools of this process, by the path of their library. One that has been called
// cannot be taken out again.
var tools sync.Map // of func() (*Ranges, error)

// RangesFor tells the tool with the given library that the process has ranges for it. The path
// is what tools put into the environment variable NVTX_INJECTION64_PATH.
func RangesFor(path string) (*Ranges, error) {
	open, _ := tools.LoadOrStore(path, sync.OnceValues(func() (*Ranges, error) { return openRanges(path) }))
	return open.(func() (*Ranges, error))()
}

func openRanges(path string) (*Ranges, error) {
	handle, err := dlOpen(path)
	if err != nil {
		return nil, fmt.Errorf("NVTX: %w", err)
	}
	begin := dlSymbol(handle, "InitializeInjectionNvtx2")
	if begin == 0 {
		return nil, fmt.Errorf("NVTX: %s lacks InitializeInjectionNvtx2", path)
	}
	r := &Ranges{}
	for m := range r.slots {
		for i := range r.slots[m][:nvtxSlots-1] {
			r.tables[m][i] = &r.slots[m][i]
		}
	}
	r.callbacks = nvtxCallbacks{unsafe.Sizeof(r.callbacks), dlCallback(r.table)}
	r.version = nvtxVersion{size: unsafe.Sizeof(r.version), version: nvtxInterface, set: dlCallback(func(uint32) uintptr { return 0 })}
	if dlCall(begin, []uintptr{dlCallback(r.export)}) == 0 || r.slots[nvtxCore][nvtxRangePush] == 0 || r.slots[nvtxCore][nvtxRangePop] == 0 {
		return nil, fmt.Errorf("NVTX: %s takes no ranges", path)
	}
	return r, nil
}

// export is what the tool calls for a table of the interface.
func (r *Ranges) export(table uint32) unsafe.Pointer {
	switch table {
	case nvtxTableOfCallbacks:
		return unsafe.Pointer(&r.callbacks)
	case nvtxTableOfVersion:
		return unsafe.Pointer(&r.version)
	}
	return nil
}

// table is what the tool calls for the functions of a module.
func (r *Ranges) table(module uint32, to **[nvtxSlots]*uintptr, size *uint32) uintptr {
	if module == 0 || module >= nvtxModules {
		return 0
	}
	if to != nil {
		*to = &r.tables[module]
	}
	if size != nil {
		*size = nvtxSlots - 1
	}
	return 1
}

// RangeName is a name as C has it.
func RangeName(name string) []byte { return append([]byte(name), 0) }

// Push begins a range on the calling thread, on which the goroutine must stay until Pop. The
// name is one of RangeName.
func (r *Ranges) Push(name []byte) {
	if r != nil {
		dlCall(r.slots[nvtxCore][nvtxRangePush], []uintptr{uintptr(unsafe.Pointer(&name[0]))})
		runtime.KeepAlive(name)
	}
}

// Pop ends the range that was begun last on the calling thread.
func (r *Ranges) Pop() {
	if r != nil {
		dlCall(r.slots[nvtxCore][nvtxRangePop], nil)
	}
}
