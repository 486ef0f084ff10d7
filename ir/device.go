package ir

import "fmt"

// Device is what planning needs to know about a GPU: limits and rates, and no handle, so that
// every choice can be tested without a GPU.
type Device struct {
	Name         string
	Arch         string // "sm_90a"
	SMs          int
	SharedBlock  int     // bytes of shared memory one block may have
	L2           int64   // bytes
	Bandwidth    float64 // bytes a second of a large copy, reads and writes counted
	F32Rate      float64 // f32 operations a second, an FMA counted as two
	TensorRate   float64 // operations a second of a large 16-bit product
	SpecialRate  float64 // special function results a second
	Launch       float64 // seconds one more kernel costs
	HalfTransfer float64 // bytes at which a copy reaches half of Bandwidth
}

// Figures of the device that constants of a program are chosen for: chunks of long sums are the same
// on every device, so that results are. They are those of an H200.
const (
	ReferenceSMs    = 132
	ReferenceShared = 227 << 10 // bytes of a multiprocessor's shared memory for its blocks
)

// Devices lists the GPUs whose figures are known. Bandwidth of the H200 is
// measured (copy of 2 GiB), the others are datasheet figures scaled by 0.9.
var devices = []Device{
	{"H200", "sm_90a", ReferenceSMs, ReferenceShared, 60 << 20, 4.28e12, 66.9e12, 7.8e14, 4.1e12, 2.6e-6, 8 << 20},
	{"H100", "sm_90a", ReferenceSMs, ReferenceShared, 50 << 20, 3.0e12, 66.9e12, 7.8e14, 4.1e12, 2.6e-6, 6 << 20},
	{"A100", "sm_80", 108, 163 << 10, 40 << 20, 1.8e12, 19.5e12, 2.2e14, 2.4e12, 3e-6, 4 << 20},
	{"RTX4090", "sm_89", 128, 99 << 10, 72 << 20, 0.92e12, 82.6e12, 1.5e14, 5.1e12, 3e-6, 2 << 20},
	{"RTX3090", "sm_86", 82, 99 << 10, 6 << 20, 0.85e12, 35.6e12, 6e13, 2.2e12, 3e-6, 2 << 20},
	{"T4", "sm_75", 40, 64 << 10, 4 << 20, 0.28e12, 8.1e12, 8.1e12, 1.0e12, 4e-6, 1 << 20},
}

// Devices returns the GPUs whose figures are known, newest first.
func Devices() []Device { return append([]Device(nil), devices...) }

// DeviceNamed returns the figures of a GPU by name or by arch.
func DeviceNamed(name string) (Device, error) {
	for _, d := range devices {
		if d.Name == name || d.Arch == name {
			return d, nil
		}
	}
	return Device{}, fmt.Errorf("no figures for a device %q", name)
}

// Time estimates the seconds a kernel takes that moves the given bytes and does
// the given f32 operations and special function evaluations.
func (d Device) Time(bytes, flops, special float64) float64 {
	move := (bytes + d.HalfTransfer) / d.Bandwidth
	if bytes == 0 {
		move = 0
	}
	return d.Launch + max(move, flops/d.F32Rate, special/d.SpecialRate)
}

// Clusters reports whether the device has thread-block clusters with distributed
// shared memory (compute capability 9.0 and later).
func (d Device) Clusters() bool { return d.capability() >= 90 }

// TensorCores reports whether the device multiplies bf16 tiles (8.0 and later).
func (d Device) TensorCores() bool { return d.capability() >= 80 }

// AsyncCopies reports whether threads copy to shared memory without a register (8.0 and
// later).
func (d Device) AsyncCopies() bool { return d.capability() >= 80 }

// warpgroupShared is the shared memory that a block needs for two stages of the largest wgmma tiles and for results
// that wait to be stored. A device that allows blocks less cannot use such tiles.
const warpgroupShared = 132 << 10

// Warpgroups reports whether the device multiplies tiles by wgmma, which 9.0 alone
// has: later chips have other instructions.
func (d Device) Warpgroups() bool { return d.Arch == "sm_90a" && d.SharedBlock >= warpgroupShared }

// Blocks is how many blocks a multiprocessor runs at once (CUDA C++ Programming Guide,
// technical specifications per compute capability).
func (d Device) Blocks() int {
	switch d.capability() {
	case 75, 86, 87:
		return 16
	case 89, 120:
		return 24
	}
	return 32
}

// capability is ten times the compute capability; 0 for an arch of another form.
func (d Device) capability() int {
	var c int
	if _, err := fmt.Sscanf(d.Arch, "sm_%d", &c); err != nil {
		return 0
	}
	return c
}
