package cuda

import (
	"fmt"
	"unsafe"
)

// A Device describes one GPU. It is plain data and never changes.
type Device struct {
	Ordinal      int      // place in the driver's list, which CUDA_VISIBLE_DEVICES alters
	Name         string   // NVIDIA H200
	UUID         [16]byte // the same in every process, unlike Ordinal
	Major, Minor int      // compute capability, 9.0 as 9, 0
	TotalMemory  uint64   // bytes
	Limits       Limits

	driver *Driver
	handle int32
}

// Limits are the figures of a device that decide how kernels are shaped. A figure
// that the driver is too old to tell is 0.
type Limits struct {
	SMs                int // streaming multiprocessors
	WarpSize           int // threads
	MaxThreadsPerBlock int
	MaxThreadsPerSM    int
	MaxBlocksPerSM     int
	RegistersPerBlock  int // of 32 bits
	RegistersPerSM     int // of 32 bits
	SharedPerBlock     int // bytes, without opting in
	SharedPerBlockMax  int // bytes, which Function.Launch opts into
	SharedPerSM        int // bytes
	SharedReserved     int // bytes of each block's share that the system keeps
	ConstantMemory     int // bytes
	L2                 int // bytes
	L2PersistingMax    int // bytes
	ClockKHz           int
	MemoryClockKHz     int
	MemoryBusBits      int
	MaxGrid            [3]int // blocks
	MaxBlock           [3]int // threads
	AsyncEngines       int    // copies that run beside kernels
	Integrated         bool   // shares the host's memory
	ECC                bool
	Cooperative        bool // a grid may synchronise
	Clusters           bool // thread-block clusters
	MemoryPools        bool // Stream.Alloc works
	TensorMaps         bool // Driver.EncodeTiled works
}

// PeakBandwidth is the memory's theoretical throughput in bytes a second, at two
// transfers a clock; 0 where the clock or bus width is unknown.
func (l *Limits) PeakBandwidth() float64 {
	return 2 * float64(l.MemoryClockKHz) * 1e3 * float64(l.MemoryBusBits) / 8
}

// Arch is the plain architecture name, sm_90. Which architecture-specific variant
// (sm_90a) to compile for is the caller's decision.
func (dev *Device) Arch() string { return fmt.Sprintf("sm_%d%d", dev.Major, dev.Minor) }

// Driver is what the device was described by.
func (dev *Device) Driver() *Driver { return dev.driver }

// DeviceCount is how many devices the process may see.
func (d *Driver) DeviceCount() (int, error) {
	var n int32
	err := d.call(symDeviceGetCount, uintptr(unsafe.Pointer(&n)))
	return int(n), err
}

// Device describes the device at an ordinal, counted from 0. No context is made.
func (d *Driver) Device(ordinal int) (*Device, error) {
	count, err := d.DeviceCount()
	if err != nil {
		return nil, err
	}
	if ordinal < 0 || ordinal >= count {
		return nil, fmt.Errorf("%w: device %d was asked for, the driver sees %d: choose one from 0 "+
			"and look at CUDA_VISIBLE_DEVICES", ErrNoDevice, ordinal, count)
	}
	var handle int32
	if err := d.call(symDeviceGet, uintptr(unsafe.Pointer(&handle)), uintptr(ordinal)); err != nil {
		return nil, err
	}
	return d.describeDevice(ordinal, handle)
}

func (d *Driver) describeDevice(ordinal int, handle int32) (*Device, error) {
	dev := &Device{Ordinal: ordinal, driver: d, handle: handle}
	name := make([]byte, 256)
	if err := d.call(symDeviceGetName, uintptr(unsafe.Pointer(&name[0])), uintptr(len(name)),
		uintptr(handle)); err != nil {
		return nil, err
	}
	dev.Name = goString(name)
	if err := d.call(symDeviceGetUUID, uintptr(unsafe.Pointer(&dev.UUID)), uintptr(handle)); err != nil {
		return nil, err
	}
	err := d.call(symDeviceTotalMem, uintptr(unsafe.Pointer(&dev.TotalMemory)), uintptr(handle))
	if err != nil {
		return nil, err
	}
	if err := dev.readAttributes(); err != nil {
		return nil, err
	}
	return dev, nil
}

