package cuda

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unsafe"
)

// What can go wrong with counters, for errors.Is.
var (
	// ErrNoCUPTI: no usable CUPTI was found.
	ErrNoCUPTI = errors.New("no CUPTI")
	// ErrCountersDenied: this user may not read the device's counters.
	ErrCountersDenied = errors.New("reading the hardware's counters is not permitted")
)

// A CUPTI is the opened library that reads the hardware's counters. It stays open as long as the
// process lives. Safe for concurrent use.
type CUPTI struct {
	lib  *library
	path string
}

// CUPTI's functions that are called here.
const (
	symResultString = iota
	symProfilerInitialize
	symChipName
	symAvailability
	symHostInitialize
	symHostDeinitialize
	symAddMetrics
	symConfigSize
	symConfig
	symEvaluate
	symRangeEnable
	symRangeDisable
	symRangeStart
	symRangeStop
	symRangePush
	symRangePop
	symRangeDecode
	symRangeDataSize
	symRangeDataInitialize
	symRangeSetConfig
	symRangeInfo
	cuptiSymCount
)

var cuptiSymbols = [cuptiSymCount]string{
	symResultString:        "cuptiGetResultString",
	symProfilerInitialize:  "cuptiProfilerInitialize",
	symChipName:            "cuptiDeviceGetChipName",
	symAvailability:        "cuptiProfilerGetCounterAvailability",
	symHostInitialize:      "cuptiProfilerHostInitialize",
	symHostDeinitialize:    "cuptiProfilerHostDeinitialize",
	symAddMetrics:          "cuptiProfilerHostConfigAddMetrics",
	symConfigSize:          "cuptiProfilerHostGetConfigImageSize",
	symConfig:              "cuptiProfilerHostGetConfigImage",
	symEvaluate:            "cuptiProfilerHostEvaluateToGpuValues",
	symRangeEnable:         "cuptiRangeProfilerEnable",
	symRangeDisable:        "cuptiRangeProfilerDisable",
	symRangeStart:          "cuptiRangeProfilerStart",
	symRangeStop:           "cuptiRangeProfilerStop",
	symRangePush:           "cuptiRangeProfilerPushRange",
	symRangePop:            "cuptiRangeProfilerPopRange",
	symRangeDecode:         "cuptiRangeProfilerDecodeData",
	symRangeDataSize:       "cuptiRangeProfilerGetCounterDataSize",
	symRangeDataInitialize: "cuptiRangeProfilerCounterDataImageInitialize",
	symRangeSetConfig:      "cuptiRangeProfilerSetConfig",
	symRangeInfo:           "cuptiRangeProfilerCounterDataGetRangeInfo",
}

// FindCUPTI opens the first CUPTI of CUDA 12.6 or newer. It looks in the folder that FUSEC_CUPTI
// names (where set, nowhere else), where the loader looks, in CUDA_HOME and CUDA_PATH, the usual
// toolkit folders and Python's wheels; first for the newest major version that MaxMajor allows.
func FindCUPTI(options FindOptions) (*CUPTI, error) {
	if noLoader != "" {
		return nil, fmt.Errorf("%w: %s", ErrNoCUPTI, noLoader)
	}
	return newFinder().cupti(options)
}

func (f *finder) cupti(options FindOptions) (*CUPTI, error) {
	var names, refused []string
	newest := cuptiMajors[1]
	if options.MaxMajor > 0 {
		newest = min(newest, options.MaxMajor)
	}
	for major := newest; major >= cuptiMajors[0]; major-- {
		names = append(names, fmt.Sprintf("libcupti.so.%d", major))
	}
	places := f.cuptiPlaces(options.Path)
	for _, name := range names {
		for _, path := range cuptiPaths(places, name) {
			lib, err := openCUPTI(path)
			if err == nil {
				return lib, nil
			}
			// A name that the loader does not find is not reported; a file that does not open is.
			if !strings.HasPrefix(err.Error(), name+": cannot open") {
				refused = append(refused, err.Error())
			}
		}
	}
	return nil, noCUPTI(names, places, refused)
}

