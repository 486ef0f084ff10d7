//go:build linux && !nocuda

package fakecuda

import (
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"unsafe"

	"github.com/ebitengine/purego"
)

// What fakedevice.h defines.
const (
	maxParams     = 512
	paramBytes    = 4096
	numAttributes = 16
	textBytes     = 4096
)

// kernelInfo is struct kernel.
type kernelInfo struct {
	id         uint64
	attributes [numAttributes]int32
	params     uint32
	param      [maxParams]struct{ offset, size uint32 }
}

// workInfo is struct work.
type workInfo struct {
	kernel               uint64
	grid, block, cluster [3]uint32
	shared               uint32
	function             uintptr
	params               [paramBytes]byte
}

// executors are the executors of drivers, by the number that C uses for them. A process can
// have few callbacks, and they are never freed, so all drivers share them.
var executors struct {
	once      sync.Once
	callbacks [4]uintptr // load, find, launch, encode
	mu        sync.Mutex
	known     []*executing
}

// executing is a driver with its executor.
type executing struct {
	Executor
	driver *Driver
}

// Execute makes the driver run the code of modules instead of its built-in kernels, until
// Reset.
func (d *Driver) Execute(x Executor) {
	e := &executors
	e.once.Do(func() {
		e.callbacks = [4]uintptr{purego.NewCallback(loadModule), purego.NewCallback(findKernel),
			purego.NewCallback(launchKernel), purego.NewCallback(encodeMap)}
	})
	e.mu.Lock()
	e.known = append(e.known, &executing{x, d})
	user := uint64(len(e.known))
	e.mu.Unlock()
	d.execute(user, e.callbacks[0], e.callbacks[1], e.callbacks[2], e.callbacks[3])
}

func executorOf(user uint64) *executing {
	executors.mu.Lock()
	defer executors.mu.Unlock()
	return executors.known[user-1]
}

// guarded calls fn for C. It turns a panic into an error, and stores the error's text where C
// expects it.
func guarded(text *byte, fn func() error) (status int32) {
	err := errors.New("no result")
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("%v\n%s", v, debug.Stack())
		}
		if err != nil {
			to := unsafe.Slice(text, textBytes)
			to[copy(to[:textBytes-1], err.Error())] = 0
			status = 1
		}
	}()
	err = fn()
	return 0
}

func loadModule(user uint64, ptx *byte, module *uint64, text *byte) int32 {
	return guarded(text, func() (err error) {
		*module, err = executorOf(user).Load(goString(ptx))
		return err
	})
}

func findKernel(user, module uint64, name *byte, out *kernelInfo, text *byte) int32 {
	return guarded(text, func() error {
		k, err := executorOf(user).Find(module, goString(name))
		if err != nil {
			return err
		}
		if len(k.Params) > maxParams {
			return fmt.Errorf("a kernel with %d parameters", len(k.Params))
		}
		out.id, out.params = k.ID, uint32(len(k.Params))
		for i, v := range k.Attributes {
			out.attributes[i] = int32(v)
		}
		for i, p := range k.Params {
			if p.Offset+p.Size > paramBytes {
				return fmt.Errorf("a kernel with %d bytes of parameters and more", p.Offset+p.Size)
			}
			out.param[i].offset, out.param[i].size = uint32(p.Offset), uint32(p.Size)
		}
		return nil
	})
}

func launchKernel(user uint64, w *workInfo, text *byte) int32 {
	return guarded(text, func() error {
		x := executorOf(user)
		params := w.params
		return x.Launch(Work{Kernel: w.kernel, Grid: w.grid, Block: w.block, Cluster: w.cluster, Shared: int(w.shared),
			Params: params[:], Allocations: x.driver.Allocations()})
	})
}

func encodeMap(user uint64, m *TensorMap, out *[128]byte, text *byte) int32 {
	return guarded(text, func() (err error) {
		encoded, err := executorOf(user).Encode(*m)
		if err == nil {
			*out = encoded
		}
		return err
	})
}

// Allocations is the device memory that is in use.
func (d *Driver) Allocations() []Allocation {
	for n := int64(64); ; {
		list := make([]Allocation, n)
		if n = d.allocations(&list[0], n); n <= int64(len(list)) {
			return list[:n]
		}
	}
}

// goString gives the text at p up to the first NUL.
func goString(p *byte) string {
	n := 0
	for *(*byte)(unsafe.Add(unsafe.Pointer(p), n)) != 0 {
		n++
	}
	return string(unsafe.Slice(p, n))
}