// readAttributes fills in the compute capability and the limits.
func (dev *Device) readAttributes() error {
	for _, row := range attributeRows {
		value, err := dev.attribute(row.id)
		if err != nil {
			return err
		}
		row.set(dev, value)
	}
	return nil
}

// attribute reads one number. If the driver is too old to know the attribute, the number is 0,
// and that is not an error.
func (dev *Device) attribute(id int) (int, error) {
	var value int32
	err := dev.driver.call(symDeviceGetAttribute, uintptr(unsafe.Pointer(&value)), uintptr(id),
		uintptr(dev.handle))
	if isCode(err, codeInvalidValue) {
		return 0, nil
	}
	return int(value), err
}

// attributeRows: the driver's number of an attribute (CU_DEVICE_ATTRIBUTE_...) and
// where its value goes.
var attributeRows = []struct {
	id  int
	set func(*Device, int)
}{
	{75, func(d *Device, v int) { d.Major = v }},
	{76, func(d *Device, v int) { d.Minor = v }},
	{16, func(d *Device, v int) { d.Limits.SMs = v }},
	{10, func(d *Device, v int) { d.Limits.WarpSize = v }},
	{1, func(d *Device, v int) { d.Limits.MaxThreadsPerBlock = v }},
	{39, func(d *Device, v int) { d.Limits.MaxThreadsPerSM = v }},
	{106, func(d *Device, v int) { d.Limits.MaxBlocksPerSM = v }},
	{12, func(d *Device, v int) { d.Limits.RegistersPerBlock = v }},
	{82, func(d *Device, v int) { d.Limits.RegistersPerSM = v }},
	{8, func(d *Device, v int) { d.Limits.SharedPerBlock = v }},
	{97, func(d *Device, v int) { d.Limits.SharedPerBlockMax = v }},
	{81, func(d *Device, v int) { d.Limits.SharedPerSM = v }},
	{111, func(d *Device, v int) { d.Limits.SharedReserved = v }},
	{9, func(d *Device, v int) { d.Limits.ConstantMemory = v }},
	{38, func(d *Device, v int) { d.Limits.L2 = v }},
	{108, func(d *Device, v int) { d.Limits.L2PersistingMax = v }},
	{13, func(d *Device, v int) { d.Limits.ClockKHz = v }},
	{36, func(d *Device, v int) { d.Limits.MemoryClockKHz = v }},
	{37, func(d *Device, v int) { d.Limits.MemoryBusBits = v }},
	{5, func(d *Device, v int) { d.Limits.MaxGrid[0] = v }},
	{6, func(d *Device, v int) { d.Limits.MaxGrid[1] = v }},
	{7, func(d *Device, v int) { d.Limits.MaxGrid[2] = v }},
	{2, func(d *Device, v int) { d.Limits.MaxBlock[0] = v }},
	{3, func(d *Device, v int) { d.Limits.MaxBlock[1] = v }},
	{4, func(d *Device, v int) { d.Limits.MaxBlock[2] = v }},
	{40, func(d *Device, v int) { d.Limits.AsyncEngines = v }},
	{18, func(d *Device, v int) { d.Limits.Integrated = v != 0 }},
	{32, func(d *Device, v int) { d.Limits.ECC = v != 0 }},
	{95, func(d *Device, v int) { d.Limits.Cooperative = v != 0 }},
	{120, func(d *Device, v int) { d.Limits.Clusters = v != 0 }},
	{115, func(d *Device, v int) { d.Limits.MemoryPools = v != 0 }},
	{127, func(d *Device, v int) { d.Limits.TensorMaps = v != 0 }},
}