// cuptiMajors are the first major version of CUDA whose CUPTI has the functions, and the newest that is known.
var cuptiMajors = [2]int{12, 13}

// cuptiPaths are the paths to try for a library's name.
func cuptiPaths(places []string, name string) (paths []string) {
	for _, place := range places {
		switch info, err := os.Stat(place); {
		case place == "":
			paths = append(paths, name) // the loader looks for it
		case err == nil && info.IsDir():
			if path := filepath.Join(place, name); isFile(path) {
				paths = append(paths, path)
			}
		case err == nil:
			paths = append(paths, place)
		}
	}
	return paths
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.IsDir()
}

// noCUPTI says what was looked for and where, and what was found and is of no use.
func noCUPTI(names, places, refused []string) error {
	var folders []string
	for _, place := range places {
		if place != "" {
			folders = append(folders, place)
		}
	}
	text := fmt.Sprintf("%s, of CUDA 12.6 or newer, is neither where the loader looks nor in any of %d places: install the "+
		"CUDA toolkit's cuda-cupti or the Python wheel nvidia-cuda-cupti, or set FUSEC_CUPTI to the folder that holds it",
		strings.Join(names, " or "), len(folders))
	if len(folders) > 0 && len(places) == len(folders) {
		text = fmt.Sprintf("%s, of CUDA 12.6 or newer, is not in %s", strings.Join(names, " or "), strings.Join(folders, ", "))
	}
	if len(refused) > 0 {
		text += "; found, and of no use: " + strings.Join(refused, "; ")
	}
	return fmt.Errorf("%w: %s", ErrNoCUPTI, text)
}

func openCUPTI(path string) (*CUPTI, error) {
	lib, err := openLibrary(path, cuptiSymbols[:])
	if err != nil {
		return nil, err
	}
	for symbol, name := range cuptiSymbols {
		if !lib.has(symbol) && symbol != symAvailability {
			return nil, fmt.Errorf("%s lacks %s: it is older than CUDA 12.6", path, name)
		}
	}
	return &CUPTI{lib: lib, path: path}, nil
}

// Path is the name the library was opened by.
func (l *CUPTI) Path() string { return l.path }

// A CUPTIError is a call that CUPTI refused.
type CUPTIError struct {
	Call    string // cuptiRangeProfilerEnable
	Code    uint32 // CUptiResult
	Message string // CUPTI's own words
}

// Codes of CUptiResult that mean that the user may not count.
const (
	cuptiDenied        = 35 // CUPTI_ERROR_INSUFFICIENT_PRIVILEGES
	cuptiDeniedVirtual = 40 // CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES
)

// Error says which call failed, how, and what to do where that is known.
func (e *CUPTIError) Error() string {
	text := fmt.Sprintf("%s: %s (%d)", e.Call, e.Message, e.Code)
	if e.Is(ErrCountersDenied) {
		return fmt.Sprintf("%v: run as root, or have the driver loaded with NVreg_RestrictProfilingToAdminUsers=0: %s",
			ErrCountersDenied, text)
	}
	return text
}

// Is reports whether target is the sentinel of e's code.
func (e *CUPTIError) Is(target error) bool {
	return target == ErrCountersDenied && (e.Code == cuptiDenied || e.Code == cuptiDeniedVirtual)
}

// call calls a function and turns its status into an error. Pointers may be converted to uintptr in
// the argument list and nowhere earlier: see library.call.
//
//go:uintptrescapes
func (l *CUPTI) call(symbol int, params uintptr) error {
	code := l.lib.invoke(symbol, params)
	if code == 0 {
		return nil
	}
	var text *byte
	l.lib.call(symResultString, uintptr(code), uintptr(unsafe.Pointer(&text)))
	return &CUPTIError{Call: cuptiSymbols[symbol], Code: code, Message: cString(text)}
}
