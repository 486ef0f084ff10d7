package runtime

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime/cache"
	"github.com/fusec/fusec/runtime/cuda"
)

// Options configure devices and compilers. The zero value is right: the user's
// cache, and NVRTC wherever it is found.
type Options struct {
	Cache      *cache.Cache     // nil: the user's, as the environment names it
	NVRTC      cuda.FindOptions // where to look for NVRTC
	Driver     string           // path of the CUDA driver library; "" for the machine's
	SaveSource string           // folder for the CUDA text of kernels that do not compile, or that record their lines; "" for none
	Threads    int              // of one run on the CPU engine; 0 for one a core
	// OpenDriver opens the CUDA driver instead of cuda.Open; nil for cuda.Open. If it is set,
	// Driver is ignored.
	OpenDriver func() (*cuda.Driver, error)
	// Kernels is the source of code for programs that are loaded on GPUs without a source of
	// their own; nil for a Compiler with these options.
	Kernels KernelSource
	// NoCompile makes a kernel that is not in the cache a *NotCompiledError instead of
	// compiling it. It is for machines that must not compile. FUSEC_NO_COMPILE=1 does the same.
	NoCompile bool
	// KeepMemory is how many bytes of freed device memory the process keeps for the
	// next run; 0 for an eighth of the device's, or what the last run took where it ran alone.
	KeepMemory uint64
	Trace      *Trace      // records what takes time; may be nil
	OnWarning  func(error) // is called with errors that were worked around; may be nil
	// OnLoad is called while sizes are prepared for their first run, with the number of kernels
	// that are on the device, compiled or from the cache, and the number needed; may be nil. It
	// may be called concurrently if several sizes or functions are prepared at the same time.
	OnLoad   func(done, needed int)
	Observer Observer // is informed of runs and kernels; may be nil
	// SampleKernels times one run in so many of each function kernel by kernel, for
	// Observer.Timed. That costs the run some microseconds for each kernel. 0 for none.
	SampleKernels uint64
}

func (o Options) cache() *cache.Cache {
	if o.Cache != nil {
		return o.Cache
	}
	defer o.Trace.Step("cache open", "")()
	return cache.Open(cache.Options{OnWarning: o.OnWarning})
}

func (o Options) warn(err error) {
	if o.OnWarning != nil {
		o.OnWarning(err)
	}
}

// Kind is a kind of device.
type Kind string

// The kinds of device.
const (
	CUDA Kind = "cuda"
	CPU  Kind = "cpu"
)

// Open opens a device: "cuda" (the first GPU), "cuda:1", "cpu" (the embedded
// engine), or "auto" (also ""), which is the first GPU where there is one and else
// the embedded engine: then Fallback says why. Close it.
//
// A GPU's context takes a tenth of a second. Open does not wait for it: it is made while the
// program reads inputs and Load reads or compiles kernels. If that fails, the first call that
// needs the context returns the error.
func Open(spec string, opts Options) (*Device, error) {
	opts.Cache = opts.cache()
	switch kind, ordinal, err := parseSpec(spec); {
	case err != nil:
		return nil, err
	case kind == CPU:
		return openCPU(opts), nil
	case kind == CUDA:
		return openCUDA(ordinal, opts)
	}
	d, err := openCUDA(0, opts)
	if err == nil {
		return d, nil
	}
	d = openCPU(opts)
	d.fallback = err
	return d, nil
}

// parseSpec reads a device's name; the kind is "" for auto.
func parseSpec(spec string) (kind Kind, ordinal int, err error) {
	name, number, numbered := strings.Cut(spec, ":")
	switch {
	case spec == "" || spec == "auto":
		return "", 0, nil
	case spec == "cpu":
		return CPU, 0, nil
	case name == "cuda" && !numbered:
		return CUDA, 0, nil
	case name == "cuda":
		if n, err := strconv.ParseUint(number, 10, 16); err == nil {
			return CUDA, int(n), nil
		}
	}
	return "", 0, fmt.Errorf("unknown device %q: expected auto, cpu, cuda, or cuda:N with N from 0", spec)
}

// openCUDA opens a GPU; its context is made in the background.
func openCUDA(ordinal int, opts Options) (*Device, error) {
	dev, err := findCUDA(ordinal, opts)
	if err != nil {
		return nil, err
	}
	return newDevice(CUDA, dev.Name, archOf(dev), figuresOf(dev), opts, newGPU(dev, opts)), nil
}

func findCUDA(ordinal int, opts Options) (*cuda.Device, error) {
	defer opts.Trace.Step("driver open", opts.Driver)()
	open := cuda.Open
	if opts.Driver != "" {
		open = func() (*cuda.Driver, error) { return cuda.OpenPath(opts.Driver) }
	}
	if opts.OpenDriver != nil {
		open = opts.OpenDriver
	}
	driver, err := open()
	if err != nil {
		return nil, err
	}
	return driver.Device(ordinal)
}

// archOf is what to compile for: the variant with all that the chip has, where
// there is one.
func archOf(dev *cuda.Device) string {
	if dev.Major >= 9 && dev.Minor == 0 {
		return dev.Arch() + "a"
	}
	return dev.Arch()
}

// figuresOf describes a GPU for planning: the measured figures where its name is
// known, else those of its architecture with the driver's own in their place.
func figuresOf(dev *cuda.Device) ir.Device {
	for _, known := range ir.Devices() {
		if namesSame(dev.Name, known.Name) {
			return known
		}
	}
	arch, l := archOf(dev), dev.Limits
	d, err := ir.DeviceNamed(arch)
	if err != nil {
		d = ir.Devices()[0]
	}
	d.Name, d.Arch = dev.Name, arch
	rescale := float64(l.SMs) / float64(d.SMs)
	if l.SMs > 0 {
		d.SMs, d.F32Rate, d.SpecialRate = l.SMs, d.F32Rate*rescale, d.SpecialRate*rescale
	}
	if l.SharedPerBlockMax > 0 {
		d.SharedBlock = l.SharedPerBlockMax
	}
	if l.L2 > 0 {
		d.L2 = int64(l.L2)
	}
	const reached = 0.9 // of the theoretical throughput, by a large copy
	if peak := l.PeakBandwidth(); peak > 0 {
		d.Bandwidth = reached * peak
	}
	return d
}

// namesSame reports whether the driver's name ("NVIDIA GeForce RTX 4090") holds
// the short one ("RTX4090") as whole words.
func namesSame(driver, short string) bool {
	words := strings.FieldsFunc(driver, func(r rune) bool { return r == ' ' || r == '-' })
	for i := range words {
		joined := ""
		for _, word := range words[i:] {
			if joined += word; joined == short {
				return true
			}
		}
	}
	return false
}
