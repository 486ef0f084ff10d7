package ir

// TMAView is a tiled view of a kernel's argument for the tensor copy engine (TMA) of
// compute capability 9.0 and later, which moves TMA tiles of it between device and
// shared memory. A kernel takes it by value, as a tensor map.
//
// Reads outside the dims are zero and writes there are dropped. The engine wants
// the address of element Offset and all strides to be multiples of 16 bytes, and
// every dim to be at least 1: the variant that has the view makes sure of that.
type TMAView struct {
	Name    string // of the kernel's parameter
	Arg     *Arg
	Offset  *Expr   // elements from the start of the buffer to the view's first; nil for 0
	Dims    []*Expr // elements, innermost first: 1 to 5
	Strides []*Expr // elements, of dims 1 and up; dim 0 is contiguous
	Box     []int   // elements of each dim that one copy moves, or of which it moves one in so many as Steps says; at most 256
	Steps   []int   // elements from one that is moved to the next, along each dim; nil where these are neighbours
	Swizzle int     // span in bytes of the permutation of shared memory: 0, 32, 64 or 128
	TF32    bool    // f32 elements arrive rounded to tf32, to nearest
}

// TileBytes is the bytes that one copy reports to the barrier that waits for it, even if part
// of the TMA tile is outside the dims.
func (w *TMAView) TileBytes() int {
	bytes := w.Arg.Type.Size()
	for d, n := range w.Box {
		bytes *= n / w.Step(d)
	}
	return bytes
}

// Step is the elements from one that is moved to the next along a dim.
func (w *TMAView) Step(dim int) int {
	if w.Steps == nil {
		return 1
	}
	return w.Steps[dim]
}

// TensorMap is a TMAView as a program holds it: the arguments of cuTensorMapEncodeTiled except
// for the address.
type TensorMap struct {
	Of      LaunchArg // ArgParam or ArgTemp
	DType   DType
	Offset  Size // elements; empty for 0
	Dims    []Size
	Strides []Size // elements
	Box     []int
	Steps   []int // nil for neighbours
	Swizzle int   // bytes
	TF32    bool  // of DType F32: rounded to tf32 by the engine
}
