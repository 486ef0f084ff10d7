package runtime

import (
	"fmt"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime/cuda"
)

// tensorMapTypes is how the tensor copy engine sees elements; types that it has no
// name for travel as integers of their size.
var tensorMapTypes = map[ir.DType]cuda.TensorMapType{
	ir.BF16: cuda.TensorMapBFloat16, ir.F16: cuda.TensorMapFloat16, ir.F32: cuda.TensorMapFloat32,
	ir.F64: cuda.TensorMapFloat64, ir.I64: cuda.TensorMapInt64, ir.I32: cuda.TensorMapInt32,
	ir.U32: cuda.TensorMapUint32, ir.I16: cuda.TensorMapUint16, ir.I8: cuda.TensorMapUint8,
	ir.U8: cuda.TensorMapUint8, ir.Bool: cuda.TensorMapUint8, ir.F8E4M3: cuda.TensorMapUint8,
	ir.F8E5M2: cuda.TensorMapUint8,
}

// tensorMapSwizzles is the swizzles by their span in bytes.
var tensorMapSwizzles = map[int]cuda.TensorMapSwizzle{
	0: cuda.SwizzleNone, 32: cuda.Swizzle32B, 64: cuda.Swizzle64B, 128: cuda.Swizzle128B,
}

// gpuMap is a tensor map at known sizes, which lacks the tensor's address.
type gpuMap struct {
	of     ir.LaunchArg
	offset cuda.DevicePtr // bytes from the tensor's start
	config cuda.TensorMapConfig
}

// bindMap evaluates a tensor map for the sizes.
func bindMap(m *ir.TensorMap, symbols []int64) (gpuMap, error) {
	size := int64(m.DType.Size())
	out := gpuMap{of: m.Of, config: cuda.TensorMapConfig{Type: tensorMapTypes[m.DType],
		Swizzle: tensorMapSwizzles[m.Swizzle], L2: cuda.L2Promotion256B}}
	if m.TF32 {
		out.config.Type = cuda.TensorMapTFloat32
	}
	fits := true
	eval := func(s ir.Size, scale int64) uint64 {
		v, ok := s.Eval(symbols)
		fits = fits && ok && v >= 0
		return uint64(v * scale)
	}
	out.offset = cuda.DevicePtr(eval(m.Offset, size)) // 0 where there is none
	for _, d := range m.Dims {
		out.config.Dims = append(out.config.Dims, eval(d, 1))
	}
	for _, s := range m.Strides {
		out.config.Strides = append(out.config.Strides, eval(s, size))
	}
	for _, n := range m.Box {
		out.config.Box = append(out.config.Box, uint32(n))
	}
	for _, n := range m.Steps {
		out.config.Steps = append(out.config.Steps, uint32(n))
	}
	if !fits {
		return out, fmt.Errorf("the sizes of a tensor do not fit in 64 bits")
	}
	return out, nil
}

// bindMaps evaluates the tensor maps that the chosen variants take; maps of
// variants for other sizes may not exist at these.
func (x *gpuProgram) bindMaps(w *gpuWork, variants []*ir.LaunchVariant, symbols []int64) error {
	w.maps = make([]gpuMap, len(x.program.TensorMaps))
	for i, v := range variants {
		if v == nil {
			continue
		}
		for _, arg := range v.Args {
			if arg.Kind != ir.ArgTensorMap {
				continue
			}
			var err error
			if w.maps[arg.Index], err = bindMap(&x.program.TensorMaps[arg.Index], symbols); err != nil {
				return fmt.Errorf("kernel %s: %w", w.reports[i].Name, err)
			}
		}
	}
	return nil
}

// encodedMap is a tensor map that a frame holds, and the address it is for.
type encodedMap struct {
	address cuda.DevicePtr
	encoded *cuda.TensorMap
}

// tensorMap returns a map for the tensor's present address. It is encoded anew
// only when that has changed since the frame's last run.
func (f *gpuFrame) tensorMap(i int) (*cuda.TensorMap, error) {
	m, held := &f.work.maps[i], &f.maps[i]
	item, _ := f.work.tensor(m.of)
	address := f.next[item] + m.offset
	if held.encoded != nil && held.address == address {
		return held.encoded, nil
	}
	config := m.config
	config.Address = address
	encoded, err := f.gpu.context.Driver().EncodeTiled(config)
	if err != nil {
		return nil, err
	}
	*held = encodedMap{address, encoded}
	return encoded, nil
}

// bytesOfArg is the size of a launch argument.
func bytesOfArg(arg ir.LaunchArg) int {
	if arg.Kind == ir.ArgTensorMap {
		return len(cuda.TensorMap{})
	}
	return 8
}
