package cuda

import (
	"errors"
	"fmt"
)

// What can go wrong, for errors.Is. An *Error matches by its code.
var (
	// ErrNoDriver: the driver library is not on this machine, or cannot be used.
	ErrNoDriver = errors.New("no CUDA driver")
	// ErrNoDevice: the driver is there, the device asked for is not, or is not to be had.
	ErrNoDevice = errors.New("no CUDA device")
	// ErrNoNVRTC: no usable NVRTC was found.
	ErrNoNVRTC = errors.New("no NVRTC")
	// ErrUnsupportedArch: NVRTC is too old, or too new, for the architecture.
	ErrUnsupportedArch = errors.New("architecture unknown to NVRTC")
	// ErrMissingSymbol: the driver or NVRTC is too old for what was asked.
	ErrMissingSymbol = errors.New("missing entry point")
	// ErrOutOfMemory: the device, or pinned host memory, is exhausted.
	ErrOutOfMemory = errors.New("out of device memory")
	// ErrInvalidValue: an argument is outside what the driver accepts.
	ErrInvalidValue = errors.New("invalid value")
	// ErrInvalidImage: what was loaded is neither a cubin nor PTX, or is damaged.
	ErrInvalidImage = errors.New("invalid kernel image")
	// ErrNoBinaryForGPU: the image was compiled for another architecture.
	ErrNoBinaryForGPU = errors.New("no binary for this GPU")
	// ErrUnsupportedPTX: the PTX is newer than the driver's own compiler.
	ErrUnsupportedPTX = errors.New("PTX newer than the driver")
	// ErrNotFound: the module has no function or variable of that name.
	ErrNotFound = errors.New("not found")
	// ErrNotSupported: this device or driver cannot do what was asked.
	ErrNotSupported = errors.New("not supported")
	// ErrLaunchResources: the block asks for more registers or shared memory than there is.
	ErrLaunchResources = errors.New("launch out of resources")
	// ErrCapture: the work cannot be captured into a graph.
	ErrCapture = errors.New("stream capture failed")
	// ErrGraphUpdate: the graph differs too much from the instantiated one.
	ErrGraphUpdate = errors.New("graph cannot be updated in place")
	// ErrDeviceLost: the context is beyond repair (a kernel faulted, an uncorrectable
	// memory error, the device went away); it and all made from it must be closed.
	ErrDeviceLost = errors.New("device lost")
)

// A Code is a status of the driver (CUresult).
type Code uint32

// Codes that the package itself acts on.
const (
	codeSuccess      Code = 0
	codeInvalidValue Code = 1
	codeOutOfMemory  Code = 2
	codeNotReady     Code = 600
)

// sentinelOf says which sentinel a code belongs to.
var sentinelOf = map[Code]error{
	1:   ErrInvalidValue,
	2:   ErrOutOfMemory,
	34:  ErrNoDriver, // the toolkit's link-time stub, not a driver
	46:  ErrNoDevice, // another process has it for itself
	100: ErrNoDevice,
	101: ErrNoDevice,
	200: ErrInvalidImage,
	201: ErrDeviceLost, // the context is not there any more
	209: ErrNoBinaryForGPU,
	214: ErrDeviceLost, // uncorrectable memory error
	218: ErrInvalidImage,
	220: ErrDeviceLost, // uncorrectable NVLink error
	222: ErrUnsupportedPTX,
	500: ErrNotFound,
	700: ErrDeviceLost, // illegal address
	701: ErrLaunchResources,
	702: ErrDeviceLost, // launch timeout
	709: ErrDeviceLost, // context destroyed
	710: ErrDeviceLost, // device-side assert
	714: ErrDeviceLost, // hardware stack error
	715: ErrDeviceLost, // illegal instruction
	716: ErrDeviceLost, // misaligned address
	717: ErrDeviceLost, // invalid address space
	718: ErrDeviceLost, // invalid program counter
	719: ErrDeviceLost, // launch failed
	801: ErrNotSupported,
	803: ErrNoDriver, // library and kernel module are of different versions
	900: ErrCapture, 901: ErrCapture, 902: ErrCapture, 903: ErrCapture, 904: ErrCapture,
	905: ErrCapture, 906: ErrCapture, 907: ErrCapture, 908: ErrCapture,
	910: ErrGraphUpdate,
	911: ErrDeviceLost, // external device failed
}

// An Error is a call that the driver refused. A kernel that faults is reported by
// whichever call on its context comes next, so Call need not be the one to blame.
type Error struct {
	Call    string // the C function, cuMemAlloc_v2
	Code    Code
	Name    string // CUDA_ERROR_OUT_OF_MEMORY; "" where the driver does not know the code
	Message string // the driver's own words
	Detail  string // what else is known: the log of the driver's compiler, say; may be ""
}

// Error says which call failed, how, and the detail on lines of its own.
func (e *Error) Error() string {
	text := fmt.Sprintf("%s: %s (%d)", e.Call, e.Name, e.Code)
	if e.Name == "" {
		text = fmt.Sprintf("%s: error %d", e.Call, e.Code)
	}
	if e.Message != "" {
		text += ": " + e.Message
	}
	if e.Detail != "" {
		text += "\n" + e.Detail
	}
	return text
}

// Is reports whether target is the sentinel of e's code.
func (e *Error) Is(target error) bool {
	sentinel, ok := sentinelOf[e.Code]
	return ok && sentinel == target
}

// withDetail adds to an *Error what else is known; other errors pass unchanged.
func withDetail(err error, detail string) error {
	var failed *Error
	if detail == "" || !errors.As(err, &failed) {
		return err
	}
	failed.Detail = detail
	return err
}

// isCode reports whether err is the driver's refusal with that code.
func isCode(err error, code Code) bool {
	var failed *Error
	return errors.As(err, &failed) && failed.Code == code
}
