package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/diag"
	"github.com/fusec/fusec/runtime/cuda"
)

// The exit codes.
const (
	exitOK          = 0
	exitDiagnostics = 1 // a mistake in the program or its data; a check that failed
	exitUsage       = 2
	exitDevice      = 3 // no device, no driver, no NVRTC, or one of them failed
)

// usageError is a mistake on the command line that kong cannot see.
type usageError struct{ error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// errFailed ends a command that has printed what went wrong itself.
var errFailed = errors.New("failed")

// errWrongResult is errFailed where outputs are not what they should be.
var errWrongResult = fmt.Errorf("%w: the outputs are wrong", errFailed)

// deviceErrors are the failures that are the machine's, not the program's.
var deviceErrors = []error{cuda.ErrNoDriver, cuda.ErrNoDevice, cuda.ErrNoNVRTC, cuda.ErrUnsupportedArch,
	cuda.ErrOutOfMemory, cuda.ErrDeviceLost, cuda.ErrMissingSymbol, cuda.ErrNotSupported, cuda.ErrNoBinaryForGPU,
	cuda.ErrUnsupportedPTX, cuda.ErrNoCUPTI, cuda.ErrCountersDenied}

func exitCode(err error) int {
	if err == nil {
		return exitOK
	}
	var usage usageError
	if errors.As(err, &usage) {
		return exitUsage
	}
	var memory *ir.MemoryError
	if errors.As(err, &memory) && (memory.Err == nil || memory.NeverFits()) {
		return exitDiagnostics // the data is too large: the device is as good as before
	}
	for _, target := range deviceErrors {
		if errors.Is(err, target) {
			return exitDevice
		}
	}
	return exitDiagnostics
}

// isUnfit reports whether err says that a GPU cannot run the program: there is none, it has too little
// memory, or nothing compiles for it. A GPU that failed during a run is not unfit: computing the
// results elsewhere would hide the fault. Nor is one that cannot be counted on.
func isUnfit(err error) bool {
	if errors.Is(err, cuda.ErrNoCUPTI) || errors.Is(err, cuda.ErrCountersDenied) {
		return false
	}
	return errors.Is(err, cuda.ErrOutOfMemory) || exitCode(err) == exitDevice && !errors.Is(err, cuda.ErrDeviceLost)
}

// report prints an error, with carets where it points into a program, and returns
// the exit code.
func (a *app) report(err error) int {
	switch {
	case err == nil, errors.Is(err, errFailed):
	case errors.Is(err, context.Canceled):
		a.ui.errorf("interrupted")
	case diag.All(err) != nil:
		a.ui.diagnostics(diag.Render(err, a.files.text))
	default:
		a.ui.errorf("%s", err)
	}
	return exitCode(err)
}
