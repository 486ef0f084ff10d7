// Package cuda reaches the CUDA driver, NVRTC and CUPTI without linking any: they
// are opened with dlopen when first asked for, so that one binary builds with
// CGO_ENABLED=0 or 1, starts on a machine that has no GPU, and uses whichever
// NVRTC is there.
//
// The package is thin. It knows C signatures, struct layouts, which thread a
// context must be current on, and what the garbage collector may not touch. It
// must not know what a kernel is for: no graphs of operations, no dtypes, no
// cache, nothing else of this module.
//
// # Driver
//
//	Open -> Driver -> Device -> Context -> Stream, Event, Module, Graph, memory
//
// A Context may be used from any goroutine: each method makes it current on the
// thread it happens to run on. Context.Do does so once for a group of calls.
// What a Context hands out (streams, events, modules, memory) lives until it is
// closed or freed by name; nothing has a finaliser, because freeing at a time
// the collector chooses would serialise with work on the device.
//
// # NVRTC
//
//	Locate -> Location        which file, without opening it
//	FindNVRTC -> NVRTC        opened; NVRTC.Compile turns CUDA C into a cubin and PTX
//
// # CUPTI
//
//	FindCUPTI -> CUPTI        opened; CUPTI.Count reads the hardware's counters
//
// # Errors
//
// A call that the driver refuses gives an *Error, which matches the sentinels
// of this package (ErrOutOfMemory, ErrDeviceLost, ...) under errors.Is. An entry
// point that the installed driver lacks is an error when it is used, not before.
//
// The build tag nocuda leaves the loader out, for fully static programs: every
// attempt to open anything then answers ErrNoDriver, ErrNoNVRTC or ErrNoCUPTI.
package cuda
