package simtest

import "fmt"

// A chip is what a driver reports about its device.
type chip struct {
	name       string
	attributes map[int32]int32 // CU_DEVICE_ATTRIBUTE_...
}

// common is what the chips here have in common.
var common = map[int32]int32{
	1: 1024, 2: 1024, 3: 1024, 4: 64, 5: 1<<31 - 1, 6: 65535, 7: 65535, // threads of a block, blocks of a grid
	8: 48 << 10, 9: 64 << 10, 10: 32, 12: 65536, 82: 65536, 39: 2048, 106: 32, 111: 1 << 10,
	18: 0, 32: 1, 40: 3, 95: 1, 115: 1,
}

// chips are the devices that can be simulated, by what their kernels are compiled for.
var chips = map[string]chip{
	"sm_90a": {"NVIDIA H200 (simulated)", map[int32]int32{75: 9, 76: 0, 16: 132, 97: 227 << 10, 81: 228 << 10,
		38: 60 << 20, 108: 32 << 20, 13: 1980000, 36: 3201000, 37: 6144, 120: 1, 127: 1}},
	"sm_80": {"NVIDIA A100 (simulated)", map[int32]int32{75: 8, 76: 0, 16: 108, 97: 163 << 10, 81: 164 << 10,
		38: 40 << 20, 108: 30 << 20, 13: 1410000, 36: 1593000, 37: 5120, 120: 0, 127: 0}},
}

// The attributes that Config sets.
const (
	multiprocessors   = 16
	blocksProcessor   = 106
	majorCapability   = 75
	minorCapability   = 76
	staticShared      = 1 // CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES
	maxFunctionBlock  = 0 // CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK
	functionRegisters = 4
	binaryVersion     = 6
)

// describe tells the fake driver which device it has.
func (s *Simulator) describe(c Config) error {
	chip, ok := chips[c.Arch]
	if !ok {
		return fmt.Errorf("there is no simulated device for %s: expected sm_80 or sm_90a", c.Arch)
	}
	s.Name(chip.name)
	for _, list := range []map[int32]int32{common, chip.attributes} {
		for id, v := range list {
			s.Attribute(id, v)
		}
	}
	s.Attribute(multiprocessors, int32(c.Multiprocessors))
	if c.BlocksPerMultiprocessor > 0 {
		s.Attribute(blocksProcessor, int32(c.BlocksPerMultiprocessor))
	}
	return nil
}
