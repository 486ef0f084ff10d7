package fakecuda

// An Executor runs the code of modules for a fake driver that has been told to Execute.
// Its methods may be called from any number of goroutines at once.
type Executor interface {
	// Load reads a module's PTX and gives it a number.
	Load(ptx string) (module uint64, err error)
	// Find finds a kernel of a module.
	Find(module uint64, name string) (Kernel, error)
	// Launch runs a kernel to its end. After an error the driver refuses all calls, with
	// the error's text.
	Launch(Work) error
	// Encode writes what kernels take as a tensor map (CUtensorMap).
	Encode(TensorMap) ([128]byte, error)
}

// A Kernel is what a driver must know of one to launch it.
type Kernel struct {
	ID         uint64
	Params     []Param
	Attributes map[int]int // CUfunction_attribute; 0 for those that are not in the map
}

// A Param is a parameter's place in the block of parameters, in bytes.
type Param struct{ Offset, Size int }

// A Work is a launch.
type Work struct {
	Kernel               uint64 // Kernel.ID
	Grid, Block, Cluster [3]uint32
	Shared               int    // bytes of dynamic shared memory
	Params               []byte // the block of parameters, and more
	Allocations          []Allocation
}

// An Allocation is a piece of device memory that is in use.
type Allocation struct{ Address, Bytes uint64 }

// A TensorMap is the arguments of cuTensorMapEncodeTiled: numbers as in the driver's header.
type TensorMap struct {
	Type, Rank, Address       uint64
	Dims, Strides, Box, Steps [5]uint64 // of Rank dimensions; Strides[0] is not set
	Interleave, Swizzle, Fill uint64
}
